//! Every bound in one place. What is beyond one gets an honest status: 408, 413, 429 or 431.
//!
//! [`Limits`] has those that a host may want smaller: for a test, or because the system gives it less.

use std::time::Duration;

/// The largest body that is read; the same as a line over stdio.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bodies up to this size are read without a word. Larger ones share [`LARGE_BODIES_BYTES_MAX`].
pub const BODY_BYTES_SMALL: usize = 64 * 1024;
/// What all large bodies that are being read or answered may have together.
pub const LARGE_BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// One owner has at most one in this many of the bytes that the large bodies of all others leave.
pub const LARGE_BODIES_SHARE: usize = 4;
/// How long a body may take to arrive.
pub const BODY_TIME: Duration = Duration::from_secs(30);

/// What the request line and all headers may have together.
pub const HEADERS_BYTES_MAX: usize = 64 * 1024;
pub const HEADERS_MAX: usize = 100;
/// How long they may take to arrive, and how long a connection may be idle between two requests.
pub const HEADERS_TIME: Duration = Duration::from_secs(30);

/// How long a client may take nothing of what it is sent.
pub const WRITE_TIME: Duration = Duration::from_secs(60);

/// How many connections are held at once. Shortly before that, each new one evicts an idle one.
pub const CONNECTIONS_MAX: usize = 16_384;
/// How many connections at most stay free for that.
pub const CONNECTIONS_RESERVED_MAX: usize = 64;
/// A principal that holds more than one in this many of all connections loses idle ones as readily as an address.
pub const CONNECTIONS_PRINCIPAL_SHARE: usize = 4;
/// How many connections one address may hold that no request has authenticated on. Beyond that, its oldest idle one is
/// evicted. The connections of a proxy authenticate with their first request, so this does not bound them.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 256;
/// How long the first request of a new connection may take before its address loses it to that limit.
pub const FIRST_REQUEST_TIME: Duration = Duration::from_secs(1);
/// How long a connection may go without authentication, even if it sends other requests.
pub const UNAUTHENTICATED_TIME: Duration = Duration::from_secs(30);
/// How many requests are under way at once, in all and for one principal.
pub const REQUESTS_MAX: usize = 1024;
pub const REQUESTS_PER_PRINCIPAL_MAX: usize = 512;
/// How many event streams are open at once, in all and for one principal.
pub const STREAMS_MAX: usize = 10_000;
pub const STREAMS_PER_PRINCIPAL_MAX: usize = 6_000;
/// What one principal may use in a minute. Programs do not count: they have slots of their own.
pub const CPU_TIME_PER_PRINCIPAL_MAX: Duration = Duration::from_secs(30);
pub const BYTES_PER_PRINCIPAL_MAX: u64 = 512 * 1024 * 1024;
/// How many answers, cancellations and other notifications are taken besides, so that what is under way can come to
/// its end.
pub const REPLIES_MAX: usize = 256;
pub const REPLIES_PER_PRINCIPAL_MAX: usize = 128;
/// What a client that was turned away is told to wait.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many calls may need a thread of their own at once. More of them wait, and not for long.
pub const THREADS: usize = 16;
pub const THREAD_TIME: Duration = Duration::from_secs(5);

/// What one principal's calls, or those of one body, may take of the threads that read and answer requests, in a row.
/// Beyond that, its calls need threads of their own, where principals take turns, until that time has passed
/// [`INLINE_TIME_SHARE`] times.
pub const INLINE_TIME_MAX: Duration = Duration::from_millis(10);
pub const INLINE_TIME_SHARE: u32 = 10;
/// Calls that take less than this are not counted for their principal: they are what these threads are for.
pub const INLINE_TIME_FREE: Duration = Duration::from_micros(200);

/// How far these threads give way to those that read and answer requests, when processors are short.
pub const BLOCKING_NICENESS: i32 = 10;

/// How much progress and how many logs of a connection's calls wait to be said. The rest is dropped.
pub const PIECES_MAX: usize = 256;
/// How many messages that came by other requests wait for one exchange: answers to what it asked, and cancellations.
pub const MAIL_MAX: usize = 128;

/// What a stream keeps for a client that does not read, or that comes back: so many events, and so many bytes besides
/// the newest one.
pub const EVENTS_MAX: usize = 64;
pub const EVENTS_BYTES_MAX: usize = 256 * 1024;
/// How often a silent stream says that it is still there.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long one response goes on with events. Its client is told to come back.
pub const STREAM_TIME: Duration = Duration::from_secs(3600);
/// After which time a client should come back, in milliseconds.
pub const RETRY_MS: u32 = 1000;
/// How long an answer may be in coming before the client gets a stream instead of silence.
pub const SILENCE: Duration = Duration::from_secs(2);

/// How long what a client may want to resume is kept, once nobody reads it.
pub const RESUME_TIME: Duration = Duration::from_secs(120);
/// How many clients with a handshake are remembered, because they have a stream or subscriptions here.
pub const PEERS_MAX: usize = 12_000;
pub const PEERS_PER_PRINCIPAL_MAX: usize = 6_000;
/// What the names of all resources that clients follow, by subscribing or by listening, may have together, in all and
/// for one principal.
pub const FOLLOWED_BYTES_MAX: usize = 128 * 1024 * 1024;
pub const FOLLOWED_BYTES_PER_PRINCIPAL_MAX: usize = 32 * 1024 * 1024;
/// What one more name may have.
pub const NAME_BYTES_MAX: usize = 2048;
/// How many answered streams are kept for that, and how many bytes they have together.
pub const ANSWERED_MAX: usize = 1024;
pub const ANSWERED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a handshake is good for.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many handshakes that were ended early are remembered here. The oldest are forgotten first.
pub const ENDED_MAX: usize = 200_000;
/// The longest name of a principal that a handshake carries.
pub const PRINCIPAL_BYTES_MAX: usize = 2048;

/// How long requests under way may take when we are told to end.
pub const DRAIN_TIME: Duration = Duration::from_secs(20);
/// How long connections that nothing is under way on stay open then: a request may be on its way.
pub const DRAIN_GRACE: Duration = Duration::from_secs(1);
/// How often what has become old is swept out.
pub const SWEEP: Duration = Duration::from_secs(5);

/// The bounds that one service keeps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub body_time: Duration,
    pub large_bodies_bytes: usize,
    pub headers_time: Duration,
    pub write_time: Duration,
    pub drain_time: Duration,
    pub drain_grace: Duration,
    pub unauthenticated_time: Duration,
    pub connections: usize,
    pub connections_per_address: usize,
    pub requests: usize,
    pub requests_per_principal: usize,
    pub streams: usize,
    pub streams_per_principal: usize,
    pub threads: usize,
    pub cpu_time_per_principal: Duration,
    pub bytes_per_principal: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_time: BODY_TIME,
            large_bodies_bytes: LARGE_BODIES_BYTES_MAX,
            headers_time: HEADERS_TIME,
            write_time: WRITE_TIME,
            drain_time: DRAIN_TIME,
            drain_grace: DRAIN_GRACE,
            unauthenticated_time: UNAUTHENTICATED_TIME,
            connections: CONNECTIONS_MAX,
            connections_per_address: CONNECTIONS_PER_ADDRESS_MAX,
            requests: REQUESTS_MAX,
            requests_per_principal: REQUESTS_PER_PRINCIPAL_MAX,
            streams: STREAMS_MAX,
            streams_per_principal: STREAMS_PER_PRINCIPAL_MAX,
            threads: THREADS,
            cpu_time_per_principal: CPU_TIME_PER_PRINCIPAL_MAX,
            bytes_per_principal: BYTES_PER_PRINCIPAL_MAX,
        }
    }
}
