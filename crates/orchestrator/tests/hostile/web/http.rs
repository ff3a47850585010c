//! As much of HTTP as a client needs to be lied to.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

pub(crate) struct Request {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) has_session: bool,
    pub(crate) message: Value,
}

impl Request {
    /// Nothing where the client has hung up.
    pub(crate) fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
        let header =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length = header("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let mut words = head.split_whitespace();
        Some(Self {
            verb: words.next()?.to_ascii_uppercase(),
            path: words.next()?.to_owned(),
            has_session: header("mcp-session-id:").is_some(),
            message: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }
}

/// A whole answer.
pub(crate) fn answer(
    stream: &mut TcpStream,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body)
}

/// The head of an answer whose body comes in pieces.
pub(crate) fn begin(stream: &mut TcpStream, kind: &str) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// One piece of it.
pub(crate) fn piece(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")
}
