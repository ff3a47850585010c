//// modifiers
//// => [1,2,3,4,5,"s"]
abstract class Base<T> { abstract name(): T; protected abstract x: number; abstract get y(): number; }
class A extends Base<string> implements Iterable<number>, PromiseLike<any> {
  public a: number = 1;
  private readonly b = 2;
  protected c?: number = 3;
  static readonly d: number = 4;
  public static override e: number = 5;
  declare f: string;
  g!: string;
  [key: string]: any;
  static [key: string]: any;
  override name(): string { return "s" }
  x = 0;
  get y(): number { return 0 }
  private async *m?<T>(): AsyncGenerator<T> {}
  public *[Symbol.iterator](): Iterator<number> { yield this.a; yield this.b; yield this.c! }
  then: any = undefined;
}
const a = new A();
[...a, A.d, A.e, a.name()]
//// parameter properties
//// => {"a":1,"b":2,"c":3}
class A {
  constructor(public a: number, private readonly b = 2, protected c?: number, d: number = 4) {}
}
new A(1, undefined, 3)
//// parameter properties come before other fields
//// => [["a","z"],[1,5]]
class A { z = 5; constructor(public a: number) { this.a; } }
const a = new A(1);
[Object.keys(a), Object.values(a)]
//// parameter properties after super
//// => [{"log":["base","a1"],"a":1,"x":9},true]
class Base { log: string[] = []; constructor() { this.log.push("base") } }
class A extends Base {
  x = 9;
  constructor(public a: number) {
    "use strict";
    const early = a
    super()
    this.log.push("a" + this.a)
  }
}
const { log, a, x } = new A(1);
[{ log, a, x }, new A(1) instanceof Base]
//// parameter properties in a class expression
//// => [1,2]
const make = <T>(x: T) => new (class<U> extends Object { constructor(readonly x: U) { super(); } })(x);
class Inner { constructor(override readonly toString: any = () => "2") {} }
[make(1).x, Number(String(new Inner()))]
//// overloads of methods and constructors
//// => [1,"a"]
class A {
  x: any;
  constructor();
  constructor(x: number);
  constructor(x?: any) { this.x = x }
  m(x: number): number;
  m(x: string): string
  m(x: any): any { return x }
  static s(): void
  static s(x?: any) {}
}
[new A(1).x, new A().m("a")]
//// fields without a value
//// => ["a","b","c"]
class A { a: number; b?: string; "c"!: number; declare d: number }
Object.keys(new A())
//// names that would be prefixes
//// => ["get","set","static","async",1,2]
class A {
  get: number
  one() { return 1 }
  set?: number
  static: string
  two(): number { return 2 }
  async!: number
  three() {}
}
const a = new A();
[...Object.keys(a), a.one(), a.two()]
//// lines that only modifiers told apart
//// => [1,2,[3],4]
const key = "k";
class A {
  a = 1
  public [key] = 2
  b = [1]
  private *gen() { yield 3 }
  c = this.a
  readonly ["d"]: number = 4
}
const a = new A();
[a.a, a.k, [...(a as any).gen()], a.d]
//// accessors with types
//// => [2,4]
class A { private n: number = 1; get x(): number { return this.n * 2 } set x(v: number) { this.n = v } static get [`y`](): number { return 4 } }
const a = new A();
[a.x, A.y]
//// static blocks and private members
//// => [3,7]
class A { static #n: number; static { const n: number = 3; A.#n = n as number } static get n(): number { return this.#n } #m(): number { return 7 } m = (): number => this.#m() }
[A.n, new A().m()]
//// a class in an expression with everything
//// => "x1"
const C = class Named<T> extends (Object as any as { new <T>(): object })<T> implements Object { constructor(private p: string) { super() } q(): string { return this.p + 1 as string } };
new C<string>("x").q()
//// abstract classes with code
//// => [2,"A"]
export abstract class Shape { abstract area(): number; twice(): number { return this.area() * 2 } static of<T extends Shape>(this: new () => T): T { return new this() } }
class One extends Shape { area(): number { return 1 } }
[One.of().twice(), abstract()]
function abstract() { return "A" }
//// a default class that is abstract
//// => 5
export default abstract class A { static x: number = 5 }
A.x
//// a method that is called like a modifier
//// => [1,2,3,4]
class A { public() { return 1 } private = 2; static readonly() { return 3 } declare: number = 4; abstract?(): void }
const a = new A();
[a.public(), a.private, A.readonly(), a.declare]
//// inheritance with type arguments over several lines
//// => "ab"
class Base<
  T,
  U
> { constructor(public t: T, public u: U) {} }
class Sub
  extends Base<
    string,
    string
  >
  implements
    Object {
  join(): string { return this.t + this.u }
}
new Sub("a", "b").join()
