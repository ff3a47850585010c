//! Events out of bytes, as the standard of server-sent events has them: what it says nothing about is ignored, and not a
//! reason to stop. No event is larger than a message may be.

use sse_stream::Sse;

use crate::upstream::lines::MESSAGE_BYTES_MAX;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Default)]
pub(super) struct Parser {
    /// The current line, as far as it came in earlier pieces.
    line: Vec<u8>,
    event: Sse,
    /// How large the event is so far.
    bytes: usize,
    has_begun: bool,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    has_returned: bool,
}

/// The event is larger than a message may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Parser {
    /// The events that end in these bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<Sse>, TooLarge> {
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

    fn add(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.bytes += bytes.len();
        if self.bytes > MESSAGE_BYTES_MAX {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The event, where the line was the empty one that ends it.
    fn line_is_over(&mut self, mut line: &[u8]) -> Option<Sse> {
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.bytes = 0;
            let event = std::mem::take(&mut self.event);
            return (event != Sse::default()).then_some(event);
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
            b"event" => self.event.event = Some(value.into_owned()),
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"retry" => self.event.retry = value.parse().ok().or(self.event.retry),
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

    fn data(text: &str) -> Sse {
        Sse::default().data(text)
    }

    #[test]
    fn events_are_read_in_whatever_pieces_they_come() {
        let text = b"\xef\xbb\xbf: hello\r\n\r\ndata: one\r\ndata:two\r\rid: 7\nretry: 250\ndata\n\n\
            nonsense\nother: thing\nevent: message\ndata: \xc3\xa4 \xff\n\nretry: soon\nid: \0\n\ndata: half\n";
        let expected =
            [data("one\ntwo"), data("").id("7").retry(250), data("ä \u{fffd}").event("message")];
        for size in 1..=text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for piece in text.chunks(size) {
                events.extend(parser.read(piece).unwrap());
            }
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_has_a_limit_and_a_stream_has_none() {
        let mebibyte = vec![b'a'; 1024 * 1024];
        let mut parser = Parser::default();
        for _ in 0..200 {
            for piece in [&b"data: "[..], &mebibyte, b"\r\n", b"\r\n", b":", &mebibyte, b"\n"] {
                parser.read(piece).unwrap();
            }
        }
        for line in ["", "data: ", "other: "] {
            let mut parser = Parser::default();
            let mut so_many = 0;
            while parser.read(line.as_bytes()).and_then(|_| parser.read(&mebibyte)).is_ok() {
                so_many += 1;
                let end = if line.is_empty() { "" } else { "\n" };
                parser.read(end.as_bytes()).unwrap();
            }
            assert!((71..=72).contains(&so_many), "{line}: {so_many}");
        }
    }
}
