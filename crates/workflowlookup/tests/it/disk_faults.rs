//! A disk that is full or fails, injected by `strace`, and stores that cannot be used at all. An agent reads what is
//! wrong, nothing is lost that was answered, everything else goes on, and it works again when the fault goes.

mod unusable;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Era, LETTER, advance, refused, structured};
use super::transcripts::Process;

const SESSIONS: usize = 3;
/// How many advances are answered in all.
const ADVANCES: usize = 60;
/// A fault is over long before so many tries in a row.
const TRIES_MAX: usize = 60;

#[test]
fn failing_flushes() {
    if let Some(said) = through_faults("fsync,fdatasync", "EIO", "20..24") {
        insta::assert_snapshot!(said, @"The store cannot be used now: disk I/O error. Nothing was lost; the same call may be made again.");
    }
}

#[test]
fn a_full_disk() {
    if let Some(said) = through_faults("write,pwrite64", "ENOSPC", "120..140") {
        insta::assert_snapshot!(said, @"The store cannot be used now: database or disk is full. Nothing was lost; make room, or remove old sessions with `workflowlookup session prune`, and make the same call again.");
    }
}

#[test]
fn failing_writes() {
    if let Some(said) = through_faults("write,pwrite64", "EIO", "121..130") {
        insta::assert_snapshot!(said, @"The store cannot be used now: disk I/O error. Nothing was lost; the same call may be made again.");
    }
}

/// The fault stays as long as the server does. What can be read is read; the next server does what this one could not.
#[test]
fn a_disk_that_stays_full() {
    let Some((place, mut sessions)) = prepare() else { return };
    let mut agent = failing(&place, "write,pwrite64", "ENOSPC", "120+");
    let stuck = (0..ADVANCES).find(|number| {
        let session = &mut sessions[number % SESSIONS];
        session.advance(&mut agent).is_err()
    });
    let stuck = stuck.expect("a fault comes through") % SESSIONS;
    for session in &mut sessions {
        session.advance(&mut agent).unwrap_err();
    }
    let start = agent.call("workflow_start", &json!({"workflowId": "letter"}));
    assert_eq!(refused(&start).1, -32006);
    check(&mut agent, &sessions);
    agent.end();

    let mut agent = Agent::start(&place);
    check(&mut agent, &sessions);
    sessions[stuck].advance(&mut agent).unwrap();
    agent.end();
}

/// Advances sessions of a server whose calls on the log of its store fail for a while; what it says meanwhile.
fn through_faults(calls: &str, error: &str, when: &str) -> Option<String> {
    let (place, mut sessions) = prepare()?;
    let mut agent = failing(&place, calls, error, when);
    let mut said = BTreeSet::new();
    for number in 0..ADVANCES {
        let session = &mut sessions[number % SESSIONS];
        // The same call again, until it works.
        let faults = (0..TRIES_MAX).map_while(|_| session.advance(&mut agent).err());
        said.extend(faults);
        assert_eq!(session.answers.len(), number / SESSIONS + 1, "it does not get over it");
    }
    assert!(!said.is_empty(), "no fault came through");
    check(&mut agent, &sessions);
    agent.end();

    let mut agent = Agent::start(&place);
    check(&mut agent, &sessions);
    for session in &mut sessions {
        session.advance(&mut agent).unwrap();
    }
    agent.end();
    Some(Vec::from_iter(said).join("\n"))
}

/// Sessions that were begun in peace; none where nothing can be injected.
fn prepare() -> Option<(Place, Vec<Advanced>)> {
    if !can_inject() {
        return None;
    }
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    let start = |_| Advanced { id: agent.start_session("letter"), answers: Vec::new() };
    let sessions = (0..SESSIONS).map(start).collect();
    agent.end();
    Some((place, sessions))
}

/// The server under `strace`. Calls are counted by thread: those of the store's writer count.
fn failing(place: &Place, calls: &str, error: &str, when: &str) -> Agent {
    let log = format!("{}-wal", database(place).display());
    let trace = format!("trace={calls}");
    let inject = format!("inject={calls}:error={error}:when={when}");
    let serve = place.command(&["serve"]);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-P", &log, "-e", &trace, "-e", &inject]);
    command.arg(serve.get_program()).args(serve.get_args());
    command.current_dir(place.project()).env_clear().env("HOME", place.home());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stderr(Stdio::null());
    Agent::connect(Process::spawn(command), Era::Legacy, json!({}))
}

#[expect(clippy::print_stdout, reason = "what is left out should be seen")]
fn can_inject() -> bool {
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=1..2", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        println!("left out: `strace` is not there or not allowed");
    }
    can
}

/// A session and what it was answered.
struct Advanced {
    id: String,
    answers: Vec<(Value, Value)>,
}

impl Advanced {
    /// The next advance, which is the same call as long as it is not answered; what was said instead.
    fn advance(&mut self, agent: &mut Agent) -> Result<(), String> {
        let revision = self.answers.len();
        // Large, so that it takes several pages.
        let output = format!("Hey {revision}{}", " and hey".repeat(1_000));
        let arguments = advance(&self.id, revision as u64, "write-it", &output);
        let result = agent.call("workflow_advance", &arguments);
        if result["isError"] == true {
            let (text, code) = refused(&result);
            assert_eq!(code, -32006, "{text}");
            return Err(text.to_owned());
        }
        assert_eq!(structured(&result)["revision"], revision + 1);
        self.answers.push((arguments, result));
        Ok(())
    }
}

/// Exactly what was answered is there, and each call still has its answer.
fn check(agent: &mut Agent, sessions: &[Advanced]) {
    for Advanced { id, answers } in sessions {
        assert_eq!(agent.status(id)["revision"], answers.len());
        for (arguments, answer) in answers {
            assert_eq!(&agent.call("workflow_advance", arguments), answer);
        }
    }
}

fn state(place: &Place) -> PathBuf {
    let states =
        if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };
    place.home().join(states).join("workflowlookup")
}

fn database(place: &Place) -> PathBuf {
    state(place).join("sessions.db")
}
