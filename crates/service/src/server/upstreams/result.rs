//! What an upstream's tool came to, for our clients: everything that it said, resources by names under which they can be
//! read here, and what does not add up.

use mcp::Outcome;
use mcp::content::ForeignResult;
use orchestrator::CallResult;
use serde_json::{Map, Value, json};

use super::resource_uri;

pub(super) fn outcome(server: &str, called: CallResult) -> Outcome {
    let mut result = match called.raw {
        Value::Object(result) => result,
        other => Map::from_iter([("result".to_owned(), other)]),
    };
    if let Some(text) = text_instead(&result) {
        result.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
    }
    let mut result = ForeignResult::read(result);
    result.is_error |= called.is_error;
    for block in &mut result.content {
        rename(server, block);
    }
    if let Some(kept) = &called.kept {
        result.content.push(json!({
            "type": "resource_link",
            "uri": kept.uri,
            "name": "the whole result",
            "mimeType": "application/json",
            "size": kept.bytes,
        }));
    }
    let said = |warning: &String| {
        result
            .content
            .iter()
            .any(|block| block.get("text").and_then(Value::as_str) == Some(warning))
    };
    let warnings: Vec<Value> = called
        .warnings
        .iter()
        .filter(|warning| !said(warning))
        .map(|warning| json!({"type": "text", "text": format!("[{warning}]")}))
        .collect();
    result.content.extend(warnings);
    Outcome::Foreign(Box::new(result))
}

/// The JSON of a result that has no content: nothing that a server says is lost. Structured content is shown as text by who
/// writes the answer.
fn text_instead(result: &Map<String, Value>) -> Option<String> {
    let content = result.get("content").and_then(Value::as_array);
    let has_structured = result.get("structuredContent").is_some_and(|it| !it.is_null());
    if has_structured || content.is_some_and(|blocks| !blocks.is_empty()) {
        return None;
    }
    let is_said = |name: &str| !matches!(name, "_meta" | "resultType" | "isError");
    let is_said = |name: &str| is_said(name) && !(name == "content" && content.is_some());
    let said = result.iter().filter(|(name, _)| is_said(name));
    let said: Map<String, Value> =
        said.map(|(name, value)| (name.clone(), value.clone())).collect();
    // Nothing was said, and in the right form.
    let is_empty = said.is_empty() && content.is_some();
    (!is_empty).then(|| Value::Object(said).to_string())
}

/// What a resource is called here, so that it can be read and followed.
fn rename(server: &str, block: &mut Value) {
    let place = match block.get("type").and_then(Value::as_str) {
        Some("resource_link") => block.get_mut("uri"),
        Some("resource") => block.pointer_mut("/resource/uri"),
        _ => None,
    };
    if let Some(place) = place
        && let Some(uri) = place.as_str()
    {
        *place = json!(resource_uri(server, uri));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_content_is_its_json() {
        let text = |result: Value| text_instead(result.as_object().unwrap());
        assert_eq!(text(json!({"toolResult": {"x": 1}})).unwrap(), r#"{"toolResult":{"x":1}}"#);
        assert_eq!(text(json!({"content": [], "x": 1, "_meta": {}})).unwrap(), r#"{"x":1}"#);
        assert_eq!(text(json!({"content": "odd"})).unwrap(), r#"{"content":"odd"}"#);
        assert_eq!(text(json!({"isError": true})).unwrap(), "{}");
        assert_eq!(text(json!({"content": [], "resultType": "complete"})), None);
        assert_eq!(text(json!({"structuredContent": 5})), None);
        assert_eq!(text(json!({"content": [{"type": "text", "text": "a"}], "x": 1})), None);
    }
}
