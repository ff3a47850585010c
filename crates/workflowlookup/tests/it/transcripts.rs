//! Golden transcripts: `tests/transcripts/*.txt`, played against the real process. Lines starting `>` go
//! in, `<` are expected back, `#` explains. `"$name"` takes what stands there, for the lines that follow. They are written by hand and never rewritten. What goes over the
//! wire is also held against the official schema of its revision, where that is at hand.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Place, definition};

mod schemas;

use schemas::{against_output_schemas, against_schemas};

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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// What was given names in a transcript: ids that are random.
type Names = HashMap<String, String>;

/// A line of a transcript with the names that are known filled in.
fn filled_in(line: &str, names: &Names) -> String {
    names.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value))
}

/// Takes what stands where a name stands in what is expected.
fn take_names(expected: &Value, actual: &Value, names: &mut Names) {
    match (expected, actual) {
        (Value::String(name), Value::String(value)) if name.starts_with('$') => {
            names.insert(name.clone(), value.clone());
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.iter().zip(actual).for_each(|(e, a)| take_names(e, a, names));
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let both = expected.iter().filter_map(|(name, e)| Some((e, actual.get(name)?)));
            both.for_each(|(e, a)| take_names(e, a, names));
        }
        _ => {}
    }
}

/// Whether an answer is the expected one. `"…"` stands for any string, `{"…": "…"}` for any object, and
/// as the last item of an array for whatever else it holds. A text that is JSON is compared as such.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(expected), Value::String(actual)) if expected.starts_with('{') => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
            parsed(expected).zip(parsed(actual)).is_some_and(|(e, a)| fits(&e, &a))
        }
        (Value::String(expected), Value::String(actual)) => expected == "…" || expected == actual,
        (Value::Array(expected), Value::Array(actual)) => match expected.split_last() {
            Some((last, expected)) if last == "…" => {
                expected.len() <= actual.len() && expected.iter().zip(actual).all(both)
            }
            _ => expected.len() == actual.len() && expected.iter().zip(actual).all(both),
        },
        (Value::Object(expected), Value::Object(actual)) => {
            let is_any = expected.len() == 1 && expected.contains_key("…");
            is_any
                || expected.len() == actual.len()
                    && expected.iter().all(|(name, value)| {
                        actual.get(name).is_some_and(|actual| fits(value, actual))
                    })
        }
        _ => expected == actual,
    }
}

fn both((expected, actual): (&Value, &Value)) -> bool {
    fits(expected, actual)
}

/// Plays a transcript; what went over the wire, and what did not come out as written.
fn play(text: &str) -> (Vec<Said>, String) {
    let mut process = Process::start();
    let mut wire = Vec::new();
    let mut wrong = String::new();
    let mut names = Names::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = &*filled_in(line, &names);
        if let Some(line) = line.strip_prefix("> ") {
            process.send(line);
            wire.extend(serde_json::from_str(line).map(Said::ToServer));
        } else if let Some(line) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("line {number} is not JSON: {error}"));
            let Some(actual) = process.receive() else {
                writeln!(wrong, "line {number}: nothing came back any more").unwrap();
                break;
            };
            take_names(&expected, &actual, &mut names);
            let expected = serde_json::from_str(&filled_in(line, &names)).unwrap();
            if !fits(&expected, &actual) {
                writeln!(wrong, "line {number}:\n  expected {expected}\n  actual   {actual}")
                    .unwrap();
            }
            wire.push(Said::ToClient(actual));
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "line {number}: {line}");
        }
    }
    process.input = None;
    if let Some(more) = process.receive() {
        writeln!(wrong, "at the end:\n  unexpected {more}").unwrap();
    } else if process.wait().code() != Some(0) {
        writeln!(wrong, "at the end: the exit status is not 0").unwrap();
    }
    (wire, wrong)
}

/// Plays the transcripts whose names begin so.
fn check(prefix: &str) {
    let mut wrong = String::new();
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".txt") || !name.starts_with(prefix) {
            continue;
        }
        count += 1;
        let (wire, mut faults) = play(&fs::read_to_string(&path).unwrap());
        faults.push_str(&against_schemas(&wire));
        faults.push_str(&against_output_schemas(&wire));
        if !faults.is_empty() {
            writeln!(wrong, "{name}\n{faults}").unwrap();
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

#[test]
fn sessions() {
    check("session-");
}

#[test]
fn a_pattern_fits_what_it_says_and_nothing_else() {
    for (expected, actual, is_fit) in [
        (json!("…"), json!("x"), true),
        (json!("…"), json!(1), false),
        (json!({"…": "…"}), json!({"a": 1}), true),
        (json!({"…": "…"}), json!([]), false),
        (json!(["…"]), json!([1, 2]), true),
        (json!(["…"]), json!({}), false),
        (json!([1, "…"]), json!([1, 2, 3]), true),
        (json!([1, "…"]), json!([2, 3]), false),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        (json!([1]), json!([1, 2]), false),
        (json!(null), json!(0), false),
        (json!(r#"{"a": "…", "b": 1}"#), json!(r#"{"b":1,"a":"x"}"#), true),
        (json!(r#"{"a": 1}"#), json!(r#"{"a":2}"#), false),
        (json!(r#"{"a": 1}"#), json!("a"), false),
    ] {
        assert_eq!(fits(&expected, &actual), is_fit, "{expected} {actual}");
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
