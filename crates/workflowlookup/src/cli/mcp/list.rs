//! `mcp list`: the servers that there are, or the tools of one of them. Only for the second somebody is connected to.

use std::io;
use std::time::Instant;

use clap::Args;
use orchestrator::upstream::info::Info;
use orchestrator::upstream::list::ToolList;
use registry::{Finding, Listed, Registry, RegistryFile, Standing, State};
use serde::Serialize;
use tool_schema::signature::signature;

use super::servers::{HOW_TO_ADD, Reaching, Servers};
use super::tools::{ToolLine, how_to_call, millis, time, who};
use super::{Context, refused, running};
use crate::cli::terminal::{CYAN, DIM, HEADING, YELLOW};
use crate::cli::{Ended, Failure, Outcome, Terminal};
use service::words::{one_line, plural};

/// How much of a tool's description a list has room for.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// List the servers, or the tools of one
///
/// Without a server, nothing is connected to. With one, each of its tools is shown as a signature, with a call to paste.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp list
  workflowlookup mcp list everything
  workflowlookup mcp list --stdio 'uvx mcp-server-time'
  workflowlookup --registry ~/.cursor/mcp.json mcp list --json")]
pub(crate) struct Arguments {
    /// The server whose tools are wanted, by its id
    #[arg(value_name = "SERVER", conflicts_with_all = ["stdio", "http"])]
    server: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    reaching: Reaching,
}

/// All servers, for a machine.
#[derive(Debug, Serialize)]
struct Listing<'a> {
    servers: Vec<ServerLine<'a>>,
    files: Vec<FileLine>,
    findings: &'a [Finding],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerLine<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    state: &'static str,
    transport: Option<&'static str>,
    reached: String,
    sensitivity: Option<&'static str>,
    visibility: Option<&'static str>,
    file: String,
    /// Of a server that is not trusted: the command by which it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<String>,
}

#[derive(Debug, Serialize)]
struct FileLine {
    path: String,
    state: &'static str,
}

/// One server's tools, for a machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    server: &'a str,
    info: &'a Info,
    tools: Vec<ToolLine<'a>>,
    notes: &'a [String],
    took_ms: u64,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    if arguments.server.is_none() && !arguments.reaching.ad_hoc.is_given() {
        return servers(arguments, context, terminal);
    }
    let mut servers = arguments.reaching.open(context)?;
    let id = servers.entry(arguments.server.as_deref())?.id.clone();
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let began = Instant::now();
        let connected = async {
            let tools = orchestrator.tools(&id).await?;
            Ok((orchestrator.info(&id).await?, tools))
        };
        let (info, tools) = connected.await.map_err(|error| refused(error, &servers))?;
        let took = began.elapsed();
        if arguments.json {
            let lines = tools.tools.iter().map(|tool| ToolLine::of(tool, &id, &servers));
            terminal.json(&Tools {
                server: &id,
                info: &info,
                tools: lines.collect(),
                notes: &tools.notes,
                took_ms: millis(took),
            })?;
            return Ok(Outcome::Good);
        }
        terminal.pieces(&[(HEADING, &id), (DIM, &format!(" ({})", who(&info)))])?;
        print_tools(&tools, &id, &servers, terminal)?;
        let message = format!("{} in {}", plural(tools.tools.len(), "tool"), time(took));
        terminal.complain(DIM, "note", &message, None)?;
        Ok(Outcome::Good)
    })
}

fn print_tools(
    list: &ToolList,
    server: &str,
    servers: &Servers,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    for tool in &list.tools {
        terminal.line("")?;
        terminal.styled(CYAN, &signature(tool))?;
        if let Some(description) = tool.description.as_deref().or(tool.title.as_deref()) {
            terminal.line(&format!("  {}", one_line(description, DESCRIPTION_CHARS_MAX)))?;
        }
        terminal.styled(DIM, &format!("  {}", how_to_call(tool, server, servers)))?;
    }
    for note in &list.notes {
        terminal.complain(YELLOW, "warning", note, None)?;
    }
    Ok(())
}

fn servers(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let servers = Servers::look(&arguments.reaching.ad_hoc, context.sources)?;
    let registry = &servers.registry;
    let lines: Vec<ServerLine<'_>> = {
        let files = registry.files.iter();
        let listed = files.flat_map(|file| file.servers.iter().map(move |server| (file, server)));
        listed.map(|(file, server)| ServerLine::of(file, server, registry)).collect()
    };
    if arguments.json {
        let files = registry.files.iter().map(FileLine::of).collect();
        terminal.json(&Listing { servers: lines, files, findings: &registry.findings })?;
        return servers.complain().map(|()| Outcome::Good);
    }
    let rows: Vec<Vec<String>> = lines.iter().map(ServerLine::row).collect();
    let is_empty = rows.is_empty();
    if !is_empty {
        let headings = ["ID", "STATE", "SENSITIVITY", "VISIBILITY", "REACHED BY", "TITLE"];
        terminal.fitted_table(&headings, rows, &[4, 5])?;
    }
    // What keeps a file from being read is told as a fault, with its findings.
    servers.complain()?;
    print_findings(&registry.findings, terminal)?;
    for file in untrusted_files(registry) {
        let path = file.path.display();
        let message = format!("nobody has trusted servers of `{path}`: they take no effect");
        let hint = format!("`{}` shows what they would run, and asks", file.trust_command());
        terminal.complain(YELLOW, "warning", &message, Some(&hint))?;
    }
    if is_empty {
        let message = "no registry names a server";
        terminal.complain(YELLOW, "warning", message, Some(HOW_TO_ADD))?;
    }
    Ok(Outcome::Good)
}

fn untrusted_files(registry: &Registry) -> impl Iterator<Item = &RegistryFile> {
    registry
        .files
        .iter()
        .filter(|file| file.servers.iter().any(|server| server.standing == Standing::Untrusted))
}

fn print_findings(findings: &[Finding], terminal: &mut Terminal) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    if !terminal.is_terminal() {
        // What reads the list gets only the list.
        return findings.iter().try_for_each(|finding| terminal.aside(&finding.to_string()));
    }
    terminal.line("")?;
    terminal.styled(HEADING, "Findings")?;
    for finding in findings {
        terminal.line(&finding.to_string())?;
    }
    Ok(())
}

impl<'a> ServerLine<'a> {
    fn of(file: &'a RegistryFile, server: &'a Listed, registry: &'a Registry) -> Self {
        let draft = &server.draft;
        let is_used = server.standing == Standing::Used;
        let entry = registry.get(&draft.id).filter(|_| is_used);
        Self {
            id: &draft.id,
            title: entry.and_then(|entry| entry.title.as_deref()),
            summary: entry.and_then(|entry| entry.summary.as_deref()),
            state: match server.standing {
                Standing::Used => "ok",
                Standing::Disabled => "disabled",
                Standing::Unusable => "unusable",
                Standing::Hidden => "hidden",
                Standing::Untrusted => "untrusted",
            },
            transport: draft.transport(),
            reached: draft.shown(),
            sensitivity: entry.map(|entry| entry.sensitivity.word()),
            visibility: entry.map(|entry| entry.visibility.word()),
            file: file.path.display().to_string(),
            trust: (server.standing == Standing::Untrusted).then(|| file.trust_command()),
        }
    }

    fn row(&self) -> Vec<String> {
        let title = self.title.or(self.summary).unwrap_or_default();
        vec![
            self.id.to_owned(),
            self.state.to_owned(),
            self.sensitivity.unwrap_or("-").to_owned(),
            self.visibility.unwrap_or("-").to_owned(),
            one_line(&self.reached, DESCRIPTION_CHARS_MAX),
            one_line(title, DESCRIPTION_CHARS_MAX),
        ]
    }
}

impl FileLine {
    fn of(file: &RegistryFile) -> Self {
        let state = match file.state {
            State::Absent => "absent",
            State::Read | State::Kept => "read",
            State::Broken => "broken",
        };
        Self { path: file.path.display().to_string(), state }
    }
}
