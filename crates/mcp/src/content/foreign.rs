//! What another server has said, passed on in its words. Fields that we know nothing of stay; what a revision has no
//! place for becomes a text, or goes.

use serde_json::{Map, Value, json};

use crate::revision::Traits;

/// Keys of `_meta` that are about one connection alone.
const OF_THE_PROTOCOL: &str = "io.modelcontextprotocol/";
/// The longest text that stands for something that cannot be said.
const STANDS_FOR_BYTES_MAX: usize = 4 * 1024;

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForeignResult {
    /// Content blocks.
    pub content: Vec<Value>,
    pub structured: Option<Value>,
    pub is_error: bool,
    pub meta: Map<String, Value>,
}

/// A resource as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignResource(pub Map<String, Value>);

impl ForeignResult {
    /// Reads the result of `tools/call`. What makes no sense in it is left out.
    pub fn read(mut result: Map<String, Value>) -> Self {
        let mut take = |name: &str| result.remove(name).filter(|value| !value.is_null());
        let content = match take("content") {
            Some(Value::Array(blocks)) => blocks,
            _ => Vec::new(),
        };
        let meta = match take("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let is_error = take("isError") == Some(Value::Bool(true));
        Self { content, structured: take("structuredContent"), is_error, meta }
    }

    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let mut content: Vec<Value> =
            self.content.iter().map(|block| to_block(block, traits)).collect();
        let has_place = |structured: &&Value| {
            traits.structured_content && (traits.structured_values || structured.is_object())
        };
        let structured = self.structured.as_ref();
        let placed = structured.filter(has_place);
        if let Some(structured) = structured.filter(|_| content.is_empty()) {
            // Clients of all revisions read texts.
            content.push(json!({"type": "text", "text": structured.to_string()}));
        }
        let mut result = json!({"content": content});
        if self.is_error {
            result["isError"] = json!(true);
        }
        if let Some(structured) = placed {
            result["structuredContent"] = structured.clone();
        }
        let meta = self.meta.iter().filter(|(key, _)| !key.starts_with(OF_THE_PROTOCOL));
        let meta: Map<String, Value> =
            meta.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !meta.is_empty() {
            result["_meta"] = Value::Object(meta);
        }
        result
    }
}

impl ForeignResource {
    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let mut resource = self.0.clone();
        if !traits.titles {
            resource.remove("title");
        }
        Value::Object(resource)
    }
}

/// A block that the revision has a place for.
fn to_block(block: &Value, traits: &Traits) -> Value {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    let kind = text("type").unwrap_or_default();
    let stands_for = match kind {
        "text" | "image" | "resource" => return block.clone(),
        "audio" if traits.audio => return block.clone(),
        "resource_link" if traits.resource_links => return block.clone(),
        "audio" => {
            let kind = text("mimeType").unwrap_or("unknown");
            format!("(a sound of type {kind}, for newer clients)")
        }
        "resource_link" => {
            let name = text("title").or(text("name")).unwrap_or("a resource");
            format!("{name}: {}", text("uri").unwrap_or_default())
        }
        // No revision that we know has it; a model can read it all the same.
        _ => block.to_string(),
    };
    let end = stands_for.floor_char_boundary(STANDS_FOR_BYTES_MAX);
    json!({"type": "text", "text": stands_for[..end]})
}
