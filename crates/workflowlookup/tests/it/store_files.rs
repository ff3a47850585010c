//! The files of the store as a user treats them: removed under a running server, copied, rolled back, on a full disk.

use serde_json::{Value, json};

use super::agent::{Agent, LETTER, advance, refused, structured};
use super::*;

fn state(place: &Place) -> PathBuf {
    let states =
        if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };
    place.home().join(states).join("workflowlookup")
}

fn database(place: &Place) -> PathBuf {
    state(place).join("sessions.db")
}

fn prepared() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

/// Hands in an output that is not good enough, which is recorded all the same.
fn try_advance(agent: &mut Agent, session: &str, revision: u64) -> Value {
    agent.call("workflow_advance", &advance(session, revision, "write-it", "Hey"))
}

fn assert_not_recorded(result: &Value, what: &str) {
    let (text, code) = refused(result);
    assert_eq!(code, -32006, "{text}");
    assert!(text.contains(what) && text.contains("not recorded"), "{text}");
}

/// Begins a session and advances it so often, in a server of its own.
fn run_session(place: &Place, advances: u64) -> String {
    let mut agent = Agent::start(place);
    let session = agent.start_session("letter");
    for revision in 0..advances {
        structured(&try_advance(&mut agent, &session, revision));
    }
    agent.end();
    session
}

#[test]
fn advance_into_removed_store_is_refused() {
    let place = prepared();
    let mut agent = Agent::start(&place);
    let session = agent.start_session("letter");
    assert_eq!(structured(&try_advance(&mut agent, &session, 0))["revision"], 1);
    for suffix in ["", "-wal", "-shm"] {
        let mut file = database(&place).into_os_string();
        file.push(suffix);
        fs::remove_file(file).unwrap();
    }
    for _ in 0..5 {
        assert_not_recorded(&try_advance(&mut agent, &session, 1), "was removed");
    }
    let start = agent.call("workflow_start", &json!({"workflowId": "letter"}));
    assert_not_recorded(&start, "was removed");
    let status = agent.call("workflow_status", &json!({"sessionId": session}));
    assert_not_recorded(&status, "was removed");
    assert!(!database(&place).exists(), "no empty store takes its place");
    agent.end();
}

#[test]
fn backup_of_running_server_is_restored() {
    let place = prepared();
    let mut agent = Agent::start(&place);
    let session = agent.start_session("letter");
    structured(&try_advance(&mut agent, &session, 0));
    insta::assert_snapshot!(place.run(&["session", "backup", "copy.db"]).shown(), @"
    exit 0
    --- stdout
    copied 1 session with 2 events to copy.db
    ");
    insta::assert_snapshot!(place.run(&["session", "backup", "copy.db"]).shown(), @"
    exit 1
    --- stderr
    error: the file of the backup cannot be used: it exists already and was not touched
    ");
    structured(&try_advance(&mut agent, &session, 1));
    agent.end();

    let store = ["--store", "sqlite:copy.db"];
    insta::assert_snapshot!(place.run(&[&["session", "verify"], &store[..]].concat()).shown(), @"
    exit 0
    --- stdout
    1 session, 2 events: all sound
    ");
    let restored = Place { store: Some("sqlite:copy.db".to_owned()), ..place };
    let mut agent = Agent::start(&restored);
    assert_eq!(agent.status(&session)["revision"], 1);
    structured(&try_advance(&mut agent, &session, 1));
    agent.end();
}

#[test]
fn backup_without_store_fails() {
    insta::assert_snapshot!(Place::new().run(&["session", "backup", "copy.db"]).shown(), @"
    exit 1
    --- stderr
    error: there is no store of sessions yet, so nothing was written
    ");
}

/// What a command says, without the folder that the test runs in.
fn shown(place: &Place, arguments: &[&str]) -> String {
    let root = place.root.path().canonicalize().unwrap();
    place.run(arguments).shown().replace(&root.display().to_string(), "ROOT")
}

#[test]
fn rolled_back_store_is_noticed_by_its_anchor() {
    let place = prepared();
    run_session(&place, 2);
    let verify = ["session", "verify", "--anchor", "anchor"];
    insta::assert_snapshot!(shown(&place, &verify), @"
    exit 0
    --- stdout
    1 session, 3 events: all sound
    ");
    fs::copy(database(&place), place.root.path().join("older.db")).unwrap();
    run_session(&place, 4);
    // The anchor is as old as the copy, and comes along.
    insta::assert_snapshot!(shown(&place, &verify), @"
    exit 0
    --- stdout
    2 sessions, 8 events: all sound
    ");

    let database = database(&place);
    fs::copy(place.root.path().join("older.db"), &database).unwrap();
    insta::assert_snapshot!(shown(&place, &["session", "verify"]), @"
    exit 0
    --- stdout
    1 session, 3 events: all sound
    ");
    insta::assert_snapshot!(shown(&place, &verify), @"
    exit 1
    --- stdout
    the file of the store is not sound
      - the store was rolled back: it has 3 writes, its anchor `anchor` has seen 8, so the last 5 are missing
    1 session, 3 events: sound by themselves, in a file that is not
    ");
    insta::assert_snapshot!(shown(&place, &["session", "list", "--anchor", "anchor"]), @"
    exit 1
    --- stderr
    error: the store was rolled back: it has 3 writes, its anchor `anchor` has seen 8, so the last 5 are missing
      try: nothing was recorded; restore the newest copy and restart, or remove the anchor to accept the store as it is
    ");
    let mut command = place.command(&["serve", "--anchor", "anchor"]);
    command.stderr(Stdio::null());
    let process = super::transcripts::Process::spawn(command);
    let mut agent = Agent::connect(process, super::agent::Era::Legacy, json!({}));
    let start = agent.call("workflow_start", &json!({"workflowId": "letter"}));
    let (text, code) = refused(&start);
    assert_eq!(code, -32006);
    assert!(text.contains("rolled back"), "{text}");
    agent.end();

    // A store that was made anew is another one.
    fs::remove_file(&database).unwrap();
    run_session(&place, 9);
    insta::assert_snapshot!(shown(&place, &verify), @"
    exit 1
    --- stdout
    the file of the store is not sound
      - the store is not the one that the anchor `anchor` was written for
    1 session, 10 events: sound by themselves, in a file that is not
    ");
    fs::remove_file(place.project().join("anchor")).unwrap();
    assert_eq!(place.run(&verify).status, 0, "accepted as it is");
}

#[test]
fn removed_store_is_noticed_by_its_anchor() {
    let place = prepared();
    run_session(&place, 2);
    let verify = ["session", "verify", "--anchor", "anchor"];
    assert_eq!(place.run(&verify).status, 0);
    fs::remove_file(database(&place)).unwrap();
    for arguments in [&verify[..], &["session", "list", "--anchor", "anchor"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&place, arguments), @"
            exit 1
            --- stderr
            error: the store is missing: its anchor `anchor` has seen one with 3 writes
              try: nothing was recorded; restore the newest copy and restart, or remove the anchor to accept the store as it is
            ");
        }
    }
    let mut command = place.command(&["serve", "--anchor", "anchor"]);
    command.stderr(Stdio::null());
    let process = super::transcripts::Process::spawn(command);
    let mut agent = Agent::connect(process, super::agent::Era::Legacy, json!({}));
    let start = agent.call("workflow_start", &json!({"workflowId": "letter"}));
    let (text, code) = refused(&start);
    assert_eq!(code, -32006);
    assert!(text.contains("store is missing"), "{text}");
    agent.end();
    assert!(!database(&place).exists(), "no empty store takes its place");

    fs::remove_file(place.project().join("anchor")).unwrap();
    assert_eq!(place.run(&verify).status, 0, "nothing is known to be missing");
}

/// Not a file, and noticed all the same.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn rolled_back_postgres_is_noticed_by_its_anchor() {
    let database = private_postgres::Database::create().unwrap();
    let place = Place::storing(database.url());
    place.write("workflows/letter.json", LETTER);
    let verify = ["session", "verify", "--anchor", "anchor"];
    let run = |sql: &str| {
        database.query(&format!("SET search_path = workflowlookup; {sql}")).unwrap();
    };
    run_session(&place, 1);
    assert_eq!(place.run(&verify).status, 0);
    run("CREATE TABLE older AS SELECT * FROM checkpoint");
    for _ in 0..2 {
        run_session(&place, 1);
        assert_eq!(place.run(&verify).status, 0);
    }
    run("DELETE FROM checkpoint; INSERT INTO checkpoint SELECT * FROM older");
    let done = place.run(&verify);
    assert_eq!(done.status, 1, "{}", done.shown());
    let (before, missing) = ("the store was rolled back: it has ", "so the last ");
    assert!(done.stdout.contains(before) && done.stdout.contains(missing), "{}", done.shown());

    let done = place.run(&["session", "backup", "copy.db"]);
    assert_eq!(done.status, 1);
    assert!(done.stderr.contains("pg_dump --format=custom"), "{}", done.shown());
}

#[test]
fn server_keeps_its_anchor_up_to_date() {
    let place = prepared();
    let mut command = place.command(&["serve"]);
    command.env("WORKFLOWLOOKUP_ANCHOR", place.root.path().join("anchor")).stderr(Stdio::null());
    let process = super::transcripts::Process::spawn(command);
    let mut agent = Agent::connect(process, super::agent::Era::Legacy, json!({}));
    let session = agent.start_session("letter");
    structured(&try_advance(&mut agent, &session, 0));
    agent.end();
    let anchor = fs::read_to_string(place.root.path().join("anchor")).unwrap();
    let anchor: Value = serde_json::from_str(&anchor).unwrap();
    assert_eq!(anchor["count"], 2, "{anchor}");
}

#[test]
fn edited_anchor_is_not_believed() {
    let place = prepared();
    run_session(&place, 1);
    assert_eq!(place.run(&["session", "verify", "--anchor", "anchor"]).status, 0);
    let anchor = fs::read_to_string(place.project().join("anchor")).unwrap();
    place.write("anchor", anchor.replace("\"count\":2", "\"count\":1"));
    insta::assert_snapshot!(place.run(&["session", "verify", "--anchor", "anchor"]).shown(), @"
    exit 1
    --- stderr
    error: the anchor `anchor` cannot be used: it was changed, or was written with another key
      try: see that its directory is yours to write; remove a file that is damaged to begin anew from the store as it is
    ");
}

#[test]
fn removed_session_is_noticed_by_verify() {
    let place = prepared();
    let first = run_session(&place, 1);
    run_session(&place, 2);
    let connection = rusqlite::Connection::open(database(&place)).unwrap();
    let sql = format!(
        "PRAGMA foreign_keys = OFF;
        DELETE FROM events WHERE session = (SELECT number FROM sessions WHERE id = '{first}');
        DELETE FROM sessions WHERE id = '{first}'"
    );
    connection.execute_batch(&sql).unwrap();
    drop(connection);
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 1
    --- stdout
    the file of the store is not sound
      - sessions were removed or added: 1 found, 2 expected
    1 session, 3 events: sound by themselves, in a file that is not
    ");
}
