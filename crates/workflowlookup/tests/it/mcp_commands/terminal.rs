//! At a terminal: tables that fit, a line that shows progress, questions, and Ctrl-C.

use super::*;
use crate::running::live::Live;

const COLUMNS: u16 = 60;

fn at_terminal(place: &Place, arguments: &[&str]) -> Live {
    Live::at_terminal(place.command(arguments), COLUMNS)
}

#[test]
fn tables_fit() {
    let place = fake(Fake::new());
    let mut live = at_terminal(&place, &["mcp", "list"]);
    assert_eq!(live.ended(), Some(0));
    let shown = live.shown();
    assert!(shown.lines().all(|line| line.chars().count() <= usize::from(COLUMNS)), "{shown}");
    assert!(shown.starts_with("ID ") && shown.contains("self ") && shown.contains('…'), "{shown}");
    let mut live = at_terminal(&place, &["mcp", "describe", "fake"]);
    assert_eq!(live.ended(), Some(0));
    insta::assert_snapshot!(live.shown(), @"
    fake (fake 1.2.3, 2025-11-25)
    Be kind to it.

    TOOL   DESCRIPTION
    echo   Says it again. As it was.
    add    Add numbers
    plain
    ");
}

#[test]
fn json_is_indented_for_people() {
    let place =
        fake(Fake::new().call("plain", json!({}), text(r#"{"z":1.50,"a":["\u001b[31m"]}"#)));
    let mut live = at_terminal(&place, &["mcp", "call", "fake.plain"]);
    assert_eq!(live.ended(), Some(0));
    insta::assert_snapshot!(live.shown(), @r#"
    {
      "z": 1.50,
      "a": [
        "\u001b[31m"
      ]
    }
    "#);
    let mut command = place.command(&["mcp", "call", "fake.plain"]);
    command.env("CLICOLOR_FORCE", "1");
    let mut live = Live::at_terminal(command, COLUMNS);
    assert_eq!(live.ended(), Some(0));
    assert!(
        live.shown().contains("\u{1b}[36m\"z\"\u{1b}[0m: \u{1b}[33m1.50"),
        "{:?}",
        live.shown()
    );
}

/// A call that is never answered, after it has made some progress.
fn endless() -> Fake {
    let progress = json!({
        "jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": 7, "progress": 2, "total": 8, "message": "half\na quarter"},
    });
    let params = json!({"name": "plain", "arguments": {}, "_meta": {"progressToken": 7}});
    Fake::new().asked("tools/call", params, &[progress], None)
}

#[test]
fn progress_is_one_line_that_goes() {
    let place = fake(endless());
    let mut command = place.command(&["mcp", "call", "fake.plain", "--timeout", "2s"]);
    command.env("NO_COLOR", "1");
    let mut live = Live::at_terminal_called(command, COLUMNS, "xterm");
    live.wait_for("fake.plain: 25 % (2 of 8), half a quarter · ");
    live.wait_for("\r\u{1b}[2K");
    assert_eq!(live.ended(), Some(1));
    let shown = live.shown();
    let (_, after) = shown.rsplit_once("\u{1b}[2K").unwrap();
    assert!(after.starts_with("error: Request timeout"), "{shown:?}");
}

/// A server that asks how many people there are.
fn asking() -> Fake {
    let question = json!({
        "jsonrpc": "2.0", "id": 0, "method": "elicitation/create",
        "params": {
            "message": "Which table?",
            "requestedSchema": {
                "type": "object", "required": ["people"],
                "properties": {
                    "people": {"type": "integer", "title": "People", "minimum": 1},
                    "smoking": {"type": "boolean", "default": false},
                },
            },
        },
    });
    Fake::new().asked(
        "tools/call",
        json!({"name": "plain", "arguments": {}}),
        &[question],
        Some(text("Your table is ready.")),
    )
}

#[test]
fn a_server_asks_whoever_sits_there() {
    let place = fake(asking());
    let mut live = at_terminal(&place, &["mcp", "--log-wire", "wire.jsonl", "call", "fake.plain"]);
    live.wait_for("People (a whole number): ");
    live.write("many\n");
    live.wait_for("People (a whole number): ");
    live.write("2\n");
    live.wait_for("otherwise no): ");
    live.write("\n");
    assert_eq!(live.ended(), Some(0));
    insta::assert_snapshot!(live.shown(), @"
    `fake` asks:
    | Which table?
    `:n` declines, `:q` or Ctrl-D cancels
    People (a whole number): many
    `people` wants integer, and `many` is none
    People (a whole number): 2
    smoking (yes or no; otherwise no): 
    Your table is ready.
    ");
    let wire = fs::read_to_string(place.project().join("wire.jsonl")).unwrap();
    let answer = r#""result":{"action":"accept","content":{"people":2,"smoking":false}}"#;
    assert!(wire.contains(answer), "{wire}");
    let mut live = at_terminal(&place, &["mcp", "call", "fake.plain"]);
    live.wait_for("People (a whole number): ");
    live.write(":n\n");
    assert_eq!(live.ended(), Some(0));
}

/// The line that shows progress is gone before a question comes, and does not come back over it.
#[test]
fn a_question_is_not_wiped_away() {
    let place = fake(asking());
    let slow = format!("/bin/sh -c 'sleep 1; exec {BINARY} mcp replay fake.jsonl'");
    let mut command = place.command(&["mcp", "call", "--stdio", &slow, "plain"]);
    command.env("NO_COLOR", "1").env("PATH", "/usr/bin:/bin");
    let mut live = Live::at_terminal_called(command, COLUMNS, "xterm");
    live.wait_for("server.plain: waiting");
    live.wait_for("\u{1b}[2K`server` asks:\n| Which table?\n");
    let asked = live.wait_for("People (a whole number): ");
    std::thread::sleep(std::time::Duration::from_millis(300));
    live.write(":n\n");
    assert_eq!(live.ended(), Some(0));
    let shown = live.shown();
    let after = &shown[asked.len()..];
    assert!(after.starts_with(":n\n") && after.contains("Your table is ready."), "{shown:?}");
}

/// The server is told, and its process ends before ours does.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_cancels_the_call() {
    let place = fake(endless());
    let proxy = format!("{BINARY} mcp record seen.jsonl --stdio '{BINARY} mcp replay fake.jsonl'");
    // Only what has a terminal as its own is reached by its keys.
    let mut command = Command::new("setsid");
    command.args([
        "--ctty",
        "env",
        "--default-signal=INT,QUIT",
        BINARY,
        "mcp",
        "call",
        "--stdio",
        &proxy,
        "plain",
    ]);
    command
        .args(["--timeout", "10m"])
        .current_dir(place.project())
        .env_clear()
        .env("HOME", place.home());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let mut live = Live::at_terminal_called(command, COLUMNS, "xterm");
    live.wait_for("25 %");
    live.write("\u{3}");
    assert_eq!(live.ended(), None, "ended by the signal: {}", live.shown());
    let seen = fs::read_to_string(place.project().join("seen.jsonl")).unwrap();
    let last = seen.lines().rfind(|line| line.contains(r#""way":"out""#)).unwrap();
    assert!(last.contains("notifications/cancelled"), "{seen}");
    // The line is gone, and nobody has complained.
    assert!(live.shown().trim_end_matches("^C").ends_with("\u{1b}[2K"), "{:?}", live.shown());
}
