//! The clients' configurations on this machine that mention us: can what they start be started? The
//! files are only read.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde_json::Value;

use super::{Check, Level};
use crate::cli::client::{Client, Format};
use crate::cli::{config_file, jsonc, program};

const ABOUT: &str = "client";

/// A server in somebody's configuration.
#[derive(Debug, PartialEq, Eq)]
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
    let mut checks = Vec::new();
    for &client in Client::value_variants() {
        let project = client.traits().project_file.map(PathBuf::from);
        let project = project.map(|path| File { client, path, is_project: true });
        let user = client.user_file().map(|path| File { client, path, is_project: false });
        for file in project.into_iter().chain(user) {
            checks.extend(file.look());
        }
    }
    if checks.is_empty() {
        let check =
            Check::new(ABOUT, Level::Note, "no client's configuration mentions this server");
        checks.push(check.hint("`workflowlookup connect CLIENT` prints what to put there"));
    }
    checks
}

impl File {
    fn look(&self) -> Vec<Check> {
        let text = match config_file::read(&self.path) {
            Ok(None) => return Vec::new(),
            Ok(Some(text)) => text,
            Err(why) => {
                let check = self.check(Level::Warning, &why);
                return vec![check.hint("the client may not be able to read it either")];
            }
        };
        let mentions = match self.client.traits().format {
            Format::Json { servers, .. } => match jsonc::value(&text) {
                Ok(value) => in_json(&value, servers),
                Err(misfit) => {
                    let (line, column) = (misfit.line, misfit.column);
                    let why =
                        format!("is not JSON at line {line}, column {column}: {}", misfit.message);
                    return vec![self.check(Level::Warning, &why).hint("repair it there")];
                }
            },
            Format::Toml { servers } => in_toml(&text, servers),
        };
        let ours = mentions.iter().filter(|mention| mention.is_ours());
        ours.map(|mention| self.judge(mention)).collect()
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
            Ok(_) if stem(command) == program::NAME && !mention.serves() => " without `serve`",
            Ok(found) => return self.good(&what, command, &found),
        };
        self.check(Level::Warning, &format!("{what}{wrong}")).hint(self.mend(name))
    }

    /// It can be started, but is it us?
    fn good(&self, what: &str, command: &str, found: &Path) -> Check {
        let is_this = program::own_path().is_ok_and(|own| program::is_same(&own, found));
        if is_this || stem(command) != program::NAME {
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
    /// By its name, or by what it starts: people name servers as they like.
    fn is_ours(&self) -> bool {
        self.name == program::NAME
            || self.command.as_deref().is_some_and(|command| stem(command) == program::NAME)
    }

    fn serves(&self) -> bool {
        self.args.iter().any(|word| word == "serve")
    }
}

/// The name of the file that a command starts, without what some systems append.
fn stem(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The servers for all projects, and those that Claude Code keeps for the current one.
fn in_json(value: &Value, servers: &str) -> Vec<Mention> {
    let here = std::env::current_dir().unwrap_or_default();
    let here = &value["projects"][&*here.to_string_lossy()][servers];
    let servers = [&value[servers], here].into_iter().filter_map(Value::as_object).flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    servers
        .map(|(name, entry)| Mention {
            name: name.clone(),
            command: text(&entry["command"]),
            args: entry["args"].as_array().into_iter().flatten().filter_map(text).collect(),
        })
        .collect()
}

/// Only as much TOML as clients and `connect` write: a table for each server, with a command and its
/// arguments as strings. What is written otherwise is not found, which does no harm.
fn in_toml(text: &str, servers: &str) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    let mut is_inside = false;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix('[') {
            let name = header
                .split_once(']')
                .and_then(|(name, _)| name.strip_prefix(servers)?.strip_prefix('.'))
                .map(|name| name.trim_matches(['"', '\'']));
            // A table in the server's own holds its environment, for example.
            let name = name.filter(|name| !name.contains('.'));
            is_inside = name.is_some();
            mentions.extend(name.map(|name| Mention {
                name: name.to_owned(),
                command: None,
                args: Vec::new(),
            }));
        }
        let Some((key, value)) = line.split_once('=').filter(|_| is_inside) else {
            continue;
        };
        let Some(mention) = mentions.last_mut() else {
            continue;
        };
        match key.trim() {
            "command" => mention.command = toml_strings(value).into_iter().next(),
            "args" => {
                let mut list = value.to_owned();
                while !list.trim_end().ends_with(']') {
                    let Some(line) = lines.next() else {
                        break;
                    };
                    list.push_str(line);
                }
                mention.args = toml_strings(&list);
            }
            _ => {}
        }
    }
    mentions
}

/// The strings in a line, of either kind.
fn toml_strings(text: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = &rest[start..=start];
        let body = &rest[start + 1..];
        let is_end = |(at, _): &(usize, &str)| {
            let backslashes = body[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count();
            quote == "'" || backslashes % 2 == 0
        };
        let Some((end, _)) = body.match_indices(quote).find(is_end) else {
            break;
        };
        let plain = &body[..end];
        let escaped = serde_json::from_str(&format!("\"{plain}\"")).ok().filter(|_| quote == "\"");
        strings.push(escaped.unwrap_or_else(|| plain.to_owned()));
        rest = &body[end + 1..];
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_in_toml_as_clients_write_it() {
        let text = r#"
model = "x"
command = "not in a table of ours"

[mcp_servers.first] # a comment
command = "C:\\Program Files\\workflowlookup.exe"
args = ["--workflows", 'C:\a', "serve"]
[mcp_servers.first.env]
command = "not a command"

[mcp_servers."second"]
args = [
  "a \"b\"",
  "serve",
]
command = '/x'
[other]
command = "nor this"
"#;
        let mention = |name: &str, command: &str, args: &[&str]| Mention {
            name: name.to_owned(),
            command: Some(command.to_owned()),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
        };
        let wanted = [
            mention(
                "first",
                r"C:\Program Files\workflowlookup.exe",
                &["--workflows", r"C:\a", "serve"],
            ),
            mention("second", "/x", &["a \"b\"", "serve"]),
        ];
        assert_eq!(in_toml(text, "mcp_servers"), wanted);
        assert!(wanted[0].is_ours() && wanted[0].serves() && !wanted[1].is_ours());
    }
}
