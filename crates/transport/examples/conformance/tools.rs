//! The suite's tools: one table, and what every tool of it needs.

mod asking;
mod rounds;
mod saying;
mod schemas;
mod telling;

use std::time::Duration;

use mcp::content::{About, Block, Tool};
use mcp::{Answer, Ask, Call, Caller, Outcome, Question};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use transport::{Context, OutcomeFuture};

use crate::fixture::Fixture;

/// How long a client with a handshake may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A tool, and what it does.
struct Entry {
    name: &'static str,
    about: fn() -> About,
    run: fn(&Fixture, Request) -> Answering,
}

/// A call of a tool.
pub(crate) struct Request {
    pub(crate) name: &'static str,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) caller: Caller,
    pub(crate) context: Context,
}

/// What a tool makes of a call.
pub(crate) enum Answering {
    Now(Outcome),
    Later(OutcomeFuture),
}

impl From<Outcome> for Answering {
    fn from(outcome: Outcome) -> Self {
        Self::Now(outcome)
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    [saying::TOOLS, telling::TOOLS, asking::TOOLS, rounds::TOOLS, schemas::TOOLS]
        .into_iter()
        .flatten()
}

pub(crate) fn list() -> Vec<Tool> {
    let tool = |entry: &Entry| Tool { name: entry.name, is_method: false, about: entry.about };
    entries().map(tool).collect()
}

pub(crate) fn run(fixture: &Fixture, request: Request) -> Answering {
    match entries().find(|entry| entry.name == request.name) {
        Some(entry) => (entry.run)(fixture, request),
        None => Outcome::Fault.into(),
    }
}

fn about(title: &'static str, description: &'static str) -> About {
    About {
        title,
        description,
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({"readOnlyHint": true}),
        examples: None,
    }
}

/// With one text as its argument.
fn about_with_text(title: &'static str, description: &'static str, name: &str) -> About {
    let input_schema =
        json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    About { input_schema, ..about(title, description) }
}

fn said(words: impl Into<String>) -> Answering {
    text(words).into()
}

fn text(words: impl Into<String>) -> Outcome {
    Outcome::Blocks { blocks: vec![Block::text(words)], structured: None, is_error: false }
}

fn blocks(blocks: Vec<Block>) -> Answering {
    Outcome::Blocks { blocks, structured: None, is_error: false }.into()
}

fn failed(text: &str) -> Answering {
    let blocks = vec![Block::text(text)];
    Outcome::Blocks { blocks, structured: None, is_error: true }.into()
}

impl Request {
    /// A text among the arguments.
    fn text(&self, name: &str) -> Result<String, Outcome> {
        let arguments: Map<String, Value> =
            serde_json::from_str(self.arguments.get()).unwrap_or_default();
        match arguments.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(Outcome::BadArguments(format!("{name} must be a text"))),
            None => Err(Outcome::BadArguments(format!("{name} is required"))),
        }
    }

    /// Something came back, if only that there is nothing.
    fn is_answered(&self) -> bool {
        self.caller.answers.is_some()
    }

    fn answer(&self, name: &str) -> Option<&Answer> {
        self.caller.answers.as_ref()?.given.get(name)
    }

    fn state(&self) -> Option<&str> {
        self.caller.answers.as_ref()?.state.as_deref()
    }

    fn ask(self, questions: Vec<(&str, Question)>, state: Option<String>) -> Answering {
        let Self { name, arguments, .. } = self;
        let call = Call::Tool { name, arguments, is_method: false };
        let questions = questions.into_iter();
        let questions = questions.map(|(name, question)| (name.to_owned(), question)).collect();
        let ask = Ask { call, questions, patience: PATIENCE, about: None, state };
        Outcome::Ask(Box::new(ask)).into()
    }
}
