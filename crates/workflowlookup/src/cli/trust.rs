//! `trust`: shows what a folder would run and which workflows it would override, and records a person's consent to that
//! content. A change asks again.

mod review;

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use registry::Places;
use serde::Serialize;
use serde_json::json;

use self::review::{RegistryReview, Review, folder_of};
use super::next::quoted;
use super::terminal::{DIM, GREEN, HEADING, RED};
use super::{Ended, Failure, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::sessions::time_text;
use service::trust::{Consent, TrustError, TrustRecord, digest_of, is_in_workspace};
use service::words::plural;

/// How much is read of an answer.
const ANSWER_BYTES_MAX: u64 = 64;
const QUESTION: &str = "Trust this? [y/N] ";

/// Trust a folder: show what it would run, and consent to that
///
/// Until then its `mcp.registry.json` starts nothing, connects to nothing and reads no variable, and its workflows do not take
/// the place of yours. Consent is for the content that is shown: a change asks again. The same holds for files inside the
/// folder that `--registry`, `--workflows` or the environment name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup trust
  workflowlookup trust ../project --yes
  workflowlookup --registry tools/servers.json trust
  workflowlookup trust --list
  workflowlookup trust --revoke ../project")]
pub(crate) struct Arguments {
    /// The folder; otherwise the current one
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Show what is trusted, in all folders
    #[arg(long, conflicts_with_all = ["folder", "revoke", "yes"])]
    list: bool,
    /// Take consent back, for the folder and everything below it
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A file that is trusted, for a machine.
#[derive(Debug, Serialize)]
struct Trusted<'a> {
    file: &'a str,
    sha256: &'a str,
    time: String,
    state: &'static str,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let record = record()?;
    if arguments.list {
        return list(&record, arguments.json, terminal);
    }
    let folder = arguments.folder.as_deref().unwrap_or(Path::new(""));
    if arguments.revoke {
        return revoke(&record, folder, arguments.json, terminal);
    }
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(Failure::from(Refusal::InvalidParams {
            details: format!("`{}` is not a folder", folder.display()),
            hint: Some("name a folder; a file of servers is named by `--registry FILE`".to_owned()),
        }));
    }
    // What cannot be read must not be taken for nothing.
    record.read().map_err(refused)?;
    let review = Review::of(folder, sources);
    if !arguments.json {
        for problem in &review.problems {
            terminal.complain(RED, "error", problem, None)?;
        }
    }
    let is_open = review.is_open();
    let is_agreed = match (is_open, arguments.yes, arguments.json) {
        (false, ..) => false,
        (_, true, _) => true,
        (_, false, true) => false,
        (true, false, false) => {
            review.print(terminal)?;
            if !io::stdin().is_terminal() || !terminal.is_terminal() {
                return Err(nobody_to_ask(arguments, sources).into());
            }
            terminal.ask(HEADING, QUESTION)?;
            is_yes()?
        }
    };
    if is_agreed {
        record.grant(review.consents().map_err(refused)?).map_err(refused)?;
    }
    let is_done = review.problems.is_empty() && (is_agreed || !is_open);
    let outcome = if is_done { Outcome::Good } else { Outcome::Bad };
    if arguments.json {
        terminal.json(&review.as_json(is_agreed))?;
    } else if is_agreed {
        if arguments.yes {
            review.print(terminal)?;
        }
        terminal.styled(GREEN, "trusted, until it changes")?;
    } else if is_open {
        terminal.styled(DIM, "nothing was trusted")?;
    } else {
        review.print(terminal)?;
        let message = match review.problems.is_empty() {
            true => "nothing here waits for your trust",
            false => "nothing was trusted",
        };
        terminal.styled(DIM, message)?;
    }
    Ok(outcome)
}

fn nobody_to_ask(arguments: &Arguments, sources: &SourceOptions) -> Refusal {
    let folder = arguments.folder.iter().map(|folder| folder.display().to_string());
    let words = sources.words().into_iter().chain(["trust".to_owned()]).chain(folder);
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    Refusal::InvalidParams {
        details: "nothing was trusted: there is nobody to ask without a terminal".to_owned(),
        hint: Some(format!(
            "look at what it would run; if you agree: `workflowlookup {} --yes`",
            words.join(" ")
        )),
    }
}

fn record() -> Result<TrustRecord, Refusal> {
    let record = TrustRecord::in_state_folder().ok_or_else(|| Refusal::InvalidParams {
        details: "there is no folder to record trust in".to_owned(),
        hint: Some("set HOME".to_owned()),
    })?;
    if is_in_workspace(record.path()) {
        return Err(Refusal::InvalidParams {
            details: format!(
                "the record of trust `{}` lies inside the workspace and is ignored",
                record.path().display()
            ),
            hint: Some("set XDG_STATE_HOME or HOME to a folder outside".to_owned()),
        });
    }
    Ok(record)
}

fn refused(error: TrustError) -> Failure {
    Refusal::Store { details: error.to_string(), hint: None }.into()
}

fn is_yes() -> io::Result<bool> {
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    Ok(matches!(&*answer.trim().to_lowercase(), "y" | "yes"))
}

/// Asks a person at the terminal to trust the registry that a command needs. Standard output is left to the command.
pub(super) fn ask_for_registry(places: &Places) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    // A file that cannot be reviewed is not asked about: the command itself says what is wrong with it.
    let reviews = review::registries(places).into_iter().flatten();
    let registries: Vec<RegistryReview> = reviews.filter(RegistryReview::is_open).collect();
    let mut terminal = Terminal::new();
    for line in registries.iter().flat_map(RegistryReview::lines) {
        terminal.aside(&line)?;
    }
    terminal.aside(QUESTION.trim_end())?;
    if is_yes()? {
        let consents = registries.iter().map(RegistryReview::consent);
        let consents = consents.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        record()?.grant(consents).map_err(refused)?;
    }
    Ok(())
}

/// Records consent to what a person wrote through a command of ours.
pub(super) fn grant_registry(path: &Path, text: &str) -> Result<(), Failure> {
    let consent = Consent::to_registry(path, text).map_err(refused)?;
    record()?.grant([consent]).map_err(refused)
}

fn list(record: &TrustRecord, wants_json: bool, terminal: &mut Terminal) -> Ended {
    let consents = record.read().map_err(refused)?;
    let trusted: Vec<Trusted<'_>> = consents.iter().map(Trusted::of).collect();
    if wants_json {
        terminal.json(&json!({"trusted": trusted}))?;
        return Ok(Outcome::Good);
    }
    if trusted.is_empty() {
        terminal.styled(DIM, "nothing is trusted")?;
        return Ok(Outcome::Good);
    }
    let rows = trusted.iter().map(|one| {
        vec![one.state.to_owned(), one.time.clone(), one.sha256[..12].to_owned(), one.file.into()]
    });
    terminal.table(&["STATE", "SINCE", "SHA-256", "FILE"], &rows.collect::<Vec<_>>())?;
    Ok(Outcome::Good)
}

impl<'a> Trusted<'a> {
    fn of(consent: &'a Consent) -> Self {
        let state = match review::content(Path::new(&consent.file)) {
            None => "gone",
            Some(content) if digest_of(&content) == consent.sha256 => "trusted",
            Some(_) => "changed",
        };
        let Consent { file, sha256, time, .. } = consent;
        Self { file, sha256, time: time_text(*time), state }
    }
}

fn revoke(record: &TrustRecord, folder: &Path, wants_json: bool, terminal: &mut Terminal) -> Ended {
    let folder = folder_of(folder)?;
    let revoked = record.revoke(|file| file.starts_with(&folder)).map_err(refused)?;
    if wants_json {
        terminal.json(&json!({"revoked": revoked}))?;
        return Ok(Outcome::Good);
    }
    for file in &revoked {
        terminal.line(file)?;
    }
    let message = match revoked.len() {
        0 => format!("nothing in `{}` is trusted", folder.display()),
        count => format!("{} not trusted any more", plural(count, "file")),
    };
    terminal.styled(DIM, &message)?;
    Ok(Outcome::Good)
}
