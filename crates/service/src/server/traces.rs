//! Spans of calls, sent to a collector by OTLP over HTTP as JSON. It is written here because the OpenTelemetry crates
//! would bring dozens of packages for one POST. One thread sends; whoever has a span leaves it in a bounded queue and
//! goes on, and what does not fit is lost and counted.

mod context;
mod endpoint;
mod span;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

pub(crate) use context::Context;
pub use endpoint::Endpoint;
use endpoint::{Collector, Failure};
use span::Resource;
pub(crate) use span::Span;

/// How many spans may wait to be sent.
const QUEUE_MAX: usize = 4096;
/// How many are sent together, and how long the first one waits for others.
const BATCH_MAX: usize = 512;
const BATCH_TIME: Duration = Duration::from_secs(1);
/// How often the same spans are sent, where it may help, and how long it waits before the second time; then twice as
/// long.
const TRIES_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// How often the log says that spans were lost.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// How long the end of the process waits for the last ones.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Takes spans.
#[derive(Debug)]
pub struct Tracer {
    shared: Arc<Shared>,
    ids: Ids,
    /// Told when the last span is sent.
    sent_all: Mutex<Receiver<()>>,
}

/// How many spans were sent, and how many were lost: because too many waited, or because nobody took them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) sent: u64,
    pub(crate) full: u64,
    pub(crate) failed: u64,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    sent: AtomicU64,
    full: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    spans: VecDeque<Span>,
    /// The process is about to end.
    ends: bool,
}

impl Tracer {
    /// Begins to send.
    pub fn start(endpoint: Endpoint) -> io::Result<Self> {
        let ids = Ids::new()?;
        let shared = Arc::<Shared>::default();
        let (all_sent, sent_all) = sync_channel(1);
        let resource = Resource { instance: format!("{:032x}", ids.trace()) };
        let sending = Sending { shared: Arc::clone(&shared), resource, told: None, why: None };
        let run = move || sending.run(&Collector::new(endpoint), &all_sent);
        Builder::new().name("traces".to_owned()).spawn(run)?;
        Ok(Self { shared, ids, sent_all: Mutex::new(sent_all) })
    }

    pub(crate) fn new_trace(&self) -> u128 {
        self.ids.trace()
    }

    pub(crate) fn new_span(&self) -> u64 {
        self.ids.span()
    }

    /// Leaves a span to be sent. Nobody waits for that.
    pub(crate) fn send(&self, span: Span) {
        let mut queue = self.shared.queue();
        if queue.spans.len() >= QUEUE_MAX {
            drop(queue);
            self.shared.full.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.spans.push_back(span);
        let length = queue.spans.len();
        drop(queue);
        // It wakes for the first, and for the last that it waits for.
        if length == 1 || length == BATCH_MAX {
            self.shared.changed.notify_one();
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { sent, full, failed, .. } = &*self.shared;
        Figures { sent: load(sent), full: load(full), failed: load(failed) }
    }

    /// The process is about to end: waits until all is sent, within reason.
    pub fn end(&self) {
        self.shared.queue().ends = true;
        self.shared.changed.notify_one();
        let sent_all = self.sent_all.lock();
        if sent_all.recv_timeout(FLUSH_TIME_MAX).is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Waits until it is time to send something. Nothing is left when it is empty.
    fn next_batch(&self) -> Vec<Span> {
        let mut queue = self.queue();
        while queue.spans.is_empty() && !queue.ends {
            self.changed.wait(&mut queue);
        }
        let until = Instant::now() + BATCH_TIME;
        while queue.spans.len() < BATCH_MAX && !queue.ends {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.changed.wait_for(&mut queue, left);
        }
        let count = queue.spans.len().min(BATCH_MAX);
        queue.spans.drain(..count).collect()
    }

    /// Lets some time go by, unless the process is about to end.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut queue = self.queue();
        while !queue.ends {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut queue, left);
        }
    }
}

/// What the thread does.
struct Sending {
    shared: Arc<Shared>,
    resource: Resource,
    /// What the log has said last, and when.
    told: Option<(Instant, u64)>,
    /// Why spans were not taken, last.
    why: Option<String>,
}

impl Sending {
    fn run(mut self, collector: &Collector, all_sent: &SyncSender<()>) {
        loop {
            let batch = self.shared.next_batch();
            if batch.is_empty() {
                break;
            }
            self.deliver(collector, &batch);
            self.complain(COMPLAIN_EVERY);
        }
        self.complain(Duration::ZERO);
        // Nobody waits any more where the time was up.
        let _ = all_sent.try_send(());
    }

    fn deliver(&mut self, collector: &Collector, batch: &[Span]) {
        let body = self.resource.body(batch);
        let count = batch.len() as u64;
        for number in 1..=TRIES_MAX {
            match collector.send(&body) {
                Ok(rejected) => {
                    let rejected = rejected.min(count);
                    self.shared.sent.fetch_add(count - rejected, Ordering::Relaxed);
                    if rejected > 0 {
                        self.lose(rejected, "it took some of them only".to_owned());
                    }
                    return;
                }
                Err(Failure::ForNow(why)) if number == TRIES_MAX => self.lose(count, why),
                Err(Failure::ForNow(_)) => self.shared.pause(PAUSE * number),
                Err(Failure::ForGood(why)) => return self.lose(count, why),
            }
        }
    }

    fn lose(&mut self, count: u64, why: String) {
        self.shared.failed.fetch_add(count, Ordering::Relaxed);
        self.why = Some(why);
    }

    /// Says how many were lost, where the last time is so long ago.
    fn complain(&mut self, every: Duration) {
        let full = self.shared.full.load(Ordering::Relaxed);
        let failed = self.shared.failed.load(Ordering::Relaxed);
        let is_due =
            self.told.is_none_or(|(at, told)| told < full + failed && at.elapsed() >= every);
        if full + failed == 0 || !is_due {
            return;
        }
        self.told = Some((Instant::now(), full + failed));
        let why = self.why.as_deref().unwrap_or("the collector is slow");
        tracing::warn!(full, failed, why, "spans were lost, since the start");
    }
}

/// Ids that nobody else has: a random beginning, and a step that comes to every number once.
#[derive(Debug)]
struct Ids {
    seeds: [u64; 2],
    counter: AtomicU64,
}

impl Ids {
    fn new() -> io::Result<Self> {
        let mut seeds = [0; 2];
        for seed in &mut seeds {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            *seed = u64::from_ne_bytes(bytes);
        }
        Ok(Self { seeds, counter: AtomicU64::new(0) })
    }

    fn trace(&self) -> u128 {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.seeds.map(|seed| scattered(seed, number));
        // None is nought.
        u128::from(high) << 64 | u128::from(low.max(1))
    }

    fn span(&self) -> u64 {
        scattered(self.seeds[0], self.counter.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}

/// The finish of SplitMix64: near numbers become far ones, and no two the same.
fn scattered(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use mcp::Mark;

    use super::*;

    /// It listens, and nobody ever looks at who has come.
    #[test]
    fn what_does_not_fit_is_lost_and_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let tracer = Tracer::start(url.parse().unwrap()).unwrap();
        let now = Instant::now();
        let more = 100;
        for _ in 0..QUEUE_MAX + BATCH_MAX + more {
            let mark = Mark { trace: tracer.new_trace(), span: tracer.new_span(), begun: now };
            let attributes = vec![("mcp.method.name", "tools/call".into())];
            let name = "tools/call".into();
            tracer.send(Span { name, mark, context: None, ended: now, attributes, error: None });
        }
        let Figures { sent, full, failed } = tracer.figures();
        assert!(full >= more as u64, "{full}");
        assert_eq!((sent, failed), (0, 0), "nobody has said anything yet");
        tracer.end();
    }

    #[test]
    fn no_two_ids_are_the_same() {
        let (ids, others) = (Ids::new().unwrap(), Ids::new().unwrap());
        let spans: BTreeSet<u64> = (0..1000).flat_map(|_| [ids.span(), others.span()]).collect();
        let traces: BTreeSet<u128> =
            (0..1000).flat_map(|_| [ids.trace(), others.trace()]).collect();
        assert_eq!((spans.len(), traces.len()), (2000, 2000));
        assert!(!spans.contains(&0) && !traces.contains(&0));
    }
}
