//! What holds for every input, tried on many. A run draws the same inputs each time, so that a test
//! fails for a change and not for bad luck; with `WORKFLOWLOOKUP_LONG` set it draws more, and others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::test_runner::{Config, RngSeed};

mod bytes;
mod conditions;
mod generate;
mod patterns;
mod round_trip;
mod schema;

#[allow(clippy::disallowed_methods, reason = "a test is told by the environment how long to run")]
fn config(cases: u32) -> Config {
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    let (cases, rng_seed) = if is_long {
        (cases.saturating_mul(50), RngSeed::Random)
    } else {
        (cases, RngSeed::Fixed(2026))
    };
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}
