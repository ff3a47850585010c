//! Whatever a client sends, every request gets exactly one answer, a cancelled one none, and nothing else
//! comes back but notifications. In memory, with a host that finishes its calls whenever it likes.
//! `WORKFLOWLOOKUP_LONG` makes for many more cases.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp::content::{About, Block, Held, Message, Page, ResourceContents, Tool};
use mcp::{
    Action, Ask, Call, Changed, Connection, Error, Form, Outcome, Progress, Question, Reply,
    Server, Ticket, Transport,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    Line(Line),
    Batch(Vec<Line>),
    /// The host is done with one of its calls.
    Finish(Index, u8),
    /// The client takes back one of its requests, finished or not.
    Cancel(Index),
    /// The client answers something that it was asked.
    Answer(Index, u8),
    /// The host gives up on what one of its calls has asked.
    GiveUp(Index),
    /// The host says how far one of its calls has come.
    Progress(Index, u8),
    Changed,
}

/// One message, without its id: the test gives each a fresh one.
#[derive(Debug, Clone)]
enum Line {
    /// A method and its parameters, as JSON.
    Request(&'static str, String),
    /// Parameters, or more, that no method can use; the id is readable.
    Bad(&'static str),
    /// The id is not.
    Hopeless(&'static str),
    Quiet(&'static str),
}

const META: &str = r#""_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

const METHODS: [(&str, &str); 22] = [
    ("ping", ""),
    ("tools/list", ""),
    ("tools/list", r#""cursor":"x""#),
    ("tools/call", r#""name":"waits""#),
    ("tools/call", r#""name":"waits","arguments":{"a":1}"#),
    ("tools/call", r#""name":"waits","arguments":[]"#),
    ("tools/call", r#""name":"unknown""#),
    (
        "tools/call",
        r#""name":"waits","requestState":"s","inputResponses":{"q":{"action":"accept"}}"#,
    ),
    ("tools/call", r#""name":"waits","inputResponses":{"q":5}"#),
    ("tools/call", ""),
    ("waits", ""),
    ("waits", r#""a":1"#),
    ("resources/list", ""),
    ("resources/templates/list", ""),
    ("resources/read", r#""uri":"a:b""#),
    ("resources/subscribe", r#""uri":"a:b""#),
    ("prompts/list", ""),
    ("prompts/get", r#""name":"x","arguments":{"a":"b"}"#),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}"#,
    ),
    ("server/discover", ""),
    (
        "subscriptions/listen",
        r#""notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:b"]}"#,
    ),
    ("no/such/method", ""),
];

/// Each is a message but for its id, which stands where the `ID` is.
const BAD: [&str; 7] = [
    r#"{"jsonrpc":"1.0","id":ID,"method":"ping"}"#,
    r#"{"id":ID,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":7}"#,
    r#"{"jsonrpc":"2.0","id":ID}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"ping","params":5}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"\ud800"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/list","params":[1]}"#,
];

/// None of these is a message, but each is JSON, so that it can be a member of a batch too.
const HOPELESS: [&str; 6] = [
    "7",
    "null",
    r#""x""#,
    "{}",
    r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
];

const QUIET: [&str; 5] = [
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/nonsense","params":{"a":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#,
    r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#,
    r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"waits"}}"#,
];

const VERSIONS: [&str; 7] =
    ["2024-11-05", "2025-03-26", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1.0"];

fn line() -> impl Strategy<Value = Line> {
    let request = (prop::sample::select(METHODS.to_vec()), any::<bool>()).prop_map(
        |((method, params), is_modern)| {
            let fields = [if is_modern { META } else { "" }, params];
            let fields: Vec<&str> = fields.into_iter().filter(|field| !field.is_empty()).collect();
            Line::Request(method, format!("{{{}}}", fields.join(",")))
        },
    );
    let initialize = prop::sample::select(VERSIONS.to_vec()).prop_map(|version| {
        let capabilities = json!({"elicitation": {}});
        let params = json!({"protocolVersion": version, "capabilities": capabilities});
        Line::Request("initialize", params.to_string())
    });
    prop_oneof![
        8 => request,
        2 => initialize,
        1 => prop::sample::select(BAD.to_vec()).prop_map(Line::Bad),
        1 => prop::sample::select(HOPELESS.to_vec()).prop_map(Line::Hopeless),
        1 => prop::sample::select(QUIET.to_vec()).prop_map(Line::Quiet),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => line().prop_map(Event::Line),
        3 => prop::collection::vec(line(), 1..6).prop_map(Event::Batch),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(which, how)| Event::Finish(which, how)),
        2 => any::<Index>().prop_map(Event::Cancel),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(which, how)| Event::Answer(which, how)),
        1 => any::<Index>().prop_map(Event::GiveUp),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(which, how)| Event::Progress(which, how)),
        1 => Just(Event::Changed),
    ]
}

/// Any outcome may come of any call: an answer has to be made of each.
fn outcome_of(how: u8) -> Outcome {
    let texts = || ("text".to_owned(), r#"{"a":1}"#.to_owned());
    let error = || Error::new(-32001, "Workflow not found", json!({"workflowId": "x"}));
    match how % 16 {
        0..=2 => Outcome::Tool { text: texts().0.into(), structured: texts().1 },
        3 => Outcome::Refused { advice: texts().0, error: error() },
        4 => Outcome::BadArguments(texts().0),
        5 => Outcome::Resources(Page {
            items: Vec::new(),
            next: Some("next".to_owned()),
            is_live: true,
        }),
        6 => {
            let held = Held::Bytes(vec![7]);
            let contents = ResourceContents { uri: texts().0, mime_type: "a/b", held };
            Outcome::Resource { contents, is_live: false }
        }
        7 => Outcome::Completion { values: Vec::new(), total: 0 },
        8 => Outcome::NoResource { uri: texts().0 },
        9 => Outcome::BadParams(texts().0),
        10 => Outcome::Busy,
        11 | 12 => {
            let form = || Form { message: texts().0, schema: json!({"type": "object"}) };
            let other = if how > 128 { Question::Roots } else { form().into() };
            let questions = [("q", form().into()), ("r", other)];
            let questions = questions.map(|(name, question)| (name.to_owned(), question));
            let questions = questions.into_iter().take(usize::from(how % 3)).collect();
            Outcome::Ask(Box::new(Ask {
                call: Call::ReadResource { uri: texts().0 },
                questions,
                patience: Duration::ZERO,
                about: (how == 11).then(|| "a:b".to_owned()),
                state: None,
            }))
        }
        13 => Outcome::Blocks {
            blocks: vec![Block::Text(texts().0)],
            structured: Some(json!({"a": 1})),
            is_error: how > 128,
        },
        14 => Outcome::Prompt {
            description: texts().0,
            messages: vec![Message::user(Block::Text(texts().0))],
        },
        _ => Outcome::Fault,
    }
}

fn server() -> Arc<Server> {
    let about = || About {
        title: "Waits",
        description: "Waits",
        input_schema: json!({"type": "object"}),
        output_schema: Some(json!({"type": "object"})),
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "waits", is_method: true, about };
    Arc::new(Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool]))
}

/// A client and a host around one connection, and what they have seen.
struct World {
    connection: Connection,
    sent: Vec<String>,
    /// How often each id was answered, the unreadable one included.
    answers: HashMap<Value, usize>,
    /// How often each must be. Absent: never.
    due: HashMap<Value, usize>,
    /// Those that were taken back: once at most.
    cancelled: Vec<Value>,
    waiting: Vec<Ticket>,
    /// What the client was asked and has not answered, by id.
    asked: Vec<String>,
    /// The calls that have asked something, at any time.
    asking: Vec<Ticket>,
    may_batch: bool,
    is_closed: bool,
}

impl World {
    fn new() -> Self {
        Self {
            connection: Connection::new(server(), Transport::Stdio),
            sent: Vec::new(),
            answers: HashMap::new(),
            due: HashMap::new(),
            cancelled: Vec::new(),
            waiting: Vec::new(),
            asked: Vec::new(),
            asking: Vec::new(),
            may_batch: false,
            is_closed: false,
        }
    }

    /// The text of a line and the id that its answer will have, if it will have one.
    fn write(&mut self, line: &Line) -> (String, Option<Value>) {
        let id = json!(format!("r{}", self.sent.len()));
        let text = match line {
            Line::Request(method, params) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            }
            Line::Bad(text) => text.replace("ID", &id.to_string()),
            Line::Hopeless(text) => return ((*text).to_owned(), Some(Value::Null)),
            Line::Quiet(text) => return ((*text).to_owned(), None),
        };
        self.sent.push(id.as_str().unwrap().to_owned());
        (text, Some(id))
    }

    fn owe(&mut self, id: Option<Value>) {
        if let Some(id) = id {
            *self.due.entry(id).or_default() += 1;
        }
    }

    fn send(&mut self, text: &str) {
        let mut actions = Vec::new();
        self.connection.receive(text.as_bytes(), &mut actions);
        self.take(actions);
    }

    fn happen(&mut self, event: &Event) {
        let mut actions = Vec::new();
        match event {
            Event::Line(line) => {
                let (text, id) = self.write(line);
                self.owe(id);
                self.send(&text);
            }
            Event::Batch(lines) => {
                let members: Vec<(String, Option<Value>)> =
                    lines.iter().map(|line| self.write(line)).collect();
                let texts: Vec<&str> = members.iter().map(|(text, _)| text.as_str()).collect();
                let text = format!("[{}]", texts.join(","));
                if self.may_batch {
                    members.into_iter().for_each(|(_, id)| self.owe(id));
                } else {
                    self.owe(Some(Value::Null));
                }
                self.send(&text);
            }
            Event::Finish(which, how) if !self.waiting.is_empty() => {
                let ticket = self.waiting.swap_remove(which.index(self.waiting.len()));
                self.connection.finish(ticket, outcome_of(*how), &mut actions);
            }
            Event::Cancel(which) if !self.sent.is_empty() => {
                let id = json!(self.sent[which.index(self.sent.len())]);
                let params = json!({"requestId": id});
                let method = "notifications/cancelled";
                let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
                if !self.answers.contains_key(&id) {
                    self.cancelled.push(id);
                }
                self.send(&line.to_string());
            }
            Event::Changed => {
                let changed = Changed {
                    resources: true,
                    prompts: true,
                    uris: vec!["a:b".to_owned()],
                    ..Changed::default()
                };
                self.connection.changed(&changed, &mut actions);
            }
            Event::Answer(which, how) if !self.asked.is_empty() => {
                let id = self.asked.swap_remove(which.index(self.asked.len()));
                self.send(&answer_of(&id, *how));
            }
            Event::Progress(which, how) if !self.waiting.is_empty() => {
                let ticket = self.waiting[which.index(self.waiting.len())];
                let progress = Progress { done: f64::from(*how), ..Progress::default() };
                self.connection.progress(ticket, &progress, &mut actions);
            }
            Event::GiveUp(which) if !self.asking.is_empty() => {
                let ticket = self.asking[which.index(self.asking.len())];
                self.connection.give_up(ticket, &mut actions);
            }
            Event::Finish(..)
            | Event::Cancel(_)
            | Event::Answer(..)
            | Event::GiveUp(_)
            | Event::Progress(..) => {}
        }
        self.take(actions);
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            assert!(!self.is_closed, "after the end: {action:?}");
            match action {
                Action::Reply(Reply { text, .. }) => match serde_json::from_str(&text).unwrap() {
                    Value::Array(answers) => {
                        assert!(!answers.is_empty(), "an empty array is no answer");
                        answers.iter().for_each(|answer| self.answered(answer));
                    }
                    answer => self.answered(&answer),
                },
                Action::Notify(text) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    assert!(message["method"].is_string() && message.get("id").is_none(), "{text}");
                    if message["method"] == "notifications/cancelled" {
                        let id = message["params"]["requestId"].as_str().unwrap();
                        let at = self.asked.iter().position(|asked| asked == id);
                        // An answer that is under way comes too late, and harms nobody.
                        self.asked.remove(at.unwrap());
                    }
                }
                Action::Ask { ticket, message: text, .. } => {
                    self.asking.push(ticket);
                    let message: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(message["method"], "elicitation/create");
                    let id = message["id"].as_str().unwrap().to_owned();
                    assert!(!self.asked.contains(&id), "an id of ours is used once");
                    self.asked.push(id);
                }
                Action::Call { ticket, .. } => {
                    assert!(!self.waiting.contains(&ticket), "a ticket is used once");
                    self.waiting.push(ticket);
                }
                Action::Cancel(ticket) => {
                    assert!(self.waiting.contains(&ticket), "only what waits can be cancelled");
                    // The host may be too late with it: it stays among those that it will finish.
                }
                // Every request has an id of its own here.
                Action::Warn(warning) => assert!(warning.contains("no choice"), "{warning}"),
                Action::Drain => {
                    let mut actions = Vec::new();
                    self.connection.close(&mut actions);
                    self.take(actions);
                }
                Action::Close => self.is_closed = true,
            }
        }
    }

    fn answered(&mut self, answer: &Value) {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
        if let Some(error) = answer.get("error") {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{answer}");
        }
        if let Some(version) = answer["result"]["protocolVersion"].as_str() {
            self.may_batch = version == "2025-03-26";
        }
        *self.answers.entry(answer["id"].clone()).or_default() += 1;
    }
}

/// Good, bad, and none that can be read.
fn answer_of(id: &str, how: u8) -> String {
    let outcome = match how % 5 {
        0 => r#""result":{"action":"accept","content":{"a":1}}"#,
        1 => r#""result":{"action":"decline"}"#,
        2 => r#""result":{"action":"shrug"}"#,
        3 => r#""result":7"#,
        _ => r#""error":{"code":-1,"message":"no"}"#,
    };
    format!(r#"{{"jsonrpc":"2.0","id":"{id}",{outcome}}}"#)
}

fn check(events: &[Event]) {
    let mut world = World::new();
    events.iter().for_each(|event| world.happen(event));
    loop {
        if let Some(ticket) = world.waiting.pop() {
            let mut actions = Vec::new();
            world.connection.finish(ticket, outcome_of(ticket_count(&world) % 10), &mut actions);
            world.take(actions);
        } else if let Some(id) = world.asked.pop() {
            world.send(&answer_of(&id, 0));
        } else {
            break;
        }
    }
    // It lives, and its end is the answer to `shutdown`, with those of the streams before it.
    world.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    assert_eq!(world.answers.get(&json!("last")), Some(&1));
    assert!(!world.is_closed);
    world.send(r#"{"jsonrpc":"2.0","id":"end","method":"shutdown"}"#);
    assert!(world.is_closed);
    for id in ["last", "end"] {
        world.due.insert(json!(id), 1);
    }
    for id in world.cancelled.clone() {
        // Taken back before it was answered: whoever waits no longer hears nothing.
        assert_eq!(world.answers.get(&id), None, "{id}");
        world.due.remove(&id);
    }
    assert_eq!(world.answers, world.due);
}

fn ticket_count(world: &World) -> u8 {
    u8::try_from(world.waiting.len() % 256).unwrap()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test is told by the environment how long to run")]
fn every_request_has_exactly_one_answer() {
    // The same cases every time, so that a test fails for a change and not for bad luck.
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    let (cases, rng_seed) =
        if is_long { (100_000, RngSeed::Random) } else { (400, RngSeed::Fixed(2026)) };
    let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let events = prop::collection::vec(event(), 0..40);
    runner
        .run(&events, |events| {
            check(&events);
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_id_that_is_in_flight_already_is_answered_twice_and_told_to_the_log() {
    let mut connection = Connection::new(server(), Transport::Stdio);
    let mut tickets = Vec::new();
    let mut warnings = 0;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{META},"name":"waits"}}}}"#
    );
    for _ in 0..2 {
        let mut actions = Vec::new();
        connection.receive(line.as_bytes(), &mut actions);
        for action in actions {
            match action {
                Action::Call { ticket, .. } => tickets.push(ticket),
                Action::Warn(_) => warnings += 1,
                action => panic!("{action:?}"),
            }
        }
    }
    assert_eq!(warnings, 1);
    let mut actions = Vec::new();
    for ticket in tickets {
        connection.finish(ticket, outcome_of(0), &mut actions);
    }
    assert_eq!(actions.len(), 2);
    assert!(actions.iter().all(|action| matches!(action, Action::Reply(_))));
}
