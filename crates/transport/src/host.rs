//! What is served: who carries out calls, and who knows whom to let in.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use mcp::{Call, Caller, Connection, Server};

use crate::calls::{Context, OutcomeFuture};
use crate::endpoints::{EndpointAnswer, EndpointRequest};
use crate::page::Page;

pub trait Host: Send + Sync + 'static {
    fn server(&self) -> Arc<Server>;

    /// Carries a call out. Between two waits it must be quick: it shares its thread.
    fn call(&self, call: Call, caller: Caller, context: Context) -> OutcomeFuture;

    /// Everything is there that calls need.
    fn is_ready(&self) -> bool {
        true
    }

    /// A call that took its time is done, and may have changed something.
    fn touched(&self) {}

    /// Somebody begins to follow something: what changes from now on has to be told. Called before they are answered.
    fn followed(&self) {}

    /// What a client follows from now on, where that is more or less than before. What comes back is held for as long as
    /// it does. Called on a thread that must not wait.
    fn follow(&self, _connection: &Connection) -> Option<Following> {
        None
    }

    /// Adds what the host has counted to what is counted here. Called on a thread that must not wait.
    fn metrics(&self, _page: &mut Page) {}

    /// Every message, as it came and as it went.
    fn heard(&self, _message: &[u8]) {}
    fn said(&self, _message: &str) {}

    /// Who makes a request, by its headers; nobody in particular, where anybody is let in.
    fn authenticate(
        &self,
        _headers: &HeaderMap,
    ) -> impl Future<Output = Result<Option<Principal>, Denied>> + Send {
        std::future::ready(Ok(None))
    }

    /// Whether what a principal has shown us is still good: asked while a stream of its is open.
    fn is_still_good(&self, _principal: &Principal) -> bool {
        true
    }

    /// Whether whoever has shown nothing is let in: asked while a stream of theirs is open.
    fn lets_anybody_in(&self) -> bool {
        true
    }

    /// Whether there is an endpoint of the host's own at this path.
    fn has_endpoint(&self, _path: &str) -> bool {
        false
    }

    /// Answers a request to one of them, on a thread that may wait.
    fn answer(&self, _request: EndpointRequest) -> EndpointAnswer {
        EndpointAnswer { status: 404, body: None, allow: None }
    }

    /// Somebody is not let in, or calls us by a name or from a page that is not allowed, or somebody whom we know goes on
    /// with what is another's.
    fn turned_away(
        &self,
        _method: &str,
        _path: &str,
        _status: u16,
        _reason: &str,
        _principal: Option<&Principal>,
    ) {
    }

    /// A handshake was ended before its time: for processes that share a memory to tell one another. The time is in
    /// milliseconds since 1970.
    fn end_handshake(&self, _id: [u8; 16], _until: u64) {}

    /// Whether some process was told so.
    fn has_ended(&self, _id: [u8; 16]) -> bool {
        false
    }
}

/// That a client follows something.
pub type Following = Box<dyn Send + Sync>;

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub name: Arc<str>,
    /// What it may do, in the host's words.
    pub scope: Arc<str>,
    /// When what it has shown us ends, in milliseconds since 1970: no stream lives longer.
    pub until: Option<u64>,
}

/// A request that is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    pub status: u16,
    /// For the header `WWW-Authenticate`.
    pub challenge: Option<String>,
    /// When it may try again, where that is not its fault.
    pub retry_after: Option<Duration>,
    pub reason: String,
}
