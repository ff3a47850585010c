//// a type before a line with a bracket
//// => [1]
let a = 1
type A = number
;[a]
//// a type between a line without an end and one with a bracket
//// => ["f",[2]]
let log: any[] = []
const f = () => "f"
type A = string
(log.push(f()))
const g = log
interface B {}
[2].forEach(x => log.push([x]))
log
//// a cast before a line with a bracket
//// => [1,"called"]
let log: any[] = []
const one = 1 as number
(log.push(one))
const two = log satisfies any
[0].forEach(() => log.push("called"))
log
//// a cast before a line with a template
//// => "b"
const a = "a" as string
`b`
//// an instantiation before a line with a word
//// => ["g",5]
function f<T>(x?: T) { return x }
const g = f<string>
let h = f<number>
export default [g("g"), h(5)]
//// casts before lines with operators
//// => [3,-1,2]
let a = 1, b = 2
const c = a as number
+ b
const d = a as number
- b
const e = b as number
/ a
;[c, d, e]
//// return with an assertion and a line break
//// => [{"a":1},2,3]
function f() {
  return <{
    a: number
  }>{ a: 1 };
}
function g() {
  return <number>
    2;
}
function h() { return (3 as
  number) }
[f(), g(), h()]
//// throw with an assertion and a line break
//// => "x"
let seen;
try {
  throw <
    any
  >"x";
} catch (e: any) { seen = e }
seen
//// not null before a line with a bracket goes on
//// => [2,3]
const f = ((x: number) => x) as any, xs = [2, 3];
const a = f!
(2)
const b = xs!
[1]
;[a, b]
//// type arguments on lines of their own
//// => [1,0]
function f<T, U>(x: any) { return x }
const a = f<
  number,
  string
>
(1);
const m = new Map<
  string, number
>();
[a, m.size]
//// increments after casts
//// => [2,1]
let a = 1, b = 2
const c = a as number
++a
let d: number
--b
;[a, b]
//// statements without an end before declarations
//// => [1,2,"abc"]
let a = 1
declare const x: number
let b = 2
abstract class C { static n = "abc" }
export type { D }
type D = string
[a, b, C.n]
//// declarations in places for one statement
//// => 1
let n = 1
if (n) type = 2
else { type X = 1 }
var type: any
n
//// fields whose casts end a line
//// => ["a","k"]
const k = "k"
class A {
  a = 1 as number
  [k]: string = "x" as string
  static b = 1 satisfies number
}
Object.keys(new A())
//// a chain over several lines with casts
//// => [2,4]
const xs = ([1, 2] as number[])
  .map<number>((x: number): number => x * 2)
  .filter(
    (x): x is number =>
      x > 0 as boolean,
  )
xs as
  number[]
//// windows line breaks
//// => [1,"two"]
const a: {
  x: number
} = { x: 1 } as {
  x: number
}
type T =
  | string
  | number
[a.x, "two" as T]
//// a generic arrow at the start of a line
//// => 3
let f
f = 1
;<T>(x: T) => x
f = 3 as number
//// arrows and types in conditions over lines
//// => ["a","b"]
const x = true as
  boolean ? ("a" as
  string) : "c"
const y = [x, !x as boolean
  ? "c" as const
  : "b" as const]
y
