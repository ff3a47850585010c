//! `session show ID`: a session for people, for a review, or for a program.

use clap::Args;

use super::find::SessionId;
use super::story::Story;
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};

mod chapters;
mod json;
mod markdown;
mod marks;
mod text;

/// Show a session: where it stands, what waits for a person, and all that happened
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session show 7k2m
  workflowlookup session show 7k2m --markdown > review.md
  workflowlookup session show 7k2m --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a report in Markdown, with every output, to attach to a review
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let story = Story::read(&arguments.session.find(sources)?)?;
    if arguments.json {
        terminal.json(&json::Document::of(&story))?;
    } else if arguments.markdown {
        terminal.text(&markdown::report(&story))?;
    } else {
        text::print(&story, terminal)?;
    }
    Ok(Outcome::Good)
}
