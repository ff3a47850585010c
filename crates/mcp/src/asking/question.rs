//! What a client can be asked: its user by a form or to visit an address, its model for a text, itself for the folders
//! that it works in.

use serde_json::{Map, Value, json};

use crate::action::Abilities;
use crate::content::Message;
use crate::revision::Traits;

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Of the client's user.
    Form(Form),
    /// Of the client's user too.
    Visit(Visit),
    /// Of the client's model.
    Sampling(Sampling),
    /// Which folders the client works in.
    Roots,
}

/// A question to the user: a sentence, and the fields to fill in as a flat JSON Schema of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    pub message: String,
    pub schema: Value,
}

/// An address where the user is to do something. That they agree is all that comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    pub message: String,
    pub url: String,
    /// For clients with a handshake: by this it is known when it is done.
    pub id: String,
}

/// What the client's model is to answer, and at what length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    pub messages: Vec<Message>,
    pub system_prompt: Option<String>,
    pub tokens_max: u32,
}

impl From<Form> for Question {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl From<Visit> for Question {
    fn from(visit: Visit) -> Self {
        Self::Visit(visit)
    }
}

impl Question {
    /// Whether a client that can do this can be asked.
    pub fn suits(&self, abilities: Abilities) -> bool {
        match self {
            Self::Form(_) => abilities.forms,
            Self::Visit(_) => abilities.visits,
            Self::Sampling(_) => abilities.sampling,
            Self::Roots => abilities.roots,
        }
    }

    /// What a client that can be asked says of itself.
    fn capability(&self) -> (&'static str, Value) {
        match self {
            Self::Form(_) => ("elicitation", json!({"form": {}})),
            Self::Visit(_) => ("elicitation", json!({"url": {}})),
            Self::Sampling(_) => ("sampling", json!({})),
            Self::Roots => ("roots", json!({})),
        }
    }

    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Visit(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    pub(super) fn params(&self, traits: &Traits) -> Value {
        match self {
            Self::Form(form) => form.params(traits),
            Self::Visit(visit) => visit.params(traits),
            Self::Sampling(sampling) => sampling.params(traits),
            Self::Roots => json!({}),
        }
    }
}

/// What a client would have to be capable of, and is not, to be asked all this. None: it can be.
pub(super) fn missing<'a>(
    questions: impl Iterator<Item = &'a Question>,
    abilities: Abilities,
) -> Option<Value> {
    let missing = questions.filter(|question| !question.suits(abilities));
    let missing: Map<String, Value> = missing
        .map(|question| {
            let (name, capability) = question.capability();
            (name.to_owned(), capability)
        })
        .collect();
    (!missing.is_empty()).then_some(Value::Object(missing))
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

impl Visit {
    fn params(&self, traits: &Traits) -> Value {
        let mut params = json!({"mode": "url", "message": self.message, "url": self.url});
        if !traits.is_modern {
            params["elicitationId"] = json!(self.id);
        }
        params
    }
}

impl Sampling {
    fn params(&self, traits: &Traits) -> Value {
        let messages = self.messages.iter().map(|message| message.to_json(traits));
        let messages: Vec<Value> = messages.collect();
        let mut params = json!({"messages": messages, "maxTokens": self.tokens_max});
        if let Some(system_prompt) = &self.system_prompt {
            params["systemPrompt"] = json!(system_prompt);
        }
        params
    }
}
