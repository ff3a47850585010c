//! A small HTTP/1.1 client: it sends what it is told, however odd, and waits for nothing longer than its patience.
//! One connection carries one request after the other, and gives a body as it arrives, so that an event stream can be
//! read while it goes on.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::transcripts::PATIENCE;

/// A request: its line, its headers and its body.
#[derive(Debug, Clone)]
pub(super) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub(super) fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { method, path, headers: Vec::new(), body: None }
    }

    /// A message to an MCP endpoint.
    pub(super) fn post(body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", "/mcp")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// The stream of what an MCP client is told without having asked.
    pub(super) fn listen(session: &str) -> Self {
        Self::new("GET", "/mcp")
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", session)
    }

    /// Adds a header, or puts it in the place of the one that was there.
    /// The same, to another path.
    pub(super) fn at(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(had, _)| !had.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Says something more in the `_meta` of its message.
    pub(super) fn with_meta(self, key: &str, value: &str) -> Self {
        let mut message: serde_json::Value =
            serde_json::from_slice(self.body.as_deref().unwrap()).unwrap();
        message["params"]["_meta"][key] = value.into();
        self.body(message.to_string())
    }

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends it on a connection of its own, and reads the response to its end.
    pub(super) fn send(&self, address: SocketAddr) -> io::Result<Response> {
        Connection::open(address)?.ask(self)
    }

    /// As it goes over the wire. A `Host` and a `Content-Length` of its own are left as they are.
    fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let has = |name: &str| self.headers.iter().any(|(had, _)| had.eq_ignore_ascii_case(name));
        if !has("Host") {
            text.push_str(&format!("Host: {address}\r\n"));
        }
        if let Some(body) = &self.body
            && !has("Content-Length")
        {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        [text.as_bytes(), self.body.as_deref().unwrap_or_default()].concat()
    }
}

/// The beginning of a response.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(had, _)| had.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn is_stream(&self) -> bool {
        self.header("Content-Type") == Some("text/event-stream")
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }
}

/// What stands between two blank lines of an event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) retry: Option<String>,
    pub(super) data: String,
}

/// How the rest of a body is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    Bytes(usize),
    /// So much of a chunk is left, and more may follow.
    Chunk(usize),
    /// Whatever comes before the other side goes.
    UntilEnd,
}

pub(super) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    /// What has arrived, and was not taken yet.
    arrived: Vec<u8>,
    rest: Rest,
    /// Text of an event that is not complete yet.
    text: String,
    patience: Duration,
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    /// Goes on with a connection that something was sent on already.
    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        let address = stream.peer_addr()?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (arrived, text) = (Vec::new(), String::new());
        Ok(Self { stream, address, arrived, rest: Rest::Nothing, text, patience: PATIENCE })
    }

    /// How long to wait for each thing that is to be read. Then it is an error of the kind `TimedOut`.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Another hold of the same connection, by which it can be cut while somebody reads it.
    pub(super) fn stream(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    pub(super) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A request, and its whole response.
    pub(super) fn ask(&mut self, request: &Request) -> io::Result<Response> {
        let head = self.begin(request)?;
        Ok(Response { head, body: self.body()? })
    }

    /// A request, and the beginning of its response.
    pub(super) fn begin(&mut self, request: &Request) -> io::Result<Head> {
        self.send_raw(&request.bytes(self.address))?;
        self.head()
    }

    /// The beginning of the next response.
    pub(super) fn head(&mut self) -> io::Result<Head> {
        let until = self.deadline();
        let first = self.line(until)?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| odd(&first))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line(until)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| odd(&line))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let head = Head { status, headers };
        let is_chunked = head.header("Transfer-Encoding").is_some();
        self.rest = match head.header("Content-Length") {
            _ if is_chunked => Rest::Chunk(0),
            _ if matches!(status, 100..200 | 204 | 304) => Rest::Nothing,
            Some(length) => Rest::Bytes(length.parse().map_err(|_| odd(length))?),
            None => Rest::UntilEnd,
        };
        Ok(head)
    }

    /// The body of the response, to its end.
    pub(super) fn body(&mut self) -> io::Result<Vec<u8>> {
        let until = self.deadline();
        let mut body = Vec::new();
        while let Some(piece) = self.piece(until)? {
            body.extend(piece);
        }
        Ok(body)
    }

    /// The next event of a stream; none when that is over. What only says that the server is still there is none.
    pub(super) fn event(&mut self) -> io::Result<Option<Event>> {
        let until = self.deadline();
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = Event::read(block);
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            let Some(piece) = self.piece(until)? else {
                return if self.text.is_empty() { Ok(None) } else { Err(odd(&self.text)) };
            };
            self.text.push_str(&String::from_utf8(piece).map_err(|error| odd(&error.to_string()))?);
        }
    }

    /// The next piece of a body; none at its end.
    fn piece(&mut self, until: Instant) -> io::Result<Option<Vec<u8>>> {
        if self.rest == Rest::Chunk(0) {
            let size = self.line(until)?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| odd(&size))?;
            self.rest = Rest::Chunk(size);
            if size == 0 {
                while !self.line(until)?.is_empty() {}
                self.rest = Rest::Nothing;
            }
        }
        let most = match self.rest {
            Rest::Nothing | Rest::Bytes(0) => return Ok(None),
            Rest::Bytes(left) | Rest::Chunk(left) => left,
            Rest::UntilEnd => usize::MAX,
        };
        if self.arrived.is_empty() && !self.read(until)? {
            return match self.rest {
                Rest::UntilEnd => Ok(None),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let count = most.min(self.arrived.len());
        let piece = self.arrived.drain(..count).collect();
        match &mut self.rest {
            Rest::Bytes(left) => *left -= count,
            Rest::Chunk(left) => {
                *left -= count;
                if *left == 0 && !self.line(until)?.is_empty() {
                    return Err(odd("a chunk that does not end where it should"));
                }
            }
            Rest::Nothing | Rest::UntilEnd => {}
        }
        Ok(Some(piece))
    }

    fn line(&mut self, until: Instant) -> io::Result<String> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.arrived) {
                let line: Vec<u8> = self.arrived.drain(..=end).collect();
                let line = String::from_utf8(line).map_err(|error| odd(&error.to_string()))?;
                return line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| odd(&line));
            }
            if !self.read(until)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether more has come; nothing more comes once the other side is gone.
    fn read(&mut self, until: Instant) -> io::Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.arrived.extend_from_slice(&bytes[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::TimedOut.into())
            }
            // A read with a limit is not taken up again by the system when a child of ours has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.read(until),
            Err(error) => Err(error),
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }
}

impl Event {
    fn read(block: &str) -> Option<Self> {
        let mut event = Self::default();
        let mut is_empty = true;
        for line in block.lines().filter(|line| !line.starts_with(':')) {
            is_empty = false;
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match name {
                "id" => event.id = Some(value),
                "retry" => event.retry = Some(value),
                "data" => event.data.push_str(&value),
                "event" => assert_eq!(value, "message"),
                _ => panic!("`{name}` is no field of an event"),
            }
        }
        (!is_empty).then_some(event)
    }
}

fn odd(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is no HTTP: {text:?}"))
}
