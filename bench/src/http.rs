//! Over HTTP: how fast calls are answered under load, by turns with a bare handler and with rmcp, and what clients
//! cost that are only there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 5;
const SECONDS: u32 = 2;
const STREAMS: usize = 5_000;
const HANDSHAKES: usize = 100_000;
const WAIT: Duration = Duration::from_secs(30);

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let folder = home.join("http");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut rows = under_load(programs, &folder, details);
    rows.push(idle_streams(programs, &folder));
    rows.push(handshakes(programs, &folder));
    rows
}

/// A server that listens. Ended when it is dropped.
pub struct Listening {
    child: Child,
    pub address: SocketAddr,
}

impl Listening {
    pub fn start(program: &Path, arguments: &[&str], folder: &Path) -> Self {
        Self::start_with(program, arguments, folder, &[])
    }

    /// The same with more in its environment.
    pub fn start_with(
        program: &Path,
        arguments: &[&str],
        folder: &Path,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut lines = BufReader::new(child.stderr.take().expect("its words")).lines();
        let line = lines.next().expect("where it listens").expect("a line");
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once('/'));
        let address = address.and_then(|(address, _)| address.parse().ok()).expect("an address");
        // Nobody reads further; what it still says is not worth waiting for.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    fn ours(programs: &Programs, folder: &Path) -> Self {
        Self::start(&programs.product, &["serve", "--http", "127.0.0.1:0"], folder)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(WAIT)).expect("a deadline");
        stream
    }

    /// What it holds in memory, in KiB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the process's status");
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = size.and_then(|size| size.trim().strip_suffix(" kB"));
        kibibytes.and_then(|size| size.parse().ok()).expect("a size")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn under_load(programs: &Programs, folder: &Path, details: &mut Details) -> Vec<Row> {
    let next = json!({"name": "workflow_next", "arguments": {
        "workflowId": "ai-task-implementation",
        "completedSteps": ["understand"],
        "context": {"taskId": "TASK-123", "taskSize": "medium"},
    }});
    let echo = json!({"name": "echo", "arguments": {"text": "a short text that comes back"}});
    let called = [
        (
            "workflowlookup",
            Listening::ours(programs, folder),
            Load::new(folder, "ours", next.clone()),
        ),
        (
            "bare axum handler",
            Listening::start(&programs.bare_axum, &[], folder),
            Load::new(folder, "bare", next),
        ),
        (
            "rmcp, Streamable HTTP",
            Listening::start(&programs.rmcp_echo, &["http"], folder),
            Load::new(folder, "rmcp", echo.clone()),
        ),
        (
            "rmcp, Streamable HTTP, plain answers",
            Listening::start(&programs.rmcp_echo, &["http-json"], folder),
            Load::new(folder, "rmcp-json", echo),
        ),
    ];
    let mut figures = [const { Vec::new() }; 4];
    for (_, server, load) in &called {
        load.run(server.address, 1);
    }
    for round in 0..ROUNDS {
        for turn in 0..called.len() {
            let at = (round + turn) % called.len();
            let (_, server, load) = &called[at];
            figures[at].push(load.run(server.address, SECONDS));
        }
    }
    for ((name, ..), figures) in called.iter().zip(&figures) {
        let of = |pick: fn(&Figure) -> f64| median(figures.iter().map(pick).collect());
        details.http.push((name, of(|figure| figure.rate), of(|figure| figure.slow / 1000.0)));
    }
    let [ours, bare, rmcp, rmcp_plain] = figures;
    let ratio = |others: &[Figure], pick: fn(&Figure) -> f64| {
        median(ours.iter().zip(others).map(|(ours, other)| pick(ours) / pick(other)).collect())
    };
    vec![
        Row {
            what: "`workflow_next` over HTTP, 64 connections, requests per second",
            yardstick: "a bare axum handler that parses and echoes the same bodies",
            figure: ratio(&bare, |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.5),
        },
        Row {
            what: "`workflow_next` over HTTP, 64 connections, requests per second",
            yardstick: "an echo tool on rmcp's Streamable HTTP server, as it comes",
            figure: ratio(&rmcp, |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(2.0),
        },
        Row {
            what: "`workflow_next` over HTTP, 64 connections, requests per second",
            yardstick: "the same told to give plain answers, its fastest",
            figure: ratio(&rmcp_plain, |figure| figure.rate),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(1.3),
        },
        Row {
            what: "Of these, the 99th percentile of the time to an answer",
            yardstick: "the bare axum handler's",
            figure: ratio(&bare, |figure| figure.slow),
            unit: Unit::Ratio,
            limit: Limit::AtMost(3.0),
        },
    ]
}

/// What `wrk` sends.
struct Load {
    script: std::path::PathBuf,
}

struct Figure {
    /// Requests per second.
    rate: f64,
    /// The 99th percentile, in microseconds.
    slow: f64,
}

impl Load {
    fn new(folder: &Path, name: &str, call: Value) -> Self {
        let script = folder.join(format!("{name}.lua"));
        let body = modern("tools/call", call.clone());
        let text = format!(
            r#"wrk.method = "POST"
wrk.body = [==[{body}]==]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2026-07-28"
wrk.headers["Mcp-Method"] = "tools/call"
wrk.headers["Mcp-Name"] = {}
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("figures %d %d %f %d\n", summary.requests, summary.duration, latency:percentile(99), failed))
end
"#,
            call["name"]
        );
        std::fs::write(&script, text).expect("a script");
        Self { script }
    }

    fn run(&self, address: SocketAddr, seconds: u32) -> Figure {
        let output = Command::new("wrk")
            .args(["-t1", "-c64", &format!("-d{seconds}s"), "-s"])
            .arg(&self.script)
            .arg(format!("http://{address}/mcp"))
            .output()
            .expect("`wrk`, which `cargo xtask bench` looks for");
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.lines().find_map(|line| line.strip_prefix("figures "));
        let figures: Vec<f64> = figures
            .unwrap_or_else(|| panic!("{text}"))
            .split(' ')
            .map(|figure| figure.parse().expect("a figure"))
            .collect();
        let [requests, duration, slow, failed] = figures[..] else { panic!("{text}") };
        assert_eq!(failed, 0.0, "every request has a good answer: {text}");
        Figure { rate: requests / duration * 1e6, slow }
    }
}

pub fn modern(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn post(address: SocketAddr, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Clients that listen and hear nothing.
fn idle_streams(programs: &Programs, folder: &Path) -> Row {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("as many open files as there may be");
    let server = Listening::ours(programs, folder);
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    let body = modern(
        "subscriptions/listen",
        json!({"notifications": {"resourcesListChanged": true, "promptsListChanged": true}}),
    );
    let request = post(server.address, headers, &body);
    let open = || {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("a server that reads");
        let mut answer = [0; 1024];
        let mut text = String::new();
        while !text.contains("notifications/subscriptions/acknowledged") {
            assert!(!text.starts_with("HTTP/1.1 4"), "{text}");
            let length = stream.read(&mut answer).expect("an answer");
            assert!(length > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&answer[..length]));
        }
        stream
    };
    let first = open();
    let before = server.memory();
    let streams: Vec<TcpStream> = (0..STREAMS).map(|_| open()).collect();
    let each = (server.memory() - before) / STREAMS as f64;
    drop((first, streams));
    Row {
        what: "An idle event stream, of 5,000",
        yardstick: "",
        figure: each,
        unit: Unit::Kibibytes,
        limit: Limit::AtMost(20.0),
    }
}

/// Clients that shake hands and go away, every other without a goodbye.
fn handshakes(programs: &Programs, folder: &Path) -> Row {
    let server = Listening::ours(programs, folder);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "bench", "version": "0"},
    }});
    let request = post(server.address, "", &body.to_string());
    let mut client = BufReader::new(server.connect());
    let mut shake = |number: usize| {
        client.get_mut().write_all(request.as_bytes()).expect("a server that reads");
        let token = read_answer(&mut client).expect("a session id");
        if number.is_multiple_of(2) {
            let goodbye = format!(
                "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {token}\r\n\r\n",
                server.address
            );
            client.get_mut().write_all(goodbye.as_bytes()).expect("a server that reads");
            read_answer(&mut client);
        }
    };
    (0..100).for_each(&mut shake);
    let before = server.memory();
    (0..HANDSHAKES).for_each(&mut shake);
    Row {
        what: "100,000 handshakes had and left behind: memory more than before",
        yardstick: "",
        figure: ((server.memory() - before) / 1024.0).max(0.0),
        unit: Unit::Mebibytes,
        limit: Limit::AtMost(16.0),
    }
}

/// Reads one answer to its end; the session id in it.
fn read_answer(client: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut token, mut length) = (None, 0);
    let mut line = String::new();
    loop {
        line.clear();
        client.read_line(&mut line).expect("a line");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim_end().is_empty() {
                break;
            }
            assert!(line.starts_with("HTTP/1.1 2"), "{line}");
            continue;
        };
        match name {
            "mcp-session-id" => token = Some(value.to_owned()),
            "content-length" => length = value.parse().expect("a length"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).expect("the body");
    token
}
