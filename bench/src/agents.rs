//! Agents over HTTP, each with a connection of its own: one call after the other, as fast as they are answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const WAIT: Duration = Duration::from_secs(30);

/// One connection.
pub struct Agent {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Agent {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(WAIT)).expect("a deadline");
        stream.set_nodelay(true).expect("no delay");
        Self { stream: BufReader::new(stream), address }
    }

    /// What a tool returns.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool,
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        let headers = format!(
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let answer = self.post(&headers, &body.to_string());
        let structured = &answer["result"]["structuredContent"];
        assert!(structured.is_object(), "{answer}");
        structured.clone()
    }

    /// Posts a body, and reads the JSON of the answer, which may be the last event of a stream.
    pub fn post(&mut self, headers: &str, body: &str) -> Value {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("a request");
        let mut length = None;
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let text = match length {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        };
        let text = String::from_utf8(text).expect("text");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str(data.unwrap_or(&text)).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line(), 16).expect("a length");
            all.extend(self.bytes(length));
            self.line();
            if length == 0 {
                return all;
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

/// How a load was answered.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Calls per second.
    pub rate: f64,
    /// The 99th percentile, in microseconds.
    pub slow: f64,
}

/// Each of these calls again and again for so long.
pub fn load<T: FnMut() + Send>(callers: Vec<T>, time: Duration) -> Figure {
    let begun = Instant::now();
    let end = begun + time;
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let running: Vec<_> = callers
            .into_iter()
            .map(|mut call| {
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while Instant::now() < end {
                        let begun = Instant::now();
                        call();
                        times.push(begun.elapsed().as_secs_f64() * 1e6);
                    }
                    times
                })
            })
            .collect();
        running.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    });
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    Figure { rate, slow: times[times.len() * 99 / 100] }
}
