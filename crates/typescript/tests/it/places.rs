//! Errors are reported where their authors wrote them, also where text was put in.

use typescript::{Language, Role, strip};

use crate::quickjs;

/// The place of `nowhere` in a program, as the engine complains about it and as it is in the source.
fn check(source: &str) {
    let script = strip(source, Language::TypeScript, Role::Entry).unwrap();
    let error = quickjs::run(&script).unwrap_err();
    let place = error.split("(program:").nth(1).and_then(|rest| rest.split(')').next());
    let (line, column) = place.and_then(|place| place.split_once(':')).expect(&error);
    let place = script.places.original(line.parse().unwrap(), column.parse().unwrap());
    let before = &source[..source.find("nowhere").unwrap()];
    let line = before.split('\n').count();
    let column = before.split('\n').next_back().unwrap().chars().count() + 1;
    let expected = (u32::try_from(line).unwrap(), u32::try_from(column).unwrap());
    assert_eq!(place, expected, "{error}\n{}", script.code);
}

#[test]
fn errors_lead_back() {
    check("nowhere");
    check("const a: number = nowhere;");
    check("const a: Map<string, number> = null!; /* ü 😀 */ nowhere as number");
    check(
        "type A = {\n  b: string\n}\nfunction f(x: A): number {\n  return x.b, nowhere\n}\nf({} as A)",
    );
    check("enum E { A, B = 2, \"c-d\", E = nowhere }");
    check("enum E {\n  A,\n  B = 'b', C = nowhere,\n}");
    check(
        "class A { x: number = 1; constructor(private y: number, public z = nowhere) {} } new A(1)",
    );
    check("class A { constructor(private y: number) { nowhere } } new A(1)");
    check("const f = () => <any>{ a: nowhere }; f()");
    check("export const ok = 1; [1, (<T>(x: T): T => x)<number>(2), nowhere as any]");
    check("import { twice, Box } from \"library\"; const b: Box = twice(nowhere)");
    check("async function main(): Promise<void> { await nowhere }");
}

#[test]
fn what_was_put_in_is_where_it_was_put_in() {
    let source = "enum E { A }\nE.A";
    let script = strip(source, Language::TypeScript, Role::Entry).unwrap();
    insta::assert_snapshot!(script.code, @r#"
    var  E; (function (E) { E[E["A"] = 0] = "A"; })(E || (E = {}));
    export const $$value$$ = (E.A);
    "#);
    let original = |column| script.places.original(1, column);
    // The name of the enum, the brackets after it, and the member.
    assert_eq!(
        [original(6), original(7), original(20), original(23)].map(|(_, column)| column),
        [6, 7, 7, 8]
    );
    assert_eq!(original(30), (1, 10));
    assert_eq!(original(1_000), (1, 949));
    assert_eq!(script.places.original(2, 27), (2, 1));
    assert_eq!(script.places.original(9, 9), (2, 4));
}
