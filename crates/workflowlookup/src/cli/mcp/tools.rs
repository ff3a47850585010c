//! Tools of a server, as several commands show them.

use std::time::Duration;

use orchestrator::upstream::info::Info;
use serde::Serialize;
use tool_schema::signature::{sample_words, signature};
use tool_schema::tool::{Json, Tool};
use tool_schema::typed;

use super::servers::Servers;
use crate::cli::next::quoted;

/// A tool for a machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolLine<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    signature: String,
    /// Nothing where it cannot be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Json>,
    hints: Vec<&'static str>,
}

impl<'a> ToolLine<'a> {
    pub(super) fn of(tool: &'a Tool, server: &str, servers: &Servers) -> Self {
        Self {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            signature: signature(tool),
            call: (!tool.is_task_only()).then(|| call_to_paste(tool, server, servers, &[])),
            input_schema: None,
            output_schema: None,
            hints: hints(tool),
        }
    }

    pub(super) fn with_schemas(self, tool: &'a Tool) -> Self {
        let (input, output) = (Some(&tool.input_schema), tool.output_schema.as_ref());
        Self { input_schema: input, output_schema: output, ..self }
    }
}

/// The command that calls a tool, with a plausible value for everything that must be there and is not given. What is given
/// are the names of arguments, each with the word that says it.
pub(super) fn call_to_paste(
    tool: &Tool,
    server: &str,
    servers: &Servers,
    given: &[(String, &str)],
) -> String {
    let mut command = servers.call_to_paste(server, &tool.name);
    let is_given = |word: &String| {
        let read = typed::arguments(&tool.input_schema, std::slice::from_ref(word));
        read.is_ok_and(|read| read.keys().all(|name| given.iter().any(|(it, _)| it == name)))
    };
    let samples = sample_words(&tool.input_schema);
    let samples = samples.iter().filter(|word| given.is_empty() || !is_given(word));
    let given = given.iter().map(|(_, word)| *word);
    for word in given.chain(samples.map(String::as_str)) {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    command
}

/// The same for people, or why there is none.
pub(super) fn how_to_call(tool: &Tool, server: &str, servers: &Servers) -> String {
    if tool.is_task_only() {
        return "cannot be called here: it runs only as a task".to_owned();
    }
    call_to_paste(tool, server, servers, &[])
}

/// What a tool claims about itself.
pub(super) fn hints(tool: &Tool) -> Vec<&'static str> {
    let claimed = tool.annotations.hints().into_iter().filter(|(_, hint)| *hint == Some(true));
    let claimed = claimed.map(|(name, _)| name.trim_end_matches("Hint"));
    claimed.chain(tool.is_task_only().then_some("taskOnly")).collect()
}

/// Who a server says that it is: `everything 2.0.0, 2025-11-25`.
pub(super) fn who(info: &Info) -> String {
    let name = info.title.as_deref().unwrap_or(&info.name);
    let (version, revision) = (info.version.trim(), &info.revision);
    let space = if version.is_empty() { "" } else { " " };
    format!("{name}{space}{version}, {revision}")
}

/// `12 ms`, `3.4 s`.
pub(super) fn time(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// For a machine.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
