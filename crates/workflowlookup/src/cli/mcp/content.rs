//! What a tool or a resource came to, printed: texts as they are, JSON for people, and what cannot be printed in files.

use orchestrator::text;
use serde_json::{Value, json};

use super::files::Folder;
use super::json_text;
use crate::cli::terminal::YELLOW;
use crate::cli::{Failure, Terminal};

/// Something to print.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    /// A value that no text says.
    Json(&'a Value),
    /// A line about what is no text.
    About(String),
    /// The same, with what is to be kept in a file.
    File {
        about: String,
        mime: Option<&'a str>,
        data: &'a str,
    },
}

/// Prints the result of a call, with a blank line between its parts.
pub(super) fn print(
    result: &Value,
    folder: &mut Folder<'_>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    print_pieces(pieces(result), folder, terminal)
}

/// Prints what a resource holds. A single one that is no text goes to a pipe as it is.
pub(super) fn print_resource(
    result: &Value,
    folder: &mut Folder<'_>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let contents = result.get("contents").and_then(Value::as_array);
    let contents = contents.map(Vec::as_slice).unwrap_or_default();
    if let ([content], false) = (contents, terminal.is_terminal())
        && let Some(bytes) =
            content.get("blob").and_then(Value::as_str).and_then(super::files::decoded)
        && !folder.is_wanted()
    {
        return Ok(terminal.bytes(&bytes)?);
    }
    let pieces = match contents {
        [] => vec![Piece::Json(result)],
        // Alone, it is what was asked for, and needs no description.
        [content] => resource(content).into_iter().skip(usize::from(is_text(content))).collect(),
        contents => contents.iter().flat_map(resource).collect(),
    };
    print_pieces(pieces, folder, terminal)
}

fn print_pieces(
    pieces: Vec<Piece<'_>>,
    folder: &mut Folder<'_>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    // What cannot be saved keeps nobody from seeing the rest.
    let mut unsaved = None;
    for (at, piece) in pieces.into_iter().enumerate() {
        if at > 0 {
            terminal.line("")?;
        }
        match piece {
            Piece::Text(text) if terminal.is_terminal() && json_text::is_json(text) => {
                json_text::print(text, terminal)?;
            }
            Piece::Text(text) => {
                terminal.foreign(text)?;
                if !terminal.is_terminal() && !text.ends_with('\n') {
                    terminal.line("")?;
                }
            }
            Piece::Json(value) => json_text::print(&value.to_string(), terminal)?,
            Piece::About(about) => terminal.line(&about)?,
            Piece::File { about, mime, data } => match folder.save(mime, data) {
                Ok(Some(path)) => {
                    terminal.line(&with_fate(&about, &format!("saved as {}", path.display())))?
                }
                Err(failure) => {
                    terminal.line(&with_fate(&about, "not saved"))?;
                    unsaved.get_or_insert(failure);
                }
                Ok(None) => {
                    terminal.line(&about)?;
                    let message = "it is not base64, and was not saved";
                    terminal.complain(YELLOW, "warning", message, None)?;
                }
            },
        }
    }
    unsaved.map_or(Ok(()), Err)
}

/// `[image: image/png, 95 bytes]` and what became of it.
fn with_fate(about: &str, fate: &str) -> String {
    let about = about.strip_suffix(']').unwrap_or(about);
    format!("{about}, {fate}]")
}

fn pieces(result: &Value) -> Vec<Piece<'_>> {
    let blocks = result.get("content").and_then(Value::as_array);
    let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
    let mut pieces: Vec<Piece<'_>> = blocks.iter().flat_map(block).collect();
    // The blocks say for people what the value says for machines; an image would come in letters once more.
    if blocks.is_empty() {
        let structured = result.get("structuredContent").filter(|value| !value.is_null());
        pieces.push(Piece::Json(structured.unwrap_or(result)));
    }
    pieces
}

fn block(block: &Value) -> Vec<Piece<'_>> {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match (field("type"), field("text"), field("data"), block.get("resource")) {
        (Some("text"), Some(text), ..) => vec![Piece::Text(text)],
        (Some("image" | "audio"), _, Some(data), _) => {
            vec![Piece::File { about: about(block), mime: field("mimeType"), data }]
        }
        (Some("resource"), _, _, Some(content)) => resource(content),
        _ => vec![Piece::About(about(block))],
    }
}

/// A line about it, and its text, if it is one.
fn resource(content: &Value) -> Vec<Piece<'_>> {
    let field = |name: &str| content.get(name).and_then(Value::as_str);
    let about = about(&json!({"type": "resource", "resource": content}));
    match (field("text"), field("blob")) {
        (Some(text), _) => vec![Piece::About(about), Piece::Text(text)],
        (None, Some(data)) => vec![Piece::File { about, mime: field("mimeType"), data }],
        (None, None) => vec![Piece::About(about)],
    }
}

fn is_text(content: &Value) -> bool {
    content.get("text").is_some_and(Value::is_string)
}

/// The line about one block.
fn about(block: &Value) -> String {
    text::of(&json!({"content": [block]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_content_becomes_something() {
        let result = json!({
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "text", "text": "{\"b\": 1, \"a\": [2]}"},
                {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
                {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"},
                {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///c.pdf", "mimeType": "application/pdf", "blob": "aGVsbG8="}},
                {"type": "image"},
                {"type": "video", "length": 5},
                {"type": "text"},
                7,
            ],
            "structuredContent": {"a": [2], "b": 1},
        });
        let shown: Vec<String> = pieces(&result).iter().map(|piece| format!("{piece:?}")).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn a_value_that_no_text_says_is_shown() {
        let (value, text) = (json!({"a": 1}), "all is well");
        let result =
            json!({"content": [{"type": "text", "text": text}], "structuredContent": value});
        assert_eq!(pieces(&result), [Piece::Text(text)]);
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
        let result = json!({"content": [image], "structuredContent": {"content": [image]}});
        assert!(matches!(pieces(&result).as_slice(), [Piece::File { .. }]));
        let result = json!({"content": [], "structuredContent": value});
        assert_eq!(pieces(&result), [Piece::Json(&value)]);
        let result = json!({"content": []});
        assert_eq!(pieces(&result), [Piece::Json(&result)]);
        let result = json!({"toolResult": 5});
        assert_eq!(pieces(&result), [Piece::Json(&result)]);
    }
}
