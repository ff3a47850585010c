//! `mcp record`, `mcp replay` and `--log-wire`: what is said can be written down, and played again.

use super::*;

fn lines(place: &Place, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.project().join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_recording_says_what_the_server_said() {
    let place = project(&[]);
    let words = ["mcp", "--log-wire", "wire.jsonl", "call", "self.workflow_get", "id=tidy"];
    let real = place.run(&words);
    assert_eq!(real.status, 0, "{}", real.shown());
    let command = format!("{BINARY} mcp replay wire.jsonl");
    let played = place.run(&["mcp", "call", "--stdio", &command, "workflow_get", "id=tidy"]);
    assert_eq!(played.shown(), real.shown());
    // What was not asked then is not known now.
    let other =
        place.run(&["mcp", "call", "--stdio", &command, "workflow_get", "id=other", "--json"]);
    insta::assert_snapshot!(other.shown(), @r#"
    exit 1
    --- stdout
    {
      "error": {
        "code": -32602,
        "message": "the recording has no `tools/call` with these parameters",
        "data": {
          "asked": {
            "method": "tools/call",
            "params": {
              "arguments": {
                "id": "other"
              },
              "name": "workflow_get"
            }
          },
          "recorded": [
            "tools/call {\"arguments\":{\"id\":\"tidy\"},\"name\":\"workflow_get\"}"
          ]
        }
      }
    }
    "#);
    let read = place.run(&["mcp", "resources", "--stdio", &command]);
    assert_eq!(read.status, 1, "{}", read.shown());
}

#[test]
fn a_proxy_hands_on_and_writes_down() {
    let place =
        fake(Fake::new().call("echo", json!({"text": "hush-hush-hush"}), text("hush-hush-hush")));
    let hello = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let call = r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"text":"hush-hush-hush"}}}"#;
    let input = format!("{hello}\n  {call}\nno json\n");
    let direct = place.run_with_input(&["mcp", "replay", "fake.jsonl"], &input);
    let command = format!("{BINARY} mcp replay fake.jsonl");
    let words =
        ["mcp", "record", "out.jsonl", "--stdio", &command, "--env", "API_KEY=hush-hush-hush"];
    let proxied = place.run_with_input(&words, &input);
    assert_eq!(proxied.shown(), direct.shown());
    assert!(proxied.stdout.contains("hush-hush-hush"));
    let written = lines(&place, "out.jsonl");
    let ways: Vec<&str> = written.iter().map(|line| line["way"].as_str().unwrap()).collect();
    let count = |way: &str| ways.iter().filter(|one| **one == way).count();
    assert_eq!((count("out"), count("in")), (3, 3), "{written:?}");
    let of_call = written.iter().find(|line| line["message"]["id"] == "b").unwrap();
    assert_eq!(of_call["message"]["params"]["arguments"]["text"], "***");
    assert!(written.iter().any(|line| line["text"] == "no json"));
    // And what was written is a recording.
    let played = place.run_with_input(&["mcp", "replay", "out.jsonl"], &format!("{hello}\n"));
    assert!(played.stdout.contains(r#""name":"fake""#), "{}", played.shown());
}

#[test]
fn what_cannot_be_recorded_or_played() {
    let place = project(&[]);
    insta::assert_snapshot!(place.run(&["mcp", "record", "out.jsonl", "--http", "http://127.0.0.1:1/mcp"]).shown(), @"
    exit 1
    --- stderr
    error: unexpected argument '--http' found

      tip: to pass '--http' as a value, use '-- --http'

    Usage: workflowlookup mcp record <FILE> [SERVER]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run(&["mcp", "record", "out.jsonl", "slef"]).shown(), @"
    exit 1
    --- stderr
    error: there is no server `slef` in the registry; did you mean `self`?
    ");
    insta::assert_snapshot!(place.run(&["mcp", "record", "no/out.jsonl", "self"]).shown(), @"
    exit 1
    --- stderr
    error: `no/out.jsonl` cannot be written: No such file or directory (os error 2)
      try: name a file that may be created or appended to
    ");
    insta::assert_snapshot!(place.run(&["mcp", "record", "out.jsonl", "--stdio", "/nowhere/at/all"]).shown(), @"
    exit 1
    --- stderr
    error: there is no program `/nowhere/at/all`, which `command` names
      try: see whether the command is right
    ");
    insta::assert_snapshot!(place.run(&["mcp", "record", "out.jsonl", "--stdio", "/bin/sh -c 'echo no >&2; exit 4'"]).shown(), @"
    exit 1
    --- stderr
    no
    error: `server` ended with status 4
    ");
    insta::assert_snapshot!(place.run(&["mcp", "replay", "gone.jsonl"]).shown(), @"
    exit 1
    --- stderr
    error: `gone.jsonl` cannot be played: it cannot be read: No such file or directory (os error 2)
      try: `workflowlookup mcp record FILE SERVER` makes one
    ");
    place.write("bad.jsonl", "{}\n");
    insta::assert_snapshot!(place.run(&["mcp", "replay", "bad.jsonl"]).shown(), @"
    exit 1
    --- stderr
    error: `bad.jsonl` cannot be played: line 1 is none of a recording, which has `server`, `way` and `message`
      try: `workflowlookup mcp record FILE SERVER` makes one
    ");
    let line =
        |server: &str| json!({"server": server, "way": "out", "message": {"id": 1, "method": "a"}});
    place.write("both.jsonl", format!("{}\n{}\n", line("one"), line("two")));
    insta::assert_snapshot!(place.run(&["mcp", "replay", "both.jsonl"]).shown(), @"
    exit 1
    --- stderr
    error: `both.jsonl` cannot be played: there are several servers in it, `one`, `two`; choose one
      try: choose one with `--server ID`
    ");
    assert_eq!(place.run(&["mcp", "replay", "both.jsonl", "--server", "two"]).shown(), "exit 0\n");
}

#[test]
fn messages_are_shown_at_debug_level() {
    let place = fake(Fake::new().call("echo", json!({"text": "hello"}), text("hello")));
    let script = format!("echo a complaint >&2; exec {BINARY} mcp replay fake.jsonl");
    let command = format!("/bin/sh -c '{script}'");
    let words = ["mcp", "--log-level", "debug", "call", "--stdio", &command, "echo", "text=hello"];
    let done = place.run(&words);
    assert_eq!((done.status, done.stdout.as_str()), (0, "hello\n"), "{}", done.shown());
    for sign in
        ["[MCP →] server: {\"jsonrpc\"", "[MCP ←] server: {", "[MCP stderr] server: a complaint"]
    {
        assert!(done.stderr.contains(sign), "{sign}: {}", done.shown());
    }
}
