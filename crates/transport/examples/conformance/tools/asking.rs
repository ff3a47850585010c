//! Tools that ask the client once: its model for a text, its user by all kinds of forms.

use mcp::content::{Block, Message};
use mcp::{Answer, Form, Question, Sampling};
use serde_json::{Value, json};

use super::{Answering, Entry, Request, about, about_with_text, failed, said};

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_sampling",
        about: || about_with_text("Sampling", "Asks the client's model", "prompt"),
        run: |_, request| match request.text("prompt") {
            Ok(prompt) => sample(request, &prompt),
            Err(outcome) => outcome.into(),
        },
    },
    Entry {
        name: "test_missing_capability",
        about: || about("Sampling needed", "Cannot do without the client's model"),
        run: |_, request| sample(request, "Say anything."),
    },
    Entry {
        name: "test_elicitation",
        about: || about_with_text("Form", "Asks the client's user", "message"),
        run: |_, request| match request.text("message") {
            Ok(message) => fill_in(request, message, contact(), "User response"),
            Err(outcome) => outcome.into(),
        },
    },
    Entry {
        name: "test_streaming_elicitation",
        about: || about("Form, possibly by a stream", "Asks the client's user"),
        run: |_, request| fill_in(request, "Who are you?".to_owned(), contact(), "User response"),
    },
    Entry {
        name: "test_elicitation_sep1034_defaults",
        about: || about("Form with defaults", "Asks by a form that is filled in already"),
        run: |_, request| {
            let message = "Is this right?".to_owned();
            fill_in(request, message, defaults(), "Elicitation completed")
        },
    },
    Entry {
        name: "test_elicitation_sep1330_enums",
        about: || about("Form with choices", "Asks by a form with every kind of choice"),
        run: |_, request| {
            let message = "What shall it be?".to_owned();
            fill_in(request, message, choices(), "Elicitation completed")
        },
    },
];

fn sample(request: Request, prompt: &str) -> Answering {
    match request.answer("answer") {
        Some(Answer::Sampled(sampled)) => {
            said(format!("LLM response: {}", sampled.text().unwrap_or("no text")))
        }
        _ if request.is_answered() => failed("The client's model has nothing to say."),
        _ => request.ask(vec![("answer", prompted(prompt, 100))], None),
    }
}

/// A question to the client's model.
pub(super) fn prompted(prompt: &str, tokens_max: u32) -> Question {
    let messages = vec![Message::user(Block::text(prompt))];
    Question::Sampling(Sampling { messages, system_prompt: None, tokens_max })
}

fn fill_in(request: Request, message: String, schema: Value, label: &str) -> Answering {
    if !request.is_answered() {
        return request.ask(vec![("answer", Form { message, schema }.into())], None);
    }
    let (action, content) = match request.answer("answer") {
        Some(Answer::Accepted(fields)) => ("accept", json!(fields)),
        Some(Answer::Declined) => ("decline", json!({})),
        _ => ("cancel", json!({})),
    };
    said(format!("{label}: action={action}, content={content}"))
}

fn contact() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    })
}

fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
        "required": [],
    })
}
