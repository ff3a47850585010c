//// numbers
//// => ["A",0,1,"B",5,6,"D"]
enum E { A, B, C = 5, D }
[E[0], E.A, E.B, E[1], E.C, E.D, E[6]]
//// texts
//// => [{"Up":"UP","Down":"DOWN"},null]
enum Direction { Up = "UP", Down = `DOWN`, }
[Direction, (Direction as any)["UP"] ?? null]
//// values that are computed
//// => {"0":"None","1":"Read","2":"Write","3":"All","4":"Next","5":"Length","None":0,"Read":1,"Write":2,"All":3,"Next":4,"Length":5}
enum Flags { None, Read = 1 << 0, Write = 1 << 1, All = Read | Write, Next, Length = "12345".length }
Flags
//// texts that are computed
//// => {"A":"a","B":"ab","C":"a","D":"a-x"}
enum T { A = "a", B = A + "b", C = T.A, D = `${A}-x` }
T
//// negative and other numbers
//// => [-2,-1,0,1.5,2.5,16]
enum N { A = -2, B, C, D = 1.5, E, F = 0x10 }
[N.A, N.B, N.C, N.D, N.E, N.F]
//// names that are texts
//// => {"0":"a-b","1":"c\"d","2":"e","3":"default","a-b":0,"c\"d":1,"e":2,"default":3}
enum S { "a-b", 'c"d', ["e"], default }
S
//// const enums
//// => [1,2,"B"]
const enum C { A = 1, B }
[C.A, C.B, (C as any)[2]]
//// parts of one enum
//// => {"0":"A","10":"B","11":"C","A":0,"B":10,"C":11}
enum Parts { A }
enum Parts { B = 10, C }
Parts
//// parts that are exported, and name each other
//// => [1,3]
export enum Parts { A = 1 }
export enum Parts { B = A | 2 }
[Parts.A, Parts.B]
//// enums in functions and blocks
//// => [0,1,7]
function f() { enum Local { A, B } return [Local.A, Local.B] }
const block = (() => { { enum Inner { X = 7 } return Inner.X } })();
[...f(), block]
//// members are seen in their values alone
//// => [[1,2],[1],3]
const A = 3;
let seen: any;
enum E { A = 1, B = ((A: number) => A)(2), C = (seen = [A]).length }
[[E.A, E.B], seen, A]
//// an enum on several lines with comments
//// => [0,"b",3]
export const enum Big
{
  // the first
  A, // a comment, with a comma
  /* before */ B /* between */ = /* value */ "b" as string, /* after */
  C = 3 // no comma
}
[Big.A, Big.B, Big.C]
//// an empty enum, and one that names itself
//// => [{},1]
enum Empty {}
enum Self { Self = 1 }
[Empty, Self.Self]
//// an enum after a line without an end
//// => [1,0]
const one = 1
enum E { A }
[one, E.A]
//// enums as types and as objects
//// => [["A","B"],"b"]
enum Letter { A = "a", B = "b" }
type Keys = keyof typeof Letter;
const at = (key: Keys): Letter => Letter[key];
[Object.keys(Letter), at("B")]
//// one enum in the values of another
//// => [2,6,"x"]
enum A { X = 2, T = "x" }
enum B { Y = A.X, Z = A["X"] * 3, W = A.T }
[B.Y, B.Z, B.W]
//// a name of the member with escapes
//// => {"0":"ab","ab":0}
enum E { \u0061b }
E
