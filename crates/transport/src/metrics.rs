//! What is counted here, for Prometheus. A host adds its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::answer::REFUSED_KINDS;
use crate::page::Page;

/// Counted since the process began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By method and status.
    responses: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// In the order of their kinds.
    refused: [AtomicU64; REFUSED_KINDS.len()],
    pub(crate) connections: AtomicU64,
    /// In the order of [`Eviction`].
    evictions: [AtomicU64; EVICTIONS.len()],
    pub(crate) handshakes: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) resumed: AtomicU64,
}

/// Why an idle connection was closed before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Its address holds too many without authentication.
    Address,
    /// The server is short of connections.
    Capacity,
    /// It went without authentication for too long.
    Unauthenticated,
}

const EVICTIONS: [&str; 3] = ["address", "capacity", "unauthenticated"];

/// What is there right now.
#[derive(Debug)]
pub(crate) struct Now {
    pub(crate) is_ready: bool,
    pub(crate) connections: usize,
    pub(crate) requests: usize,
    pub(crate) streams: usize,
    pub(crate) peers: usize,
}

impl Metrics {
    pub(crate) fn responded(&self, method: &'static str, status: u16) {
        let mut responses = self.responses.lock();
        *responses.entry((method, status)).or_default() += 1;
    }

    /// One of [`REFUSED_KINDS`].
    pub(crate) fn refused(&self, kind: &str) {
        let known = REFUSED_KINDS.into_iter().zip(&self.refused).find(|(own, _)| *own == kind);
        if let Some((_, counter)) = known {
            Self::add(counter);
        }
    }

    pub(crate) fn evicted(&self, why: Eviction) {
        Self::add(&self.evictions[why as usize]);
    }

    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn print(&self, now: &Now, page: &mut Page) {
        let responses = self.responses.lock().clone();
        let about = "Responses begun, by method and status.";
        let mut family = page.counter("workflowlookup_http_responses_total", about);
        for ((method, status), count) in responses {
            family.sample(&[("method", method), ("status", &status.to_string())], count);
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let about = "Requests that were not served, by the kind of reason.";
        let mut family = page.counter("workflowlookup_http_refusals_total", about);
        for (kind, counter) in REFUSED_KINDS.into_iter().zip(&self.refused) {
            family.sample(&[("kind", kind)], load(counter));
        }
        let about = "Connections closed to make room for others, by the kind of reason.";
        let mut family = page.counter("workflowlookup_connections_evicted_total", about);
        for (kind, counter) in EVICTIONS.into_iter().zip(&self.evictions) {
            family.sample(&[("kind", kind)], load(counter));
        }
        for (name, about, counter) in [
            ("workflowlookup_connections_total", "Connections accepted.", &self.connections),
            ("workflowlookup_handshakes_total", "Handshakes had.", &self.handshakes),
            (
                "workflowlookup_handshakes_ended_total",
                "Handshakes ended by their clients.",
                &self.ended,
            ),
            (
                "workflowlookup_streams_resumed_total",
                "Streams that a client came back to.",
                &self.resumed,
            ),
        ] {
            page.counter(name, about).sample(&[], load(counter));
        }
        for (name, about, count) in [
            ("workflowlookup_ready", "Whether requests are served.", usize::from(now.is_ready)),
            ("workflowlookup_connections", "Connections open.", now.connections),
            (
                "workflowlookup_requests_under_way",
                "Requests that are not answered yet.",
                now.requests,
            ),
            ("workflowlookup_streams", "Event streams open.", now.streams),
            (
                "workflowlookup_peers",
                "Clients with a handshake that something is kept for.",
                now.peers,
            ),
        ] {
            page.gauge(name, about).sample(&[], count);
        }
    }
}
