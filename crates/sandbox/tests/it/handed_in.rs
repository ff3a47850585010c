//! Programs as they must not be handed in.

use sandbox::{File, Limits, Mode, Program};

use crate::world::{run, sandbox};

fn file(name: &str, text: &str) -> File {
    File { name: name.to_owned(), text: text.to_owned(), is_plain: false }
}

async fn said(files: Vec<File>, entrypoint: &str) -> String {
    let program = Program { files, entrypoint: entrypoint.to_owned(), input: None };
    let outcome = run(&sandbox(Mode::Thread), program, Limits::default()).await;
    let error = outcome.error.unwrap();
    format!("{}: {}", error.kind.name(), error.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_run_is_said_at_once() {
    let long = "x".repeat(201);
    let mut told = vec![
        said(vec![], "a.ts").await,
        said(vec![file("a.ts", "1")], "b.ts").await,
        said(vec![file("a.ts", "1"), file("a.ts", "2")], "a.ts").await,
        said(vec![file(&long, "1")], &long).await.replace(&long, "…"),
    ];
    for name in ["", ".", "..", "/a", "a/", "a//b", "a/../b", "a b", "a\nb", "a\0b", "ä.ts", "a\\b"]
    {
        told.push(said(vec![file(name, "1")], name).await);
    }
    let many = (0..51).map(|at| file(&format!("{at}.ts"), "1")).collect();
    told.push(said(many, "0.ts").await);
    let large = (0..6).map(|at| file(&format!("{at}.ts"), &"/".repeat(200_000))).collect();
    told.push(said(large, "0.ts").await);
    told.push(said(vec![file("a.ts", &"/".repeat(300_000))], "a.ts").await);
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_have_limits() {
    let nothing = Limits {
        memory: 0,
        time: std::time::Duration::ZERO,
        stack: 0,
        calls: 0,
        calls_at_once: 0,
        lines: 0,
        result: 0,
    };
    let outcome = run(&sandbox(Mode::Thread), Program::of("1"), nothing).await;
    assert!(outcome.error.is_some());
    let all = Limits {
        memory: usize::MAX,
        time: std::time::Duration::MAX,
        stack: usize::MAX,
        calls: usize::MAX,
        calls_at_once: usize::MAX >> 8,
        lines: usize::MAX,
        result: usize::MAX,
    };
    let deep = "export function main(): number { return main() + 1; }";
    let outcome = run(&sandbox(Mode::Thread), Program::of(deep), all).await;
    assert_eq!(outcome.error.unwrap().kind, sandbox::Kind::Stack);
}
