//! What calls of this process made of sessions, counted since it began: for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::Channel;
use store::sessions::Verdict;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    advances: [AtomicU64; VERDICTS.len()],
    begun: [AtomicU64; BEGINNINGS.len()],
    decisions: [[AtomicU64; RULINGS.len()]; CHANNELS.len()],
}

const VERDICTS: [&str; 4] = ["accepted", "returned", "waiting", "declined"];
const BEGINNINGS: [&str; 3] = ["new", "repeated", "copied"];
const CHANNELS: [&str; 3] = ["client", "cli", "token"];
const RULINGS: [&str; 2] = ["approved", "declined"];

/// How a session came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    New,
    /// It was there already: somebody has repeated the call that began it.
    Repeated,
    /// From where another one stood.
    Copied,
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruled {
    Approved,
    Declined,
}

impl Tally {
    /// An output was handed in, and this is what it was told.
    pub(crate) fn advanced(&self, verdict: &Verdict) {
        let at = match verdict {
            Verdict::Accepted => 0,
            Verdict::Returned { .. } => 1,
            Verdict::Waiting => 2,
            Verdict::Declined { .. } => 3,
        };
        add(&self.advances[at]);
    }

    pub(crate) fn begun(&self, beginning: Beginning) {
        add(&self.begun[beginning as usize]);
    }

    pub(crate) fn decided(&self, channel: Channel, ruled: Ruled) {
        let channel = match channel {
            Channel::Client => 0,
            Channel::Cli => 1,
            Channel::Token => 2,
        };
        add(&self.decisions[channel][ruled as usize]);
    }

    /// By verdict.
    pub(crate) fn advances(&self) -> impl Iterator<Item = (&'static str, u64)> {
        VERDICTS.into_iter().zip(self.advances.iter().map(load))
    }

    pub(crate) fn beginnings(&self) -> impl Iterator<Item = (&'static str, u64)> {
        BEGINNINGS.into_iter().zip(self.begun.iter().map(load))
    }

    /// By channel and ruling.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        CHANNELS.into_iter().zip(&self.decisions).flat_map(|(channel, rulings)| {
            RULINGS
                .into_iter()
                .zip(rulings.iter().map(load))
                .map(move |(ruling, count)| (channel, ruling, count))
        })
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
