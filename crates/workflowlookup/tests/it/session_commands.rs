//! `session …`: a person looks at sessions, decides, moves them and checks them. The sessions were written elsewhere, so
//! their times and ids are always the same.

mod copies;
mod deciding;
mod importing;
mod showing;
mod verifying;

use std::sync::Arc;

use serde_json::json;
use store::Store;
use store::sessions::{Sessions, Start};
use workflow::Format;

use super::*;

/// Went back once, with a rejected and an approved plan before that, and is complete.
const FINISHED: &str = "7k2m3v9xq0b8d5fgh1jn";
/// A copy of it that goes on from its plan.
const COPY: &str = "7k2mzt5s9a4c6e8g0hpr";
/// Waits for a person. Its texts try to steer a terminal and to break out of Markdown.
const WAITING: &str = "c4r8t2w6y0a1e3g5h7kp";

fn exported(name: &str) -> String {
    let path = format!("crates/workflowlookup/tests/it/sessions/{name}.json");
    fs::read_to_string(repository().join(path)).unwrap()
}

/// A home with all three.
fn with_sessions() -> Place {
    let place = Place::new();
    for name in ["finished", "copy", "waiting"] {
        planted::plant(&place, &exported(name));
    }
    place
}

/// A session that was just begun in a store elsewhere, exported.
fn begun(id: &str, key: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("sessions.db"), None).unwrap();
    let sessions = Sessions::new(store, Arc::default());
    let workflow = workflow::read_trusted(&definition("tidy", "Tidy"), Format::Json).unwrap();
    let start = Start { id: id.to_owned(), key: key.map(str::to_owned), ..Start::default() };
    sessions.start(&workflow, start).unwrap();
    sessions.store().export(id).unwrap().to_text().unwrap()
}

fn database(place: &Place) -> PathBuf {
    place.home().join(".local/state/workflowlookup/sessions.db")
}

#[test]
fn without_a_file_there_are_no_sessions_and_none_is_made() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["session", "list"]).shown(), @"
    exit 0
    --- stderr
    warning: there are no sessions
      try: connect an agent by `workflowlookup connect CLIENT`, and have it begin one with `workflow_start`
    ");
    insta::assert_snapshot!(place.run(&["session", "list", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "sessions": [],
      "hasMore": false,
      "others": {
        "sessions": [],
        "hasMore": false
      }
    }
    "#);
    insta::assert_snapshot!(place.run(&["session", "verify"]).shown(), @"
    exit 0
    --- stderr
    warning: there are no sessions
      try: connect an agent by `workflowlookup connect CLIENT`, and have it begin one with `workflow_start`
    ");
    insta::assert_snapshot!(place.run(&["session", "verify", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "sessions": 0,
      "events": 0,
      "flawed": [],
      "imported": [],
      "storeFlaws": []
    }
    "#);
    insta::assert_snapshot!(place.run(&["session", "prune", "--older-than", "30d"]).shown(), @"
    exit 0
    --- stderr
    warning: there are no sessions
      try: connect an agent by `workflowlookup connect CLIENT`, and have it begin one with `workflow_start`
    ");
    for verb in ["show", "approve", "reject", "export", "verify"] {
        let done = place.run(&["session", verb, FINISHED]);
        assert_eq!(done.stderr, place.run(&["session", "show", FINISHED]).stderr, "{verb}");
        assert_eq!(done.status, 1, "{verb}");
    }
    assert_eq!(fs::read_dir(place.home()).unwrap().count(), 0);
}

#[test]
fn list_shows_one_line_a_session_newest_first() {
    let place = with_sessions();
    insta::assert_snapshot!(place.run(&["session", "list"]).shown(), @"
    exit 0
    --- stdout
    c4r8t2w6y0a1e3g5h7kp	mend-a-fault	waiting	plan	1	2026-03-02T09:19:19Z	Mend the | *printer* �[31mapproved	bob
    7k2mzt5s9a4c6e8g0hpr	mend-a-fault	running	plan	1	2026-03-02T09:16:16Z	Users are logged out after a minute	ann
    7k2m3v9xq0b8d5fgh1jn	mend-a-fault	complete	-	8	2026-03-02T09:12:12Z	Users are logged out after a minute	ann
    ");
    insta::assert_snapshot!(place.run(&["session", "list", "--status", "complete"]).shown(), @"
    exit 0
    --- stdout
    7k2m3v9xq0b8d5fgh1jn	mend-a-fault	complete	-	8	2026-03-02T09:12:12Z	Users are logged out after a minute	ann
    ");
    let search = ["session", "list", "--search", "cookie", "--workflow", "mend-a-fault"];
    insta::assert_snapshot!(place.run(&search).shown(), @"
    exit 0
    --- stdout
    7k2m3v9xq0b8d5fgh1jn	mend-a-fault	complete	-	8	2026-03-02T09:12:12Z	Users are logged out after a minute	ann
    ");
    insta::assert_snapshot!(place.run(&["session", "list", "--workflow", "other"]).shown(), @"
    exit 0
    --- stderr
    warning: no session matches
      try: `workflowlookup session list` without options shows all
    ");
    insta::assert_snapshot!(place.run(&["session", "list", "--limit", "1"]).shown(), @"
    exit 0
    --- stdout
    c4r8t2w6y0a1e3g5h7kp	mend-a-fault	waiting	plan	1	2026-03-02T09:19:19Z	Mend the | *printer* �[31mapproved	bob
    --- stderr
    note: there are more
      try: say how many with `--limit`, or which with `--status`, `--workflow` and `--search`
    ");
    let json = ["session", "list", "--status", "running", "--json"];
    insta::assert_snapshot!(place.run(&json).shown(), @r#"
    exit 0
    --- stdout
    {
      "sessions": [],
      "hasMore": false,
      "others": {
        "sessions": [
          {
            "sessionId": "7k2mzt5s9a4c6e8g0hpr",
            "workflowId": "mend-a-fault",
            "goal": "Users are logged out after a minute",
            "owner": "ann",
            "status": "running",
            "stepId": "plan",
            "revision": 1,
            "began": "2026-03-02T09:13:13Z",
            "touched": "2026-03-02T09:16:16Z",
            "isImported": false
          }
        ],
        "hasMore": false
      }
    }
    "#);
    insta::assert_snapshot!(place.run(&["session", "list", "--limit", "1001"]).shown(), @"
    exit 1
    --- stderr
    error: invalid value '1001' for '--limit <N>': 1001 is not in 1..=1000

    For more information, try '--help'.
    ");
}

#[test]
fn the_beginning_of_an_id_is_enough_where_it_is_the_only_one() {
    let place = with_sessions();
    assert_eq!(
        place.run(&["session", "show", "c4r8"]).shown(),
        place.run(&["session", "show", WAITING]).shown()
    );
    assert_eq!(place.run(&["session", "verify", "7k2mz"]).status, 0);
    insta::assert_snapshot!(place.run(&["session", "show", "7k2m"]).shown(), @"
    exit 1
    --- stderr
    error: `7k2m` begins several ids: `7k2m3v9xq0b8d5fgh1jn`, `7k2mzt5s9a4c6e8g0hpr`
      try: type more of the one that you mean
    ");
    insta::assert_snapshot!(place.run(&["session", "show", "c4r"]).shown(), @"
    exit 1
    --- stderr
    error: there is no session `c4r`, and that is too short to begin an id
      try: type at least 4 letters of it
    ");
    insta::assert_snapshot!(place.run(&["session", "show", "c4r8%", "--json"]).shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32005,
        "message": "State error",
        "data": {
          "sessionId": "c4r8%"
        }
      }
    }
    "#);
    for number in 0..6 {
        let text = begun(&format!("same-{number}"), None);
        assert_eq!(place.run_with_input(&["session", "import", "-"], &text).status, 0);
    }
    insta::assert_snapshot!(place.run(&["session", "show", "same"]).shown(), @"
    exit 1
    --- stderr
    error: `same` begins several ids: `same-0`, `same-1`, `same-2`, `same-3`, `same-4` and more
      try: type more of the one that you mean
    ");
}

#[test]
fn approve_decides_what_waits_and_only_once() {
    let place = with_sessions();
    let approve = ["session", "approve", WAITING, "--version", "3", "--reason", "pick it up"];
    insta::assert_snapshot!(place.run(&approve).shown(), @"
    exit 0
    --- stdout
    approved the output of step `plan` (Plan the fix)
    session `c4r8t2w6y0a1e3g5h7kp` is at revision 2, step `mend`
    ");
    insta::assert_snapshot!(place.run(&approve).shown(), @"
    exit 1
    --- stderr
    error: no step of the session waits for a person
      try: session `c4r8t2w6y0a1e3g5h7kp` is at revision 2, step `mend`
    ");
    insta::assert_snapshot!(place.run(&["session", "reject", "c4r8"]).shown(), @"
    exit 1
    --- stderr
    error: no step of the session waits for a person
      try: session `c4r8t2w6y0a1e3g5h7kp` is at revision 2, step `mend`
    ");
    insta::assert_snapshot!(place.run(&["session", "approve", FINISHED]).shown(), @"
    exit 1
    --- stderr
    error: no step of the session waits for a person
      try: session `7k2m3v9xq0b8d5fgh1jn` is at revision 8, complete
    ");
    let shown = place.run(&["session", "show", WAITING, "--json"]).json();
    assert_eq!((&shown["status"], &shown["stepId"]), (&json!("running"), &json!("mend")));
    assert_eq!(shown["context"], json!({"floor": 2, "paper": ["A4", "A3"]}));
    let event = &shown["events"][3]["event"];
    assert_eq!(event["type"], "approved");
    assert_eq!(event["decision"]["channel"], "cli");
    assert_eq!(event["decision"]["reason"], "pick it up");
    assert_ne!(event["decision"]["who"], "");
    assert_eq!(shown["flaws"], json!([]));
}

#[test]
fn nothing_is_decided_that_was_not_seen() {
    let place = with_sessions();
    for verb in ["approve", "reject"] {
        // A program, or a person behind a pipe, who has seen nothing yet.
        let done = place.run_with_input(&["session", verb, WAITING], "y\n");
        assert_eq!(done.status, 1);
        assert!(
            done.stdout.contains("`plan` (Plan the fix), version 3:\n  │ Pick it up:"),
            "{}",
            done.shown()
        );
        let hint = format!("try: `workflowlookup session {verb} {WAITING} --version 3`");
        assert!(done.stderr.contains(&hint), "{}", done.shown());
        for other in ["2", "4"] {
            let done = place.run(&["session", verb, WAITING, "--version", other]);
            assert_eq!(done.status, 1, "{}", done.shown());
            assert!(done.stderr.contains("version 3 waits for a person now"), "{}", done.shown());
        }
    }
    let shown = place.run(&["session", "show", WAITING, "--json"]).json();
    assert_eq!((&shown["status"], &shown["waiting"]["version"]), (&json!("waiting"), &json!(3)));
}

#[test]
fn reject_sends_it_back_and_only_once() {
    let place = with_sessions();
    let reject = ["session", "reject", WAITING, "--version", "3", "--reason", "the floor is wet"];
    insta::assert_snapshot!(place.run(&reject).shown(), @"
    exit 0
    --- stdout
    rejected the output of step `plan` (Plan the fix)
    session `c4r8t2w6y0a1e3g5h7kp` is at revision 2, step `plan`
    ");
    insta::assert_snapshot!(place.run(&reject).shown(), @"
    exit 1
    --- stderr
    error: no step of the session waits for a person
      try: session `c4r8t2w6y0a1e3g5h7kp` is at revision 2, step `plan`
    ");
    let shown = place.run(&["session", "show", WAITING, "--json"]).json();
    assert_eq!((&shown["attempts"], &shown["revision"]), (&json!(1), &json!(2)));
    assert_eq!(shown["events"][3]["event"]["decision"]["reason"], "the floor is wet");
}

#[test]
fn a_session_travels() {
    let (here, there) = (with_sessions(), Place::new());
    for (id, name) in [(FINISHED, "finished"), (COPY, "copy"), (WAITING, "waiting")] {
        let text = here.run(&["session", "export", id]).stdout;
        let as_before = exported(name).replace("\"format\": 1", "\"format\": 2");
        assert_eq!(text, as_before, "to the byte, whatever it would do to a terminal");
        here.write("session.json", "old");
        let to_file = ["session", "export", id, "--output", "session.json", "--force"];
        assert_eq!(here.run(&to_file).status, 0);
        let path = here.project().join("session.json");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(there.run(&["session", "import", path.to_str().unwrap()]).status, 0);
        let [before, after] =
            [&here, &there].map(|place| place.run(&["session", "show", id, "--json"]).json());
        let events = before["events"].as_array().unwrap().iter().map(|event| &event["event"]);
        let came = after["events"].as_array().unwrap().iter().map(|event| &event["event"]);
        assert!(events.eq(came.take(before["events"].as_array().unwrap().len())));
        assert_eq!(before["waiting"]["output"], after["waiting"]["output"]);
        for field in ["status", "stepId", "revision", "context", "completed"] {
            assert_eq!(before[field], after[field], "{field}");
        }
    }
    assert_eq!(fs::read_dir(here.project()).unwrap().count(), 1, "no draft is left");
    insta::assert_snapshot!(there.run(&["session", "verify"]).shown(), @"
    exit 0
    --- stdout
    session `7k2m3v9xq0b8d5fgh1jn` came from a file; 3 events of it unverified
    session `7k2mzt5s9a4c6e8g0hpr` came from a file; 2 events of it unverified
    session `c4r8t2w6y0a1e3g5h7kp` came from a file; 0 events of it unverified
    3 sessions, 22 events: all sound
    ");
}

#[test]
fn export_overwrites_nothing_unasked() {
    let place = with_sessions();
    let export = ["session", "export", FINISHED, "--output", "session.json"];
    insta::assert_snapshot!(place.run(&export).shown(), @"
    exit 0
    --- stdout
    wrote session `7k2m3v9xq0b8d5fgh1jn` to session.json
    ");
    insta::assert_snapshot!(place.run(&export).shown(), @"
    exit 1
    --- stderr
    error: `session.json` is there already and was not touched
      try: choose another name, or replace it with `--force`
    ");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = fs::metadata(place.project().join("session.json")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(place.run(&["session", "export", FINISHED, "--force"]).status, 1);
}

#[test]
fn import_refuses_what_it_cannot_believe() {
    let place = Place::new();
    let import = |text: &str| place.run_with_input(&["session", "import", "-"], text).shown();
    let good = exported("finished");
    insta::assert_snapshot!(import(&good), @"
    exit 0
    --- stdout
    imported session `7k2m3v9xq0b8d5fgh1jn` of workflow `mend-a-fault`
    session `7k2m3v9xq0b8d5fgh1jn` is at revision 8, complete
    --- stderr
    note: 3 events could not be decided again: what people decided, or a copy's start
      try: `workflowlookup session show 7k2m3v9xq0b8d5fgh1jn` marks what is unverified
    ");
    insta::assert_snapshot!(import(&good), @"
    exit 1
    --- stderr
    error: there is a session `7k2m3v9xq0b8d5fgh1jn` here already, and it was not touched
      try: `workflowlookup session show 7k2m3v9xq0b8d5fgh1jn` shows it
    ");
    let changed = exported("copy").replace("An hour.", "A week.");
    insta::assert_snapshot!(import(&changed), @"
    exit 1
    --- stderr
    error: what came on standard input was changed since it was exported: event 2 was changed
      try: export it again where it came from
    ");
    let newer = exported("copy").replace("\"format\": 1", "\"format\": 7");
    insta::assert_snapshot!(import(&newer), @"
    exit 1
    --- stderr
    error: the exported log has format 7, and this program knows up to 2
      try: use a version of this program that knows it
    ");
    let elsewhere = exported("copy").replace("\"status\": \"running\"", "\"status\": \"complete\"");
    insta::assert_snapshot!(import(&elsewhere), @"
    exit 1
    --- stderr
    error: what came on standard input is not what would have happened: replayed, it does not stand where its head says (at `/head`)
      try: export it again where it came from
    ");
    insta::assert_snapshot!(import("{}"), @"
    exit 1
    --- stderr
    error: what came on standard input is no exported session: missing field `format` at line 1 column 2
      try: `workflowlookup session export ID` writes one
    ");
    insta::assert_snapshot!(place.run(&["session", "import", "none.json"]).shown(), @"
    exit 1
    --- stderr
    error: the exported session `none.json` cannot be read: No such file or directory (os error 2)
      try: name a file, or `-` for standard input
    ");
    assert_eq!(place.run(&["session", "list"]).stdout.lines().count(), 1);
    // Keys stay where they were given.
    assert!(import(&begun("one", Some("key"))).starts_with("exit 0"));
    assert!(import(&begun("two", Some("key"))).starts_with("exit 0"));
}

/// What nobody can read was not printed, whatever a command has done.
#[cfg(target_os = "linux")]
#[test]
fn output_to_a_full_disk_is_a_fault() {
    let place = with_sessions();
    for arguments in [
        &["list"][..],
        &["session", "list"],
        &["session", "show", FINISHED],
        &["session", "show", FINISHED, "--markdown"],
        &["session", "verify"],
        &["session", "verify", "--json"],
        &["session", "show", "gone-for-good", "--json"],
        &["session", "export", FINISHED],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("fault: "), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{arguments:?}: {stderr}");
        // Who has seen enough is no fault.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(arguments).stdout(writer).output().unwrap();
        assert_ne!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{arguments:?}");
    }
}

#[test]
fn prune_removes_only_what_is_old_and_complete() {
    let place = with_sessions();
    let prune = |age: &str, more: &[&str]| {
        place.run(&[&["session", "prune", "--older-than", age], more].concat()).shown()
    };
    insta::assert_snapshot!(prune("100years", &[]), @"
    exit 0
    --- stdout
    0 complete sessions removed
    ");
    insta::assert_snapshot!(prune("1s", &["--dry-run"]), @"
    exit 0
    --- stdout
    1 complete session would be removed
    ");
    assert_eq!(place.run(&["session", "list"]).stdout.lines().count(), 3);
    insta::assert_snapshot!(prune("1s", &[]), @"
    exit 0
    --- stdout
    1 complete session removed
    ");
    insta::assert_snapshot!(prune("1s", &[]), @"
    exit 0
    --- stdout
    0 complete sessions removed
    ");
    let left = place.run(&["session", "list"]).stdout;
    assert!(left.contains(COPY) && left.contains(WAITING) && !left.contains(FINISHED));
    insta::assert_snapshot!(prune("soon", &[]), @"
    exit 1
    --- stderr
    error: invalid value 'soon' for '--older-than <DURATION>': expected number at 0

    For more information, try '--help'.
    ");
}
