//! The official conformance suite against a server that has all that it asks for: the example `conformance`. Every
//! check of every scored scenario passes; what fails besides stands in `conformance/baseline-<revision>.yml`, with the
//! reason, and nothing else does. The suite itself does not hold what is not scored against a baseline, so we do.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

#[path = "conformance/suite.rs"]
mod suite;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

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
    let fixture = Fixture::start();
    let file = format!("tests/conformance/baseline-{revision}.yml");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let outcome = suite::run(&fixture.url, revision, Some(&file));
    println!("{revision}\n{}", outcome.summary());
    let requirements = format!("requirements/{revision}.yaml");
    let package =
        suite::installed("conformance").join("node_modules/@modelcontextprotocol/conformance");
    let scored = listed(&fs::read_to_string(package.join(requirements)).unwrap());
    let baseline = listed(&fs::read_to_string(&file).unwrap());
    let run = counts(outcome.summary());
    assert!(run.keys().collect::<Vec<_>>() == outcome.scenarios.keys().collect::<Vec<_>>());

    let mut wrong = String::new();
    for scenario in scored.iter().filter(|scenario| !run.contains_key(*scenario)) {
        writeln!(wrong, "{scenario} is scored, and was not run").unwrap();
    }
    for (scenario, (_, failed)) in &run {
        let is_excused = !scored.contains(scenario) && baseline.contains(scenario);
        match (failed, is_excused) {
            (0, false) | (1.., true) => {}
            (0, true) => {
                writeln!(wrong, "{scenario} passes by now, and is in the baseline").unwrap()
            }
            (1.., false) => {
                for check in outcome.scenarios[scenario].iter().filter(|check| check.has_failed) {
                    writeln!(wrong, "{scenario}: {}: {}", check.id, check.message).unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // Here a warning counts too, but only in what is scored.
    assert_eq!(outcome.status, Some(0), "{}", outcome.summary());
}

/// How many checks of each scenario have passed and failed: `✓ ping: 2 passed, 0 failed`.
fn counts(summary: &str) -> BTreeMap<String, (u32, u32)> {
    let lines = summary.lines().filter_map(|line| {
        let (name, counts) = line.strip_prefix(['✓', '✗'])?.trim().split_once(": ")?;
        let (passed, failed) = counts.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some((name.to_owned(), (passed.parse().ok()?, failed.parse().ok()?)))
    });
    lines.collect()
}

/// The list `server` of a file in YAML, as the suite's own and its baselines are written.
fn listed(yaml: &str) -> BTreeSet<String> {
    let lines = yaml.lines().skip_while(|line| !line.starts_with("server:")).skip(1);
    let own = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let items = own.filter_map(|line| line.trim().strip_prefix("- "));
    items.map(|item| item.split(" #").next().unwrap_or(item).trim().to_owned()).collect()
}

#[test]
fn what_counts_is_read_from_the_summary() {
    let text = "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ tasks-lifecycle: 1 passed, 8 failed\n\n\
                Total: 3 passed, 8 failed\n\nUnexpected failures (not in baseline):\n  ✗ tools-list\n";
    let expected = [("ping".to_owned(), (2, 0)), ("tasks-lifecycle".to_owned(), (1, 8))];
    assert_eq!(counts(text), expected.into());
}

#[test]
fn what_is_listed_is_read_from_yaml() {
    let text =
        "# a\nclient:\n  - x\nserver:\n  # why\n  - a\n\n  - b:c # why\nnot_scored:\n  - y\n";
    assert_eq!(listed(text), ["a".to_owned(), "b:c".to_owned()].into());
    assert_eq!(listed("server: []\n"), BTreeSet::new());
}

/// The example, as a process that is gone when this is.
struct Fixture {
    child: Child,
    url: String,
}

impl Fixture {
    fn start() -> Self {
        let program = example();
        let mut child = Command::new(&program)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let (sender, lines) = channel();
        // It may say where it is on either, and never has to wait for us.
        let outputs: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        let mut fixture = Self { child, url: String::new() };
        while fixture.url.is_empty() {
            let line = lines.recv_timeout(PATIENCE).expect("the example does not listen");
            if let Some((_, url)) = line.split_once("listening on ") {
                url.trim().clone_into(&mut fixture.url);
            }
        }
        fixture
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    profile.join("examples").join("conformance")
}
