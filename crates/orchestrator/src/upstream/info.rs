//! What an upstream says about itself.

use rmcp::RoleClient;
use rmcp::service::Peer;
use serde::Serialize;
use serde_json::Value;
use untrusted_text::cut;

use super::ledger::Ledger;

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

/// The two ways of speaking MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With a handshake: 2025-11-25 and before.
    Legacy,
    /// Every request stands for itself: since 2026-07-28.
    Modern,
}

impl Info {
    /// Nothing where there was no handshake.
    pub(super) fn read(ledger: &Ledger, peer: &Peer<RoleClient>) -> Option<Self> {
        let (era, said) = ledger.handshake().said()?;
        let known = peer.peer_info()?;
        let said: Value = serde_json::from_str(said.get()).ok()?;
        let implementation = known.server_info.as_ref();
        Some(Self {
            name: implementation.map(|server| server.name.clone()).unwrap_or_default(),
            title: implementation.and_then(|server| server.title.clone()),
            description: implementation
                .and_then(|server| server.description.as_deref())
                .map(|text| cut(text, INSTRUCTIONS_BYTES_MAX)),
            version: implementation.map(|server| server.version.clone()).unwrap_or_default(),
            revision: known.protocol_version.as_str().to_owned(),
            era,
            capabilities: said.get("capabilities").cloned().unwrap_or_default(),
            instructions: known
                .instructions
                .as_deref()
                .map(|text| cut(text, INSTRUCTIONS_BYTES_MAX)),
        })
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
