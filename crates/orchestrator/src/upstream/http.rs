//! The Streamable HTTP transport: requests are posted, and responses arrive as JSON or as server-sent events. Every size is
//! limited, and errors say what helps.

pub(crate) mod client;
mod error_page;
mod post;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use registry::entry::{Auth, Connect};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use client::Client;
pub(super) use post::PostedRequest;

use super::connect::Settings;
use super::failure::{Failure, incident};
use super::router::MessageRouter;
use crate::error::Credentials;
use crate::pool::{NoToken, Refusal, Tokens};
use crate::wire::Tap;

const ACCEPTED: &str = "application/json, text/event-stream";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
/// How long deleting a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

/// One upstream over HTTP. Clones share everything.
#[derive(Clone)]
pub(crate) struct HttpTransport(Arc<Shared>);

struct Shared {
    http: reqwest::Client,
    url: String,
    router: Arc<MessageRouter>,
    tap: Tap,
    headers: HeaderMap,
    connect: Connect,
    tokens: Option<Arc<dyn Tokens>>,
    session: Mutex<Session>,
    /// Cancelled when the server has forgotten the session: the connection is of no use any more.
    forgotten: CancellationToken,
}

/// The HTTP session of a legacy server.
#[derive(Default)]
struct Session {
    id: Option<String>,
    /// Closes the GET stream when dropped.
    stream: Option<DropGuard>,
}

impl HttpTransport {
    pub(super) fn new(
        settings: &Settings,
        router: Arc<MessageRouter>,
        tap: Tap,
        forgotten: CancellationToken,
    ) -> Result<Self, Failure> {
        let Connect::Http { url, headers, auth } = &settings.connect else {
            return Err(Failure::Unusable { why: "it has no address".to_owned() });
        };
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let unusable = || Failure::Unusable {
                why: format!("`mcp.headers` has `{name}`, which cannot be sent"),
            };
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
            all.insert(header, sensitive(value.reveal()).ok_or_else(unusable)?);
        }
        if let Some(Auth::Bearer(token)) = auth {
            let unusable = || Failure::Unusable {
                why: "`mcp.auth` has a token that cannot be sent".to_owned(),
            };
            all.insert(AUTHORIZATION, bearer(token.reveal()).ok_or_else(unusable)?);
        }
        // A login is used even if the entry does not mention it.
        let tokens = settings.tokens.clone().filter(|_| !all.contains_key(AUTHORIZATION));
        let http = settings.http.get(url.reveal()).map_err(|why| Failure::Unusable { why })?;
        let url = url.reveal().to_owned();
        let connect = settings.connect.clone();
        let headers = all;
        Ok(Self(Arc::new(Shared {
            http,
            url,
            router,
            tap,
            headers,
            connect,
            tokens,
            session: Mutex::default(),
            forgotten,
        })))
    }

    /// Posts a notification or a response.
    pub(super) async fn send(
        &self,
        text: String,
        headers: &[(String, String)],
    ) -> Result<(), Failure> {
        post::send(&self.0, text.into(), headers).await
    }

    /// Posts a request and routes messages until its response has arrived.
    pub(super) async fn exchange(&self, posted: &PostedRequest<'_>) -> Result<(), Failure> {
        posted.exchange(&self.0).await
    }

    /// Opens the GET stream of the current session, if there is one.
    pub(super) fn open_stream(&self, headers: &[(String, String)]) {
        let mut session = self.0.session.lock();
        let Some(id) = session.id.clone() else { return };
        let stop = CancellationToken::new();
        session.stream = Some(stop.clone().drop_guard());
        let (shared, headers) = (self.0.clone(), headers.to_vec());
        tokio::spawn(async move {
            let stream = post::stream(&shared, id, headers);
            if let Some(Err(failure)) = stop.run_until_cancelled(stream).await {
                let server = shared.router.server();
                let error = failure.into_error(server);
                tracing::debug!(server, "failed to open the GET stream: {error}");
            }
        });
    }

    /// Deletes the session, if there is one. Errors are ignored.
    pub(super) async fn close(&self, headers: &[(String, String)]) {
        let Session { id, stream, .. } = std::mem::take(&mut *self.0.session.lock());
        drop(stream);
        let Some(id) = id else { return };
        let outgoing = OutgoingRequest {
            method: Method::DELETE,
            session: Some(id),
            ..OutgoingRequest::get(headers)
        };
        let ended = async {
            if let Ok(token) = self.0.token().await {
                let _ = self.0.send_once(&outgoing, token.as_deref()).await;
            }
        };
        let _ = timeout(DELETE_TIMEOUT, ended).await;
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}"))
}

/// An HTTP request, except for the headers that all of them share.
struct OutgoingRequest<'g> {
    method: Method,
    session: Option<String>,
    headers: &'g [(String, String)],
    last_event: Option<&'g str>,
    body: Option<Bytes>,
}

impl<'g> OutgoingRequest<'g> {
    fn get(headers: &'g [(String, String)]) -> Self {
        Self { method: Method::GET, session: None, headers, last_event: None, body: None }
    }

    fn post(body: Bytes, session: Option<String>, headers: &'g [(String, String)]) -> Self {
        Self { method: Method::POST, session, body: Some(body), ..Self::get(headers) }
    }
}

impl Shared {
    /// Sends a request, and again if the token is rejected and another one is available. Returns which credentials were sent.
    async fn send(
        &self,
        outgoing: &OutgoingRequest<'_>,
    ) -> Result<(reqwest::Response, Credentials), Failure> {
        let token = self.token().await?;
        let response = self.send_once(outgoing, token.as_deref()).await?;
        let sent = self.shown(token.as_deref());
        let Some(tokens) = &self.tokens else { return Ok((response, sent)) };
        let status = response.status();
        if !is_refusal(status) {
            return Ok((response, sent));
        }
        let challenge = challenge(&response);
        let refusal = Refusal {
            server: self.router.server(),
            connect: &self.connect,
            token: token.as_deref(),
            status: status.as_u16(),
            challenge: challenge.as_deref(),
        };
        if tokens.refused(refusal).await.map_err(|no_token| self.without(no_token))? {
            let token = self.token().await?;
            let response = self.send_once(outgoing, token.as_deref()).await?;
            return Ok((response, self.shown(token.as_deref())));
        }
        Ok((response, sent))
    }

    fn shown(&self, token: Option<&str>) -> Credentials {
        match token {
            Some(_) => Credentials::Login,
            None if self.headers.contains_key(AUTHORIZATION) => Credentials::Own,
            None => Credentials::None,
        }
    }

    /// The token of the user's login, if there is one.
    async fn token(&self) -> Result<Option<String>, Failure> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let token = tokens.token(self.router.server(), &self.connect).await;
        token.map_err(|no_token| self.without(no_token))
    }

    /// Converts a token error. The request was not sent, or was rejected.
    fn without(&self, no_token: NoToken) -> Failure {
        match no_token {
            NoToken::Unusable(why) => Failure::Unusable { why },
            NoToken::Unavailable(why) => {
                Failure::Broken { why, sent: false, incident: self.tap.connection }
            }
        }
    }

    async fn send_once(
        &self,
        outgoing: &OutgoingRequest<'_>,
        token: Option<&str>,
    ) -> Result<reqwest::Response, Failure> {
        let mut request = self
            .http
            .request(outgoing.method.clone(), self.url.as_str())
            .headers(self.headers.clone())
            .header(ACCEPT, ACCEPTED);
        for (name, value) in outgoing.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &outgoing.session {
            request = request.header(SESSION, session);
        }
        if let Some(last_event) = outgoing.last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        if let Some(value) = token.and_then(bearer) {
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = &outgoing.body {
            request = request.header(CONTENT_TYPE, JSON).body(body.clone());
        }
        request.send().await.map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let sent = !(error.is_connect() || error.is_builder());
        // The address may be secret.
        let mut why = self.hide(&format_error_chain(&error.without_url()));
        // What the libraries of encryption say of a server that knows none.
        if why.contains("InvalidContentType") || why.contains("wrong version number") {
            why.push_str("; it may speak `http://` there, and not `https://`");
        }
        Failure::Broken { why, sent, incident: incident() }
    }

    fn hide(&self, text: &str) -> String {
        (self.tap.secrets)().hide(text).into_owned()
    }
}

/// An error and what is behind it, without the layers that only say that there was one.
pub(crate) fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source()
        && says_nothing(&error.to_string())
    {
        error = source;
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// What the libraries put around every error.
fn says_nothing(text: &str) -> bool {
    text.starts_with("error sending request") || text.starts_with("client error (")
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// What it wants to be shown. Several challenges are as good as one with commas.
pub(crate) fn challenge(response: &reqwest::Response) -> Option<String> {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

pub(crate) fn has_type(response: &reqwest::Response, wanted: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| {
        let value = value.as_bytes();
        value.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted.as_bytes()))
    })
}
