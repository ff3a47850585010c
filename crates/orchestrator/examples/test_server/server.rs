//! The protocol's side of the test server, both eras of it, without a transport.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::behaviour::{self, Hostile};
use super::{lies, mischief, tools};

pub(crate) const MODERN: &str = "2026-07-28";
/// More tools than this are all there is.
const MANY_TOOLS: usize = 100_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// `legacy`, `modern`, or both.
    pub(crate) era: Option<String>,
    /// The revision that a handshake comes to.
    pub(crate) revision: Option<String>,
    /// Where everything that is heard is written, and that we began.
    pub(crate) log: Option<PathBuf>,
    pub(crate) start_delay: Duration,
    pub(crate) list_delay: Duration,
    /// How many tools there are beside those of `tools.rs`, and how many come at a time.
    pub(crate) more_tools: usize,
    pub(crate) page: usize,
    pub(crate) time_to_live: Option<u64>,
    /// A log of messages: what the server said then is said again.
    pub(crate) replay: Option<PathBuf>,
    pub(crate) hostile: Vec<Hostile>,
}

impl Options {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` wants a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{word}` wants a number"));
            match word.as_str() {
                "--era" => options.era = Some(value),
                "--revision" => options.revision = Some(value),
                "--log" => options.log = Some(value.into()),
                "--start-delay" => options.start_delay = Duration::from_millis(number()?),
                "--list-delay" => options.list_delay = Duration::from_millis(number()?),
                "--more-tools" => options.more_tools = number()? as usize,
                "--page" => options.page = number()? as usize,
                "--ttl" => options.time_to_live = Some(number()?),
                "--hostile" => {
                    let hostile = Hostile::read(&value);
                    options
                        .hostile
                        .push(hostile.ok_or_else(|| format!("`{value}` is no behaviour"))?);
                }
                "--replay" => options.replay = Some(value.into()),
                // For whoever looks at processes.
                "--name" => {}
                _ => return Err(format!("`{word}` is no option")),
            }
        }
        Ok(options)
    }

    fn speaks(&self, era: &str) -> bool {
        self.era.as_deref().is_none_or(|mine| mine == era)
    }

    pub(crate) fn is(&self, hostile: Hostile) -> bool {
        self.hostile.contains(&hostile)
    }
}

pub(crate) struct Server {
    pub(crate) options: Options,
    out: Box<dyn Fn(&str) + Send + Sync>,
    state: Arc<Mutex<State>>,
    /// Told when something was cancelled.
    pub(crate) cancelled: Arc<Condvar>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) cancelled: BTreeSet<String>,
    /// What we asked the client, and who waits for the answer.
    asked: BTreeMap<i64, mpsc::Sender<Value>>,
    questions: i64,
    pub(crate) subscribed: BTreeSet<String>,
    /// The request that listens, in the modern way.
    listening: Option<Value>,
    /// Tools that came later.
    pub(crate) added: Vec<String>,
    pub(crate) lists: usize,
    pub(crate) calls: usize,
    /// Answers that wait for others.
    pub(crate) waiting: Vec<(Value, Value)>,
}

impl Server {
    pub(crate) fn new(options: Options, out: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let server =
            Self { options, out: Box::new(out), state: Arc::default(), cancelled: Arc::default() };
        server.log(&json!({"began": std::process::id()}).to_string());
        server
    }

    /// The same server, which is heard elsewhere.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "over HTTP each request has a response of its own")
    )]
    pub(crate) fn heard_at(&self, out: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (state, cancelled) = (self.state.clone(), self.cancelled.clone());
        Self { options: self.options.clone(), out: Box::new(out), state, cancelled }
    }

    pub(crate) fn log(&self, line: &str) {
        let Some(path) = &self.options.log else { return };
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn say(&self, message: &Value) {
        (self.out)(&message.to_string());
    }

    pub(crate) fn say_text(&self, text: &str) {
        (self.out)(text);
    }

    pub(crate) fn notify(&self, method: &str, mut params: Value) {
        if let Some(id) = &self.state().listening {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn answer(&self, id: &Value, result: Value) {
        let id = match id {
            Value::Number(number) if self.options.is(Hostile::TextIds) => json!(number.to_string()),
            _ => id.clone(),
        };
        if self.options.is(Hostile::Garbage) {
            self.say_text("Listening on port 3000…");
            self.say_text("{\"jsonrpc\":\"2.0\",\"id\":");
            self.say_text("");
            self.say_text("[1, 2]");
        }
        if self.options.is(Hostile::WrongIds) {
            self.say(&json!({"jsonrpc": "2.0", "id": 999_999, "result": {"content": []}}));
            self.say(
                &json!({"jsonrpc": "2.0", "id": "nobody", "error": {"code": 1, "message": "x"}}),
            );
            self.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}));
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.say(&message);
        if self.options.is(Hostile::Twice) {
            self.say(&message);
        }
    }

    pub(crate) fn refuse(&self, id: &Value, code: i64, message: &str, data: Value) {
        let mut error = json!({"code": code, "message": message});
        if !data.is_null() {
            error["data"] = data;
        }
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Asks the client, and waits for its answer.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let (sender, receiver) = mpsc::channel();
        let id = {
            let mut state = self.state();
            state.questions += 1;
            let id = state.questions;
            state.asked.insert(id, sender);
            id
        };
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv_timeout(Duration::from_secs(60)).ok()
    }

    pub(crate) fn hear(self: &Arc<Self>, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let params = message.get("params").cloned().unwrap_or_default();
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.request(id, method, params),
            (Some(method), None) => self.notified(method, &params),
            (None, Some(id)) => {
                let waiting = id.as_i64().and_then(|id| self.state().asked.remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message);
                }
            }
            (None, None) => {}
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            self.state().cancelled.insert(params["requestId"].to_string());
            self.cancelled.notify_all();
        }
    }

    fn request(self: &Arc<Self>, id: &Value, method: &str, params: Value) {
        match method {
            "initialize" if self.options.is(Hostile::NeverInitializes) => {}
            "initialize" if self.options.speaks("legacy") => self.initialize(id, &params),
            "server/discover" => self.discover(id),
            "ping" => self.answer(id, json!({})),
            "tools/list" => {
                let (server, id) = (self.clone(), id.clone());
                std::thread::spawn(move || server.list_tools(&id, &params));
            }
            "tools/call" => {
                self.state().calls += 1;
                let (server, id) = (self.clone(), id.clone());
                if mischief::on_the_reader(self, &id, params["name"].as_str().unwrap_or_default()) {
                    return;
                }
                std::thread::spawn(move || tools::call(&server, &id, &params));
            }
            "resources/list" => {
                let resources = json!([{"uri": "test://a", "name": "a"}, {"uri": "test://b", "name": "b", "x": 1}]);
                self.answer(id, json!({"resultType": "complete", "resources": resources}));
            }
            "resources/templates/list" => {
                let templates = json!([{"uriTemplate": "test://{name}", "name": "any"}]);
                self.answer(id, json!({"resultType": "complete", "resourceTemplates": templates}));
            }
            "resources/read" if params["uri"] == "test://ask" => {
                tools::ask_in_read(self, id, &params)
            }
            "resources/read" if params["uri"] == "test://many" => self.say_text(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"contents":{}}}}}"#,
                mischief::zeros(),
            )),
            "resources/read" => {
                let contents = json!([{"uri": params["uri"], "text": "of it", "extra": true}]);
                self.answer(id, json!({"resultType": "complete", "contents": contents}));
            }
            "resources/subscribe" => {
                self.state()
                    .subscribed
                    .insert(params["uri"].as_str().unwrap_or_default().to_owned());
                self.answer(id, json!({}));
            }
            "resources/unsubscribe" => {
                self.state().subscribed.remove(params["uri"].as_str().unwrap_or_default());
                self.answer(id, json!({}));
            }
            "subscriptions/listen" if !self.options.is(Hostile::KnowsNoListening) => {
                self.listen(id, &params)
            }
            "prompts/list" => {
                self.answer(id, json!({"resultType": "complete", "prompts": [{"name": "p"}]}))
            }
            _ => self.refuse(id, -32601, "Method not found", json!({"method": method})),
        }
    }

    fn capabilities() -> Value {
        json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "made-up": {"x": 1},
        })
    }

    fn initialize(self: &Arc<Self>, id: &Value, params: &Value) {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = match &self.options.revision {
            Some(revision) => revision,
            None if self.options.is(Hostile::FromTheFuture) => "2099-01-01",
            None => asked,
        };
        if self.options.is(Hostile::Boasts) {
            return self.say_text(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{revision}","capabilities":{{"tools":{}}}}}}}"#,
                mischief::zeros(),
            ));
        }
        if self.options.is(Hostile::Sloppy) {
            self.answer(id, json!({"protocolVersion": revision, "capabilities": {"tools": true}}));
            return;
        }
        self.answer(
            id,
            json!({
                "protocolVersion": revision,
                "capabilities": Self::capabilities(),
                "serverInfo": {"name": "test-server", "title": "Test", "version": "1.2.3"},
                "instructions": "be kind",
            }),
        );
        self.flood();
    }

    fn discover(self: &Arc<Self>, id: &Value) {
        if self.options.is(Hostile::DiesOfDiscover) {
            behaviour::complain("unknown method, giving up");
            std::process::exit(1);
        }
        if self.options.is(Hostile::IgnoresDiscover) || self.options.is(Hostile::NeverInitializes) {
            return;
        }
        if self.options.is(Hostile::AnswersAnything) {
            return self.answer(id, json!({}));
        }
        if !self.options.speaks("modern") {
            return self.refuse(id, -32601, "Method not found", Value::Null);
        }
        self.answer(id, json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": Self::capabilities(),
            "instructions": "be kind",
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test-server", "version": "1.2.3"}},
        }));
        self.flood();
    }

    fn flood(self: &Arc<Self>) {
        let server = self.clone();
        if self.options.is(Hostile::FloodsRequests) {
            std::thread::spawn(move || {
                for id in 0_u64.. {
                    server
                        .say(&json!({"jsonrpc": "2.0", "id": format!("f{id}"), "method": "ping"}));
                }
            });
        } else if self.options.is(Hostile::DeafFlood) {
            for id in 0_u64.. {
                server.say(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
            }
        } else if self.options.is(Hostile::FloodsNotifications) {
            std::thread::spawn(move || {
                loop {
                    server.say(
                        &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
                    );
                    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}));
                }
            });
        }
    }

    fn list_tools(&self, id: &Value, params: &Value) {
        std::thread::sleep(self.options.list_delay);
        self.state().lists += 1;
        let mut all = match self.options.hostile.as_slice() {
            [Hostile::Lies] => lies::tools(),
            [Hostile::LargeTools] => lies::large(),
            _ => tools::all(),
        };
        for name in self.state().added.iter() {
            all.push(json!({"name": name, "inputSchema": {"type": "object"}}));
        }
        let from =
            params["cursor"].as_str().and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or(0);
        let page = if self.options.page == 0 { usize::MAX } else { self.options.page };
        let more = self.options.more_tools;
        if more > MANY_TOOLS {
            return self.list_many(id, from, from.saturating_add(page).min(more));
        }
        for number in 0..more {
            all.push(json!({"name": format!("more-{number}"), "inputSchema": {"type": "object"}}));
        }
        let mut result = Map::new();
        result.insert("resultType".to_owned(), json!("complete"));
        let next = from.saturating_add(page);
        if self.options.is(Hostile::EndlessPages) {
            result.insert("nextCursor".to_owned(), json!((from + 1).to_string()));
            all = vec![json!({"name": format!("endless-{from}"), "inputSchema": {}})];
        } else if self.options.is(Hostile::CircularPages) {
            result.insert("nextCursor".to_owned(), json!("0"));
        } else {
            if next < all.len() {
                result.insert("nextCursor".to_owned(), json!(next.to_string()));
            }
            all = all.into_iter().skip(from).take(page).collect();
        }
        if let Some(time) = self.options.time_to_live {
            result.insert("ttlMs".to_owned(), json!(time));
        }
        result.insert("tools".to_owned(), Value::Array(all));
        self.answer(id, Value::Object(result));
    }

    /// The same as text: a million values take long.
    fn list_many(&self, id: &Value, from: usize, to: usize) {
        let mut tools = String::new();
        for number in from..to {
            let comma = if number > from { "," } else { "" };
            let _ = write!(
                tools,
                r#"{comma}{{"name":"more-{number}","inputSchema":{{"type":"object"}}}}"#
            );
        }
        let next = if to < self.options.more_tools {
            format!(r#","nextCursor":"{to}""#)
        } else {
            String::new()
        };
        self.say_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{tools}]{next}}}}}"#
        ));
    }

    fn listen(&self, id: &Value, params: &Value) {
        let mut wanted = params["notifications"].clone();
        if self.options.is(Hostile::AgreesToNothing) {
            wanted = json!({});
        }
        let uris = wanted["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
        {
            let mut state = self.state();
            state.listening = Some(id.clone());
            state.subscribed =
                uris.iter().filter_map(|uri| uri.as_str().map(str::to_owned)).collect();
        }
        self.notify("notifications/subscriptions/acknowledged", json!({"notifications": wanted}));
    }
}
