//! `mcp describe`: a server or one of its tools, in as much detail as is wanted. A summary connects to nobody.

use std::io;
use std::ops::Range;

use clap::{Args, ValueEnum};
use code_mode::PREFIX;
use orchestrator::upstream::info::Info;
use registry::Entry;
use serde::Serialize;
use tool_schema::signature::signature;
use tool_schema::tool::Tool;
use tool_schema::types::declaration;

use super::servers::{Reaching, Servers};
use super::tools::{ToolLine, hints, how_to_call, who};
use super::{Context, json_text, refused, running};
use crate::cli::run::lines;
use crate::cli::terminal::{CYAN, DIM, HEADING, YELLOW};
use crate::cli::{Ended, Failure, Outcome, Terminal};
use service::words::one_line;

/// How much of a tool's description one line has room for, where lines are not cut.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Describe a server, or a tool of it, in more detail
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp describe everything
  workflowlookup mcp describe everything.get-sum
  workflowlookup mcp describe everything --detail types > everything.d.ts
  workflowlookup mcp describe --stdio 'uvx mcp-server-time' get_current_time")]
pub(crate) struct Arguments {
    /// The server's id, or `SERVER.TOOL`; with --stdio or --http only `TOOL`, or nothing
    #[arg(value_name = "SERVER[.TOOL]")]
    target: Option<String>,
    /// How much; otherwise `tools` for a server and `schema` for a tool
    #[arg(long, value_enum)]
    detail: Option<Detail>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Detail {
    /// What its entry says, for which nothing is connected to; of a tool, a few lines
    Summary,
    /// The names of its tools, with a line about each
    Tools,
    /// Each tool with its schemas
    Schema,
    /// TypeScript declarations of its tools
    Types,
}

/// For a machine; what does not belong to the detail is left out.
#[derive(Debug, Serialize)]
struct Description<'a> {
    server: Card<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<&'a Info>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<String>,
}

/// What its entry says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Card<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    domains: &'a [String],
    tags: &'a [String],
    examples: &'a [String],
    transport: &'static str,
    reached: String,
    sensitivity: &'static str,
    visibility: &'static str,
    priority: u8,
    timeout_ms: u64,
    max_calls_per_minute: u32,
    always_allow: &'a [String],
    allow: &'a [String],
    deny: &'a [String],
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let (server, tool) = split(arguments.target.as_deref(), &servers);
    if server.is_none() && !servers.is_ad_hoc() {
        let hint = "`workflowlookup mcp list` shows the servers";
        return Err(super::Refused::invalid("name a server, or a tool of it", hint).into());
    }
    let entry = servers.entry(server)?;
    let usual = if tool.is_some() { Detail::Schema } else { Detail::Tools };
    let detail = arguments.detail.unwrap_or(usual);
    let about = About { servers: &servers, entry: &entry, detail };
    if detail == Detail::Summary && tool.is_none() {
        let card = Card::of(&entry, &servers);
        match arguments.json {
            true => terminal.json(&Description {
                server: card,
                info: None,
                tools: None,
                types: None,
            })?,
            false => card.print(terminal)?,
        }
        return Ok(Outcome::Good);
    }
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let connected = async {
            let tools = orchestrator.tools(&entry.id).await?;
            Ok((orchestrator.info(&entry.id).await?, tools))
        };
        let (info, list) = connected.await.map_err(|error| refused(error, &servers))?;
        let all = &list.tools;
        let some = match tool {
            None => 0..all.len(),
            Some(name) => {
                let at = all.iter().position(|tool| tool.name == name);
                let at = at.ok_or_else(|| about.no_tool(name, all))?;
                at..at + 1
            }
        };
        let types = (about.detail == Detail::Types).then(|| about.types(all, some.clone()));
        let chosen = &all[some];
        match (arguments.json, types) {
            (true, types) => terminal.json(&about.json(&info, chosen, types))?,
            (false, Some(types)) => terminal.foreign(&types)?,
            (false, None) => about.print(&info, chosen, tool.is_none(), terminal)?,
        }
        for note in list.notes.iter().filter(|_| tool.is_none()) {
            terminal.complain(YELLOW, "warning", note, None)?;
        }
        Ok(Outcome::Good)
    })
}

fn split<'a>(target: Option<&'a str>, servers: &Servers) -> (Option<&'a str>, Option<&'a str>) {
    let Some(target) = target else { return (None, None) };
    if servers.is_ad_hoc() {
        return (None, Some(target));
    }
    match target.split_once('.') {
        Some((server, tool)) => (Some(server), Some(tool)),
        None => (Some(target), None),
    }
}

struct About<'a> {
    servers: &'a Servers,
    entry: &'a Entry,
    detail: Detail,
}

impl About<'_> {
    fn no_tool(&self, name: &str, tools: &[Tool]) -> Failure {
        let names = tools.iter().map(|tool| tool.name.as_str());
        let missing = tool_schema::arguments::NoSuchTool::new(&self.entry.id, name, names);
        refused(orchestrator::Error::NoTool(missing), self.servers)
    }

    fn types(&self, all: &[Tool], some: Range<usize>) -> String {
        let specifier = format!("{PREFIX}{}", self.entry.id);
        declaration(&self.entry.id, &specifier, all, some).text
    }

    fn json<'a>(
        &'a self,
        info: &'a Info,
        tools: &'a [Tool],
        types: Option<String>,
    ) -> Description<'a> {
        let line = |tool| ToolLine::of(tool, &self.entry.id, self.servers);
        let lines = match self.detail {
            Detail::Summary | Detail::Tools => Some(tools.iter().map(line).collect()),
            Detail::Schema => {
                let lines = tools.iter().map(|tool| line(tool).with_schemas(tool));
                Some(lines.collect())
            }
            Detail::Types => None,
        };
        Description {
            server: Card::of(self.entry, self.servers),
            info: Some(info),
            tools: lines,
            types,
        }
    }

    fn print(
        &self,
        info: &Info,
        tools: &[Tool],
        is_whole: bool,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if is_whole {
            terminal.pieces(&[(HEADING, &self.entry.id), (DIM, &format!(" ({})", who(info)))])?;
            if let Some(instructions) = &info.instructions {
                print_text(instructions, terminal)?;
            }
            terminal.line("")?;
        }
        if is_whole && self.detail == Detail::Tools {
            let rows = tools.iter().map(|tool| {
                let description = tool.description.as_deref().or(tool.title.as_deref());
                vec![
                    tool.name.clone(),
                    one_line(description.unwrap_or_default(), DESCRIPTION_CHARS_MAX),
                ]
            });
            terminal.fitted_table(&["TOOL", "DESCRIPTION"], rows.collect(), &[1])?;
            return Ok(());
        }
        for (at, tool) in tools.iter().enumerate() {
            if at > 0 {
                terminal.line("")?;
            }
            self.print_tool(tool, terminal)?;
        }
        Ok(())
    }

    fn print_tool(&self, tool: &Tool, terminal: &mut Terminal) -> io::Result<()> {
        terminal.styled(CYAN, &signature(tool))?;
        if let Some(description) = tool.description.as_deref().or(tool.title.as_deref()) {
            print_text(description, terminal)?;
        }
        let hints = hints(tool);
        if !hints.is_empty() {
            terminal.styled(DIM, &format!("says of itself: {}", hints.join(", ")))?;
        }
        terminal.styled(DIM, &how_to_call(tool, &self.entry.id, self.servers))?;
        if self.detail == Detail::Schema {
            terminal.styled(HEADING, "input")?;
            json_text::print(tool.input_schema.text(), terminal)?;
            if let Some(schema) = &tool.output_schema {
                terminal.styled(HEADING, "output")?;
                json_text::print(schema.text(), terminal)?;
            }
        }
        Ok(())
    }
}

fn print_text(text: &str, terminal: &mut Terminal) -> io::Result<()> {
    for line in lines(text.trim(), terminal.width()) {
        terminal.line(&line.text)?;
    }
    Ok(())
}

impl<'a> Card<'a> {
    fn of(entry: &'a Entry, servers: &Servers) -> Self {
        Self {
            id: &entry.id,
            title: entry.title.as_deref(),
            summary: entry.summary.as_deref(),
            domains: &entry.domains,
            tags: &entry.tags,
            examples: &entry.examples,
            transport: entry.connect.transport(),
            reached: servers.reached(&entry.id).unwrap_or_default(),
            sensitivity: entry.sensitivity.word(),
            visibility: entry.visibility.word(),
            priority: entry.priority,
            timeout_ms: super::tools::millis(entry.timeout()),
            max_calls_per_minute: entry.calls_per_minute(),
            always_allow: &entry.always_allow,
            allow: &entry.allow,
            deny: &entry.deny,
        }
    }

    fn print(&self, terminal: &mut Terminal) -> io::Result<()> {
        terminal.styled(HEADING, self.id)?;
        let limits = format!(
            "{} ({} ms and {} calls a minute)",
            self.sensitivity, self.timeout_ms, self.max_calls_per_minute
        );
        let priority = self.priority.to_string();
        let lists = [
            ("domains", self.domains.join(", ")),
            ("tags", self.tags.join(", ")),
            ("examples", self.examples.join("; ")),
            ("always allowed", self.always_allow.join(", ")),
            ("allowed tools", self.allow.join(", ")),
            ("denied tools", self.deny.join(", ")),
        ];
        let lists = lists.iter().map(|(name, text)| (*name, text.as_str()));
        let facts = [
            ("title", self.title.unwrap_or_default()),
            ("summary", self.summary.unwrap_or_default()),
            ("reached by", &self.reached),
            ("sensitivity", &limits),
            ("visibility", self.visibility),
            ("priority", &priority),
        ];
        for (name, text) in facts.into_iter().chain(lists).filter(|(_, text)| !text.is_empty()) {
            terminal.line(&format!("  {name}: {}", one_line(text, usize::MAX)))?;
        }
        Ok(())
    }
}
