//! What a program on a thread is told and has not taken yet. The task that tells it never waits.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::border::In;
use crate::engine::Gone;

pub(super) struct Inbox {
    told: Mutex<Told>,
    changed: Condvar,
    /// How many messages may wait, besides whether time stands still.
    max: usize,
}

#[derive(Default)]
struct Told {
    messages: VecDeque<In>,
    /// Whether time stands still from now on, if that has changed.
    is_held: Option<bool>,
    is_closed: bool,
}

/// There is no room for another message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Inbox {
    pub(super) fn new(max: usize) -> Self {
        Self { told: Mutex::default(), changed: Condvar::new(), max }
    }

    pub(super) fn push(&self, message: In) -> Result<(), Full> {
        let mut told = self.told();
        match message {
            In::Hold => told.hold(true),
            In::GoOn => told.hold(false),
            _ if told.messages.len() >= self.max => return Err(Full),
            message => told.messages.push_back(message),
        }
        drop(told);
        self.changed.notify_one();
        Ok(())
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.told().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next message; none if this time comes first.
    pub(super) fn receive(&self, until: Option<Instant>) -> Result<Option<In>, Gone> {
        let mut told = self.told();
        loop {
            if let Some(message) = told.take() {
                return Ok(Some(message));
            }
            if told.is_closed {
                return Err(Gone);
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(&mut told),
                Some(left) if left.is_zero() => return Ok(None),
                Some(left) => drop(self.changed.wait_for(&mut told, left)),
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock()
    }
}

impl Told {
    /// What was said before and not taken is taken back: they come in turns.
    fn hold(&mut self, is_held: bool) {
        self.is_held = match self.is_held {
            None => Some(is_held),
            Some(_) => None,
        };
    }

    fn take(&mut self) -> Option<In> {
        match self.is_held.take() {
            Some(true) => Some(In::Hold),
            Some(false) => Some(In::GoOn),
            None => self.messages.pop_front(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn answer(id: u64) -> In {
        In::Answer { id, answer: Ok(Default::default()) }
    }

    /// What is there, in its order.
    fn taken(inbox: &Inbox) -> Vec<String> {
        let take = || inbox.receive(Some(Instant::now())).unwrap_or_default();
        let words = std::iter::from_fn(take).map(|message| match message {
            In::Answer { id, .. } => id.to_string(),
            other => format!("{other:?}"),
        });
        words.collect()
    }

    #[test]
    fn full_inbox_refuses_messages_and_keeps_what_it_has() {
        let inbox = Inbox::new(2);
        assert_eq!(inbox.push(answer(0)), Ok(()));
        assert_eq!(inbox.push(answer(1)), Ok(()));
        assert_eq!(inbox.push(answer(2)), Err(Full));
        // Time has room of its own.
        assert_eq!(inbox.push(In::Hold), Ok(()));
        inbox.close();
        assert_eq!(taken(&inbox), ["Hold", "0", "1"]);
        assert!(inbox.receive(None).is_err(), "nothing more will come");
    }

    #[test]
    fn holds_are_merged() {
        let inbox = Inbox::new(2);
        for (told, expected) in [
            (vec![In::Hold], vec!["Hold"]),
            (vec![In::GoOn], vec!["GoOn"]),
            (vec![In::Hold, In::GoOn], vec![]),
            (vec![In::Hold, In::GoOn, In::Hold], vec!["Hold"]),
            (vec![In::GoOn, In::Hold], vec![]),
        ] {
            for message in told {
                inbox.push(message).unwrap();
            }
            assert_eq!(taken(&inbox), expected);
        }
    }

    #[test]
    fn message_and_end_wake_who_waits() {
        let inbox = Inbox::new(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (taken_by_waiting(&inbox), inbox.receive(None).is_err()));
            std::thread::sleep(Duration::from_millis(20));
            inbox.push(answer(7)).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            inbox.close();
            assert_eq!(waiting.join().unwrap(), (true, true));
        });
    }

    fn taken_by_waiting(inbox: &Inbox) -> bool {
        matches!(inbox.receive(None), Ok(Some(In::Answer { id: 7, .. })))
    }
}
