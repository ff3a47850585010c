//! A tool as its server lists it. Servers are strangers: what can be used is kept, what cannot is left out with a note, and
//! nothing in one tool takes the others away. Schemas stay text until somebody needs them; parsed ones take ten times
//! the room.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// More tools than this of one server are left out.
pub const TOOLS_MAX: usize = 10_000;
/// The longest name of a tool. The specification advises 128.
pub const NAME_BYTES_MAX: usize = 256;
/// A larger tool is left out.
pub const TOOL_BYTES_MAX: usize = 1024 * 1024;
/// So many fields are kept of those that mean nothing to us.
const OTHER_FIELDS_MAX: usize = 64;
/// More notes than this about one list help nobody.
const NOTES_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    /// Its own title, or else the one among its annotations.
    pub title: Option<String>,
    pub description: Option<String>,
    /// Always an object; empty where the server gave none.
    pub input_schema: Json,
    pub output_schema: Option<Json>,
    pub annotations: Annotations,
    /// What else the server said of it (`icons`, `_meta`, `execution`…), as it was.
    pub other: BTreeMap<String, Json>,
}

impl Tool {
    /// Whether it can only run as a task, which a call cannot begin.
    pub fn is_task_only(&self) -> bool {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Execution<'e> {
            #[serde(borrow)]
            task_support: Option<std::borrow::Cow<'e, str>>,
        }
        let execution = self.other.get("execution");
        let execution =
            execution.and_then(|json| serde_json::from_str::<Execution<'_>>(json.text()).ok());
        execution.and_then(|execution| execution.task_support).is_some_and(|it| it == "required")
    }
}

/// What a tool says about itself. These are claims of its server, and nobody checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl Annotations {
    /// By the names that the protocol has for them.
    pub fn hints(&self) -> [(&'static str, Option<bool>); 4] {
        [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ]
    }

    /// Whether the tool says that a second call with the same arguments does no harm.
    pub fn may_run_twice(&self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }
}

/// JSON as its server wrote it: the order of properties and every digit are kept.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Fails where it is nested too deeply to be taken apart.
    pub fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(self.text())
    }

    fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(Arc::from(raw.to_owned()))
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // A value always has a text.
        let raw = serde_json::value::to_raw_value(value);
        Self(raw.map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from))
    }
}

impl From<&Map<String, Value>> for Json {
    fn from(fields: &Map<String, Value>) -> Self {
        let raw = serde_json::value::to_raw_value(fields);
        Self(raw.map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What was wrong with a list of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    #[error("the list of tools is no array")]
    NotAList,
    #[error("tool {at} of the list is left out, for it is no object")]
    NotAnObject { at: usize },
    #[error("tool {at} of the list is left out, for it has no `name` that is a text")]
    NoName { at: usize },
    #[error(
        "tool {at} of the list is left out, for its name is empty, has control characters, or is longer than \
         {NAME_BYTES_MAX} bytes"
    )]
    BadName { at: usize },
    #[error(
        "tool {at} of the list is left out, for it has {bytes} bytes, and {TOOL_BYTES_MAX} are the most"
    )]
    TooLarge { at: usize, bytes: usize },
    #[error("`{name}` is listed twice, and the first one counts")]
    Twice { name: String },
    #[error("more than {TOOLS_MAX} tools are listed, and the others are left out")]
    TooMany,
    #[error("`{name}` has no `inputSchema`, so that its arguments cannot be checked")]
    NoInputSchema { name: String },
    #[error("`{field}` of `{name}` is ignored, for it is not {wanted}")]
    Ignored { name: String, field: String, wanted: &'static str },
}

/// The tools of one server, however many pages they came in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tools {
    pub tools: Vec<Tool>,
    pub notes: Vec<Note>,
    names: HashSet<String>,
    /// How many the server listed, good or bad.
    listed: usize,
}

impl Tools {
    /// Adds what stands under `tools` in an answer to `tools/list`.
    pub fn add_page(&mut self, page: &RawValue) {
        match serde_json::from_str::<Vec<&RawValue>>(page.get()) {
            Ok(tools) => tools.into_iter().for_each(|tool| self.add(tool)),
            Err(_) => self.note(Note::NotAList),
        }
    }

    /// Adds one tool.
    pub fn add(&mut self, tool: &RawValue) {
        self.listed += 1;
        if self.tools.len() == TOOLS_MAX {
            if !self.notes.contains(&Note::TooMany) {
                // This one matters more than the hundredth of the others.
                self.notes.truncate(NOTES_MAX - 1);
                self.notes.push(Note::TooMany);
            }
            return;
        }
        match read(self.listed, tool, &mut |note| self.notes.push(note)) {
            Ok(tool) if self.names.insert(tool.name.clone()) => self.tools.push(tool),
            Ok(tool) => self.notes.push(Note::Twice { name: tool.name }),
            Err(note) => self.notes.push(note),
        }
        self.notes.truncate(NOTES_MAX);
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
        self.notes.truncate(NOTES_MAX);
    }
}

fn read(at: usize, tool: &RawValue, note: &mut dyn FnMut(Note)) -> Result<Tool, Note> {
    let bytes = tool.get().len();
    if bytes > TOOL_BYTES_MAX {
        return Err(Note::TooLarge { at, bytes });
    }
    let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(tool.get());
    let Ok(mut fields) = fields else { return Err(Note::NotAnObject { at }) };
    let name = fields.remove("name").and_then(text);
    let name = name.ok_or(Note::NoName { at })?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
        return Err(Note::BadName { at });
    }
    let mut fields = Fields { name, fields, note };
    let annotations =
        fields.object("annotations").map(|json| Annotations::read(&json, &mut fields));
    let (annotations, title) = annotations.unwrap_or_default();
    let input_schema = fields.object("inputSchema").unwrap_or_else(|| {
        (fields.note)(Note::NoInputSchema { name: fields.name.clone() });
        Json::from(&Map::new())
    });
    Ok(Tool {
        title: fields.text("title").or(title),
        description: fields.text("description"),
        input_schema,
        output_schema: fields.object("outputSchema"),
        annotations,
        other: fields
            .fields
            .into_iter()
            .take(OTHER_FIELDS_MAX)
            .map(|(key, raw)| (key, Json::from(raw)))
            .collect(),
        name: fields.name,
    })
}

impl Annotations {
    /// A hint that is neither true nor false says nothing, but one about destruction is believed.
    fn read(json: &Json, tool: &mut Fields<'_, '_>) -> (Self, Option<String>) {
        let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(json.text());
        let fields = fields.unwrap_or_default();
        let mut hint = |field: &str| match fields.get(field).map(|raw| raw.get()) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some("null") | None => None,
            Some(_) => {
                tool.ignore(format!("annotations.{field}"), "true or false");
                (field == "destructiveHint").then_some(true)
            }
        };
        let annotations = Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        };
        (annotations, fields.get("title").and_then(|title| text(title)))
    }
}

/// The fields of one tool that nobody has taken yet.
struct Fields<'list, 'note> {
    name: String,
    fields: BTreeMap<String, &'list RawValue>,
    note: &'note mut dyn FnMut(Note),
}

impl Fields<'_, '_> {
    fn text(&mut self, field: &str) -> Option<String> {
        let raw = self.fields.remove(field).filter(|raw| raw.get() != "null")?;
        let text = text(raw);
        if text.is_none() {
            self.ignore(field.to_owned(), "a text");
        }
        text
    }

    fn object(&mut self, field: &str) -> Option<Json> {
        let raw = self.fields.remove(field).filter(|raw| raw.get() != "null")?;
        let json = Json::from(raw);
        if json.is_object() {
            return Some(json);
        }
        self.ignore(field.to_owned(), "an object");
        None
    }

    fn ignore(&mut self, field: String, wanted: &'static str) {
        (self.note)(Note::Ignored { name: self.name.clone(), field, wanted });
    }
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(list: &str) -> Tools {
        let mut tools = Tools::default();
        tools.add_page(&RawValue::from_string(list.to_owned()).unwrap());
        tools
    }

    #[test]
    fn a_good_tool_is_read_whole() {
        let list = r#"[{
            "name": "create_issue", "title": "Create", "description": "Opens one",
            "inputSchema": {"type": "object", "properties": {"z": {}, "a": {}}},
            "outputSchema": {"type": "object"},
            "annotations": {"title": "Other", "readOnlyHint": false, "destructiveHint": true, "x": 1},
            "icons": [], "_meta": {"a/b": 1.50}
        }, {"name": "b", "inputSchema": {}, "annotations": {"title": "Of b"}}]"#;
        let Tools { tools, notes, .. } = tools(list);
        insta::assert_debug_snapshot!((tools, notes));
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_a_note() {
        let list = r#"[
            1, null, {}, {"name": 5}, {"name": ""}, {"name": "a\nb"},
            {"name": "no-schema"},
            {"name": "twice", "inputSchema": {}}, {"name": "twice", "inputSchema": {"type": "object"}},
            {"name": "odd", "title": 1, "description": [], "inputSchema": true, "outputSchema": "x", "annotations": 3},
            {"name": "hints", "inputSchema": {}, "annotations": {"readOnlyHint": "yes", "destructiveHint": "no"}}
        ]"#;
        let tools = tools(list);
        let notes: Vec<String> = tools.notes.iter().map(Note::to_string).collect();
        insta::assert_snapshot!(notes.join("\n"));
        let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["no-schema", "twice", "odd", "hints"]);
        assert_eq!(tools.tools[1].input_schema.text(), "{}");
        let hints = &tools.tools[3].annotations;
        assert_eq!((hints.read_only, hints.destructive), (None, Some(true)));
    }

    #[test]
    fn pages_are_one_list() {
        let mut tools = tools(r#"[{"name": "a", "inputSchema": {}}]"#);
        let page = r#"[{"name": "a", "inputSchema": {}}, {"name": "b", "inputSchema": {}}]"#;
        tools.add_page(&RawValue::from_string(page.to_owned()).unwrap());
        tools.add_page(&RawValue::from_string("{}".to_owned()).unwrap());
        assert_eq!(tools.tools.len(), 2);
        assert_eq!(tools.notes, [Note::Twice { name: "a".to_owned() }, Note::NotAList]);
    }

    #[test]
    fn a_list_is_bounded() {
        let many: Vec<String> =
            (0..TOOLS_MAX + 5).map(|at| format!(r#"{{"name": "t{at}"}}"#)).collect();
        let tools = tools(&format!("[{}]", many.join(",")));
        assert_eq!(tools.tools.len(), TOOLS_MAX);
        assert_eq!(tools.notes.len(), NOTES_MAX);
    }

    #[test]
    fn deep_nesting_is_only_text() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let tools = tools(&format!(r#"[{{"name": "deep", "inputSchema": {{"a": {deep}}}}}]"#));
        assert_eq!(tools.tools.len(), 1);
        assert!(tools.tools[0].input_schema.value().is_err());
    }
}
