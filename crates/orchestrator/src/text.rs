//! The text form of a tool's result, for whoever cannot show anything else: its text blocks, joined by a blank line; a line
//! about each block that is no text; or the result's JSON, where it has no content.

use serde_json::Value;
use untrusted_text::cut;

/// How much is shown of a name or an address.
const SHOWN_BYTES_MAX: usize = 200;

/// The text of what `tools/call` answered.
pub fn of(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) else {
        return result.to_string();
    };
    let blocks: Vec<String> = blocks.iter().map(block).collect();
    blocks.join("\n\n")
}

fn block(block: &Value) -> String {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    match field("type") {
        Some("text") => match field("text") {
            Some(text) => text.to_owned(),
            None => "[text without a text]".to_owned(),
        },
        Some(kind @ ("image" | "audio")) => {
            about(kind, [field("mimeType").map(shown), field("data").map(size_of_base64)])
        }
        Some("resource_link") => {
            let name = field("title").or_else(|| field("name")).map(shown);
            about("resource link", [name, field("uri").map(shown), field("mimeType").map(shown)])
        }
        Some("resource") => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let field = |name: &str| resource.get(name).and_then(Value::as_str);
            let size = match (field("text"), field("blob")) {
                (Some(text), _) => Some(size(text.len())),
                (None, blob) => blob.map(size_of_base64),
            };
            about("resource", [field("uri").map(shown), field("mimeType").map(shown), size])
        }
        Some(other) => about(&shown(other), [Some(size(block.to_string().len()))]),
        None => about("something without a type", [Some(size(block.to_string().len()))]),
    }
}

fn about<const N: usize>(kind: &str, facts: [Option<String>; N]) -> String {
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.as_slice() {
        [] => format!("[{kind}]"),
        facts => format!("[{kind}: {}]", facts.join(", ")),
    }
}

/// On one line, and not too long.
fn shown(text: &str) -> String {
    let line: String =
        text.chars().filter(|sign| !sign.is_control()).take(SHOWN_BYTES_MAX + 1).collect();
    cut(&line, SHOWN_BYTES_MAX)
}

fn size_of_base64(data: &str) -> String {
    let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    size((data.len() / 4 * 3 + data.len() % 4 * 3 / 4).saturating_sub(padding))
}

fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_content_has_a_text() {
        let text = of(&json!({"content": [
            {"type": "text", "text": "first\nline"},
            {"type": "text", "text": ""},
            {"type": "text"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "data": "A".repeat(40_000)},
            {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "hello"}},
            {"type": "resource", "resource": {"uri": "file:///c\u{1b}[31m", "mimeType": "x/y", "blob": "aGVsbG8h"}},
            {"type": "resource"},
            {"type": "video", "length": 5},
            {"odd": true},
            7,
            {"type": "text", "text": "last"},
        ], "structuredContent": {"a": 1}}));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_result_without_content_is_its_json() {
        for result in [
            json!({}),
            json!({"toolResult": 5}),
            json!({"content": []}),
            json!({"content": "x"}),
            json!(null),
        ] {
            assert_eq!(of(&result), result.to_string());
        }
    }

    #[test]
    fn sizes_of_base64_are_exact() {
        for (data, bytes) in
            [("", 0), ("YWJjZA==", 4), ("YWI=", 2), ("YWJj", 3), ("YWJjZA", 4), ("YWI", 2)]
        {
            assert_eq!(size_of_base64(data), format!("{bytes} bytes"), "{data}");
        }
    }
}
