//! What an upstream has of one kind: all pages of it, within bounds.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;
use tool_schema::shallow;
use tool_schema::tool::{Json, TOOLS_MAX, Tool, Tools};

use registry::policy::Policy;

/// So many resources, templates or prompts are kept of one server.
const ITEMS_MAX: usize = 10_000;

/// Tools, in the server's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    pub tools: Vec<Tool>,
    /// What is odd about the list, or missing in it, and why.
    pub notes: Vec<String>,
    places: HashMap<String, usize>,
}

impl ToolList {
    pub(crate) fn new(tools: Vec<Tool>, notes: Vec<String>) -> Self {
        let places = tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        Self { tools, notes, places }
    }

    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.places.get(name)?)
    }

    /// Those that an entry's rules let through; nothing where that is all of them.
    pub(crate) fn offered_by(&self, policy: &Policy) -> Option<Self> {
        let is_offered = |tool: &&Tool| policy.offers(&tool.name).is_ok();
        let offered: Vec<Tool> = self.tools.iter().filter(is_offered).cloned().collect();
        (offered.len() < self.tools.len()).then(|| Self::new(offered, self.notes.clone()))
    }
}

/// Resources, templates or prompts, as the server words them.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct List {
    pub items: Vec<Json>,
    /// Why some are missing, if some are.
    pub notes: Vec<String>,
}

/// A list that is being put together.
pub(super) trait Collect: Default {
    type List;

    /// The items of one page. Says whether there is room for more.
    fn page(&mut self, items: &RawValue, allowed: &[String]) -> bool;

    fn done(self, note: Option<String>) -> Self::List;
}

#[derive(Default)]
pub(super) struct CollectTools(Tools);

impl Collect for CollectTools {
    type List = ToolList;

    fn page(&mut self, items: &RawValue, allowed: &[String]) -> bool {
        // One more than there is room for, so that it is noted that there are more.
        let Some(page) = shallow::items(items.get(), TOOLS_MAX + 1) else {
            // What is wrong with a list is said by who reads it.
            self.0.add_page(items);
            return true;
        };
        for tool in page.items {
            if !has_headers(tool) || is_among(tool, allowed) {
                self.0.add(tool);
            }
        }
        self.0.tools.len() < TOOLS_MAX
    }

    fn done(self, note: Option<String>) -> ToolList {
        let notes = self.0.notes.iter().map(ToString::to_string).chain(note).collect();
        ToolList::new(self.0.tools, notes)
    }
}

/// Whether a tool wants arguments as headers. Those whose wishes make no sense must not be used.
fn has_headers(tool: &RawValue) -> bool {
    tool.get().contains("x-mcp-header")
}

fn is_among(tool: &RawValue, allowed: &[String]) -> bool {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let named = serde_json::from_str::<Named>(tool.get());
    named.is_ok_and(|named| allowed.contains(&named.name))
}

#[derive(Default)]
pub(super) struct CollectItems {
    items: Vec<Json>,
    is_odd: bool,
    has_more: bool,
}

impl Collect for CollectItems {
    type List = List;

    fn page(&mut self, items: &RawValue, _: &[String]) -> bool {
        match shallow::items(items.get(), ITEMS_MAX - self.items.len()) {
            Some(page) => {
                self.items.extend(page.items.into_iter().map(Json::from));
                self.has_more |= page.has_more;
            }
            None => self.is_odd = true,
        }
        self.items.len() < ITEMS_MAX
    }

    fn done(self, note: Option<String>) -> List {
        let odd = self.is_odd.then(|| "a page of the list is no array, and is left out".to_owned());
        let more = self.has_more.then(|| format!("the list is cut after {ITEMS_MAX} items"));
        List { items: self.items, notes: odd.into_iter().chain(more).chain(note).collect() }
    }
}
