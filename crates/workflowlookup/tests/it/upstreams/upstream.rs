//! A server that others call, over HTTP, in this process: what it was asked can be seen, and what it does is up to the test.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp::content::{About, Block, Held, Page, Resource, ResourceContents, Tool};
use mcp::{Answer, Ask, Call, Caller, Changed, Form, More, Outcome, Progress, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use transport::{Context, Feed, Host, Options, OutcomeFuture, Service};

use crate::transcripts::PATIENCE;

pub(crate) struct Upstream {
    pub(super) address: SocketAddr,
    pub(super) feed: Feed,
    state: Arc<State>,
    /// What it was asked, and what became of that.
    seen: Mutex<Receiver<Seen>>,
    /// Gone with us.
    _runtime: Runtime,
}

#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    Called(&'static str, Value),
    /// A call that waits was taken back.
    Withdrawn,
    Read(String),
}

struct State {
    seen: Mutex<Sender<Seen>>,
    waiting: Mutex<Vec<oneshot::Sender<Outcome>>>,
    /// A tool that comes and goes.
    has_more: Mutex<bool>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, receiver) = channel();
        let state = Arc::new(State {
            seen: Mutex::new(seen),
            waiting: Mutex::default(),
            has_more: Mutex::default(),
        });
        let feed = Feed::default();
        let service =
            Service::new(Tools::new(Arc::clone(&state)), Options::default(), feed.clone()).unwrap();
        runtime.spawn(transport::serve(service, listener, std::future::pending()));
        Self { address, feed, state, seen: Mutex::new(receiver), _runtime: runtime }
    }

    /// An entry of the registry, with more in it.
    pub(crate) fn entry(&self, id: &str, more: Value) -> Value {
        let mut entry = json!({
            "id": id,
            "mcp": {"transport": "http", "url": format!("http://{}/mcp", self.address)},
            "sensitivity": "low",
            "maxCallsPerMinute": 1000,
            "timeoutMs": 30_000,
        });
        for (name, value) in more.as_object().unwrap() {
            match (name.as_str(), value) {
                ("mcp", Value::Object(fields)) => {
                    fields.iter().for_each(|(name, value)| entry["mcp"][name] = value.clone());
                }
                (name, value) => entry[name] = value.clone(),
            }
        }
        entry
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().recv_timeout(PATIENCE).expect("nothing was asked")
    }

    pub(super) fn has_seen_nothing(&self) -> bool {
        self.seen.lock().unwrap().try_recv().is_err()
    }

    /// Lets a call that waits come to its end.
    pub(super) fn finish(&self) {
        // That it was called is seen before it waits.
        let until = Instant::now() + PATIENCE;
        let finish = loop {
            let finish = self.state.waiting.lock().unwrap().pop();
            match finish {
                Some(finish) => break finish,
                None => assert!(Instant::now() < until, "nothing waits"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        finish.send(said("done at last")).unwrap();
    }

    /// One more tool is there, or not.
    pub(super) fn change_tools(&self, has_more: bool) {
        *self.state.has_more.lock().unwrap() = has_more;
        self.feed.tell(Changed { tools: true, ..Changed::default() });
    }

    /// A resource is another than it was.
    pub(super) fn update(&self, uri: &str) {
        self.feed.tell(Changed { uris: vec![uri.to_owned()], ..Changed::default() });
    }
}

struct Tools {
    server: Arc<Server>,
    state: Arc<State>,
}

fn about(input_schema: Value, annotations: Value) -> About {
    About {
        title: "For a test",
        description: "Does what its name says",
        input_schema,
        output_schema: None,
        annotations,
        examples: None,
    }
}

fn plain() -> About {
    about(json!({"type": "object", "properties": {}}), json!({}))
}

impl Tools {
    fn new(state: Arc<State>) -> Self {
        let tool = |name, about| Tool { name, is_method: false, about };
        let tools = vec![
            tool("echo", || {
                let text = json!({"type": "string", "description": "What to say back"});
                let schema = json!({
                    "type": "object", "properties": {"text": text}, "required": ["text"],
                });
                About {
                    description: "Says a text back to who has sent it",
                    ..about(schema, json!({"readOnlyHint": true}))
                }
            }),
            tool("everything", plain),
            tool("fails", plain),
            tool("breaks", plain),
            tool("waits", plain),
            tool("asks", plain),
            tool("asks_twice", plain),
            tool("large", plain),
            tool("lies", || {
                let promised =
                    json!({"type": "object", "properties": {"count": {"type": "integer"}}});
                About { output_schema: Some(promised), ..plain() }
            }),
            tool("destroys", || about(json!({"type": "object"}), json!({"destructiveHint": true}))),
            tool("harmless", || {
                about(json!({"type": "object"}), json!({"destructiveHint": false}))
            }),
        ];
        let mut server = Server::new("notes", "Notes", "1.2.3", "For a test", "Ask nicely.", tools);
        let own = Arc::clone(&state);
        server.more = Some(More {
            tools: vec![tool("zebra_crossing", plain)],
            instructions: "",
            are_there: Box::new(move || *own.has_more.lock().unwrap()),
        });
        server.tools_change = true;
        Self { server: Arc::new(server), state }
    }

    fn see(&self, seen: Seen) {
        // The test may be over.
        let _ = self.state.seen.lock().unwrap().send(seen);
    }

    fn wait(&self, context: &Context) -> OutcomeFuture {
        let message = Some("half of it".to_owned());
        context.progress(Progress { done: 1.0, total: Some(2.0), message });
        let (sender, receiver) = oneshot::channel();
        self.state.waiting.lock().unwrap().push(sender);
        let mut seeing = SeesWithdrawal(Some(Arc::clone(&self.state)));
        Box::pin(async move {
            let outcome = receiver.await.unwrap();
            seeing.0.take();
            outcome
        })
    }
}

fn said(text: impl Into<String>) -> Outcome {
    Outcome::Blocks { blocks: vec![Block::text(text)], structured: None, is_error: false }
}

impl Host for Tools {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    fn call(&self, call: Call, caller: Caller, context: Context) -> OutcomeFuture {
        if matches!(call, Call::Tool { name: "waits", .. }) {
            self.see(Seen::Called("waits", json!({})));
            return self.wait(&context);
        }
        Box::pin(std::future::ready(self.answer(call, &caller)))
    }
}

/// Notes that a call was taken back before it had an outcome.
struct SeesWithdrawal(Option<Arc<State>>);

impl Drop for SeesWithdrawal {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            let _ = state.seen.lock().unwrap().send(Seen::Withdrawn);
        }
    }
}

impl Tools {
    fn answer(&self, call: Call, caller: &Caller) -> Outcome {
        match call {
            Call::Tool { name, ref arguments, .. } => {
                let values: Value = serde_json::from_str(arguments.get()).unwrap();
                self.see(Seen::Called(name, values.clone()));
                match name {
                    "echo" => {
                        let text = values["text"].as_str().unwrap().to_owned();
                        let structured = Some(json!({"text": text}));
                        Outcome::Blocks {
                            blocks: vec![Block::text(text)],
                            structured,
                            is_error: false,
                        }
                    }
                    "everything" => everything(),
                    "fails" => {
                        let blocks = vec![Block::text("it cannot be done")];
                        Outcome::Blocks { blocks, structured: None, is_error: true }
                    }
                    "breaks" => Outcome::BadParams("the moon is not full".to_owned()),
                    "large" => said("0123456789".repeat(60_000)),
                    "lies" => {
                        let structured = Some(json!({"count": "many"}));
                        Outcome::Blocks { blocks: Vec::new(), structured, is_error: false }
                    }
                    "asks" | "asks_twice" => ask(call.clone(), name, caller),
                    name => said(format!("{name}: done")),
                }
            }
            Call::ListResources { .. } => {
                let note = |name: &str| Resource {
                    uri: format!("note:{name}"),
                    name: name.to_owned(),
                    title: format!("The note {name}"),
                    description: "A note".to_owned(),
                    mime_type: "text/plain",
                };
                let items = ["a", "b"].map(|name| note(name).into()).into();
                Outcome::Resources(Page { items, next: None, is_live: true })
            }
            Call::ReadResource { uri } => {
                self.see(Seen::Read(uri.clone()));
                if uri != "note:a" {
                    return Outcome::NoResource { uri };
                }
                let held = Held::Text("what it says".to_owned());
                let contents = ResourceContents { uri, mime_type: "text/plain", held };
                Outcome::Resource { contents, is_live: true }
            }
            Call::ListTemplates => Outcome::Templates(Vec::new()),
            _ => Outcome::Fault,
        }
    }
}

fn everything() -> Outcome {
    let link = Resource {
        uri: "note:b".to_owned(),
        name: "b".to_owned(),
        title: "B".to_owned(),
        description: "Another".to_owned(),
        mime_type: "text/plain",
    };
    let contents = |held| ResourceContents { uri: "note:a".to_owned(), mime_type: "a/b", held };
    let blocks = vec![
        Block::text("a text"),
        Block::Image { bytes: vec![1, 2, 3], mime_type: "image/png" },
        Block::Audio { bytes: vec![4, 5, 6], mime_type: "audio/wav" },
        Block::Embedded(contents(Held::Text("held".to_owned()))),
        Block::Link(link),
    ];
    Outcome::Blocks { blocks, structured: Some(json!({"n": [1, 2]})), is_error: false }
}

/// Asks for a name, and then for an age where it asks twice.
fn ask(call: Call, name: &str, caller: &Caller) -> Outcome {
    let answers = caller.answers.as_ref();
    let given = |name: &str| answers.and_then(|answers| answers.given.get(name));
    let form = |field: &str, kind: &str| {
        let schema = json!({
            "type": "object", "properties": {field: {"type": kind}}, "required": [field],
        });
        Form { message: format!("Your {field}?"), schema }
    };
    let question = |call: Call, field: &str, kind: &str, state: String| {
        Outcome::Ask(Box::new(Ask {
            call,
            questions: vec![(field.to_owned(), form(field, kind).into())],
            patience: Duration::from_secs(30),
            about: None,
            state: Some(state),
        }))
    };
    let state = answers.and_then(|answers| answers.state.clone()).unwrap_or_default();
    match (given("name"), given("age")) {
        (_, Some(Answer::Accepted(fields))) => said(format!("{state} is {}", fields["age"])),
        (Some(Answer::Accepted(fields)), _) if name == "asks_twice" => {
            question(call, "age", "integer", fields["name"].as_str().unwrap().to_owned())
        }
        (Some(Answer::Accepted(fields)), _) => {
            said(format!("Hello, {}", fields["name"].as_str().unwrap()))
        }
        (Some(Answer::Declined), _) => said("they do not want to say"),
        _ if answers.is_some() => said("nobody answered"),
        _ => question(call, "name", "string", "asked".to_owned()),
    }
}
