//! How much an upstream is called: so many at a time, so many a minute, and not at all for a while after it failed
//! repeatedly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::IN_FLIGHT_MAX;
use super::failure::Failure;
use crate::breaker::{Attempt, Breaker, What};
use crate::error::{Awaited, Error};
use crate::rate::Rate;

pub(super) struct Gate {
    server: String,
    slots: Semaphore,
    breaker: Mutex<Breaker>,
    rate: Mutex<Rate>,
    /// What failed last, for whoever is not let through because of it.
    last: Mutex<String>,
    /// The last break that was counted: all who were waiting tell of the same one.
    counted: AtomicU64,
}

impl Gate {
    pub(super) fn new(server: &str, calls_per_minute: u32) -> Self {
        Self {
            server: server.to_owned(),
            slots: Semaphore::new(IN_FLIGHT_MAX),
            breaker: Mutex::default(),
            rate: Mutex::new(Rate::per_minute(calls_per_minute)),
            last: Mutex::default(),
            counted: AtomicU64::new(0),
        }
    }

    /// Lets something be asked. What comes of it must be told.
    pub(super) fn enter(&self, what: What) -> Result<Entered<'_>, Error> {
        let busy = |_| Error::Busy { server: self.server.clone(), in_flight: IN_FLIGHT_MAX };
        let slot = self.slots.try_acquire().map_err(busy)?;
        let attempt = self.breaker.lock().attempt(Instant::now());
        let attempt = attempt.map_err(|open| Error::Open {
            server: self.server.clone(),
            open,
            why: format!("the last failure was: {}", self.last.lock()),
        })?;
        Ok(Entered { gate: self, what, attempt: Some(attempt), _slot: slot })
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.available_permits() == IN_FLIGHT_MAX
    }

    /// Counts a call of a tool.
    pub(super) fn count_call(&self) -> Result<(), Error> {
        let taken = self.rate.lock().take(Instant::now());
        taken.map_err(|exceeded| Error::TooMany { server: self.server.clone(), exceeded })
    }

    /// Whether a call would be counted now.
    pub(super) fn may_call(&self) -> Result<(), Error> {
        let looked = self.rate.lock().look(Instant::now());
        looked.map_err(|exceeded| Error::TooMany { server: self.server.clone(), exceeded })
    }

    pub(super) fn set_calls_per_minute(&self, limit: u32) {
        self.rate.lock().set_limit(limit);
    }
}

/// Something that was let through.
pub(super) struct Entered<'g> {
    gate: &'g Gate,
    what: What,
    attempt: Option<Attempt>,
    _slot: SemaphorePermit<'g>,
}

impl Entered<'_> {
    /// Only that an upstream cannot be reached, breaks or is silent speaks against it. What it says, wrong or not, speaks for
    /// it.
    pub(super) fn came_to<T>(mut self, result: &Result<T, Failure>) {
        let Some(attempt) = self.attempt.take() else { return };
        let mut breaker = self.gate.breaker.lock();
        let now = Instant::now();
        match result {
            Err(
                failure @ (Failure::Connect { incident, .. } | Failure::Broken { incident, .. }),
            ) => {
                if self.gate.counted.fetch_max(*incident, Ordering::AcqRel) < *incident {
                    breaker.failed(attempt, self.failed_at(failure), now);
                    drop(breaker);
                    self.gate.remember(failure);
                } else {
                    breaker.abandoned(attempt, now);
                }
            }
            Err(failure @ (Failure::Timeout { .. } | Failure::Unusable { .. })) => {
                breaker.failed(attempt, self.failed_at(failure), now);
                drop(breaker);
                self.gate.remember(failure);
            }
            Err(Failure::Cancelled | Failure::Outdated | Failure::Unauthorized { .. }) => {
                breaker.abandoned(attempt, now)
            }
            Ok(_)
            | Err(
                Failure::Upstream { .. }
                | Failure::TooLarge { .. }
                | Failure::Protocol { .. }
                | Failure::Refused { .. }
                | Failure::Forgotten { .. }
                | Failure::Unanswered { .. },
            ) => breaker.succeeded(attempt, self.what, now),
        }
    }

    /// Whoever wants to call has to get there first.
    fn failed_at(&self, failure: &Failure) -> What {
        match failure {
            Failure::Connect { .. }
            | Failure::Unusable { .. }
            | Failure::Timeout { what: Awaited::Connection, .. } => What::Reaching,
            _ => self.what,
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.gate.breaker.lock().abandoned(attempt, Instant::now());
        }
    }
}

impl Gate {
    fn remember(&self, failure: &Failure) {
        *self.last.lock() = failure.clone().into_error(&self.server).to_string();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::FAILURES;

    #[test]
    fn one_break_counts_once_however_many_were_waiting() {
        let gate = Gate::new("x", 1);
        let broken = |incident| {
            Err::<(), _>(Failure::Broken { why: "gone".to_owned(), sent: true, incident })
        };
        for _ in 0..100 {
            gate.enter(What::Calling).unwrap().came_to(&broken(7));
        }
        for incident in 8..7 + FAILURES as u64 {
            gate.enter(What::Calling).unwrap().came_to(&broken(incident));
        }
        let error = gate.enter(What::Calling).err().unwrap();
        assert!(matches!(error, Error::Open { .. }), "{error}");
        assert!(error.to_string().contains("gone"), "{error}");
    }

    #[test]
    fn so_many_at_a_time() {
        let gate = Gate::new("x", 1);
        let inside: Vec<_> =
            (0..IN_FLIGHT_MAX).map(|_| gate.enter(What::Calling).unwrap()).collect();
        assert!(matches!(gate.enter(What::Calling), Err(Error::Busy { .. })));
        drop(inside);
        gate.enter(What::Calling).unwrap().came_to(&Ok(()));
    }

    #[test]
    fn what_an_upstream_says_does_not_speak_against_it() {
        let gate = Gate::new("x", 1);
        for _ in 0..10 * FAILURES {
            let said = Failure::Upstream { code: -32603, message: String::new(), data: None };
            gate.enter(What::Calling).unwrap().came_to(&Err::<(), _>(said));
            gate.enter(What::Calling).unwrap().came_to(&Err::<(), _>(Failure::Cancelled));
        }
        assert!(gate.enter(What::Calling).is_ok());
    }
}
