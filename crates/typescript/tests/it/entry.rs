//! Who calls `main`, and what a file is that is not run but imported, or that is JavaScript already.

use typescript::{Language, Role, Script, strip};

#[test]
fn a_program_that_calls_its_main() {
    for rest in [
        "main()",
        "await main()",
        "void main();",
        "main!()",
        "(main as any)()",
        "main().then(console.log).catch(console.error)",
        "const x: number = await main()",
        "export const xs = [1, ...[await main()]]",
        "export default await main()",
        "if (true) main()",
        "try { await main() } catch {}",
        "for (const x of [1]) await main()",
        "main() || 1",
        "`${main()}`",
        "(async () => { await main() })()",
        "(function () { main() })()",
        "await (async function run() { return main() })()",
        "start(); function start() { return later() } const later = async () => { await main() }",
        "Promise.resolve().then(main)",
        "Promise.resolve().then(() => main())",
        "new Promise((resolve) => main().then(resolve))",
        "class A { static x = main() }",
        "class A { static { main() } }",
        "function f(x = main()) {} f()",
    ] {
        assert!(with_main(rest).calls_main, "{rest}");
    }
}

#[test]
fn a_program_that_leaves_it_to_others() {
    for rest in [
        "",
        "export default main",
        "export { main as run }",
        "function other() { main() }",
        "const later = () => main()",
        "class A { x = main(); m() { main() } }",
        "if (import.meta.main) { await main() }",
        "import.meta.main && main()",
        "const o = { main() {} }; o.main()",
        "type A = ReturnType<typeof main>",
    ] {
        assert!(!with_main(rest).calls_main, "{rest}");
    }
}

#[test]
fn a_main_that_is_none() {
    for source in [
        "main()",
        "declare function main(): void",
        "type main = string",
        "interface main {}",
        "import type { main } from \"a\"",
        "import { type main } from \"a\"",
        "export type { main } from \"a\"",
        "{ const main = 1 }",
        "class A { main() {} }",
        "const { main: other } = { main: 1 }",
    ] {
        let script = strip(source, Language::TypeScript, Role::Entry).unwrap();
        assert!(!script.has_main && !script.calls_main, "{source}");
    }
}

#[test]
fn a_main_in_other_forms() {
    for source in [
        "export const main = () => 1",
        "let main; main = () => 1",
        "const { main } = { main: 1 }",
        "const [{ main = 1 }] = [{}]",
        "import main from \"a\"",
        "export { main } from \"a\"",
        "export { x as main } from \"a\"",
        "export * as main from \"a\"",
        "export default function main() {}",
        "function main(): void; function main() {}",
    ] {
        let script = strip(source, Language::TypeScript, Role::Entry).unwrap();
        assert!(script.has_main, "{source}");
        let again = strip(&script.code, Language::JavaScript, Role::Module);
        assert!(again.is_ok(), "{source}\n{again:?}");
    }
}

#[test]
fn a_file_that_is_imported_offers_what_it_says() {
    let source = "function main() {}\nmain()\nexport default 1";
    let script = strip(source, Language::TypeScript, Role::Module).unwrap();
    assert_eq!(script.code, source);
    assert!(script.has_default && !script.has_main && !script.calls_main && !script.has_value);
}

#[test]
fn javascript_stays_as_it_is() {
    let source = "#!/usr/bin/env node\nimport a, { b } from \"a\";\nimport {} from \"c\";\nexport * from 'd';\nlet as = a <b> (c), type = 1\n";
    let script = strip(source, Language::JavaScript, Role::Module).unwrap();
    let blank = format!("{}\n", " ".repeat("#!/usr/bin/env node".len()));
    assert_eq!(script.code, source.replace("#!/usr/bin/env node\n", &blank));
    let imports: Vec<_> = script.imports.iter().map(|import| import.specifier.as_str()).collect();
    assert_eq!(imports, ["a", "c", "d"]);
}

fn with_main(rest: &str) -> Script {
    let source = format!("async function main(): Promise<any> {{}}\n{rest}");
    let script = strip(&source, Language::TypeScript, Role::Entry).unwrap();
    assert!(script.has_main, "{rest}");
    script
}
