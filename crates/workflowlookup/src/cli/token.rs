//! `token …`: the tokens by which requests over HTTP are let in, one file per verb.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Ended, SourceOptions, Terminal};
use crate::auth::TokenFile;
use crate::error::Refusal;
use crate::sessions::state_folder;

mod list;
mod new;
mod revoke;

/// Make, list and revoke the tokens that let agents and people in over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup token new build-agent --expires 30d
  workflowlookup token new anna --right approve
  workflowlookup token list
  workflowlookup token revoke build-agent")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    file: TokensOption,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TokensOption {
    /// Where tokens are kept, as hashes; otherwise a file in the platform's state folder
    #[arg(long, value_name = "FILE", global = true)]
    tokens: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    New(new::Arguments),
    List(list::Arguments),
    Revoke(revoke::Arguments),
}

impl Arguments {
    pub(crate) fn wants_json(&self) -> bool {
        match &self.verb {
            Verb::List(arguments) => arguments.json,
            Verb::New(_) | Verb::Revoke(_) => false,
        }
    }
}

impl TokensOption {
    /// Whether tokens are wanted: a file was named, or there is one.
    pub(crate) fn are_wanted(&self) -> bool {
        self.tokens.is_some() || self.path().is_ok_and(|path| path.exists())
    }

    /// The file that was named, or the one of this user.
    pub(crate) fn path(&self) -> Result<PathBuf, Refusal> {
        let own = || state_folder().map(|folder| folder.join("tokens.json"));
        self.tokens.clone().or_else(own).ok_or_else(|| Refusal::Store {
            details: "there is no folder to keep tokens in".to_owned(),
            hint: Some("set HOME, or name a file with `--tokens FILE`".to_owned()),
        })
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let audit = sources.audit();
    let file = TokenFile::new(arguments.file.path()?);
    match &arguments.verb {
        Verb::New(arguments) => new::run(arguments, &file, &audit, terminal),
        Verb::List(arguments) => list::run(arguments, &file, terminal),
        Verb::Revoke(arguments) => revoke::run(arguments, &file, &audit, terminal),
    }
}
