//! Puts together what belongs together: a request, what came while it was under way, and its answer.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Way;

/// Where an upstream says to which request of ours a message belongs.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// One request, and all that came of it.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) method: String,
    /// As far as they matter: see [`compared`].
    pub(super) params: Value,
    /// The request's id, which notifications may refer to.
    pub(super) id: Value,
    /// What its progress was reported under.
    pub(super) token: Option<Value>,
    /// What the server said before the answer, with where it stood in the file.
    pub(super) before: Vec<(usize, Value)>,
    /// What it said after it, where no other answer came.
    pub(super) after: Vec<(usize, Value)>,
    /// `result` or `error` with its value; nothing where no answer came.
    pub(super) answer: Option<Map<String, Value>>,
}

/// A connection of a server.
pub(super) type Place = (String, u64);

#[derive(Debug, Default)]
pub(super) struct Gathering {
    exchanges: Vec<Exchange>,
    connections: HashMap<Place, Connection>,
    messages: usize,
}

#[derive(Debug, Default)]
struct Connection {
    /// Requests that are not answered yet, oldest first.
    open: Vec<usize>,
    /// What belongs to no request: it is said before the next answer.
    loose: Vec<(usize, Value)>,
    /// The request that was answered last.
    last: Option<usize>,
}

impl Gathering {
    pub(super) fn add(&mut self, place: &Place, way: Way, message: Value) {
        self.messages += 1;
        let Value::Object(fields) = message else { return };
        let connection = self.connections.entry(place.clone()).or_default();
        let has_id = fields.get("id").is_some_and(|id| !id.is_null());
        match (way, fields.contains_key("method"), has_id) {
            (Way::Out, true, true) => {
                let Some(exchange) = Exchange::of(&fields) else { return };
                connection.open.push(self.exchanges.len());
                self.exchanges.push(exchange);
            }
            (Way::In, false, true) => {
                let is_it = |at: &usize| self.exchanges[*at].id == fields["id"];
                // Runs that are appended to each other begin to count anew.
                let Some(found) = connection.open.iter().rposition(is_it) else { return };
                let at = connection.open.remove(found);
                let exchange = &mut self.exchanges[at];
                exchange.before.append(&mut connection.loose);
                exchange.answer = Some(only_answer(fields));
                connection.last = Some(at);
            }
            (Way::In, true, _) => {
                let said = (self.messages, Value::Object(fields));
                match connection.concerned(&self.exchanges, &said.1) {
                    Some(at) => self.exchanges[at].before.push(said),
                    None => connection.loose.push(said),
                }
            }
            // What a client tells, and what it answers, is its own affair.
            (Way::Out, ..) | (Way::Stderr, ..) | (Way::In, false, false) => {}
        }
    }

    pub(super) fn done(mut self) -> Vec<Exchange> {
        for connection in self.connections.into_values() {
            if let Some(last) = connection.last.or(connection.open.last().copied()) {
                self.exchanges[last].after.extend(connection.loose);
            }
        }
        for exchange in &mut self.exchanges {
            exchange.before.sort_by_key(|(at, _)| *at);
        }
        self.exchanges
    }
}

impl Connection {
    /// The open request that a message of the server's is about, where that can be told.
    fn concerned(&self, exchanges: &[Exchange], message: &Value) -> Option<usize> {
        let params = message.get("params");
        let token = params.and_then(|params| params.get("progressToken"));
        let subscription = params.and_then(|params| params.get("_meta")?.get(SUBSCRIPTION));
        let mut open = self.open.iter().rev().copied();
        if let Some(token) = token {
            return open.find(|at| exchanges[*at].token.as_ref() == Some(token));
        }
        if let Some(subscription) = subscription {
            return open.find(|at| exchanges[*at].is_meant_by(subscription));
        }
        // A question to the client comes up while something is carried out: the last that was asked for, most likely.
        message.get("id").and_then(|_| open.next())
    }
}

impl Exchange {
    fn of(fields: &Map<String, Value>) -> Option<Self> {
        let method = fields.get("method")?.as_str()?.to_owned();
        let params = fields.get("params");
        Some(Self {
            params: compared(&method, params),
            token: token(params).cloned(),
            method,
            id: fields.get("id").cloned().unwrap_or_default(),
            before: Vec::new(),
            after: Vec::new(),
            answer: None,
        })
    }

    /// Ids are texts there, whatever they were.
    pub(super) fn is_meant_by(&self, subscription: &Value) -> bool {
        let own = self.id.to_string();
        self.id == *subscription || subscription.as_str() == Some(&*own)
    }

    /// What the server said of its own, with what refers to the recorded request referring to this one.
    pub(super) fn retold(&self, said: &Value, id: &Value, token: Option<&Value>) -> Option<Value> {
        let mut said = said.clone();
        let Some(params) = said.get_mut("params") else { return Some(said) };
        if let Some(old) = params.get_mut("progressToken")
            && Some(&*old) == self.token.as_ref()
        {
            // Who has not asked for progress gets none.
            *old = token?.clone();
        }
        let subscription = params.get_mut("_meta").and_then(|meta| meta.get_mut(SUBSCRIPTION));
        if let Some(old) = subscription.filter(|old| self.is_meant_by(old)) {
            *old = match (&*old, id) {
                (Value::String(_), Value::Number(id)) => id.to_string().into(),
                _ => id.clone(),
            };
        }
        Some(said)
    }
}

/// What a request asks for: its parameters without what only concerns how it is carried.
pub(super) fn compared(method: &str, params: Option<&Value>) -> Value {
    let mut params = params.and_then(Value::as_object).cloned().unwrap_or_default();
    params.remove("_meta");
    // No arguments are no arguments, however that is written.
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty) || value.is_null();
    if method == "tools/call" && params.get("arguments").is_some_and(is_empty) {
        params.remove("arguments");
    }
    Value::Object(params)
}

/// What a request wants its progress to be reported under.
pub(super) fn token(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")?.get("progressToken")
}

fn only_answer(mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.retain(|name, _| name == "result" || name == "error");
    fields
}
