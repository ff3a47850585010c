//! Tools that are called until everything is known: what is missing or makes no sense is asked for again.

use mcp::{Answer, Form, Outcome, Question, Root};
use serde_json::{Value, json};

use super::asking::prompted;
use super::{Answering, Entry, Request, about, failed, said};
use crate::fixture::Fixture;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_input_required_result_elicitation",
        about: || about("Name wanted", "Asks for a name"),
        run: |_, request| match filled_in(&request, "user_name", "name") {
            Some(name) => said(format!("Hello, {name}!")),
            None => ask_again(request, vec![("user_name", name_wanted())], None),
        },
    },
    Entry {
        name: "test_input_required_result_sampling",
        about: || about("Answer wanted", "Asks the client's model"),
        run: |_, request| match sampled(&request, "capital_question") {
            Some(text) => said(text),
            None => {
                let question = prompted("What is the capital of France?", 100);
                ask_again(request, vec![("capital_question", question)], None)
            }
        },
    },
    Entry {
        name: "test_input_required_result_list_roots",
        about: || about("Folders wanted", "Asks for the client's folders"),
        run: |_, request| match folders(&request) {
            Some(folders) => said(format!("You work in {folders}.")),
            None => ask_again(request, vec![("client_roots", Question::Roots)], None),
        },
    },
    Entry {
        name: "test_input_required_result_request_state",
        about: || about("State kept", "Knows again what it has asked"),
        run: confirmed,
    },
    Entry {
        name: "test_input_required_result_tampered_state",
        about: || about("State signed", "Takes no state that it has not given out"),
        run: confirmed,
    },
    Entry {
        name: "test_input_required_result_multiple_inputs",
        about: || about("Much wanted", "Asks for three things at once"),
        run: several,
    },
    Entry {
        name: "test_input_required_result_multi_round",
        about: || about("Two rounds", "Asks for one thing after the other"),
        run: rounds,
    },
    Entry {
        name: "test_input_required_result_capabilities",
        about: || about("What is possible", "Asks for what the client can answer"),
        run: |_, request| {
            if request.is_answered() {
                return said("Thank you.");
            }
            let abilities = request.caller.abilities;
            let mut questions = everything();
            questions.retain(|(_, question)| question.suits(abilities));
            match questions.is_empty() {
                true => said("There is nothing that you could be asked."),
                false => request.ask(questions, None),
            }
        },
    },
];

/// Asks as often as something comes back that does not help; a client from which nothing comes back is let be.
fn ask_again(
    request: Request,
    questions: Vec<(&str, Question)>,
    state: Option<String>,
) -> Answering {
    let answers = request.caller.answers.as_ref();
    let mut given = answers.into_iter().flat_map(|answers| answers.given.values());
    let is_refused = given.any(|answer| matches!(answer, Answer::Declined | Answer::Cancelled));
    if is_refused || answers.is_some_and(|answers| answers.given.is_empty()) {
        return failed("It does not go on without an answer.");
    }
    request.ask(questions, state)
}

fn confirmed(fixture: &Fixture, request: Request) -> Answering {
    let state = match kept(fixture, &request) {
        Ok(state) => state,
        Err(outcome) => return outcome.into(),
    };
    if state.is_some() && accepted(&request, "confirm", "ok") == Some(&json!(true)) {
        return said("state-ok");
    }
    let question = form("Please confirm", "ok", "boolean");
    let state = fixture.signer.sign(request.name, &json!("confirm"));
    ask_again(request, vec![("confirm", question)], Some(state))
}

fn several(fixture: &Fixture, request: Request) -> Answering {
    if let Err(outcome) = kept(fixture, &request) {
        return outcome.into();
    }
    let name = filled_in(&request, "user_name", "name");
    let greeting = sampled(&request, "greeting");
    match (name, greeting, folders(&request)) {
        (Some(name), Some(greeting), Some(folders)) => {
            said(format!("{greeting} {name} works in {folders}."))
        }
        _ => {
            let state = fixture.signer.sign(request.name, &json!("several"));
            ask_again(request, everything(), Some(state))
        }
    }
}

/// The name is asked for first, and travels in the state while the colour is.
fn rounds(fixture: &Fixture, request: Request) -> Answering {
    let state = match kept(fixture, &request) {
        Ok(state) => state.unwrap_or_default(),
        Err(outcome) => return outcome.into(),
    };
    let known = state["name"].as_str().map(str::to_owned);
    let Some(name) = known.clone().or_else(|| filled_in(&request, "step1", "name")) else {
        let question = form("Step 1: What is your name?", "name", "string");
        let state = fixture.signer.sign(request.name, &json!({"round": 1}));
        return ask_again(request, vec![("step1", question)], Some(state));
    };
    match filled_in(&request, "step2", "color").filter(|_| known.is_some()) {
        Some(color) => said(format!("{name} likes {color}.")),
        None => {
            let question = form("Step 2: What is your favorite color?", "color", "string");
            let state = fixture.signer.sign(request.name, &json!({"round": 2, "name": name}));
            ask_again(request, vec![("step2", question)], Some(state))
        }
    }
}

/// The state that came back. One that is not ours ends the call.
fn kept(fixture: &Fixture, request: &Request) -> Result<Option<Value>, Outcome> {
    let Some(state) = request.state() else {
        return Ok(None);
    };
    let read = fixture.signer.read(request.name, state);
    let not_ours = || Outcome::BadParams("the requestState is not ours".to_owned());
    read.map(Some).ok_or_else(not_ours)
}

fn everything() -> Vec<(&'static str, Question)> {
    vec![
        ("user_name", name_wanted()),
        ("greeting", prompted("Generate a greeting", 50)),
        ("client_roots", Question::Roots),
    ]
}

fn name_wanted() -> Question {
    form("What is your name?", "name", "string")
}

/// A form with one field.
fn form(message: &str, field: &str, kind: &str) -> Question {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    Question::Form(Form { message: message.to_owned(), schema })
}

fn accepted<'a>(request: &'a Request, name: &str, field: &str) -> Option<&'a Value> {
    match request.answer(name) {
        Some(Answer::Accepted(fields)) => fields.get(field),
        _ => None,
    }
}

fn filled_in(request: &Request, name: &str, field: &str) -> Option<String> {
    accepted(request, name, field).and_then(Value::as_str).map(str::to_owned)
}

fn sampled(request: &Request, name: &str) -> Option<String> {
    match request.answer(name) {
        Some(Answer::Sampled(sampled)) => sampled.text().map(str::to_owned),
        _ => None,
    }
}

fn folders(request: &Request) -> Option<String> {
    let Some(Answer::Roots(roots)) = request.answer("client_roots") else {
        return None;
    };
    let uris: Vec<&str> = roots.iter().map(|Root { uri, .. }| uri.as_str()).collect();
    Some(uris.join(", "))
}
