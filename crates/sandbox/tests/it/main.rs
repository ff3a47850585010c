//! Programs as agents write them, and what comes of them; and those who run them: threads that get stuck, processes that lie, callers
//! that go away.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod cancelling;
mod handed_in;
mod holding;
mod liars;
mod memory;
mod noting;
mod programs;
mod sharing;
mod threads;
mod world;
