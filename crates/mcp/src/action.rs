//! What goes in and out of a connection besides messages: calls for the host to carry out, and how they
//! came out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::asking::{Answers, Ask};
use crate::content::{
    Block, ForeignResult, Listed, Message, Page, Prompt, ResourceContents, ResourceTemplate,
};
use crate::jsonrpc::Error;
use crate::quote::Quoted;
use crate::traced::Traced;

/// What the host does next, in this order.
#[derive(Debug)]
pub enum Action {
    /// The answer to a request.
    Reply(Reply),
    /// Something that the client should know.
    Notify(String),
    /// A request of ours, for the sake of this call. The client's answer comes in like any other message; if it
    /// does not come within this time, hand the ticket to [`crate::Connection::give_up`].
    Ask { ticket: Ticket, id: String, message: String, patience: Duration },
    /// Carry this out, and hand the outcome to [`crate::Connection::finish`].
    Call { ticket: Ticket, call: Call, caller: Caller },
    /// Nobody waits for this call any more.
    Cancel(Ticket),
    /// For the log: something is odd, and was dealt with.
    Warn(String),
    /// Read no more input. Once the calls in flight are done, or have had their time, call
    /// [`crate::Connection::close`].
    Drain,
    /// Flush, and end the connection.
    Close,
}

/// An answer, and the HTTP status that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    pub status: u16,
}

/// The status of an answer to a request that was understood, whatever came of it.
pub(crate) const OK: u16 = 200;

/// A call under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a client can do for us while a call of its is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Show its user a form.
    pub forms: bool,
    /// Send its user to an address.
    pub visits: bool,
    /// Have its model write something.
    pub sampling: bool,
    /// Say which folders it works in.
    pub roots: bool,
}

/// Who makes a call, as far as the host must know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Caller {
    /// What can be asked of the client: [`Outcome::Ask`].
    pub abilities: Abilities,
    /// Who this is, where the transport knows.
    pub principal: Option<Arc<str>>,
    /// What they may do, in the host's words.
    pub scope: Option<Arc<str>>,
    /// The client wants to hear how it goes: [`crate::Connection::progress`].
    pub wants_progress: bool,
    /// What the user answered, where this call is made again because it asked.
    pub answers: Option<Answers>,
    /// The request that this call is for, where the server wants to know.
    pub traced: Option<Arc<Traced>>,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// A line for the client's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    pub level: Level,
    pub logger: Option<String>,
    pub data: Value,
}

/// How grave a line is, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, own)| *own == name).map(|(level, _)| level)
    }
}

/// Something that only the host can answer.
#[derive(Debug, Clone)]
pub enum Call {
    /// A tool of the server's, with its arguments: an object. As a method of its own it answers whole,
    /// and never by pages.
    Tool {
        name: &'static str,
        arguments: Box<RawValue>,
        is_method: bool,
    },
    ListResources {
        cursor: Option<String>,
    },
    ListTemplates,
    ReadResource {
        uri: String,
    },
    ListPrompts {
        cursor: Option<String>,
    },
    GetPrompt {
        name: String,
        arguments: Vec<(String, String)>,
    },
    /// An answer to a question that was asked by another process, for a call that waits there: all that is known of
    /// it is the state that the question carried. Nobody waits for what comes of this.
    Settle {
        answers: Answers,
    },
    /// A call was taken back while its client was being asked: all that is known of it is the state that the question
    /// carried. Nobody waits for what comes of this.
    Forget {
        state: String,
    },
    /// Values for an argument of a prompt or a template that begin with what is typed.
    Complete {
        reference: Reference,
        argument: String,
        typed: String,
    },
}

impl Call {
    /// Whether a client without handshake can be asked something before this is answered.
    pub(crate) fn may_ask(&self) -> bool {
        matches!(self, Self::Tool { .. } | Self::ReadResource { .. } | Self::GetPrompt { .. })
    }

    /// What is called, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tool { name, .. } => name,
            Self::ListResources { .. } => "resources/list",
            Self::ListTemplates => "resources/templates/list",
            Self::ReadResource { .. } => "resources/read",
            Self::ListPrompts { .. } => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
            Self::Settle { .. } => "settle",
            Self::Forget { .. } => "forget",
            Self::Complete { .. } => "completion/complete",
        }
    }
}

/// What a completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Prompt(String),
    Resource(String),
}

/// How a call came out.
#[derive(Debug)]
pub enum Outcome {
    /// A tool's result: what an agent reads, and the same for a machine, as JSON.
    Tool {
        text: Quoted,
        structured: String,
    },
    /// A tool's result of any kind: what an agent reads, and what a machine does, where there is such a thing.
    Blocks {
        blocks: Vec<Block>,
        structured: Option<Value>,
        is_error: bool,
    },
    /// A tool's result as another server has said it.
    Foreign(Box<ForeignResult>),
    /// Not now, or not so: what the agent should do next, and the error for a machine.
    Refused {
        advice: String,
        error: Error,
    },
    /// The tool cannot use these arguments.
    BadArguments(String),
    Resources(Page<Listed>),
    Templates(Vec<ResourceTemplate>),
    Resource {
        contents: ResourceContents,
        /// It may be another in a moment, and is not to be kept.
        is_live: bool,
    },
    /// What a resource of another server holds, as that has said it. It may be another in a moment.
    ForeignContents(Vec<Map<String, Value>>),
    Prompts(Page<Prompt>),
    Prompt {
        description: String,
        messages: Vec<Message>,
    },
    Completion {
        values: Vec<String>,
        total: usize,
    },
    /// No such resource.
    NoResource {
        uri: String,
    },
    /// A cursor, a prompt's name or an argument that makes no sense.
    BadParams(String),
    /// The client must be asked first. The call is then made again, with the answers.
    Ask(Box<Ask>),
    /// Too many calls are waiting already.
    Busy,
    /// We failed. The log says how.
    Fault,
}

impl Outcome {
    /// About how long its result will be, where that is worth knowing beforehand.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Tool { text, structured } => text.inner().len() + structured.len() + 64,
            _ => 0,
        }
    }
}

/// What changed on the server's side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// The list of tools.
    pub tools: bool,
    /// The list of resources.
    pub resources: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// Single resources.
    pub uris: Vec<String>,
    /// Single resources that are not everybody's business.
    pub private: Vec<Private>,
    /// Resources about which nobody has to be asked any more.
    pub settled: Vec<String>,
}

/// A resource that has changed, and who may know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Private {
    pub uri: String,
    pub heard_by: Audience,
    /// Whose list of resources is another now.
    pub listed_by: Audience,
}

/// Some of those who listen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audience {
    /// Those whom no transport knows.
    pub unnamed: bool,
    pub principals: Vec<Arc<str>>,
    /// All who have one of these, whatever their names.
    pub scopes: Vec<Arc<str>>,
}

impl Audience {
    pub(crate) fn has(&self, principal: Option<&str>, scope: Option<&str>) -> bool {
        let is_in = |all: &[Arc<str>], one: &str| all.iter().any(|own| **own == *one);
        match principal {
            None => self.unnamed,
            Some(principal) => {
                is_in(&self.principals, principal)
                    || scope.is_some_and(|scope| is_in(&self.scopes, scope))
            }
        }
    }
}

pub(crate) fn completion(values: Vec<String>, total: usize) -> Value {
    let has_more = total > values.len();
    serde_json::json!({"completion": {"values": values, "total": total, "hasMore": has_more}})
}
