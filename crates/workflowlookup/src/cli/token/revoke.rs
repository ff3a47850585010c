//! `token revoke NAME`: ends a token before its time.

use clap::Args;

use crate::cli::{Ended, Outcome, Terminal};
use service::audit::{Audit, Line};
use service::auth::TokenList;
use service::sessions::user;

/// End a token: a running server lets it in no more, within a second
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup token revoke build-agent")]
pub(crate) struct Arguments {
    /// The name that it was made with
    name: String,
}

pub(super) fn run(
    arguments: &Arguments,
    file: &TokenList,
    audit: &Audit,
    terminal: &mut Terminal,
) -> Ended {
    file.revoke(&arguments.name)?;
    let (event, principal, name) = ("tokenRevoked", user(), Some(&*arguments.name));
    audit.write(&Line { event, principal: Some(&principal), token: name, ..Line::default() });
    terminal.line(&format!("the token `{}` is revoked", arguments.name))?;
    Ok(Outcome::Good)
}
