//! What the product has to say at `/metrics`, besides what the transport counts. Nothing here waits: it reads counters,
//! and what was found out before.

mod process;
mod session_counts;

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use store::{Figures, Latency, Store};
use transport::{Family, Labels, Page};

use super::Host;
use super::observer::Observer;
use super::upstreams::Upstreams;
use crate::sessions::Tally;
use session_counts::{Counted, SessionCounts};

pub(crate) struct Metrics {
    host: Arc<Host>,
    sessions: Arc<SessionCounts>,
    /// Once it is open.
    store: OnceLock<Store>,
    /// Seconds since 1970.
    started: u64,
}

impl Metrics {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        let sessions = Arc::new(SessionCounts::new(host.app().clone()));
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { host, sessions, store: OnceLock::new(), started }
    }

    /// To be called inside the runtime.
    pub(crate) fn print(&self, page: &mut Page) {
        calls(self.host.observer(), page);
        upstreams(self.host.upstreams(), page);
        tally(self.host.app().sessions().tally(), page);
        store(&self.figures(), page);
        counted(&SessionCounts::look(&self.sessions), page);
        spans(self.host.observer(), page);
        let about = "One, with the version that runs.";
        let version = [("version", workflow::VERSION)];
        page.gauge("workflowlookup_build_info", about).sample(&version, 1);
        process::print(self.started, page);
    }

    /// None were taken where there is no store yet.
    fn figures(&self) -> Figures {
        if self.store.get().is_none()
            && let Some(open) = self.host.app().sessions().opened()
        {
            // Whoever was first has set the same.
            let _ = self.store.set(open.sessions.store().clone());
        }
        self.store.get().map(Store::figures).unwrap_or_default()
    }
}

fn calls(observer: &Observer, page: &mut Page) {
    let about = "Calls carried out, by what was called and how they ended.";
    let mut family = page.counter("workflowlookup_calls_total", about);
    for count in observer.calls.all() {
        for (outcome, number) in count.ended() {
            let outcome = ("outcome", outcome);
            match count.tool {
                Some(tool) => {
                    family.sample(&[("method", count.method), ("tool", tool), outcome], number);
                }
                None => family.sample(&[("method", count.method), outcome], number),
            }
        }
    }
    let about = "Calls that were refused, by their JSON-RPC code.";
    let mut family = page.counter("workflowlookup_call_refusals_total", about);
    for (code, number) in observer.calls.refused() {
        family.sample(&[("code", &code)], number);
    }
    let about = "How long calls took to carry out, without the time that a person took to answer.";
    let mut family = page.histogram("workflowlookup_call_duration_seconds", about);
    for count in observer.calls.all() {
        let times = count.times();
        match count.tool {
            // Most are never called.
            _ if times.count() == 0 => {}
            Some(tool) => {
                latency(&mut family, &[("method", count.method), ("tool", tool)], &times);
            }
            None => latency(&mut family, &[("method", count.method)], &times),
        }
    }
}

fn upstreams(upstreams: &Upstreams, page: &mut Page) {
    let all = upstreams.tally().all();
    let about = "Calls of other servers' tools, by server and how they ended.";
    let mut family = page.counter("workflowlookup_upstream_calls_total", about);
    for (server, counted) in &all {
        for (outcome, number) in counted.ended() {
            family.sample(&[("server", server), ("outcome", outcome)], number);
        }
    }
    let about =
        "How long other servers took for calls, with the time that people took to answer them.";
    let mut family = page.histogram("workflowlookup_upstream_call_duration_seconds", about);
    for (server, counted) in &all {
        latency(&mut family, &[("server", server)], &counted.times());
    }
    let about = "Calls of other servers' tools that wait for an answer of a client's user.";
    page.gauge("workflowlookup_upstream_calls_waiting", about).sample(&[], upstreams.waiting());
}

fn tally(tally: &Tally, page: &mut Page) {
    let about = "Outputs handed in by calls of this process, by what they were told.";
    let mut family = page.counter("workflowlookup_advances_total", about);
    for (verdict, number) in tally.advances() {
        family.sample(&[("verdict", verdict)], number);
    }
    let about = "Sessions begun by calls of this process, or found again by a repeated one.";
    let mut family = page.counter("workflowlookup_session_starts_total", about);
    for (kind, number) in tally.beginnings() {
        family.sample(&[("kind", kind)], number);
    }
    let about = "Decisions of people that this process has recorded, by the way they came.";
    let mut family = page.counter("workflowlookup_decisions_total", about);
    for (channel, ruling, number) in tally.decisions() {
        family.sample(&[("channel", channel), ("ruling", ruling)], number);
    }
}

fn store(figures: &Figures, page: &mut Page) {
    let Figures { read, append, create, other, conflicts, pool, event_bytes } = figures;
    let about = "Bytes of events that this process has read from the store.";
    page.counter("workflowlookup_store_event_bytes_total", about).sample(&[], event_bytes);
    let about = "Events that came too late, because somebody else was first.";
    page.counter("workflowlookup_conflicts_total", about).sample(&[], conflicts);
    let about = "How long the store took, by what it did.";
    let mut family = page.histogram("workflowlookup_store_duration_seconds", about);
    for (operation, times) in
        [("read", read), ("append", append), ("create", create), ("other", other)]
    {
        latency(&mut family, &[("operation", operation)], times);
    }
    let about = "Connections to the store: how many there may be, are, and are not used.";
    let mut family = page.gauge("workflowlookup_store_connections", about);
    if let Some(pool) = pool {
        for (state, number) in [("max", pool.max), ("open", pool.open), ("idle", pool.idle)] {
            family.sample(&[("state", state)], number);
        }
    }
    let about = "Callers that wait for a connection to the store.";
    let mut family = page.gauge("workflowlookup_store_waiting", about);
    if let Some(pool) = pool {
        family.sample(&[], pool.waiting);
    }
}

fn counted(counted: &Counted, page: &mut Page) {
    let about = "Sessions in the store, by how they stand.";
    let mut family = page.gauge("workflowlookup_sessions", about);
    if let Some(counts) = counted.counts {
        for (state, number) in [
            ("running", counts.running),
            ("waiting", counts.waiting),
            ("complete", counts.complete),
        ] {
            family.sample(&[("state", state)], number);
        }
    }
    let about = "Whether the store could be read when it was looked at last.";
    let mut family = page.gauge("workflowlookup_store_up", about);
    if let Some(is_up) = counted.is_up {
        family.sample(&[], u8::from(is_up));
    }
}

fn spans(observer: &Observer, page: &mut Page) {
    let figures = observer.tracer.as_ref().map(|tracer| tracer.figures()).unwrap_or_default();
    let about = "Spans that the collector has taken.";
    page.counter("workflowlookup_spans_sent_total", about).sample(&[], figures.sent);
    let about = "Spans that nobody has taken, by why.";
    let mut family = page.counter("workflowlookup_spans_lost_total", about);
    for (reason, number) in [("full", figures.full), ("failed", figures.failed)] {
        family.sample(&[("reason", reason)], number);
    }
}

fn latency(family: &mut Family<'_>, labels: &Labels<'_>, times: &Latency) {
    family.times(labels, times.cumulated(), times.count(), times.sum);
}
