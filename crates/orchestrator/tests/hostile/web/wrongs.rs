//! What it does wrong. It hangs up after each.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::Shared;
use super::http::{self, Request, begin, piece};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    NotHttp,
    HangUp,
    Always500,
    AlwaysSilent,
    AlwaysHtml,
    AlwaysAccepted,
    AlwaysEvents,
    Always401,
    Status500,
    Silent,
    Accepted,
    Html,
    Forgets,
    ForgetsAgain,
    HalfABody,
    EndlessBody,
    EndlessHeaders,
    SlowBody,
    SlowHeaders,
    Compressed,
    WrongId,
    HalfJson,
    HalfAnEvent,
    EndlessEvents,
    EndlessComments,
    EndlessEvent,
    GarbageEvents,
    OnlyGarbage,
    Elsewhere,
    Circle,
    OddSession,
    SilentBeside,
    GarbageBeside,
    SilentAtTheEnd,
}

impl Does {
    /// Whether this request is the one that it does it to.
    pub(super) fn is_about(self, request: &Request) -> bool {
        match self {
            Self::NotHttp
            | Self::HangUp
            | Self::Always500
            | Self::AlwaysSilent
            | Self::AlwaysHtml
            | Self::AlwaysAccepted
            | Self::AlwaysEvents
            | Self::Always401 => true,
            Self::Forgets => request.has_session,
            Self::OddSession => request.message["method"] == "initialize",
            Self::SilentBeside | Self::GarbageBeside => request.verb == "GET",
            Self::SilentAtTheEnd => request.verb == "DELETE",
            _ => request.message["params"]["name"] == "slow",
        }
    }
}

const EVENTS: &str = "text/event-stream";
const JSON: (&str, &str) = ("content-type", "application/json");
const HTML: (&str, &str) = ("content-type", "text/html");
const NEWS: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
const GARBAGE: &[u8] = b"event: message\ndata: {\"jsonrpc\":\n\ndata: \xff\xfe\n\nnonsense\n\n: comment\n\nretry: x\nid: \0\ndata\n\n\
    event: other\ndata: 5\n\ndata: [1, 2]\n\ndata: {}\n\n";

/// Does it. Where writing fails, the client has hung up, which is what it should do.
pub(super) fn answer(shared: &Shared, request: &Request, stream: &mut TcpStream) {
    let _ = try_to_answer(shared, request, stream);
}

fn try_to_answer(
    shared: &Shared,
    request: &Request,
    stream: &mut TcpStream,
) -> std::io::Result<()> {
    let right = || shared.right_answer(&request.message).unwrap_or_default();
    let whole = |stream: &mut TcpStream, status: &str, header, body: &str| {
        http::answer(stream, status, &[header], body.as_bytes())
    };
    match shared.does {
        Does::NotHttp => stream.write_all(b"220 mail.example.com ESMTP ready\r\n"),
        Does::HangUp => Ok(()),
        Does::Always500 | Does::Status500 => whole(
            stream,
            "500 Internal Server Error",
            ("content-type", "text/plain"),
            "it is on fire",
        ),
        Does::AlwaysSilent | Does::Silent | Does::SilentBeside | Does::SilentAtTheEnd => {
            until_hung_up(stream)
        }
        Does::AlwaysHtml | Does::Html => whole(stream, "200 OK", HTML, "<html>Welcome!</html>"),
        Does::Always401 => {
            whole(stream, "401 Unauthorized", ("www-authenticate", "Basic realm=\"x\""), "")
        }
        Does::Accepted | Does::AlwaysAccepted => whole(stream, "202 Accepted", JSON, ""),
        Does::Forgets | Does::ForgetsAgain => whole(stream, "404 Not Found", JSON, ""),
        Does::HalfABody => {
            let text = right();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(&text.as_bytes()[..text.len() / 2])
        }
        Does::EndlessBody => {
            begin(stream, "application/json")?;
            piece(stream, b"{\"jsonrpc\":\"2.0\",\"result\":\"")?;
            endless(stream)
        }
        Does::EndlessHeaders => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            for number in 0_u64.. {
                stream.write_all(format!("x-{number}: {}\r\n", "y".repeat(1000)).as_bytes())?;
            }
            Ok(())
        }
        Does::SlowBody => {
            let text = right();
            begin(stream, "application/json")?;
            slowly(stream, text.as_bytes(), piece)
        }
        Does::SlowHeaders => slowly(
            stream,
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
            |stream, byte| stream.write_all(byte),
        ),
        Does::Compressed => {
            // The beginning of what `gzip` makes; nobody should look further.
            let headers = [JSON, ("content-encoding", "gzip")];
            http::answer(stream, "200 OK", &headers, b"\x1f\x8b\x08\0\0\0\0\0\0\x03")
        }
        Does::WrongId => {
            whole(stream, "200 OK", JSON, r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#)
        }
        Does::HalfJson => whole(stream, "200 OK", JSON, r#"{"jsonrpc":"2.0","id":"#),
        Does::HalfAnEvent => {
            begin(stream, EVENTS)?;
            let event = format!("data: {}", right());
            piece(stream, &event.as_bytes()[..event.len() / 2])
        }
        Does::EndlessEvents | Does::AlwaysEvents => repeat(stream, NEWS),
        Does::EndlessComments => repeat(stream, b": still here\n\n"),
        Does::EndlessEvent => {
            begin(stream, EVENTS)?;
            piece(stream, b"data: ")?;
            endless(stream)
        }
        Does::GarbageEvents => {
            begin(stream, EVENTS)?;
            piece(stream, GARBAGE)?;
            piece(stream, format!("data: {}\n\n", right()).as_bytes())?;
            piece(stream, b"")
        }
        Does::OnlyGarbage => {
            begin(stream, EVENTS)?;
            piece(stream, GARBAGE)?;
            piece(stream, b"")
        }
        Does::GarbageBeside => repeat(stream, GARBAGE),
        Does::Elsewhere => {
            let to = format!("http://{}/mcp", shared.elsewhere);
            whole(stream, "307 Temporary Redirect", ("location", &to), "")
        }
        Does::Circle => whole(stream, "307 Temporary Redirect", ("location", "/mcp"), ""),
        Does::OddSession => {
            let text = right();
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: \xff\xfe ",
            )?;
            stream.write_all(&[b's'; 4000])?;
            stream.write_all(format!("\r\ncontent-length: {}\r\n\r\n{text}", text.len()).as_bytes())
        }
    }
}

fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        piece(stream, &[b'z'; 64 * 1024])?;
    }
}

fn repeat(stream: &mut TcpStream, event: &[u8]) -> std::io::Result<()> {
    begin(stream, EVENTS)?;
    loop {
        piece(stream, event)?;
    }
}

fn slowly(
    stream: &mut TcpStream,
    bytes: &[u8],
    write: impl Fn(&mut TcpStream, &[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for byte in bytes {
        write(stream, &[*byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    until_hung_up(stream)
}

fn until_hung_up(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 1024])? > 0 {}
    Ok(())
}
