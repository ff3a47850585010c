//! The clients' configurations on this machine that mention us: can what they start be started? The
//! files are only read.

use std::path::{Path, PathBuf};

use registry::clients::Scope;
use registry::{Code, Draft, Finding, Format, Reading};

use super::{Check, Level};
use crate::cli::client::{self, Client};
use crate::cli::program;

const ABOUT: &str = "client";

/// A server in somebody's configuration.
#[derive(Debug)]
struct Mention {
    name: String,
    /// Absent where the server is reached in another way.
    command: Option<String>,
    args: Vec<String>,
}

/// A file, and from where the client that reads it starts servers.
struct File {
    client: Client,
    path: PathBuf,
    is_project: bool,
}

pub(super) fn look() -> Vec<Check> {
    let (folders, variables) = (client::folders(), client::variables());
    let mut checks = Vec::new();
    for &client in Client::ALL {
        // A project's file is named as one would type it.
        let found = client.found(folders.as_ref(), Path::new(""), &variables);
        checks.extend(found.into_iter().flat_map(|found| {
            let is_project = found.scope == Scope::Project;
            File { client, path: found.path, is_project }.look(&found.reading)
        }));
    }
    if checks.is_empty() {
        let check =
            Check::new(ABOUT, Level::Note, "no client's configuration mentions this server");
        checks.push(check.hint("`workflowlookup connect CLIENT` prints what to put there"));
    }
    checks
}

impl File {
    fn look(&self, reading: &Reading) -> Vec<Check> {
        if !reading.is_whole {
            let check = reading.findings.first().map(|finding| self.unread(finding));
            return check.into_iter().collect();
        }
        let mentions = reading.servers.iter().map(|server| Mention::of(&server.draft));
        let ours = mentions.filter(Mention::is_ours);
        ours.map(|mention| self.judge(&mention)).collect()
    }

    fn unread(&self, finding: &Finding) -> Check {
        let message = &finding.message;
        match finding.place {
            Some(place) => {
                let what = match (finding.code, self.client.traits().format) {
                    (Code::Syntax, Format::Json) => "is not JSON",
                    (Code::Syntax, Format::Toml) => "is not TOML",
                    _ => "is wrong",
                };
                let (line, column) = (place.line, place.column);
                let why = format!("{what} at line {line}, column {column}: {message}");
                self.check(Level::Warning, &why).hint("repair it there")
            }
            None => {
                let check = self.check(Level::Warning, message);
                check.hint("the client may not be able to read it either")
            }
        }
    }

    fn check(&self, level: Level, what: &str) -> Check {
        let (name, path) = (self.client.traits().name, self.path.display());
        Check::new(ABOUT, level, format!("{name}: `{path}` {what}"))
    }

    fn judge(&self, mention: &Mention) -> Check {
        let name = &mention.name;
        let Some(command) = &mention.command else {
            let what = format!("has `{name}`, which is not started by a command");
            return self.check(Level::Note, &what);
        };
        let what = format!("starts `{name}` by `{command}`");
        let Some(found) = self.find(command) else {
            return self.check(Level::Note, &format!("{what}, which only the client can find"));
        };
        let wrong = match found {
            Err(Wrong::NotOnPath) => ", which is not on your PATH",
            Err(Wrong::Missing) => ", which does not exist",
            Err(Wrong::NotExecutable) => ", which cannot be executed",
            Ok(_) if program::stem(command) == program::NAME && !mention.serves() => {
                " without `serve`"
            }
            Ok(found) => return self.good(&what, command, mention, &found),
        };
        self.check(Level::Warning, &format!("{what}{wrong}")).hint(self.mend(name))
    }

    /// It can be started, but is it us?
    fn good(&self, what: &str, command: &str, mention: &Mention, found: &Path) -> Check {
        let is_this = program::own_path().is_ok_and(|own| program::is_same(&own, found));
        if is_this && mention.serves() && !mention.chooses_tools() {
            let what = format!("{what} with tools that record nothing");
            let hint = format!("{}, with `--tools sessions`", self.mend(&mention.name));
            self.check(Level::Note, &what).hint(hint)
        } else if is_this || program::stem(command) != program::NAME {
            self.check(Level::Ok, what)
        } else {
            let found = found.display();
            self.check(Level::Note, &format!("{what}, another executable than this: `{found}`"))
        }
    }

    fn mend(&self, name: &str) -> String {
        let word = self.client.word();
        let name = if name == program::NAME { String::new() } else { format!(" --name {name}") };
        if self.is_project {
            format!("`workflowlookup connect {word}{name} --write` puts this executable there")
        } else {
            format!("`workflowlookup connect {word}{name}` prints what to put there")
        }
    }

    /// The file that a command starts; none where that depends on what the client makes of it.
    fn find(&self, command: &str) -> Option<Result<PathBuf, Wrong>> {
        let path = Path::new(command);
        let is_pattern = command.starts_with('~') || command.contains(['$', '%']);
        let is_bare = path.components().count() == 1 && !path.is_absolute();
        if is_pattern || (!is_bare && path.is_relative() && !self.is_project) {
            return None;
        }
        if is_bare {
            return Some(program::on_path(command).ok_or(Wrong::NotOnPath));
        }
        Some(match path {
            path if program::is_executable(path) => Ok(path.to_path_buf()),
            path if path.exists() => Err(Wrong::NotExecutable),
            _ => Err(Wrong::Missing),
        })
    }
}

/// Why a command cannot be started.
enum Wrong {
    NotOnPath,
    Missing,
    NotExecutable,
}

impl Mention {
    fn of(draft: &Draft) -> Self {
        Self {
            name: draft.name.as_ref().unwrap_or(&draft.id).clone(),
            command: draft.command().map(str::to_owned),
            args: draft.args().map(str::to_owned).collect(),
        }
    }

    /// By its name, or by what it starts: people name servers as they like.
    fn is_ours(&self) -> bool {
        self.name == program::NAME
            || self
                .command
                .as_deref()
                .is_some_and(|command| program::stem(command) == program::NAME)
    }

    fn serves(&self) -> bool {
        self.args.iter().any(|word| word == "serve")
    }

    fn chooses_tools(&self) -> bool {
        self.args.iter().any(|word| word == "--tools" || word.starts_with("--tools="))
    }
}
