//! Attacks on the server over HTTP: what is sent to the real process, and what comes of it. After each of them it answers
//! a good request. The table is a page of the documents, made from what really came back.

mod bodies;
mod credentials;
mod crowds;
mod messages;
mod sessions;
pub(super) mod smuggling;
mod strangers;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::Place;
use super::agent::LETTER;
use super::generated::assert_current;
use super::http_agent::{allow_many_files, is_well};
use super::http_client::{Connection, Request};
use super::http_server::Listening;

/// How long nothing has to come for us to believe that nothing will.
const QUIET: Duration = Duration::from_millis(500);

/// A row of the table.
struct Attack {
    /// What it is called.
    name: &'static str,
    /// What is sent.
    sent: &'static str,
    /// Does it, and says what came of it.
    run: Box<dyn Fn(&Target) -> String + Send>,
}

impl Attack {
    fn new(
        name: &'static str,
        sent: &'static str,
        run: impl Fn(&Target) -> String + Send + 'static,
    ) -> Self {
        Self { name, sent, run: Box::new(run) }
    }

    /// One that is a text, sent as it is. `{host}` is where the server is.
    fn raw(name: &'static str, sent: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(name, sent, move |target| target.answers(target.filled_in(&text)))
    }

    /// One that is a request with something odd about it.
    fn request(name: &'static str, sent: &'static str, request: Request) -> Self {
        Self::new(name, sent, move |target| target.status(&request))
    }
}

/// Rows that are run one after the other against a server of their own. What takes long is in a lane of its own.
struct Lane {
    command: fn(&Place) -> Command,
    attacks: Vec<Attack>,
}

fn lane(attacks: Vec<Attack>) -> Lane {
    Lane { command: |place| place.command(SERVE), attacks }
}

const SERVE: &[&str] = &["serve", "--http", "127.0.0.1:0"];

fn lanes() -> Vec<Lane> {
    let mut lanes = vec![
        lane(strangers::attacks()),
        credentials::lane(),
        lane(sessions::attacks()),
        lane(messages::attacks()),
        lane(smuggling::attacks()),
        lane(bodies::attacks()),
    ];
    lanes.extend(bodies::slow_attacks().into_iter().map(|attack| lane(vec![attack])));
    lanes.push(lane(crowds::attacks()));
    lanes.push(crowds::few_files());
    lanes
}

#[test]
fn generated_table_of_attacks() {
    allow_many_files();
    let lanes = lanes();
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(|| play(lane))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut table = "# Attacks\n\nMade by the tests: each of these is sent to the real server over HTTP, which answers \
        a good request after it. The rows with tokens are of a server that wants them.\n\n\
        | attack | what is sent | what comes back |\n|---|---|---|\n"
        .to_owned();
    for (name, sent, came) in rows {
        table.push_str(&format!("| {name} | {sent} | {came} |\n"));
    }
    assert_current("docs/hosting/attacks.md", &table);
}

fn play(lane: Lane) -> Vec<(&'static str, &'static str, String)> {
    let target = Target::start(lane.command);
    let rows = lane.attacks.into_iter().map(|Attack { name, sent, run }| {
        let came = run(&target);
        target.assert_well(name);
        (name, sent, came)
    });
    let rows = rows.collect();
    target.end();
    rows
}

/// The server that is attacked.
struct Target {
    place: Place,
    server: Listening,
}

impl Target {
    fn start(command: impl Fn(&Place) -> Command) -> Self {
        let place = Place::new();
        place.write("workflows/letter.json", LETTER);
        let server = Listening::spawn(command(&place));
        Self { place, server }
    }

    fn address(&self) -> SocketAddr {
        self.server.address
    }

    fn assert_well(&self, name: &str) {
        // Where tokens are wanted, a good one lies beside the server.
        let token = std::fs::read_to_string(self.place.project().join("good.token"));
        let well = is_well(self.address(), token.ok().as_deref());
        well.unwrap_or_else(|error| panic!("the server is not well after `{name}`: {error}"));
    }

    /// It ends as a server does that nothing has happened to.
    fn end(self) {
        let complaints = self.server.end();
        let bad =
            complaints.iter().find(|line| line.contains("panicked") || line.contains("ERROR"));
        assert_eq!(bad, None);
    }

    fn filled_in(&self, text: &str) -> String {
        text.replace("{host}", &self.address().to_string())
    }

    fn connect(&self) -> Connection {
        Connection::open(self.address()).unwrap()
    }

    /// The status of the answer to a request.
    fn status(&self, request: &Request) -> String {
        match request.send(self.address()) {
            Ok(response) => response.head.status.to_string(),
            Err(error) => gone(&error),
        }
    }

    /// The statuses of everything that comes back for some bytes, and whether the connection is over then.
    fn answers(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut connection = self.connect();
        // Who is not heard to the end may still be answered.
        let _ = connection.send_raw(bytes.as_ref());
        answers(&mut connection)
    }

    /// What the server counts, by the name of the counter.
    fn counted(&self, name: &str) -> u64 {
        let response = Request::new("GET", "/metrics").send(self.address()).unwrap();
        let text = String::from_utf8(response.body).unwrap();
        let counted = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (own, value) = line.strip_prefix("workflowlookup_")?.rsplit_once(' ')?;
            let is_it = own.split('{').next() == Some(name);
            is_it.then(|| value.parse::<u64>().unwrap())
        });
        counted.sum()
    }

    /// Waits until it counts so many.
    fn wait_for(&self, name: &str, wanted: u64) {
        wait_until(&format!("{name} is {wanted}"), || self.counted(name) == wanted);
    }

    /// What the process has in memory, in MiB. None where the system does not say.
    fn memory(&self) -> Option<u64> {
        let status = format!("/proc/{}/status", self.server.child.id());
        let status = std::fs::read_to_string(status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1024)
    }
}

/// Everything that comes back on a connection.
pub(super) fn answers(connection: &mut Connection) -> String {
    let mut came = Vec::new();
    loop {
        let response = connection.head().and_then(|head| connection.body().map(|_| head));
        match response {
            Ok(head) => came.push(head.status.to_string()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut && !came.is_empty() => break,
            Err(error) => {
                came.push(gone(&error));
                break;
            }
        }
        connection.set_patience(QUIET);
    }
    came.join(", ")
}

/// How a connection ends that the other side has ended.
fn gone(error: &io::Error) -> String {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | ConnectionReset | BrokenPipe | ConnectionAborted => "closed".to_owned(),
        _ => panic!("{error}"),
    }
}

/// Waits until something is so, but not for ever.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < super::transcripts::PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A good POST, with this in front of its headers.
fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\n{headers}\r\n{body}"
    )
}

/// A connection without any help.
fn plain(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.address()).unwrap();
    stream.set_read_timeout(Some(super::transcripts::PATIENCE)).unwrap();
    stream.set_write_timeout(Some(super::transcripts::PATIENCE)).unwrap();
    stream
}
