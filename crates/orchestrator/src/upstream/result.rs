//! What a call came to: whether it is what the tool promised, and a shorter form of it where it is too long. A long one is
//! never made into a tree as a whole.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tool_schema::arguments::Verdict;
use tool_schema::shallow;
use tool_schema::tool::Tool;

use super::call_context::CallContext;
use super::checks::Checks;
use super::failure::Failure;

/// What stands beside the content of a result that is cut is kept up to here.
const ASIDE_BYTES_MAX: usize = 16 * 1024;
const ASIDE_FIELDS_MAX: usize = 64;
/// So many blocks of a result that is cut are looked at.
const BLOCKS_MAX: usize = 1_000;
/// Larger results are looked at before they are taken apart: there may be very many parts.
const LOOKED_AT_BYTES: usize = 1024 * 1024;
const PARTS_MAX: usize = 1_000_000;
/// Larger structured content is not checked.
const CHECKED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// For a field that is there where it is `null`, too.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// A result, taken apart as far as we care.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outline<'r> {
    #[serde(borrow, default)]
    is_error: Option<&'r RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'r RawValue>,
}

impl<'r> Outline<'r> {
    pub(super) fn of(raw: &'r RawValue) -> Self {
        // What is no object has none of it.
        serde_json::from_str(raw.get()).unwrap_or_default()
    }

    pub(super) fn is_error(&self) -> bool {
        self.is_error.is_some_and(|is_error| is_error.get() == "true")
    }

    /// What the tool promised and did not keep.
    pub(super) async fn broken_promises(
        &self,
        checks: &Checks,
        tool: &Tool,
        context: &CallContext,
    ) -> Vec<String> {
        let Some(schema) = tool.output_schema.as_ref().filter(|_| !self.is_error()) else {
            return Vec::new();
        };
        let Some(structured) = self.structured_content else {
            return vec![
                "the tool has an `outputSchema`, and sent no `structuredContent`".to_owned(),
            ];
        };
        if structured.get().len() > CHECKED_BYTES_MAX {
            return vec!["`structuredContent` is not checked, for it is too large".to_owned()];
        }
        let Ok(structured) = serde_json::from_str::<Value>(structured.get()) else {
            return vec![
                "`structuredContent` is not checked, for it is nested too deeply".to_owned(),
            ];
        };
        match checks.check(schema, structured, context).await {
            Ok((Verdict::Fits, _)) => Vec::new(),
            Ok((Verdict::Wrong(problems), _)) => problems
                .into_iter()
                .map(|problem| {
                    format!("`structuredContent` is not what `outputSchema` says: {problem}")
                })
                .collect(),
            Ok((Verdict::Unchecked(why), _)) => {
                vec![format!("`structuredContent` is not checked: {why}")]
            }
            Err(_) => vec!["`structuredContent` is not checked, for the time is over".to_owned()],
        }
    }
}

/// Takes all of it apart.
pub(super) fn read(raw: &RawValue) -> Result<Value, Failure> {
    if raw.get().len() > LOOKED_AT_BYTES && !shallow::has_at_most(raw.get(), PARTS_MAX) {
        let why = format!("its result has more than {PARTS_MAX} parts, or cannot be taken apart");
        return Err(Failure::Protocol { why });
    }
    serde_json::from_str(raw.get()).map_err(|error| Failure::Protocol {
        why: format!("its result cannot be taken apart: {error}"),
    })
}

/// A result of at most so many bytes of content, and a word in front that says where the rest is: what is behind may be
/// cut once more by who shows it.
pub(super) fn cut(raw: &RawValue, limit: usize, word: &str) -> Value {
    let mut room = limit;
    let mut content = vec![json!({"type": "text", "text": word})];
    let fields = shallow::fields(raw.get(), ASIDE_FIELDS_MAX).unwrap_or_default();
    for (_, blocks) in fields.iter().filter(|(name, _)| name == "content") {
        let blocks = shallow::items(blocks.get(), BLOCKS_MAX).map(|blocks| blocks.items);
        for block in blocks.unwrap_or_default() {
            content.extend(cut_block(block, &mut room));
        }
    }
    let mut short = Map::new();
    for (name, value) in fields {
        let is_small = value.get().len() <= ASIDE_BYTES_MAX.min(room);
        if name != "content"
            && is_small
            && let Ok(value) = serde_json::from_str(value.get())
        {
            short.insert(name.into_owned(), value);
        }
    }
    short.insert("content".to_owned(), Value::Array(content));
    Value::Object(short)
}

/// A block that fits, a shorter one, or a word about it; nothing where there is no room for anything.
fn cut_block(block: &RawValue, room: &mut usize) -> Option<Value> {
    #[derive(Deserialize)]
    struct Block<'b> {
        #[serde(borrow, rename = "type", default)]
        kind: Cow<'b, str>,
        #[serde(borrow)]
        text: Option<Cow<'b, str>>,
    }
    let size = block.get().len();
    if size <= *room {
        *room -= size;
        return serde_json::from_str(block.get()).ok();
    }
    let parsed = serde_json::from_str::<Block<'_>>(block.get()).ok();
    let text = match parsed {
        Some(Block { kind, text: Some(text) }) if kind == "text" => {
            let end = text.floor_char_boundary(*room);
            text[..end].to_owned()
        }
        Some(Block { kind, .. }) if kind.len() <= 40 => {
            format!("[{kind} of {size} bytes, left out]")
        }
        _ => format!("[something of {size} bytes, left out]"),
    };
    if text.is_empty() || *room == 0 {
        return None;
    }
    *room = room.saturating_sub(text.len());
    Some(json!({"type": "text", "text": text}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn a_long_result_is_cut_where_it_is_long() {
        let result = json!({
            "content": [
                {"type": "text", "text": "short"},
                {"type": "image", "data": "A".repeat(500), "mimeType": "image/png"},
                {"type": "text", "text": "ä".repeat(200)},
                {"type": "text", "text": "too late"},
            ],
            "structuredContent": {"a": "x".repeat(500)},
            "isError": false,
        });
        let cut = cut(&raw(&result), 200, "the rest is there");
        let content = cut["content"].as_array().unwrap();
        assert_eq!(content[0]["text"], "the rest is there");
        assert_eq!(content[1]["text"], "short");
        assert_eq!(content[2]["text"], "[image of 549 bytes, left out]");
        let text = content[3]["text"].as_str().unwrap();
        assert!(text.len() <= 200 && text.chars().all(|letter| letter == 'ä'), "{text}");
        assert!(cut.get("structuredContent").is_none());
        assert!(cut.to_string().len() < 500);
    }

    #[test]
    fn what_is_no_result_is_cut_too() {
        let structured = json!({"structuredContent": {"a": "x".repeat(500)}, "b": 1});
        let more = json!([{"type": "text", "text": "more"}]);
        assert_eq!(cut(&raw(&structured), 100, "more"), json!({"content": more, "b": 1}));
        for odd in [json!([1]), json!("x"), json!(null), json!({"content": 5})] {
            assert_eq!(cut(&raw(&odd), 100, "more"), json!({"content": more}));
        }
    }

    #[test]
    fn an_outline_takes_anything() {
        for (text, is_error) in [
            ("{}", false),
            ("[]", false),
            ("null", false),
            (r#"{"isError":true}"#, true),
            (r#"{"isError":"yes"}"#, false),
        ] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert_eq!(Outline::of(&raw).is_error(), is_error, "{text}");
        }
        let null = RawValue::from_string(r#"{"structuredContent":null}"#.to_owned()).unwrap();
        assert!(Outline::of(&null).structured_content.is_some());
    }
}
