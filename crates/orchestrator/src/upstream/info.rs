//! What an upstream says about itself.

use mcp::client::ServerInfo;
use serde::Serialize;
use serde_json::Value;
use untrusted_text::cut;

pub use mcp::Era;

/// So much of what a server tells models about itself is kept.
const INSTRUCTIONS_BYTES_MAX: usize = 4096;

/// Who it is, as of its handshake.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, in its own words.
    #[serde(skip)]
    pub description: Option<String>,
    pub version: String,
    /// The protocol's revision, e.g. `2025-11-25`.
    pub revision: String,
    pub era: Era,
    pub capabilities: Value,
    /// What it tells a model about itself, cut where it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl Info {
    pub(super) fn new(said: ServerInfo) -> Self {
        let short = |text: Option<String>| text.map(|text| cut(&text, INSTRUCTIONS_BYTES_MAX));
        Self {
            name: said.name,
            title: said.title,
            description: short(said.description),
            version: said.version,
            revision: said.revision.name().to_owned(),
            era: said.revision.era(),
            capabilities: said.capabilities,
            instructions: short(said.instructions),
        }
    }

    /// The same, where a server that says nothing at all about itself is given the chance.
    pub(crate) fn may_offer(&self, path: &str) -> bool {
        let says_nothing = self.capabilities.as_object().is_none_or(serde_json::Map::is_empty);
        says_nothing || self.offers(path)
    }

    /// Whether it offers something: `tools`, or `resources/subscribe`.
    pub fn offers(&self, path: &str) -> bool {
        let found = self.capabilities.pointer(&format!("/{path}"));
        !matches!(found, None | Some(Value::Null | Value::Bool(false)))
    }
}
