//! Parses server-sent events. Unknown fields are ignored, as the standard requires. An event is at most as large as a
//! message.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The delays before a stream is reopened: the default, and the limits of what a server may ask for.
const DELAY: Duration = Duration::from_secs(1);
const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub kind: Option<String>,
    pub data: Option<String>,
    pub id: Option<String>,
    pub retry: Option<Duration>,
}

impl SseEvent {
    /// The JSON-RPC messages of the event. None for events of other types.
    pub fn message(&self) -> Option<&str> {
        let is_message = matches!(self.kind.as_deref(), None | Some("" | "message"));
        self.data.as_deref().filter(|data| is_message && !data.trim().is_empty())
    }
}

/// Where and when to resume a stream that broke.
#[derive(Debug, Clone, Default)]
pub struct Resumption {
    last_event: Option<String>,
    retry: Option<Duration>,
    failures: u32,
}

impl Resumption {
    pub fn observe(&mut self, event: &SseEvent) {
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone());
        }
        self.retry = event.retry.or(self.retry);
    }

    /// The value of `Last-SseEvent-ID`. A response without one cannot be resumed.
    pub fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// How long to wait before the stream is reopened: as the server says, and longer after each failure.
    pub fn delay(&self) -> Duration {
        let growing = DELAY.saturating_mul(2_u32.saturating_pow(self.failures)).min(DELAY_MAX);
        match self.retry.map(|retry| retry.clamp(DELAY_MIN, DELAY_MAX)) {
            Some(retry) if self.failures == 0 => retry,
            Some(retry) => growing.max(retry),
            None => growing,
        }
    }

    pub fn record_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    pub fn record_success(&mut self) {
        self.failures = 0;
    }
}

/// Parses events from chunks of a body.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The beginning of the current line, from earlier chunks.
    line: Vec<u8>,
    event: SseEvent,
    /// How large the event is so far.
    bytes: usize,
    has_begun: bool,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    has_returned: bool,
}

/// The event is larger than a message may be.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEventTooLarge;

impl SseParser {
    /// The events that end in this chunk.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, SseEventTooLarge> {
        let mut events = Vec::new();
        if bytes.is_empty() {
            return Ok(events);
        }
        if std::mem::take(&mut self.has_returned) && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.add(&bytes[..end])?;
            let ending = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
            self.has_returned = end + 1 == bytes.len() && bytes[end] == b'\r';
            bytes = &bytes[end + ending..];
            let line = std::mem::take(&mut self.line);
            events.extend(self.line_is_over(&line));
        }
        self.add(bytes)?;
        Ok(events)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SseEventTooLarge> {
        self.bytes += bytes.len();
        if self.bytes > MESSAGE_BYTES_MAX {
            return Err(SseEventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The event, where the line was the empty one that ends it.
    fn line_is_over(&mut self, mut line: &[u8]) -> Option<SseEvent> {
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.bytes = 0;
            let event = std::mem::take(&mut self.event);
            return (event != SseEvent::default()).then_some(event);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                none => *none = Some(value.into_owned()),
            },
            b"event" => self.event.kind = Some(value.into_owned()),
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"retry" => {
                let retry = value.parse().ok().map(Duration::from_millis);
                self.event.retry = retry.or(self.event.retry);
            }
            // A comment keeps a connection alive, and makes no event larger.
            b"" => self.bytes = self.bytes.saturating_sub(line.len()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> SseEvent {
        SseEvent { data: Some(text.to_owned()), ..SseEvent::default() }
    }

    #[test]
    fn events_are_read_in_whatever_pieces_they_come() {
        let text = b"\xef\xbb\xbf: hello\r\n\r\ndata: one\r\ndata:two\r\rid: 7\nretry: 250\ndata\n\n\
            nonsense\nother: thing\nevent: message\ndata: \xc3\xa4 \xff\n\nretry: soon\nid: \0\n\ndata: half\n";
        let (id, retry) = (Some("7".to_owned()), Some(Duration::from_millis(250)));
        let expected = [
            data("one\ntwo"),
            SseEvent { id, retry, ..data("") },
            SseEvent { kind: Some("message".to_owned()), ..data("ä \u{fffd}") },
        ];
        for size in 1..=text.len() {
            let mut parser = SseParser::default();
            let mut events = Vec::new();
            for piece in text.chunks(size) {
                events.extend(parser.feed(piece).unwrap());
            }
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_has_a_limit_and_a_stream_has_none() {
        let mebibyte = vec![b'a'; 1024 * 1024];
        let mut parser = SseParser::default();
        for _ in 0..200 {
            for piece in [&b"data: "[..], &mebibyte, b"\r\n", b"\r\n", b":", &mebibyte, b"\n"] {
                parser.feed(piece).unwrap();
            }
        }
        for line in ["", "data: ", "other: "] {
            let mut parser = SseParser::default();
            let mut so_many = 0;
            while parser.feed(line.as_bytes()).and_then(|_| parser.feed(&mebibyte)).is_ok() {
                so_many += 1;
                let end = if line.is_empty() { "" } else { "\n" };
                parser.feed(end.as_bytes()).unwrap();
            }
            assert!((71..=72).contains(&so_many), "{line}: {so_many}");
        }
    }
}
