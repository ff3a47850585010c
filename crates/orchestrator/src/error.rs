//! What can go wrong with a call to an upstream. Each message says what happened and what to try; whoever must tell
//! cases apart looks at the variant.

use std::fmt::Write as _;
use std::time::Duration;

use registry::Registry;
use registry::policy;
use serde_json::Value;
use tool_schema::arguments::{NoSuchTool, Problem};
use tool_schema::nearest::nearest;

use crate::{breaker, rate};

/// So many ids are offered for one that does not exist.
const NAMES_OFFERED: usize = 3;

/// JSON-RPC's code for a fault inside the server.
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// Why there is no result. Cheap enough to hand to everybody who waited for the same thing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no server `{id}` in the registry{}", offer(.nearest))]
    NoServer { id: String, nearest: Vec<String> },

    /// Its entry is there, and has errors.
    #[error(
        "the entry of `{id}` in the registry cannot be used{}; `workflowlookup doctor` shows what is wrong with it",
        because(.why)
    )]
    Unusable { id: String, why: Option<String> },

    /// Its entry is there, and no person has consented to it.
    #[error(
        "`{id}` is not trusted: nobody has consented to its entry in `{file}`; a person decides, by `{command}`"
    )]
    Untrusted { id: String, file: String, command: String },

    #[error(transparent)]
    NoTool(NoSuchTool),

    /// By the entry's rules, or because nobody is there to confirm it.
    #[error(transparent)]
    Denied(policy::Denied),

    #[error("`{server}.{tool}` was not called, for the person who was asked did not say yes")]
    NotConfirmed { server: String, tool: String },

    #[error("the arguments do not fit `{server}.{tool}`:{}", listed(.problems))]
    Arguments { server: String, tool: String, problems: Vec<Problem> },

    /// Its entry became another one while something was asked.
    #[error(
        "`{server}` is not started again, for its entry in the registry has changed; call it again"
    )]
    Outdated { server: String },

    /// Its schema is out of proportion.
    #[error(
        "`{server}.{tool}` was not called: checking its arguments takes more work than one call may cause"
    )]
    Uncheckable { server: String, tool: String },

    #[error("`{server}` is called too often: {exceeded}")]
    TooMany { server: String, exceeded: rate::Exceeded },

    /// Its breaker is open.
    #[error("`{server}` is not called: {open}; {why}")]
    Open { server: String, open: breaker::Open, why: String },

    #[error(
        "`{server}` is busy, for {in_flight} calls are waiting for it; try again when some are done"
    )]
    Busy { server: String, in_flight: usize },

    /// `is_lasting` where somebody has to change something first.
    #[error("cannot connect to `{server}`: {why}")]
    Connect { server: String, why: String, is_lasting: bool },

    /// `why` is what is known, `hint` what to try.
    #[error("{}; {hint}", self.what())]
    Unauthorized { server: String, status: u16, sent: Credentials, why: String, hint: String },

    #[error("{}; raise `timeoutMs` of its entry where it needs longer", self.what())]
    Timeout { server: String, what: Awaited, after: Duration },

    #[error("the call to `{server}` was cancelled")]
    Cancelled { server: String },

    /// The upstream's own error, as it said it.
    #[error("`{server}` answers with error {code}: {message}")]
    Upstream { server: String, code: i64, message: String, data: Option<Value> },

    /// The connection broke. `sent` says whether the request may have reached the server.
    #[error("the connection to `{server}` broke{}: {why}", if *.sent { ", and what was asked may have been done" } else { "" })]
    Transport { server: String, why: String, sent: bool },

    /// It answers, without an error of the protocol, that it did not do what was asked.
    #[error("`{server}` refused, so that nothing was done: {why}{}", wait(*.is_for_now, *.retry_after))]
    Refused { server: String, why: String, is_for_now: bool, retry_after: Option<Duration> },

    #[error(
        "`{server}` sent a message of more than {limit} bytes, which was dropped; ask it for less at a time"
    )]
    TooLarge { server: String, limit: usize },

    /// An answer that the protocol does not allow here.
    #[error("`{server}` answers what makes no sense: {why}")]
    Protocol { server: String, why: String },

    /// It wants to know something from a person, and got no answer.
    #[error("`{server}` asked for input and got none: {why}")]
    Unanswered { server: String, why: String },

    #[error("`{server}` does not offer {what}")]
    NotOffered { server: String, what: &'static str },

    #[error(
        "`{server}.{tool}` cannot be called, for it runs only as a task, and tasks are not begun here"
    )]
    TaskOnly { server: String, tool: String },

    #[error("nothing is kept as `{uri}`; what was kept goes after a while, so call the tool again")]
    NotKept { uri: String },

    #[error("nothing is called any more, for the program is ending")]
    Closed,
}

/// What we showed to a server that wants to know who we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    None,
    /// Those of its entry: a token, or a header.
    Own,
    /// The token of somebody's login.
    Login,
}

/// What a time limit ran out on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Connection,
    Answer,
}

impl Error {
    /// There is no such server, and perhaps others of nearly that name; or its entry cannot be used.
    pub fn no_server(id: &str, registry: &Registry) -> Self {
        // A trusted entry comes first: consent must not be the way around its problem.
        if let Some(broken) = registry.unusable().find(|server| server.draft.id == id) {
            let why = broken.trouble.as_deref().map(str::to_owned);
            return Self::Unusable { id: id.to_owned(), why };
        }
        if let Some((file, _)) = registry.untrusted().find(|(_, server)| server.draft.id == id) {
            let (command, file) = (file.trust_command(), file.path.display().to_string());
            return Self::Untrusted { id: id.to_owned(), file, command };
        }
        let ids = registry.entries.iter().map(|entry| entry.id.as_str());
        let nearest = nearest(id, ids, NAMES_OFFERED).into_iter().map(str::to_owned).collect();
        Self::NoServer { id: id.to_owned(), nearest }
    }

    /// What happened, without what to do about it where that is about its entry: not every server has one.
    pub fn what(&self) -> String {
        match self {
            Self::Unauthorized { server, status, why, .. } => {
                format!("`{server}` does not let us in (HTTP {status}): {why}")
            }
            Self::Timeout { server, what, after } => {
                let (verb, after) = (what.verb(), seconds(after));
                format!("Request timeout: `{server}` did not {verb} within {after}")
            }
            other => other.to_string(),
        }
    }

    /// Whether the same call may well succeed later, as it is, and nothing is done twice then.
    pub fn retryable(&self) -> bool {
        match self {
            Self::TooMany { exceeded, .. } => exceeded.wait.is_some(),
            Self::Open { .. } | Self::Busy { .. } | Self::Outdated { .. } => true,
            Self::Connect { is_lasting, .. } => !is_lasting,
            Self::Timeout { what, .. } => *what == Awaited::Connection,
            Self::Transport { sent, .. } => !sent,
            Self::Refused { is_for_now, .. } => *is_for_now,
            Self::Upstream { .. }
            | Self::NoServer { .. }
            | Self::Unusable { .. }
            | Self::Untrusted { .. }
            | Self::NoTool(_)
            | Self::Denied(_)
            | Self::NotConfirmed { .. }
            | Self::Arguments { .. }
            | Self::Uncheckable { .. }
            | Self::Unauthorized { .. }
            | Self::Cancelled { .. }
            | Self::TooLarge { .. }
            | Self::Protocol { .. }
            | Self::Unanswered { .. }
            | Self::NotOffered { .. }
            | Self::TaskOnly { .. }
            | Self::NotKept { .. }
            | Self::Closed => false,
        }
    }
}

impl Error {
    /// When to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooMany { exceeded, .. } => exceeded.wait,
            Self::Open { open: breaker::Open::Resting { wait }, .. } => Some(*wait),
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl Awaited {
    fn verb(self) -> &'static str {
        match self {
            Self::Connection => "get ready",
            Self::Answer => "answer",
        }
    }
}

fn offer(names: &[String]) -> String {
    match names {
        [] => "; `workflowlookup mcp list` shows those that there are".to_owned(),
        names => format!("; did you mean `{}`?", names.join("` or `")),
    }
}

fn because(why: &Option<String>) -> String {
    why.as_deref().map(|why| format!(": {why}")).unwrap_or_default()
}

fn listed(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        let _ = write!(text, "\n- {problem}");
    }
    text
}

fn wait(is_for_now: bool, retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!("; try again in {} s", after.as_secs()),
        None if is_for_now => "; try again later".to_owned(),
        None => String::new(),
    }
}

fn seconds(time: &Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_schema::arguments::{Checker, Verdict};

    use super::*;

    #[test]
    fn a_refusal_says_all() {
        let schema = json!({"properties": {"a": {"type": "string"}}, "required": ["b"]});
        let verdict = Checker::default().answer(&schema, &json!({"a": 1}));
        let Verdict::Wrong(problems) = verdict else { panic!("it is wrong") };
        let (server, tool) = ("github".to_owned(), "search".to_owned());
        insta::assert_snapshot!(Error::Arguments { server, tool, problems }, @"
        the arguments do not fit `github.search`:
        - /b: `b` is missing
        - /a: wanted string, found an integer
        ");
    }
}
