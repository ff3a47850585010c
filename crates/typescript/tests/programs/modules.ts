//// imports of types
//// => [1,4]
import type Default from "nowhere";
import type * as everything from "nowhere";
import type { A } from "nowhere";
import { type B, one } from "library";
import { type C, type D } from "nowhere";
import { twice, type E } from "library";
const a: A | B | C | D | E | Default | everything.X = one;
[a, twice(2)]
//// imports that are only used as types
//// => "library"
import library, { Box } from "library";
import Unused, { type Nothing } from "nowhere";
import * as everything from "nowhere";
import { Absent } from "nowhere";
const box: Box | Absent | typeof Unused | everything.A | Nothing = null!;
library
//// some names of an import
//// => [2,"library",1]
import library, { Missing, twice, type Other, one as eins, Nope } from "library";
const x: Missing | Nope | Other = twice(1);
[x, library, eins]
//// names before a namespace
//// => [1,2]
import Type, * as all from "library";
import value, * as Types from "library";
const x: typeof Type | Types.Box = all.one;
[x, value.length - 5]
//// imports that are used in all sorts of places
//// => [1,{"one":1},"library",2,2]
import library, { one, twice, Box } from "library";
class A extends Box { [one] = 2 }
const o = { one };
[one, o, library as string, new A(1)[one], twice<number>(one!)]
//// imports that are exported
//// => 1
import { one } from "library";
import type { T } from "nowhere";
import { type U } from "nowhere";
import { twice } from "library";
type Local = T;
interface Other {}
export { one, type Local, Other, type T, U };
export { twice as double };
export type { Local as Mine };
export { type X, type Y } from "nowhere";
export { type Z, twice as again } from "library";
export type * from "nowhere";
export type * as far from "nowhere";
export * as near from "library";
one
//// a default export that is a type
//// => 2
interface Options { a: number }
export default Options;
const a: Options = { a: 2 };
a.a
//// a default export that is an interface
//// => 3
export default interface Options { a: number }
3 as number
//// overloads of a default export
//// => "number"
export default function kind(x: number): string;
export default function kind(x: string): string;
export default function kind(x: any): string { return typeof x }
kind(1)
//// imports at run time
//// => [1,4]
const library = await import("library") as { one: number };
const { twice } = await import(`library`);
[library.one, twice(2)]
//// an import for its effects, and one of nothing
//// => 1
import "library";
import {} from "nowhere";
1
//// an import that is used in an enum
//// => [1,2]
import { one, twice } from "library";
enum E { A = one, B = twice(A) }
[E.A, E.B]
//// an import that hides behind a type of the same name
//// => 1
import { one } from "library";
type one = number;
const x: one = one;
export { x };
x
//// exported declarations
//// => [1,2,3,4]
export const a: number = 1;
export let b: number | undefined = 2, c: number = 3;
export async function d(): Promise<number> { return 4 }
export class E<T> { x!: T }
export type F = E<string>;
export enum G { A }
[a, b, c, await d()]
