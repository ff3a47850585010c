//! `mcp call`: one call of one tool, by hand. What is typed is read as the tool's schema wants it, and what comes back is
//! printed; how it gets there is the orchestrator's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use orchestrator::{AskedBy, Call, CallResult, Error, Orchestrator, text};
use registry::Entry;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tool_schema::exact::changed_number;
use tool_schema::tool::Tool;
use tool_schema::typed;

pub(super) mod asking;
pub(super) mod progress;

use asking::AtTerminal;

use super::Context;
use super::content;
use super::files::Folder;
use super::json_text;
use super::refused::Refused;
use super::running;
use super::servers::{Reaching, Servers};
use super::tools::call_to_paste;
use crate::cli::input;
use crate::cli::terminal::YELLOW;
use crate::cli::{Ended, FAILED, Failure, Outcome, Terminal};
use service::error::Refusal;

/// The largest arguments that are read.
const ARGUMENTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What a call may take at least, where connecting took almost all there was.
const LEAST: Duration = Duration::from_millis(1);

/// Call a tool of another server
///
/// Values are read as the tool's schema wants them: `limit=5` is a number where a number is wanted. A list is `labels=a,b`,
/// a property of an object `author.name=Ann`, and `key:=JSON` is taken as it is. Texts are printed as they are, images and
/// other files saved in the current folder. The exit status is 1 where the tool or the server says no, and 2 where we fail.
/// Ctrl-C cancels the call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp call github.create_issue title='It breaks' labels=bug,urgent
  workflowlookup mcp call everything.get-sum a=1 b=2 --json
  echo '{\"a\": 1, \"b\": 2}' | workflowlookup mcp call everything.get-sum --args -
  workflowlookup mcp call --stdio 'uvx mcp-server-time' get_current_time timezone=UTC
  workflowlookup mcp call --http https://example.com/mcp --bearer-env TOKEN search query=bees")]
pub(crate) struct Arguments {
    /// The server's id and the tool's name: `SERVER.TOOL`; with --stdio or --http only `TOOL`
    #[arg(value_name = "SERVER.TOOL")]
    target: String,
    /// Arguments of the tool, as `key=value` or `key:=JSON`
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// All arguments as one JSON object, or `-` to read it from standard input
    #[arg(long, value_name = "JSON|-", conflicts_with = "words")]
    args: Option<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Where images and other files go; otherwise the current folder. None is overwritten
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    save: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let (server, tool) = split(&arguments.target, &servers)?;
    let entry = servers.entry(server)?;
    let given = arguments.given()?;
    let mut folder = Folder::open(arguments.save.as_deref(), tool)?;
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let calling = Calling { servers: &servers, entry: &entry, tool };
        let result = calling.call(orchestrator, given).await?;
        for warning in &result.warnings {
            terminal.complain(YELLOW, "warning", warning, None)?;
        }
        let outcome = if result.is_error { Outcome::Bad } else { Outcome::Good };
        if arguments.json {
            match &result.sent {
                Some(sent) => json_text::print(sent.get(), terminal)?,
                None => terminal.json(&result.raw)?,
            }
        } else if result.is_error {
            let message = format!("`{}.{tool}` failed: {}", entry.id, text::of(&result.raw));
            terminal.complain(FAILED, "error", &message, None)?;
        } else {
            content::print(&result.raw, &mut folder, terminal)?;
        }
        terminal.flush()?;
        Ok(outcome)
    })
}

/// The server and the tool. Ids have no dots, names of tools may.
fn split<'a>(target: &'a str, servers: &Servers) -> Result<(Option<&'a str>, &'a str), Refused> {
    if servers.is_ad_hoc() {
        return Ok((None, target));
    }
    match target.split_once('.') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => Ok((Some(server), tool)),
        _ => {
            let hint = match servers.registry.get(target) {
                Some(_) => format!("`workflowlookup mcp list {target}` shows its tools"),
                None => {
                    "write `SERVER.TOOL`; `workflowlookup mcp list` shows the servers".to_owned()
                }
            };
            Err(Refused::invalid(
                format!("`{target}` does not name a server and a tool of it"),
                hint,
            ))
        }
    }
}

/// What was typed.
enum Given<'a> {
    Whole(Map<String, Value>),
    Words(&'a [String]),
}

impl<'a> Given<'a> {
    fn words(&self) -> &'a [String] {
        match self {
            Self::Words(words) => words,
            Self::Whole(_) => &[],
        }
    }
}

impl Arguments {
    fn given(&self) -> Result<Given<'_>, Failure> {
        let text = match self.args.as_deref() {
            None => return Ok(Given::Words(&self.words)),
            Some("-") => input::read(Path::new("-"), "arguments", ARGUMENTS_BYTES_MAX)?,
            Some(text) => text.to_owned(),
        };
        if let Some((number, becomes)) = changed_number(&text) {
            return Err(Refused::invalid(
                format!(
                    "the arguments have the number {number}, which cannot be sent as it is: it would become {becomes}"
                ),
                "write fewer digits, or a text where the tool takes one",
            )
            .into());
        }
        let refused = |details: String| Refusal::InvalidParams {
            details,
            hint: Some(
                "`--args '{\"key\": \"value\"}'`, or `key=value` without `--args`".to_owned(),
            ),
        };
        match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => Ok(Given::Whole(arguments)),
            Ok(_) => Err(refused("the arguments are JSON, but no object".to_owned()).into()),
            Err(error) => Err(refused(format!("the arguments are not JSON: {error}")).into()),
        }
    }
}

/// The argument that a pointer leads into. One whose name has a slash is not found, and left out of nothing.
fn top(pointer: &str) -> Option<&str> {
    pointer.split('/').nth(1)
}

struct Calling<'a> {
    servers: &'a Servers,
    entry: &'a Entry,
    tool: &'a str,
}

impl Calling<'_> {
    async fn call(
        &self,
        orchestrator: &Orchestrator,
        given: Given<'_>,
    ) -> Result<CallResult, Failure> {
        let began = Instant::now();
        let asker = AtTerminal::default();
        let (tell, told) = watch::channel(None);
        let what = format!("{}.{}", self.entry.id, self.tool);
        let act = async {
            let words = given.words();
            let arguments = match given {
                Given::Whole(arguments) => arguments,
                // What is typed means nothing without the tool's schema.
                Given::Words(words) => {
                    let tools = orchestrator
                        .tools(&self.entry.id)
                        .await
                        .map_err(|error| self.refused(error))?;
                    match tools.get(self.tool) {
                        Some(tool) => self.typed(tool, words)?,
                        // That it is not there is said below.
                        None => Map::new(),
                    }
                }
            };
            let mut call = Call::new(self.entry.id.as_str(), self.tool, arguments);
            call.timeout = Some(self.entry.timeout().saturating_sub(began.elapsed()).max(LEAST));
            call.asked_by = AskedBy::Person;
            call.asker = Some(Arc::new(asker.clone()));
            call.progress = Some(Arc::new(move |progress| drop(tell.send_replace(Some(progress)))));
            let result = orchestrator.call(call).await;
            match result {
                Err(error @ Error::Arguments { .. }) => {
                    let tools = orchestrator.tools(&self.entry.id).await.ok();
                    let tool = tools.as_ref().and_then(|tools| tools.get(self.tool));
                    let bad: Vec<&str> = match &error {
                        Error::Arguments { problems, .. } => {
                            problems.iter().filter_map(|problem| top(&problem.pointer)).collect()
                        }
                        _ => Vec::new(),
                    };
                    let hint = tool.map(|tool| self.usage(tool, words, &bad));
                    let masks = self.servers.registry.masks().clone();
                    Err(Refused { hint, masks, ..Refused::from(error) }.into())
                }
                // Connecting counts too.
                Err(Error::Timeout { server, what, after }) => {
                    let after = after.max(began.elapsed());
                    Err(self.refused(Error::Timeout { server, what, after }))
                }
                result => result.map_err(|error| self.refused(error)),
            }
        };
        progress::shown(&what, told, asker.line(), act).await
    }

    fn typed(&self, tool: &Tool, words: &[String]) -> Result<Map<String, Value>, Refused> {
        typed::arguments(&tool.input_schema, words).map_err(|errors| {
            let message = format!("the arguments do not fit `{}.{}`", self.entry.id, tool.name);
            let pointers: Vec<String> =
                errors.iter().filter_map(|wrong| wrong.pointer.clone()).collect();
            let bad: Vec<&str> = pointers.iter().filter_map(|pointer| top(pointer)).collect();
            let problems = errors.into_iter().map(Into::into).collect();
            let hint = self.usage(tool, words, &bad);
            Refused::problems(message, problems).hint(hint)
        })
    }

    /// How the tool is called, with what was typed as far as it is good.
    fn usage(&self, tool: &Tool, words: &[String], bad: &[&str]) -> String {
        let good = words.iter().filter_map(|word| {
            let read = typed::arguments(&tool.input_schema, std::slice::from_ref(word)).ok()?;
            let name = read.keys().next()?.clone();
            (!bad.contains(&name.as_str())).then_some((name, word.as_str()))
        });
        let good: Vec<(String, &str)> = good.collect();
        call_to_paste(tool, &self.entry.id, self.servers, &good)
    }

    fn refused(&self, error: Error) -> Failure {
        super::refused(error, self.servers)
    }
}
