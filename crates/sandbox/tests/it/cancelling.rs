//! Programs that are cancelled, and callers that go away, at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandbox::host::{Boxed, Call, Host, Module};
use sandbox::{Kind, Limits, Mode, Program, Sandbox, Thrown};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::world::{BOTH, BOUND, Tools, only, sandbox, until_idle};

/// What a program may be doing when it is cancelled.
const BUSY: [&str; 5] = [
    "for (;;);",
    "import { never } from 'mcp-clients/tools'; await never({});",
    "await new Promise((resolve) => setTimeout(resolve, 60_000));",
    "const list = []; for (;;) { list.push({}); if (list.length > 1e5) list.length = 0; }",
    "import { slow } from 'mcp-clients/tools'; for (;;) await slow({ ms: 1 });",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_when_it_is_cancelled() {
    // A sandbox has one thread. Those that have processes wait for their turn as well.
    for (mode, sandboxes) in [(Mode::Thread, 30), (Mode::Process, 1)] {
        let sandboxes: Vec<Sandbox> = (0..sandboxes).map(|_| sandbox(mode)).collect();
        let mut runs = tokio::task::JoinSet::new();
        for (at, program) in BUSY.iter().cycle().take(30).enumerate() {
            let sandbox = sandboxes[at % sandboxes.len()].clone();
            let cancelled = CancellationToken::new();
            runs.spawn(async move {
                // From before it begins to when it has long begun.
                let after = Duration::from_millis(at as u64 * 3);
                let limits = Limits { calls: 100_000, ..patient() };
                let running =
                    sandbox.run(Program::of(*program), limits, Arc::new(Tools), cancelled.clone());
                let cancelling = async {
                    tokio::time::sleep(after).await;
                    cancelled.cancel();
                };
                tokio::join!(running, cancelling).0
            });
        }
        for outcome in runs.join_all().await {
            assert_eq!(outcome.error.unwrap().kind, Kind::Cancelled);
        }
        for sandbox in &sandboxes {
            until_nobody_is_left(sandbox).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_when_its_caller_goes_away() {
    for mode in BOTH {
        for (at, program) in BUSY.iter().cycle().take(15).enumerate() {
            let sandbox = sandbox(mode);
            let running = sandbox.run(
                Program::of(*program),
                patient(),
                Arc::new(Tools),
                CancellationToken::new(),
            );
            let within = Duration::from_millis(at as u64 * 3);
            assert!(tokio::time::timeout(within, running).await.is_err(), "it goes on");
            until_nobody_is_left(&sandbox).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_hear_that_they_are_cancelled() {
    for mode in BOTH {
        let host = Arc::new(Listening::default());
        let program = "
            import { wait } from 'mcp-clients/any';
            wait({}); wait({}); wait({});
            await new Promise((resolve) => setTimeout(resolve, 50));
            throw new Error('enough');
        ";
        let limits = Limits { calls_at_once: 2, ..patient() };
        let (own, token) = (Arc::<Listening>::clone(&host), CancellationToken::new());
        let outcome = sandbox(mode).run(Program::of(program), limits, own, token).await;
        assert_eq!(outcome.error.unwrap().message, "enough");
        assert_eq!(outcome.calls.len(), 2, "only those that were made");
        let began = Instant::now();
        // The third one waited for its turn, and is never made.
        while host.heard.load(Ordering::Relaxed) < 2 {
            assert!(began.elapsed() < BOUND, "calls go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(host.begun.load(Ordering::Relaxed), 2, "so many at once");
    }
}

/// A host whose calls end when they are cancelled.
#[derive(Default)]
struct Listening {
    begun: AtomicUsize,
    heard: AtomicUsize,
}

impl Host for Listening {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("wait")
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::Relaxed);
            call.cancelled.cancelled().await;
            self.heard.fetch_add(1, Ordering::Relaxed);
            Err(Thrown { kind: Kind::Cancelled, message: "cancelled".to_owned(), data: None })
        })
    }
}

/// Calls wait for each other, but not for a program that is busy.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_while_the_program_is_busy() {
    for mode in BOTH {
        let cancelled = CancellationToken::new();
        let host = Arc::new(Cancelling(cancelled.clone()));
        let program = "import { cancel } from 'mcp-clients/any'; cancel({}); for (;;);";
        let began = Instant::now();
        let outcome = sandbox(mode).run(Program::of(program), patient(), host, cancelled).await;
        assert_eq!(outcome.error.unwrap().kind, Kind::Cancelled);
        assert_eq!(outcome.calls.len(), 1);
        // At the end of its time it would be made as well.
        assert!(began.elapsed() < BOUND / 2, "the call waited for the program");
    }
}

/// A host that cancels the program when it is called.
struct Cancelling(CancellationToken);

impl Host for Cancelling {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("cancel")
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        self.0.cancel();
        Box::pin(std::future::ready(Ok(call.arguments)))
    }
}

fn patient() -> Limits {
    Limits { time: BOUND, ..Limits::default() }
}

/// And plain programs run.
async fn until_nobody_is_left(sandbox: &Sandbox) {
    until_idle(sandbox).await;
    let token = CancellationToken::new();
    let outcome = sandbox.run(Program::of("6 * 7"), patient(), Arc::new(Tools), token).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
}
