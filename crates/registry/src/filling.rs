//! Filling in the variables of one file's texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::draft::Text;
use super::entry::Secret;
use super::finding::Code;
use super::report::{Raw, Report};
use super::secrecy::{Role, secret};
use super::shapes::Dialect;
use super::tree::{Kind, Node};
use super::variables::{From, Variables, Why, escaped, fill, of_input, parse};

/// Whether variables become values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expansion {
    Values,
    /// They stay as they are written, and nobody misses them.
    Names,
}

#[derive(Clone)]
pub(super) struct Filling<'a> {
    variables: &'a Variables,
    base: Option<&'a Path>,
    /// What VS Code's inputs are where nobody says otherwise, by their ids.
    inputs: BTreeMap<&'a str, &'a str>,
    dialect: Dialect,
    expansion: Expansion,
    /// Nobody misses the variables of a server that is not to be used.
    is_disabled: bool,
}

impl<'a> Filling<'a> {
    pub(super) fn new(variables: &'a Variables, base: Option<&'a Path>, root: &'a Node) -> Self {
        let inputs = root.get("inputs").and_then(Node::items).unwrap_or_default();
        let inputs = inputs.iter().filter_map(|input| {
            let default = input.get("default")?.text()?;
            Some((input.get("id")?.text()?, default))
        });
        // A default that could not be written as one is none.
        let inputs = inputs.filter(|(_, default)| !default.contains(['}', '$']));
        let inputs = inputs.collect();
        let (dialect, expansion) = (Dialect::Own, Expansion::Values);
        Self { variables, base, inputs, dialect, expansion, is_disabled: false }
    }

    pub(super) fn expanding(&self, expansion: Expansion) -> Self {
        Self { expansion, ..self.clone() }
    }

    /// Whether variables become values.
    pub(super) fn has_values(&self) -> bool {
        self.expansion == Expansion::Values
    }

    pub(super) fn of(&self, dialect: Dialect, is_disabled: bool) -> Self {
        Self { dialect, is_disabled, ..self.clone() }
    }

    /// A text of a field, which findings call by `label`.
    pub(super) fn text(
        &self,
        raw: &Raw,
        label: &str,
        role: Role<'_>,
        report: &mut Report<'_>,
    ) -> Text {
        let text = match self.dialect {
            Dialect::Codex => escaped(&raw.text),
            Dialect::Own | Dialect::Map => self.with_defaults(&raw.text),
        };
        let filled = match parse(&text) {
            Ok(pieces) => match self.expansion {
                Expansion::Values => fill(pieces, self.variables),
                Expansion::Names => fill(pieces, &Variables::NONE),
            },
            Err(malformed) => {
                let (message, hint) = wording(malformed.why);
                let range = report.narrow(&raw.range, &text[malformed.range]);
                let message = format!("{message} in `{label}`");
                report.error(Code::BadVariable, (&raw.pointer, &range), message, hint);
                let filled = Secret::hidden(text.clone());
                return Text { raw: text, filled };
            }
        };
        if filled.is_too_long {
            let message = format!("`{label}` is too long once its variables are filled in");
            report.error(Code::TextLength, (&raw.pointer, &raw.range), message, "shorten it");
        }
        let are_missed = !self.is_disabled && self.has_values();
        for variable in filled.unset.iter().filter(|_| are_missed) {
            let (name, hint) = match variable.from {
                From::Environment(name) => {
                    let hint = format!(
                        "set it where this program is started, or write `${{{name}:-default}}`"
                    );
                    (name.to_owned(), hint)
                }
                From::Input(id) => {
                    let name = of_input(id);
                    let hint = format!("VS Code asks its user for `{id}`; here, set `{name}`");
                    (name, hint)
                }
                _ => (variable.raw.to_owned(), "write the path itself".to_owned()),
            };
            let range = report.narrow(&raw.range, variable.raw);
            let message = format!("the variable `{name}` in `{label}` is not set");
            report.error(Code::UnsetVariable, (&raw.pointer, &range), message, hint);
        }
        let filled = secret(role, filled);
        Text { raw: text, filled }
    }

    /// A variable of the environment, where a client keeps only its name. Behind the name there may be a default.
    pub(super) fn variable(
        &self,
        raw: &Raw,
        default: &str,
        role: Role<'_>,
        report: &mut Report<'_>,
    ) -> Text {
        let text = format!("${{{}{default}}}", raw.text);
        let named = Raw { text, ..raw.clone() };
        let label = raw.pointer.rsplit('/').next().unwrap_or_default();
        self.of(Dialect::Own, self.is_disabled).text(&named, label, role, report)
    }

    /// `${input:x}` with the default that VS Code would offer.
    fn with_defaults(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, default) in &self.inputs {
            let input = format!("${{input:{id}}}");
            if text.contains(&input) {
                text = text.replace(&input, &format!("${{input:{id}:-{default}}}"));
            }
        }
        text
    }

    /// `~/` is the home folder, as in a shell.
    pub(super) fn at_home(&self, path: &str) -> String {
        let home = self.variables.home.as_ref().and_then(|home| home.to_str());
        match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => format!("{home}/{rest}"),
            _ => path.to_owned(),
        }
    }

    /// A folder to start in. A relative one is relative to the file.
    pub(super) fn folder(&self, path: &str) -> PathBuf {
        let path = PathBuf::from(self.at_home(path));
        match self.base {
            Some(base) if path.is_relative() => base.join(path),
            _ => path,
        }
    }

    /// Numbers and flags stand for texts in the maps of clients.
    pub(super) fn scalar(node: &Node) -> Option<String> {
        match node.kind {
            Kind::Number(number) => Some(number.to_string()),
            Kind::Flag(flag) => Some(flag.to_string()),
            _ => None,
        }
    }
}

fn wording(why: Why) -> (&'static str, &'static str) {
    match why {
        Why::NotClosed => ("a variable has no `}`", "close it, or write `$${` for a literal `${`"),
        Why::NoName => (
            "a variable has no name that one could have",
            "write `${NAME}` or `${NAME:-default}`, or `$${` for a literal `${`",
        ),
        Why::Nested => ("a variable stands within another", "set one variable to the whole"),
        Why::ClientOnly => (
            "only VS Code can fill in a variable",
            "write the value, or a variable of the environment",
        ),
    }
}
