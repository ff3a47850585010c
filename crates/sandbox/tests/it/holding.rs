//! The time of a program stands still while a person is asked, and only while it waits for that.

use std::time::Duration;

use sandbox::{Kind, Limits, Mode, Program};

use crate::world::{BOTH, run, sandbox};

fn limits() -> Limits {
    Limits { time: Duration::from_millis(1_000), ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_person_takes_no_time() {
    let program = "
        import { ask } from 'mcp-clients/tools';
        await ask({ ms: 1_500 });
        await Promise.all([ask({ ms: 600 }), ask({ ms: 1_200 })]);
        'asked';
    ";
    for mode in BOTH {
        let outcome = run(&sandbox(mode), Program::of(program), limits()).await;
        assert_eq!(outcome.result.map(|json| json.get().to_owned()), Some("\"asked\"".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_afterwards() {
    let program = "
        import { ask, slow } from 'mcp-clients/tools';
        await ask({ ms: 600 });
        await slow({ ms: 60_000 });
    ";
    for mode in BOTH {
        let outcome = run(&sandbox(mode), Program::of(program), limits()).await;
        assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
        let ok: Vec<bool> = outcome.calls.iter().map(|call| call.ok).collect();
        assert_eq!(ok, [true, false]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_wait_has_no_more_time() {
    // Somebody is asked for a minute, and it knows: it has waited for something else meanwhile.
    let program = "
        import { ask, slow } from 'mcp-clients/tools';
        ask({ ms: 60_000 });
        await slow({ ms: 50 });
        for (;;);
    ";
    for mode in BOTH {
        let outcome = run(&sandbox(mode), Program::of(program), limits()).await;
        assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_uses_the_processor_instead_is_killed() {
    // The engine does this in one go, and cannot be asked whether it waits. A process has only so much of the processor.
    let program = "
        import { ask, slow } from 'mcp-clients/tools';
        ask({ ms: 600_000 });
        await slow({ ms: 50 });
        Array.prototype.join.call({ length: 2 ** 53 - 1 }, '');
    ";
    let outcome = run(&sandbox(Mode::Process), Program::of(program), limits()).await;
    let error = outcome.error.unwrap();
    assert_eq!(error.kind, Kind::Timeout);
    assert_eq!(error.message, "the program used the processor for longer than it may run at all");
}
