//! What the suite says about a scenario.

use std::error::Error;

use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Default, Deserialize)]
pub(crate) struct Context {
    #[serde(rename = "toolCalls")]
    tool_calls: Option<Vec<ToolCall>>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
}

/// Where the secret of a client that was registered by hand stands.
const SECRET: &str = "CLIENT_SECRET";

impl Context {
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        let mut context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(text) => serde_json::from_str(&text)?,
            Err(_) => Self::default(),
        };
        // Nothing is as good as not there, and is sent only where the tool's schema has it.
        for call in context.tool_calls.iter_mut().flatten() {
            call.arguments.retain(|_, value| !value.is_null());
        }
        Ok(context)
    }

    /// The calls to make, where they are not those of all tools.
    pub(crate) fn tool_calls(&self) -> Option<&[ToolCall]> {
        self.tool_calls.as_deref()
    }

    /// What the entry says about logging in.
    pub(crate) fn auth(&self) -> Option<Value> {
        let id = self.client_id.as_ref()?;
        let mut auth = json!({"type": "oauth", "clientId": id});
        if self.client_secret.is_some() {
            auth["clientSecret"] = format!("${{{SECRET}}}").into();
        }
        Some(auth)
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        self.client_secret.iter().map(|secret| (SECRET, secret.clone())).collect()
    }
}
