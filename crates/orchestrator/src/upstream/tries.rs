//! How often something is tried: a few times at most, with growing pauses, and only where nothing can be done twice by it.

use std::time::Duration;

use super::call_context::CallContext;
use super::failure::{Failure, Repeat};

/// The pauses before a second and a third attempt, without what chance adds.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// Chance adds up to this part of a pause, so that many who failed together do not come again together.
const JITTER: f64 = 0.25;

pub(super) struct Tries {
    repeat: Repeat,
    made: usize,
    was_forgotten: bool,
}

impl Tries {
    pub(super) fn new(repeat: Repeat) -> Self {
        Self { repeat, made: 0, was_forgotten: false }
    }

    /// Waits for the next attempt, or gives the failure back where there is none.
    pub(super) async fn again(
        &mut self,
        failure: Failure,
        context: &CallContext,
    ) -> Result<(), Failure> {
        let pause = PAUSES.get(self.made).filter(|_| failure.may_try_again(self.repeat));
        let Some(pause) = pause.map(|pause| pause.mul_f64(1.0 + JITTER * chance())) else {
            return Err(failure);
        };
        if matches!(failure, Failure::Forgotten { .. }) {
            // A new session helps at once, or not at all.
            let is_first = !std::mem::replace(&mut self.was_forgotten, true);
            return if is_first { Ok(()) } else { Err(failure) };
        }
        let pause = failure.retry_after().map_or(pause, |after| after.max(pause));
        // Who has no time left hears now what went wrong, and not later that it was too late.
        if pause >= context.deadline.left() {
            return Err(failure);
        }
        self.made += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = context.cancelled.cancelled() => Err(Failure::Cancelled),
        }
    }
}

/// From 0 to 1. Nobody's safety depends on it.
fn chance() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    let bits = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(0);
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::deadline::Deadline;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn there_are_two_more_attempts_at_most() {
        let context = CallContext::background(Deadline::new(MINUTE, MINUTE));
        let failure = Failure::Connect { why: String::new(), incident: 1 };
        let mut tries = Tries::new(Repeat::Never);
        for pause in PAUSES {
            let before = context.deadline.elapsed();
            tries.again(failure.clone(), &context).await.unwrap();
            let waited = context.deadline.elapsed() - before;
            assert!(
                waited >= pause && waited <= pause.mul_f64(1.0 + JITTER) + Duration::from_millis(2),
                "{waited:?}"
            );
        }
        assert_eq!(tries.again(failure.clone(), &context).await, Err(failure));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_done_is_not_done_again() {
        let context = CallContext::background(Deadline::new(MINUTE, MINUTE));
        let broken = |sent| Failure::Broken { why: String::new(), sent, incident: 1 };
        let said = |code| Failure::Upstream { code, message: String::new(), data: None };
        let refused = |after: Option<u64>| Failure::Refused {
            why: String::new(),
            is_for_now: true,
            retry_after: after.map(Duration::from_secs),
        };
        for (failure, repeat, again) in [
            (broken(true), Repeat::Never, false),
            (broken(false), Repeat::Never, true),
            (broken(true), Repeat::Harmless, true),
            (said(-32603), Repeat::Never, false),
            (said(-32603), Repeat::Harmless, true),
            (said(-32602), Repeat::Harmless, false),
            (Failure::Cancelled, Repeat::Harmless, false),
            (refused(None), Repeat::Harmless, false),
            (refused(Some(7)), Repeat::Never, true),
            (refused(Some(61)), Repeat::Harmless, false),
        ] {
            let tried = Tries::new(repeat).again(failure.clone(), &context).await;
            assert_eq!(tried.is_ok(), again, "{failure:?}");
        }
        let short = CallContext::background(Deadline::new(Duration::from_millis(900), MINUTE / 60));
        assert!(Tries::new(Repeat::Harmless).again(broken(true), &short).await.is_err());
    }
}
