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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fmt::Write as _;

    use workflow::Code;

    use super::*;

    fn id() -> String {
        "letter".to_owned()
    }

    fn finding(code: Code, message: &str, file: Option<&str>) -> Finding {
        Finding { file: file.map(Into::into), ..Finding::on_file(code, message, "") }
    }

    fn over(open_sessions: u64, stored_bytes: u64, is_caller: bool) -> Refusal {
        let usage = Usage { open_sessions, stored_bytes };
        let quota = Quota { open_sessions: 2, stored_bytes: 100 };
        Refusal::OverQuota { usage, quota, is_caller, retry_after: Duration::from_millis(1_500) }
    }

    fn of_engine(refusal: engine::Refusal) -> Refusal {
        Refusal::engine("letter", refusal)
    }

    /// A session at a step, where the engine refused.
    fn in_session(refusal: engine::Refusal) -> Refusal {
        let at = Standing {
            session: "s-1".to_owned(),
            workflow: id(),
            revision: 3,
            step: Some("draft".to_owned()),
            awaits: None,
        };
        Refusal::Session { why: Denied::Engine(refusal), at: Box::new(at) }
    }

    /// The code, the message and the advice of each.
    #[test]
    fn refusals_have_codes_and_advice() {
        let step_not_found = |nearest: Option<&str>| engine::Refusal::StepNotFound {
            step: "draf".to_owned(),
            nearest: nearest.map(str::to_owned),
            steps: Vec::new(),
        };
        let mut said = String::new();
        for refusal in [
            Refusal::WorkflowNotFound { id: id(), nearest: None },
            Refusal::WorkflowNotFound { id: id(), nearest: Some("letters".to_owned()) },
            Refusal::MalformedId { id: "../x".to_owned() },
            Refusal::Right { needed: Right::Approve, has: None },
            Refusal::Right { needed: Right::Use, has: Some(Right::Admin) },
            over(2, 0, true),
            over(2, 100, true),
            over(0, 100, false),
            Refusal::TokenNotFound { name: "ci".to_owned() },
            Refusal::TokenExists { name: "ci".to_owned() },
            Refusal::SessionNotFound { id: "s-1".to_owned() },
            of_engine(step_not_found(None)),
            of_engine(step_not_found(Some("draft"))),
            of_engine(engine::Refusal::NotWaiting),
            of_engine(engine::Refusal::TooLarge { what: "the output", limit: 10 }),
            in_session(engine::Refusal::StrictGate),
            in_session(engine::Refusal::WrongRevision { given: 2, current: 3 }),
        ] {
            let ErrorObject { code, message, .. } = refusal.to_object();
            let hint = refusal.hint().unwrap_or_else(|| "no advice".to_owned());
            writeln!(said, "{code} {message}: {refusal}\n    {hint}").unwrap();
        }
        insta::assert_snapshot!(said, @r#"
        -32001 Workflow not found: no workflow has the id `letter`
            `workflowlookup list` shows what there is
        -32001 Workflow not found: no workflow has the id `letter`
            did you mean `letters`?
        -32602 Invalid params: `../x` cannot be the id of a workflow
            `workflowlookup list` shows the ids
        -32007 Security error: this needs a token with the right `approve`, and you have shown none
            `workflowlookup token new NAME --right approve` makes one
        -32007 Security error: this needs a token with the right `use`, and yours has `admin`
            `workflowlookup token new NAME --right use` makes one
        -32000 Quota exceeded: you have 2 open sessions, and may have 2
            complete open sessions, or have old ones pruned, and try again
        -32000 Quota exceeded: your sessions have 100 bytes, and may have 100
            complete open sessions, or have old ones pruned, and try again
        -32000 Quota exceeded: the owner of the session has stored as much as it may
            complete open sessions, or have old ones pruned, and try again
        -32602 Invalid params: there is no token `ci`
            `workflowlookup token list` shows what there is
        -32602 Invalid params: there is a token `ci` already
            choose another name, or end it with `workflowlookup token revoke ci`
        -32005 State error: there is no session `s-1`
            `workflowlookup session list` shows what there is
        -32003 Step not found: the workflow has no step `draf`
            `workflowlookup show letter` shows its steps
        -32003 Step not found: the workflow has no step `draf`
            did you mean `draft`?
        -32005 State error: no step of the session waits for a person
            no advice
        -32602 Invalid params: the output may have 10 bytes
            no advice
        -32007 Security error: only a decision with a token that may approve counts in this session
            send `POST /sessions/ID/approve` or `/reject` to the server, with a token that was made with `--right approve`
        -32005 State error: the session is at revision 3, not 2
            session `s-1` is at revision 3, step `draft`
        "#);
    }

    #[test]
    fn refusals_have_particulars_for_machines() {
        for (refusal, data) in [
            (
                Refusal::WorkflowNotFound { id: id(), nearest: None },
                json!({"workflowId": "letter", "nearest": null}),
            ),
            (Refusal::SessionNotFound { id: id() }, json!({"sessionId": "letter"})),
            (
                Refusal::Right { needed: Right::Use, has: None },
                json!({
                    "details": "this needs a token with the right `use`, and you have shown none",
                    "needed": "use", "right": null,
                }),
            ),
            (
                over(2, 0, true),
                json!({"details": "you have 2 open sessions, and may have 2", "retryAfterMs": 1_500}),
            ),
            (
                of_engine(engine::Refusal::WrongRevision { given: 2, current: 3 }),
                json!({"revision": 2, "currentRevision": 3}),
            ),
            (
                in_session(engine::Refusal::NotWaiting),
                json!({
                    "sessionId": "s-1", "workflowId": "letter", "currentRevision": 3, "currentStep": "draft",
                    "isComplete": false, "isWaiting": false,
                    "details": "no step of the session waits for a person",
                }),
            ),
        ] {
            assert_eq!(refusal.data(), data, "{refusal}");
        }
    }

    /// What is about security or storage comes before what is wrong with the text.
    #[test]
    fn unusable_definition_is_refused_for_its_worst_finding() {
        let security = Code::ALL.iter().copied().find(|code| code.is_security()).unwrap();
        let storage = Code::ALL.iter().copied().find(|code| code.is_storage()).unwrap();
        let is_plain = |code: &Code| !code.is_security() && !code.is_storage();
        let is_error = |code: &Code| finding(*code, "", None).is_error();
        let plain =
            Code::ALL.iter().copied().find(|code| is_plain(code) && is_error(code)).unwrap();
        let refused = |codes: &[Code]| {
            let findings: Vec<Finding> = codes
                .iter()
                .enumerate()
                .map(|(at, code)| finding(*code, &format!("no {at}"), Some("letter.json")))
                .collect();
            let refusal = Refusal::unusable("letter", &findings);
            (refusal.code().0, refusal.to_string())
        };
        let said = |code: i32, message: &str| (code, format!("the {message}"));
        assert_eq!(
            refused(&[plain, storage, security]),
            said(-32007, "workflow `letter` was refused: no 2")
        );
        assert_eq!(refused(&[plain, storage]), said(-32006, "file of workflow `letter` no 1"));
        assert_eq!(
            refused(&[plain, plain, plain]),
            said(-32002, "workflow `letter` cannot be used: no 0 (and 2 more)")
        );
    }
}
