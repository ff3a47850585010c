//// overloads
//// => ["number","string"]
function kind(x: number): "number";
function kind(x: string): "string"
function kind(x: any): any { return typeof x }
export function other(a: 1): void;
export function other(a: any) {}
[kind(1), kind("")]
//// this parameters
//// => [3,4,"x"]
function get(this: { x: number }, y: number): number { return this.x + y }
function only(this: { x: number }): number { return this.x }
const o = { x: 4, only, f: function (this: any, a: string, ): string { return a } };
[get.call({ x: 1 }, 2), o.only(), o.f("x")]
//// predicates and assertions
//// => [true,false,"ok"]
function isText(x: unknown): x is string { return typeof x === "string" }
const isNumber = (x: unknown): x is number => typeof x === "number";
function assert(x: unknown): asserts x { if (!x) throw new Error("no") }
function assertText(x: unknown): asserts x is string {}
const check: (x: unknown) => asserts x = assert;
check(1); assertText("a");
[isText("a"), isNumber("a"), "ok"]
//// generic arrows
//// => [1,[2],"3",4]
const a = <T,>(x: T): T => x;
const b = <T extends object, U = T>(x: T): T => x;
const c = async <T>(x: T): Promise<T> => x;
const d = <const T>(x: T) => x;
[a(1), b([2]), await c("3"), d<4>(4)]
//// arrows whose types have several lines
//// => [{"a":1},2,3,[4],5]
const a = (x: number): {
  a: number
} => ({ a: x });
const b = async <
  T,
  U = T
>(x: T): Promise<
  T
> => x;
const c = <
  T
>(
  x: T,
): T => x;
function d() {
  return <
    T
  >(x: T): T[] => [x];
}
const e = (x: number, // a comment
) // another )
  : number => x;
[a(1), await b(2), c(3), d()(4), e(5)]
//// defaults and optional parameters
//// => [1,2,3,[4,5]]
const f = (a?: number, b: number = 2, { c = 3 }: { c?: number } = {}, ...d: number[]): any[] => [a, b, c, d];
f(1, undefined, undefined, 4, 5)
//// methods of objects
//// => [1,2,3,"k"]
const key = "k";
const o = {
  m<T>(this: any, x: T): T { return x },
  get g(): number { return 2 },
  set g(x: number) {},
  async *[key](): AsyncGenerator<string> { yield key as string },
  async a(): Promise<number> { return 3 },
};
const [k]: string[] = [(await o[key]().next()).value as string];
[o.m<number>(1), o.g, await o.a(), k]
//// functions as types
//// => 3
type F = (a: number, b?: string) => void;
type G = new (...args: any[]) => object;
type H = abstract new () => void;
const f: (a: number) => (b: number) => number = a => b => a + b;
const g: { (a: number): number; tag?: string } = function (a: number): number { return a };
f(1)(g(2))
//// generators
//// => [1,2]
function* g<T>(xs: Iterable<T>): IterableIterator<T> { yield* xs as Iterable<T> }
[...g<number>([1, 2])]
//// closures over types in blocks
//// => 6
function outer<T extends number>(x: T) {
  type Local = { x: T };
  interface Other extends Local {}
  const inner = (y: Local): number => { type Inner = Other; return (y as Inner).x * 2 };
  return inner({ x });
}
outer(3)
