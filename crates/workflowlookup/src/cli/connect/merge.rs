//! Putting a server into the text of a JSON configuration, in place: whatever else stands there, its
//! order, its comments and its spaces stay. Text in, text out.

use anyhow::ensure;
use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::Value;

use crate::cli::client::Server;
use crate::cli::jsonc::{self, Misfit};

/// What merging came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// The server is there already, just so.
    Same,
    Added(String),
    /// There was another one by this name.
    Replaced(String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}", .0.message)]
    Misfit(Misfit),
    /// The edit did more or less than it should: ours to mend.
    #[error(transparent)]
    Fault(#[from] anyhow::Error),
}

/// Puts `server` under the key `servers` of a JSON text, which may be empty.
pub(crate) fn merge(
    text: &str,
    servers: &str,
    kind: Option<&str>,
    server: &Server,
) -> Result<Merged, Failure> {
    let before = jsonc::value(text).map_err(Failure::Misfit)?;
    let bare = jsonc::without_mark(text);
    fits(bare, servers, &server.name).map_err(Failure::Misfit)?;
    let fields = fields(server, kind);
    let old = &before[servers][server.name.as_str()];
    if is_ours(old) && fields.iter().all(|(name, value)| old[*name] == *value) {
        return Ok(Merged::Same);
    }
    let root = CstRootNode::parse(bare, &jsonc::OPTIONS).map_err(anyhow::Error::new)?;
    edit(&root, servers, &server.name, &fields, old);
    let mark = &text[..text.len() - bare.len()];
    let edited = format!("{mark}{root}");
    verify(before.clone(), &edited, servers, &server.name, &fields)?;
    Ok(if old.is_null() { Merged::Added(edited) } else { Merged::Replaced(edited) })
}

fn fields(server: &Server, kind: Option<&str>) -> Vec<(&'static str, Value)> {
    let kind = kind.map(|kind| ("type", Value::from(kind)));
    let rest = [("command", server.command.as_str().into()), ("args", server.args.clone().into())];
    kind.into_iter().chain(rest).collect()
}

/// Whether an entry starts a process, as ours does. Then what else is in it, an environment perhaps, is
/// the user's and stays.
fn is_ours(entry: &Value) -> bool {
    entry["command"].is_string() && matches!(entry["type"].as_str(), None | Some("stdio"))
}

/// The places that we are about to fill must be objects, and each there only once.
fn fits(text: &str, servers: &str, name: &str) -> Result<(), Misfit> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &jsonc::OPTIONS);
    let Ok(Some(root)) = parsed.map(|parsed| parsed.value) else {
        return Ok(());
    };
    let misfit = |value: &ast::Value<'_>, message: &str| {
        Err(Misfit::at(text, value.range().start, message.to_owned()))
    };
    let ast::Value::Object(object) = &root else {
        return misfit(&root, "the whole is not an object");
    };
    let Some(servers_value) = only(text, object, servers)? else {
        return Ok(());
    };
    let ast::Value::Object(object) = servers_value else {
        return misfit(servers_value, &format!("`{servers}` is not an object"));
    };
    only(text, object, name)?;
    Ok(())
}

/// The value of a key that may be there once: of two, clients take one or the other.
fn only<'a, 'b>(
    text: &str,
    object: &'b ast::Object<'a>,
    key: &str,
) -> Result<Option<&'b ast::Value<'a>>, Misfit> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == key);
    let first = found.next();
    match found.next() {
        Some(second) => {
            Err(Misfit::at(text, second.range.start, format!("`{key}` is there twice")))
        }
        None => Ok(first.map(|property| &property.value)),
    }
}

fn edit(root: &CstRootNode, servers: &str, name: &str, fields: &[(&str, Value)], old: &Value) {
    let all = root.object_value_or_set().object_value_or_set(servers);
    match all.object_value(name) {
        Some(entry) if is_ours(old) => change(&entry, fields, old),
        _ => {
            let entry = CstInputValue::Object(
                fields.iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect(),
            );
            match all.get(name) {
                Some(property) => property.set_value(entry),
                None => {
                    all.append(name, entry);
                }
            }
        }
    }
}

/// Changes only what differs.
fn change(entry: &CstObject, fields: &[(&str, Value)], old: &Value) {
    for (name, value) in fields.iter().filter(|(name, value)| old[*name] != *value) {
        match entry.get(name) {
            Some(property) => property.set_value(input(value)),
            None => {
                entry.append(name, input(value));
            }
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        value => CstInputValue::String(value.as_str().unwrap_or_default().to_owned()),
    }
}

/// Before anything is written: the new text says what the old one said, and our entry.
fn verify(
    mut wanted: Value,
    edited: &str,
    servers: &str,
    name: &str,
    fields: &[(&str, Value)],
) -> anyhow::Result<()> {
    let entry = &mut wanted[servers][name];
    if !is_ours(entry) {
        *entry = Value::Null;
    }
    for (field, value) in fields {
        entry[*field] = value.clone();
    }
    let is_so = jsonc::value(edited).is_ok_and(|value| value == wanted);
    ensure!(is_so, "the configuration would not be right after the edit, so nothing was written");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let args = vec!["serve".to_owned()];
        Server { name: "workflowlookup".to_owned(), command: "workflowlookup".to_owned(), args }
    }

    /// The text after merging, or what is in the way.
    fn merged(text: &str) -> String {
        match merge(text, "mcpServers", None, &server()) {
            Ok(Merged::Same) => "the same".to_owned(),
            Ok(Merged::Added(text)) => format!("added\n{text}"),
            Ok(Merged::Replaced(text)) => format!("replaced\n{text}"),
            Err(Failure::Misfit(Misfit { line, column, message })) => {
                format!("{line}:{column}: {message}")
            }
            Err(Failure::Fault(fault)) => panic!("{fault:#}"),
        }
    }

    #[test]
    fn comments_commas_and_order_stay() {
        insta::assert_snapshot!(merged(r#"// Ours.
{
    "zebra": 1, // first, and stays so
    "mcpServers": {
        /* the other one */
        "other": { "command": "x", "args": [1,2,   3], },
        // "old": {},
    },
    "apple": [ ],
}
"#), @r#"
        added
        // Ours.
        {
            "zebra": 1, // first, and stays so
            "mcpServers": {
                /* the other one */
                "other": { "command": "x", "args": [1,2,   3], },
                "workflowlookup": {
                    "command": "workflowlookup",
                    "args": ["serve"],
                },
                // "old": {},
            },
            "apple": [ ],
        }
        "#);
    }

    #[test]
    fn an_environment_stays_in_an_entry_that_is_changed() {
        insta::assert_snapshot!(merged(r#"{
  "mcpServers": {
    "workflowlookup": {
      "env": { "A": "b" }, // needed
      "command": "/old/one",
      "args": ["serve"] // why not
    }
  }
}
"#), @r#"
        replaced
        {
          "mcpServers": {
            "workflowlookup": {
              "env": { "A": "b" }, // needed
              "command": "workflowlookup",
              "args": ["serve"] // why not
            }
          }
        }
        "#);
    }

    #[test]
    fn an_entry_of_another_kind_goes() {
        insta::assert_snapshot!(merged(
            r#"{"mcpServers": {"workflowlookup": {"type": "http", "url": "https://example.com"}, "b": {}}}"#
        ), @r#"
        replaced
        {"mcpServers": {"workflowlookup": {
              "command": "workflowlookup",
              "args": ["serve"]
            }, "b": {}}}
        "#);
        insta::assert_snapshot!(merged(r#"{"mcpServers": {"workflowlookup": "no"}}"#), @r#"
        replaced
        {"mcpServers": {"workflowlookup": {
              "command": "workflowlookup",
              "args": ["serve"]
            }}}
        "#);
    }

    #[test]
    fn nothing_changes_where_the_entry_is_there() {
        let text = r#"{"mcpServers": {"workflowlookup": {"type": "stdio", "args": ["serve"], "command": "workflowlookup", "env": {}}}}"#;
        assert_eq!(merged(text), "the same");
    }

    #[test]
    fn texts_with_hardly_anything_in_them_are_filled() {
        let full = merged("");
        assert_eq!(merged("\n"), full);
        assert_eq!(merged("{}\n"), full);
        insta::assert_snapshot!(merged("// nothing yet\n"), @r#"
        added
        // nothing yet
        {
          "mcpServers": {
            "workflowlookup": {
              "command": "workflowlookup",
              "args": ["serve"]
            }
          }
        }
        "#);
        insta::assert_snapshot!(merged("{\n\t\"mcpServers\": {\n\t}\n}"), @r#"
        added
        {
        	"mcpServers": {
        		"workflowlookup": {
        			"command": "workflowlookup",
        			"args": ["serve"]
        		}
        	}
        }
        "#);
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_stay() {
        let text = "\u{feff}{\r\n  \"a\": 1\r\n}\r\n";
        let Ok(Merged::Added(text)) = merge(text, "mcpServers", None, &server()) else {
            panic!("{}", merged(text));
        };
        assert!(
            text.starts_with("\u{feff}{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n"),
            "{text:?}"
        );
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
    }

    #[test]
    fn what_is_in_the_way_is_named_with_its_place() {
        let cases = [
            "[]",
            "null",
            "{\n  \"mcpServers\": []\n}",
            "{\"mcpServers\": null}",
            "{\n  \"mcpServers\": {},\n  \"mcpServers\": {}\n}",
            "{\"mcpServers\": {\"workflowlookup\": {},\n\"workflowlookup\": {}}}",
            "{\"mcpServers\": {\n",
            "{\"a\": 1\n \"b\": 2}",
            "{'a': 1}",
            "{a: 1}",
            "{} {}",
            "{\"ü\": tru}",
            &"[".repeat(10_000),
        ];
        let misfits: Vec<String> = cases.iter().map(|text| merged(text)).collect();
        insta::assert_snapshot!(misfits.join("\n"), @"
        1:1: the whole is not an object
        1:1: the whole is not an object
        2:17: `mcpServers` is not an object
        1:16: `mcpServers` is not an object
        3:3: `mcpServers` is there twice
        2:1: `workflowlookup` is there twice
        1:16: unterminated object
        1:8: expected comma
        1:2: single-quoted strings are not allowed
        1:2: expected string for object property
        1:4: text cannot contain more than one JSON value
        1:7: unexpected token
        1:513: maximum nesting depth exceeded
        ");
    }
}
