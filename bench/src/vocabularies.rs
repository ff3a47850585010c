//! What a text costs whoever reads it: its tokens by two public vocabularies, of which the larger count is the one that counts.

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::agent::Agent;

pub struct Vocabularies([CoreBPE; 2]);

impl Vocabularies {
    pub fn new() -> Self {
        let both = [tiktoken_rs::o200k_base(), tiktoken_rs::cl100k_base()];
        Self(both.map(|one| one.expect("a vocabulary")))
    }

    pub fn count(&self, text: &str) -> usize {
        let counts = self.0.iter().map(|one| one.encode_ordinary(text).len());
        counts.max().unwrap_or_default()
    }

    /// The tokens of what a server says about these of its tools.
    pub fn count_definitions(&self, agent: &mut Agent, names: &[&str]) -> usize {
        let listed = agent.ask("tools/list", &json!({}));
        let tools = listed["tools"].as_array().expect("tools");
        let wanted = tools.iter().filter(|tool| names.iter().any(|name| tool["name"] == *name));
        let wanted: Vec<&Value> = wanted.collect();
        assert_eq!(wanted.len(), names.len(), "{listed}");
        wanted.into_iter().map(|tool| self.count(&tool.to_string())).sum()
    }
}
