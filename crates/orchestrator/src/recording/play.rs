//! Plays a recording to a client: every request that was recorded gets its recorded answer, with all that came before it.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::Recording;
use super::exchanges::{Exchange, compared, token};

/// So many recorded requests are named to who asks for another.
const NAMED_MAX: usize = 20;
/// So much is shown of each.
const NAMED_BYTES_MAX: usize = 200;
/// What a client says of itself differs from client to client: these are known by their method alone.
const INTRODUCTIONS: &[&str] = &["initialize", "server/discover"];

/// Where a server without handshakes says who it is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// One client's way through a recording.
pub struct Player {
    recording: Recording,
    /// How often each exchange was played.
    played: HashMap<usize, usize>,
    /// Requests whose answer waits for what the client is asked.
    waiting: Vec<Playing>,
    questions: u64,
}

/// A request that is being answered.
struct Playing {
    id: Value,
    said: VecDeque<Value>,
    answer: Option<Value>,
    after: Vec<Value>,
    /// The question to the client that must be answered first.
    question: Option<Value>,
}

impl Player {
    pub fn new(recording: Recording) -> Self {
        Self { recording, played: HashMap::new(), waiting: Vec::new(), questions: 0 }
    }

    /// What to say to a line of the client's, message by message.
    pub fn hear(&mut self, line: &str) -> Vec<Value> {
        let mut said = Vec::new();
        match serde_json::from_str(line) {
            Ok(Value::Array(batch)) => {
                batch.into_iter().for_each(|message| self.message(message, &mut said));
            }
            Ok(message) => self.message(message, &mut said),
            Err(error) => {
                let why = format!("this is not JSON: {error}");
                said.push(refused(Value::Null, -32700, &why, Value::Null));
            }
        }
        said
    }

    fn message(&mut self, message: Value, said: &mut Vec<Value>) {
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        let method = message.get("method").and_then(Value::as_str);
        match (method, id) {
            (Some(method), Some(id)) => self.request(method, id, message.get("params"), said),
            (Some("notifications/cancelled"), None) => {
                let given_up = message.get("params").and_then(|params| params.get("requestId"));
                self.waiting.retain(|playing| Some(&playing.id) != given_up);
            }
            (Some(_), None) => {}
            (None, Some(id)) => {
                let is_it = |playing: &Playing| playing.question.as_ref() == Some(&id);
                if let Some(at) = self.waiting.iter().position(is_it) {
                    let playing = self.waiting.remove(at);
                    self.go_on(playing, said);
                }
            }
            (None, None) => {
                let why = "this is no message of JSON-RPC";
                said.push(refused(Value::Null, -32600, why, Value::Null));
            }
        }
    }

    fn request(&mut self, method: &str, id: Value, params: Option<&Value>, said: &mut Vec<Value>) {
        let compared = compared(method, params);
        let Some(at) = self.find(method, &compared) else {
            // Whether somebody is there can be asked at any time, and who it is in either way.
            let result = match method {
                "ping" => Some(json!({})),
                "initialize" => self.introduction(params),
                _ => None,
            };
            said.push(match result {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => self.unknown(method, id, compared),
            });
            return;
        };
        *self.played.entry(at).or_default() += 1;
        let exchange = &self.recording.exchanges[at];
        let retold = |said: &[(usize, Value)]| {
            let said = said.iter();
            said.filter_map(|(_, said)| exchange.retold(said, &id, token(params)))
                .collect::<Vec<_>>()
        };
        let playing = Playing {
            said: retold(&exchange.before).into(),
            after: retold(&exchange.after),
            answer: exchange.answer.as_ref().map(|answer| answered(&id, answer)),
            id: id.clone(),
            question: None,
        };
        self.go_on(playing, said);
    }

    /// For a client that only knows handshakes, what a server without them said of itself.
    fn introduction(&self, params: Option<&Value>) -> Option<Value> {
        let mut discoveries =
            self.recording.exchanges.iter().filter(|one| one.method == "server/discover");
        let found = discoveries.find_map(|one| one.answer.as_ref()?.get("result"))?;
        let of = |name: &str| found.get(name).cloned();
        let server = found.get("_meta").and_then(|meta| meta.get(SERVER_INFO)).cloned();
        let server = server.or_else(|| of("serverInfo"));
        let revision = params.and_then(|params| params.get("protocolVersion"));
        Some(json!({
            "protocolVersion": revision,
            "capabilities": of("capabilities").unwrap_or_else(|| json!({})),
            "serverInfo": server.unwrap_or_else(|| json!({"name": "recording", "version": ""})),
            "instructions": of("instructions").unwrap_or_else(|| "".into()),
        }))
    }

    /// Says everything up to the next question to the client, or to the end.
    fn go_on(&mut self, mut playing: Playing, said: &mut Vec<Value>) {
        while let Some(mut next) = playing.said.pop_front() {
            if next.get("id").is_some() {
                self.questions += 1;
                let id = Value::from(format!("replay-{}", self.questions));
                next["id"] = id.clone();
                said.push(next);
                playing.question = Some(id);
                self.waiting.push(playing);
                return;
            }
            said.push(next);
        }
        said.extend(playing.answer);
        said.extend(playing.after);
    }

    /// The exchange to play: those that say the same in their order, the last one again and again.
    fn find(&self, method: &str, params: &Value) -> Option<usize> {
        let of_method: Vec<(usize, &Exchange)> = {
            let all = self.recording.exchanges.iter().enumerate();
            all.filter(|(_, exchange)| exchange.method == method).collect()
        };
        let same = of_method.iter().filter(|(_, exchange)| exchange.params == *params);
        let mut found: Vec<(usize, &Exchange)> = same.copied().collect();
        if found.is_empty() && INTRODUCTIONS.contains(&method) {
            found = of_method;
        }
        // One that got no answer is played where there is none that got one.
        if found.iter().any(|(_, exchange)| exchange.answer.is_some()) {
            found.retain(|(_, exchange)| exchange.answer.is_some());
        }
        let fresh = found.iter().find(|(at, _)| !self.played.contains_key(at));
        fresh.or(found.last()).map(|(at, _)| *at)
    }

    fn unknown(&self, method: &str, id: Value, params: Value) -> Value {
        let is_known = self.recording.exchanges.iter().any(|exchange| exchange.method == method);
        let (code, why) = match is_known {
            true => (-32602, format!("the recording has no `{method}` with these parameters")),
            false => (-32601, format!("the recording has no `{method}`")),
        };
        let exchanges = self.recording.exchanges.iter();
        let alike: Vec<String> = exchanges
            .filter(|exchange| !is_known || exchange.method == method)
            .map(named)
            .collect();
        let mut recorded: Vec<String> = Vec::new();
        for name in alike {
            if recorded.len() < NAMED_MAX && !recorded.contains(&name) {
                recorded.push(name);
            }
        }
        let data = json!({"asked": {"method": method, "params": params}, "recorded": recorded});
        refused(id, code, &why, data)
    }
}

fn named(exchange: &Exchange) -> String {
    untrusted_text::cut(&format!("{} {}", exchange.method, exchange.params), NAMED_BYTES_MAX)
}

fn answered(id: &Value, answer: &Map<String, Value>) -> Value {
    let mut message =
        Map::from_iter([("jsonrpc".to_owned(), "2.0".into()), ("id".to_owned(), id.clone())]);
    message.extend(answer.clone());
    Value::Object(message)
}

fn refused(id: Value, code: i64, message: &str, data: Value) -> Value {
    let mut error = json!({"code": code, "message": message});
    if !data.is_null() {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests;
