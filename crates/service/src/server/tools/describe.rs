//! `describe_mcp`: one server, in as much detail as is wanted. Each level is JSON that can be read as it is; where it would
//! be too long, it ends with a cursor.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use code_mode::PREFIX;
use mcp::Outcome;
use mcp::content::About;
use orchestrator::Error;
use orchestrator::upstream::list::ToolList;
use registry::Entry;
use registry::policy::{AskedBy, Decision, Policy};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tool_schema::arguments::NoSuchTool;
use tool_schema::tool::{Annotations, Json, Tool, Tools};
use tool_schema::types::declaration;

use super::tool::handle;
use super::{LogDetails, ToolCall, as_text, bad, cut, looking, server_schema, skipped};
use crate::error::Refusal;
use crate::server::upstreams::code::OWN;
use crate::server::upstreams::{Upstreams, refused};
use crate::words::one_line;

pub(super) const TOOL: super::Tool = super::Tool {
    log_details: LogDetails::UpstreamInArguments,
    ..super::Tool::for_upstreams("describe_mcp", about, |it| handle(call(it)))
};

/// How many tools a page has if nobody says, and at most.
const TOOLS: usize = 50;
const SCHEMAS: usize = 10;
const TOOLS_MAX: usize = 200;
/// A page ends here, after its first tool.
const PAGE_BYTES_MAX: usize = 24 * 1024;
/// A schema that is larger than this is not handed over.
const SCHEMA_BYTES_MAX: usize = 128 * 1024;
const LINE_CHARS_MAX: usize = 160;
const DESCRIPTION_BYTES_MAX: usize = 4_000;
const INSTRUCTIONS_BYTES_MAX: usize = 2_000;
const NOTES_MAX: usize = 5;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    id: String,
    detail: Option<Detail>,
    tool: Option<String>,
    max_tools: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Detail {
    Summary,
    Tools,
    Schema,
    Types,
}

fn about() -> About {
    About {
        title: "Describe another server",
        description: "Tells more about an MCP server: \"summary\" what it is for, \"tools\" a line about each tool, \
            \"schema\" what tools take and answer (of one, with tool), \"types\" the same as TypeScript.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "id": server_schema(),
                "detail": {"type": "string", "enum": ["summary", "tools", "schema", "types"]},
                "tool": {"type": "string"},
                "maxTools": {"type": "integer", "minimum": 1, "maximum": TOOLS_MAX},
                "cursor": {"type": "string"},
            },
            "required": ["id"],
            "additionalProperties": false,
        }),
        output_schema: None,
        annotations: looking(),
        examples: None,
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let upstreams = &call.upstreams;
    let usual = if arguments.tool.is_some() { Detail::Schema } else { Detail::Summary };
    let detail = arguments.detail.unwrap_or(usual);
    let page = Page::of(&arguments, detail)?;
    let registry = upstreams.registry();
    let Some(entry) = registry.get(&arguments.id) else {
        if arguments.id == OWN && detail == Detail::Types {
            return Ok(own_types(upstreams));
        }
        let error = Error::no_server(&arguments.id, &registry);
        return Ok(refused(&error, registry.masks()));
    };
    if detail == Detail::Summary && arguments.tool.is_none() {
        return Ok(as_text(&Summary::of(entry, upstreams)));
    }
    if !entry.auto_discover_tools && upstreams.known_tools(&entry.id).is_none() {
        // Whoever keeps the registry wants it to be started by calls alone.
        let note = "its tools are not known before one is called: if your user names one, call it with call_mcp_tool; \
            otherwise ask them to set `autoDiscoverTools` of its entry to true";
        return Ok(as_text(&json!({"id": entry.id, "note": note})));
    }
    let entry = Arc::clone(entry);
    let look = async move |upstreams: Arc<Upstreams>| {
        let described = match upstreams.tools(&entry.id).await {
            Ok(list) => described(&entry, &list, detail, arguments.tool.as_deref(), page),
            Err(error) => Err(error),
        };
        let masks = Arc::clone(upstreams.registry().masks());
        described.unwrap_or_else(|error| refused(&error, &masks))
    };
    Ok(upstreams.later(look).await)
}

/// Which tools are wanted.
#[derive(Debug, Clone, Copy)]
struct Page {
    skip: usize,
    count: usize,
}

impl Page {
    fn of(arguments: &Arguments, detail: Detail) -> Result<Self, Refusal> {
        let usual = if detail == Detail::Tools { TOOLS } else { SCHEMAS };
        let count = arguments.max_tools.unwrap_or(usual);
        if !(1..=TOOLS_MAX).contains(&count) {
            return Err(bad(format!("maxTools must be from 1 to {TOOLS_MAX}")));
        }
        Ok(Self { skip: skipped(arguments.cursor.as_deref())?, count })
    }
}

fn described(
    entry: &Entry,
    list: &ToolList,
    detail: Detail,
    tool: Option<&str>,
    page: Page,
) -> Result<Outcome, Error> {
    let tools = &list.tools;
    let (begin, total) = match tool {
        None => (0, tools.len()),
        Some(name) => (position(&entry.id, tools, name)?, 1),
    };
    let some =
        begin + page.skip.min(total)..begin + total.min(page.skip.saturating_add(page.count));
    let rest = tools.get(some.clone()).unwrap_or_default();
    let mut answer = Described { id: &entry.id, total, ..Described::default() };
    let taken = match detail {
        Detail::Types => answer.declare(&format!("{PREFIX}{}", entry.id), tools, some),
        Detail::Summary | Detail::Tools => answer.list(rest, Line::of),
        Detail::Schema => {
            let policy = Policy::new(entry);
            answer.list(rest, |tool| Whole::of(tool, &policy))
        }
    };
    let next = page.skip + taken;
    answer.next_cursor = (next < total).then(|| next.to_string());
    if tool.is_none() && page.skip == 0 {
        let notes = list.notes.iter().take(NOTES_MAX);
        answer.notes = notes.map(|note| one_line(note, LINE_CHARS_MAX)).collect();
    }
    Ok(as_text(&answer))
}

fn position(server: &str, tools: &[Tool], name: &str) -> Result<usize, Error> {
    tools.iter().position(|tool| tool.name == name).ok_or_else(|| {
        let names = tools.iter().map(|tool| tool.name.as_str());
        Error::NoTool(NoSuchTool::new(server, name, names))
    })
}

/// What programs can import of us: the tools that only look.
fn own_types(upstreams: &Upstreams) -> Outcome {
    let listed: Vec<Value> = upstreams
        .importable_tools()
        .map(|tool| {
            let about = (tool.about)();
            let mut listed = json!({
                "name": tool.name,
                "description": about.description,
                "inputSchema": about.input_schema,
            });
            if let Some(output) = about.output_schema {
                listed["outputSchema"] = output;
            }
            listed
        })
        .collect();
    let mut tools = Tools::default();
    if let Ok(page) = to_raw_value(&listed) {
        tools.add_page(&page);
    }
    let tools = tools.tools;
    let mut answer = Described { id: OWN, total: tools.len(), ..Described::default() };
    answer.types = Some(declaration(OWN, OWN, &tools, 0..tools.len()).text);
    as_text(&answer)
}

/// Some of a server's tools.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    id: &'a str,
    total: usize,
    /// As their server wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Described<'_> {
    /// As many tools as fit: how many that are.
    fn list<'t, T: Serialize>(&mut self, tools: &'t [Tool], make: impl Fn(&'t Tool) -> T) -> usize {
        let mut room = PAGE_BYTES_MAX;
        let mut made: Vec<Box<RawValue>> = Vec::new();
        for tool in tools {
            // What we make can be written.
            let Ok(one) = to_raw_value(&make(tool)) else { continue };
            if one.get().len() > room && !made.is_empty() {
                break;
            }
            room = room.saturating_sub(one.get().len());
            made.push(one);
        }
        let taken = made.len();
        self.tools = Some(made);
        taken
    }

    /// The same as one declaration: half as many, until it fits.
    fn declare(&mut self, specifier: &str, all: &[Tool], some: Range<usize>) -> usize {
        let mut taken = some.len();
        loop {
            let declared = declaration(self.id, specifier, all, some.start..some.start + taken);
            if declared.text.len() <= PAGE_BYTES_MAX || taken <= 1 {
                self.types = Some(declared.text);
                return taken;
            }
            taken /= 2;
        }
    }
}

/// What its entry says, and what is known besides.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    domains: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    examples: &'a [String],
    transport: &'static str,
    sensitivity: &'static str,
    visibility: &'static str,
    timeout_ms: u64,
    max_calls_per_minute: u32,
    /// How many there are, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// What the server tells models about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

impl<'a> Summary<'a> {
    fn of(entry: &'a Entry, upstreams: &Upstreams) -> Self {
        let info = upstreams.info(&entry.id);
        let instructions = info.and_then(|info| info.instructions);
        Self {
            id: &entry.id,
            title: entry.title.as_deref(),
            summary: entry.summary.as_deref(),
            domains: &entry.domains,
            tags: &entry.tags,
            examples: &entry.examples,
            transport: entry.connect.transport(),
            sensitivity: entry.sensitivity.word(),
            visibility: entry.visibility.word(),
            timeout_ms: u64::try_from(entry.timeout().as_millis()).unwrap_or(u64::MAX),
            max_calls_per_minute: entry.calls_per_minute(),
            tools: upstreams.known_tools(&entry.id).map(|list| list.tools.len()),
            instructions: instructions.map(|text| cut(&text, INSTRUCTIONS_BYTES_MAX).into_owned()),
        }
    }
}

/// A tool in a line.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl<'a> Line<'a> {
    fn of(tool: &'a Tool) -> Self {
        let about = tool.description.as_deref().or(tool.title.as_deref());
        let description = about.map(|about| one_line(about, LINE_CHARS_MAX));
        Self { name: &tool.name, description }
    }
}

/// All that a caller must know of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Json>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    annotations: Map<String, Value>,
    /// The user is asked before each call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    asks_user: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl<'a> Whole<'a> {
    fn of(tool: &'a Tool, policy: &Policy) -> Self {
        let fits = |schema: &&Json| schema.text().len() <= SCHEMA_BYTES_MAX;
        let input_schema = Some(&tool.input_schema).filter(fits);
        let decision = policy.decide(&tool.name, &tool.annotations, AskedBy::Agent);
        let is_whole = input_schema.is_some() && tool.output_schema.iter().all(|it| fits(&it));
        Self {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: tool.description.as_deref().map(|text| cut(text, DESCRIPTION_BYTES_MAX)),
            input_schema,
            output_schema: tool.output_schema.as_ref().filter(fits),
            annotations: hints(&tool.annotations),
            asks_user: matches!(decision, Decision::Confirm(_)),
            note: (!is_whole)
                .then_some("a schema is too large to be shown; \"types\" has the gist"),
        }
    }
}

fn hints(annotations: &Annotations) -> Map<String, Value> {
    let hints = annotations.hints().into_iter();
    hints.filter_map(|(name, hint)| Some((name.to_owned(), hint?.into()))).collect()
}
