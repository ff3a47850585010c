//! The product as an MCP server: what it offers, and who carries out the calls.

mod catalogue;
mod endpoints;
mod host;
pub mod http;
mod live;
pub mod log;
mod metrics;
pub mod observer;
mod session_resources;
pub mod stdio;
mod tools;
mod toolset;
pub mod traces;
pub mod upstreams;
mod waiting;
mod wake;

pub use host::Host;
pub use toolset::Toolset;
