//! Putting servers into the text of a registry, in place: whatever else stands there, its order, its comments and its
//! spaces stay. Text in, text out.

use jsonc_parser::cst::{CstArray, CstNode, CstRootNode};

use super::draft::Draft;
use super::read::{Format, Reader, Reading};
use super::tree::{Kind, OPTIONS, parse_jsonc};
use super::variables::Variables;

/// Why a text was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdded {
    /// Line and column count from 1.
    #[error("line {line}, column {column}: {message}")]
    Syntax { line: usize, column: usize, message: String },
    /// It has another shape than a list of servers.
    #[error("it is the file of a client, and no registry of ours")]
    NoList,
    /// The edit did more or less than it should: ours to mend.
    #[error("the registry would not be right after the edit")]
    Wrong,
}

/// How one that takes another's place is written.
#[derive(Clone, Copy)]
enum Manner {
    /// Only how it is reached, so that comments beside that stay.
    Reached,
    Whole,
}

/// The text with these servers in it. One that has the id of another takes its place.
pub fn add(text: &str, drafts: &[&Draft]) -> Result<String, NotAdded> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !bare.trim().is_empty() {
        fits(bare)?;
    }
    let edited = edit(bare, drafts, Manner::Reached);
    let edited = edited.and_then(|new| verify(bare, &new, drafts).map(|()| new));
    let edited = match edited {
        Err(_) => {
            let new = edit(bare, drafts, Manner::Whole)?;
            verify(bare, &new, drafts)?;
            new
        }
        Ok(new) => new,
    };
    let mark = &text[..text.len() - bare.len()];
    Ok(format!("{mark}{edited}"))
}

fn edit(text: &str, drafts: &[&Draft], manner: Manner) -> Result<String, NotAdded> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(|_| NotAdded::Wrong)?;
    let list = match root.array_value() {
        Some(list) => list,
        None => root.object_value_or_set().array_value_or_set("servers"),
    };
    for draft in drafts {
        let index = position(&list, &draft.id);
        let old = index.and_then(|index| list.elements().into_iter().nth(index));
        let mcp = old.as_ref().and_then(|old| old.as_object()?.get("mcp"));
        match (manner, index, mcp, old) {
            (Manner::Reached, Some(_), Some(mcp), _) => mcp.set_value(draft.written_mcp()),
            (_, Some(index), _, Some(old)) => {
                // Put before the old one, which then goes: in this way it is indented as the others are.
                list.ensure_multiline();
                list.insert(index, draft.written());
                old.remove();
            }
            _ => {
                list.ensure_multiline();
                list.append(draft.written());
            }
        }
    }
    let end = if text.trim().is_empty() { "\n" } else { "" };
    Ok(format!("{}{end}", root.to_string().trim_start_matches('\n')))
}

/// A list of ours, or an object with one or with room for one.
fn fits(text: &str) -> Result<(), NotAdded> {
    let root = parse_jsonc(text).map_err(|unreadable| {
        let place = super::tree::Lines::new(text).place(&unreadable.range);
        let (line, column) = (place.line, place.column);
        NotAdded::Syntax { line, column, message: unreadable.message }
    })?;
    let has_other = ["mcpServers", "context_servers", "mcp", "mcp_servers"];
    let is_list = match &root.kind {
        Kind::List(_) => true,
        Kind::Object(fields) => {
            let servers: Vec<_> = fields.iter().filter(|field| field.key == "servers").collect();
            let is_other = has_other.iter().any(|key| root.get(key).is_some());
            match &servers[..] {
                [] => !is_other && fields.iter().all(|field| field.key.starts_with('$')),
                [one] => one.value.items().is_some(),
                _ => false,
            }
        }
        _ => false,
    };
    if is_list { Ok(()) } else { Err(NotAdded::NoList) }
}

/// Which one has this id.
fn position(list: &CstArray, id: &str) -> Option<usize> {
    let id_of = |node: &CstNode| {
        let value = node.as_object()?.get("id")?.value()?;
        value.as_string_lit()?.decoded_value().ok()
    };
    list.elements().iter().position(|node| id_of(node).as_deref() == Some(id))
}

/// Before anything is written: the new text says what the old one said, and these servers.
fn verify(old: &str, new: &str, drafts: &[&Draft]) -> Result<(), NotAdded> {
    // Nothing is set: what is compared is what is written.
    let variables = Variables::given::<&str, &str>([]);
    let read = |text: &str| -> Reading {
        Reader { file: None, format: Format::Json, base: None, variables: &variables }.read(text)
    };
    let (before, after) = (read(old), read(new));
    let is_there = |reading: &Reading, wanted: &Draft| {
        let mut all = reading.servers.iter().map(|server| &server.draft);
        all.any(|draft| draft.id == wanted.id && draft.is_same(wanted))
    };
    let is_new = |id: &str| drafts.iter().any(|draft| draft.id == id);
    let kept = before.servers.iter().filter(|server| !is_new(&server.draft.id));
    let is_right = drafts.iter().all(|draft| is_there(&after, draft))
        && kept.into_iter().all(|server| is_there(&after, &server.draft));
    if is_right { Ok(()) } else { Err(NotAdded::Wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(text: &str) -> Vec<Draft> {
        let variables = Variables::given::<&str, &str>([]);
        let reader = Reader { file: None, format: Format::Json, base: None, variables: &variables };
        reader.read(text).servers.into_iter().map(|server| server.draft).collect()
    }

    fn added(text: &str) -> Result<String, NotAdded> {
        let drafts = drafts(
            r#"{"mcpServers": {
                "git hub": {"type": "http", "url": "https://x/${A}", "headers": {"Authorization": "Bearer ${T}"}},
                "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "$${x}"}, "disabled": true}
            }}"#,
        );
        add(text, &drafts.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_registry_is_made() {
        insta::assert_snapshot!(added("").unwrap());
    }

    #[test]
    fn comments_and_order_stay() {
        insta::assert_snapshot!(
            added(
                r#"// Ours.
{
  "$schema": "x",
  "servers": [
    // The other one.
    { "id": "other", "mcp": { "command": "x" } }, // why not
    { "id": "files", "mcp": { "command": "old" } },
  ],
}
"#
            )
            .unwrap()
        );
        insta::assert_snapshot!(added("[]").unwrap());
    }

    #[test]
    fn other_files_are_left_alone() {
        for text in [
            r#"{"mcpServers": {}}"#,
            r#"{"servers": {}}"#,
            r#"{"a": 1}"#,
            "1",
            r#"{"servers": [], "servers": []}"#,
        ] {
            assert_eq!(added(text), Err(NotAdded::NoList), "{text}");
        }
        let wrong = added("{\n  \"servers\": [,]\n}").unwrap_err();
        assert!(matches!(wrong, NotAdded::Syntax { line: 2, .. }), "{wrong:?}");
    }
}
