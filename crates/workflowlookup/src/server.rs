//! The product as an MCP server: what it offers, and who carries out the calls.

mod catalogue;
mod host;
pub(crate) mod http;
mod live;
pub(crate) mod log;
mod session_resources;
pub(crate) mod stdio;
mod tools;
mod waiting;
mod wake;
mod workers;

pub(crate) use host::Host;
