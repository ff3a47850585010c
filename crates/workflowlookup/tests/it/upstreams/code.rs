//! Programs of agents: what they call, what comes back, and what happens on the way.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::house::{ERAS, agent, call_own, parsed, place, refused, told};
use super::upstream::{Seen, Upstream};
use crate::Place;
use crate::agent::{Agent, Era};
use crate::transcripts::Process;

const NAME: &str = "execute_mcp_code";
/// To stop hangs only.
const BOUND: Duration = Duration::from_secs(60);
const BOTH: [&str; 2] = ["thread", "process"];

fn program(code: &str) -> Value {
    json!({"code": code, "allowedMcpIds": ["notes"]})
}

/// An agent of a server whose programs run there.
fn agent_of(place: &Place, era: Era, sandbox: &str, can_ask: bool) -> Agent {
    let mut command = place.command(&["serve", "--sandbox", sandbox, "--sandbox-unconfined"]);
    command.stderr(Stdio::null());
    let capabilities = if can_ask { json!({"elicitation": {}}) } else { json!({}) };
    Agent::connect(Process::spawn(command), era, capabilities)
}

fn run(agent: &mut Agent, era: Era, arguments: &Value) -> Value {
    parsed(&call_own(agent, era, NAME, arguments, |message| panic!("asked: {message}")))
}

/// What the upstream was called with, in any order.
fn seen(upstream: &Upstream, count: usize) -> Vec<String> {
    let mut seen: Vec<String> = (0..count).map(|_| format!("{:?}", upstream.seen())).collect();
    seen.sort();
    seen
}

#[test]
fn a_program_calls_tools_and_returns_what_it_makes_of_them() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        for sandbox in BOTH {
            let mut agent = agent_of(&place, era, sandbox, false);
            let code = r#"
import * as notes from "mcp-clients/notes";
import { harmless } from "mcp-clients/notes";
enum Mood { Good = "good", Bad = "bad" }
interface Input { words: string[] }
export async function main(input: Input): Promise<unknown> {
    const said: string[] = [];
    for (const text of input.words) {
        said.push((await notes.echo({ text }) as { text: string }).text);
    }
    console.log("said", said.length, { mood: Mood.Good });
    let failed = "";
    try {
        await notes.fails();
    } catch (error: any) {
        failed = `${error.name}/${error.kind}: ${error.message}`;
    }
    return { said, failed, harmless: await harmless(), blocks: await notes.everything({}) };
}"#;
            let mut arguments = program(code);
            arguments["input"] = json!({"words": ["a", "b"]});
            let mut answer = run(&mut agent, era, &arguments);
            for call in answer["calls"].as_array_mut().unwrap() {
                assert!(call["ms"].as_u64().unwrap() < 60_000);
                call.as_object_mut().unwrap().remove("ms");
            }
            let called = |tool: &str, ok: bool| json!({"server": "notes", "tool": tool, "ok": ok});
            let expected = json!({
                "result": {
                    "said": ["a", "b"],
                    "failed": "ToolError/tool: it cannot be done",
                    "harmless": "harmless: done",
                    "blocks": {"n": [1, 2]},
                },
                "logs": ["said 2 {\"mood\":\"good\"}"],
                "calls": [
                    called("echo", true), called("echo", true), called("fails", false),
                    called("harmless", true), called("everything", true),
                ],
            });
            assert_eq!(answer, expected);
            assert_eq!(seen(&upstream, 5).len(), 5);
            agent.end();
        }
    }
}

/// It gets what there is, and the agent reads that it was not what was promised; once, however often it was.
#[test]
fn an_answer_that_breaks_a_promise_is_noted() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Modern, sandbox, false);
        let code = r#"
import { lies } from "mcp-clients/notes";
const both = await Promise.all([lies(), lies()]);
console.log("after");
both;"#;
        let answer = run(&mut agent, Era::Modern, &program(code));
        assert_eq!(answer["result"], json!([{"count": "many"}, {"count": "many"}]));
        insta::allow_duplicates! {
            insta::assert_snapshot!(answer["logs"], @r#"["note: notes.lies: `structuredContent` is not what `outputSchema` says: /count: wanted integer, found a string","after"]"#);
        }
        agent.end();
    }
}

/// What is awaited together is under way together.
#[test]
fn parallel_calls_are_parallel() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Modern, sandbox, false);
        let code = r#"
import { waits } from "mcp-clients/notes";
export default async () => (await Promise.all([waits(), waits(), waits()])).join();"#;
        let params = json!({"name": NAME, "arguments": program(code)});
        agent.begin("tools/call", params);
        // None of them is answered before all are there.
        for _ in 0..3 {
            assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        }
        for _ in 0..3 {
            upstream.finish();
        }
        let (_, result) = agent.answer();
        assert_eq!(parsed(&result)["result"], "done at last,done at last,done at last");
        agent.end();
    }
}

/// Errors say where in the agent's own program they are.
#[test]
fn what_fails_is_a_result_that_says_where() {
    let upstream = Upstream::start();
    let entry = upstream.entry("notes", json!({"tools": {"deny": ["dest*"]}}));
    let place = place(&[entry, upstream.entry("other", json!({}))]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Legacy, sandbox, false);
        let mut failed = |code: &str| {
            let answer = run(&mut agent, Era::Legacy, &program(code));
            assert_eq!(answer["result"], Value::Null, "{answer}");
            let error = &answer["error"];
            let place = match error["line"].as_u64() {
                Some(line) => {
                    format!("{}:{line}:{}", error["file"].as_str().unwrap(), error["column"])
                }
                None => "-".to_owned(),
            };
            format!(
                "{} {place} {}",
                error["kind"].as_str().unwrap(),
                error["message"].as_str().unwrap()
            )
        };
        let programs = [
            "import { fails } from 'mcp-clients/notes';\n\nawait\n  fails({});",
            "import { echo } from 'mcp-clients/notes';\nconst x: number = 7;\nawait echo({ text: x as any });",
            "import { echo } from 'mcp-clients/notes';\nawait echo('a');",
            "import { breaks } from 'mcp-clients/notes';\nawait breaks();",
            "import { ecko } from 'mcp-clients/notes';\nawait ecko();",
            "import { destroys } from 'mcp-clients/notes';\nawait destroys();",
            "import { echo } from 'mcp-clients/other';\nawait echo();",
            "import fs from 'node:fs';\nfs.readFileSync('x');",
            "const a: string = ;",
            "type A = 1;\nfunction f(a: A) { return (a as any).b.c; }\nf(1);",
            "export const main = () => { throw new RangeError('too far'); };",
            "await new Promise(() => {});",
        ];
        let said: Vec<String> =
            programs.iter().map(|code| format!("{code}\n=> {}", failed(code))).collect();
        insta::assert_snapshot!("what_programs_fail_with", said.join("\n\n"));
        agent.end();
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Modern, false);
    let mut refuse = |arguments: Value| -> String {
        let result =
            call_own(&mut agent, Era::Modern, NAME, &arguments, |message| panic!("{message}"));
        refused(&result).0.to_owned()
    };
    let all = [
        json!({"allowedMcpIds": []}),
        json!({"code": "1"}),
        json!({"code": "1", "files": {"a.ts": ""}, "allowedMcpIds": []}),
        json!({"code": "1", "allowedMcpIds": ["note"]}),
        json!({"code": "1", "allowedMcpIds": "notes"}),
        json!({"code": "1", "allowedMcpIds": [], "maxRuntimeMs": 999_999}),
        json!({"code": "1", "allowedMcpIds": [], "language": "python"}),
        json!({"files": {"a.ts": "", "b.ts": ""}, "allowedMcpIds": []}),
        json!({"files": {"a.ts": ""}, "entrypoint": "c.ts", "allowedMcpIds": []}),
        json!({"files": {"../a.ts": ""}, "allowedMcpIds": []}),
    ];
    let said: Vec<String> =
        all.into_iter().map(|given| format!("{given}\n=> {}", refuse(given.clone()))).collect();
    insta::assert_snapshot!("which_arguments_are_refused", said.join("\n\n"));
    agent.end();
}

#[test]
fn a_program_has_files_and_workflows() {
    let place = place(&[json!({"id": "notes", "mcp": {"command": "true"}})]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Modern, sandbox, false);
        let walk = r#"
import { workflow_next, workflow_validate } from "workflowlookup";
import { short } from "./lib/text";
export async function main() {
    const workflowId = "ai-task-implementation";
    const completedSteps: string[] = [];
    const context = { taskId: "TASK-1" };
    const seen = [];
    for (let turn = 0; turn < 3; turn++) {
        const next: any = await workflow_next({ workflowId, completedSteps, context });
        if (next.isComplete) break;
        seen.push(short(next.step.id));
        const checked: any = await workflow_validate({ workflowId, stepId: next.step.id, output: "x" });
        seen.push(typeof checked.valid);
        completedSteps.push(next.step.id);
    }
    try { await workflow_next({ workflowId: "no-such-workflow", completedSteps: [] }); }
    catch (error: any) { seen.push(error.kind); }
    return seen;
}"#;
        let text = "import { LENGTH } from './length.js';\nexport const short = (text: string) => text.slice(0, LENGTH);";
        let files = json!({"walk.ts": walk, "lib/text.ts": text, "lib/length.ts": "export const LENGTH: number = 4;"});
        let arguments = json!({"files": files, "entrypoint": "walk.ts", "allowedMcpIds": []});
        let answer = run(&mut agent, Era::Modern, &arguments);
        let seen = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(seen.len(), 7, "{answer}");
        assert_eq!((&seen[1], &seen[6]), (&json!("boolean"), &json!("tool")));
        assert_eq!(answer["calls"][0]["server"], "workflowlookup");
        agent.end();
    }
}

/// Whoever must say yes is asked in the middle of a program, and it goes on with what they say. Its time stands still.
#[test]
fn a_person_is_asked_in_the_middle() {
    let upstream = Upstream::start();
    let vault = upstream.entry("vault", json!({"sensitivity": "high"}));
    let place = place(&[upstream.entry("notes", json!({})), vault]);
    for era in ERAS {
        for sandbox in BOTH {
            let mut agent = agent_of(&place, era, sandbox, true);
            let code = r#"
import * as vault from "mcp-clients/vault";
import * as notes from "mcp-clients/notes";
const before = await notes.echo({ text: "before" });
const asked = await notes.asks();
const yes = await vault.echo({ text: "yes" });
let no = "";
try { await vault.echo({ text: "no" }); } catch (error) { no = error.message; }
[before.text, asked, yes.text, no];"#;
            let mut arguments = json!({"code": code, "allowedMcpIds": ["notes", "vault"]});
            arguments["language"] = json!("javascript");
            let mut asked = Vec::new();
            let result = call_own(&mut agent, era, NAME, &arguments, |message| {
                asked.push(message.lines().next().unwrap().to_owned());
                match message {
                    message if message.contains("Your name?") => {
                        json!({"action": "accept", "content": {"name": "Ada"}})
                    }
                    message if message.contains("\"yes\"") => {
                        json!({"action": "accept", "content": {}})
                    }
                    _ => json!({"action": "decline"}),
                }
            });
            let answer = parsed(&result);
            let said = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(said[..3], [json!("before"), json!("Hello, Ada"), json!("yes")]);
            assert!(said[3].as_str().unwrap().contains("vault.echo"), "{answer}");
            assert_eq!(asked.len(), 3, "{asked:?}");
            // What came before was done once.
            let seen = seen(&upstream, 4);
            assert_eq!(seen.iter().filter(|seen| seen.contains("before")).count(), 1, "{seen:?}");
            assert!(upstream.has_seen_nothing());
            agent.end();
        }
    }
}

#[test]
fn a_program_tells_how_far_it_is_and_can_be_taken_back() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Legacy, sandbox, false);
        let code = "import { echo, waits } from 'mcp-clients/notes';\nawait echo({ text: 'a' });\nawait waits();";
        let mut params = json!({"name": NAME, "arguments": program(code)});
        params["_meta"] = json!({"progressToken": "p"});
        let sent = agent.begin("tools/call", params);
        let mut last = -1.0;
        loop {
            let step = told(&mut agent, "notifications/progress");
            let done = step["progress"].as_f64().unwrap();
            assert!(done > last, "{step}");
            last = done;
            if step["message"] == "1 of 2 calls are done" {
                break;
            }
        }
        assert_eq!(upstream.seen(), Seen::Called("echo", json!({"text": "a"})));
        assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        let params = json!({"requestId": sent, "reason": "no longer needed"});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        agent.process.send(cancelled.to_string());
        assert_eq!(upstream.seen(), Seen::Withdrawn);
        let answer = run(&mut agent, Era::Legacy, &program("6 * 7"));
        assert_eq!(answer["result"], 42);
        agent.end();
    }
}

/// A thread that cannot be ended goes on until its process ends.
#[test]
fn the_log_tells_of_a_program_that_goes_on() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let log = place.project().join("log");
    let mut command = place.command(&["serve", "--sandbox", "thread", "--sandbox-unconfined"]);
    command.stderr(fs::File::create(&log).unwrap());
    let mut agent = Agent::connect(Process::spawn(command), Era::Modern, json!({}));
    // The engine does this in one go.
    let mut endless = program("Array.prototype.join.call({ length: 2 ** 53 - 1 }, '')");
    endless["maxRuntimeMs"] = json!(50);
    let ended = run(&mut agent, Era::Modern, &endless);
    assert_eq!(ended["error"]["message"], "the program did not end within 0.05 s");
    let told = "a program was told to end and goes on; others get processes until it ends";
    let began = Instant::now();
    while !fs::read_to_string(&log).unwrap().contains(told) {
        assert!(began.elapsed() < BOUND, "{}", fs::read_to_string(&log).unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(run(&mut agent, Era::Modern, &program("6 * 7"))["result"], 42);
    agent.end();
}

/// A program that a client gives up on by going away does not go on.
#[test]
fn the_last_of_a_program_is_its_clients_end() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for sandbox in BOTH {
        let mut agent = agent_of(&place, Era::Modern, sandbox, false);
        let code = "import { waits } from 'mcp-clients/notes';\nawait waits();";
        agent.begin("tools/call", json!({"name": NAME, "arguments": program(code)}));
        assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        agent.end();
        assert_eq!(upstream.seen(), Seen::Withdrawn);
    }
}
