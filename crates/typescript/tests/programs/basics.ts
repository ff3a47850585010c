//// annotations of variables, parameters and results
//// => 7
const a: number = 3;
let b!: number;
b = 4;
function add(x: number, y?: number, ...rest: Array<string>): number { return x + (y ?? 0); }
add(a, b)
//// interfaces and aliases
//// => {"x":1}
interface Point { x: number; y?: number }
interface Named<T extends Point = Point> extends Point { name: string; of: T; (call: T): void; new (): Named; [key: string]: any }
type Pair<A, B = A> = [first: A, second?: B, ...rest: Array<A | B>];
type Deep<T> = { readonly [K in keyof T]-?: T[K] extends object ? Deep<T[K]> : T[K] };
type Text = `${string}-${number}`;
export type { Point, Named };
export interface Other { a: unique symbol }
const point: Point = { x: 1 };
point
//// destructuring with types
//// => [1,2,3,"d"]
const { a, b: { c }, ...rest }: { a: number; b: { c: number }; d: string } = { a: 1, b: { c: 2 }, d: "d" };
const [x, , y = 3]: [number, number?, number?] = [1, 2];
function take({ a, b = 2 }: { a: number, b?: number }, [c]: number[] = [3]): number[] { return [a, b, c]; }
[...take({ a }), rest.d]
//// declarations that are not there
//// => "undefined"
declare const nothing: string;
declare function nobody(a: number): void;
declare class Nowhere { a: number }
declare enum None { A }
declare namespace Far { const x: number; function f(): void }
declare module "somewhere" { export const a: number }
declare global { interface Array<T> { mine: T } var here: number }
declare let a: number, b: string;
export declare const c: number;
export declare abstract class D {}
namespace OnlyTypes { export interface A { a: number } export type B = A; namespace Inner { type C = B } }
namespace Outer.Inner { export type X = string }
type Z = OnlyTypes.A | Outer.Inner.X;
typeof nothing
//// a catch clause with a type
//// => "boom"
let seen = "";
try { throw new Error("boom"); } catch (error: unknown) { seen = (error as Error).message; }
seen
//// loops over a cast
//// => 12
let sum: number = 0;
const xs: unknown = [1, 2, 3];
for (const x of xs as number[]) sum += x;
for (const x of <number[]>xs) { sum += x }
for (let i: number = 0, n: number = 3; i < n; i++) sum += 0 as number;
for (const key in { a: 1 } as Record<string, number>) sum += key.length - 1;
sum
//// labels, switches and blocks
//// => "two"
type Key = 1 | 2;
function name(key: Key): string {
  outer: for (;;) {
    switch (key as number) {
      case 1 as number: type Local = string; return "one" as Local;
      case 2: { interface Inner {} ; break outer }
      default: throw new Error(`${key as Key}`);
    }
  }
  return "two" satisfies string;
}
name(2)
//// words of TypeScript as names
//// => [1,2,3,4,5,6,7,8,9]
const type = 1, as = 2, of = 3, declare = 4, namespace = 5, module = 6, abstract = 7, readonly = 8, satisfies = 9;
function type_<T>(as: T) { return as }
[type, as as number, of satisfies number, declare, namespace, module, abstract, readonly, satisfies as 9].map(type_)
//// words of TypeScript as properties
//// => {"type":1,"as":2,"is":3,"enum":4,"interface":5,"public":6,"declare":7,"abstract":8,"keyof":9}
const is: number = 3;
({ type: 1, as: 2, is, enum: 4, interface: 5, public: 6, declare: 7, abstract: 8, keyof: 9 })
//// comments among types
//// => [1,2]
const a /* before */ : /* type */ number /* after */ = /* value */ 1; // end
const b = 2 /* as text */ as // comment
  /* another */ number; /* last */
[a, b /* , */ as /* , */ number /* , */]
//// letters of other scripts and signs of several units
//// => ["ü","😀",3]
const größe: "😀" | "ü" = "ü"; const 数: Record<"ключ", string> = { ключ: "😀" } as Record<"ключ", "😀">; type Ü = "…";
[größe as Ü | string, 数.ключ!, "…" as "…" && 3 as number]
//// regular expressions and divisions around types
//// => [true,2,"b"]
const half = (x: number): number => x as number / 2;
const n = 8;
[/a<b>c/.test("a<b>c") as boolean, half(n) / <number>2, "ab".replace(/a/g as RegExp, "")]
//// nested templates with types
//// => "a1b2c3"
const f = (x: number) => `${x}`;
`a${f(1 as number)}b${`${(2 as any)!}c${<number>3}`}`
