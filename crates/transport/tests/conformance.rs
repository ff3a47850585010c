//! The official conformance suite against a server that has all that it asks for: the example `conformance`. Every
//! check of every scored scenario passes; what fails besides stands in `conformance/baseline-<revision>.yml`, with the
//! reason, and nothing else does. The suite itself does not hold what is not scored against a baseline, so we do.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

#[path = "conformance/suite.rs"]
mod suite;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use suite::Tested;

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
    let tested = Tested::Server { url: &fixture.url };
    let outcome = suite::run(tested, revision, Some(&file));
    println!("{revision}\n{}", outcome.summary());
    let wrong = outcome.wrong(tested, revision, &file);
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(outcome.status, Some(0), "{}", outcome.summary());
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
