//! `completions SHELL`: a script that completes commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Ended, Outcome, Terminal};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup completions bash > ~/.local/share/bash-completion/completions/workflowlookup")]
pub(crate) struct Arguments {
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "workflowlookup", &mut script);
    terminal.text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Good)
}
