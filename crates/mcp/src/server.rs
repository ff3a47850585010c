//! What a server says about itself, made once: the handshake's answer and the list of tools, for each
//! revision.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::content::Tool;
use crate::mirrored::Mirrored;
use crate::revision::Revision;

/// How long a client may keep a list, in milliseconds. Changes are notified besides.
const LIST_TTL_MS: u64 = 60_000;

#[derive(Debug)]
pub struct Server {
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
    pub description: &'static str,
    /// For the model: how to use what is here.
    pub instructions: &'static str,
    pub tools: Vec<Tool>,
    /// Calls write lines for the client's log.
    pub logs: bool,
    /// Calls are carried out with what their requests say about themselves: [`crate::Caller::traced`].
    pub traces: bool,
    /// The list of tools may be another while we run.
    pub tools_change: bool,
    lists: [OnceLock<String>; 5],
    metas: [OnceLock<String>; 5],
    /// By tool, in their order.
    mirrored: OnceLock<Vec<Vec<Mirrored>>>,
}

impl Server {
    pub fn new(
        name: &'static str,
        title: &'static str,
        version: &'static str,
        description: &'static str,
        instructions: &'static str,
        tools: Vec<Tool>,
    ) -> Self {
        Self {
            name,
            title,
            version,
            description,
            instructions,
            tools,
            logs: false,
            traces: false,
            tools_change: false,
            lists: Default::default(),
            metas: Default::default(),
            mirrored: OnceLock::new(),
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The arguments of a tool that stand in headers too.
    pub(crate) fn mirrored(&self, tool: &str) -> &[Mirrored] {
        let at = self.tools.iter().position(|own| own.name == tool);
        let all = self.mirrored.get_or_init(|| {
            let schemas = self.tools.iter().map(|tool| (tool.about)().input_schema);
            schemas.map(|schema| Mirrored::all(&schema)).collect()
        });
        at.and_then(|at| all.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The result of `tools/list`, as JSON.
    pub(crate) fn tool_list(&self, revision: Revision) -> &str {
        self.lists[revision as usize].get_or_init(|| {
            let traits = revision.traits();
            let tools: Vec<Value> = self.tools.iter().map(|tool| tool.to_json(&traits)).collect();
            self.complete(revision, json!({"tools": tools}), Caching::List).to_string()
        })
    }

    pub(crate) fn info(&self, revision: Revision) -> Value {
        let traits = revision.traits();
        let mut info = json!({"name": self.name, "version": self.version});
        if traits.titles {
            info["title"] = json!(self.title);
        }
        if traits.described_info {
            info["description"] = json!(self.description);
        }
        info
    }

    pub(crate) fn capabilities(&self, revision: Revision) -> Value {
        let traits = revision.traits();
        let changed = traits.list_changed;
        let mut capabilities = json!({
            "tools": {"listChanged": changed && self.tools_change},
            "resources": {"subscribe": true, "listChanged": changed},
            "prompts": {"listChanged": changed},
        });
        if traits.completions_capability {
            capabilities["completions"] = json!({});
        }
        if self.logs {
            capabilities["logging"] = json!({});
        }
        if traits.examples {
            // The product's first protocol has this field, and it is false.
            capabilities["tools"]["notifyProgress"] = json!(false);
        }
        capabilities
    }

    /// Who says it, for a revision that wants to know with every result.
    pub(crate) fn meta(&self, revision: Revision) -> Value {
        json!({"io.modelcontextprotocol/serverInfo": self.info(revision)})
    }

    /// The same as JSON, made once.
    pub(crate) fn meta_text(&self, revision: Revision) -> &str {
        self.metas[revision as usize].get_or_init(|| self.meta(revision).to_string())
    }

    /// A result with what its revision wants in every result.
    pub(crate) fn complete(
        &self,
        revision: Revision,
        mut result: Value,
        caching: Caching,
    ) -> Value {
        if !revision.traits().is_modern {
            return result;
        }
        result["resultType"] = json!("complete");
        result["_meta"] = self.meta(revision);
        match caching {
            Caching::None => {}
            Caching::List | Caching::Live => {
                let ttl = if caching == Caching::Live { 0 } else { LIST_TTL_MS };
                result["ttlMs"] = json!(ttl);
                result["cacheScope"] = json!("private");
            }
        }
        result
    }
}

/// Whether a result says how long it may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    None,
    List,
    /// That it may not.
    Live,
}

impl Caching {
    pub(crate) fn of(is_live: bool) -> Self {
        if is_live { Self::Live } else { Self::List }
    }
}
