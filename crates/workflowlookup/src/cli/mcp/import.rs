//! `mcp import`: the servers that clients know, listed, and merged into the registry with `--write`. What becomes of each
//! is decided in `plan`. Files of clients are only read, and no secret is ever shown.

mod plan;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use registry::clients::{self, Client, Found, Scope};
use registry::place::Kind;
use registry::{Draft, Finding, NotAdded, Places, Registry, Severity, Trust, add};
use serde::Serialize;

use self::plan::{Conflicts, Planned, Reach, Status, plan, wanted};
use crate::cli::config_file::{self, Readers};
use crate::cli::terminal::{DIM, GREEN, RED, YELLOW};
use crate::cli::{Ended, Failure, Outcome, SourceOptions, Terminal, client, trust};
use service::error::Refusal;
use service::words::plural;

/// Show the MCP servers that your clients know, and bring them into the registry
///
/// Looks into the files of Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Codex and Zed, the project's and yours.
/// With `--write`, new ones are added to the file of `--registry`, or to `mcp.registry.json` in the current folder where that
/// is there, or to the one in your configuration folder, which gets no project's unless `--from` says so. Variables stay
/// variables.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp import
  workflowlookup mcp import --write
  workflowlookup mcp import --from cursor --from ../team/.mcp.json --write
  workflowlookup --registry mcp.registry.json mcp import --write --replace")]
pub(crate) struct Arguments {
    /// Look only here: the name of a client, or a file; may be given several times
    #[arg(long, value_name = "CLIENT|FILE")]
    from: Vec<String>,
    /// Add what is new to the registry, and keep the old file as a backup
    #[arg(long)]
    write: bool,
    /// With --write: where the registry has another server by the same id, take the client's
    #[arg(long, requires = "write")]
    replace: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    registry: &'a Path,
    written: Vec<&'a str>,
    backup: Option<&'a Path>,
    servers: Vec<Line<'a>>,
    findings: Vec<&'a Finding>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    status: Status,
    client: Option<&'static str>,
    file: &'a Path,
    transport: Option<&'static str>,
    reached: String,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let places = sources.registry();
    let (kind, target) = target(&places)?;
    let registry = Registry::load(&places);
    let found = look(&arguments.from, &places)?;
    let reach = match kind {
        Kind::User if arguments.from.is_empty() => Reach::Everywhere,
        Kind::User | Kind::Named | Kind::Project => Reach::Chosen,
    };
    let planned = plan(&found, &registry, reach);
    let conflicts = if arguments.replace { Conflicts::Replace } else { Conflicts::Keep };
    let wanted = wanted(&planned, &registry, conflicts);
    let backup = match arguments.write && !wanted.is_empty() {
        true => write(kind, &target, &wanted, &places)?,
        false => None,
    };
    if arguments.json {
        let written = if arguments.write { wanted.as_slice() } else { &[] };
        terminal.json(&Report {
            registry: &target,
            written: written.iter().map(|draft| draft.id.as_str()).collect(),
            backup: backup.as_deref(),
            servers: planned.iter().map(Line::of).collect(),
            findings: found.iter().flat_map(|found| &found.reading.findings).collect(),
        })?;
        return Ok(Outcome::Good);
    }
    list(&found, &planned, terminal)?;
    conclude(arguments, &places, &target, &planned, &wanted, backup.as_deref(), terminal)?;
    Ok(Outcome::Good)
}

/// The file that is written: the one that was named, or the project's where it is there, or the user's.
fn target(places: &Places) -> Result<(Kind, PathBuf), Refusal> {
    let files = places.files();
    let is_it = |(kind, path): &&(Kind, PathBuf)| *kind != Kind::Project || path.exists();
    let file = files.iter().find(is_it).or(files.first());
    file.cloned().ok_or_else(|| Refusal::InvalidParams {
        details: "there is no folder for a registry".to_owned(),
        hint: Some("set HOME, or name a file with `--registry FILE`".to_owned()),
    })
}

fn look(from: &[String], places: &Places) -> Result<Vec<Found>, Refusal> {
    let (folders, variables) = (client::folders(), &places.variables);
    // A project's file is named as one would type it.
    let project = Path::new("");
    if from.is_empty() {
        return Ok(clients::found(folders.as_ref(), project, variables));
    }
    let mut found = Vec::new();
    for word in from {
        match Client::by_word(word) {
            Some(client) => found.extend(client.found(folders.as_ref(), project, variables)),
            None => {
                let file = clients::named(Path::new(word), variables);
                found.push(file.ok_or_else(|| no_such(word))?);
            }
        }
    }
    Ok(found)
}

fn no_such(word: &str) -> Refusal {
    let words: Vec<String> =
        Client::ALL.iter().map(|client| format!("`{}`", client.word())).collect();
    Refusal::InvalidParams {
        details: format!("`{word}` is neither a client nor a file"),
        hint: Some(format!("name a file that is there, or one of {}", words.join(", "))),
    }
}

/// Merges servers into the registry, and says where the old one is kept.
fn write(
    kind: Kind,
    target: &Path,
    wanted: &[Draft],
    places: &Places,
) -> Result<Option<PathBuf>, Failure> {
    let shown = target.display();
    let not_touched = |details: String, hint: &str| {
        Failure::from(Refusal::InvalidParams { details, hint: Some(hint.to_owned()) })
    };
    let old = config_file::read(target).map_err(|why| {
        not_touched(
            format!("`{shown}` {why}; it was not touched"),
            "name another with `--registry`",
        )
    })?;
    let drafts: Vec<&Draft> = wanted.iter().collect();
    let new = add(old.as_deref().unwrap_or_default(), &drafts).map_err(|why| match why {
        NotAdded::Syntax { line, column, message } => not_touched(
            format!("`{shown}:{line}:{column}`: {message}; the file was not touched"),
            "repair it, or name another with `--registry`",
        ),
        NotAdded::NoList => not_touched(
            format!("`{shown}` is a client's file, and no list of servers; it was not touched"),
            "name a registry of its own with `--registry`",
        ),
        NotAdded::Wrong => Failure::Fault(anyhow::Error::new(why)),
    })?;
    let trusts = |text: &str| match &places.trust {
        Some(policy) => policy.trust(kind, target, text) == Trust::Given,
        None => false,
    };
    // What somebody else wrote does not become trusted by what is added to it.
    let was_trusted = old.as_deref().is_none_or(trusts);
    let backup = config_file::replace(target, old.as_deref(), &new, Readers::Owner)?;
    if was_trusted && !trusts(&new) {
        trust::grant_registry(target, &new)?;
    }
    Ok(backup)
}

fn list(found: &[Found], planned: &[Planned<'_>], terminal: &mut Terminal) -> io::Result<()> {
    let rows: Vec<Vec<String>> = planned.iter().map(row).collect();
    if !rows.is_empty() {
        terminal.table(&["ID", "STATUS", "FROM", "REACHED BY"], &rows)?;
    }
    for finding in found.iter().flat_map(|found| &found.reading.findings) {
        let style = match finding.severity {
            Severity::Error => RED,
            Severity::Warning => YELLOW,
            Severity::Note => DIM,
        };
        let shown = finding.to_string();
        let (first, rest) = shown.split_once('\n').unwrap_or((&shown, ""));
        terminal.styled(style, first)?;
        terminal.line(rest)?;
    }
    Ok(())
}

fn row(planned: &Planned<'_>) -> Vec<String> {
    let Planned { found, draft, status } = planned;
    let file = found.path.display().to_string();
    let from = match found.client {
        Some(client) => match found.scope {
            Scope::Project => format!("{}, {file}", client.traits().name),
            Scope::User => client.traits().name.to_owned(),
        },
        None => file,
    };
    vec![draft.id.clone(), status.words().to_owned(), from, draft.shown()]
}

impl<'a> Line<'a> {
    fn of(planned: &'a Planned<'_>) -> Self {
        let Planned { found, draft, status } = planned;
        Self {
            id: &draft.id,
            name: draft.name.as_deref(),
            status: *status,
            client: found.client.map(Client::word),
            file: &found.path,
            transport: draft.transport(),
            reached: draft.shown(),
        }
    }
}

/// What was done, or what to do next.
fn conclude(
    arguments: &Arguments,
    places: &Places,
    target: &Path,
    planned: &[Planned<'_>],
    wanted: &[Draft],
    backup: Option<&Path>,
    terminal: &mut Terminal,
) -> io::Result<()> {
    let shown = target.display();
    let servers = plural(wanted.len(), "server");
    let conflicts = planned.iter().filter(|planned| planned.status == Status::Conflict).count();
    if planned.is_empty() {
        let hint =
            "name a file with `--from FILE`, or write a registry by hand: see docs/registry.md";
        return terminal.complain(YELLOW, "warning", "no client has any servers", Some(hint));
    }
    if arguments.write && !wanted.is_empty() {
        let kept = backup.map(|path| format!("; the old file is `{}`", path.display()));
        let message = format!("{servers} into `{shown}`{}", kept.unwrap_or_default());
        terminal.complain(GREEN, "imported", &message, None)?;
        let secret: Vec<&str> = wanted
            .iter()
            .filter(|draft| draft.has_secret())
            .map(|draft| draft.id.as_str())
            .collect();
        if !secret.is_empty() {
            let message = format!("there are secrets in the entries of {}", secret.join(", "));
            let hint = "before you share the file, put them into variables: `${NAME}`";
            terminal.complain(YELLOW, "note", &message, Some(hint))?;
        }
        let registry = Registry::load(places);
        if let Some((file, _)) = registry.untrusted().next() {
            let message = format!("`{shown}` is not trusted: its servers take no effect");
            let hint = format!("`{}` shows what they would run, and asks", file.trust_command());
            terminal.complain(YELLOW, "note", &message, Some(&hint))?;
        }
    } else if arguments.write {
        terminal.complain(GREEN, "nothing to do", "there is nothing new", None)?;
    } else if !wanted.is_empty() {
        let message = format!("`--write` adds {servers} to `{shown}`");
        terminal.complain(DIM, "next", &message, None)?;
    }
    let of_project = planned.iter().filter(|planned| planned.status == Status::Project).count();
    if of_project > 0 {
        let message = format!(
            "{} of this project alone: `{shown}` is for all projects",
            plural(of_project, "server")
        );
        let hint = "`--registry mcp.registry.json` makes a registry of this project's; `--from FILE` brings them in here";
        terminal.complain(YELLOW, "note", &message, Some(hint))?;
    }
    if conflicts > 0 && !arguments.replace {
        let message =
            format!("{} by an id that the registry has for another", plural(conflicts, "server"));
        terminal.complain(
            YELLOW,
            "note",
            &message,
            Some("`--write --replace` takes the clients'"),
        )?;
    }
    Ok(())
}
