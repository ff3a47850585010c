//! Golden transcripts: `tests/transcripts/*.txt`, played against the real process, over stdio and over HTTP. What their
//! lines mean is in `script.rs`. `"$name"` takes what stands there, for the lines that follow. They are written by hand
//! and never rewritten. One ignored test checks what goes over the wire against the official schema of its revision.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Place, definition};

mod over_http;
mod pattern;
mod schemas;
mod script;

use over_http::OverHttp;
use pattern::{Names, filled_in, fits, take_names};
use schemas::{against_official_schemas, against_output_schemas};
use script::{Line, Transport};

/// Much longer than any answer takes: a test that waits this long has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The server as a process, with what it writes cut into lines.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    /// Its project, gone when it is. None where that belongs to somebody else.
    place: Option<Place>,
}

impl Process {
    pub(super) fn start() -> Self {
        Self::start_in(Place::new())
    }

    /// Starts in a project that may have workflows already.
    fn start_in(place: Place) -> Self {
        Self::start_with(place, &["serve"])
    }

    pub(super) fn start_with(place: Place, arguments: &[&str]) -> Self {
        let place = furnished(place);
        let mut command = place.command(arguments);
        command.stderr(Stdio::null());
        let mut process = Self::spawn(command);
        process.place = Some(place);
        process
    }

    /// Starts it as the command says, in a place that outlives it.
    pub(super) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Self { child, input, lines, place: None }
    }

    /// Sends a line. A server that is gone shows by its silence.
    pub(super) fn send(&mut self, line: impl AsRef<[u8]>) {
        self.send_raw(line);
        self.send_raw("\n");
    }

    pub(super) fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.input.as_mut().unwrap().write_all(bytes.as_ref());
    }

    /// The next line that comes back; none when the output has ended.
    pub(super) fn receive(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                assert_eq!(line.last(), Some(&b'\n'), "a line has an end");
                Some(serde_json::from_slice(&line).unwrap())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no answer within {PATIENCE:?}"),
        }
    }

    /// Ends it with SIGKILL, and gives what it had said. A line that was cut off was never said.
    pub(super) fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let said = std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok());
        let whole = said.filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(&line).unwrap()).collect()
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the input: nothing more may come back, and the end is a good one.
    pub(super) fn end(mut self) {
        self.input = None;
        assert_eq!(self.receive(), None, "something came back that nobody waits for");
        assert_eq!(self.wait().code(), Some(0));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only one that a failing test leaves behind is still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts the workflows into a place that the transcripts speak of.
fn furnished(place: Place) -> Place {
    fs::write(place.root.path().join("outside.json"), "{}").unwrap();
    for entry in fs::read_dir(folder().join("workflows")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        place.write(&format!("workflows/{name}"), fs::read(&path).unwrap());
    }
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, place.project().join("workflows").join(name)).unwrap();
    };
    link("../../outside.json", "leads-out.json");
    link("nowhere.json", "dangling.json");
    place
}

/// A place whose registry names our own program, twice: as one that may be called, and as one that a person is asked about.
fn with_upstreams() -> Place {
    let place = Place::new();
    let other = place.root.path().join("other");
    fs::create_dir_all(other.join("workflows")).unwrap();
    fs::copy(folder().join("workflows/letter.json"), other.join("workflows/letter.json")).unwrap();
    let entry = |id: &str, sensitivity: &str| {
        let mcp = json!({
            "transport": "stdio", "command": env!("CARGO_BIN_EXE_workflowlookup"),
            "args": ["serve", "--no-bundled"], "cwd": other, "env": {"HOME": other},
        });
        json!({
            "id": id, "title": format!("The {id}"), "summary": "Hands out letters", "mcp": mcp,
            "sensitivity": sensitivity, "timeoutMs": 30_000,
        })
    };
    let entries = [entry("office", "low"), entry("vault", "high")];
    place.write_trusted("mcp.registry.json", json!({"servers": entries}).to_string());
    place
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// Plays a transcript; what went over the wire, and what did not come out as written.
fn play(place: Place, text: &str, transport: Transport, options: &[&str]) -> (Vec<Said>, String) {
    let mut player = match transport {
        Transport::Stdio => {
            Player::Stdio(Process::start_with(place, &[&["serve"], options].concat()))
        }
        Transport::Http => Player::Http(Box::new(OverHttp::start(place, options))),
    };
    let mut wire = Vec::new();
    let mut wrong = String::new();
    let mut names = Names::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = &*filled_in(line, &names);
        match Line::read(line, transport).unwrap_or_else(|| panic!("line {number}: {line}")) {
            Line::Nothing => {}
            Line::Send(message) => {
                player.send(message);
                wire.extend(serde_json::from_str(message).map(Said::ToServer));
            }
            Line::Expect { status, message } => {
                let parsed = |message: &str| {
                    serde_json::from_str(message)
                        .unwrap_or_else(|error| panic!("line {number} is not JSON: {error}"))
                };
                let expected = player.instead_of(parsed(message));
                let Some(Heard { status: heard, message: actual }) = player.receive(&expected)
                else {
                    writeln!(wrong, "line {number}: nothing came back any more").unwrap();
                    break;
                };
                let status = status.or_else(|| player.usual_status(&expected));
                if heard.is_some() && heard != status {
                    writeln!(wrong, "line {number}: status {heard:?}, not {status:?}").unwrap();
                }
                take_names(&expected, &actual, &mut names);
                let expected = player.instead_of(parsed(&filled_in(message, &names)));
                if !fits(&expected, &actual) {
                    writeln!(wrong, "line {number}:\n  expected {expected}\n  actual   {actual}")
                        .unwrap();
                }
                wire.push(Said::ToClient(actual));
            }
            line => player.act(&line),
        }
    }
    let at_the_end = player.end();
    if !at_the_end.is_empty() {
        writeln!(wrong, "at the end: {at_the_end}").unwrap();
    }
    (wire, wrong)
}

/// What came back.
struct Heard {
    /// Of the response that it came in, over HTTP.
    status: Option<u16>,
    /// Null where a response has no body.
    message: Value,
}

/// Who plays.
enum Player {
    Stdio(Process),
    Http(Box<OverHttp>),
}

impl Player {
    fn send(&mut self, message: &str) {
        match self {
            Self::Stdio(process) => process.send(message),
            Self::Http(client) => client.send(message),
        }
    }

    /// What only HTTP knows.
    fn act(&mut self, line: &Line<'_>) {
        let Self::Http(client) = self else { panic!("{line:?} is for HTTP") };
        match line {
            Line::Close(id) => client.close(id),
            Line::Terminate => client.terminate(),
            Line::Unknown(methods) => client.set_unknown(methods),
            Line::Send(_) | Line::Expect { .. } | Line::Nothing => {}
        }
    }

    fn instead_of(&self, expected: Value) -> Value {
        match self {
            Self::Stdio(_) => expected,
            Self::Http(client) => client.instead_of(expected),
        }
    }

    /// The next message from where the expected one has to come; none when nothing comes any more.
    fn receive(&mut self, expected: &Value) -> Option<Heard> {
        match self {
            Self::Stdio(process) => {
                process.receive().map(|message| Heard { status: None, message })
            }
            Self::Http(client) => client.receive(expected),
        }
    }

    /// The status that such a message comes with, where there is one.
    fn usual_status(&self, expected: &Value) -> Option<u16> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(client) => Some(client.usual_status(expected)),
        }
    }

    /// Ends the input, or the server: what is wrong with that.
    fn end(self) -> String {
        match self {
            Self::Stdio(mut process) => {
                process.input = None;
                if let Some(more) = process.receive() {
                    return format!("unexpected {more}");
                }
                match process.wait().code() {
                    Some(0) => String::new(),
                    _ => "the exit status is not 0".to_owned(),
                }
            }
            Self::Http(client) => client.end(),
        }
    }
}

/// Plays the transcripts whose names begin so, over one transport and the other.
fn check(prefix: &str) {
    check_wire(prefix, against_output_schemas);
}

/// Plays them, and has what went over the wire checked besides.
fn check_wire(prefix: &str, find_faults: fn(&[Said]) -> String) {
    let mut wrong = String::new();
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".txt") || !name.starts_with(prefix) {
            continue;
        }
        count += 1;
        let text = fs::read_to_string(&path).unwrap();
        for transport in [Transport::Stdio, Transport::Http] {
            let place = if prefix == UPSTREAM { with_upstreams() } else { Place::new() };
            let options: &[&str] =
                if name.starts_with(HIDING) { &["--tools", "sessions"] } else { &[] };
            let (wire, mut faults) = play(place, &text, transport, options);
            assert!(!wire.is_empty(), "{name} says nothing");
            faults.push_str(&find_faults(&wire));
            if !faults.is_empty() {
                writeln!(wrong, "{name} over {transport:?}\n{faults}").unwrap();
            }
        }
    }
    assert!(count > 0, "no transcript begins with {prefix}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_first_specification() {
    check("seeds-");
}

#[test]
fn every_revision() {
    check("rev-");
}

/// Those that speak of other servers.
const UPSTREAM: &str = "upstream-";

#[test]
fn upstreams() {
    check(UPSTREAM);
}

#[test]
fn sessions() {
    check("session-");
}

/// Those whose server hides the tools that record nothing.
const HIDING: &str = "tools-sessions";

#[test]
fn tools() {
    check("tools-");
}

#[test]
#[ignore = "needs the official MCP schemas; see CONTRIBUTING.md"]
fn transcripts_match_official_schemas() {
    for prefix in ["seeds-", "rev-", UPSTREAM, "session-", "tools-"] {
        check_wire(prefix, against_official_schemas);
    }
}

/// A new file is served without a word on the first revision, which promises none, and told on others.
#[test]
fn a_change_of_the_files_is_told_where_that_is_promised() {
    for (version, is_promised) in [("2024-11-05", false), ("2025-06-18", true)] {
        let mut process = Process::start();
        let ask = |id: usize, method: &str, params: Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let hello = json!({"protocolVersion": version, "capabilities": {}});
        process.send(ask(0, "initialize", hello));
        assert_eq!(process.receive().unwrap()["result"]["protocolVersion"], version);
        // Whoever has seen no list yet has nothing to be told of.
        process.send(ask(0, "workflow_list", Value::Null));
        assert!(process.receive().unwrap()["result"]["workflows"].is_array());
        let place = process.place.as_ref().unwrap();
        place.write("workflows/late.json", definition("late-comer", "Late"));
        if is_promised {
            for kind in ["resources", "prompts"] {
                let told = process.receive().unwrap();
                assert_eq!(told["method"], format!("notifications/{kind}/list_changed"));
            }
        }
        let start = Instant::now();
        for id in 1.. {
            process.send(ask(id, "workflow_get", json!({"id": "late-comer"})));
            let answer = process.receive().unwrap();
            assert_eq!(answer["id"], id, "{answer}");
            if answer["result"]["id"] == "late-comer" {
                break;
            }
            assert!(!is_promised, "told before it was there");
            assert!(start.elapsed() < PATIENCE, "never served");
            std::thread::sleep(Duration::from_millis(20));
        }
        process.end();
    }
}

/// What `workflow_get` hands out is a definition, by the schema that the server hands out itself.
#[test]
fn what_is_handed_out_fits_the_schema() {
    let mut process = Process::start();
    let mut ask = |method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        process.send(line.to_string());
        process.receive().unwrap()["result"].take()
    };
    ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let read = ask("resources/read", json!({"uri": "workflow-schema://definition"}));
    let schema = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let listed = ask("workflow_list", Value::Null);
    let ids = listed["workflows"].as_array().unwrap();
    assert!(ids.len() > 9, "the bundled ones and the project's");
    for id in ids.iter().map(|workflow| &workflow["id"]) {
        let arguments = json!({"id": id});
        let params = json!({"name": "workflow_get", "arguments": arguments});
        let called = ask("tools/call", params)["structuredContent"].take();
        assert_eq!(&called["id"], id);
        assert_eq!(called, ask("workflow_get", arguments));
        let errors: Vec<String> = schema.iter_errors(&called).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{id}: {errors:?}");
    }
    process.end();
}

/// Cursors lead through everything, once and in order, and end.
#[test]
fn pages_lead_through_everything() {
    let place = Place::new();
    for number in 0..230 {
        let id = format!("flow-{number:03}");
        place.write(&format!("workflows/{id}.json"), definition(&id, "One of many"));
    }
    let mut process = Process::start_in(place);
    let mut ask = |method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        process.send(line.to_string());
        process.receive().unwrap()["result"].take()
    };
    ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    let whole = ask("workflow_list", Value::Null);
    let names = |list: &Value, field: &str| -> Vec<String> {
        let items = list.as_array().unwrap().iter();
        items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
    };
    let expected = names(&whole["workflows"], "id");
    assert!(expected.len() > 230 && expected.is_sorted());
    for (what, field) in [("resources", "name"), ("prompts", "name"), ("workflows", "id")] {
        let mut seen = Vec::new();
        let mut pages = 0;
        let mut params = json!({});
        loop {
            let page = match what {
                "workflows" => {
                    let params = json!({"name": "workflow_list", "arguments": params});
                    ask("tools/call", params)["structuredContent"].take()
                }
                _ => ask(&format!("{what}/list"), params),
            };
            seen.extend(names(&page[what], field));
            pages += 1;
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        seen.retain(|name| name != "workflow-schema");
        assert!(pages > 1, "{what} came on one page");
        assert_eq!(seen, expected, "{what}");
    }
    process.end();
}

/// One line, and where it went.
enum Said {
    ToServer(Value),
    ToClient(Value),
}
