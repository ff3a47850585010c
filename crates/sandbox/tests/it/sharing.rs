//! Principals share the slots for programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandbox::host::{Boxed, Call, Host, Module};
use sandbox::{Kind, Limits, Mode, Program, Thrown};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::world::{BOUND, only, run, sandbox};

const WAITING_MAX: usize = 30;
/// Of 16 slots, one principal holds at most three quarters.
const SLOTS_OF_ONE: usize = 12;

/// A host whose calls last until their program is cancelled.
#[derive(Default)]
struct Endless(AtomicUsize);

impl Host for Endless {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("wait")
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::SeqCst);
            call.cancelled.cancelled().await;
            Ok(call.arguments)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_programs_of_one_principal_leave_slots_to_others() {
    let sandbox = sandbox(Mode::Process);
    let [ann, bob] = ["ann", "bob"].map(|name| sandbox.with_owner(Some(name.into()), WAITING_MAX));
    let (host, cancelled) = (Arc::new(Endless::default()), CancellationToken::new());
    let patient = Limits { time: BOUND, ..Limits::default() };
    let start = || {
        let program = Program::of("import { wait } from 'mcp-clients/any'; await wait({});");
        let (ann, host, cancelled) = (ann.clone(), Arc::clone(&host), cancelled.clone());
        tokio::spawn(async move { ann.run(program, patient, host, cancelled).await })
    };
    let all: Vec<_> = (0..SLOTS_OF_ONE + WAITING_MAX).map(|_| start()).collect();
    let began = Instant::now();
    while host.0.load(Ordering::SeqCst) < SLOTS_OF_ONE {
        assert!(began.elapsed() < BOUND, "her programs do not run");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let outcome = run(&bob, Program::of("6 * 7"), patient).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
    assert_eq!(host.0.load(Ordering::SeqCst), SLOTS_OF_ONE, "the others of hers wait");
    let refused = start().await.unwrap();
    assert_eq!(refused.error.unwrap().kind, Kind::Busy, "her queue is full");
    cancelled.cancel();
    for program in all {
        assert_eq!(program.await.unwrap().error.unwrap().kind, Kind::Cancelled);
    }
}
