//! Memory that ends anywhere: in the middle of whatever the engine does. It has to go on, and to say so.

use sandbox::{Kind, Limits, Mode, Program};

use crate::world::{run, sandbox};

/// How much is left free before everything is done that programs do. With each of these it ends elsewhere.
const LEFT: std::ops::Range<usize> = 0..160;

/// Fills its memory but for so much, and then does a little of everything.
const PROGRAM: &str = r#"
import { echo, fail } from "mcp-clients/tools";
const fill: unknown[] = [];
try { for (;;) fill.push(new Uint8Array(1000)); } catch {}
fill.length -= LEFT;

class Own { #secret = 1; static made = 2; get secret() { return this.#secret; } static { this.made++; } }
function* numbers() { yield 1; try { yield 2; } finally { yield 3; } }
async function* later() { yield 1; yield await echo({ x: 1 }); }

export async function main() {
  const out: unknown[] = [new Own().secret, Own.made, [...numbers()]];
  for await (const value of later()) out.push(value);
  const map = new Map<any, any>([[1, { a: 1 }], [2, [1, 2, 3]]]);
  out.push([...map], [...new Set([1, 2]).union(new Set([4]))], JSON.parse('{"a":[1,{"b":null}]}'), JSON.stringify({ a: [1, { b: 2 }] }));
  out.push("abc".replace(/(?<x>b)/, (all, x) => x + all), "a-b".split("-"), "x".padStart(10), `t${1}`, "ä".normalize("NFD"));
  out.push([3, 1, 2].sort((a, b) => a - b), [1, [2, [3]]].flat(3), Object.entries({ a: 1 }), Object.fromEntries([["a", 1]]));
  const proxy: any = new Proxy({}, { get: (_, name) => (name === "then" ? undefined : String(name)) });
  out.push(proxy.hello, new WeakRef(map).deref() === map, String(2n ** 100n), new Uint8Array([1, 2]).map((x) => x * 2).join(), new Date(0).toISOString());
  try { await fail({}); } catch (error: any) { out.push(error.message); }
  out.push(await Promise.all([1, echo({ y: 2 }), new Promise((resolve) => setTimeout(resolve, 1, 5))]));
  out.push(await Promise.allSettled([Promise.reject(new Error("x"))]), await Promise.any([Promise.reject(1), 2]));
  const { a, ...rest } = { a: 1, b: 2 }; const [first, ...others] = [1, 2, 3];
  out.push(a, rest, first, others, (function (..._: unknown[]) { return arguments.length; })(1, 2));
  console.log("said", { a: 1 }, new Error("e"));
  out.push(main.bind(null).name, Reflect.ownKeys({ x: 1 }), Object.keys(await import("mcp-clients/other")), [1, 2].values().map((x) => x).toArray());
  return out.length;
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn memory_may_end_anywhere() {
    let sandbox = sandbox(Mode::Thread);
    let limits = Limits { memory: 1024 * 1024, ..Limits::default() };
    let (mut fits, mut ends) = (0, 0);
    for left in LEFT {
        let program = PROGRAM.replace("LEFT", &left.to_string());
        let outcome = run(&sandbox, Program::of(program), limits).await;
        match outcome.error.map(|error| error.kind) {
            None => fits += 1,
            Some(Kind::Memory) => ends += 1,
            // It has caught that there is no memory, and gone on without what it wanted to have.
            Some(Kind::Exception) => {}
            Some(kind) => panic!("{left}: {}", kind.name()),
        }
    }
    assert!(fits > 10 && ends > 10, "it fits {fits} times, and does not {ends} times");
}
