//! `token …`: the tokens by which requests over HTTP are let in, one file per verb.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Ended, SourceOptions, Terminal};
use service::app::App;
use service::auth::{TokenList, TokenPlace};
use service::error::Refusal;
use service::sessions::state_folder;

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

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct TokensOption {
    /// Where tokens are kept, as hashes; otherwise in the store, where that is a PostgreSQL, or a file in the platform's
    /// state folder
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
    /// The file that was named; or with the sessions, where processes on several machines share them; or a file of this
    /// user's.
    pub(crate) fn place(&self, app: impl FnOnce() -> App) -> Result<TokenPlace, Refusal> {
        if let Some(path) = &self.tokens {
            return Ok(TokenPlace::File(path.clone()));
        }
        let app = app();
        if app.sessions().are_remote() {
            return Ok(TokenPlace::Store(app));
        }
        let own = own_file().map(TokenPlace::File);
        own.ok_or_else(|| Refusal::Store {
            details: "there is no folder to keep tokens in".to_owned(),
            hint: Some("set HOME, or name a file with `--tokens FILE`".to_owned()),
        })
    }

    /// The file of this user's, where it is there and others are used.
    pub(crate) fn unused(&self, place: Option<&TokenPlace>) -> Option<PathBuf> {
        let is_elsewhere = matches!(place, Some(TokenPlace::Store(_)));
        own_file().filter(|file| is_elsewhere && file.exists())
    }

    /// Whether they are wanted: a file was named, or there are some.
    pub(crate) fn are_wanted(&self, place: TokenPlace) -> Result<bool, Refusal> {
        Ok(self.tokens.is_some() || TokenList::new(place).is_there()?)
    }
}

fn own_file() -> Option<PathBuf> {
    state_folder().map(|folder| folder.join("tokens.json"))
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let audit = sources.audit();
    let file = TokenList::new(arguments.file.place(|| sources.unloaded())?);
    match &arguments.verb {
        Verb::New(arguments) => new::run(arguments, &file, &audit, terminal),
        Verb::List(arguments) => list::run(arguments, &file, terminal),
        Verb::Revoke(arguments) => revoke::run(arguments, &file, &audit, terminal),
    }
}
