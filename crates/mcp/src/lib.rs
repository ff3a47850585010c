//! How we talk: JSON-RPC and MCP in every revision, without I/O. Bytes go in, and the outcomes of calls;
//! actions come out. Knows no workflow, calls no tool, waits for nothing.

mod action;
mod asking;
mod batches;
mod connection;
pub mod content;
mod dispatch;
mod era;
mod jsonrpc;
mod listening;
mod quote;
mod revision;
mod server;

pub use action::{Action, Call, Caller, Changed, Outcome, Progress, Reference, Ticket};
pub use asking::{Answer, Answers, Ask, Form};
pub use connection::{Connection, Transport};
pub use jsonrpc::{Error, Id, params};
pub use quote::{Quoted, quote};
pub use revision::{Revision, Traits};
pub use server::Server;
