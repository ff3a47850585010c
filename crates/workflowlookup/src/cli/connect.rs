//! `connect CLIENT`: the configuration by which a client starts us. It is printed, or merged into the
//! project's file. What goes into a file is decided in `merge`, how it gets there in `config_file`.

mod merge;

use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;

use self::merge::{Merged, merge};
use super::client::{self, Client, Format, SERVE, Server, connecting};
use super::config_file::Readers;
use super::next::quoted;
use super::terminal::{DIM, GREEN, YELLOW, escape};
use super::{Ended, Failure, Outcome, SourceOptions, Terminal, config_file, program};
use service::error::Refusal;

/// How long the name of a server may be; clients put it in front of every tool's name.
const NAME_MAX: usize = 64;

/// Print the configuration by which an agent's client starts the server, or write it
///
/// The configuration goes to standard output, and where to put it to standard error. `--workflows`,
/// `--no-bundled` and `--registry` become part of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup connect claude-code
  workflowlookup connect vscode --write
  workflowlookup --workflows ../team/workflows connect codex >> ~/.codex/config.toml")]
pub(crate) struct Arguments {
    /// The client
    #[arg(value_parser = client::parser())]
    client: Client,
    /// Merge it into the project's file in the current folder, and keep the old file as a backup:
    /// `.mcp.json` (Claude Code), `.cursor/mcp.json` or `.vscode/mcp.json`
    #[arg(long)]
    write: bool,
    /// What the client calls the server
    #[arg(long, default_value = program::NAME)]
    name: String,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let Arguments { client, write, name } = arguments;
    if !is_name(name) {
        let details = format!("`{name}` cannot be the name of a server");
        let hint = format!("use at most {NAME_MAX} letters, digits, `-` and `_`");
        return Err(Refusal::InvalidParams { details, hint: Some(hint) }.into());
    }
    let server = server(*client, name, sources)?;
    for folder in sources.folders().iter().filter(|folder| !folder.is_dir()) {
        let message = format!("the folder `{}` does not exist", folder.display());
        terminal.complain(YELLOW, "warning", &message, None)?;
    }
    if *write {
        write_into_project(*client, &server, terminal)
    } else {
        terminal.text(&escape(&snippet(*client, &server)?))?;
        say_where(*client, &server, terminal)?;
        Ok(Outcome::Good)
    }
}

/// What every client accepts, and no format has to quote.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// How this very executable is started: by its name where that leads to it for the client too, else by
/// its path.
fn server(client: Client, name: &str, sources: &SourceOptions) -> Result<Server, Failure> {
    let own = program::own_path().context("cannot find out where this executable is")?;
    let on_path = program::on_path(program::NAME).filter(|path| program::is_same(path, &own));
    let command = match &on_path {
        Some(_) if connecting(client).has_path => Path::new(program::NAME),
        Some(path) => path.as_path(),
        None => own.as_path(),
    };
    let sources = sources.absolute().context("cannot find out where the folders are")?;
    let not_text = |path: &Path| Refusal::InvalidParams {
        details: format!("`{}` is not UTF-8, so no configuration can hold it", path.display()),
        hint: Some("use another folder, or a link to this one".to_owned()),
    };
    if let Some(folder) = sources.folders().iter().find(|folder| folder.to_str().is_none()) {
        return Err(not_text(folder).into());
    }
    let command = command.to_str().ok_or_else(|| not_text(command))?.to_owned();
    let mut args = sources.words();
    args.extend(SERVE.map(str::to_owned));
    Ok(Server { name: name.to_owned(), command, args })
}

/// What a file with nothing else in it would hold.
fn snippet(client: Client, server: &Server) -> Result<String, Failure> {
    match connecting(client).format {
        Format::Json { servers, kind } => match merge("", servers, kind, server) {
            Ok(Merged::Added(text) | Merged::Replaced(text)) => Ok(text),
            Ok(Merged::Same) => Ok(String::new()),
            Err(failure) => Err(anyhow::Error::new(failure).into()),
        },
        Format::Toml { servers } => {
            let args: Vec<String> = server.args.iter().map(|word| toml_string(word)).collect();
            let (name, command) = (&server.name, toml_string(&server.command));
            let args = args.join(", ");
            Ok(format!("[{servers}.{name}]\ncommand = {command}\nargs = [{args}]\n"))
        }
    }
}

/// TOML escapes as JSON does; what JSON may leave as it is, `escape` takes care of.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn say_where(client: Client, server: &Server, terminal: &mut Terminal) -> io::Result<()> {
    let connecting = connecting(client);
    let mut label = "put it into";
    if let Some(file) = connecting.project_file {
        let message = format!("`{file}` in the project's folder, as `--write` does");
        terminal.complain(DIM, label, &message, None)?;
        label = "or into";
    }
    // What a client edits itself, all the time, is better left to its own command.
    if let Some(file) = client::user_file(client).filter(|_| client != Client::ClaudeCode) {
        let all = if connecting.project_file.is_some() { ", for all projects" } else { "" };
        terminal.complain(DIM, label, &format!("`{}`{all}", file.display()), None)?;
    }
    if let Some(add) = connecting.adds_by {
        let words = [&server.command].into_iter().chain(&server.args);
        let words: Vec<String> = words.map(|word| quoted(word)).collect();
        let line = format!("{add} {} -- {}", server.name, words.join(" "));
        terminal.complain(DIM, "or run", &line, None)?;
    }
    Ok(())
}

fn write_into_project(client: Client, server: &Server, terminal: &mut Terminal) -> Ended {
    let name = client.traits().name;
    let connecting = connecting(client);
    let (Some(file), Format::Json { servers, kind }) = (connecting.project_file, connecting.format)
    else {
        let file = client::user_file(client).map(|file| format!("`{}`", file.display()));
        let file = file.unwrap_or_else(|| "its configuration".to_owned());
        let details = format!("{name} has no file in a project that `--write` knows");
        let hint = format!(
            "put what `workflowlookup connect {}` prints into {file} by hand",
            client.word()
        );
        return Err(Refusal::InvalidParams { details, hint: Some(hint) }.into());
    };
    let path = Path::new(file);
    let not_touched = |details: String| {
        let hint = format!(
            "repair it, or put what `workflowlookup connect {}` prints into it by hand",
            client.word()
        );
        Refusal::InvalidParams { details, hint: Some(hint) }
    };
    let old = config_file::read(path)
        .map_err(|why| not_touched(format!("`{file}` {why}; it was not touched")))?;
    let merged = merge(old.as_deref().unwrap_or_default(), servers, kind, server);
    let merged = merged.map_err(|failure| match failure {
        merge::Failure::Misfit(misfit) => {
            let place = format!("{file}:{}:{}", misfit.line, misfit.column);
            let message = &misfit.message;
            Failure::from(not_touched(format!("`{place}`: {message}; the file was not touched")))
        }
        merge::Failure::Fault(fault) => fault.into(),
    })?;
    let name = &server.name;
    let (text, did) = match merged {
        Merged::Same => {
            let message = format!("`{file}` has the server `{name}`, just so");
            terminal.complain(GREEN, "already connected", &message, None)?;
            return Ok(Outcome::Good);
        }
        Merged::Added(text) if old.is_none() => {
            (text, format!("wrote `{file}` with the server `{name}`"))
        }
        Merged::Added(text) => (text, format!("added the server `{name}` to `{file}`")),
        Merged::Replaced(text) => {
            (text, format!("replaced the server `{name}` in `{file}`, which was different"))
        }
    };
    let backup = config_file::replace(path, old.as_deref(), &text, Readers::AsBefore)?;
    let kept = backup.map(|path| format!("; the old file is `{}`", path.display()));
    let message = format!("{did}{}", kept.unwrap_or_default());
    terminal.complain(GREEN, "connected", &message, None)?;
    if let Some(hint) = before_sharing(server) {
        let message = "the file names a path on this machine, which others may not have";
        terminal.complain(YELLOW, "note", message, Some(hint))?;
    }
    Ok(Outcome::Good)
}

/// A project's file is often under version control.
fn before_sharing(server: &Server) -> Option<&'static str> {
    if Path::new(&server.command).is_absolute() {
        Some("before you share it, put `workflowlookup` on your PATH and connect again")
    } else if server.args.iter().any(|word| word == "--workflows") {
        Some("before you share it, put the workflows into the project's folder `workflows`")
    } else {
        None
    }
}
