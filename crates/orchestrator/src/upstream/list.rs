//! What an upstream has of one kind: all pages of it, within bounds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp::client::{PageStep, Pages};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tool_schema::shallow;
use tool_schema::tool::{Json, TOOLS_MAX, Tool, Tools};

use super::call_context::CallContext;
use super::connection::Connection;
use super::failure::Failure;
use crate::pool::Kind;
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

/// A list, and how long it may be used.
pub(super) struct Fetched<L> {
    pub(super) list: L,
    pub(super) time_to_live: Option<Duration>,
}

/// Fetches a list, page by page.
pub(super) async fn fetch<C: Collect>(
    kind: Kind,
    connection: &Arc<Connection>,
    context: &Arc<CallContext>,
) -> Result<Fetched<C::List>, Failure> {
    let (mut list, mut pages) = (C::default(), Pages::new(kind));
    let note = loop {
        let page = connection.request(pages.request(), context).await?;
        // A server that sends page after page is at it.
        context.deadline.extend();
        let items = pages.receive(&page).ok_or_else(|| Failure::Protocol {
            why: format!("its answer to `{}` is no list", kind.method()),
        })?;
        let has_room = items.is_none_or(|items| list.page(items, connection));
        match pages.next_step(has_room) {
            PageStep::Next => {}
            PageStep::End => break None,
            PageStep::Truncated(note) => break Some(note),
        }
    };
    Ok(Fetched { list: list.done(note), time_to_live: pages.time_to_live() })
}

/// A list that is being put together.
pub(super) trait Collect: Default {
    type List;

    /// The items of one page, of the server at the other end. Says whether there is room for more.
    fn page(&mut self, items: &RawValue, connection: &Connection) -> bool;

    fn done(self, note: Option<String>) -> Self::List;
}

#[derive(Default)]
pub(super) struct CollectTools(Tools);

impl Collect for CollectTools {
    type List = ToolList;

    fn page(&mut self, items: &RawValue, connection: &Connection) -> bool {
        // One more than there is room for, so that it is noted that there are more.
        let Some(page) = shallow::items(items.get(), TOOLS_MAX + 1) else {
            // What is wrong with a list is said by who reads it.
            self.0.add_page(items);
            return true;
        };
        for tool in page.items {
            match misplaced_header(tool).filter(|_| connection.mirrors_arguments()) {
                None => self.0.add(tool),
                Some(why) => {
                    let server = connection.server();
                    tracing::warn!(server, "a tool is left out, for its `x-mcp-header`: {why}");
                }
            }
        }
        self.0.tools.len() < TOOLS_MAX
    }

    fn done(self, note: Option<String>) -> ToolList {
        let notes = self.0.notes.iter().map(ToString::to_string).chain(note).collect();
        ToolList::new(self.0.tools, notes)
    }
}

/// Why a tool must not be called over HTTP, if there is a reason. Few tools want arguments as headers.
fn misplaced_header(tool: &RawValue) -> Option<String> {
    if !tool.get().contains("x-mcp-header") {
        return None;
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        input_schema: Value,
    }
    let fields = serde_json::from_str::<Fields>(tool.get()).ok()?;
    mcp::misplaced_header(&fields.input_schema)
}

#[derive(Default)]
pub(super) struct CollectItems {
    items: Vec<Json>,
    is_odd: bool,
    has_more: bool,
}

impl Collect for CollectItems {
    type List = List;

    fn page(&mut self, items: &RawValue, _: &Connection) -> bool {
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
