//! One call of one tool, as its caller words it, and what comes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::kept::Kept;
pub use mcp::client::Progress;
pub use registry::policy::AskedBy;

/// A call of a tool.
#[derive(Clone)]
pub struct Call {
    pub server: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Instead of what the entry says.
    pub timeout: Option<Duration>,
    /// The largest result that is handed over whole, instead of what all have.
    pub result_limit: Option<usize>,
    pub asked_by: AskedBy,
    /// Whose call it is. Of its own where nobody says so.
    pub party: Party,
    /// Who can answer for a person: confirmations, and what the server itself wants to know.
    pub asker: Option<Arc<dyn Asker>>,
    /// Hears of every step that the server tells of. Called on the thread that reads from the server: it must not wait.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Cancelling it ends the call, and tells the server.
    pub cancelled: CancellationToken,
}

impl Call {
    pub fn new(
        server: impl Into<String>,
        tool: impl Into<String>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            server: server.into(),
            tool: tool.into(),
            arguments,
            timeout: None,
            result_limit: None,
            asked_by: AskedBy::Agent,
            party: Party::alone(),
            asker: None,
            progress: None,
            cancelled: CancellationToken::new(),
        }
    }
}

/// Whose something is. What a server asks in the middle of a call may come without a word about which call it is: it is
/// passed on only where all that it can belong to is one party's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party(Whose);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Named(Arc<str>),
    Alone(u64),
}

/// How many had no name.
static ALONE: AtomicU64 = AtomicU64::new(0);

impl Party {
    /// Everything of this name is one party's.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self(Whose::Named(name.into()))
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Whose::Named(name) => Some(name),
            Whose::Alone(_) => None,
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        self.name().is_some()
    }

    /// One that is nobody else's.
    pub fn alone() -> Self {
        Self(Whose::Alone(ALONE.fetch_add(1, Ordering::Relaxed)))
    }
}

/// What came of a call. An `isError` result is one too.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The whole result, or as much of it as fits (see `kept`).
    pub raw: Value,
    /// The same in the server's own letters, where it was not cut: its order of properties, and its numbers to the digit.
    pub sent: Option<Box<RawValue>>,
    /// The server says that the tool failed.
    pub is_error: bool,
    /// What does not add up, e.g. structured content that is not what the tool promised.
    pub warnings: Vec<String>,
    /// Where the whole result is, if `raw` had to be cut.
    pub kept: Option<Kept>,
    pub took: Duration,
}

/// Somebody who can ask a person.
pub trait Asker: Send + Sync {
    fn ask(&self, form: Form) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// Which server wants to know, or is about to be called.
    pub server: String,
    pub message: String,
    pub wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Whether the call may be made. Accepting is enough, there is nothing to fill in.
    Confirmation { tool: String, arguments: Map<String, Value> },
    /// Values, as a JSON Schema of an object with plain properties says.
    Values { schema: Value },
    /// That they open this address and do there what it says.
    Visit { url: String, id: Option<String> },
}

/// What they said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Accepted(Map<String, Value>),
    Declined,
    /// Closed without an answer.
    Cancelled,
    /// Nobody was asked, and why.
    NotAsked(String),
}
