//! How long somebody waits for an upstream. Every sign of progress begins the wait anew, up to a total; while a person is
//! being asked, only the total counts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Deadline {
    began: Instant,
    /// The wait without a sign.
    patience: Duration,
    /// The longest wait, counted from the beginning.
    total: Duration,
    /// When the wait ends, in nanoseconds since it began.
    until: AtomicU64,
    /// How many questions a person has before them.
    questions: AtomicU32,
    /// A person has answered: there is less time than whoever waits believes.
    answered: Notify,
}

impl Deadline {
    pub(crate) fn new(patience: Duration, total: Duration) -> Self {
        let total = total.max(patience);
        Self {
            began: Instant::now(),
            patience,
            total,
            until: AtomicU64::new(nanos(patience)),
            questions: AtomicU32::new(0),
            answered: Notify::new(),
        }
    }

    /// The upstream is at it: the wait begins anew.
    pub(crate) fn extend(&self) {
        let until = self.began.elapsed().saturating_add(self.patience).min(self.total);
        self.until.fetch_max(nanos(until), Ordering::Relaxed);
    }

    /// A person is asked, until what is returned goes.
    pub(crate) fn question(&self) -> Question<'_> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        Question(self)
    }

    /// Returns when the time is up.
    pub(crate) async fn passed(&self) {
        loop {
            let answered = self.answered.notified();
            let left = self.left();
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = answered => {}
            }
        }
    }

    pub(crate) fn left(&self) -> Duration {
        let until = match self.questions.load(Ordering::Relaxed) {
            0 => Duration::from_nanos(self.until.load(Ordering::Relaxed)),
            _ => self.total,
        };
        until.saturating_sub(self.began.elapsed())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

pub(crate) struct Question<'d>(&'d Deadline);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.extend();
        self.0.questions.fetch_sub(1, Ordering::Relaxed);
        self.0.answered.notify_waiters();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_wait_up_to_the_total() {
        let deadline = Deadline::new(SECOND, 3 * SECOND);
        for _ in 0..10 {
            tokio::time::advance(SECOND / 2).await;
            deadline.extend();
        }
        assert_eq!(deadline.left(), Duration::ZERO);
        let deadline = Deadline::new(SECOND, 3 * SECOND);
        tokio::time::advance(SECOND / 2).await;
        deadline.extend();
        assert_eq!(deadline.left(), SECOND);
        deadline.passed().await;
        assert!(deadline.elapsed() >= SECOND * 3 / 2 && deadline.elapsed() < 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_has_the_total() {
        let deadline = Deadline::new(SECOND, 60 * SECOND);
        let question = deadline.question();
        let asked = async {
            tokio::time::sleep(30 * SECOND).await;
            drop(question);
        };
        tokio::join!(deadline.passed(), asked);
        assert!(deadline.elapsed() >= 31 * SECOND && deadline.elapsed() < 32 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_total_that_is_shorter_than_the_wait_is_the_wait() {
        let deadline = Deadline::new(5 * SECOND, SECOND);
        deadline.passed().await;
        assert!(deadline.elapsed() >= 5 * SECOND);
    }
}
