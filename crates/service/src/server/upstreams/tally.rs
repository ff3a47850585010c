//! Calls to upstreams, counted: by server, by how they ended, and how long they took. Servers are the registry's, never
//! what a client wrote, and bounded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orchestrator::{CallResult, Error};
use parking_lot::RwLock;
use store::{Histogram, Latency};

/// Servers beyond these, over all edits of the registry, are counted together.
const SERVERS_MAX: usize = 1_000;
const OTHERS: &str = "others";

#[derive(Default)]
pub(crate) struct Tally(RwLock<BTreeMap<String, Arc<Counted>>>);

#[derive(Default)]
pub(crate) struct Counted {
    ended: [AtomicU64; Ended::ALL.len()],
    times: Histogram,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    /// The tool says that it failed.
    ToolError,
    /// The server answered with an error.
    ServerError,
    /// A person has to confirm it first.
    Asked,
    /// By us, before anything was sent.
    Refused,
    /// Too many, or too many failures before.
    Limited,
    Timeout,
    /// There was no connection, it broke, or what came over it made no sense.
    Unreachable,
    Cancelled,
}

impl Ended {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Ok, "ok"),
        (Self::ToolError, "tool_error"),
        (Self::ServerError, "server_error"),
        (Self::Asked, "asked"),
        (Self::Refused, "refused"),
        (Self::Limited, "limited"),
        (Self::Timeout, "timeout"),
        (Self::Unreachable, "unreachable"),
        (Self::Cancelled, "cancelled"),
    ];

    pub(super) fn of(called: &Result<CallResult, Error>) -> Self {
        match called {
            Ok(called) if called.is_error => Self::ToolError,
            Ok(_) => Self::Ok,
            Err(Error::Upstream { .. } | Error::Refused { .. }) => Self::ServerError,
            Err(
                Error::NoServer { .. }
                | Error::Unusable { .. }
                | Error::NoTool(_)
                | Error::Denied(_)
                | Error::NotConfirmed { .. }
                | Error::Arguments { .. }
                | Error::Uncheckable { .. }
                | Error::NotOffered { .. },
            ) => Self::Refused,
            Err(Error::TooMany { .. } | Error::Open { .. } | Error::Busy { .. }) => Self::Limited,
            Err(Error::Timeout { .. }) => Self::Timeout,
            Err(Error::Cancelled { .. } | Error::Closed) => Self::Cancelled,
            Err(_) => Self::Unreachable,
        }
    }
}

impl Tally {
    pub(super) fn count(&self, server: &str, ended: Ended, time: Duration) {
        let counted = self.of(server);
        counted.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
        if ended != Ended::Asked {
            counted.times.record(time);
        }
    }

    fn of(&self, server: &str) -> Arc<Counted> {
        let known = self.0.read();
        if let Some(counted) = known.get(server) {
            return Arc::clone(counted);
        }
        let server = if known.len() < SERVERS_MAX { server } else { OTHERS };
        drop(known);
        let mut all = self.0.write();
        Arc::clone(all.entry(server.to_owned()).or_default())
    }

    /// By server.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Counted>)> {
        let all = self.0.read();
        all.iter().map(|(server, counted)| (server.clone(), Arc::clone(counted))).collect()
    }
}

impl Counted {
    /// By how they ended.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.ended.iter().map(|count| count.load(Ordering::Relaxed));
        Ended::ALL.into_iter().map(|(_, name)| name).zip(counts)
    }

    pub(crate) fn times(&self) -> Latency {
        self.times.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_their_endings_do() {
        for (at, (ended, _)) in Ended::ALL.into_iter().enumerate() {
            assert_eq!(ended as usize, at);
        }
    }

    #[test]
    fn there_are_never_more_names_than_so_many() {
        let tally = Tally::default();
        for number in 0..SERVERS_MAX + 10 {
            tally.count(&format!("s{number}"), Ended::Ok, Duration::ZERO);
        }
        let all = tally.all();
        assert_eq!(all.len(), SERVERS_MAX + 1);
        let others = &all.iter().find(|(name, _)| name == OTHERS).unwrap().1;
        assert_eq!(others.ended().next(), Some(("ok", 10)));
    }
}
