//! `serve` besides the protocol: what it logs, what it records, and that long work keeps nobody waiting.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::http_server::Listening;
use super::transcripts::Process;
use super::{Place, definition};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const LIST: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"workflow_list"}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;

#[test]
fn every_message_is_recorded_both_ways() {
    let place = Place::new();
    let arguments = ["serve", "--stdio", "--log-wire", "wire.log"];
    let session = format!("{HELLO}\nnonsense\n{PING}\n");
    let done = place.run_with_input(&arguments, &session);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    // A second session goes on at the end.
    assert_eq!(place.run_with_input(&arguments, PING).status, 0);
    let path = place.project().join("wire.log");
    let recorded = fs::read_to_string(&path).unwrap();
    let mut shown = String::new();
    let mut said = String::new();
    for line in recorded.lines() {
        let (time, line) = line.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        if let Some(line) = line.strip_prefix("< ") {
            writeln!(said, "{line}").unwrap();
        }
        let short: String = line.chars().take(60).collect();
        writeln!(shown, "{short}").unwrap();
    }
    assert!(said.starts_with(&done.stdout), "{said}\n{}", done.stdout);
    assert_snapshot!(shown, @r#"
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"p
    < {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"complet
    > nonsense
    < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"data":{
    > {"jsonrpc":"2.0","id":3,"method":"ping"}
    < {"jsonrpc":"2.0","id":3,"result":{}}
    > {"jsonrpc":"2.0","id":3,"method":"ping"}
    < {"jsonrpc":"2.0","id":3,"result":{}}
    "#);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "messages are nobody else's business");
}

#[test]
fn a_record_that_cannot_be_written_is_refused() {
    let done = Place::new().run(&["serve", "--log-wire", "no/such/folder/wire.log"]);
    assert_snapshot!(done.shown(), @r"
    exit 1
    --- stderr
    error: `no/such/folder/wire.log` cannot be written: No such file or directory (os error 2)
      try: name a file for --log-wire that may be created or appended to
    ");
}

/// What is said on standard error, without its times.
fn logged(arguments: &[&str]) -> String {
    let place = Place::new();
    place.write("workflows/good.json", definition("good-one", "Good"));
    place.write("workflows/bad.json", "{}");
    let mut all = vec!["--no-bundled", "--workflows", "nowhere", "serve"];
    all.extend(arguments);
    let done = place.run_with_input(&all, &format!("{HELLO}\n{LIST}\n"));
    assert_eq!(done.status, 0, "{}", done.shown());
    done.stderr
}

#[test]
fn the_log_says_as_much_as_it_is_asked_to() {
    let without_times = |text: &str| -> String {
        let lines = text.lines().map(|line| line.split_once("Z ").unwrap().1);
        lines.map(|line| line.split("micros=").next().unwrap().to_owned() + "\n").collect()
    };
    assert_snapshot!(without_times(&logged(&[])), @"
    WARN the folder `nowhere` does not exist
    WARN workflows that cannot be used: 1; `workflowlookup sources` says why
    ");
    assert_snapshot!(without_times(&logged(&["--log-level", "info"])), @r#"
    WARN the folder `nowhere` does not exist
    WARN workflows that cannot be used: 1; `workflowlookup sources` says why
    INFO the catalogue is loaded workflows=1
    INFO carried out method="tools/call" tool="workflow_list" outcome="ok" 
    INFO ended
    "#);
    assert_eq!(logged(&["--log-level", "off"]), "");
}

#[test]
fn the_log_can_be_read_by_a_machine() {
    let text = logged(&["--log-level", "info", "--log-format", "json"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let loaded = lines.iter().find(|line| line["workflows"] == 1).unwrap();
    assert_eq!(loaded["level"], "INFO");
    assert_eq!(loaded["message"], "the catalogue is loaded");
    assert!(loaded["timestamp"].is_string());
}

/// A definition that is slow to check: many large patterns, each another one.
pub(super) fn slow_definition() -> String {
    let rule = |number: usize| {
        let pattern = format!(r"(\pL{{30}}|x{number}){{20}}");
        json!({"type": "regex", "pattern": pattern, "message": "m"})
    };
    let rules: Vec<Value> = (0..8000).map(rule).collect();
    let mut definition: Value = serde_json::from_str(&definition("slow-one", "Slow")).unwrap();
    definition["steps"][0]["validationCriteria"] = json!(rules);
    definition.to_string()
}

fn lint(id: usize, definition: &str) -> String {
    let params = json!({"name": "workflow_lint", "arguments": {"definition": definition}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[test]
fn a_long_check_of_a_definition_holds_nobody_back() {
    let mut process = Process::start();
    process.send(HELLO);
    process.receive().unwrap();
    process.send(lint(7, &slow_definition()));
    process.send(PING);
    assert_eq!(process.receive().unwrap()["id"], 3, "not behind the check");
    let checked = process.receive().unwrap();
    assert_eq!(checked["id"], 7);
    assert_eq!(checked["result"]["structuredContent"]["usable"], true, "{checked}");
    process.end();
}

#[test]
fn a_check_under_way_is_answered_although_the_input_has_ended() {
    let place = Place::new();
    let session = format!("{HELLO}\n{}\n{PING}", lint(2, &definition("good-one", "Good")));
    let done = place.run_with_input(&["serve"], &session);
    let answers = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ids: Vec<u64> = answers.map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
}

/// A pipe takes 64 KiB; this is more, and nobody reads it.
#[test]
fn a_log_that_nobody_reads_keeps_nobody_waiting() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--log-level", "debug"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        writeln!(input, "{HELLO}").unwrap();
        (0..3000).for_each(|_| writeln!(input, "{LIST}").unwrap());
    });
    let output = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(output.lines().count(), 3001);
    writer.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Whoever reads where we listen may tell us to end that very moment.
#[test]
fn a_signal_right_after_the_start_is_a_good_end() {
    for _ in 0..10 {
        Listening::start(&Place::new()).end();
    }
}
