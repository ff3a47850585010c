//// a main that is not exported
//// => {"x":1}
interface Point { x: number }
async function main(): Promise<Point> {
  return { x: 1 } as Point;
}
//// a main that is exported
//// => 2
export async function main(input?: unknown): Promise<number> { return 2 }
//// a main that is a constant
//// => 3
const main = async (): Promise<number> => 3;
//// a main that the program calls
//// => 4
let calls = 0;
async function main(): Promise<number> { calls++; return 3 + calls }
await main();
//// a main that the program calls in a function
//// => undefined
let calls = 0;
async function main(): Promise<number> { if (calls++) throw new Error("twice"); return 1 }
(async () => { try { await main() } catch (error: any) { throw error } })();
//// a main for other hosts
//// => 5
async function main() { return 5 as number }
if (import.meta.main) { await main() }
//// a main under another name
//// => 6
function run(): number { return 6 }
export { run as main };
//// a main from elsewhere
//// => 2
import { twice } from "library";
const double = () => twice(1);
export { double as main };
//// an imported main
//// => null
import { twice as main } from "library";
//// a value that is an object in brackets
//// => {"a":1}
({ a: 1 })
//// a value that is a sequence
//// => 2
1, 2;
//// a value with comments
//// => 3
3 /* the value */ ; // the end
/* of all */
//// a value that is a text
//// => "use strict"
"use strict"
//// a value before functions and types
//// => 4
four() as number
function four() { return 4 }
type Four = 4;
export type { Four };
;
//// a value that is assigned
//// => 5
let x: number;
x = 5 as number
//// a value that is awaited
//// => 6
const six: Promise<number> = Promise.resolve(6);
await six
//// a value that is a promise
//// => 7
Promise.resolve<number>(7)
//// a value that is a cast with a line break
//// => 8
8 as
  number
//// a default export
//// => 9
export default 9 as number;
//// a value that is a template
//// => "a"
`a`;
//// a value that is an assertion
//// => {"a":1}
<any>{ a: 1 }
//// a value that is an arrow
//// => undefined
(x: number): number => x
