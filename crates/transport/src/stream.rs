//! What is said to a client beyond a single answer: numbered events that a reader takes at its own pace. A reader that
//! is slow, or gone for a while, misses the oldest of them; what is kept is bounded, and the last one is never missed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp::Reply;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::limits::{EVENTS_BYTES_MAX, EVENTS_MAX};

/// The longest id of a request that its events carry.
const REQUEST_BYTES_MAX: usize = 96;

#[derive(Debug)]
pub(crate) struct Stream {
    number: u64,
    /// The request that it answers, if it answers one.
    request: Option<mcp::Id>,
    inner: Mutex<Inner>,
    /// Nobody will read this any more.
    gone: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<String>,
    /// The number of the first event that is still here.
    first: u64,
    bytes: usize,
    /// The answer, as long as nothing else was said and nobody reads yet.
    reply: Option<Reply>,
    is_over: bool,
    /// Whoever has read everything so far is let go.
    hangs_up: bool,
    /// Who reads, in the order in which they came. Only the last is given anything.
    readers: Vec<Reader>,
    /// Readers so far.
    count: u64,
    /// Up to here somebody has read.
    read: Number,
    /// Who waits for what this will be.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    waker: Option<Waker>,
    /// What comes before is somebody else's.
    from: Number,
}

/// What the first thing said is.
#[derive(Debug)]
pub(crate) enum First {
    /// The answer, and nothing else.
    Answer(Reply),
    /// The end, without any.
    Nothing,
    /// There is more to come.
    Events,
}

/// The number of an event: the priming one is 0, before all others.
pub(crate) type Number = u64;

impl Stream {
    pub(crate) fn new(number: u64, request: Option<&mcp::Id>) -> Arc<Self> {
        let request = request.filter(|id| id.as_json().len() <= REQUEST_BYTES_MAX).cloned();
        let inner = Mutex::new(Inner { first: 1, ..Inner::default() });
        Arc::new(Self { number, request, inner, gone: Notify::new() })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn push(&self, text: String) {
        let mut inner = self.inner();
        inner.bytes += text.len();
        inner.events.push_back(text);
        while inner.events.len() > 1
            && (inner.events.len() > EVENTS_MAX || inner.bytes > EVENTS_BYTES_MAX)
        {
            inner.forget_first();
        }
        inner.wake();
    }

    /// The answer, and with it the end.
    pub(crate) fn answer(&self, reply: Reply) {
        let mut inner = self.inner();
        if inner.events.is_empty() && inner.first == 1 && inner.count == 0 {
            inner.reply = Some(reply);
            inner.is_over = true;
            inner.wake();
        } else {
            drop(inner);
            self.push(reply.text);
            self.end();
        }
    }

    /// Lets the reader go once it has read what there is. It comes back for the rest.
    pub(crate) fn hang_up(&self) {
        let mut inner = self.inner();
        inner.hangs_up = true;
        inner.wake();
    }

    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.is_over = true;
        inner.wake();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.inner().is_over
    }

    pub(crate) fn bytes(&self) -> usize {
        self.inner().bytes
    }

    /// The number of the last event so far.
    pub(crate) fn newest(&self) -> Number {
        let inner = self.inner();
        inner.first + inner.events.len() as u64 - 1
    }

    /// Waits until it is clear what this will be.
    pub(crate) fn poll_first(&self, context: &mut Context<'_>) -> Poll<First> {
        let mut inner = self.inner();
        match inner.reply.take() {
            Some(reply) => Poll::Ready(First::Answer(reply)),
            None if !inner.events.is_empty() || inner.first > 1 || inner.hangs_up => {
                Poll::Ready(First::Events)
            }
            None if inner.is_over => Poll::Ready(First::Nothing),
            None => {
                inner.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether this has become a stream that somebody reads.
    pub(crate) fn has_reader(&self) -> bool {
        self.inner().count > 0
    }

    /// A new reader: the only one that is given anything, as long as it reads.
    pub(crate) fn attach(&self) -> u64 {
        let mut inner = self.inner();
        if let Some(reply) = inner.reply.take() {
            inner.bytes += reply.text.len();
            inner.events.push_back(reply.text);
        }
        inner.count += 1;
        let number = inner.count;
        inner.readers.push(Reader { number, waker: None, from: 0 });
        inner.wake();
        number
    }

    /// This one does not read any more: whoever came before it goes on from there. Says whether somebody is left.
    pub(crate) fn detach(&self, reader: u64) -> bool {
        let mut inner = self.inner();
        let read = inner.read;
        inner.readers.retain(|own| own.number != reader);
        if let Some(last) = inner.readers.last_mut() {
            last.from = read + 1;
        }
        inner.wake();
        !inner.readers.is_empty()
    }

    /// The next event from this number on.
    pub(crate) fn poll_next(
        &self,
        reader: u64,
        from: Number,
        context: &mut Context<'_>,
    ) -> Poll<Option<(Number, String)>> {
        let mut inner = self.inner();
        let is_last = inner.readers.last().is_some_and(|last| last.number == reader);
        // Where another has come since, this one waits for it to leave.
        if is_last {
            let own = inner.readers.last().map_or(0, |last| last.from);
            let number = from.max(own).max(inner.first);
            let at = usize::try_from(number - inner.first).unwrap_or(usize::MAX);
            if let Some(text) = inner.events.get(at).cloned() {
                inner.read = inner.read.max(number);
                return Poll::Ready(Some((number, text)));
            }
        }
        if inner.is_over || (is_last && std::mem::take(&mut inner.hangs_up)) {
            return Poll::Ready(None);
        }
        if let Some(own) = inner.readers.iter_mut().find(|own| own.number == reader) {
            own.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// What has been read is not needed again.
    pub(crate) fn forget_through(&self, number: Number) {
        let mut inner = self.inner();
        while inner.first <= number && !inner.events.is_empty() {
            inner.forget_first();
        }
    }

    /// Nobody will read this any more.
    pub(crate) fn abandon(&self) {
        self.gone.notify_one();
    }

    pub(crate) async fn abandoned(&self) {
        self.gone.notified().await;
    }

    /// What an event is called, for a client that comes back.
    pub(crate) fn event_id(&self, number: Number) -> String {
        match &self.request {
            None => format!("{:x}-{number}", self.number),
            Some(id) => {
                let id = URL_SAFE_NO_PAD.encode(id.as_json());
                format!("{:x}-{number}-{id}", self.number)
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn forget_first(&mut self) {
        if let Some(text) = self.events.pop_front() {
            self.bytes -= text.len();
            self.first += 1;
        }
    }

    fn wake(&mut self) {
        let readers = self.readers.iter_mut().filter_map(|reader| reader.waker.take());
        self.waker.take().into_iter().chain(readers).for_each(Waker::wake);
    }
}

/// What a client that comes back has read last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastEvent {
    pub(crate) stream: u64,
    pub(crate) number: Number,
    /// The request that the stream answers, as JSON.
    pub(crate) request: Option<mcp::Id>,
}

impl LastEvent {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let stream = u64::from_str_radix(parts.next()?, 16).ok()?;
        let number = parts.next()?.parse().ok()?;
        let request = match parts.next() {
            None => None,
            Some(encoded) => {
                let json = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
                Some(mcp::Id::parse(&json)?)
            }
        };
        Some(Self { stream, number, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(stream: &Stream, reader: u64, mut from: Number) -> Vec<(Number, String)> {
        let mut context = Context::from_waker(Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some((number, text))) = stream.poll_next(reader, from, &mut context) {
            from = number + 1;
            read.push((number, text));
        }
        read
    }

    #[test]
    fn what_a_reader_has_missed_is_said_again_to_the_next() {
        let stream = Stream::new(7, None);
        let first = stream.attach();
        stream.push("a".to_owned());
        stream.push("b".to_owned());
        assert_eq!(read_all(&stream, first, 0).len(), 2);
        stream.push("c".to_owned());
        let second = stream.attach();
        assert_eq!(read_all(&stream, first, 3), [], "only one is told");
        assert_eq!(read_all(&stream, second, 2), [(2, "b".to_owned()), (3, "c".to_owned())]);
        stream.push("d".to_owned());
        assert_eq!(read_all(&stream, second, 4).len(), 1);
        assert!(stream.detach(second), "the first still reads");
        stream.push("e".to_owned());
        assert_eq!(read_all(&stream, first, 3), [(5, "e".to_owned())], "what nobody was told yet");
        assert!(!stream.detach(first));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_last_is_never_missed() {
        let stream = Stream::new(7, None);
        let reader = stream.attach();
        for _ in 0..2 * EVENTS_MAX {
            stream.push("x".repeat(10_000));
        }
        assert!(stream.bytes() <= EVENTS_BYTES_MAX);
        stream.answer(Reply { text: "y".repeat(EVENTS_BYTES_MAX + 1), status: 200 });
        let read = read_all(&stream, reader, 0);
        assert_eq!(read.len(), 1);
        assert!(read[0].1.starts_with('y'));
        assert!(stream.inner().is_over);
    }

    #[test]
    fn a_reader_that_is_let_go_reads_on_later() {
        let stream = Stream::new(7, None);
        let mut context = Context::from_waker(Waker::noop());
        stream.hang_up();
        assert!(matches!(stream.poll_first(&mut context), Poll::Ready(First::Events)));
        let first = stream.attach();
        stream.push("a".to_owned());
        let mut next = |reader, from| stream.poll_next(reader, from, &mut context);
        assert_eq!(next(first, 1), Poll::Ready(Some((1, "a".to_owned()))));
        assert_eq!(next(first, 2), Poll::Ready(None), "it has read everything, and may go");
        let second = stream.attach();
        assert_eq!(next(second, 2), Poll::Pending, "who comes back stays");
    }

    #[test]
    fn an_event_says_where_it_belongs() {
        let id = mcp::Id::parse("\"seven\"").unwrap();
        for (stream, request) in
            [(Stream::new(7, None), None), (Stream::new(9, Some(&id)), Some(id.clone()))]
        {
            let read = LastEvent::read(&stream.event_id(3));
            let expected = LastEvent { stream: stream.number(), number: 3, request };
            assert_eq!(read, Some(expected));
        }
        for odd in ["", "x", "7", "7-", "7-x", "7-1-!", "7-1-e30", "-1-1"] {
            assert_eq!(LastEvent::read(odd), None, "{odd}");
        }
    }
}
