//! Asking the client's user something while a request is under way. A call that needs an answer ends with
//! [`Ask`] and is made again with [`Answers`]; whether the client is asked by a request of ours (the era of
//! the handshake) or by a result that it comes back from (the modern era) is decided here.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::action::{Abilities, Call};
use crate::era::modern;
use crate::jsonrpc::{self, Error};
use crate::revision::Traits;
use crate::server::Server;

/// What must be known before a call can go on.
#[derive(Debug)]
pub struct Ask {
    /// The call as it was made.
    pub call: Call,
    /// What to ask, each under a name by which its answer is found.
    pub forms: Vec<(String, Form)>,
    /// How long a client with a handshake may take. What is not answered by then is missing in the answers.
    pub patience: Duration,
    /// The resource that it is about: once that is settled otherwise, the question is taken back.
    pub about: Option<String>,
    /// Comes back with the answers. A client of the modern era carries it, so it may be read and changed on
    /// the way: whoever relies on it signs it.
    pub state: Option<String>,
}

/// A question to the user: a sentence, and the fields to fill in as a flat JSON Schema of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    pub message: String,
    pub schema: Value,
}

/// What came back, by the names under which it was asked. What is missing was not answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answers {
    pub given: BTreeMap<String, Answer>,
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The fields, as the user filled them in. Nobody has checked them yet.
    Accepted(Map<String, Value>),
    Declined,
    /// The user, or the client, made no choice.
    Cancelled,
}

/// Questions that a client with a handshake has not answered yet.
#[derive(Debug)]
pub(crate) struct Asking {
    call: Call,
    pub(crate) about: Option<String>,
    /// The ids of our requests, with the names of their questions.
    open: BTreeMap<String, String>,
    answers: Answers,
}

impl Asking {
    /// Asks everything at once: the requests with their ids, in the order of the questions.
    pub(crate) fn begin(
        ask: Ask,
        traits: &Traits,
        mut new_id: impl FnMut(Option<&str>, &str) -> String,
    ) -> (Self, Vec<(String, String)>) {
        let answers = Answers { given: BTreeMap::new(), state: ask.state };
        let Ask { call, about, .. } = ask;
        let mut asking = Self { call, about, open: BTreeMap::new(), answers };
        let requests = ask.forms.into_iter().map(|(name, form)| {
            let id = new_id(asking.answers.state.as_deref(), &name);
            let request = jsonrpc::request(&id, METHOD, &form.params(traits));
            asking.open.insert(id.clone(), name);
            (id, request)
        });
        let requests = requests.collect();
        (asking, requests)
    }

    pub(crate) fn has_asked(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    pub(crate) fn open_ids(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    /// Takes an answer. Says whether it can be read; one that cannot counts as no choice.
    pub(crate) fn answer(&mut self, id: &str, result: Option<&RawValue>) -> bool {
        let Some(name) = self.open.remove(id) else {
            return true;
        };
        let answer = result.and_then(|result| Answer::read(result).ok());
        let is_good = answer.is_some();
        self.answers.given.insert(name, answer.unwrap_or(Answer::Cancelled));
        is_good
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// The call to make again, and what it asked for.
    pub(crate) fn finish(self) -> (Call, Answers) {
        (self.call, self.answers)
    }
}

const METHOD: &str = "elicitation/create";

/// What a client that has said this can do for us. One that names no way to ask its user means forms.
pub(crate) fn abilities(capabilities: &Value, traits: &Traits) -> Abilities {
    let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
    let forms = traits.elicitation
        && elicitation.is_some_and(|ways| {
            !traits.elicitation_modes || ways.is_empty() || ways.contains_key("form")
        });
    let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
    Abilities { forms, sampling: has("sampling"), roots: has("roots") }
}

pub(crate) fn cannot_ask() -> Error {
    Error::missing_capability(json!({"elicitation": {"form": {}}}))
}

/// The result by which a client of the modern era learns what is wanted.
pub(crate) fn input_required(server: &Server, ask: Ask) -> String {
    let revision = modern::REVISION;
    let traits = revision.traits();
    let requests = ask.forms.into_iter().map(|(name, form)| {
        let request = json!({"method": METHOD, "params": form.params(&traits)});
        (name, request)
    });
    let requests: Map<String, Value> = requests.collect();
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = ask.state {
        result["requestState"] = json!(state);
    }
    result["_meta"] = server.meta(revision);
    result.to_string()
}

/// The answers that a client of the modern era has brought back, if it was asked at all.
pub(crate) fn brought(params: Option<&RawValue>) -> Result<Option<Answers>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Brought<'a> {
        #[serde(borrow, default)]
        input_responses: Option<BTreeMap<String, &'a RawValue>>,
        request_state: Option<String>,
    }
    let Brought { input_responses, request_state: state } = jsonrpc::params(params)?;
    if input_responses.is_none() && state.is_none() {
        return Ok(None);
    }
    let mut given = BTreeMap::new();
    for (name, response) in input_responses.unwrap_or_default() {
        let answer = Answer::read(response).map_err(|error| {
            Error::invalid_params(format!("the answer `{name}` in inputResponses: {error}"))
        })?;
        given.insert(name, answer);
    }
    Ok(Some(Answers { given, state }))
}

impl Form {
    fn params(&self, traits: &Traits) -> Value {
        let mut params = json!({"message": self.message, "requestedSchema": self.schema});
        if traits.elicitation_modes {
            params["mode"] = json!("form");
        }
        params
    }
}

impl Answer {
    pub(crate) fn read(raw: &RawValue) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Choice {
            Accept,
            Decline,
            Cancel,
        }
        #[derive(Deserialize)]
        #[serde(expecting = "an object with `action`")]
        struct Chosen {
            action: Choice,
            #[serde(default)]
            content: Option<Map<String, Value>>,
        }
        let Chosen { action, content } = serde_json::from_str(raw.get())?;
        Ok(match action {
            Choice::Accept => Self::Accepted(content.unwrap_or_default()),
            Choice::Decline => Self::Declined,
            Choice::Cancel => Self::Cancelled,
        })
    }
}
