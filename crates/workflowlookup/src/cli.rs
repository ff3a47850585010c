//! The command line: one file per command. Exit status 0 is good, 1 is a refusal, a finding or an
//! output that is not valid, 2 is a fault of our own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use service::error::Refusal;
use service::server::Toolset;

mod check;
mod client;
mod code_options;
mod completions;
mod config_file;
mod connect;
mod context;
mod doctor;
mod input;
mod jsonc;
mod list;
mod mcp;
mod new;
mod next;
mod program;
mod run;
mod schema;
mod serve;
mod session;
mod show;
mod source_options;
mod sources;
mod terminal;
mod token;
mod trust;
mod validate;

pub(crate) use source_options::SourceOptions;
use source_options::{ANCHOR_VARIABLE, REGISTRY_VARIABLE, STORE_VARIABLE};
pub(crate) use terminal::Terminal;

/// Hands AI agents a workflow step by step, and checks what they produce.
#[derive(Debug, Parser)]
#[command(name = "workflowlookup", version, arg_required_else_help = true)]
#[command(after_help = "Begin with:
  workflowlookup list
  workflowlookup run investigate-bug
  workflowlookup new my-workflow")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    sources: SourceOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Serve(Box<serve::Arguments>),
    Connect(connect::Arguments),
    Doctor(doctor::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Sources(sources::Arguments),
    Validate(validate::Arguments),
    Next(next::Arguments),
    Check(check::Arguments),
    Session(session::Arguments),
    Token(token::Arguments),
    Trust(trust::Arguments),
    Mcp(mcp::Arguments),
    New(new::Arguments),
    Schema(schema::Arguments),
    Completions(completions::Arguments),
}

const FAILED: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// How a command ended, where nothing went wrong on our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Good,
    /// What was looked at is not good: findings, or an output that is not valid.
    Bad,
}

/// A refusal is the caller's, anything else is ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// Another server said no.
    #[error("{}", .0.message())]
    Upstream(Box<mcp::Refused>),
    #[error(transparent)]
    Fault(#[from] anyhow::Error),
}

impl From<service::failure::Failure> for Failure {
    fn from(failure: service::failure::Failure) -> Self {
        match failure {
            service::failure::Failure::Refusal(refusal) => Self::Refusal(refusal),
            service::failure::Failure::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<mcp::Refused> for Failure {
    fn from(refused: mcp::Refused) -> Self {
        Self::Upstream(Box::new(refused))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Fault(error.into())
    }
}

pub(crate) type Ended = Result<Outcome, Failure>;

impl Cli {
    /// A server is started often and lives long. Where it is asked for without options, or as `connect` writes it, it
    /// does without everything that commands are described and parsed with, which is a good part of what a start costs.
    fn parsed(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        let is_set = |name| std::env::var_os(name).is_some();
        let variables = [STORE_VARIABLE, REGISTRY_VARIABLE, ANCHOR_VARIABLE];
        let has_options = variables.into_iter().any(is_set);
        let options = words.get(1..).unwrap_or_default();
        let tools = match options {
            [word] if word == "serve" => Some(Toolset::All),
            given if given == client::SERVE => Some(Toolset::Sessions),
            _ => None,
        };
        match tools.filter(|_| !has_options) {
            Some(tools) => Ok(Self {
                command: Command::Serve(Box::new(serve::Arguments::with_tools(tools))),
                sources: SourceOptions::default(),
            }),
            None => Self::try_parse_from(words),
        }
    }
}

pub(crate) fn run() -> ExitCode {
    let cli = match Cli::parsed(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Printing fails only where nobody listens any more.
            let _ = error.print();
            let is_answer =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if is_answer { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    let mut terminal = Terminal::new();
    let wants_json = cli.command.wants_json();
    let checked = cli.sources.check(std::env::args_os());
    let ended = match checked {
        Ok(()) => cli.command.run(&cli.sources, &mut terminal),
        Err(refusal) => Err(refusal.into()),
    };
    report(ended, wants_json, &mut terminal)
}

impl Command {
    fn run(self, sources: &SourceOptions, terminal: &mut Terminal) -> Ended {
        match self {
            Self::Serve(arguments) => serve::run(&arguments, sources, terminal),
            Self::Connect(arguments) => connect::run(&arguments, sources, terminal),
            Self::Doctor(arguments) => doctor::run(&arguments, sources, terminal),
            Self::List(arguments) => list::run(&arguments, sources, terminal),
            Self::Show(arguments) => show::run(&arguments, sources, terminal),
            Self::Sources(arguments) => sources::run(&arguments, sources, terminal),
            Self::Validate(arguments) => validate::run(&arguments, terminal),
            Self::Next(arguments) => next::run(&arguments, sources, terminal),
            Self::Check(arguments) => check::run(&arguments, sources, terminal),
            Self::Session(arguments) => session::run(&arguments, sources, terminal),
            Self::Token(arguments) => token::run(&arguments, sources, terminal),
            Self::Trust(arguments) => trust::run(&arguments, sources, terminal),
            Self::Mcp(arguments) => mcp::run(&arguments, sources, terminal),
            Self::Run(arguments) => run::run(&arguments, sources, terminal),
            Self::New(arguments) => new::run(&arguments, terminal),
            Self::Schema(arguments) => schema::run(&arguments, terminal),
            Self::Completions(arguments) => completions::run(&arguments, terminal),
        }
    }

    fn wants_json(&self) -> bool {
        match self {
            Self::Doctor(arguments) => arguments.json,
            Self::List(arguments) => arguments.json,
            Self::Show(arguments) => arguments.json,
            Self::Sources(arguments) => arguments.json,
            Self::Validate(arguments) => arguments.json,
            Self::Next(arguments) => arguments.json,
            Self::Check(arguments) => arguments.json,
            Self::Session(arguments) => arguments.wants_json(),
            Self::Token(arguments) => arguments.wants_json(),
            Self::Trust(arguments) => arguments.json,
            Self::Mcp(arguments) => arguments.wants_json(),
            Self::Serve(_)
            | Self::Connect(_)
            | Self::Run(_)
            | Self::New(_)
            | Self::Schema(_)
            | Self::Completions(_) => false,
        }
    }
}

fn report(ended: Ended, wants_json: bool, terminal: &mut Terminal) -> ExitCode {
    let (code, printed) = match ended {
        Ok(Outcome::Good) => (ExitCode::SUCCESS, terminal.flush()),
        Ok(Outcome::Bad) => (ExitCode::FAILURE, terminal.flush()),
        Err(Failure::Refusal(refusal)) if wants_json => {
            let object = BTreeMap::from([("error", refusal.to_object())]);
            (ExitCode::FAILURE, terminal.json(&object))
        }
        Err(Failure::Refusal(refusal)) => {
            let (message, hint) = (refusal.to_string(), refusal.hint());
            // Where even this cannot be printed, the exit status must do.
            let _ = terminal.complain(FAILED, "error", &message, hint.as_deref());
            (ExitCode::FAILURE, terminal.flush())
        }
        Err(Failure::Upstream(refused)) if wants_json => {
            let object = BTreeMap::from([("error", refused.to_object())]);
            (ExitCode::FAILURE, terminal.json(&object))
        }
        Err(Failure::Upstream(refused)) => {
            let _ = terminal.complain(FAILED, "error", &refused.message(), refused.hint_text());
            (ExitCode::FAILURE, terminal.flush())
        }
        Err(Failure::Fault(fault)) if is_closed(&fault) => return ExitCode::SUCCESS,
        Err(Failure::Fault(fault)) => return report_fault(&fault, terminal),
    };
    match printed.context("the output cannot be written") {
        Err(fault) if !is_closed(&fault) => report_fault(&fault, terminal),
        _ => code,
    }
}

fn report_fault(fault: &anyhow::Error, terminal: &mut Terminal) -> ExitCode {
    let _ = terminal.complain(FAILED, "fault", &format!("{fault:#}"), None);
    ExitCode::from(2)
}

/// The reader has seen enough, as `head` has.
fn is_closed(fault: &anyhow::Error) -> bool {
    let error = fault.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_server_is_the_same_whoever_parses_it() {
        for words in [&["serve"][..], &client::SERVE, &["serve", "--tools", "all"]] {
            let words = [&["workflowlookup"], words].concat();
            let short = Cli::parsed(words.iter().map(OsString::from)).unwrap();
            let long = Cli::try_parse_from(words).unwrap();
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
        }
    }
}
