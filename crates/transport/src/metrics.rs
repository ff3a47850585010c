//! Counters for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the process began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By method and status.
    responses: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(crate) connections: AtomicU64,
    pub(crate) handshakes: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) resumed: AtomicU64,
}

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
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        *responses.entry((method, status)).or_default() += 1;
    }

    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn text(&self, now: &Now) -> String {
        let mut out = String::new();
        let responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        head(&mut out, "http_responses_total", "counter", "Responses begun, by method and status.");
        for ((method, status), count) in responses {
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{PREFIX}http_responses_total{{method=\"{method}\",status=\"{status}\"}} {count}"
            );
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, about, count) in [
            ("connections_total", "Connections accepted.", load(&self.connections)),
            ("handshakes_total", "Handshakes had.", load(&self.handshakes)),
            ("handshakes_ended_total", "Handshakes ended by their clients.", load(&self.ended)),
            ("streams_resumed_total", "Streams that a client came back to.", load(&self.resumed)),
        ] {
            head(&mut out, name, "counter", about);
            let _ = writeln!(out, "{PREFIX}{name} {count}");
        }
        for (name, about, count) in [
            ("ready", "Whether requests are served.", usize::from(now.is_ready)),
            ("connections", "Connections open.", now.connections),
            ("requests_under_way", "Requests that are not answered yet.", now.requests),
            ("streams", "Event streams open.", now.streams),
            ("peers", "Clients with a handshake that something is kept for.", now.peers),
        ] {
            head(&mut out, name, "gauge", about);
            let _ = writeln!(out, "{PREFIX}{name} {count}");
        }
        out
    }
}

const PREFIX: &str = "workflowlookup_";

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {PREFIX}{name} {about}\n# TYPE {PREFIX}{name} {kind}");
}
