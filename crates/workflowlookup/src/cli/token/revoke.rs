//! `token revoke NAME`: ends a token before its time.

use clap::Args;

use crate::auth::TokenFile;
use crate::cli::{Ended, Outcome, Terminal};

/// End a token: a running server lets it in no more, within a second
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup token revoke build-agent")]
pub(crate) struct Arguments {
    /// The name that it was made with
    name: String,
}

pub(super) fn run(arguments: &Arguments, file: &TokenFile, terminal: &mut Terminal) -> Ended {
    file.revoke(&arguments.name)?;
    terminal.line(&format!("the token `{}` is revoked", arguments.name))?;
    Ok(Outcome::Good)
}
