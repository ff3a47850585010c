//! What a session does not allow, and where it stands, so that whoever asked can go on.

use engine::Pending;
use serde_json::{Value, json};
use store::Version;
use store::sessions::{Error, Session};

use crate::error::Refusal;

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("{0}")]
    Engine(engine::Refusal),
    /// What was superseded by going back does not count, and a copy begins where it was made.
    #[error("the session has not been at step `{0}`, as it counts now")]
    NeverThere(String),
    /// A decision about another version than the one that waits now.
    #[error("not decided: version {0} waits for a person now, and is not the one that was seen")]
    NotSeen(Version),
    #[error(
        "the session has had {} events, which is the most that one may have",
        store::limits::EVENTS_MAX
    )]
    Full,
    #[error("the key was used for a session of workflow `{0}`")]
    KeyTaken(String),
}

/// Where a session stands, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub(crate) session: String,
    pub(crate) workflow: String,
    pub(crate) revision: u64,
    /// The current step, or the loop that it waits before; none where it is complete.
    pub(crate) step: Option<String>,
    pub(crate) awaits: Option<Awaits>,
}

/// What a person has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    Output,
    Loop,
}

impl Standing {
    pub fn of(session: &Session) -> Box<Self> {
        Box::new(Self {
            session: session.id.clone(),
            workflow: session.state.workflow_id.clone(),
            revision: session.state.revision,
            step: session.state.position().map(str::to_owned),
            awaits: session.state.pending().map(|pending| match pending {
                Pending::Output(_) => Awaits::Output,
                Pending::Loops(_) => Awaits::Loop,
            }),
        })
    }

    pub(crate) fn data(&self) -> Value {
        json!({
            "sessionId": self.session,
            "workflowId": self.workflow,
            "currentRevision": self.revision,
            "currentStep": self.step,
            "isComplete": self.step.is_none(),
            "isWaiting": self.awaits.is_some(),
        })
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { session, revision, .. } = self;
        write!(out, "session `{session}` is at revision {revision}, ")?;
        match (&self.step, self.awaits) {
            (None, _) => out.write_str("complete"),
            (Some(step), None) => write!(out, "step `{step}`"),
            (Some(step), Some(Awaits::Output)) => {
                write!(out, "step `{step}`, which waits for a person to confirm its output")
            }
            (Some(step), Some(Awaits::Loop)) => {
                write!(out, "before loop `{step}`, which waits for a person to approve it")
            }
        }
    }
}

/// What callers hear of an error of the sessions.
pub fn refusal(id: &str, error: Error) -> Refusal {
    let denied = |why, session: &Session| Refusal::Session { why, at: Standing::of(session) };
    match error {
        Error::NotFound => Refusal::SessionNotFound { id: id.to_owned() },
        Error::Refused { refusal, session: Some(session) } => {
            denied(Denied::Engine(refusal), &session)
        }
        // Only a session that is to begin has none: the id is the workflow's.
        Error::Refused { refusal, session: None } => Refusal::engine(id, refusal),
        Error::NeverThere { step, session } => denied(Denied::NeverThere(step), &session),
        Error::NoLonger { session } => denied(Denied::NotSeen(session.version), &session),
        Error::Full { session } => denied(Denied::Full, &session),
        Error::Mismatch(mismatch) => {
            Refusal::InvalidParams { details: mismatch.to_string(), hint: None }
        }
        Error::Overtaken => unavailable("somebody else was first; make the same call again"),
        Error::Store(error) => from_store(&error),
    }
}

pub fn from_store(error: &store::Error) -> Refusal {
    match error {
        store::Error::TooMany { .. }
        | store::Error::TooManyShares
        | store::Error::TooManyOpenShares { .. }
        | store::Error::TooLarge { .. }
        | store::Error::NotExported(_)
        | store::Error::Invalid { .. } => {
            Refusal::InvalidParams { details: error.to_string(), hint: None }
        }
        store::Error::Unavailable(_) => Refusal::Store {
            details: error.to_string(),
            hint: Some("nothing was lost; the same call may be made again".to_owned()),
        },
        store::Error::DiskFull(_) => Refusal::Store {
            details: error.to_string(),
            hint: Some(
                "nothing was lost; make room, or remove old sessions with `workflowlookup session prune`, and make the \
                 same call again"
                    .to_owned(),
            ),
        },
        store::Error::Moved(_) => Refusal::Store {
            details: error.to_string(),
            hint: Some(
                "the call was not recorded; put the file back as it was, or restart the server, which then goes on with \
                 what it finds at that path"
                    .to_owned(),
            ),
        },
        store::Error::Denied(_) => Refusal::Store {
            details: error.to_string(),
            hint: Some("see what `--store` says: the user, its password and its rights, the database, `sslmode`".to_owned()),
        },
        store::Error::WrongKey => Refusal::Store {
            details: error.to_string(),
            hint: Some(
                "every process that shares a store needs the key that it was made with: `--key-file FILE` or \
                 WORKFLOWLOOKUP_KEY"
                    .to_owned(),
            ),
        },
        store::Error::Damaged(_) | store::Error::Broken(_) => Refusal::Store {
            details: error.to_string(),
            hint: Some("`workflowlookup session verify` says which sessions are sound".to_owned()),
        },
        error => unavailable(&error.to_string()),
    }
}

fn unavailable(details: &str) -> Refusal {
    Refusal::Store { details: details.to_owned(), hint: None }
}
