//! Goes through a question with a person: one property after the other, each read as its schema wants it, and asked for
//! again where it does not fit.

use orchestrator::{Answer, Form, Wanted};
use serde_json::{Map, Value, json};
use tool_schema::arguments::{Checker, Verdict, has_format};
use tool_schema::tool::{Annotations, Json, Tool};
use tool_schema::typed;

use service::words::one_line;

/// How often something is asked for again.
const ATTEMPTS_MAX: usize = 10;

/// A prompt in, a line out; none where there are no more.
type Ask<'a> = dyn FnMut(&str) -> Option<String> + 'a;
type Say<'a> = dyn FnMut(Said<'_>) + 'a;

/// Whose words they are. A server's are marked on every line, so that none of them can be taken for ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said<'s> {
    Ours(&'s str),
    Theirs(&'s str),
}

/// The longest prompt.
const PROMPT_CHARS_MAX: usize = 1_000;

/// What a line means.
enum Typed {
    Text(String),
    Decline,
    Cancel,
}

pub(super) fn fill_in(form: &Form, ask: &mut Ask<'_>, say: &mut Say<'_>) -> Answer {
    say(Said::Ours(&format!("`{}` asks:", form.server)));
    say(Said::Theirs(&form.message));
    match &form.wanted {
        Wanted::Values { schema } => values(schema, ask, say),
        Wanted::Visit { url, .. } => {
            say(Said::Ours("It wants you to open this address, and to do there what it says:"));
            say(Said::Theirs(url));
            say(Said::Ours("Open it only if you trust it."));
            yes("Done? [y]es, [n]o:", ask, say)
        }
        Wanted::Confirmation { tool, arguments } => {
            let arguments = Value::Object(arguments.clone());
            say(Said::Ours(&format!("`{}.{tool}` with {arguments}", form.server)));
            yes("Call it? [y]es, [n]o:", ask, say)
        }
    }
}

fn values(schema: &Value, ask: &mut Ask<'_>, say: &mut Say<'_>) -> Answer {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if properties.is_empty() {
        return yes("Accept? [y]es, [n]o:", ask, say);
    }
    say(Said::Ours("`:n` declines, `:q` or Ctrl-D cancels"));
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let (needed, optional): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(name, _)| is_required(name));
    let mut given = Map::new();
    let needed = needed.into_iter().map(|property| (property, true));
    for ((name, property), is_required) in
        needed.chain(optional.into_iter().map(|one| (one, false)))
    {
        match value(name, property, is_required, ask, say) {
            Ok(Some(value)) => drop(given.insert(name.clone(), value)),
            Ok(None) => {}
            Err(answer) => return answer,
        }
    }
    Answer::Accepted(given)
}

fn value(
    name: &str,
    property: &Value,
    is_required: bool,
    ask: &mut Ask<'_>,
    say: &mut Say<'_>,
) -> Result<Option<Value>, Answer> {
    let text = |field: &str| property.get(field).and_then(Value::as_str);
    if let Some(description) = text("description") {
        say(Said::Theirs(description));
    }
    let choices = choices(property);
    let default = property.get("default").filter(|value| !value.is_null());
    let mut notes: Vec<String> = Vec::new();
    match choices.as_slice() {
        [] => notes.extend(kind(property)),
        choices => {
            let shown: Vec<String> = choices.iter().map(Choice::shown).collect();
            let several = if property.get("items").is_some() { "any of" } else { "one of" };
            notes.push(format!("{several} {}", shown.join(", ")));
        }
    }
    match default {
        Some(default) => notes.push(format!("otherwise {}", plain(default))),
        None if !is_required => notes.push("may be left empty".to_owned()),
        None => {}
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let prompt = format!("{}{notes}", text("title").unwrap_or(name));
    let prompt = format!("{}:", one_line(&prompt, PROMPT_CHARS_MAX));
    for _ in 0..ATTEMPTS_MAX {
        let line = match typed(ask(&prompt)) {
            Typed::Text(line) => line,
            Typed::Decline => return Err(Answer::Declined),
            Typed::Cancel => return Err(Answer::Cancelled),
        };
        match (line.is_empty(), default) {
            (true, Some(default)) => return Ok(Some(default.clone())),
            (true, None) if !is_required => return Ok(None),
            (true, None) => {
                say(Said::Ours("this one is needed"));
                continue;
            }
            (false, _) => {}
        }
        match read(name, property, meant(&line, property, &choices)) {
            Ok(value) => return Ok(Some(value)),
            Err(problems) => {
                problems.iter().for_each(|problem| say(Said::Ours(&one_line(problem, usize::MAX))));
            }
        }
    }
    Err(Answer::Cancelled)
}

/// One value, as the schema of its property wants it.
fn read(name: &str, property: &Value, line: String) -> Result<Value, Vec<String>> {
    let schema = Json::from(&json!({"type": "object", "properties": {name: property}}));
    let key: String = name
        .chars()
        .flat_map(|sign| {
            let escape = matches!(sign, '=' | '.' | ':' | '\\').then_some('\\');
            escape.into_iter().chain([sign])
        })
        .collect();
    let arguments = typed::arguments(&schema, &[format!("{key}={line}")]);
    let mut arguments =
        arguments.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let checked = Tool {
        name: name.to_owned(),
        title: None,
        description: None,
        input_schema: schema,
        output_schema: None,
        annotations: Annotations::default(),
        other: Default::default(),
    };
    match Checker::default().arguments(&checked, &Value::Object(arguments.clone())) {
        Verdict::Wrong(problems) => {
            return Err(problems.iter().map(ToString::to_string).collect());
        }
        Verdict::Fits | Verdict::Unchecked(_) => {}
    }
    let value = arguments.remove(name).unwrap_or_default();
    // What was promised to be an address is one: servers rarely look, and people slip.
    let format = property.get("format").and_then(Value::as_str);
    match (format, &value, kind(property)) {
        (Some(format), Value::String(text), Some(kind)) if !has_format(format, text) => {
            Err(vec![format!("this is not {kind}")])
        }
        _ => Ok(value),
    }
}

/// A value that can be chosen, and what it is called.
struct Choice<'a> {
    value: &'a str,
    title: Option<&'a str>,
}

impl Choice<'_> {
    fn shown(&self) -> String {
        match self.title.filter(|title| *title != self.value) {
            Some(title) => format!("`{}` ({title})", self.value),
            None => format!("`{}`", self.value),
        }
    }
}

/// In all the ways in which revisions have written them.
fn choices(property: &Value) -> Vec<Choice<'_>> {
    let holder = property.get("items").unwrap_or(property);
    if let Some(values) = holder.get("enum").and_then(Value::as_array) {
        let titles = holder.get("enumNames").and_then(Value::as_array);
        let title = |at: usize| titles.and_then(|titles| titles.get(at)?.as_str());
        let values = values.iter().enumerate();
        return values
            .filter_map(|(at, value)| Some(Choice { value: value.as_str()?, title: title(at) }))
            .collect();
    }
    let listed = holder.get("oneOf").or_else(|| holder.get("anyOf")).and_then(Value::as_array);
    let listed = listed.map(Vec::as_slice).unwrap_or_default().iter();
    listed
        .filter_map(|one| {
            let title = one.get("title").and_then(Value::as_str);
            Some(Choice { value: one.get("const")?.as_str()?, title })
        })
        .collect()
}

/// What a line says: people answer in words, and by titles.
fn meant(line: &str, property: &Value, choices: &[Choice<'_>]) -> String {
    if property.get("type").is_some_and(|kind| kind == "boolean") {
        return match line.to_lowercase().as_str() {
            "y" | "yes" => "true".to_owned(),
            "n" | "no" => "false".to_owned(),
            other => other.to_owned(),
        };
    }
    let by_title = |text: &str| {
        let is_it = |choice: &&Choice<'_>| choice.title == Some(text);
        choices.iter().find(is_it).map(|choice| choice.value)
    };
    if property.get("items").is_none() || choices.is_empty() {
        return by_title(line).unwrap_or(line).to_owned();
    }
    // A title may have commas itself.
    let parts: Vec<&str> = match by_title(line) {
        Some(_) => vec![line],
        None => line.split(',').map(str::trim).collect(),
    };
    let values = parts.iter().map(|part| by_title(part).unwrap_or(part).replace(',', "\\,"));
    values.collect::<Vec<_>>().join(",")
}

fn kind(property: &Value) -> Option<String> {
    let field = |name: &str| property.get(name).and_then(Value::as_str);
    let kind = match (field("type"), field("format")) {
        (Some("boolean"), _) => "yes or no",
        (Some("integer"), _) => "a whole number",
        (Some("number"), _) => "a number",
        (Some("array"), _) => "a list, with commas",
        (_, Some("email")) => "an e-mail address",
        (_, Some("uri")) => "an address",
        (_, Some("date")) => "a date, as 2026-01-31",
        (_, Some("date-time")) => "a time, as 2026-01-31T12:00:00Z",
        _ => return None,
    };
    Some(kind.to_owned())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

fn yes(prompt: &str, ask: &mut Ask<'_>, say: &mut Say<'_>) -> Answer {
    for _ in 0..ATTEMPTS_MAX {
        match typed(ask(prompt)) {
            Typed::Decline => return Answer::Declined,
            Typed::Cancel => return Answer::Cancelled,
            Typed::Text(line) => match line.to_lowercase().as_str() {
                "y" | "yes" => return Answer::Accepted(Map::new()),
                "n" | "no" => return Answer::Declined,
                _ => say(Said::Ours("`y` or `n`")),
            },
        }
    }
    Answer::Cancelled
}

fn typed(line: Option<String>) -> Typed {
    match line.as_deref().map(str::trim) {
        None | Some(":q") => Typed::Cancel,
        Some(":n") => Typed::Decline,
        Some(line) => Typed::Text(line.to_owned()),
    }
}

#[cfg(test)]
mod tests;
