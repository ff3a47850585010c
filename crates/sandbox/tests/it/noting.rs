//! Notes about calls, among the lines of a program.

use std::sync::Arc;

use sandbox::host::{Boxed, Call, Host, Module};
use sandbox::{Limits, Program, Thrown};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::world::{BOTH, only, sandbox};

/// A host that has something to say about each answer: what it was called with.
struct Noting;

impl Host for Noting {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("call")
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        call.notes.add(call.arguments.get().to_owned());
        Box::pin(std::future::ready(Ok(call.arguments)))
    }
}

/// They take none of the lines that the program has, each is there once, and there is an end to them.
#[tokio::test(flavor = "multi_thread")]
async fn notes_stand_beside_the_lines_of_the_program() {
    for mode in BOTH {
        let code = "
            import { call } from 'mcp-clients/any';
            await call({}); await call({});
            console.log(1); console.log(2); console.log(3);
            for (let n = 0; n < 30; n++) await call({ n });
        ";
        let limits = Limits { lines: 3, ..Limits::default() };
        let (host, token) = (Arc::new(Noting), CancellationToken::new());
        let outcome = sandbox(mode).run(Program::of(code), limits, host, token).await;
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!(outcome.logs[..5], ["note: {}", "1", "2", "3", "note: {\"n\":0}"]);
        assert_eq!(outcome.logs.len(), 3 + 20);
        assert_eq!(outcome.calls.len(), 32);
    }
}

/// A host that says the same thing very often before it says another.
struct Chatty;

impl Host for Chatty {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("call")
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        for _ in 0..10_000 {
            call.notes.add("again".to_owned());
        }
        call.notes.add("something else".to_owned());
        Box::pin(std::future::ready(Ok(call.arguments)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_beyond_queue_are_dropped_and_outcome_arrives() {
    for mode in BOTH {
        let code = "import { call } from 'mcp-clients/any'; await call({}); 'done'";
        let (host, token) = (Arc::new(Chatty), CancellationToken::new());
        let outcome = sandbox(mode).run(Program::of(code), Limits::default(), host, token).await;
        assert_eq!(outcome.result.unwrap().get(), "\"done\"");
        assert_eq!(outcome.logs, ["note: again"]);
    }
}
