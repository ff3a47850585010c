//! `list_mcp_capabilities`: which servers and tools there are for something, best first. What is shown of each is short,
//! and the whole answer is bounded, however many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use discovery::{Filter, has_words};
use mcp::Outcome;
use mcp::content::About;
use registry::{Entry, Masks, Registry, is_id};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::tool::handle;
use super::{ToolCall, as_text, bad, looking, skipped};
use crate::error::Refusal;
use crate::server::upstreams::{Searched, Unknown, Upstreams};
use crate::words::one_line;

pub(super) const TOOL: super::Tool =
    super::Tool::for_upstreams("list_mcp_capabilities", about, |it| handle(call(it)));

/// How many servers, and how many tools, an answer has if nobody says.
const LIMIT: usize = 8;
const LIMIT_MAX: usize = 50;
/// The longest answer: about 1,200 tokens.
const ANSWER_BYTES_MAX: usize = 4_000;
/// How much of it goes to servers, where there are tools too.
const SERVERS_BYTES_MAX: usize = 1_400;
/// How many servers are named whose tools are not known.
const UNKNOWN_MAX: usize = 10;
/// How much is said of why a server failed.
const WHY_CHARS_MAX: usize = 120;
/// How much of a command is shown, which has a path in it.
const COMMAND_CHARS_MAX: usize = 600;
const TITLE_CHARS_MAX: usize = 60;
const SUMMARY_CHARS_MAX: usize = 140;
const DESCRIPTION_CHARS_MAX: usize = 110;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: Option<String>,
    visibility: Option<Wanted>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Default,
    Experimental,
}

fn about() -> About {
    About {
        title: "Find tools of other servers",
        description: "Finds tools of other MCP servers that you can call through this one. With a query: the best servers \
            and tools for it; without: the servers. Then describe_mcp tells more, and call_mcp_tool calls.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What you want to do, or a server's id"},
                "visibility": {"type": "string", "enum": ["default", "experimental"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX},
                "cursor": {"type": "string"},
            },
            "required": [],
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: looking(),
        examples: None,
    }
}

/// The answer. Everything in it is cut to fit.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    servers: Vec<Card>,
    /// How many more servers fit a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Tool>>,
    #[serde(skip_serializing_if = "NotSearched::is_empty")]
    not_searched: NotSearched,
    /// How many entries of the registry have errors, which the user must mend.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<Untrusted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Servers that a project's file names, and that take no effect before a person trusts it.
#[derive(Debug, Serialize)]
struct Untrusted {
    ids: Vec<String>,
    /// How many are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
    /// The command by which the user trusts them.
    command: String,
}

/// What there is for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fits {
    Tools,
    Servers,
    Nothing,
}

/// Servers whose tools are not among those that were searched, by why they are not.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NotSearched {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    starting: Vec<String>,
    /// With what went wrong.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_when_called: Vec<String>,
    /// How many are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Card {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// How many tools it has, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Tool {
    server: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let Arguments { query, visibility, limit, cursor } = call.arguments()?;
    let upstreams = &call.upstreams;
    let experimental = visibility == Some(Wanted::Experimental);
    if limit.is_some_and(|limit| !(1..=LIMIT_MAX).contains(&limit)) {
        return Err(bad(format!("limit must be from 1 to {LIMIT_MAX}")));
    }
    let query = query.unwrap_or_default();
    // `*` asks for nothing in particular either.
    if !has_words(&query) {
        return page(upstreams, experimental, cursor.as_deref(), limit);
    }
    if cursor.is_some() {
        return Err(bad(
            "a search has one page; leave cursor out, or ask for more with limit".to_owned()
        ));
    }
    let search = async move |upstreams: Arc<Upstreams>| {
        let filter = Filter { named: &[], experimental };
        let limit = limit.unwrap_or(LIMIT);
        let searched = upstreams.find(&query, &filter, limit).await;
        as_text(&found(&upstreams, searched, &filter, limit))
    };
    Ok(upstreams.later(search).await)
}

/// All servers, as many as fit on a page or are wanted.
fn page(
    upstreams: &Arc<Upstreams>,
    experimental: bool,
    cursor: Option<&str>,
    limit: Option<usize>,
) -> Result<Outcome, Refusal> {
    let skip = skipped(cursor)?;
    let filter = Filter { named: &[], experimental };
    let shown = upstreams.cards(&filter);
    let registry = upstreams.registry();
    let (unusable, untrusted) = (unusable(&registry), Untrusted::of(&registry));
    let mut answer = Answer { unusable, untrusted, ..Answer::default() };
    let mut room = Room(ANSWER_BYTES_MAX);
    room.takes(&answer.untrusted);
    for (at, entry) in shown.iter().enumerate().skip(skip) {
        let card = Card::of(entry, upstreams);
        let is_full = limit.is_some_and(|limit| answer.servers.len() >= limit);
        if is_full || !room.takes(&card) {
            answer.next_cursor = Some(at.to_string());
            break;
        }
        answer.servers.push(card);
    }
    let hint = match answer.servers.is_empty() {
        true if answer.untrusted.is_some() => {
            "nobody has trusted these servers: tell your user, who decides; do not run the command yourself"
        }
        true => {
            "no server is there for everybody; name one, or ask for visibility \"experimental\""
        }
        false => {
            "query finds tools; describe_mcp {id, detail: \"tools\"} lists those of one server"
        }
    };
    answer.hint = Some(hint.to_owned());
    Ok(as_text(&answer))
}

/// What was found, as much of it as fits.
fn found(
    upstreams: &Arc<Upstreams>,
    searched: Searched,
    filter: &Filter<'_>,
    limit: usize,
) -> Answer {
    let registry = upstreams.registry();
    let Searched { found, unknown } = searched;
    let mut room = Room(ANSWER_BYTES_MAX);
    let not_searched = NotSearched::of(unknown, registry.masks());
    let unusable = unusable(&registry);
    let untrusted = Untrusted::of(&registry);
    let mut answer = Answer { not_searched, unusable, untrusted, ..Answer::default() };
    room.takes(&answer.not_searched);
    room.takes(&answer.untrusted);
    // Most questions are about tools: servers leave them room.
    let mut for_servers =
        Room(if found.tools.is_empty() { room.0 } else { SERVERS_BYTES_MAX.min(room.0) });
    let kept = room.0 - for_servers.0;
    // Where nothing fits, the servers may still tell whose tools to look at.
    let is_nothing = found.servers.is_empty() && found.tools.is_empty();
    let (cards, matching): (Vec<Arc<Entry>>, usize) = match is_nothing {
        true => {
            let cards = upstreams.cards(filter);
            let count = cards.len();
            (cards, count)
        }
        false => {
            let hits = found.servers.iter().filter_map(|hit| registry.get(&hit.id).cloned());
            (hits.collect(), found.matching)
        }
    };
    for entry in cards.iter().take(limit) {
        let card = Card::of(entry, upstreams);
        if !for_servers.takes(&card) {
            break;
        }
        answer.servers.push(card);
    }
    let more = matching.saturating_sub(answer.servers.len());
    answer.more = (more > 0).then_some(more);
    let mut room = Room(kept + for_servers.0);
    let mut tools = Vec::new();
    for hit in found.tools {
        let list = upstreams.known_tools(&hit.server);
        let tool = list.as_ref().and_then(|list| list.get(&hit.tool));
        let about = tool.and_then(|tool| tool.description.as_deref().or(tool.title.as_deref()));
        let description = about.map(|about| one_line(about, DESCRIPTION_CHARS_MAX));
        let tool = Tool { server: hit.server, tool: hit.tool, description };
        if !room.takes(&tool) {
            break;
        }
        tools.push(tool);
    }
    let fits = match (is_nothing, tools.is_empty()) {
        (true, _) => Fits::Nothing,
        (false, true) => Fits::Servers,
        (false, false) => Fits::Tools,
    };
    answer.hint = Some(answer.not_searched.hint(fits));
    answer.tools = Some(tools);
    answer
}

impl NotSearched {
    fn of(unknown: Vec<(String, Unknown)>, masks: &Masks) -> Self {
        let mut own = Self::default();
        let more = unknown.len().saturating_sub(UNKNOWN_MAX);
        own.more = (more > 0).then_some(more);
        for (id, why) in unknown.into_iter().take(UNKNOWN_MAX) {
            match why {
                Unknown::Starting => own.starting.push(id),
                Unknown::OnlyWhenCalled => own.only_when_called.push(id),
                Unknown::Failed(error) => {
                    let why = one_line(&masks.hide(&error.to_string()), WHY_CHARS_MAX);
                    own.failed.insert(id, why);
                }
            }
        }
        own
    }

    fn is_empty(&self) -> bool {
        self.starting.is_empty() && self.failed.is_empty() && self.only_when_called.is_empty()
    }

    /// What to do next, after a search.
    fn hint(&self, fits: Fits) -> String {
        let is_nothing_found = fits != Fits::Tools;
        let hint = match fits {
            Fits::Tools => "describe_mcp {id, detail: \"schema\", tool} shows what a tool takes",
            Fits::Servers => "describe_mcp {id, detail: \"tools\"} shows what a server has",
            Fits::Nothing => {
                "nothing has these words: here are the servers; describe_mcp one, or try other words"
            }
        };
        let mut hint = hint.to_owned();
        if !self.starting.is_empty() {
            hint += "; some servers are starting: search again in a moment";
        }
        if is_nothing_found && !self.failed.is_empty() {
            hint += "; searching again does not help with those that failed: tell your user";
        }
        if is_nothing_found && !self.only_when_called.is_empty() {
            hint +=
                "; tools of onlyWhenCalled servers are not listed: call one if your user names it";
        }
        hint
    }
}

impl Untrusted {
    fn of(registry: &Registry) -> Option<Self> {
        let (file, _) = registry.untrusted().next()?;
        let ids = registry.untrusted().map(|(_, server)| &server.draft.id);
        let ids: Vec<String> = ids.filter(|id| is_id(id)).cloned().collect();
        let more = ids.len().saturating_sub(UNKNOWN_MAX);
        Some(Self {
            ids: ids.into_iter().take(UNKNOWN_MAX).collect(),
            more: (more > 0).then_some(more),
            command: one_line(&file.trust_command(), COMMAND_CHARS_MAX),
        })
    }
}

fn unusable(registry: &Registry) -> Option<usize> {
    Some(registry.unusable().count()).filter(|count| *count > 0)
}

/// How many bytes are left.
struct Room(usize);

impl Room {
    /// Whether this still fits, with what stands between.
    fn takes(&mut self, what: &impl Serialize) -> bool {
        let length = serde_json::to_vec(what).map_or(usize::MAX, |text| text.len() + 1);
        let fits = length <= self.0;
        if fits {
            self.0 -= length;
        }
        fits
    }
}

impl Card {
    fn of(entry: &Entry, upstreams: &Upstreams) -> Self {
        let cut = |text: &Option<String>, max| text.as_deref().map(|text| one_line(text, max));
        Self {
            id: entry.id.clone(),
            title: cut(&entry.title, TITLE_CHARS_MAX),
            summary: cut(&entry.summary, SUMMARY_CHARS_MAX),
            tools: upstreams.known_tools(&entry.id).map(|list| list.tools.len()),
        }
    }
}
