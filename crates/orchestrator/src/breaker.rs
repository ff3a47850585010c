//! A breaker per upstream: after repeated failures it answers at once for a while, then lets one call through to try.
//! Which failures count is the caller's to say. Time is an argument.
//!
//! Every call that is let through gets an [`Attempt`], which comes back with how it went. Calls that began before the
//! breaker opened or closed say nothing about the time since, and are not listened to.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many failures in a row open it…
pub(crate) const FAILURES: usize = 5;
/// …where they all were within this time.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// How long it is open at first. Each trial that fails doubles it, up to the most.
pub(crate) const REST: Duration = Duration::from_secs(5);
pub(crate) const REST_MAX: Duration = Duration::from_secs(60);
/// A trial that nobody hears of again is given up after this, and there may be another one.
pub(crate) const TRIAL_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub(crate) struct Breaker {
    state: State,
    /// Changes whenever the state does.
    era: u64,
}

/// What an attempt was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// Connecting, and what every server is asked: lists, signs of life.
    Reaching,
    /// Calling a tool, reading a resource. A server can be reached well and fall over each time that it is called, so that
    /// only another call says that this is over.
    Calling,
}

#[derive(Debug, Clone)]
enum State {
    Closed {
        /// When the last failures in a row were, oldest first.
        failures: VecDeque<(Instant, What)>,
    },
    Open {
        until: Instant,
        rest: Duration,
        /// What failed, the most telling of it.
        what: What,
    },
    Trying {
        since: Instant,
        rest: Duration,
        what: What,
    },
}

/// A call that was let through.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the breaker waits to hear how it went"]
pub(crate) struct Attempt {
    era: u64,
    /// Whether everybody else waits for this one.
    is_trial: bool,
}

/// Why a call is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Open {
    #[error("the server failed repeatedly and is left alone; it is tried again in {} s", .wait.as_nanos().div_ceil(1_000_000_000))]
    Resting { wait: Duration },
    #[error(
        "the server failed repeatedly, and one call is trying whether it answers again; try again soon"
    )]
    Trying,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { state: State::Closed { failures: VecDeque::new() }, era: 0 }
    }
}

impl Breaker {
    /// Asks for a call. Every attempt must come back, by [`succeeded`](Self::succeeded), [`failed`](Self::failed) or
    /// [`abandoned`](Self::abandoned).
    pub(crate) fn attempt(&mut self, now: Instant) -> Result<Attempt, Open> {
        self.look(now)?;
        let (State::Open { rest, what, .. } | State::Trying { rest, what, .. }) = self.state else {
            return Ok(Attempt { era: self.era, is_trial: false });
        };
        self.enter(State::Trying { since: now, rest, what });
        Ok(Attempt { era: self.era, is_trial: true })
    }

    /// Whether a call would be let through now, without asking for it.
    pub(crate) fn look(&self, now: Instant) -> Result<(), Open> {
        match self.state {
            State::Open { until, .. } if now < until => {
                Err(Open::Resting { wait: until.duration_since(now) })
            }
            State::Trying { since, .. } if now.saturating_duration_since(since) < TRIAL_MAX => {
                Err(Open::Trying)
            }
            State::Closed { .. } | State::Open { .. } | State::Trying { .. } => Ok(()),
        }
    }

    pub(crate) fn succeeded(&mut self, attempt: Attempt, what: What, now: Instant) {
        if attempt.era != self.era {
            return;
        }
        match &mut self.state {
            State::Closed { failures } => failures.retain(|(_, failed)| *failed > what),
            // It can be reached again, but the next call that fails is one too many.
            State::Trying { what: failed, .. } if *failed > what => {
                let failures = std::iter::repeat_n((now, *failed), FAILURES - 1).collect();
                self.enter(State::Closed { failures });
            }
            State::Trying { .. } => self.enter(State::Closed { failures: VecDeque::new() }),
            State::Open { .. } => {}
        }
    }

    pub(crate) fn failed(&mut self, attempt: Attempt, what: What, now: Instant) {
        if attempt.era != self.era {
            return;
        }
        match &mut self.state {
            State::Closed { failures } => {
                failures.push_back((now, what));
                if failures.len() < FAILURES {
                    return;
                }
                let what = failures.iter().map(|(_, what)| *what).max().unwrap_or(what);
                let first = failures.pop_front();
                if first.is_some_and(|(first, _)| now.saturating_duration_since(first) <= WINDOW) {
                    self.enter(State::Open { until: now + REST, rest: REST, what });
                }
            }
            State::Trying { rest, what: before, .. } => {
                let (rest, what) = (REST_MAX.min(*rest * 2), what.max(*before));
                self.enter(State::Open { until: now + rest, rest, what });
            }
            State::Open { .. } => {}
        }
    }

    /// The call came to no end that says anything: it was cancelled, or never sent. After a trial somebody else may try.
    pub(crate) fn abandoned(&mut self, attempt: Attempt, now: Instant) {
        if let State::Trying { rest, what, .. } = self.state
            && attempt.era == self.era
        {
            self.enter(State::Open { until: now, rest, what });
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Breaker {
        fn is_closed(&self) -> bool {
            matches!(self.state, State::Closed { .. })
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn open(breaker: &mut Breaker, now: Instant) {
        for _ in 0..FAILURES {
            let attempt = breaker.attempt(now).unwrap();
            breaker.failed(attempt, What::Calling, now);
        }
        assert!(!breaker.is_closed());
    }

    #[test]
    fn it_opens_rests_tries_and_closes() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        open(&mut breaker, start);
        let early = start + REST - Duration::from_nanos(1);
        assert_eq!(breaker.attempt(start), Err(Open::Resting { wait: REST }));
        assert!(breaker.attempt(early).is_err());
        let trial = breaker.attempt(start + REST).unwrap();
        assert!(trial.is_trial);
        assert_eq!(breaker.attempt(start + REST), Err(Open::Trying));
        breaker.succeeded(trial, What::Calling, start);
        let attempt = breaker.attempt(start + REST).unwrap();
        assert!(breaker.is_closed() && !attempt.is_trial);
    }

    #[test]
    fn the_rest_doubles_up_to_a_minute_and_begins_anew() {
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        let mut rests = Vec::new();
        open(&mut breaker, now);
        for _ in 0..6 {
            let Err(Open::Resting { wait }) = breaker.attempt(now) else { panic!("it is open") };
            rests.push(wait.as_secs());
            now += wait;
            let trial = breaker.attempt(now).unwrap();
            breaker.failed(trial, What::Calling, now);
        }
        assert_eq!(rests, [5, 10, 20, 40, 60, 60]);
        now += REST_MAX;
        let trial = breaker.attempt(now).unwrap();
        breaker.succeeded(trial, What::Calling, now);
        open(&mut breaker, now);
        assert_eq!(breaker.attempt(now), Err(Open::Resting { wait: REST }));
    }

    #[test]
    fn only_failures_in_a_row_and_close_together_count() {
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        for turn in 0..40 {
            let attempt = breaker.attempt(now).unwrap();
            if turn % FAILURES == FAILURES - 1 {
                breaker.succeeded(attempt, What::Calling, now);
            } else {
                breaker.failed(attempt, What::Calling, now);
            }
        }
        assert!(breaker.is_closed());
        for _ in 0..40 {
            now += WINDOW / (FAILURES as u32 - 1) + SECOND;
            let attempt = breaker.attempt(now).unwrap();
            breaker.failed(attempt, What::Calling, now);
        }
        assert!(breaker.is_closed());
    }

    /// It connects well, and falls over each time that it is called.
    #[test]
    fn being_reached_says_nothing_about_being_called() {
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        let reach = |breaker: &mut Breaker, now| {
            let attempt = breaker.attempt(now).unwrap();
            breaker.succeeded(attempt, What::Reaching, now);
        };
        for _ in 0..FAILURES {
            let attempt = breaker.attempt(now).unwrap();
            reach(&mut breaker, now);
            breaker.failed(attempt, What::Calling, now);
        }
        assert!(!breaker.is_closed());
        // Reached again, it is called once more, and is left alone again where that goes wrong.
        now += REST;
        reach(&mut breaker, now);
        assert!(breaker.is_closed());
        let attempt = breaker.attempt(now).unwrap();
        breaker.failed(attempt, What::Calling, now);
        assert!(!breaker.is_closed());
        now += REST;
        reach(&mut breaker, now);
        for well in [true, false] {
            let attempt = breaker.attempt(now).unwrap();
            match well {
                true => breaker.succeeded(attempt, What::Calling, now),
                false => breaker.failed(attempt, What::Calling, now),
            }
        }
        assert!(breaker.is_closed());
        // What only could not be reached, and can be now, is as good as new.
        for _ in 0..3 * FAILURES {
            let attempt = breaker.attempt(now).unwrap();
            breaker.failed(attempt, What::Reaching, now);
            reach(&mut breaker, now);
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn calls_from_before_say_nothing() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        let (slow, slower) = (breaker.attempt(start).unwrap(), breaker.attempt(start).unwrap());
        open(&mut breaker, start);
        breaker.succeeded(slow, What::Calling, start);
        assert!(!breaker.is_closed());
        let trial = breaker.attempt(start + REST).unwrap();
        breaker.failed(slower, What::Calling, start + REST);
        breaker.succeeded(trial, What::Calling, start);
        assert!(breaker.is_closed());
    }

    #[test]
    fn a_trial_that_is_lost_or_abandoned_makes_room_for_another() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        open(&mut breaker, start);
        let now = start + REST;
        let trial = breaker.attempt(now).unwrap();
        breaker.abandoned(trial, now);
        let lost = breaker.attempt(now).unwrap();
        assert!(breaker.attempt(now + TRIAL_MAX - SECOND).is_err());
        let trial = breaker.attempt(now + TRIAL_MAX).unwrap();
        assert!(trial.is_trial);
        breaker.failed(lost, What::Calling, now + TRIAL_MAX);
        breaker.succeeded(trial, What::Calling, start);
        assert!(breaker.is_closed());
    }

    #[test]
    fn what_is_said() {
        insta::assert_snapshot!(Open::Resting { wait: Duration::from_millis(4_100) }, @"the server failed repeatedly and is left alone; it is tried again in 5 s");
        insta::assert_snapshot!(Open::Trying, @"the server failed repeatedly, and one call is trying whether it answers again; try again soon");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(u64),
        Begin,
        Succeed(usize, What),
        Fail(usize, What),
        Abandon(usize),
    }

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![Just(What::Reaching), Just(What::Calling)]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => (0_u64..30_000).prop_map(Step::Wait),
            4 => Just(Step::Begin),
            1 => (any::<usize>(), what()).prop_map(|(at, what)| Step::Succeed(at, what)),
            4 => (any::<usize>(), what()).prop_map(|(at, what)| Step::Fail(at, what)),
            1 => any::<usize>().prop_map(Step::Abandon),
        ]
    }

    proptest! {
        #[test]
        fn whatever_happens(steps in prop::collection::vec(step(), 1..300)) {
            let mut now = Instant::now();
            let mut breaker = Breaker::default();
            let mut attempts: Vec<Attempt> = Vec::new();
            for step in steps {
                let was_closed = breaker.is_closed();
                let take = |attempts: &mut Vec<Attempt>, at: usize| {
                    (!attempts.is_empty()).then(|| attempts.remove(at % attempts.len()))
                };
                match step {
                    Step::Wait(millis) => now += Duration::from_millis(millis),
                    Step::Begin => {
                        let seen = breaker.look(now);
                        match breaker.attempt(now) {
                            Ok(attempt) => {
                                prop_assert_eq!(seen, Ok(()));
                                prop_assert_eq!(attempt.is_trial, !was_closed);
                                if attempt.is_trial {
                                    // There is one trial at a time.
                                    prop_assert_eq!(breaker.attempt(now), Err(Open::Trying));
                                }
                                attempts.push(attempt);
                            }
                            Err(open) => {
                                prop_assert_eq!(seen, Err(open));
                                prop_assert!(!was_closed);
                                if let Open::Resting { wait } = open {
                                    prop_assert!(!wait.is_zero() && wait <= REST_MAX);
                                    prop_assert!(breaker.look(now + wait).is_ok());
                                }
                            }
                        }
                    }
                    Step::Succeed(at, what) => if let Some(attempt) = take(&mut attempts, at) {
                        let is_trial = attempt.is_trial && attempt.era == breaker.era;
                        breaker.succeeded(attempt, what, now);
                        prop_assert_eq!(breaker.is_closed(), was_closed || is_trial);
                    },
                    Step::Fail(at, what) => if let Some(attempt) = take(&mut attempts, at) {
                        breaker.failed(attempt, what, now);
                        // A failure closes nothing.
                        prop_assert!(was_closed || !breaker.is_closed());
                    },
                    Step::Abandon(at) => if let Some(attempt) = take(&mut attempts, at) {
                        breaker.abandoned(attempt, now);
                        prop_assert_eq!(breaker.is_closed(), was_closed);
                    },
                }
                if let State::Closed { failures } = &breaker.state {
                    prop_assert!(failures.len() < FAILURES);
                }
                // Never does it stay shut for longer than a lost trial or the longest rest.
                prop_assert!(breaker.look(now + TRIAL_MAX).is_ok());
            }
        }
    }
}
