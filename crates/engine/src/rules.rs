//! The rules number of a session: which behavior it follows where a later version of the program would take another
//! path. A session keeps the number that it started with, so its log means the same to every later version.

use serde::{Deserialize, Serialize};

/// Recorded by `started`; absent there means 1. Each change of the path raises [`Rules::CURRENT`] and adds a predicate
/// below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules(u32);

impl Rules {
    /// Of sessions that started before the number was recorded.
    pub const FIRST: Self = Self(1);
    /// Of new sessions.
    pub const CURRENT: Self = Self(2);

    /// Whether this version of the program can continue such a session.
    pub fn is_known(self) -> bool {
        (Self::FIRST..=Self::CURRENT).contains(&self)
    }

    pub(crate) fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    /// Since 2, the gate of a loop is decided before its first step is handed out. Before, it was decided with the output
    /// of that step.
    pub(crate) fn decides_loop_gate_first(self) -> bool {
        self >= Self(2)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::FIRST
    }
}

impl std::fmt::Display for Rules {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(out)
    }
}
