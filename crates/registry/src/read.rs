//! From the text of a file to servers and findings: all findings at once, and a server that is wrong does not keep the
//! others from being used.

use std::collections::BTreeSet;
use std::path::Path;

use tool_schema::nearest::nearest_one;

use super::draft::Draft;
use super::entry::Entry;
use super::fields::{Filling, read_draft};
use super::filling::Expansion;
use super::finding::{Code, Finding, Severity};
use super::ids::{is_id, of_name, unique};
use super::limits::{ENTRIES_MAX, ID_MAX};
use super::report::{At, Report};
use super::shapes::{Dialect, Listed, listed};
use super::tree::{Node, parse_jsonc, parse_toml};
use super::variables::Variables;

/// In what language a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are fine.
    Json,
    Toml,
}

impl Format {
    /// By the name of a file.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            _ => Self::Json,
        }
    }
}

/// What a text is read with.
pub struct Reader<'a> {
    /// How findings name it.
    pub file: Option<&'a str>,
    pub format: Format,
    /// What a relative `cwd` is relative to.
    pub base: Option<&'a Path>,
    pub variables: &'a Variables,
}

/// What is in a file.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub servers: Vec<Server>,
    pub findings: Vec<Finding>,
    /// Whether the file could be read at all.
    pub is_whole: bool,
}

/// A server of a file. It has an entry where it can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub draft: Draft,
    /// A JSON pointer to it in its file.
    pub pointer: String,
    pub entry: Option<Entry>,
    /// Whether a person has consented to it; otherwise there is no entry.
    pub is_trusted: bool,
    /// Whether nothing is wrong with it, but for variables that are not set here.
    pub is_sound: bool,
    /// The first thing that is wrong with it.
    pub trouble: Option<Box<str>>,
}

impl Reading {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.servers == other.servers
    }
}

impl Reader<'_> {
    pub fn read(&self, text: &str) -> Reading {
        self.read_some(text, &|_| true)
    }

    /// The same without entries: nothing is trusted, and no variable expanded.
    pub fn read_unexpanded(&self, text: &str) -> Reading {
        self.read_some(text, &|_| false)
    }

    /// The same, where only some servers are trusted, by the pointers to them. The others get no entry, and their variables
    /// are not expanded.
    pub(super) fn read_some(&self, text: &str, is_trusted: &dyn Fn(&str) -> bool) -> Reading {
        // Some editors put a byte order mark in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Report::new(self.file, text);
        let parsed = match self.format {
            Format::Json => parse_jsonc(text),
            Format::Toml => parse_toml(text),
        };
        let servers = match parsed {
            Ok(root) => self.servers(&root, is_trusted, &mut report),
            Err(unreadable) => {
                let hint = match self.format {
                    _ if text.trim().is_empty() => "write `{\"servers\": []}`",
                    Format::Json => "look for a missing quote, comma or bracket",
                    Format::Toml => "look for a missing quote or bracket",
                };
                report.error(Code::Syntax, ("", &unreadable.range), unreadable.message, hint);
                None
            }
        };
        let is_whole = servers.is_some();
        Reading { servers: servers.unwrap_or_default(), findings: report.findings(), is_whole }
    }

    fn servers(
        &self,
        root: &Node,
        is_trusted: &dyn Fn(&str) -> bool,
        report: &mut Report<'_>,
    ) -> Option<Vec<Server>> {
        let before = report.errors();
        let Some(mut found) = listed(root, self.variables.project.as_deref(), report) else {
            if report.errors() == before {
                let message = "there are no servers in the file";
                report.error(Code::Shape, At::root(root).spot(), message, hint(root));
            }
            return None;
        };
        // What should hold them is something else.
        if found.is_empty() && report.errors() > before {
            return None;
        }
        if let Some(first) = found.get(ENTRIES_MAX) {
            let message = format!("there are more than {ENTRIES_MAX} servers in the file");
            report.error(Code::TooLarge, first.at.spot(), message, "the rest is left out");
            found.truncate(ENTRIES_MAX);
        }
        let filling = Filling::new(self.variables, self.base, root);
        // Names that are good ids already go before ids that are made of names.
        let names = found.iter().filter_map(|listed| listed.name);
        let mut taken: BTreeSet<String> =
            names.filter(|name| is_id(name)).map(Into::into).collect();
        let mut seen = BTreeSet::new();
        let mut servers = Vec::new();
        for listed in found {
            // Claude Code has one for this project, and one for all.
            if listed.name.is_some_and(|name| !seen.insert(name.to_owned())) {
                continue;
            }
            let (before, unset_before) = (report.errors(), report.unset());
            let count = report.count();
            let is_trusted = is_trusted(&listed.at.pointer);
            let expansion = if is_trusted { Expansion::Values } else { Expansion::Names };
            let filling = filling.expanding(expansion);
            let Some(mut draft) = read_draft(&listed, &filling, report) else { continue };
            match listed.name {
                Some(name) => self.name(name, &listed, &mut draft, &mut taken, report),
                None => self.check_id(&listed, &draft.id, &mut taken, report),
            }
            let errors = report.errors() - before;
            let is_sound = errors == report.unset() - unset_before && draft.reached.is_some();
            let is_good = errors == 0 && !draft.is_disabled && is_trusted;
            let entry = if is_good { filling.entry(&draft) } else { None };
            let trouble = report.first_error_after(count);
            let pointer = listed.at.pointer.clone();
            servers.push(Server { draft, pointer, entry, is_trusted, is_sound, trouble });
        }
        Some(servers)
    }

    /// An id for what a client calls a server.
    fn name(
        &self,
        name: &str,
        listed: &Listed<'_>,
        draft: &mut Draft,
        taken: &mut BTreeSet<String>,
        report: &mut Report<'_>,
    ) {
        if is_id(name) {
            draft.id = name.to_owned();
            return;
        }
        let id = unique(of_name(name), taken);
        taken.insert(id.clone());
        let message = format!("`{name}` is called `{id}` here: ids are in kebab-case");
        report.add((Code::Renamed, Severity::Note), listed.at.key(), message, None);
        (draft.id, draft.name) = (id, Some(name.to_owned()));
    }

    fn check_id(
        &self,
        listed: &Listed<'_>,
        id: &str,
        taken: &mut BTreeSet<String>,
        report: &mut Report<'_>,
    ) {
        debug_assert_eq!(listed.dialect, Dialect::Own);
        let pointer = format!("{}/id", listed.at.pointer);
        let range = listed.at.node.get("id").map_or(&listed.at.node.range, |id| &id.range);
        if id.is_empty() {
            // It is missing, or no text, which was said.
        } else if !is_id(id) {
            let message = format!(
                "`{}` cannot be an id: small letters, digits and single `-` between them, at most {ID_MAX}",
                id.chars().take(ID_MAX).collect::<String>()
            );
            let hint = format!("write `{}`", of_name(id));
            report.error(Code::BadId, (&pointer, range), message, hint);
        } else if !taken.insert(id.to_owned()) {
            let message = format!("there is a server `{id}` already");
            let hint = "the first one is used; give this one another id";
            report.error(Code::DuplicateId, (&pointer, range), message, hint);
        }
    }
}

/// A key that is nearly right, or what to write.
fn hint(root: &Node) -> String {
    let names = ["servers", "mcpServers", "context_servers", "mcp_servers"];
    let mut keys = root.fields().unwrap_or_default().iter().map(|field| field.key.as_str());
    match keys.find_map(|key| nearest_one(key, names)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "write `{\"servers\": [{\"id\": …, \"mcp\": {…}}]}`".to_owned(),
    }
}
