//! `mcp exec`: an agent's program, by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use code_mode::{Listener, Tools};
use mcp::Caller;
use orchestrator::{AskedBy, Error, Orchestrator, Party, Progress};
use sandbox::{FILES_MAX, File, Kind, Program, Sandbox, names_meant};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Context;
use super::call::asking::AtTerminal;
use super::call::progress::{self, Line};
use super::refused::Refused;
use super::running;
use super::servers::Servers;
use crate::cli::code_options::CodeOptions;
use crate::cli::mcp::ad_hoc::AdHoc;
use crate::cli::terminal::sanitize;
use crate::cli::{Ended, FAILED, Failure, Outcome, Terminal, input};
use service::access::Who;
use service::server::upstreams::Upstreams;
use service::server::upstreams::code::{OWN, written};

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The largest input.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Run a program that calls tools of other servers
///
/// TypeScript or JavaScript, in the sandbox in which programs of agents run. `import * as github from "mcp-clients/github"` has a
/// function for each tool of a server that is named by --allow, `import * as workflows from "workflowlookup"` the workflow
/// tools that only look. The value of `main` is printed as JSON, and what it writes to its console on standard error. The exit
/// status is 1 where the program fails, and 2 where we fail.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp exec sums.ts --allow everything
  workflowlookup mcp exec report.ts --allow github --allow mail --input '{\"since\": \"2026-01-01\"}'
  echo 'export const main = () => 6 * 7' | workflowlookup mcp exec -
  workflowlookup mcp exec sums.ts --check")]
pub(crate) struct Arguments {
    /// The program, or `-` to read it from standard input; files that it imports are read from its folder
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A server that it may import; can be given more than once, or as a list with commas
    #[arg(long = "allow", value_name = "ID", value_delimiter = ',')]
    allowed: Vec<String>,
    /// What `main` is called with, or `-` to read it from standard input
    #[arg(long, value_name = "JSON|-")]
    input: Option<String>,
    /// Only read it and take the types out: says what is wrong with it, and runs nothing
    #[arg(long)]
    check: bool,
    /// Print the result, the console's lines, the calls and the error as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    code: CodeOptions,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let program = arguments.program()?;
    if arguments.check {
        return check(&program, arguments.json, terminal);
    }
    let mut servers = Servers::open(&AdHoc::default(), None, context.sources)?;
    for id in &arguments.allowed {
        servers.ask_for_trust(id)?;
        if servers.registry.get(id).is_none() {
            return Err(super::refused(Error::no_server(id, &servers.registry), &servers));
        }
    }
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let outcome = arguments.run(program, orchestrator, context).await;
        let is_good = outcome.error.is_none();
        if arguments.json {
            terminal.verbatim(&written(&outcome))?;
            terminal.line("")?;
        } else if let Some(failure) = &outcome.error {
            complain(failure, terminal)?;
        } else if let Some(result) = &outcome.result {
            terminal.json(result)?;
        }
        terminal.flush()?;
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

fn check(program: &Program, is_json: bool, terminal: &mut Terminal) -> Ended {
    let read = sandbox::read(program).and_then(|missing| match missing.first() {
        None => Ok(()),
        Some(path) => {
            let message = format!("`./{path}` is no file beside `{}`", program.entrypoint);
            Err(sandbox::Failure::new(Kind::Import, message))
        }
    });
    if is_json {
        terminal.json(&json!({"error": read.as_ref().err()}))?;
        return Ok(if read.is_ok() { Outcome::Good } else { Outcome::Bad });
    }
    match read {
        Ok(()) => {
            let names: Vec<&str> = program.files.iter().map(|file| file.name.as_str()).collect();
            terminal
                .line(&format!("{}: nothing is wrong with how it is written", names.join(", ")))?;
            Ok(Outcome::Good)
        }
        Err(failure) => {
            complain(&failure, terminal)?;
            Ok(Outcome::Bad)
        }
    }
}

fn complain(failure: &sandbox::Failure, terminal: &mut Terminal) -> std::io::Result<()> {
    let place = failure.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    let message = format!("{place}{} ({})", failure.message, failure.kind.name());
    let is_not_allowed = failure.message.contains("is not in allowedMcpIds");
    let hint = is_not_allowed.then_some("`--allow ID` lets it use a server");
    terminal.complain(FAILED, "error", &message.replace("allowedMcpIds", "--allow"), hint)
}

impl Arguments {
    async fn run(
        &self,
        program: Program,
        orchestrator: &Orchestrator,
        context: &Context<'_>,
    ) -> sandbox::Outcome {
        let code = self.code.code(Sandbox::new);
        // Workflows are loaded for who uses them.
        let names_us = |file: &File| file.text.contains(OWN);
        let app = match program.files.iter().any(names_us) {
            true => context.sources.load(),
            false => context.sources.unloaded(),
        };
        let own = Upstreams::new(context.sources.registry(), None, code.clone());
        let own = own.own_tools(&app, &Caller::default(), &Who::Local(None));
        let asker = AtTerminal::default();
        let line = Arc::clone(asker.line());
        let (tell, told) = watch::channel(None);
        let tools = Tools {
            orchestrator: orchestrator.clone(),
            allowed: self.allowed.clone(),
            asked_by: AskedBy::Person,
            party: Party::alone(),
            asker: Some(Arc::new(asker.clone())),
            own: Some(own),
            renamed: None,
            listener: Some(Arc::new(AtWork { tell, line: (!self.json).then_some(line) })),
        };
        let running =
            code.sandbox.run(program, code.limits, Arc::new(tools), CancellationToken::new());
        let name = self.file.display().to_string();
        progress::shown(&name, told, asker.line(), running).await
    }

    /// The file, and those of its folder that it imports.
    fn program(&self) -> Result<Program, Failure> {
        let is_stdin = self.file == Path::new("-");
        if is_stdin && self.input.as_deref() == Some("-") {
            let hint = "give one of them by a file, or the input as it is";
            return Err(Refused::invalid("both the program and its input are `-`", hint).into());
        }
        let input = self.read_input()?;
        let text = input::read(&self.file, "program", FILE_BYTES_MAX)?;
        if is_stdin {
            return Ok(Program { input, ..Program::of(text) });
        }
        let name = self.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let mut program = Program {
            files: vec![file(name.to_owned(), text)],
            entrypoint: name.to_owned(),
            input,
        };
        // What is wrong with it is said by who runs it.
        while let Ok(missing) = sandbox::read(&program) {
            let found: Vec<File> = missing
                .iter()
                .filter_map(|path| beside(folder, path).transpose())
                .collect::<Result<_, _>>()?;
            if found.is_empty() || program.files.len() + found.len() > FILES_MAX {
                break;
            }
            program.files.extend(found);
        }
        Ok(program)
    }

    fn read_input(&self) -> Result<Option<Box<RawValue>>, Failure> {
        let text = match self.input.as_deref() {
            None => return Ok(None),
            Some("-") => input::read(Path::new("-"), "input", INPUT_BYTES_MAX)?,
            Some(text) => text.to_owned(),
        };
        let input = serde_json::from_str(&text).map_err(|error| {
            let hint = "a text is written in quotes: `--input '\"text\"'`";
            Refused::invalid(format!("the input is not JSON: {error}"), hint)
        })?;
        Ok(Some(input))
    }
}

/// Shows how far it is, and what it writes.
struct AtWork {
    tell: watch::Sender<Option<Progress>>,
    line: Option<Arc<Line>>,
}

impl Listener for AtWork {
    fn progress(&self, begun: usize, over: usize) {
        let count = |number| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let (done, total) = (count(over), Some(count(begun)));
        self.tell.send_replace(Some(Progress { done, total, message: Some("calls".to_owned()) }));
    }

    fn line(&self, text: &str) {
        if let Some(line) = &self.line {
            line.write(&sanitize(text));
        }
    }
}

/// The file that an import without its ending means.
fn beside(folder: &Path, path: &str) -> Result<Option<File>, Failure> {
    let name = names_meant(path).find(|name| folder.join(name).is_file());
    let Some(name) = name else { return Ok(None) };
    let text =
        input::read_file(&folder.join(&name), "file", FILE_BYTES_MAX, "see that it can be read")?;
    Ok(Some(file(name, text)))
}

fn file(name: String, text: String) -> File {
    let is_plain = name.ends_with(".js") || name.ends_with(".mjs");
    File { name, text, is_plain }
}
