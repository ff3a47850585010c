//! Runs the official conformance suite against a server, and reads what it found. Also used by the tests of the
//! product, which are in another crate.

use std::collections::BTreeMap;
use std::ffi::OsString;
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

/// Runs everything that a revision asks for. What is baselined stands in `expected_failures`.
pub(crate) fn run(url: &str, revision: &str, expected_failures: Option<&Path>) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let (said, results) = (folder.path().join("said"), folder.path().join("results"));
    let mut suite = Command::new(node());
    suite.arg(installed("conformance").join("node_modules/.bin/conformance"));
    suite.args(["server", "--url", url, "--requirements", revision, "--output-dir"]).arg(&results);
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
    Outcome { status: status.code(), text, scenarios: read(&results) }
}

impl Outcome {
    /// The part of what it said that sums it up.
    pub(crate) fn summary(&self) -> &str {
        self.text.find("=== SUMMARY ===").map_or(&self.text, |at| &self.text[at..])
    }
}

fn read(results: &Path) -> BTreeMap<String, Vec<Check>> {
    let mut scenarios = BTreeMap::new();
    for entry in fs::read_dir(results).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let name = name.strip_prefix("server-").unwrap();
        let name = name[..name.len() - STAMP_LENGTH].to_owned();
        let checks = fs::read(folder.join("checks.json")).unwrap();
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
