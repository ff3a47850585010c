//! The methods that both eras share, one line each, and how the outcome of a call becomes a reply.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::action::{Abilities, Call, Outcome, Reference, completion};
use crate::asking::input_required;
use crate::jsonrpc::{Error, check_size, params};
use crate::quote::Quoted;
use crate::revision::{Revision, Traits};
use crate::server::{Caching, Server};

/// What the parameters of a request may have. Those of `tools/call` are for each tool to say.
pub(crate) const PARAMS_BYTES_MAX: usize = 256 * 1024;
/// How many arguments a prompt may be asked for with.
const PROMPT_ARGUMENTS_MAX: usize = 100;

/// What a request leads to.
#[derive(Debug)]
pub(crate) enum Step {
    /// The result, as JSON.
    Answer(String),
    /// Only the host can answer.
    Call(Call, Shape),
    /// The result, and then the end.
    AnswerAndClose(String),
    /// A stream of notifications, answered when it ends.
    Listen(Value),
}

/// What kind of result a call's reply takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A tool as a method of its own: its result, bare.
    Method,
    /// `tools/call`.
    Tool,
    /// Anything else: the outcome says what.
    Plain,
}

pub(crate) fn shared(
    server: &Server,
    revision: Revision,
    method: &str,
    raw: Option<&RawValue>,
) -> Result<Step, Error> {
    let plain = |call| Ok(Step::Call(call, Shape::Plain));
    check_params(method, raw)?;
    match method {
        "tools/list" => {
            no_cursor(raw)?;
            Ok(Step::Answer(server.tool_list(revision).to_owned()))
        }
        "tools/call" => call_tool(server, raw),
        "resources/list" => plain(Call::ListResources { cursor: cursor(raw)? }),
        "resources/templates/list" => {
            no_cursor(raw)?;
            plain(Call::ListTemplates)
        }
        "resources/read" => plain(Call::ReadResource { uri: params::<Uri>(raw)?.uri }),
        "prompts/list" => plain(Call::ListPrompts { cursor: cursor(raw)? }),
        "prompts/get" => {
            let GetPrompt { name, arguments } = params(raw)?;
            let arguments: Vec<_> = arguments.unwrap_or_default().into_iter().collect();
            if arguments.len() > PROMPT_ARGUMENTS_MAX {
                let details = format!("a prompt may have {PROMPT_ARGUMENTS_MAX} arguments");
                return Err(Error::invalid_params(details));
            }
            plain(Call::GetPrompt { name, arguments })
        }
        "completion/complete" => plain(complete(raw)?),
        unknown => Err(Error::method_not_found(unknown)),
    }
}

/// Whether parameters are not too large to be looked at.
pub(crate) fn check_params(method: &str, raw: Option<&RawValue>) -> Result<(), Error> {
    match method {
        "tools/call" | "subscriptions/listen" => Ok(()),
        _ => check_size("the parameters", PARAMS_BYTES_MAX, raw),
    }
}

#[derive(Deserialize)]
pub(crate) struct Uri {
    pub(crate) uri: String,
}

#[derive(Deserialize)]
struct Cursor {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct CallTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GetPrompt {
    name: String,
    arguments: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Complete {
    r#ref: CompleteReference,
    argument: CompleteArgument,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum CompleteReference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct CompleteArgument {
    name: String,
    value: String,
}

fn cursor(raw: Option<&RawValue>) -> Result<Option<String>, Error> {
    Ok(params::<Cursor>(raw)?.cursor)
}

/// A list that has one page: whoever has a cursor did not get it from us.
fn no_cursor(raw: Option<&RawValue>) -> Result<(), Error> {
    match cursor(raw)? {
        None => Ok(()),
        Some(cursor) => Err(Error::invalid_params(format!("unknown cursor `{cursor}`"))),
    }
}

fn call_tool(server: &Server, raw: Option<&RawValue>) -> Result<Step, Error> {
    let CallTool { name, arguments } = params(raw)?;
    let Some(tool) = server.tool(&name) else {
        let name = Shown(&name);
        return Err(Error::invalid_params(format!("there is no tool `{name}`")));
    };
    if let Some(hidden) = server.hidden_tool(&name) {
        let details = format!("there is no tool `{name}`: {}", hidden.advice);
        return Err(Error::invalid_params(details));
    }
    let call = Call::Tool { name: tool.name, arguments: object(arguments)?, is_method: false };
    Ok(Step::Call(call, Shape::Tool))
}

/// A name that is repeated, which somebody may have made very long.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

/// More of a name is not repeated.
const NAME_SHOWN_BYTES_MAX: usize = 1024;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..self.0.floor_char_boundary(NAME_SHOWN_BYTES_MAX)) {
            Some(head) if head.len() < self.0.len() => write!(out, "{head}…"),
            _ => out.write_str(self.0),
        }
    }
}

/// Arguments as an object: absent and null are an empty one.
pub(crate) fn object(raw: Option<&RawValue>) -> Result<Box<RawValue>, Error> {
    let text = raw.map_or("null", RawValue::get);
    match text.as_bytes()[0] {
        b'{' => raw.map(RawValue::to_owned).ok_or_else(Error::internal),
        b'n' => RawValue::from_string("{}".to_owned()).map_err(|_| Error::internal()),
        _ => Err(Error::invalid_params("arguments must be an object")),
    }
}

fn complete(raw: Option<&RawValue>) -> Result<Call, Error> {
    let Complete { r#ref, argument } = params(raw)?;
    let reference = match r#ref {
        CompleteReference::Prompt { name } => Reference::Prompt(name),
        CompleteReference::Resource { uri } => Reference::Resource(uri),
    };
    Ok(Call::Complete { reference, argument: argument.name, typed: argument.value })
}

/// Appends the result that an outcome comes to, as JSON; or the error.
pub(crate) fn outcome(
    server: &Server,
    revision: Revision,
    shape: Shape,
    abilities: Abilities,
    outcome: Outcome,
    out: &mut String,
) -> Result<(), Error> {
    let traits = revision.traits();
    let (result, caching) = match outcome {
        Outcome::Tool { structured, .. } if shape == Shape::Method => {
            push_line(&structured, out);
            return Ok(());
        }
        Outcome::Tool { text, structured } => {
            push_tool_result(server, revision, &text, &structured, out);
            return Ok(());
        }
        Outcome::Blocks { structured: Some(structured), is_error: false, .. }
            if shape == Shape::Method =>
        {
            out.push_str(&structured.to_string());
            return Ok(());
        }
        Outcome::Blocks { blocks, structured, is_error } => {
            let blocks = blocks.iter().map(|block| block.to_json(&traits)).collect();
            (tool_result(blocks, structured, is_error, &traits), Caching::None)
        }
        Outcome::Foreign(result) => (result.to_json(&traits), Caching::None),
        Outcome::Refused { error, .. } if shape != Shape::Tool => return Err(error),
        Outcome::Refused { advice, error } => {
            (failed_tool(&[advice, json!(error).to_string()]), Caching::None)
        }
        Outcome::BadArguments(details) => {
            let advice = format!("Call the tool again with other arguments: {details}.");
            let error = Error::invalid_params(details);
            if shape == Shape::Method || !traits.bad_arguments_are_results {
                return Err(error);
            }
            (failed_tool(&[advice, json!(error).to_string()]), Caching::None)
        }
        Outcome::Resources(page) => {
            let items = page.items.iter().map(|item| item.to_json(&traits)).collect();
            (listed("resources", items, page.next), Caching::of(page.is_live))
        }
        Outcome::Templates(templates) => {
            let items = templates.iter().map(|item| item.to_json(&traits)).collect();
            (listed("resourceTemplates", items, None), Caching::List)
        }
        Outcome::Prompts(page) => {
            let items = page.items.iter().map(|item| item.to_json(&traits)).collect();
            (listed("prompts", items, page.next), Caching::of(page.is_live))
        }
        Outcome::Resource { contents, is_live } => {
            (json!({"contents": [contents.to_json()]}), Caching::of(is_live))
        }
        Outcome::ForeignContents(contents) => (json!({"contents": contents}), Caching::Live),
        Outcome::Prompt { description, messages } => {
            let messages = messages.iter().map(|message| message.to_json(&traits));
            let messages: Vec<Value> = messages.collect();
            (json!({"description": description, "messages": messages}), Caching::None)
        }
        Outcome::Completion { values, total } => (completion(values, total), Caching::None),
        Outcome::NoResource { uri } if traits.is_modern => {
            let details = format!("there is no resource `{uri}`");
            let data = json!({"details": details, "uri": uri});
            return Err(Error { data: Some(data), ..Error::invalid_params(details) });
        }
        Outcome::NoResource { uri } => {
            return Err(Error::new(-32002, "Resource not found", json!({"uri": uri})));
        }
        Outcome::BadParams(details) => return Err(Error::invalid_params(details)),
        Outcome::Ask(ask) => {
            ask.check(abilities)?;
            if !traits.is_modern {
                // A host that asks nothing: clients with a handshake are asked before we come here.
                return Err(Error::internal());
            }
            out.push_str(&input_required(server, *ask)?);
            return Ok(());
        }
        Outcome::Busy => return Err(Error::busy()),
        Outcome::Fault => return Err(Error::internal()),
    };
    out.push_str(&server.complete(revision, result, caching).to_string());
    Ok(())
}

/// A message is one line. In JSON a line end is white space, whoever wrote it there.
fn push_line(json: &str, out: &mut String) {
    if memchr::memchr2(b'\n', b'\r', json.as_bytes()).is_some() {
        out.push_str(&json.replace(['\n', '\r'], " "));
    } else {
        out.push_str(json);
    }
}

/// Put together by hand: this is the one result whose cost is felt.
fn push_tool_result(
    server: &Server,
    revision: Revision,
    text: &Quoted,
    structured: &str,
    out: &mut String,
) {
    let traits = revision.traits();
    out.push_str(r#"{"content":[{"type":"text","text":""#);
    out.push_str(text.inner());
    out.push_str(r#""}]"#);
    if traits.structured_content {
        out.push_str(r#","structuredContent":"#);
        push_line(structured, out);
    }
    if traits.is_modern {
        out.push_str(r#","resultType":"complete","_meta":"#);
        out.push_str(server.meta_text(revision));
    }
    out.push('}');
}

/// What a machine reads is for revisions that have a place for it, and never goes with an error.
fn tool_result(
    blocks: Vec<Value>,
    structured: Option<Value>,
    is_error: bool,
    traits: &Traits,
) -> Value {
    let mut result = json!({"content": blocks});
    if is_error {
        result["isError"] = json!(true);
    } else if let Some(structured) = structured.filter(|_| traits.structured_content) {
        result["structuredContent"] = structured;
    }
    result
}

fn failed_tool(texts: &[String]) -> Value {
    let content: Vec<Value> =
        texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    json!({"content": content, "isError": true})
}

fn listed(name: &str, items: Vec<Value>, next: Option<String>) -> Value {
    let mut result = json!({name: items});
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    result
}
