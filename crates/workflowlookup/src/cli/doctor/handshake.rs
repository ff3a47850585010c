//! A conversation with ourselves, as a client would have it: the server is started with the same
//! sources, asked a few things in both eras of the protocol, and must end when its input does. All of it
//! has one deadline, and the child never outlives it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Check, Level, plural};
use crate::cli::client::SERVE;
use crate::cli::{SourceOptions, program};

const ABOUT: &str = "handshake";
/// How long the whole conversation may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often we look whether the child has ended.
const PAUSE: Duration = Duration::from_millis(2);
/// How long we wait for its last words when it is gone.
const LAST_WORD: Duration = Duration::from_millis(500);
/// How much of what the child says on standard error is kept, and shown.
const COMPLAINT_BYTES_MAX: usize = 4 * 1024;
const COMPLAINT_LINES_MAX: usize = 20;
/// How long a line of the server's may be, and how many may wait to be read.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const LINES_MAX: usize = 16;
/// How many pages of workflows are turned.
const PAGES_MAX: usize = 10_000;
/// How much of a line is shown.
const SHOWN_MAX: usize = 80;

const WITH_HANDSHAKE: &str = "2025-11-25";
const WITHOUT_HANDSHAKE: &str = "2026-07-28";

pub(super) fn look(options: &SourceOptions) -> Vec<Check> {
    let started = program::own_path().and_then(|own| {
        let mut command = Command::new(own);
        command.args(options.absolute()?.words()).args(SERVE);
        Ok(command)
    });
    let check = match started {
        Ok(command) => match shake(command, PATIENCE) {
            Ok(answers) => Check::new(ABOUT, Level::Ok, answers.to_string()),
            Err(trouble) => Check::new(ABOUT, Level::Problem, trouble.to_string())
                .hint("run `workflowlookup serve` and see what it says; if it is a bug, report it"),
        },
        Err(error) => {
            Check::new(ABOUT, Level::Problem, format!("the server cannot be started: {error}"))
        }
    };
    vec![check]
}

/// What the server answered.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    took: Duration,
    revisions: Vec<String>,
    tools: usize,
    workflows: usize,
}

impl std::fmt::Display for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (revisions, took) = (self.revisions.join(" and "), self.took.as_millis());
        let (tools, workflows) = (plural(self.tools, "tool"), plural(self.workflows, "workflow"));
        write!(
            out,
            "the server answers as revisions {revisions}: {tools}, {workflows}, nothing else on \
             standard output, all within {took} ms"
        )
    }
}

/// Why the conversation failed, and what the server said about it.
#[derive(Debug)]
struct Trouble {
    what: String,
    complaint: String,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the server {}", self.what)?;
        if self.complaint.is_empty() {
            return write!(out, "; on standard error it said nothing");
        }
        write!(out, "; on standard error it said:")?;
        let mut lines = self.complaint.lines().take(COMPLAINT_LINES_MAX);
        lines.try_for_each(|line| write!(out, "\n    {line}"))
    }
}

/// Has the whole conversation with a server that is yet to be started.
fn shake(command: Command, patience: Duration) -> Result<Answers, Trouble> {
    let start = Instant::now();
    let mut peer = Peer::start(command, start + patience).map_err(|error| Trouble {
        what: format!("cannot be started: {error}"),
        complaint: String::new(),
    })?;
    match talk(&mut peer) {
        Ok((revisions, tools, workflows)) => {
            Ok(Answers { took: start.elapsed(), revisions, tools, workflows })
        }
        Err(what) => Err(Trouble { what, complaint: peer.complaint() }),
    }
}

/// The conversation; an error goes on from `the server …`.
fn talk(peer: &mut Peer) -> Result<(Vec<String>, usize, usize), String> {
    let about_us = json!({"name": program::NAME, "version": env!("CARGO_PKG_VERSION")});
    let greeting = json!({
        "protocolVersion": WITH_HANDSHAKE, "capabilities": {}, "clientInfo": about_us,
    });
    let hello = peer.ask("initialize", &greeting)?;
    if hello["protocolVersion"] != WITH_HANDSHAKE {
        let revision = shown(&hello["protocolVersion"].to_string());
        return Err(format!("was asked for revision {WITH_HANDSHAKE} and offers {revision}"));
    }
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let tools = peer.ask("tools/list", &json!({}))?;
    let tools = tools["tools"].as_array().ok_or("lists no tools")?.len();
    let workflows = count_workflows(peer)?;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": WITHOUT_HANDSHAKE,
        "io.modelcontextprotocol/clientInfo": about_us,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discovered = peer.ask("server/discover", &json!({"_meta": meta}))?;
    let versions = discovered["supportedVersions"].as_array();
    if !versions.is_some_and(|versions| versions.iter().any(|name| name == WITHOUT_HANDSHAKE)) {
        return Err(format!("does not offer revision {WITHOUT_HANDSHAKE}"));
    }
    peer.part()?;
    Ok((vec![WITH_HANDSHAKE.to_owned(), WITHOUT_HANDSHAKE.to_owned()], tools, workflows))
}

/// Turns the pages of `workflow_list`.
fn count_workflows(peer: &mut Peer) -> Result<usize, String> {
    let mut count = 0;
    let mut arguments = json!({});
    for _ in 0..PAGES_MAX {
        let call = json!({"name": "workflow_list", "arguments": arguments});
        let page = &peer.ask("tools/call", &call)?["structuredContent"];
        let workflows = page["workflows"].as_array();
        count += workflows.ok_or("lists no workflows when `workflow_list` is called")?.len();
        match &page["nextCursor"] {
            Value::Null => return Ok(count),
            cursor => arguments = json!({"cursor": cursor}),
        }
    }
    Err(format!("lists workflows on more than {PAGES_MAX} pages"))
}

/// The server as a process. It is killed when this goes away.
struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    complaint: Arc<Mutex<Vec<u8>>>,
    /// Closed when standard error is.
    last_word: Receiver<()>,
    deadline: Instant,
    last_id: u64,
}

impl Peer {
    fn start(mut command: Command, deadline: Instant) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let (sender, lines) = sync_channel(LINES_MAX);
        // Nobody waits for these threads: a grandchild may hold the pipes open as long as it likes.
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while (&mut output)
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line)
                    .is_ok_and(|count| count > 0)
                {
                    if sender.send(std::mem::take(&mut line)).is_err() {
                        break;
                    }
                }
            });
        }
        let complaint = Arc::new(Mutex::new(Vec::new()));
        let (end, last_word) = sync_channel(1);
        if let Some(stderr) = child.stderr.take() {
            let complaint = Arc::clone(&complaint);
            thread::spawn(move || {
                collect(stderr, &complaint);
                drop(end);
            });
        }
        Ok(Self { child, input, lines, complaint, last_word, deadline, last_id: 0 })
    }

    /// The result of a request. A notification may come in between; anything else must not.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let late = || format!("did not answer `{method}` in time, and was stopped");
            let Some(mut message) = self.receive(late)? else {
                return Err(self.ended_early(method));
            };
            if is_notification(&message) {
                continue;
            }
            if message["id"] != id {
                return Err(strange(&message.to_string()));
            }
            return match message.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => {
                    Err(format!("refuses `{method}`: {}", shown(&message["error"].to_string())))
                }
            };
        }
    }

    fn send(&mut self, message: &Value) {
        // A server that is gone shows when its answer does not come.
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{message}");
        }
    }

    /// The next message; none where the output has ended.
    fn receive(&mut self, late: impl FnOnce() -> String) -> Result<Option<Value>, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(late()),
            Ok(line) => match serde_json::from_slice::<Value>(&line) {
                Ok(message) if message["jsonrpc"] == "2.0" => Ok(Some(message)),
                _ => Err(strange(&String::from_utf8_lossy(&line))),
            },
        }
    }

    /// Closes the input: the server must end by itself, well, and without another word.
    fn part(&mut self) -> Result<(), String> {
        self.input = None;
        let late = || "did not end when its input was closed, and was stopped".to_owned();
        loop {
            match self.receive(late)? {
                Some(message) if is_notification(&message) => {}
                Some(message) => return Err(strange(&message.to_string())),
                None => break,
            }
        }
        match self.wait() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("ended with {status} when its input was closed")),
            None => Err(late()),
        }
    }

    fn ended_early(&mut self, method: &str) -> String {
        match self.wait() {
            Some(status) => format!("ended with {status} instead of answering `{method}`"),
            None => format!("closed its output instead of answering `{method}`"),
        }
    }

    /// How the child ended, if it does in time.
    fn wait(&mut self) -> Option<ExitStatus> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= self.deadline {
                return None;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Stops the child, and returns what it said.
    fn complaint(mut self) -> String {
        self.stop();
        // The last words may still be on their way, and the pipe may be somebody else's too.
        let _ = self.last_word.recv_timeout(LAST_WORD);
        let complaint = self.complaint.lock();
        String::from_utf8_lossy(&complaint).trim_end().to_owned()
    }

    fn stop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keeps the beginning, and reads on, so that nobody waits for a full pipe.
fn collect(mut stderr: impl Read, complaint: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut bytes) {
        let mut complaint = complaint.lock();
        let room = COMPLAINT_BYTES_MAX.saturating_sub(complaint.len());
        complaint.extend_from_slice(&bytes[..count.min(room)]);
    }
}

fn is_notification(message: &Value) -> bool {
    message["method"].is_string() && message.get("id").is_none()
}

fn strange(line: &str) -> String {
    format!("wrote something on standard output that nobody waits for: `{}`", shown(line))
}

fn shown(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// What is made of a server that is this shell script.
    fn verdict(script: &str, patience: Duration) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        match shake(command, patience) {
            Ok(answers) => Answers { took: Duration::ZERO, ..answers }.to_string(),
            Err(trouble) => trouble.to_string(),
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Answers as a good server does, with this at the end.
    fn good_until(end: &str) -> String {
        let answer = |id: u64, result: &str| {
            format!("read -r _; echo '{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}'\n")
        };
        [
            answer(1, r#"{"protocolVersion":"2025-11-25"}"#),
            "read -r _\n".to_owned(),
            r#"echo '{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}'"#
                .to_owned(),
            "\n".to_owned(),
            answer(2, r#"{"tools":[{},{}]}"#),
            answer(3, r#"{"structuredContent":{"workflows":[{}]}}"#),
            answer(4, r#"{"supportedVersions":["2026-07-28"]}"#),
            end.to_owned(),
        ]
        .concat()
    }

    #[test]
    fn a_good_server_is_told_from_one_that_ends_badly() {
        insta::assert_snapshot!(verdict(&good_until("read -r _; exit 0"), LONG), @"the server answers as revisions 2025-11-25 and 2026-07-28: 2 tools, 1 workflow, nothing else on standard output, all within 0 ms");
        insta::assert_snapshot!(verdict(&good_until("read -r _; echo no >&2; exit 3"), LONG), @"
        the server ended with exit status: 3 when its input was closed; on standard error it said:
            no
        ");
        insta::assert_snapshot!(verdict(&good_until("read -r _; echo bye"), LONG), @"the server wrote something on standard output that nobody waits for: `bye`; on standard error it said nothing");
        let short = Duration::from_secs(3);
        insta::assert_snapshot!(verdict(&good_until("exec sleep 60"), short), @"the server did not end when its input was closed, and was stopped; on standard error it said nothing");
    }

    #[test]
    fn a_server_that_does_not_answer_is_explained() {
        insta::assert_snapshot!(verdict("echo cannot open >&2; echo a thing >&2; exit 7", LONG), @"
        the server ended with exit status: 7 instead of answering `initialize`; on standard error it said:
            cannot open
            a thing
        ");
        insta::assert_snapshot!(verdict("kill -9 $$", LONG), @"the server ended with signal: 9 (SIGKILL) instead of answering `initialize`; on standard error it said nothing");
        let short = Duration::from_millis(300);
        insta::assert_snapshot!(verdict("echo waiting >&2; exec sleep 60", short), @"
        the server did not answer `initialize` in time, and was stopped; on standard error it said:
            waiting
        ");
        // A grandchild that keeps the pipes open does not keep us.
        let start = Instant::now();
        insta::assert_snapshot!(verdict("sleep 20; true", short), @"the server did not answer `initialize` in time, and was stopped; on standard error it said nothing");
        assert!(start.elapsed() < Duration::from_secs(15), "nobody waits for the grandchild");
        let mut command = Command::new("./no-such-server");
        command.arg("serve");
        let trouble = shake(command, LONG).unwrap_err().to_string();
        assert!(trouble.starts_with("the server cannot be started: "), "{trouble}");
    }

    #[test]
    fn a_server_that_answers_nonsense_is_explained() {
        insta::assert_snapshot!(verdict("echo Hello, I am your server; exec sleep 60", LONG), @"the server wrote something on standard output that nobody waits for: `Hello, I am your server`; on standard error it said nothing");
        insta::assert_snapshot!(
            verdict(r#"echo '{"jsonrpc":"2.0","id":9,"result":{}}'; exec sleep 60"#, LONG), @r#"the server wrote something on standard output that nobody waits for: `{"id":9,"jsonrpc":"2.0","result":{}}`; on standard error it said nothing"#);
        insta::assert_snapshot!(
            verdict(r#"echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}'; exec sleep 60"#, LONG), @r#"the server refuses `initialize`: {"code":-32603}; on standard error it said nothing"#);
        insta::assert_snapshot!(
            verdict(r#"echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999"}}'; exec sleep 60"#, LONG), @r#"the server was asked for revision 2025-11-25 and offers "1999"; on standard error it said nothing"#);
        insta::assert_snapshot!(verdict("exec yes", LONG), @"the server wrote something on standard output that nobody waits for: `y`; on standard error it said nothing");
        insta::assert_snapshot!(verdict("exec yes >&2", Duration::from_millis(500)).lines().count(), @"21");
    }
}
