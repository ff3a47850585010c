//! The product as an MCP server: what it offers, and who carries out the calls.

mod catalogue;
mod endpoints;
mod host;
pub(crate) mod http;
mod live;
pub(crate) mod log;
mod metrics;
pub(crate) mod observer;
mod session_resources;
pub(crate) mod stdio;
mod tools;
pub(crate) mod traces;
pub(crate) mod upstreams;
mod waiting;
mod wake;
mod workers;

pub(crate) use host::Host;
