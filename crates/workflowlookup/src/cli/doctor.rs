//! `doctor`: is everything where it should be, and does the server answer? Each part looks at one thing
//! and returns checks; here they are only put in order and printed. Nothing is changed.

mod clients;
mod confinement;
mod executable;
mod handshake;
mod logins;
mod permissions;
mod registry;
mod sessions;
mod sources;

use std::io;

use clap::Args;
use serde::Serialize;

use super::terminal::{DIM, GREEN, RED, YELLOW};
use super::{Ended, Outcome, SourceOptions, Terminal};
use service::words::plural;

/// Check sources, sessions, the registry, the server and the clients' configurations
///
/// The exit status is 0 where there is no problem, 1 where there is one, and 2 where we failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup doctor
  workflowlookup --workflows ../team/workflows doctor --json")]
pub(crate) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    /// What it is about.
    check: &'static str,
    level: Level,
    message: String,
    /// What to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    problems: usize,
    warnings: usize,
    checks: &'a [Check],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Good to know.
    Note,
    /// It works, and yet.
    Warning,
    /// Something that was asked for does not work.
    Problem,
}

impl Check {
    fn new(check: &'static str, level: Level, message: impl Into<String>) -> Self {
        Self { check, level, message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    options: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let app = options.load();
    let snapshot = app.snapshot();
    let parts: [&dyn Fn() -> Vec<Check>; 9] = [
        &executable::look,
        &|| sources::look(&snapshot),
        &|| permissions::look(&snapshot),
        &|| sessions::look(&app),
        &|| registry::look(&options.registry()),
        &|| logins::look(&options.registry()),
        &confinement::look,
        &|| handshake::look(options),
        &clients::look,
    ];
    let mut checks = Vec::new();
    for part in parts {
        let found = part();
        if !arguments.json {
            print(&found, terminal)?;
        }
        checks.extend(found);
    }
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    if arguments.json {
        terminal.json(&Report { problems, warnings, checks: &checks })?;
    } else {
        let style = match (problems, warnings) {
            (0, 0) => GREEN,
            (0, _) => YELLOW,
            _ => RED,
        };
        let counts = format!("{}, {}", plural(problems, "problem"), plural(warnings, "warning"));
        terminal.styled(style, &counts)?;
    }
    Ok(if problems == 0 { Outcome::Good } else { Outcome::Bad })
}

fn print(checks: &[Check], terminal: &mut Terminal) -> io::Result<()> {
    for check in checks {
        let (style, label) = match check.level {
            Level::Ok => (GREEN, "ok"),
            Level::Note => (DIM, "note"),
            Level::Warning => (YELLOW, "warning"),
            Level::Problem => (RED, "problem"),
        };
        terminal.labelled(style, label, &check.message)?;
        if let Some(hint) = &check.hint {
            terminal.line(&format!("  try: {hint}"))?;
        }
    }
    // The next part may take a while.
    terminal.flush()
}
