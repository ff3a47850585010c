//! A client that walks a workflow through a proxy. What it may meet are errors after which it makes the same request
//! again; every answer that it gets is the right one.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::Era;
use crate::http_agent::{carrying, hello, legacy, modern, session_of};
use crate::http_client::{Connection, Request, Response};

pub(crate) const FIVE_STEPS: &str = r#"{
    "id": "five-steps", "name": "Five steps", "description": "For a test", "version": "1.0.0",
    "steps": [
        {"id": "look", "title": "Look", "prompt": "Look at it."},
        {"id": "rounds", "type": "loop", "title": "Rounds",
         "loop": {"type": "for", "count": 2, "maxIterations": 2},
         "body": [
            {"id": "draft", "title": "Draft", "prompt": "Draft number {{currentIteration}}.",
             "validationCriteria": [{"type": "contains", "value": "draft", "message": "Say what it is"}]}
         ]},
        {"id": "check", "title": "Check", "prompt": "Check it."},
        {"id": "hand-in", "title": "Hand in", "prompt": "Hand it in."}
    ]
}"#;

/// How long a client tries before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it looks whether something was told.
const A_MOMENT: Duration = Duration::from_millis(5);
/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(50);

/// What all clients together have met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// Answers of `workflow_advance`.
    pub(crate) answers: AtomicUsize,
    /// Connections that broke, also in the middle of an answer.
    pub(crate) broken: AtomicUsize,
    /// 502, 503 and 504: the proxy had nobody to pass it on to, or lost them.
    pub(crate) gateway: AtomicUsize,
    /// 429.
    pub(crate) busy: AtomicUsize,
    /// Calls that said that the store cannot be used now, or that too many wait for it.
    pub(crate) store: AtomicUsize,
    /// Questions that were answered by a request of its own.
    pub(crate) decided: AtomicUsize,
    /// Calls that were answered before anybody had decided, because their replica was told to end.
    pub(crate) undecided: AtomicUsize,
    /// Changes that those heard of who follow their session.
    pub(crate) heard: AtomicUsize,
}

pub(crate) fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What a client is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Has a step that its user has to confirm.
    Gated,
    /// Listens to what becomes of its session.
    Following,
}

pub(crate) struct Walker<'a> {
    proxy: SocketAddr,
    era: Era,
    kind: Kind,
    /// Chosen by us, so that a start that was not answered can be made again.
    key: String,
    workflow: String,
    token: Option<String>,
    /// How long it takes to do a step.
    pace: Duration,
    met: &'a Met,
    connection: Option<Connection>,
    session: String,
    requests: u64,
    /// How often it heard of its session.
    heard: usize,
}

/// What a client has come to.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) id: String,
    pub(crate) revision: u64,
    /// The calls that were accepted, in their order.
    pub(crate) accepted: Vec<Value>,
}

impl Walked {
    /// The session's id, and its last revision.
    pub(crate) fn end(self) -> (String, u64) {
        (self.id, self.revision)
    }
}

/// The call that hands in what comes next. No two of a session are the same.
pub(crate) fn next(stands: &Value) -> Value {
    let (step, revision) = (stands["step"]["id"].as_str().unwrap(), &stands["revision"]);
    let output = format!("Dear Ada, a good draft at revision {revision}");
    json!({"sessionId": stands["sessionId"], "revision": revision, "stepId": step, "output": output})
}

impl<'a> Walker<'a> {
    pub(crate) fn new(proxy: SocketAddr, era: Era, kind: Kind, key: String, met: &'a Met) -> Self {
        let workflow = if kind == Kind::Gated { "letter" } else { "five-steps" }.to_owned();
        let (connection, session, token, pace) = (None, String::new(), None, Duration::ZERO);
        let (requests, heard) = (0, 0);
        Self {
            proxy,
            era,
            kind,
            key,
            workflow,
            token,
            pace,
            met,
            connection,
            session,
            requests,
            heard,
        }
    }

    /// Through another workflow than usual.
    pub(crate) fn through(self, workflow: &str) -> Self {
        Self { workflow: workflow.to_owned(), ..self }
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    pub(crate) fn at_pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    /// Walks to the end.
    pub(crate) fn walk(mut self) -> Walked {
        if self.era == Era::Legacy {
            let response = self.retried(|own| own.ask(&hello(&own.capabilities())));
            self.session = session_of(&response);
            let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            let request = carrying(&self.session, told);
            assert_eq!(self.retried(|own| own.ask(&request)).head.status, 202);
        }
        let arguments = json!({"workflowId": self.workflow, "key": self.key});
        let mut stands = self.call("workflow_start", &arguments);
        let id = stands["sessionId"].as_str().unwrap().to_owned();
        let mut following = self.follow(&id);
        let mut accepted = Vec::new();
        while stands["isComplete"] != true {
            let arguments = next(&stands);
            let revision = arguments["revision"].as_u64().unwrap();
            let answer = self.call("workflow_advance", &arguments);
            if answer["accepted"].is_null() {
                // It waits for somebody, and nobody was asked to the end: the same call again.
                assert!(self.kind == Kind::Gated && answer["waiting"].is_object(), "{answer}");
                count(&self.met.undecided);
                continue;
            }
            assert_eq!(answer["accepted"], true, "{answer}");
            assert_eq!(
                (&answer["sessionId"], &answer["revision"]),
                (&json!(id), &json!(revision + 1))
            );
            count(&self.met.answers);
            accepted.push(arguments);
            stands = answer;
            self.listen(&mut following);
            std::thread::sleep(self.pace);
        }
        // What another replica has done is told within a second.
        if let Some(stream) = following.as_mut().filter(|_| self.heard == 0) {
            stream.set_patience(Duration::from_secs(3));
            self.listen(&mut following);
        }
        if self.era == Era::Legacy {
            let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &self.session);
            // One that was carried out, and whose answer was lost, is not found the next time.
            let ended = self.retried(|own| own.ask(&end)).head.status;
            assert!([204, 404].contains(&ended), "{ended}");
        }
        Walked { id, revision: stands["revision"].as_u64().unwrap(), accepted }
    }

    /// Makes a call until it is answered.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments});
        loop {
            let result = self.retried(|own| {
                let message = own.try_call(&params)?;
                own.result_of(message)
            });
            if result["resultType"] == "input_required" {
                let approve = json!({"action": "accept", "content": {"decision": "approve"}});
                params["inputResponses"] = json!({"gate": approve});
                params["requestState"] = result["requestState"].clone();
                count(&self.met.decided);
                continue;
            }
            return result["structuredContent"].clone();
        }
    }

    /// What a call came to. The only thing that it may say besides is that it may be made again.
    fn result_of(&self, mut message: Value) -> io::Result<Value> {
        let result = message["result"].take();
        let error = match result.get("isError") {
            None if result.is_object() => return Ok(result),
            None => message["error"].take(),
            Some(_) => {
                serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap()
            }
        };
        let advice = result["content"][0]["text"].as_str().unwrap_or_default();
        let is_away = error["code"] == -32006 && advice.contains("the same call may be made again");
        let is_busy = error["message"] == "Server busy";
        assert!(is_away || is_busy, "{}: {error} {advice}", self.key);
        count(&self.met.store);
        Err(io::Error::other("to be tried again"))
    }

    /// Makes a call once. Its answer comes alone, or at the end of a stream.
    fn try_call(&mut self, params: &Value) -> io::Result<Value> {
        self.requests += 1;
        let id = self.requests;
        let request = match self.era {
            Era::Modern => modern("tools/call", params.clone(), &self.capabilities()),
            Era::Legacy => legacy(&self.session, id, "tools/call", params),
        };
        let mut connection = self.connection()?;
        let head = connection.begin(&self.known(request))?;
        if !head.is_stream() {
            let response = Response { head, body: connection.body()? };
            self.connection = Some(connection);
            assert!(response.head.status == 200 || is_retryable(&response), "{response:?}");
            self.check(&response)?;
            return Ok(response.json());
        }
        loop {
            let event = connection.event()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if event.data.is_empty() {
                continue;
            }
            let message: Value = serde_json::from_str(&event.data).unwrap();
            match message["method"].as_str() {
                None => {
                    let expected = if self.era == Era::Modern { 1 } else { id };
                    assert_eq!(message["id"], expected, "{message}");
                    return Ok(message);
                }
                Some("elicitation/create") => self.decide(&message["id"]),
                // Somebody has decided elsewhere, or the one who asked is about to end.
                Some("notifications/cancelled") => {}
                Some(method) => panic!("{method}"),
            }
        }
    }

    /// Says yes, by a request of its own: it may reach another replica than the one that asked.
    fn decide(&mut self, id: &Value) {
        let approve = json!({"action": "accept", "content": {"decision": "approve"}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": approve}).to_string();
        let request = carrying(&self.session, answer);
        assert_eq!(self.retried(|own| own.ask(&request)).head.status, 202);
        count(&self.met.decided);
    }

    /// Subscribes to a session, and opens the stream that tells of it. What is subscribed to is known to the replica
    /// that heard it alone, so that a client whose requests go to several has to say it to all.
    fn follow(&mut self, id: &str) -> Option<Connection> {
        if self.kind != Kind::Following {
            return None;
        }
        let mut stream = Connection::open(self.proxy).ok()?;
        let head = stream.begin(&self.known(Request::listen(&self.session))).ok()?;
        if head.status != 200 {
            assert!([429, 502, 503, 504].contains(&head.status), "{head:?}");
            return None;
        }
        for _ in 0..4 {
            let uri = json!({"uri": format!("session://{id}")});
            let subscribe = legacy(&self.session, 0, "resources/subscribe", &uri);
            assert_eq!(self.retried(|own| own.ask(&subscribe)).head.status, 200);
        }
        stream.set_patience(A_MOMENT);
        Some(stream)
    }

    /// What has been told by now. A stream that broke is not opened again: it was told what it was told.
    fn listen(&mut self, following: &mut Option<Connection>) {
        let Some(stream) = following else { return };
        loop {
            match stream.event() {
                Ok(Some(event)) if event.data.contains("notifications/resources/updated") => {
                    self.heard += 1;
                    count(&self.met.heard);
                    stream.set_patience(A_MOMENT);
                }
                Ok(Some(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return,
                Ok(None) | Err(_) => break,
            }
        }
        *following = None;
    }

    fn ask(&mut self, request: &Request) -> io::Result<Response> {
        let mut connection = self.connection()?;
        let response = connection.ask(&self.known(request.clone()))?;
        self.connection = Some(connection);
        self.check(&response)?;
        Ok(response)
    }

    /// Whether to take it for an answer.
    fn check(&mut self, response: &Response) -> io::Result<()> {
        if !is_retryable(response) {
            return Ok(());
        }
        count(if response.head.status == 429 { &self.met.busy } else { &self.met.gateway });
        self.connection = None;
        Err(io::Error::other("to be tried again"))
    }

    /// Tries until there is an answer.
    fn retried<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> io::Result<T>) -> T {
        let start = Instant::now();
        loop {
            match attempt(self) {
                Ok(answer) => return answer,
                Err(error) if error.kind() == io::ErrorKind::Other => {}
                Err(error) => {
                    assert_ne!(error.kind(), io::ErrorKind::InvalidData, "{error}");
                    count(&self.met.broken);
                }
            }
            assert!(start.elapsed() < PATIENCE, "{} was never answered", self.key);
            std::thread::sleep(PAUSE);
        }
    }

    /// The one that it had, or another.
    fn connection(&mut self) -> io::Result<Connection> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(self.proxy),
        }
    }

    /// With who we are.
    fn known(&self, request: Request) -> Request {
        match &self.token {
            Some(token) => request.header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    fn capabilities(&self) -> Value {
        if self.kind == Kind::Gated { json!({"elicitation": {}}) } else { json!({}) }
    }
}

fn is_retryable(response: &Response) -> bool {
    [429, 502, 503, 504].contains(&response.head.status)
}
