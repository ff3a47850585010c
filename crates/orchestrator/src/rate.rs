//! How many calls a minute one upstream gets. No sixty seconds, wherever they begin, see more than the limit; who comes too
//! early hears how long to wait. Time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
/// Every call of the last minute is remembered. Who allows more than this has no limit.
pub(crate) const CALLS_PER_MINUTE_MAX: u32 = 60_000;

#[derive(Debug, Clone)]
pub(crate) struct Rate {
    limit: u32,
    /// When the calls of the last minute were, oldest first.
    calls: VecDeque<Instant>,
}

/// The limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", said(*.limit, *.wait))]
pub struct Exceeded {
    pub limit: u32,
    /// How long until one more call may be; nothing where none ever may.
    pub wait: Option<Duration>,
}

impl Rate {
    pub(crate) fn per_minute(limit: u32) -> Self {
        Self { limit, calls: VecDeque::new() }
    }

    /// What was called already still counts.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Counts a call, or says when there may be one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Exceeded> {
        // Two threads may read the clock in one order and come here in the other.
        let now = self.calls.back().map_or(now, |last| now.max(*last));
        self.look(now)?;
        while self.calls.front().is_some_and(|oldest| now.duration_since(*oldest) >= WINDOW) {
            self.calls.pop_front();
        }
        if self.limit <= CALLS_PER_MINUTE_MAX {
            self.calls.push_back(now);
        }
        Ok(())
    }

    /// Whether there may be a call now, without counting one.
    pub(crate) fn look(&self, now: Instant) -> Result<(), Exceeded> {
        if self.limit > CALLS_PER_MINUTE_MAX {
            return Ok(());
        }
        let limit = self.limit;
        if limit == 0 {
            return Err(Exceeded { limit, wait: None });
        }
        // The call that must be over before there is room: the last but `limit`.
        let Some(blocking) = self.calls.len().checked_sub(limit as usize) else { return Ok(()) };
        let since = self.calls.get(blocking).map(|call| now.saturating_duration_since(*call));
        match since.and_then(|since| WINDOW.checked_sub(since)) {
            Some(wait) if !wait.is_zero() => Err(Exceeded { limit, wait: Some(wait) }),
            _ => Ok(()),
        }
    }
}

fn said(limit: u32, wait: Option<Duration>) -> String {
    match wait {
        None => "no calls are allowed, for `maxCallsPerMinute` is 0".to_owned(),
        Some(wait) => {
            // Rounded up: who waits as long as we said is not too early.
            let tenths = wait.as_nanos().div_ceil(100_000_000);
            let (seconds, tenth) = (tenths / 10, tenths % 10);
            format!(
                "the limit of {limit} calls a minute is reached; try again in {seconds}.{tenth} s, or raise \
                 `maxCallsPerMinute`"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn the_boundary_is_exact() {
        let start = Instant::now();
        let mut rate = Rate::per_minute(2);
        assert_eq!(rate.take(start), Ok(()));
        assert_eq!(rate.take(start + 10 * MILLISECOND), Ok(()));
        let early = start + WINDOW - MILLISECOND;
        let exceeded = Exceeded { limit: 2, wait: Some(MILLISECOND) };
        assert_eq!(rate.take(early), Err(exceeded));
        assert_eq!(rate.take(start + WINDOW), Ok(()));
        assert_eq!(rate.take(start + WINDOW).unwrap_err().wait, Some(10 * MILLISECOND));
    }

    #[test]
    fn what_is_said() {
        let said = |limit, wait| Exceeded { limit, wait }.to_string();
        insta::assert_snapshot!(said(20, Some(Duration::from_millis(12_340))), @"the limit of 20 calls a minute is reached; try again in 12.4 s, or raise `maxCallsPerMinute`");
        insta::assert_snapshot!(said(20, Some(Duration::from_nanos(1))), @"the limit of 20 calls a minute is reached; try again in 0.1 s, or raise `maxCallsPerMinute`");
        insta::assert_snapshot!(said(0, None), @"no calls are allowed, for `maxCallsPerMinute` is 0");
    }

    #[test]
    fn a_limit_changes_at_once() {
        let start = Instant::now();
        let mut rate = Rate::per_minute(1);
        rate.take(start).unwrap();
        assert!(rate.take(start).is_err());
        rate.set_limit(2);
        assert_eq!(rate.take(start + MILLISECOND), Ok(()));
        rate.set_limit(1);
        // Both of them must be over.
        assert_eq!(rate.take(start + WINDOW).unwrap_err().wait, Some(MILLISECOND));
        rate.set_limit(0);
        assert_eq!(rate.take(start + 9 * WINDOW).unwrap_err().wait, None);
        rate.set_limit(u32::MAX);
        for _ in 0..100 {
            assert_eq!(rate.take(start), Ok(()));
        }
        assert!(rate.calls.len() <= 2, "{}", rate.calls.len());
    }

    proptest! {
        /// No minute sees more than the limit, and who waits as long as told is let through at that moment and not before.
        #[test]
        fn no_minute_sees_more(limit in 1_u32..8, steps in prop::collection::vec(0_u64..40_000, 1..200)) {
            let start = Instant::now();
            let mut rate = Rate::per_minute(limit);
            let mut now = start;
            let mut calls: Vec<Instant> = Vec::new();
            for step in steps {
                now += Duration::from_millis(step);
                let recent = calls.iter().filter(|call| now.duration_since(**call) < WINDOW).count();
                match rate.take(now) {
                    Ok(()) => {
                        prop_assert!(recent < limit as usize);
                        calls.push(now);
                    }
                    Err(exceeded) => {
                        prop_assert_eq!(recent, limit as usize);
                        let wait = exceeded.wait.unwrap();
                        prop_assert!(!wait.is_zero() && wait <= WINDOW);
                        prop_assert!(rate.look(now + wait - Duration::from_nanos(1)).is_err());
                        prop_assert!(rate.look(now + wait).is_ok());
                    }
                }
                prop_assert!(rate.calls.len() <= limit as usize);
            }
        }

        /// Time that seems to run backwards harms nothing.
        #[test]
        fn any_order_of_times_is_taken(times in prop::collection::vec(0_u64..200_000, 1..100)) {
            let start = Instant::now();
            let mut rate = Rate::per_minute(3);
            for time in times {
                let _ = rate.take(start + Duration::from_millis(time));
                prop_assert!(rate.calls.iter().is_sorted());
                prop_assert!(rate.calls.len() <= 3);
            }
        }
    }
}
