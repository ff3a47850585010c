//// as, satisfies and not null
//// => [1,"a",2,3]
const value: unknown = 1;
const maybe: { a?: { b: number } } | undefined = { a: { b: 2 } };
[value as number, "a" satisfies string, maybe!.a!.b!, (3 as unknown) as number]
//// as binds less than what is before it
//// => [1,3,9,false]
const a = 1, b = 2, c = 3;
[a + b as number - 2, a + b as any as number, (a + b) as number * c, a < b as any === 1 as any]
//// as before a power
//// => 9
const b = 1;
(b + 2 as number) ** 2
//// shifts under a cast
//// => 12
const a = 1, b = 2;
a + b as number << 2
//// optional chains with not null
//// => [null,null,5,null]
type N = { b?: { c: number, d?: () => number } };
const a: N | undefined = undefined as N | undefined;
const b: N = { b: { c: 5 } };
[a?.b!.c, a?.b!?.c, b?.b!["c"], (a?.b as any)?.c].map(x => x ?? null)
//// calls with type arguments
//// => [1,[2],"a",[]]
function id<T>(x: T): T { return x }
const o = { m<T>(x: T): T { return x }, n: undefined as undefined | (<T>(x: T) => T) };
[id<number>(1), id<Array<Array<number>>>([[2]])[0], o.m<string>("a"), new Array<number>(), o.n?.<number>(3)].filter(x => x !== undefined)
//// an instantiation
//// => [3,"s"]
function make<T>(x: T) { return x }
const number = make<number>;
const text = (make<string>);
const M = Map<string, number>;
[number(3), text("s"), ...new M()]
//// tagged templates with type arguments
//// => ["a-b","1"]
function tag<T>(parts: TemplateStringsArray, ...values: T[]) { return [parts.join("-"), values.join()] }
tag<number>`a${1}b`
//// assertions with angle brackets
//// => [1,{"a":1},[2],3]
const x = <any>1;
const make = () => <{ a: number }>{ a: 1 };
const list = <number[]>[2];
const deep = <any><unknown>3;
[<number>x, make(), list, deep]
//// an assertion about an object is not a block
//// => [{"a":1},"function","function"]
let seen: any[] = [];
const push = (x: any) => { seen.push(x) };
const f = (): any => <any>{ a: 1 };
push(f());
push(typeof <any>function () {});
push(typeof <any>class {});
seen
//// a cast of an object in an arrow
//// => [{"a":1},{"b":2}]
const f = () => ({ a: 1 } as { a: number });
const g = () => ({ b: 2 }) as { b: number };
[f(), g()]
//// targets of assignments
//// => [5,6,7,8,9,2]
let a: any, b: any = {}, c: any, d: any, e: any = 1;
(a as number) = 5;
(b!.x) = 6;
(<any>c) = 7;
[(d as number)] = [8];
({ e: (e as any) } = { e: 9 });
b.y = 1;
b.y!++;
[a, b.x, c, d, e, b.y as number]
//// conditional expressions with arrows and types
//// => [2,3]
const yes = true as boolean;
const f = yes ? (x: number): number => x + 1 : (x: number): number => x;
const g = yes ? (1 as number) ? (x: number) => x + 2 : null : null;
[f(1), g!(1)]
//// comparisons that look like type arguments
//// => [false,true,false]
const a = 1, b = 2, c = 3;
[a < b as any > c, a < b, a > b]
//// spreads, sequences and voids
//// => [[1,2],{"a":1},3,null]
const xs: any = [1, 2];
[[...xs as number[]], { ...{ a: 1 } as object }, (1 as number, 3 as number), void (0 as any) ?? null]
//// await and yield of casts
//// => [1,2,[3,4]]
function* gen(): Generator<number, void, unknown> { yield 3 as number; yield <number>4; }
const one = await (Promise.resolve(1) as Promise<number>);
const two = await Promise.resolve(2) as number;
[one, two, [...gen()]]
//// await before brackets and patterns
//// => [1,2,true,"t"]
const one = await (Promise.resolve(1) as any);
const two = await [2][0];
await (async () => {})();
[one, two, await /a/.test("a"), await `t`]
//// delete, typeof and in
//// => ["number",true,false,true]
const o: any = { a: 1, b: 2 };
[typeof (o.a as unknown), delete (o as any).b, "b" in (o as object), "a" in o as boolean]
//// new without brackets
//// => [0,0,"T"]
class T<X = string> { static title: string = "T"; size = 0 }
[new T<number>().size, (new T<number>).size, T.title]
//// a satisfies in the middle
//// => {"red":[255,0,0],"blue":"#00f"}
type Colours = Record<string, string | number[]>;
const colours = { red: [255, 0, 0], blue: "#00f" } satisfies Colours as Colours;
colours
//// const assertions
//// => ["a","b",1]
const list = ["a", "b"] as const;
const one = <const>1;
[...list, one]
//// private names and brands
//// => [true,false,3]
class A { #x: number = 3; static is(o: any): o is A { return #x in o } static get(o: A): number { return o.#x! as number } }
[A.is(new A()), A.is({}), A.get(new A())]
