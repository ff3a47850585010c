//! `token new NAME`: makes a token and shows it, which nobody can do again.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::cli::terminal::DIM;
use crate::cli::{Ended, Outcome, Terminal};
use service::access::Right;
use service::audit::{Audit, Line};
use service::auth::TokenList;
use service::sessions::{now, time_text, user};

/// Make a token, and show it once
///
/// The token is all that is printed on standard output. Only a hash of it is kept. A running server lets it in
/// within a second.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup token new build-agent
  workflowlookup token new anna --right approve
  workflowlookup token new build-agent --expires 1year > build-agent.token")]
pub(crate) struct Arguments {
    /// Whose it is: letters, digits, `.`, `_`, `-` and `@`. It stands in the log for who made a request
    name: String,
    /// What it is good for, and nothing else
    #[arg(long, value_enum, default_value_t)]
    right: Right,
    /// How long it is good for: `12h`, `90d`, `1year`, or `never` for a token that does not expire
    #[arg(long, value_name = "DURATION", default_value = "90d")]
    expires: Lifetime,
}

#[derive(Debug, Clone, Copy)]
enum Lifetime {
    Limited(Duration),
    Unlimited,
}

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Unlimited);
        }
        match humantime::parse_duration(text) {
            Ok(time) if time.is_zero() => Err("such a token would be of no use".to_owned()),
            Ok(time) => Ok(Self::Limited(time)),
            Err(error) => Err(format!("neither `never` nor a duration: {error}")),
        }
    }
}

pub(super) fn run(
    arguments: &Arguments,
    file: &TokenList,
    audit: &Audit,
    terminal: &mut Terminal,
) -> Ended {
    let made = now();
    let until = match arguments.expires {
        Lifetime::Unlimited => None,
        Lifetime::Limited(time) => {
            Some(made.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        }
    };
    let (token, record) = file.make(&arguments.name, arguments.right, made, until)?;
    let (principal, token_right) = (user(), Some(record.right));
    let (principal, name) = (Some(&*principal), Some(&*record.name));
    let event = "tokenMade";
    audit.write(&Line { event, principal, token: name, token_right, ..Line::default() });
    terminal.line(&token)?;
    let how_long = match until {
        Some(until) => format!("is good until {}", time_text(until)),
        None => "never expires".to_owned(),
    };
    let message = format!("the token `{}` {how_long}, and is not shown again", record.name);
    let hint =
        "keep it like a password, and send it with each request: `Authorization: Bearer TOKEN`";
    terminal.complain(DIM, "note", &message, Some(hint))?;
    Ok(Outcome::Good)
}
