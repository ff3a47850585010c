//! Why a server or a tool said no, for people and for machines. Nothing here is a fault of ours.

use std::borrow::Cow;
use std::sync::Arc;

use orchestrator::Error;
use registry::Masks;
use serde::Serialize;
use serde_json::{Value, json};
use tool_schema::typed::Wrong;

use service::error::upstream::{self, INVALID_PARAMS, SECURITY};
use service::words::one_line;

/// How much is shown of what comes with an error of a server's; `--json` has all of it.
const DATA_CHARS_MAX: usize = 1_000;

/// Why there is no result.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(super) why: Why,
    pub(super) hint: Option<String>,
    /// Servers repeat what they were given.
    pub(super) masks: Arc<Masks>,
    /// The server has no entry in which anything could be changed.
    pub(super) is_ad_hoc: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Why {
    /// It was not even tried.
    Invalid {
        message: String,
        problems: Vec<Problem>,
    },
    Upstream(Box<Error>),
    /// Nobody let us in.
    Security {
        message: String,
    },
}

/// One of several things that are wrong.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

impl From<Wrong> for Problem {
    fn from(wrong: Wrong) -> Self {
        Self { message: wrong.to_string(), pointer: wrong.pointer }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Object {
    code: i64,
    message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Refused {
    pub(super) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let why = Why::Invalid { message: message.into(), problems: Vec::new() };
        Self { hint: Some(hint.into()), ..Self::of(why) }
    }

    fn of(why: Why) -> Self {
        Self { why, hint: None, masks: Arc::default(), is_ad_hoc: false }
    }

    pub(super) fn security(message: String) -> Self {
        Self::of(Why::Security { message })
    }

    /// Several things are wrong at once.
    pub(super) fn problems(message: String, problems: Vec<Problem>) -> Self {
        Self::of(Why::Invalid { message, problems })
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn message(&self) -> String {
        match &self.why {
            Why::Upstream(error) => {
                let said = match &**error {
                    Error::Upstream { data: Some(data), .. } => {
                        let data = one_line(&data.to_string(), DATA_CHARS_MAX);
                        format!("{error}\nits data: {data}")
                    }
                    error => self.told(error),
                };
                self.masks.hide(&said).into_owned()
            }
            Why::Security { message } => message.clone(),
            Why::Invalid { message, problems } => {
                let listed: String =
                    problems.iter().map(|problem| format!("\n- {}", problem.message)).collect();
                let colon = if problems.is_empty() { "" } else { ":" };
                format!("{message}{colon}{listed}")
            }
        }
    }

    fn told(&self, error: &Error) -> String {
        if self.is_ad_hoc { error.what() } else { error.to_string() }
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn to_object(&self) -> Object {
        let error = match &self.why {
            Why::Upstream(error) => error,
            Why::Security { message } => return object(SECURITY, json!({"details": message})),
            Why::Invalid { message, problems } => {
                let mut data = json!({"details": message});
                if !problems.is_empty() {
                    data["problems"] = json!(problems);
                }
                return object(INVALID_PARAMS, data);
            }
        };
        if let Some((code, message, data)) = upstream::said(error, &self.masks) {
            return Object { code, message: message.into(), data };
        }
        let details = self.told(error);
        object(upstream::code(error), upstream::data(error, &self.masks.hide(&details)))
    }
}

fn object((code, name): (i32, &'static str), data: Value) -> Object {
    Object { code: code.into(), message: name.into(), data: Some(data) }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::of(Why::Upstream(Box::new(error)))
    }
}
