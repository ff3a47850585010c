//! Programs through the crate: what they become, what they come to, and what is said where that can not be.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its programs from files and runs them")]

mod entry;
mod node;
mod places;
mod programs;
mod properties;
mod quickjs;
mod snapshots;
mod stack;
