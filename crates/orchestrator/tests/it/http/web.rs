//! The test server over HTTP, with everything that can go wrong on the way.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::server::{Options, Server};

/// How answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Events,
}

#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    server: Server,
    form: Form,
    sessions: Mutex<BTreeSet<String>>,
    next_session: AtomicU64,
    requests: Mutex<Vec<Request>>,
    /// Instead of what would be answered to calls, the first one first.
    instead: Mutex<VecDeque<Instead>>,
    token: Mutex<Option<String>>,
    streams: Mutex<Vec<mpsc::UnboundedSender<String>>>,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) verb: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Instead {
    Answer(StatusCode, &'static str, String),
    /// Not now, but in so many seconds.
    Later(StatusCode, &'static str),
    MovedTo(&'static str),
    /// A stream that ends before the answer.
    BrokenStream,
}

impl Web {
    pub(crate) async fn start(form: Form, options: &[&str]) -> Self {
        let options = Options::read(options.iter().map(|word| (*word).to_owned())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            server: Server::new(options, |_| {}),
            form,
            sessions: Mutex::default(),
            next_session: AtomicU64::new(1),
            requests: Mutex::default(),
            instead: Mutex::default(),
            token: Mutex::default(),
            streams: Mutex::default(),
        });
        let router = Router::new().fallback(handle).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, inner }
    }

    pub(crate) fn entry(&self) -> Value {
        json!({
            "mcp": {"transport": "http", "url": format!("http://{}/mcp", self.address)},
            "sensitivity": "low",
            "timeoutMs": 30_000,
            "maxCallsPerMinute": 100_000,
        })
    }

    pub(crate) fn instead(&self, instead: Instead) {
        self.inner.instead.lock().unwrap().push_back(instead);
    }

    pub(crate) fn forget_sessions(&self) {
        self.inner.sessions.lock().unwrap().clear();
    }

    pub(crate) fn require_token(&self, token: &str) {
        *self.inner.token.lock().unwrap() = Some(token.to_owned());
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.inner.requests.lock().unwrap().clone()
    }

    /// How many messages came with a method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.message["method"] == method).count()
    }

    pub(crate) fn last(&self, method: &str) -> Request {
        self.requests().into_iter().rfind(|request| request.message["method"] == method).unwrap()
    }

    /// On streams that belong to no request.
    pub(crate) fn notify(&self, method: &str) {
        let text = json!({"jsonrpc": "2.0", "method": method}).to_string();
        self.inner.streams.lock().unwrap().retain(|stream| stream.send(text.clone()).is_ok());
    }

    /// Ends those streams.
    pub(crate) fn end_streams(&self) {
        self.inner.streams.lock().unwrap().clear();
    }

    pub(crate) fn streams(&self) -> usize {
        self.inner.streams.lock().unwrap().len()
    }
}

async fn handle(
    State(inner): State<Arc<Inner>>,
    verb: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let request =
        Request { verb: verb.clone(), headers: headers.clone(), message: message.clone() };
    inner.requests.lock().unwrap().push(request);
    let wanted = inner.token.lock().unwrap().clone();
    if let Some(token) = wanted
        && headers.get("authorization").is_none_or(|value| value != &format!("Bearer {token}"))
    {
        let challenge = "Bearer resource_metadata=\"https://example.com/meta\"";
        return response(StatusCode::UNAUTHORIZED)
            .header("www-authenticate", challenge)
            .body(Body::empty())
            .unwrap();
    }
    let session = headers.get("mcp-session-id").and_then(|value| value.to_str().ok());
    if session.is_some_and(|session| !inner.sessions.lock().unwrap().contains(session)) {
        return response(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
    }
    if verb == Method::GET {
        let (sender, receiver) = mpsc::unbounded_channel();
        inner.streams.lock().unwrap().push(sender);
        return events(receiver, None);
    }
    if verb == Method::DELETE {
        return response(StatusCode::NO_CONTENT).body(Body::empty()).unwrap();
    }
    if message["method"] == "tools/call" {
        let instead = inner.instead.lock().unwrap().pop_front();
        match instead {
            Some(Instead::Answer(status, kind, text)) => {
                return response(status)
                    .header("content-type", kind)
                    .body(Body::from(text))
                    .unwrap();
            }
            Some(Instead::Later(status, seconds)) => {
                return response(status)
                    .header("retry-after", seconds)
                    .body(Body::from("slow down"))
                    .unwrap();
            }
            Some(Instead::MovedTo(to)) => {
                return response(StatusCode::MOVED_PERMANENTLY)
                    .header("location", to)
                    .body(Body::empty())
                    .unwrap();
            }
            Some(Instead::BrokenStream) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                sender
                    .send(json!({"jsonrpc": "2.0", "method": "notifications/message"}).to_string())
                    .unwrap();
                return events(receiver, None);
            }
            None => {}
        }
    }
    posted(&inner, message).await
}

async fn posted(inner: &Arc<Inner>, message: Value) -> Response {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = Arc::new(inner.server.heard_at(move |text| {
        let _ = sender.send(text.to_owned());
    }));
    let line = message.to_string();
    let hearing = server.clone();
    tokio::task::spawn_blocking(move || hearing.hear(&line)).await.unwrap();
    drop(server);
    let Some(id) = message.get("id").filter(|_| message.get("method").is_some()).cloned() else {
        return response(StatusCode::ACCEPTED).body(Body::empty()).unwrap();
    };
    let mut answer = match inner.form {
        Form::Events => events(receiver, Some(id)),
        Form::Json => json_answer(receiver, &id).await,
    };
    if message["method"] == "initialize" {
        let session = format!("session-{}", inner.next_session.fetch_add(1, Ordering::Relaxed));
        answer.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        inner.sessions.lock().unwrap().insert(session);
    }
    answer
}

async fn json_answer(mut receiver: mpsc::UnboundedReceiver<String>, id: &Value) -> Response {
    while let Some(text) = receiver.recv().await {
        if is_answer(&text, id) {
            return response(StatusCode::OK)
                .header("content-type", "application/json")
                .body(Body::from(text))
                .unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    response(StatusCode::OK).body(Body::empty()).unwrap()
}

/// A stream of messages, up to the answer to one of them.
fn events(receiver: mpsc::UnboundedReceiver<String>, id: Option<Value>) -> Response {
    let stream = futures::stream::unfold(Some(receiver), move |receiver| {
        let id = id.clone();
        async move {
            let mut receiver = receiver?;
            let text = receiver.recv().await?;
            let is_last = id.is_some_and(|id| is_answer(&text, &id));
            let event = Ok::<_, std::io::Error>(format!("event: message\r\ndata: {text}\r\n\r\n"));
            Some((event, (!is_last).then_some(receiver)))
        }
    });
    response(StatusCode::OK)
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(stream))
        .unwrap()
}

fn is_answer(text: &str, id: &Value) -> bool {
    // Large ones are not worth reading.
    let head: String = text.chars().take(200).collect();
    let value = serde_json::from_str::<Value>(text);
    value.map_or_else(
        |_| !head.contains("\"method\""),
        |value| value["id"] == *id && value.get("method").is_none(),
    )
}

fn response(status: StatusCode) -> axum::http::response::Builder {
    Response::builder().status(status)
}
