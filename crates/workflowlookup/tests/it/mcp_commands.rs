//! `mcp …`: other servers, from the command line. They are real processes: this product itself, over pipes and over HTTP,
//! and recordings that it plays.

mod calls;
mod content;
mod listing;
mod over_http;
mod pinging;
mod reading;
mod recording;
mod terminal;
mod unhappy;

use serde_json::{Map, Value, json};

use super::*;

const BINARY: &str = env!("CARGO_BIN_EXE_workflowlookup");

/// A server that is only a recording: it says what it is told to say.
struct Fake {
    lines: Vec<Value>,
    next: u64,
}

impl Fake {
    /// One that knows a handshake, and has the usual tools.
    fn new() -> Self {
        let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
        let info = json!({"name": "fake", "version": "1.2.3"});
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info,
            "instructions": "Be kind to it.",
        });
        Self::silent().asked("initialize", json!({}), &[], Some(hello)).asked(
            "tools/list",
            json!({}),
            &[],
            Some(json!({"tools": tools()})),
        )
    }

    /// One that says nothing at all, not even at the beginning.
    fn silent() -> Self {
        Self { lines: Vec::new(), next: 1 }
    }

    fn line(mut self, way: &str, message: Value) -> Self {
        self.lines.push(json!({"server": "fake", "connection": 1, "way": way, "message": message}));
        self
    }

    /// A request, what comes before its answer, and the answer's result, if there is one.
    fn asked(self, method: &str, params: Value, said: &[Value], result: Option<Value>) -> Self {
        self.exchange(method, params, said, result.map(|result| ("result", result)))
    }

    fn exchange(
        mut self,
        method: &str,
        params: Value,
        said: &[Value],
        answer: Option<(&str, Value)>,
    ) -> Self {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut fake = self.line("out", request);
        for message in said {
            fake = fake.line("in", message.clone());
        }
        match answer {
            Some((kind, value)) => {
                let answer = Map::from_iter([
                    ("jsonrpc".to_owned(), "2.0".into()),
                    ("id".to_owned(), id.into()),
                    (kind.to_owned(), value),
                ]);
                fake.line("in", Value::Object(answer))
            }
            None => fake,
        }
    }

    fn call(self, tool: &str, arguments: Value, result: Value) -> Self {
        self.asked("tools/call", json!({"name": tool, "arguments": arguments}), &[], Some(result))
    }

    /// The file that plays it.
    fn write(&self, place: &Place, file: &str) {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        place.write(file, lines.collect::<String>());
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tools() -> Value {
    json!([
        {
            "name": "echo", "description": "Says it again.\nAs it was.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "annotations": {"readOnlyHint": true},
        },
        {
            "name": "add", "title": "Add numbers",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "One of them"},
                    "b": {"type": "integer"},
                    "exact": {"type": "boolean"},
                    "labels": {"type": "array", "items": {"type": "string"}},
                    "who": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
                "required": ["a", "b"],
                "additionalProperties": false,
            },
            "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]},
        },
        {"name": "plain", "inputSchema": {"type": "object"}},
    ])
}

/// A project whose registry has this product as `self`, and recordings as servers.
fn project(fakes: &[(&str, Fake)]) -> Place {
    let place = Place::new();
    place.write("workflows/tidy.json", definition("tidy", "Tidy up"));
    let mut servers = vec![json!({
        "id": "self", "title": "This product", "sensitivity": "low",
        "mcp": {"command": BINARY, "args": ["--no-bundled", "serve"]},
    })];
    for (id, fake) in fakes {
        let file = format!("{id}.jsonl");
        fake.write(&place, &file);
        servers
            .push(json!({"id": id, "mcp": {"command": BINARY, "args": ["mcp", "replay", file]}}));
    }
    place.write_trusted("mcp.registry.json", json!({"servers": servers}).to_string());
    place
}

/// One recording, called `fake`.
fn fake(fake: Fake) -> Place {
    project(&[("fake", fake)])
}

impl Done {
    /// What a user sees, without what differs from run to run.
    fn told(&self) -> String {
        masked(&self.shown())
    }
}

/// Without times, and with the product by its name.
fn masked(text: &str) -> String {
    let text = text.replace(BINARY, "workflowlookup");
    let mut masked = String::new();
    let mut words = text.split_inclusive([' ', '\n', '\t', ',', ')', ';']).peekable();
    while let Some(word) = words.next() {
        let number = word.trim_end();
        let unit = words.peek().map(|next| next.trim_end_matches([' ', '\n', '\t', ',', ')', ';']));
        let is_time = number.parse::<f64>().is_ok() && matches!(unit, Some("ms" | "s"));
        let is_date = number.starts_with("20") && number.ends_with('Z') && number.contains('T');
        match () {
            () if is_time => {
                let unit = words.next().unwrap_or_default();
                masked.push_str("[TIME]");
                masked.push_str(unit.trim_start_matches(|letter: char| letter.is_alphabetic()));
            }
            () if is_date => {
                masked.push_str("[DATE]");
                masked.push_str(&word[number.len()..]);
            }
            () => masked.push_str(word),
        }
    }
    masked
}
