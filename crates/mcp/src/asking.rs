//! Asking the client something while a request is under way: its user, its model, or itself. A call that needs an
//! answer ends with [`Ask`] and is made again with [`Answers`]; whether the client is asked by a request of ours (the
//! era of the handshake) or by a result that it comes back from (the modern era) is decided here.

mod answer;
mod question;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use self::answer::{Answer, Answers, Root, Sampled};
pub use self::question::{Form, Question, Sampling, Visit};
use crate::action::{Abilities, Call};
use crate::era::modern;
use crate::jsonrpc::{self, Error, check_size};
use crate::revision::Traits;
use crate::server::Server;

/// What must be known before a call can go on.
#[derive(Debug)]
pub struct Ask {
    /// The call as it was made.
    pub call: Call,
    /// What to ask, each under a name by which its answer is found.
    pub questions: Vec<(String, Question)>,
    /// How long a client with a handshake may take. What is not answered by then is missing in the answers.
    pub patience: Duration,
    /// The resource that it is about: once that is settled otherwise, the question is taken back.
    pub about: Option<String>,
    /// Comes back with the answers. A client of the modern era carries it, so it may be read and changed on
    /// the way: whoever relies on it signs it.
    pub state: Option<String>,
}

impl Ask {
    /// Whether a client that can do this can be asked; otherwise, what is missing.
    pub(crate) fn check(&self, abilities: Abilities) -> Result<(), Error> {
        let questions = self.questions.iter().map(|(_, question)| question);
        match question::missing(questions, abilities) {
            None => Ok(()),
            Some(missing) => Err(Error::missing_capability(missing)),
        }
    }
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
        let answers = Answers { state: ask.state, ..Answers::default() };
        let Ask { call, about, .. } = ask;
        let mut asking = Self { call, about, open: BTreeMap::new(), answers };
        let requests = ask.questions.into_iter().map(|(name, question)| {
            let id = new_id(asking.answers.state.as_deref(), &name);
            let request = jsonrpc::request(&id, question.method(), &question.params(traits));
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

    /// What the questions carry.
    pub(crate) fn state(&self) -> Option<&str> {
        self.answers.state.as_deref()
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// The call to make again, and what it asked for.
    pub(crate) fn finish(self) -> (Call, Answers) {
        (self.call, self.answers)
    }
}

/// What a client that has said this can do for us. One that names no way to ask its user means forms.
pub(crate) fn abilities(capabilities: &Value, traits: &Traits) -> Abilities {
    let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
    let forms = traits.elicitation
        && elicitation.is_some_and(|ways| {
            !traits.elicitation_modes || ways.is_empty() || ways.contains_key("form")
        });
    // Where there is one way only, that is a form.
    let visits = traits.elicitation
        && traits.elicitation_modes
        && elicitation.is_some_and(|ways| ways.contains_key("url"));
    let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
    Abilities { forms, visits, sampling: has("sampling"), roots: has("roots") }
}

/// The result by which a client of the modern era learns what is wanted. A question or a state must be there, and only
/// some requests may be answered like this: anything else is the host's mistake.
pub(crate) fn input_required(server: &Server, ask: Ask) -> Result<String, Error> {
    let Ask { call, questions, state, .. } = ask;
    if !call.may_ask() || (questions.is_empty() && state.is_none()) {
        return Err(Error::internal());
    }
    let revision = modern::REVISION;
    let traits = revision.traits();
    let mut result = json!({"resultType": "input_required"});
    if !questions.is_empty() {
        let requests = questions.into_iter().map(|(name, question)| {
            let params = question.params(&traits);
            (name, json!({"method": question.method(), "params": params}))
        });
        let requests: Map<String, Value> = requests.collect();
        result["inputRequests"] = Value::Object(requests);
    }
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result["_meta"] = server.meta(revision);
    Ok(result.to_string())
}

/// What all answers together may have, and the state that goes with them.
const ANSWERS_BYTES_MAX: usize = 1024 * 1024;
const STATE_BYTES_MAX: usize = 64 * 1024;

/// The answers that a client of the modern era has brought back, if it was asked at all.
pub(crate) fn brought(params: Option<&RawValue>) -> Result<Option<Answers>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Brought<'a> {
        #[serde(borrow, default)]
        input_responses: Option<&'a RawValue>,
        #[serde(borrow, default)]
        request_state: Option<&'a RawValue>,
    }
    let Brought { input_responses, request_state } = jsonrpc::params(params)?;
    if input_responses.is_none() && request_state.is_none() {
        return Ok(None);
    }
    check_size("inputResponses", ANSWERS_BYTES_MAX, input_responses)?;
    check_size("requestState", STATE_BYTES_MAX, request_state)?;
    let state = jsonrpc::value(request_state)?;
    let responses: Option<BTreeMap<String, &RawValue>> = jsonrpc::value(input_responses)?;
    let mut given = BTreeMap::new();
    for (name, response) in responses.unwrap_or_default() {
        let answer = Answer::read(response).map_err(|error| {
            Error::invalid_params(format!("the answer `{name}` in inputResponses: {error}"))
        })?;
        given.insert(name, answer);
    }
    Ok(Some(Answers { given, state, can_be_repeated: true }))
}
