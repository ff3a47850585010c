//! Programs that are nested as deep as they can be, on exactly the stack that they are said to need.

use std::thread;

use typescript::{Language, Role, SOURCE_BYTES_MAX, TOKENS_MAX, stack_bytes, strip};

/// What stands before everything, what opens again and again, what is innermost, and what closes.
const SHAPES: &[[&str; 4]] = &[
    // Expressions.
    ["", "(", "a", ")"],
    ["", "[", "a", "]"],
    ["", "[[],", "a", "]"],
    ["", "[...", "a", "]"],
    ["x=", "{a:", "a", "}"],
    ["x=", "{[", "a", "]:a}"],
    ["x=", "{...", "a", "}"],
    ["x=", "{a(){return", "{}", "}}"],
    ["x=", "{get a(){return", "{}", "}}"],
    ["", "!", "a", ""],
    ["", "- ", "a", ""],
    ["", "void ", "a", ""],
    ["", "typeof ", "a", ""],
    ["", "await ", "a", ""],
    ["", "new ", "a", ""],
    ["", "new a(", "a", ")"],
    ["", "++", "a", ""],
    ["", "a=>", "a", ""],
    ["", "(a)=>", "a", ""],
    ["", "(a=>", "a", ")"],
    ["", "((a)=>", "a", ")"],
    ["", "async a=>", "a", ""],
    ["", "async(a)=>", "a", ""],
    ["", "<T>(a)=>", "a", ""],
    ["", "async<T>(a)=>", "a", ""],
    ["", "(a):T=>", "a", ""],
    ["", "()=>{", "a", "}"],
    ["", "(a=", "a", ")=>a"],
    ["", "([a=", "a", "])=>a"],
    ["", "({a=", "a", "})=>a"],
    ["", "a?b:", "a", ""],
    ["", "a?", "a", ":b"],
    ["", "a?(b):", "a", ""],
    ["", "a?(b)=>", "a", ":b"],
    ["", "a?(", "a", "):b"],
    ["", "a+", "a", ""],
    ["", "a**", "a", ""],
    ["", "a=", "a", ""],
    ["", "a??", "a", ""],
    ["", "a&&", "a", ""],
    ["", "a<", "a", ""],
    ["", "a,", "a", ""],
    ["", "a[", "a", "]"],
    ["", "a(", "a", ")"],
    ["", "a?.(", "a", ")"],
    ["", "a?.[", "a", "]"],
    ["a", "", "", ".a"],
    ["a", "", "", "?.a"],
    ["a", "", "", "()"],
    ["a", "", "", "[a]"],
    ["a", "", "", "!"],
    ["a", "", "", "``"],
    ["a", "", "", " as a"],
    ["a", "", "", " satisfies a"],
    ["a", "", "", "<a>()"],
    ["", "<a>", "a", ""],
    ["", "`${", "a", "}`"],
    ["", "a`${", "a", "}`"],
    ["", "import(", "a", ")"],
    ["", "a<a>(", "a", ")"],
    ["", "f<", "a", ">()"],
    ["", "(function(){", "a", "})"],
    ["", "(async function*(){", "a", "})"],
    ["", "a in ", "a", ""],
    ["class A{#a;b=", "#a in ", "a", "}"],
    ["x=", "class extends ", "a", "{}"],
    ["x=", "class{a=", "a", "}"],
    ["x=", "class{static{x=", "a", "}}"],
    ["x=", "class{[", "a", "]=a}"],
    ["x=", "class{a(){return ", "a", "}}"],
    ["x=", "class{constructor(public a=", "a", "){}}"],
    // Patterns.
    ["let ", "[", "a", "]"],
    ["let ", "{a:", "a", "}"],
    ["let ", "[a=", "a", "]"],
    ["[", "[", "a", "]"],
    ["(", "{a:", "a", "}"],
    // Statements.
    ["", "{", "a", "}"],
    ["", "if(a)", "a", ""],
    ["", "if(a){", "a", "}"],
    ["", "if(a);else ", "a", ""],
    ["", "for(;;)", "a", ""],
    ["", "for(a of a)", "a", ""],
    ["", "while(a)", "a", ""],
    ["", "do ", "a", ";while(a)"],
    ["", "a:", "a", ""],
    ["", "try{", "a", "}finally{}"],
    ["", "try{}catch(a){", "a", "}"],
    ["", "switch(a){case a:", "a", "}"],
    ["", "function a(){", "a", "}"],
    ["", "function a(a=", "a", "){}"],
    ["", "a;", "a", ""],
    ["", "enum a{a=", "a", "}"],
    ["", "namespace a{", "type a=a", "}"],
    ["namespace a", "", "", ".a"],
    ["", "declare namespace a{", "", "}"],
    ["", "@", "a", " class{}"],
    // Types.
    ["type a=", "a<", "a", ">"],
    ["type a=", "(", "a", ")"],
    ["type a=", "[", "a", "]"],
    ["type a=", "[a:", "a", "]"],
    ["type a=", "[...", "a", "]"],
    ["type a=", "{a:", "a", "}"],
    ["type a=", "{a():", "a", "}"],
    ["type a=", "{(a:", "a", "):a}"],
    ["type a=", "{[a in ", "a", "]:a}"],
    ["type a=", "{[a:", "string", "]:a}"],
    ["type a=", "keyof ", "a", ""],
    ["type a=", "readonly ", "a", "[]"],
    ["type a=", "()=>", "a", ""],
    ["type a=", "(a:", "a", ")=>a"],
    ["type a=", "new()=>", "a", ""],
    ["type a=", "<T>()=>", "a", ""],
    ["type a=", "<T extends ", "a", ">()=>a"],
    ["type a=", "a extends a?a:", "a", ""],
    ["type a=", "a extends a?", "a", ":a"],
    ["type a=", "a extends ", "a", "?a:a"],
    ["type a=", "a|", "a", ""],
    ["type a=", "a&", "a", ""],
    ["type a=", "|", "a", ""],
    ["type a=", "`${", "a", "}`"],
    ["type a=", "a[", "a", "]"],
    ["type a=a", "", "", "[]"],
    ["type a=a", "", "", ".a"],
    ["type a=", "import(\"\",", "{}", ")"],
    ["type a=", "typeof a<", "a", ">"],
    ["let a:", "(a:", "a", ")=>a"],
    ["let a:", "{a:", "a", "}"],
    ["", "(a:", "a", ")=>a"],
    ["function f(a:", "{a:", "a", "}"],
    ["interface a extends ", "a<", "a", ">"],
    ["class a implements ", "a<", "a", ">"],
    ["class a<T extends ", "a<", "a", ">"],
    // What is not offered is parsed as well.
    ["", "<a>", "a", "</a>"],
    ["", "<a b=", "a", "></a>"],
    ["", "<a>{", "a", "}</a>"],
];

#[test]
fn the_deepest_programs_fit_their_stacks() {
    for shape in SHAPES {
        for source in [largest(shape, Closed::No), largest(shape, Closed::Yes)] {
            let stack = stack_bytes(&source).unwrap();
            // A stack that is too small ends the process.
            let strip = move || strip(&source, Language::TypeScript, Role::Entry).is_ok();
            thread::Builder::new().stack_size(stack).spawn(strip).unwrap().join().unwrap();
        }
    }
}

#[test]
fn what_is_larger_is_refused() {
    let message = |source: &str| stack_bytes(source).unwrap_err().to_string();
    insta::assert_snapshot!(message(&" ".repeat(SOURCE_BYTES_MAX + 1)), @"
    line 1, column 1: the program is larger than 256 KiB
    hand data in by `input`, or split the work into several programs
    ");
    insta::assert_snapshot!(message(&"a ".repeat(TOKENS_MAX + 1)), @"
    line 1, column 1: the program has more than 60000 words and signs
    hand data in by `input`, or split the work into several programs
    ");
    insta::assert_snapshot!(message(&"(a=".repeat(10_000)), @"
    line 1, column 1: the program is nested too deep for its size
    hand data in by `input`, or split the work into several programs
    ");
    assert_eq!(message(&"a<".repeat(10_000)), message(&"(a=".repeat(10_000)));
    assert!(stack_bytes(&"a ".repeat(TOKENS_MAX)).is_ok());
    assert!(stack_bytes(&"if (a < b) { c = d as E<F>; }\n".repeat(3_000)).is_ok());
    let too_large = strip(&"a ".repeat(TOKENS_MAX + 1), Language::JavaScript, Role::Module);
    assert_eq!(too_large.unwrap_err().to_string(), message(&"a ".repeat(TOKENS_MAX + 1)));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    No,
    Yes,
}

/// As often as is allowed, nearly.
fn largest(shape: &[&str; 4], closed: Closed) -> String {
    let [before, open, middle, close] = shape;
    let close = if closed == Closed::Yes || open.is_empty() { close } else { "" };
    let write =
        |count: usize| format!("{before}{}{middle}{}", open.repeat(count), close.repeat(count));
    let fits = |count: usize| stack_bytes(&write(count)).is_ok();
    // Where it is not nested too deep, the words and signs of each level say how many there can be.
    let bytes = |count: usize| stack_bytes(&write(count)).unwrap();
    let per_token = stack_bytes("a").unwrap() - stack_bytes("").unwrap();
    let per_level = (bytes(20) - bytes(10)) / 10 / per_token;
    let most = TOKENS_MAX / per_level;
    if fits(most - 12) {
        return write(most - 12);
    }
    let (mut low, mut high) = (1, 64);
    while fits(high) {
        (low, high) = (high, 2 * high);
    }
    // Within a fiftieth of it.
    while low + 1 + low / 50 < high {
        let between = usize::midpoint(low, high);
        *if fits(between) { &mut low } else { &mut high } = between;
    }
    write(low)
}
