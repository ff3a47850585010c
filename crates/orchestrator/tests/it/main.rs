//! Upstreams as they are: real processes and real sockets, called through the whole of the orchestrator. The example
//! `test_server` does whatever a server can do, right or wrong, and is the guard of itself.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![cfg(unix)]

mod asking;
mod calls;
mod closing;
mod connecting;
mod hostile;
mod http;
mod lists;
mod oauth;
mod resources;
mod results;
mod retries;
mod rules;
mod timing;
mod whom;
mod wire;
mod world;
