//! How we talk: JSON-RPC and MCP in every revision, both sides of it, without I/O. Bytes go in, and the outcomes of calls;
//! actions come out. Knows no workflow, calls no tool, waits for nothing. [`client`] is the side that asks; the rest answers.

mod action;
mod asking;
mod batches;
pub mod client;
mod connection;
pub mod content;
mod dispatch;
mod era;
pub mod http;
mod jsonrpc;
mod listening;
mod mirrored;
mod quote;
mod revision;
mod server;
mod traced;

pub use action::{
    Abilities, Action, Audience, Call, Caller, Changed, Level, Log, Outcome, Private, Progress,
    Reference, Reply, Ticket,
};
pub use asking::{Answer, Answers, Ask, Form, Question, Root, Sampled, Sampling, Visit};
pub use connection::{BATCH_MAX, Connection, Handshake, Peer, Transport};
pub use jsonrpc::{Body, Error, Id, params};
pub use mirrored::misplaced_header;
pub use quote::{Quoted, quote};
pub use revision::{Era, Revision, Traits};
pub use server::{HiddenTool, More, Server, Unfollowable};
pub use traced::{Mark, Traced};
