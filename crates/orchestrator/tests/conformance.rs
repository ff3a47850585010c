//! The official conformance suite against the orchestrator as a client: the example `conformance_client` does what each
//! scenario asks, over the same connections and with the same logins as the product. Every scored scenario passes without a
//! warning; what fails besides stands in `conformance/baseline-<revision>.yml`, with the reason.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../transport/tests/conformance/suite.rs"]
mod suite;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use suite::Tested;

#[test]
#[ignore = "needs the suite that `cargo xtask test` installs"]
fn revision_2025_11_25() {
    passes("2025-11-25");
}

#[test]
#[ignore = "needs the suite that `cargo xtask test` installs"]
fn revision_2026_07_28() {
    passes("2026-07-28");
}

#[expect(clippy::print_stdout, reason = "whoever looks at a run wants to see the figures")]
fn passes(revision: &str) {
    /// The suite runs all scenarios at the same time, which is enough.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let program = example();
    let tested = Tested::Client { program: &program };
    let file = format!("tests/conformance/baseline-{revision}.yml");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let outcome = suite::run(tested, revision, Some(&file));
    println!("{revision}\n{}", outcome.summary());
    let wrong = outcome.wrong(tested, revision, &file);
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(outcome.status, Some(0), "{}", outcome.summary());
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/conformance_client");
    assert!(program.exists(), "`cargo test` builds {}", program.display());
    program
}
