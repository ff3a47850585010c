//! The suite's prompts, and what completes their arguments.

use std::time::Duration;

use mcp::content::{Block, Held, Message, Page, Prompt, PromptArgument, ResourceContents};
use mcp::{Answer, Ask, Call, Caller, Form, Outcome};
use serde_json::{Value, json};

use crate::samples::picture;

const ASKING: &str = "test_input_required_result_prompt";
const PATIENCE: Duration = Duration::from_secs(30);

/// What may stand for an argument.
const WORDS: [&str; 3] = ["testing", "tested", "paris"];

pub(crate) fn list() -> Outcome {
    let prompt = |name: &str, title: &str, description: &str, arguments: &[(&str, &str)]| Prompt {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        arguments: arguments
            .iter()
            .map(|(name, description)| PromptArgument {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                required: true,
            })
            .collect(),
    };
    let items = vec![
        prompt("test_simple_prompt", "Simple", "One message", &[]),
        prompt(
            "test_prompt_with_arguments",
            "With arguments",
            "Says its arguments",
            &[("arg1", "The first"), ("arg2", "The second")],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            "With a resource",
            "Holds a resource",
            &[("resourceUri", "Which one")],
        ),
        prompt("test_prompt_with_image", "With a picture", "Holds a picture", &[]),
        prompt(ASKING, "With a question", "Asks the user first", &[]),
    ];
    Outcome::Prompts(Page { items, next: None, is_live: false })
}

pub(crate) fn get(name: String, arguments: Vec<(String, String)>, caller: &Caller) -> Outcome {
    let argument = |wanted: &str| {
        let found = arguments.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| format!("{wanted} is required"))
    };
    let blocks = match &*name {
        "test_simple_prompt" => Ok(vec![Block::text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => {
            argument("arg1").and_then(|first| Ok((first, argument("arg2")?))).map(|(arg1, arg2)| {
                let text = format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'");
                vec![Block::Text(text)]
            })
        }
        "test_prompt_with_embedded_resource" => argument("resourceUri").map(|uri| {
            let held = Held::Text("Embedded resource content for testing.".to_owned());
            let contents = ResourceContents { uri: uri.to_owned(), mime_type: "text/plain", held };
            let request = Block::text("Please process the embedded resource above.");
            vec![Block::Embedded(contents), request]
        }),
        "test_prompt_with_image" => {
            Ok(vec![picture(), Block::text("Please analyze the image above.")])
        }
        ASKING => match context(caller) {
            Some(context) => Ok(vec![Block::Text(format!("Keep this in mind: {context}"))]),
            None => return ask(Call::GetPrompt { name, arguments }),
        },
        unknown => Err(format!("there is no prompt `{unknown}`")),
    };
    match blocks {
        Ok(blocks) => {
            let messages = blocks.into_iter().map(Message::user).collect();
            Outcome::Prompt { description: format!("The prompt {name}"), messages }
        }
        Err(details) => Outcome::BadParams(details),
    }
}

/// What the user said, if anything came back that makes sense.
fn context(caller: &Caller) -> Option<String> {
    let given = &caller.answers.as_ref()?.given;
    match given.get("user_context") {
        Some(Answer::Accepted(fields)) => {
            fields.get("context").and_then(Value::as_str).map(str::to_owned)
        }
        None if !given.is_empty() => None,
        // A client that was asked and has nothing to say is not asked for ever.
        Some(_) | None => Some("nothing".to_owned()),
    }
}

fn ask(call: Call) -> Outcome {
    let form = Form {
        message: "What context should the prompt use?".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {"context": {"type": "string"}},
            "required": ["context"],
        }),
    };
    let questions = vec![("user_context".to_owned(), form.into())];
    Outcome::Ask(Box::new(Ask { call, questions, patience: PATIENCE, about: None, state: None }))
}

pub(crate) fn complete(typed: &str) -> Outcome {
    let found = WORDS.into_iter().filter(|word| word.starts_with(typed));
    let values: Vec<String> = found.map(str::to_owned).collect();
    let total = values.len();
    Outcome::Completion { values, total }
}
