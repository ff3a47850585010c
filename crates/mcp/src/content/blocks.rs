//! What tools, prompts and questions are made of: texts, pictures, sounds and resources. A revision that has no place
//! for one of them gets a text that says what it would have been.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Resource;
use crate::revision::Traits;

/// One piece of what is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Text(String),
    Image {
        bytes: Vec<u8>,
        mime_type: &'static str,
    },
    Audio {
        bytes: Vec<u8>,
        mime_type: &'static str,
    },
    /// A resource, with what it holds.
    Embedded(ResourceContents),
    /// A resource, by where it can be read.
    Link(Resource),
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContents {
    pub uri: String,
    pub mime_type: &'static str,
    pub held: Held,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    Text(String),
    Bytes(Vec<u8>),
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub block: Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { bytes, mime_type } => {
                json!({"type": "image", "data": STANDARD.encode(bytes), "mimeType": mime_type})
            }
            Self::Audio { bytes, mime_type } if traits.audio => {
                json!({"type": "audio", "data": STANDARD.encode(bytes), "mimeType": mime_type})
            }
            Self::Audio { mime_type, .. } => {
                let text = format!("(a sound of type {mime_type}, for newer clients)");
                json!({"type": "text", "text": text})
            }
            Self::Embedded(contents) => {
                json!({"type": "resource", "resource": contents.to_json()})
            }
            Self::Link(resource) if traits.resource_links => {
                let mut link = resource.to_json(traits);
                link["type"] = json!("resource_link");
                link
            }
            Self::Link(Resource { title, uri, .. }) => {
                json!({"type": "text", "text": format!("{title}: {uri}")})
            }
        }
    }
}

impl ResourceContents {
    pub(crate) fn to_json(&self) -> Value {
        let mut contents = json!({"uri": self.uri, "mimeType": self.mime_type});
        match &self.held {
            Held::Text(text) => contents["text"] = json!(text),
            Held::Bytes(bytes) => contents["blob"] = json!(STANDARD.encode(bytes)),
        }
        contents
    }
}

impl Message {
    /// What a user says.
    pub fn user(block: Block) -> Self {
        Self { role: Role::User, block }
    }

    pub(crate) fn to_json(&self, traits: &Traits) -> Value {
        let role = match self.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({"role": role, "content": self.block.to_json(traits)})
    }
}
