//! The shapes in which servers are listed: our own list, and the maps that clients keep. Which shape a file has is seen
//! from what is in it, so that any client's file can be named as a registry.

use std::path::Path;

use tool_schema::pointer::join;

use super::finding::Code;
use super::report::{At, Report};
use super::tree::{Kind, Node};

/// How the entries of a file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A list of ours: what is not known is an error.
    Own,
    /// A map of a client's, by names: clients have fields of their own.
    Map,
    /// Codex: nothing in its texts is a variable.
    Codex,
}

/// One server of a file.
pub(super) struct Listed<'a> {
    /// Its key, where there is a map.
    pub(super) name: Option<&'a str>,
    pub(super) at: At<'a>,
    pub(super) dialect: Dialect,
}

/// The maps that clients keep, and where in a file.
const MAPS: &[(&[&str], Dialect)] = &[
    // Claude Desktop, Claude Code, Cursor, Windsurf and many more.
    (&["mcpServers"], Dialect::Map),
    // VS Code, and before that in its settings.
    (&["servers"], Dialect::Map),
    (&["mcp", "servers"], Dialect::Map),
    // Zed.
    (&["context_servers"], Dialect::Map),
];
const CODEX: &str = "mcp_servers";

/// The servers of a file in the order in which they count: of two with the same name the first does. Nothing where
/// there is no place for servers in it.
pub(super) fn listed<'a>(
    root: &'a Node,
    project: Option<&Path>,
    report: &mut Report<'_>,
) -> Option<Vec<Listed<'a>>> {
    let whole = At::root(root);
    if root.items().is_some() {
        return Some(own(&whole, report));
    }
    let Some(fields) = root.fields() else {
        let message = format!("the file holds {}, and no servers", root.what());
        let hint = "write `{\"servers\": [{\"id\": …, \"mcp\": {…}}]}`";
        report.error(Code::Shape, whole.spot(), message, hint);
        return None;
    };
    let mut found = Vec::new();
    let mut is_any = false;
    // What Claude Code keeps for one project wins over what it keeps for all.
    if let Some(servers) = project.and_then(|project| of_project(root, project)) {
        is_any = true;
        found.extend(map(&servers, Dialect::Map, report));
    }
    for (way, dialect) in MAPS {
        let Some(servers) = follow(&whole, way) else { continue };
        is_any = true;
        match &servers.node.kind {
            Kind::List(_) if way == &["servers"] => found.extend(own(&servers, report)),
            _ => found.extend(map(&servers, *dialect, report)),
        }
    }
    if let Some(servers) = follow(&whole, &[CODEX]) {
        is_any = true;
        found.extend(map(&servers, Dialect::Codex, report));
    }
    if is_any {
        return Some(found);
    }
    // A map without anything around it, as some people keep one.
    let is_server =
        |node: &Node| ["command", "url", "serverUrl"].iter().any(|key| node.get(key).is_some());
    if fields.iter().any(|field| is_server(&field.value)) {
        return Some(map(&whole, Dialect::Map, report));
    }
    None
}

fn own<'a>(servers: &At<'a>, report: &mut Report<'_>) -> Vec<Listed<'a>> {
    let items = servers.items(report).into_iter();
    items.map(|at| Listed { name: None, at, dialect: Dialect::Own }).collect()
}

fn map<'a>(servers: &At<'a>, dialect: Dialect, report: &mut Report<'_>) -> Vec<Listed<'a>> {
    let fields = servers.fields(report).into_iter();
    fields.map(|(name, at)| Listed { name: Some(name), at, dialect }).collect()
}

/// The value at the end of a way; nothing where it is not there, or `null`.
fn follow<'a>(whole: &At<'a>, way: &[&str]) -> Option<At<'a>> {
    let mut at = whole.clone();
    for key in way {
        let mut fields = at.node.fields()?.iter();
        let field = fields.find(|field| field.key == *key)?;
        at = At {
            node: &field.value,
            pointer: join(&at.pointer, key),
            key_range: field.key_range.clone(),
        };
    }
    (!matches!(at.node.kind, Kind::Null)).then_some(at)
}

/// What Claude Code keeps for one project, by the folder's path.
fn of_project<'a>(root: &'a Node, project: &Path) -> Option<At<'a>> {
    let projects = follow(&At::root(root), &["projects"])?;
    let mut folders = projects.node.fields()?.iter();
    let folder = folders.find(|folder| Path::new(&folder.key) == project)?;
    follow(&At::root(root), &["projects", &folder.key, "mcpServers"])
}
