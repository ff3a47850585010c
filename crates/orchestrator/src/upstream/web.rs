//! An upstream over HTTP. The protocol's library knows sessions, streams and headers; what goes over the net is ours, so that
//! answers reach their callers as they were sent, every size has a bound, and a refusal says what helps.

pub(crate) mod client;
mod events;
mod explanation;
mod parser;
mod post;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use registry::entry::{Auth, Connect};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;

pub(crate) use client::Client;

use super::connect::Settings;
use super::failure::{Failure, incident};
use super::ledger::Ledger;
use super::lines::MESSAGE_BYTES_MAX;
use crate::error::Credentials;
use crate::pool::{NoToken, Refusal, Tokens};
use crate::upstream::IN_FLIGHT_MAX;
use crate::wire::Tap;

/// What we accept as an answer.
const ACCEPTED: &str = "application/json, text/event-stream";

/// One upstream over HTTP. Clones are the same.
#[derive(Clone)]
pub(crate) struct Web(Arc<Shared>);

struct Shared {
    http: reqwest::Client,
    ledger: Arc<Ledger>,
    tap: Tap,
    headers: HeaderMap,
    connect: Connect,
    tokens: Option<Arc<dyn Tokens>>,
    /// Cancelled at the end: the library does not let go by itself of everything that it waits for.
    stop: CancellationToken,
}

/// An answer of the net is either good or explained by a [`Failure`], which goes to whoever waits.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WebError(String);

/// What the library speaks through.
pub(super) fn transport(
    settings: &Settings,
    ledger: Arc<Ledger>,
    tap: Tap,
    stop: CancellationToken,
) -> Result<StreamableHttpClientTransport<Web>, Failure> {
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
        let unusable =
            || Failure::Unusable { why: "`mcp.auth` has a token that cannot be sent".to_owned() };
        all.insert(AUTHORIZATION, bearer(token.reveal()).ok_or_else(unusable)?);
    }
    // Whoever logs in to a server wants to be let in, whether its entry foresaw that or not.
    let tokens = settings.tokens.clone().filter(|_| !all.contains_key(AUTHORIZATION));
    let http = settings.http.get(url.reveal()).map_err(|why| Failure::Unusable { why })?;
    let connect = settings.connect.clone();
    let web = Web(Arc::new(Shared { http, ledger, tap, headers: all, connect, tokens, stop }));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.reveal());
    config.max_concurrent_requests = IN_FLIGHT_MAX;
    config.max_sse_event_size = MESSAGE_BYTES_MAX;
    Ok(StreamableHttpClientTransport::with_client(web, config))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}"))
}

/// One request over the net, but for what makes it ours.
struct Going {
    method: Method,
    uri: Arc<str>,
    session: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
    last_event: Option<String>,
    body: Option<Bytes>,
}

impl Shared {
    /// Sends it, with another token where the first is refused and there is one. Says what was shown, too.
    async fn send(&self, going: &Going) -> Result<(reqwest::Response, Credentials), Failure> {
        let token = self.token().await?;
        let response = self.send_once(going, token.as_deref()).await?;
        let sent = self.shown(token.as_deref());
        let Some(tokens) = &self.tokens else { return Ok((response, sent)) };
        let status = response.status();
        if !is_refusal(status) {
            return Ok((response, sent));
        }
        let challenge = challenge(&response);
        let refusal = Refusal {
            server: self.ledger.server(),
            connect: &self.connect,
            token: token.as_deref(),
            status: status.as_u16(),
            challenge: challenge.as_deref(),
        };
        if tokens.refused(refusal).await.map_err(|no_token| self.without(no_token))? {
            let token = self.token().await?;
            let response = self.send_once(going, token.as_deref()).await?;
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

    /// The token of whoever logged in.
    async fn token(&self) -> Result<Option<String>, Failure> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let token = tokens.token(self.ledger.server(), &self.connect).await;
        token.map_err(|no_token| self.without(no_token))
    }

    /// Nothing was sent yet, or it was refused.
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
        going: &Going,
        token: Option<&str>,
    ) -> Result<reqwest::Response, Failure> {
        let mut request = self
            .http
            .request(going.method.clone(), &*going.uri)
            .headers(self.headers.clone())
            .header(ACCEPT, ACCEPTED);
        for (name, value) in &going.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &going.session {
            request = request.header(HEADER_SESSION_ID, &**session);
        }
        if let Some(last_event) = &going.last_event {
            request = request.header(HEADER_LAST_EVENT_ID, last_event);
        }
        if let Some(value) = token.and_then(bearer) {
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = &going.body {
            request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body.clone());
        }
        request.send().await.map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let sent = !(error.is_connect() || error.is_builder());
        // The address may be secret.
        let mut why = self.hide(&told(&error.without_url()));
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
pub(crate) fn told(error: &dyn std::error::Error) -> String {
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

fn ending() -> Failed {
    StreamableHttpError::Client(WebError("the connection is ending".to_owned()))
}

type Stream = BoxStream<'static, Result<Sse, SseError>>;
type Failed = StreamableHttpError<WebError>;

impl StreamableHttpClient for Web {
    type Error = WebError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let post = post::post(&self.0, uri, message, session, headers);
        self.0.stop.run_until_cancelled(post).await.unwrap_or_else(|| Err(ending()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let going = Going {
            method: Method::DELETE,
            uri,
            session: Some(session),
            headers,
            last_event: None,
            body: None,
        };
        // Whether it did or not, the session is of no use to us any more.
        if let Ok(token) = self.0.token().await {
            let _ = self.0.send_once(&going, token.as_deref()).await;
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Stream, Failed> {
        let going = Going { method: Method::GET, uri, session, headers, last_event, body: None };
        let failed = |why: String| StreamableHttpError::Client(WebError(why));
        let sent = self.0.send(&going).await;
        let (response, _) =
            sent.map_err(|failure| failed(failure.into_error(self.0.ledger.server()).to_string()))?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if is_refusal(status) {
            let challenge = challenge(&response).unwrap_or_default();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        if !status.is_success() {
            return Err(failed(format!("HTTP {status}")));
        }
        if !has_type(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events::read(self.0.clone(), response, None))
    }
}
