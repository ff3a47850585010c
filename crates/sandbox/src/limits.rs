//! How much a program may use.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Each has its own error when it is reached, but for the calls at once: those beyond wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of the program's own values.
    pub memory: usize,
    /// From its start to its end, waiting for calls included. While a person is asked, it stands still.
    pub time: Duration,
    /// Bytes of stack.
    pub stack: usize,
    /// Calls of functions outside of it.
    pub calls: usize,
    /// How many of them are under way at a time.
    pub calls_at_once: usize,
    /// Lines that it writes to its console.
    pub lines: usize,
    /// Bytes of its result, as JSON.
    pub result: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 * 1024 * 1024,
            time: Duration::from_secs(10),
            stack: 1024 * 1024,
            calls: 200,
            calls_at_once: 16,
            lines: 200,
            result: 256 * 1024,
        }
    }
}

/// What a program needs at least to do anything, and what no option can exceed: the engine knows no larger stack, and where it
/// is given none at all, it has no limit.
const MEMORY: RangeInclusive<usize> = MIB..=4096 * MIB;
const STACK: RangeInclusive<usize> = 64 * 1024..=8 * MIB;
const TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 3_600);
const MIB: usize = 1024 * 1024;

impl Limits {
    pub(crate) fn within_reason(self) -> Self {
        Self {
            memory: self.memory.clamp(*MEMORY.start(), *MEMORY.end()),
            stack: self.stack.clamp(*STACK.start(), *STACK.end()),
            time: self.time.clamp(*TIME.start(), *TIME.end()),
            ..self
        }
    }
}
