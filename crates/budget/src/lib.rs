//! What a call may cost, and patterns and JSON Schemas that run within it. Whoever evaluates what strangers wrote over
//! what strangers sent counts every step and every byte in a [`Budget`], and stops when it is exhausted. Pure: no clock;
//! a deadline, where one is needed, belongs to the caller.

use std::cell::Cell;

use serde_json::Value;

pub mod pattern;
pub mod schema;

/// The largest output or context of a stateless call, in bytes.
pub const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// How many steps one call may take: 50 for each byte of the largest input. A step is about ten nanoseconds of work.
pub const CALL_STEPS_MAX: u64 = 50 * INPUT_BYTES_MAX as u64;
/// How many steps a call may take on a thread that others wait for. What needs more starts again elsewhere.
pub const INLINE_STEPS_MAX: u64 = 500_000;
/// How many bytes of text one call may produce from templates.
pub const CALL_BYTES_MAX: u64 = 4 * INPUT_BYTES_MAX as u64;

/// How many bytes are compared or copied in one step.
const BYTES_PER_STEP: usize = 16;

/// The remaining allowance of one call. Shared by reference: whoever works spends from it.
#[derive(Debug)]
pub struct Budget {
    steps_max: u64,
    bytes_max: u64,
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

/// More work than a call may cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    #[error("more than {limit} steps of work")]
    Steps { limit: u64 },
    #[error("more than {limit} bytes of text")]
    Bytes { limit: u64 },
}

#[cfg(feature = "tally")]
thread_local! {
    static SPENT_BY_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The steps that this thread has spent. What a budget refused is not among them.
#[cfg(feature = "tally")]
pub fn spent_by_thread() -> u64 {
    SPENT_BY_THREAD.get()
}

impl Budget {
    /// What one call may take, on a thread that nobody else waits for.
    pub fn for_call() -> Self {
        Self::with_steps(CALL_STEPS_MAX)
    }

    /// What one call may take on a thread that others wait for.
    pub fn for_inline_call() -> Self {
        Self::with_steps(INLINE_STEPS_MAX)
    }

    pub fn with_steps(steps_max: u64) -> Self {
        Self { steps_max, bytes_max: CALL_BYTES_MAX, steps: Cell::new(0), bytes: Cell::new(0) }
    }

    /// Spends steps. Once exhausted, a budget stays so.
    pub fn spend(&self, steps: u64) -> Result<(), Exhausted> {
        let spent = self.steps.get().saturating_add(steps);
        self.steps.set(spent);
        if spent > self.steps_max {
            return Err(self.exhausted());
        }
        #[cfg(feature = "tally")]
        SPENT_BY_THREAD.set(SPENT_BY_THREAD.get() + steps);
        Ok(())
    }

    /// Spends the steps that it takes to compare, scan or copy so many bytes.
    pub fn spend_scan(&self, bytes: usize) -> Result<(), Exhausted> {
        self.spend(scan_steps(bytes))
    }

    /// Spends bytes of text that is produced, and the steps to write them.
    pub fn spend_output(&self, bytes: usize) -> Result<(), Exhausted> {
        let spent = self.bytes.get().saturating_add(bytes as u64);
        self.bytes.set(spent);
        if spent > self.bytes_max {
            return Err(Exhausted::Bytes { limit: self.bytes_max });
        }
        self.spend_scan(bytes)
    }

    /// Spends the steps that it takes to go through a value, or to copy it, and says how many.
    pub fn spend_value(&self, value: &Value) -> Result<u64, Exhausted> {
        let own = match value {
            Value::String(text) => scan_steps(text.len()),
            _ => 1,
        };
        self.spend(own)?;
        let mut steps = own;
        match value {
            Value::Array(items) => {
                for item in items {
                    steps += self.spend_value(item)?;
                }
            }
            Value::Object(fields) => {
                for (key, inner) in fields {
                    self.spend_scan(key.len())?;
                    steps += scan_steps(key.len()) + self.spend_value(inner)?;
                }
            }
            _ => {}
        }
        Ok(steps)
    }

    /// The steps that were spent so far: what the call cost.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The bytes of text that were produced so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// The steps that are left.
    pub fn remaining(&self) -> u64 {
        self.steps_max.saturating_sub(self.steps.get())
    }

    /// How many steps were asked of it beyond what it had.
    pub fn overspent(&self) -> u64 {
        self.steps.get().saturating_sub(self.steps_max)
    }

    /// Whether more was asked of it than it had.
    pub fn is_exhausted(&self) -> bool {
        self.steps.get() > self.steps_max || self.bytes.get() > self.bytes_max
    }

    /// Spends all that is left, and more.
    fn exhaust(&self) -> Exhausted {
        self.steps.set(self.steps.get().max(self.steps_max.saturating_add(1)));
        self.exhausted()
    }

    fn exhausted(&self) -> Exhausted {
        Exhausted::Steps { limit: self.steps_max }
    }
}

/// The steps that it takes to compare, scan or copy so many bytes.
pub fn scan_steps(bytes: usize) -> u64 {
    (bytes / BYTES_PER_STEP) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_budget_stays_exhausted() {
        let budget = Budget::with_steps(10);
        assert_eq!(budget.spend(10), Ok(()));
        assert_eq!(budget.spend(1), Err(Exhausted::Steps { limit: 10 }));
        assert_eq!(budget.spend(0), Err(Exhausted::Steps { limit: 10 }));
        assert_eq!(budget.remaining(), 0);
    }

    #[test]
    fn output_is_counted_in_bytes_and_steps() {
        let budget = Budget::for_call();
        assert_eq!(budget.spend_output(1600), Ok(()));
        assert_eq!((budget.bytes(), budget.steps()), (1600, 101));
        let too_much = budget.spend_output(CALL_BYTES_MAX as usize);
        assert_eq!(too_much, Err(Exhausted::Bytes { limit: CALL_BYTES_MAX }));
    }
}
