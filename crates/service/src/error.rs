//! What we answer when something is not allowed or makes no sense, and its code. Faults of our own are
//! `anyhow` errors and never come through here.

pub mod upstream;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use store::Usage;
use workflow::Finding;

use crate::access::Right;
use crate::sessions::{Denied, Quota, Standing};

#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    #[error("no workflow has the id `{id}`")]
    WorkflowNotFound { id: String, nearest: Option<String> },
    #[error("the workflow `{id}` cannot be used: {}", first_message(findings))]
    InvalidWorkflow { id: String, findings: Vec<Finding> },
    #[error("the file of workflow `{id}` {details}")]
    Storage { id: String, details: String },
    #[error("the workflow `{id}` was refused: {details}")]
    Security { id: String, details: String },
    #[error("`{id}` cannot be the id of a workflow")]
    MalformedId { id: String },
    /// The store of sessions cannot be used, now or at all.
    #[error("{details}")]
    Store { details: String, hint: Option<String> },
    /// A token that is good for something else.
    #[error("this needs a token with the right `{needed}`, and {}", shown(*has))]
    Right { needed: Right, has: Option<Right> },
    /// A principal keeps as much as it may.
    #[error("{}", over_quota(usage, quota, *is_caller))]
    OverQuota {
        usage: Usage,
        quota: Quota,
        /// Whether it is the caller that is over it, and not the owner of the session.
        is_caller: bool,
        retry_after: Duration,
    },
    #[error("there is no token `{name}`")]
    TokenNotFound { name: String },
    #[error("there is a token `{name}` already")]
    TokenExists { name: String },
    #[error("there is no session `{id}`")]
    SessionNotFound { id: String },
    /// Not as the session stands.
    #[error("{why}")]
    Session { why: Denied, at: Box<Standing> },
    #[error("{details}")]
    InvalidParams { details: String, hint: Option<String> },
    #[error("{refusal}")]
    Engine {
        id: String,
        refusal: engine::Refusal,
        /// The findings behind it, where the definition is to blame.
        findings: Vec<Finding>,
    },
}

/// A refusal for a machine: a JSON-RPC error object, and what `--json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorObject {
    pub(crate) code: i32,
    pub(crate) message: &'static str,
    pub(crate) data: Value,
}

impl Refusal {
    pub(crate) fn engine(id: &str, refusal: engine::Refusal) -> Self {
        Self::Engine { id: id.to_owned(), refusal, findings: Vec::new() }
    }

    /// Why a definition with these findings cannot be used.
    pub(crate) fn unusable(id: &str, findings: &[Finding]) -> Self {
        let id = id.to_owned();
        let details = |finding: &Finding| finding.message.to_string();
        if let Some(finding) = findings.iter().find(|finding| finding.code.is_security()) {
            return Self::Security { id, details: details(finding) };
        }
        if let Some(finding) = findings.iter().find(|finding| finding.code.is_storage()) {
            return Self::Storage { id, details: details(finding) };
        }
        Self::InvalidWorkflow { id, findings: findings.to_vec() }
    }

    /// The JSON-RPC code and its fixed name.
    pub(crate) fn code(&self) -> (i32, &'static str) {
        match self {
            Self::WorkflowNotFound { .. } => (-32001, "Workflow not found"),
            Self::InvalidWorkflow { .. } => (-32002, "Invalid workflow"),
            Self::Storage { .. } | Self::Store { .. } => (-32006, "Storage error"),
            Self::Security { .. } | Self::Right { .. } => (-32007, "Security error"),
            Self::OverQuota { .. } => (-32000, "Quota exceeded"),
            Self::MalformedId { .. }
            | Self::InvalidParams { .. }
            | Self::TokenNotFound { .. }
            | Self::TokenExists { .. } => (-32602, "Invalid params"),
            Self::SessionNotFound { .. } => (-32005, "State error"),
            Self::Session { why: Denied::Engine(refusal), .. } | Self::Engine { refusal, .. } => {
                engine_code(refusal)
            }
            Self::Session { .. } => (-32005, "State error"),
        }
    }

    /// The particulars for a machine.
    pub(crate) fn data(&self) -> Value {
        use engine::Refusal as Engine;
        match self {
            Self::WorkflowNotFound { id, nearest } => json!({"workflowId": id, "nearest": nearest}),
            Self::InvalidWorkflow { id, findings } => {
                json!({"workflowId": id, "findings": findings})
            }
            Self::MalformedId { .. } | Self::TokenNotFound { .. } | Self::TokenExists { .. } => {
                json!({"details": self.to_string()})
            }
            Self::Right { needed, has } => {
                json!({"details": self.to_string(), "needed": needed, "right": has})
            }
            Self::OverQuota { retry_after, .. } => {
                let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                json!({"details": self.to_string(), "retryAfterMs": millis})
            }
            Self::SessionNotFound { id } => json!({"sessionId": id}),
            Self::Session { why, at } => {
                let mut data = at.data();
                data["details"] = json!(why.to_string());
                if let Denied::NotSeen(version) = why {
                    data["waitingVersion"] = json!(version);
                }
                data
            }
            Self::Storage { details, .. }
            | Self::Store { details, .. }
            | Self::Security { details, .. }
            | Self::InvalidParams { details, .. } => json!({"details": details}),
            Self::Engine { id, refusal, findings } => match refusal {
                Engine::StepNotFound { step, nearest, .. } => {
                    json!({"stepId": step, "workflowId": id, "nearest": nearest})
                }
                Engine::UnknownCompleted { unknown, .. } => {
                    let (steps, nearest): (Vec<_>, Vec<_>) = unknown.iter().cloned().unzip();
                    json!({"completedSteps": steps, "nearest": nearest})
                }
                Engine::BadState { details } => {
                    json!({"completedSteps": [], "nearest": [], "details": details})
                }
                Engine::NotCurrent { step, current } => {
                    json!({"stepId": step, "currentStep": current})
                }
                Engine::WrongRevision { given, current } => {
                    json!({"revision": given, "currentRevision": current})
                }
                Engine::NotWaiting
                | Engine::LoopGate { .. }
                | Engine::StrictGate
                | Engine::TooLarge { .. }
                | Engine::Reserved { .. } => {
                    json!({"details": refusal.to_string()})
                }
                Engine::BadVariables { issues } => {
                    json!({"details": refusal.to_string(), "issues": issues})
                }
                Engine::Exhausted { step, .. } => {
                    let details = refusal.to_string();
                    json!({"workflowId": id, "stepId": step, "details": [details]})
                }
                Engine::UnusableCriteria { step, details } => {
                    json!({"workflowId": id, "stepId": step, "details": details})
                }
                Engine::MalformedSchema { step, .. } => {
                    json!({"workflowId": id, "stepId": step, "findings": findings})
                }
            },
        }
    }

    pub fn to_object(&self) -> ErrorObject {
        let (code, message) = self.code();
        ErrorObject { code, message, data: self.data() }
    }

    /// What to try instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WorkflowNotFound { nearest, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "`workflowlookup list` shows what there is".to_owned(),
            }),
            Self::InvalidWorkflow { findings, .. } => {
                let file = findings.iter().find_map(|finding| finding.file.as_deref());
                file.map(|file| format!("`workflowlookup validate {file}` shows all that is wrong"))
            }
            Self::Storage { .. } | Self::Security { .. } => {
                Some("`workflowlookup sources` shows the file".to_owned())
            }
            Self::MalformedId { .. } => Some("`workflowlookup list` shows the ids".to_owned()),
            Self::SessionNotFound { .. } => {
                Some("`workflowlookup session list` shows what there is".to_owned())
            }
            Self::TokenNotFound { .. } => {
                Some("`workflowlookup token list` shows what there is".to_owned())
            }
            Self::TokenExists { name } => Some(format!(
                "choose another name, or end it with `workflowlookup token revoke {name}`"
            )),
            Self::OverQuota { .. } => {
                Some("complete open sessions, or have old ones pruned, and try again".to_owned())
            }
            Self::Right { needed, .. } => {
                let how = format!("`workflowlookup token new NAME --right {needed}` makes one");
                Some(how)
            }
            Self::Session {
                why: Denied::Engine(refusal @ engine::Refusal::StrictGate), ..
            } => refusal.hint(),
            Self::Session { at, .. } => Some(at.to_string()),
            Self::Store { hint, .. } | Self::InvalidParams { hint, .. } => hint.clone(),
            Self::Engine {
                id,
                refusal: engine::Refusal::StepNotFound { nearest: None, .. },
                ..
            } => Some(format!("`workflowlookup show {id}` shows its steps")),
            Self::Engine { refusal, .. } => refusal.hint(),
        }
    }
}

fn engine_code(refusal: &engine::Refusal) -> (i32, &'static str) {
    use engine::Refusal as Engine;
    match refusal {
        Engine::StepNotFound { .. } => (-32003, "Step not found"),
        Engine::UnusableCriteria { .. } | Engine::Exhausted { .. } => (-32004, "Validation error"),
        Engine::UnknownCompleted { .. }
        | Engine::BadState { .. }
        | Engine::NotCurrent { .. }
        | Engine::WrongRevision { .. }
        | Engine::LoopGate { .. }
        | Engine::NotWaiting => (-32005, "State error"),
        Engine::StrictGate => (-32007, "Security error"),
        Engine::TooLarge { .. } | Engine::Reserved { .. } | Engine::BadVariables { .. } => {
            (-32602, "Invalid params")
        }
        Engine::MalformedSchema { .. } => (-32002, "Invalid workflow"),
    }
}

fn over_quota(usage: &Usage, quota: &Quota, is_caller: bool) -> String {
    if !is_caller {
        return "the owner of the session has stored as much as it may".to_owned();
    }
    if usage.stored_bytes >= quota.stored_bytes {
        let (has, may) = (usage.stored_bytes, quota.stored_bytes);
        return format!("your sessions have {has} bytes, and may have {may}");
    }
    let (has, may) = (usage.open_sessions, quota.open_sessions);
    format!("you have {has} open sessions, and may have {may}")
}

fn shown(right: Option<Right>) -> String {
    match right {
        Some(right) => format!("yours has `{right}`"),
        None => "you have shown none".to_owned(),
    }
}

fn first_message(findings: &[Finding]) -> String {
    let mut errors = findings.iter().filter(|finding| finding.is_error());
    let first = errors.next().map(|finding| finding.message.to_string()).unwrap_or_default();
    match errors.count() {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }
}
