//! Runs the official conformance suite against a server or a client, and reads what it found. Also used by the tests of the
//! orchestrator and of the product, which are in other crates.

#![allow(dead_code, reason = "not everybody needs all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Much longer than all scenarios of a revision take.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the suite writes behind a scenario's name: `-2026-07-28T12-00-00-000Z`.
const STAMP_LENGTH: usize = 25;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    /// Everything that it said.
    pub(crate) text: String,
    /// The checks of each scenario.
    pub(crate) scenarios: BTreeMap<String, Vec<Check>>,
}

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) has_failed: bool,
    pub(crate) message: String,
}

/// Who is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tested<'t> {
    Server {
        url: &'t str,
    },
    /// A program that is started with the address of a server.
    Client {
        program: &'t Path,
    },
}

impl Tested<'_> {
    /// What the suite calls it, and so do the lists of its scenarios.
    pub(crate) fn side(self) -> &'static str {
        match self {
            Self::Server { .. } => "server",
            Self::Client { .. } => "client",
        }
    }
}

/// Runs everything that a revision asks for. What is baselined stands in `expected_failures`.
pub(crate) fn run(tested: Tested<'_>, revision: &str, expected_failures: Option<&Path>) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let (said, results) = (folder.path().join("said"), folder.path().join("results"));
    let mut suite = Command::new(node());
    suite.arg(installed("conformance").join("node_modules/.bin/conformance"));
    match tested {
        Tested::Server { url } => suite.args(["server", "--url", url]),
        Tested::Client { program } => suite.args(["client", "--command"]).arg(program),
    };
    suite.args(["--requirements", revision, "--output-dir"]).arg(&results);
    if let Some(file) = expected_failures {
        suite.arg("--expected-failures").arg(file);
    }
    // It sees nothing of whoever runs the tests, and writes nothing elsewhere.
    suite.env_clear().env("NO_COLOR", "1").env("HOME", folder.path()).current_dir(folder.path());
    let output = File::create(&said).unwrap();
    suite.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut child = suite.spawn().unwrap_or_else(|error| panic!("{suite:?}: {error}"));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the suite does not end:\n{}", fs::read_to_string(&said).unwrap());
            }
        }
    };
    let text = fs::read_to_string(&said).unwrap();
    assert!(results.is_dir(), "the suite has not begun:\n{text}");
    Outcome { status: status.code(), text, scenarios: read(&results, tested.side()) }
}

impl Outcome {
    /// The part of what it said that sums it up.
    pub(crate) fn summary(&self) -> &str {
        let headings = ["=== SUMMARY ===", "=== SUITE SUMMARY ==="];
        let at = headings.iter().find_map(|heading| self.text.find(heading));
        at.map_or(&self.text, |at| &self.text[at..])
    }

    /// What is not as it should be: every scored scenario passes, and of the others those that are not in the baseline.
    pub(crate) fn wrong(&self, tested: Tested<'_>, revision: &str, baseline: &Path) -> String {
        let package =
            installed("conformance").join("node_modules/@modelcontextprotocol/conformance");
        let requirements = package.join(format!("requirements/{revision}.yaml"));
        let scored = listed(&fs::read_to_string(requirements).unwrap(), tested.side());
        let baseline = listed(&fs::read_to_string(baseline).unwrap(), tested.side());
        let run = counts(self.summary());
        assert!(run.keys().collect::<Vec<_>>() == self.scenarios.keys().collect::<Vec<_>>());
        let mut wrong = String::new();
        assert!(!scored.is_empty());
        for scenario in scored.iter().filter(|scenario| !run.contains_key(*scenario)) {
            writeln!(wrong, "{scenario} is scored, and was not run").unwrap();
        }
        for (scenario, count) in &run {
            let is_scored = scored.contains(scenario);
            let is_excused = !is_scored && baseline.contains(scenario);
            // Here a warning counts too, but only in what is scored.
            let has_failed = count.failed > 0 || is_scored && count.warned > 0;
            match (has_failed, is_excused) {
                (false, false) | (true, true) => {}
                (false, true) => {
                    writeln!(wrong, "{scenario} passes by now, and is in the baseline").unwrap();
                }
                (true, false) => {
                    writeln!(wrong, "{scenario}: {count:?}").unwrap();
                    for check in self.scenarios[scenario].iter().filter(|check| check.has_failed) {
                        writeln!(wrong, "{scenario}: {}: {}", check.id, check.message).unwrap();
                    }
                }
            }
        }
        wrong
    }
}

/// How many checks of a scenario came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
    warned: u32,
}

/// Those of each scenario: `✓ ping: 2 passed, 0 failed`.
fn counts(summary: &str) -> BTreeMap<String, Count> {
    let lines = summary.lines().filter_map(|line| {
        let (name, counts) = line.strip_prefix(['✓', '✗'])?.trim().split_once(": ")?;
        let (passed, counts) = counts.split_once(" passed, ")?;
        let (failed, counts) = counts.split_once(" failed")?;
        let warned = counts.strip_prefix(", ").and_then(|counts| counts.strip_suffix(" warnings"));
        let (passed, failed) = (passed.parse().ok()?, failed.parse().ok()?);
        Some((
            name.to_owned(),
            Count { passed, failed, warned: warned.unwrap_or("0").parse().ok()? },
        ))
    });
    lines.collect()
}

/// A list of a file in YAML, as the suite's own and its baselines are written.
fn listed(yaml: &str, name: &str) -> BTreeSet<String> {
    let lines = yaml.lines().skip_while(|line| !line.starts_with(&format!("{name}:"))).skip(1);
    let own = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let items = own.filter_map(|line| line.trim().strip_prefix("- "));
    items.map(|item| item.split(" #").next().unwrap_or(item).trim().to_owned()).collect()
}

/// What a server is asked is in folders of a kind, and what a client is asked may be in folders within folders.
fn read(results: &Path, side: &str) -> BTreeMap<String, Vec<Check>> {
    let mut scenarios = BTreeMap::new();
    for entry in fs::read_dir(results).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let Ok(checks) = fs::read(folder.join("checks.json")) else {
            let within = read(&folder, side).into_iter();
            scenarios.extend(within.map(|(inner, checks)| (format!("{name}/{inner}"), checks)));
            continue;
        };
        let name = if side == "server" { name.strip_prefix("server-").unwrap() } else { name };
        let name = name[..name.len() - STAMP_LENGTH].to_owned();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        let checks = checks.iter().map(|check| Check {
            id: check["id"].as_str().unwrap().to_owned(),
            has_failed: check["status"] == "FAILURE",
            message: check["errorMessage"].as_str().unwrap_or_default().to_owned(),
        });
        scenarios.insert(name, checks.collect());
    }
    scenarios
}

#[test]
fn what_counts_is_read_from_the_summary() {
    let text = "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ tasks-lifecycle: 1 passed, 8 failed\n\
                ✗ sse-retry: 1 passed, 0 failed, 2 warnings\n\n\
                Total: 3 passed, 8 failed\n\nUnexpected failures (not in baseline):\n  ✗ tools-list\n";
    let count = |passed, failed, warned| Count { passed, failed, warned };
    let expected = [
        ("ping".to_owned(), count(2, 0, 0)),
        ("sse-retry".to_owned(), count(1, 0, 2)),
        ("tasks-lifecycle".to_owned(), count(1, 8, 0)),
    ];
    assert_eq!(counts(text), expected.into());
}

#[test]
fn what_is_listed_is_read_from_yaml() {
    let text =
        "# a\nclient:\n  - x\nserver:\n  # why\n  - a\n\n  - b:c # why\nnot_scored:\n  - y\n";
    assert_eq!(listed(text, "server"), ["a".to_owned(), "b:c".to_owned()].into());
    assert_eq!(listed(text, "client"), ["x".to_owned()].into());
    assert_eq!(listed("server: []\n", "server"), BTreeSet::new());
}

/// It is there where the system's Node is too old.
fn node() -> PathBuf {
    let own = installed("inspector").join("bin/node");
    if own.exists() {
        return own;
    }
    // What a version manager calls `node` finds it by the user's home, which the suite does not see.
    let node = Command::new("node").args(["-p", "process.execPath"]).output().unwrap();
    PathBuf::from(String::from_utf8(node.stdout).unwrap().trim())
}

/// Where `cargo xtask test` has put something.
pub(crate) fn installed(client: &str) -> PathBuf {
    let clients: Option<OsString> = std::env::var_os("WORKFLOWLOOKUP_CLIENTS");
    let clients = clients.expect("`cargo xtask test` says where the suite is");
    Path::new(&clients).join(client)
}
