//! What is served: the one who carries out calls, and who knows whom to let in.

use std::sync::Arc;

use mcp::{Call, Caller, Carried, Server};

pub trait Host: Send + Sync + 'static {
    fn server(&self) -> Arc<Server>;

    /// Carries a call out, begins it, or says what is to be done on a thread that may wait.
    fn carry_out(&self, call: Call, caller: Caller) -> Carried;

    /// Everything is there that calls need.
    fn is_ready(&self) -> bool {
        true
    }
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

/// A request that is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    pub status: u16,
    /// For the header `WWW-Authenticate`.
    pub challenge: Option<String>,
    pub reason: String,
}
