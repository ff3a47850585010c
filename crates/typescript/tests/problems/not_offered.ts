//// decorators of a class
function sealed(x: any) {}
@sealed
class A {}
//// decorators of a member
class A { @log() m() {} }
//// decorators of a parameter
class A { constructor(@Inject() private x: number) {} }
//// accessor fields
class A {
  accessor x: number = 1;
}
//// a namespace with values
const a = 1;
namespace N { export const x: number = 1 }
//// a nested namespace with values
export namespace A.B { export function f() {} }
//// require
import fs = require("fs");
//// an alias of a namespace
import A = B.C;
//// an export assignment
export = { a: 1 };
//// JSX
const element = <div className="a">{1}</div>;
//// JSX with a fragment
export default () => <>text</>;
//// an enum with a member that needs a value
enum E { A = "a", B }
//// parameter properties without super
class A extends B { constructor(private x: number) { if (x) { super() } } }
//// a field that uses a parameter property
class A {
  ok = () => this.x;
  y = this.x * 2;
  constructor(private x: number) {}
}
//// the first of several
@a class A { accessor b = 1 }
namespace N { const c = 1 }
