//! Programs that mean harm, or do it. Those in `escapes/` try to get out, those in `limits/` to use more than they may; each says how it
//! ends. All of them run on a thread and in a process of their own, and after each the sandbox runs a plain program. What
//! the escapes come to is a page of the documents.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what happened is worth knowing")]

mod case;
mod page;
mod play;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::collections::BTreeMap;

use sandbox::Kind;

#[test]
fn generated_table_of_escapes() {
    let cases = case::all("escapes");
    let seen = play::all(&cases);
    page::assert_current(&page::write(&cases, &seen));
}

#[test]
fn each_limit_is_reached_in_several_ways() {
    let cases = case::all("limits");
    play::all(&cases);
    let mut ways: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let kind = case.ends[0].split(':').next().unwrap();
        *ways.entry(kind).or_default() += 1;
    }
    let limits = [Kind::Timeout, Kind::Memory, Kind::Stack, Kind::Calls, Kind::Logs, Kind::Result];
    for kind in limits {
        let ways = ways.get(kind.name()).copied().unwrap_or_default();
        assert!(ways >= 3, "`{}` is reached in {ways} ways", kind.name());
    }
}
