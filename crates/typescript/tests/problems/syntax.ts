//// a missing bracket
const a = (1 + 2;
//// a bracket too many
const a = 1);
//// the end comes too early
function f() {
  if (a) {
//// an unterminated string
const a = "abc
const b = 1;
//// an unterminated template
const a = `abc ${1}
//// an unterminated comment
const a = 1; /* for ever
//// a sign that is none
const a = 1 # 2;
//// a word that is reserved
const class = 1;
//// a column behind signs of several bytes
const ü = "😀😀"; const ä = (;
//// await in a function that is not async
function f() { await g(); }
//// a return outside of a function
return 1;
//// a cast that can not be erased
const x = a + b as number * 2;
//// a broken type
let a: { b: = 1;
//// a broken generic
function f<T(x: T) {}
//// an arrow without a body
const f = (x: number): number =>
//// two constructors
class A { constructor() {} constructor() {} }
//// a const without a value
const a: number;
//// an import without a source
import { a } from;
//// a name that is exported twice
export const a = 1;
export { a };
//// an object with a stray word
const o = { a: 1 b: 2 };
//// python
def main():
    return 1
//// words
please list all open issues
