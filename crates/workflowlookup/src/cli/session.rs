//! `session …`: the sessions of this user, one file per verb. They need no catalogue: each has its definition with
//! it. A command that only looks makes no file where there is none.

use std::sync::Arc;

use clap::{Args, Subcommand};

use super::terminal::YELLOW;
use super::{Ended, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::sessions::Open;

mod approve;
mod backup;
mod export;
mod find;
mod import;
mod list;
mod prune;
mod reject;
mod ruling;
mod share;
mod show;
mod story;
mod verify;

pub(crate) use find::whole_id;
pub(crate) use ruling::print_submission;

/// Look at sessions, decide what waits for a person, move them and check them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session list --status waiting
  workflowlookup session show 7k2m
  workflowlookup session approve 7k2m --reason 'the plan is sound'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::Arguments),
    Show(show::Arguments),
    Approve(approve::Arguments),
    Reject(reject::Arguments),
    Share(share::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Verify(verify::Arguments),
    Backup(backup::Arguments),
    Prune(prune::Arguments),
}

impl Arguments {
    pub(crate) fn wants_json(&self) -> bool {
        match &self.verb {
            Verb::List(arguments) => arguments.json,
            Verb::Show(arguments) => arguments.json,
            Verb::Verify(arguments) => arguments.json,
            Verb::Approve(_)
            | Verb::Reject(_)
            | Verb::Share(_)
            | Verb::Export(_)
            | Verb::Import(_)
            | Verb::Backup(_)
            | Verb::Prune(_) => false,
        }
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    match &arguments.verb {
        Verb::List(arguments) => list::run(arguments, sources, terminal),
        Verb::Show(arguments) => show::run(arguments, sources, terminal),
        Verb::Approve(arguments) => approve::run(arguments, sources, terminal),
        Verb::Reject(arguments) => reject::run(arguments, sources, terminal),
        Verb::Share(arguments) => share::run(arguments, sources, terminal),
        Verb::Export(arguments) => export::run(arguments, sources, terminal),
        Verb::Import(arguments) => import::run(arguments, sources, terminal),
        Verb::Verify(arguments) => verify::run(arguments, sources, terminal),
        Verb::Backup(arguments) => backup::run(arguments, sources, terminal),
        Verb::Prune(arguments) => prune::run(arguments, sources, terminal),
    }
}

/// The sessions, if there is a file of them.
fn open_if_any(sources: &SourceOptions) -> Result<Option<Arc<Open>>, Refusal> {
    sources.unloaded().sessions().get_if_any()
}

/// The end of a command that has found nothing to look at, which is no fault.
fn say_none(terminal: &mut Terminal) -> Ended {
    let hint = "connect an agent by `workflowlookup connect CLIENT`, and have it begin one with `workflow_start`";
    terminal.complain(YELLOW, "warning", "there are no sessions", Some(hint))?;
    Ok(Outcome::Good)
}
