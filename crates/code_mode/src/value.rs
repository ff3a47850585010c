//! What a tool answered, as a program gets it: its structured content; else the JSON or the text of its only text; else a list with
//! a value for each block. A tool that failed throws, with its text.

use orchestrator::{CallResult, text};
use sandbox::{Kind, Thrown};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::thrown;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
}

/// What a resource is called by the host.
type Renamed = Option<fn(&str, &str) -> String>;

pub(super) fn of(
    server: &str,
    tool: &str,
    result: &CallResult,
    renamed: Renamed,
) -> Result<Box<RawValue>, Thrown> {
    let Some(sent) = &result.sent else {
        let bytes = result.kept.as_ref().map(|kept| format!(" ({} bytes)", kept.bytes));
        let message = format!(
            "the result of `{server}.{tool}` is too large for a program{}; ask it for less at a time",
            bytes.unwrap_or_default()
        );
        return Err(thrown(Kind::Tool, message));
    };
    if result.is_error {
        let message = text::of(&result.raw);
        return Err(Thrown { kind: Kind::Tool, message, data: data(&result.raw) });
    }
    let whole = || sent.clone();
    // What is odd comes as it is.
    let Ok(Sent { structured_content, content }) = serde_json::from_str(sent.get()) else {
        return Ok(whole());
    };
    if let Some(structured) = structured_content.filter(|value| value.get() != "null") {
        return Ok(structured.to_owned());
    }
    match content.as_deref() {
        None => Ok(whole()),
        Some([]) => Ok(raw(&Value::Null)),
        Some([only]) => Ok(block(server, only, renamed)),
        Some(blocks) => {
            let values: Vec<Box<RawValue>> =
                blocks.iter().map(|own| block(server, own, renamed)).collect();
            to_raw_value(&values).map_err(|error| thrown(Kind::Tool, error.to_string()))
        }
    }
}

#[derive(Deserialize)]
struct Text {
    r#type: String,
    text: String,
}

/// A text that is JSON of an object or a list is that; `5` and `true` may well be words.
fn block(server: &str, block: &RawValue, renamed: Renamed) -> Box<RawValue> {
    let text = serde_json::from_str::<Text>(block.get()).ok().filter(|own| own.r#type == "text");
    let Some(Text { text, .. }) = text else { return named(server, block, renamed) };
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = RawValue::from_string(text.clone())
    {
        return value;
    }
    raw(&Value::String(text))
}

/// A block that is no text, with the name of its resource under which it can be read.
fn named(server: &str, block: &RawValue, renamed: Renamed) -> Box<RawValue> {
    let (Some(renamed), Ok(mut value)) = (renamed, serde_json::from_str::<Value>(block.get()))
    else {
        return block.to_owned();
    };
    let pointer = match value.get("type").and_then(Value::as_str) {
        Some("resource_link") => "/uri",
        Some("resource") => "/resource/uri",
        _ => return block.to_owned(),
    };
    let Some(uri) = value.pointer_mut(pointer) else { return block.to_owned() };
    if let Some(theirs) = uri.as_str() {
        *uri = Value::String(renamed(server, theirs));
    }
    raw(&value)
}

/// What a failed tool said beside its text.
fn data(result: &Value) -> Option<String> {
    let data = json!({
        "content": result.get("content"),
        "structuredContent": result.get("structuredContent"),
    });
    Some(data.to_string())
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn value(result: Value) -> Result<Value, Thrown> {
        let is_error = result["isError"] == json!(true);
        let sent = to_raw_value(&result).ok();
        let result = CallResult {
            raw: result,
            sent,
            is_error,
            warnings: Vec::new(),
            kept: None,
            took: Duration::ZERO,
        };
        of("a", "b", &result, Some(|server, uri| format!("mcp+{server}:{uri}")))
            .map(|value| serde_json::from_str(value.get()).unwrap())
    }

    #[test]
    fn a_program_gets_what_it_can_use() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        for (result, expected) in [
            (
                json!({"content": [text("{\"a\": 1}")], "structuredContent": {"a": 2}}),
                json!({"a": 2}),
            ),
            (json!({"content": [text("{\"a\": 1}")]}), json!({"a": 1})),
            (json!({"content": [text(" [1]")], "structuredContent": null}), json!([1])),
            (json!({"content": [text("{not json")]}), json!("{not json")),
            (json!({"content": [text("5")]}), json!("5")),
            (json!({"content": [image]}), image.clone()),
            (json!({"content": [text("a"), image, text("[2]")]}), json!(["a", image, [2]])),
            (
                json!({"content": [{"type": "resource_link", "uri": "note:a", "name": "a"}]}),
                json!({"type": "resource_link", "uri": "mcp+a:note:a", "name": "a"}),
            ),
            (json!({"content": []}), json!(null)),
            (json!({"odd": 1}), json!({"odd": 1})),
            (json!({"content": 7}), json!({"content": 7})),
        ] {
            assert_eq!(value(result.clone()).unwrap(), expected, "{result}");
        }
    }

    #[test]
    fn a_tool_that_failed_throws() {
        let failed =
            value(json!({"isError": true, "content": [{"type": "text", "text": "no room"}]}));
        let thrown = failed.unwrap_err();
        assert_eq!((thrown.kind, thrown.message.as_str()), (Kind::Tool, "no room"));
        assert!(thrown.data.unwrap().contains("no room"));
    }
}
