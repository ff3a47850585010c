//! What a server says about itself, made once: the handshake's answer and the list of tools, for each
//! revision.

use std::borrow::Cow;
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
    /// Those of `tools` that `tools/list` omits and `tools/call` refuses. Their methods still answer.
    pub hidden: Vec<HiddenTool>,
    /// Behind them, those that are there only at times.
    pub more: Option<More>,
    /// Calls write lines for the client's log.
    pub logs: bool,
    /// Calls are carried out with what their requests say about themselves: [`crate::Caller::traced`].
    pub traces: bool,
    /// The list of tools may be another while we run.
    pub tools_change: bool,
    /// Which resources nobody can follow; all others may be asked for.
    pub unfollowable: Option<Unfollowable>,
    /// By revision, without the others and with them.
    lists: [[OnceLock<String>; 5]; 2],
    metas: [OnceLock<String>; 5],
    /// By tool, in their order, the others behind.
    mirrored: OnceLock<Vec<Vec<Mirrored>>>,
}

/// A tool that clients reach only by its method.
#[derive(Debug, Clone, Copy)]
pub struct HiddenTool {
    pub name: &'static str,
    /// What a client should call instead.
    pub advice: &'static str,
}

/// Tools that come and go while we run. Whoever makes them do so tells it too: [`crate::Changed::tools`].
pub struct More {
    pub tools: Vec<Tool>,
    /// For the model, behind the other instructions.
    pub instructions: &'static str,
    /// Whether they are there now. Called whenever somebody lists tools or calls one of these.
    pub are_there: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Says of a resource why it cannot be followed, if that is known. Must not wait.
pub struct Unfollowable(pub Box<WhyNot>);

type WhyNot = dyn Fn(&str) -> Option<String> + Send + Sync;

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
            hidden: Vec::new(),
            more: None,
            logs: false,
            traces: false,
            tools_change: false,
            unfollowable: None,
            lists: Default::default(),
            metas: Default::default(),
            mirrored: OnceLock::new(),
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        let named = |tool: &&Tool| tool.name == name;
        self.tools.iter().find(named).or_else(|| {
            let more = self.more.as_ref()?;
            more.tools.iter().find(named).filter(|_| (more.are_there)())
        })
    }

    pub(crate) fn hidden_tool(&self, name: &str) -> Option<&HiddenTool> {
        self.hidden.iter().find(|tool| tool.name == name)
    }

    /// All that there ever are.
    fn all(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().chain(self.more.iter().flat_map(|more| &more.tools))
    }

    /// The arguments of a tool that stand in headers too.
    pub(crate) fn mirrored(&self, tool: &str) -> &[Mirrored] {
        let at = self.all().position(|own| own.name == tool);
        let all = self.mirrored.get_or_init(|| {
            let schemas = self.all().map(|tool| (tool.about)().input_schema);
            schemas.map(|schema| Mirrored::all(&schema)).collect()
        });
        at.and_then(|at| all.get(at)).map_or(&[], Vec::as_slice)
    }

    fn has_more(&self) -> bool {
        self.more.as_ref().is_some_and(|more| (more.are_there)())
    }

    /// How to use what is here now.
    pub(crate) fn instructions(&self) -> Cow<'static, str> {
        match self.more.as_ref().map(|more| more.instructions) {
            Some(more) if !more.is_empty() && self.has_more() => {
                format!("{} {more}", self.instructions).into()
            }
            _ => self.instructions.into(),
        }
    }

    /// Why a resource cannot be followed, if that is known.
    pub(crate) fn why_not_follow(&self, uri: &str) -> Option<String> {
        self.unfollowable.as_ref().and_then(|Unfollowable(why)| why(uri))
    }

    /// The result of `tools/list`, as JSON.
    pub(crate) fn tool_list(&self, revision: Revision) -> &str {
        let has_more = self.has_more();
        self.lists[usize::from(has_more)][revision as usize].get_or_init(|| {
            let traits = revision.traits();
            let count = if has_more { usize::MAX } else { self.tools.len() };
            let tools = self.all().take(count);
            let listed = tools.filter(|tool| self.hidden_tool(tool.name).is_none());
            let tools: Vec<Value> = listed.map(|tool| tool.to_json(&traits)).collect();
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
        json!({crate::era::modern::SERVER_INFO: self.info(revision)})
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
        // What was passed on may have said something there.
        for (key, value) in self.meta(revision).as_object_mut().into_iter().flatten() {
            result["_meta"][key] = value.take();
        }
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

impl std::fmt::Debug for More {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.tools.iter().map(|tool| tool.name)).finish()
    }
}

impl std::fmt::Debug for Unfollowable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Unfollowable")
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
