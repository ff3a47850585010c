//// a type
const a: number = 1;
//// an interface
const a = 1;
interface A {}
//// a cast
const a = b as number;
//// an enum
enum A { B }
//// a parameter property
class A { constructor(private x) {} }
//// a modifier
class A { public x = 1 }
//// an optional parameter
function f(x?) {}
//// not null
const a = b!.c;
//// an import of a type
import type { A } from "a";
//// a type argument
f<number>(1);
//// an assertion
const a = <number>1;
//// neither
const a: = 1;
//// JSX
const a = <b>c</b>;
//// decorators
@a class B {}
