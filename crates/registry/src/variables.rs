//! Variables in the texts of a registry: `${NAME}` and `${NAME:-default}`, and what VS Code, Cursor and Windsurf write:
//! `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and a few more. `$${` is a literal `${`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{MAIN_SEPARATOR_STR, PathBuf};

use super::limits::FILLED_MAX;

/// What variables are filled in with.
#[derive(Clone, Default)]
pub struct Variables {
    /// Nothing here is the environment of this process.
    given: Option<BTreeMap<String, String>>,
    /// For `${userHome}`, and for `~/` in front of a command or a folder.
    pub home: Option<PathBuf>,
    /// For `${workspaceFolder}`.
    pub project: Option<PathBuf>,
}

impl Variables {
    /// Those of this process.
    pub fn of_process(home: Option<PathBuf>, project: Option<PathBuf>) -> Self {
        Self { given: None, home, project }
    }

    /// These and no others.
    pub fn given<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let given = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { given: Some(given.collect()), home: None, project: None }
    }

    /// None at all: each stays as it is written.
    pub(super) const NONE: Self = Self { given: Some(BTreeMap::new()), home: None, project: None };

    /// Whether one is set.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        match &self.given {
            Some(given) => given.get(name).cloned(),
            None => std::env::var(name).ok(),
        }
    }
}

/// A text in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Variable(Variable<'a>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable<'a> {
    /// All of it, from `$` to `}`.
    pub(super) raw: &'a str,
    pub(super) from: From<'a>,
    pub(super) default: Option<&'a str>,
}

/// Where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From<'a> {
    Environment(&'a str),
    /// What VS Code asks its user for.
    Input(&'a str),
    Home,
    Project,
    ProjectName,
    Separator,
}

/// Why a text cannot be taken apart, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) range: Range<usize>,
    pub(super) why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    NotClosed,
    NoName,
    Nested,
    /// `${command:…}`, `${config:…}`: VS Code would have to be asked.
    ClientOnly,
}

/// A text with its variables filled in.
pub(super) struct Filled<'a> {
    pub(super) value: String,
    /// Each piece, and where it came to stand in the value.
    pub(super) spans: Vec<(Piece<'a>, Range<usize>)>,
    /// Those that have no value; they stand in the value as they were written.
    pub(super) unset: Vec<Variable<'a>>,
    pub(super) is_too_long: bool,
}

pub(super) fn parse(text: &str) -> Result<Vec<Piece<'_>>, Malformed> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let start = text.len() - rest.len() + at;
        if rest[..at].ends_with('$') {
            // One of the two dollars stays, and the brace after it.
            pieces.push(Piece::Text(&rest[..at - 1]));
            pieces.push(Piece::Text(&rest[at..at + 2]));
            rest = &rest[at + 2..];
            continue;
        }
        pieces.push(Piece::Text(&rest[..at]));
        let malformed = |why, end| Malformed { range: start..end, why };
        let Some(end) = rest[at..].find('}') else {
            return Err(malformed(Why::NotClosed, text.len()));
        };
        let raw = &rest[at..=at + end];
        match variable(raw) {
            Ok(variable) => pieces.push(Piece::Variable(variable)),
            Err(why) => return Err(malformed(why, start + raw.len())),
        }
        rest = &rest[at + raw.len()..];
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    Ok(pieces)
}

fn variable(raw: &str) -> Result<Variable<'_>, Why> {
    let inside = &raw[2..raw.len() - 1];
    if inside.contains("${") {
        return Err(Why::Nested);
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let from = match name {
        "userHome" => From::Home,
        "workspaceFolder" => From::Project,
        "workspaceFolderBasename" => From::ProjectName,
        "pathSeparator" | "/" => From::Separator,
        name if is_name(name) => From::Environment(name),
        name => match name.split_once(':') {
            Some(("env", name)) if is_name(name) => From::Environment(name),
            Some(("input", id)) if !id.is_empty() => From::Input(id),
            Some(("command" | "config" | "workspaceFolder", _)) => return Err(Why::ClientOnly),
            _ => return Err(Why::NoName),
        },
    };
    Ok(Variable { raw, from, default })
}

/// What a variable of the environment may be called.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(is_plain)
}

/// The variable by which an input of VS Code is given.
pub(super) fn of_input(id: &str) -> String {
    let plain = id.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_uppercase(),
        _ => '_',
    });
    let name: String = plain.collect();
    if is_name(&name) { name } else { format!("_{name}") }
}

/// A literal text, written so that nothing in it is a variable.
pub(super) fn escaped(literal: &str) -> String {
    literal.replace("${", "$${")
}

pub(super) fn fill<'a>(pieces: Vec<Piece<'a>>, variables: &Variables) -> Filled<'a> {
    let mut filled =
        Filled { value: String::new(), spans: Vec::new(), unset: Vec::new(), is_too_long: false };
    for piece in pieces {
        let start = filled.value.len();
        match &piece {
            Piece::Text(text) => filled.value.push_str(text),
            Piece::Variable(variable) => match value(variable, variables) {
                Some(value) => filled.value.push_str(&value),
                None => {
                    filled.value.push_str(variable.raw);
                    filled.unset.push(variable.clone());
                }
            },
        }
        filled.spans.push((piece, start..filled.value.len()));
        if filled.value.len() > FILLED_MAX {
            filled.is_too_long = true;
            break;
        }
    }
    filled
}

/// As in a shell, a default counts where the variable is empty, too.
fn value(variable: &Variable<'_>, variables: &Variables) -> Option<String> {
    let path = |path: &PathBuf| path.to_str().map(str::to_owned);
    let value = match variable.from {
        From::Environment(name) => variables.get(name),
        From::Input(id) => variables.get(&of_input(id)),
        From::Home => variables.home.as_ref().and_then(path),
        From::Project => variables.project.as_ref().and_then(path),
        From::ProjectName => {
            let name = variables.project.as_ref().and_then(|project| project.file_name());
            name.and_then(|name| name.to_str()).map(str::to_owned)
        }
        From::Separator => Some(MAIN_SEPARATOR_STR.to_owned()),
    };
    let default = variable.default.map(str::to_owned);
    value.filter(|value| !(value.is_empty() && default.is_some())).or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<(String, Vec<String>), Why> {
        let mut variables = Variables::given([("A", "1"), ("EMPTY", ""), ("API_KEY", "k")]);
        variables.home = Some("/home/anna".into());
        variables.project = Some("/src/thing".into());
        let pieces = parse(text).map_err(|malformed| malformed.why)?;
        let filled = fill(pieces, &variables);
        let unset = filled.unset.iter().map(|variable| variable.raw.to_owned());
        Ok((filled.value, unset.collect()))
    }

    fn value(text: &str) -> String {
        let (value, unset) = filled(text).unwrap();
        assert!(unset.is_empty(), "{unset:?}");
        value
    }

    #[test]
    fn variables_are_filled_in() {
        assert_eq!(value("x${A}y${A}"), "x1y1");
        assert_eq!(value("${env:A}"), "1");
        assert_eq!(value("${input:api-key}"), "k");
        assert_eq!(value("${B:-two}${B:-}"), "two");
        assert_eq!(value("${EMPTY:-two}${EMPTY}"), "two");
        assert_eq!(value("${A:-two}"), "1");
        assert_eq!(value("${B:-https://example.com/?x=1:-2}"), "https://example.com/?x=1:-2");
        assert_eq!(value("${userHome}${/}x"), "/home/anna/x");
        assert_eq!(value("${workspaceFolder}|${workspaceFolderBasename}"), "/src/thing|thing");
    }

    #[test]
    fn what_is_no_variable_stays() {
        for text in ["$A", "$", "$$", "{A}", "A}", "$ {A}", ""] {
            assert_eq!(value(text), text);
        }
        assert_eq!(value("$${A}"), "${A}");
        assert_eq!(value("$$${A}"), "$${A}");
        assert_eq!(value("a$${A}${A}"), "a${A}1");
        assert_eq!(value(&escaped("a ${A} $${A} $")), "a ${A} $${A} $");
    }

    #[test]
    fn unset_and_malformed_variables_are_told() {
        assert_eq!(filled("a${B}").unwrap(), ("a${B}".to_owned(), vec!["${B}".to_owned()]));
        assert_eq!(filled("${input:x y}").unwrap().1, ["${input:x y}"]);
        assert_eq!(filled("a ${A"), Err(Why::NotClosed));
        assert_eq!(filled("${}"), Err(Why::NoName));
        assert_eq!(filled("${a b}"), Err(Why::NoName));
        assert_eq!(filled("${1A}"), Err(Why::NoName));
        assert_eq!(filled("${A:-${B}}"), Err(Why::Nested));
        assert_eq!(filled("${command:x.y}"), Err(Why::ClientOnly));
    }
}
