//! The product as an MCP server: what it offers, and who carries out the calls.

mod catalogue;
mod host;
pub(crate) mod stdio;
mod tools;

pub(crate) use host::Host;
