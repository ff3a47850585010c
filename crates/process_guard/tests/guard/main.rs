//! Guards as they are: real processes, killed and counted. The example `hold_children` is the guard, and where somebody
//! must die, it is who starts children.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

mod drained;
mod dying;
mod ending;
mod namespace;
mod processes;
mod reach;
mod refused;
mod starting;
