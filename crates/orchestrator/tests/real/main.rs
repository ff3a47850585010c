//! Servers that others have written, as they are: from npm and from PyPI, over stdio and over HTTP. What they say is
//! compared with what they said before.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

mod everything;
#[path = "../../../process_guard/tests/guard/processes.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod processes;
mod time;
mod tour;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::path::{Path, PathBuf};

/// Where they are, and what they need.
fn installed(place: &str) -> PathBuf {
    let Some(clients) = std::env::var_os("WORKFLOWLOOKUP_CLIENTS") else {
        panic!("`WORKFLOWLOOKUP_CLIENTS` says where the servers are; `cargo xtask test` sets it");
    };
    Path::new(&clients).join(place)
}
