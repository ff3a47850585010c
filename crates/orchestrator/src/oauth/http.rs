//! What a login sends over the net. Redirections are not followed where a secret would go along, and answers have a bound.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use mcp::Revision;
use reqwest::Url;

use super::reach::Reach;
use crate::upstream::http::{Client, has_type};

/// How long a server may take for one answer.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long an answer may be.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Clones share their connections.
#[derive(Clone, Default)]
pub(super) struct Http {
    clients: Arc<Clients>,
    /// Whom it may ask; whomever it likes where nothing is said.
    reach: Option<Reach>,
}

struct Clients {
    following: Client,
    staying: Client,
}

impl Default for Clients {
    fn default() -> Self {
        Self { following: Client::default(), staying: Client::staying() }
    }
}

pub(super) type Request = http::Request<Vec<u8>>;
pub(super) type Response = http::Response<Vec<u8>>;

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    NoClient(String),
    #[error("{0}")]
    Broken(String),
    #[error("its answer has more than {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
    #[error("it is in a network that the server itself is not in, and is not asked")]
    OutOfReach,
}

impl Http {
    /// The same, for what an upstream names.
    pub(super) fn within(&self, reach: Reach) -> Self {
        Self { clients: self.clients.clone(), reach: Some(reach) }
    }

    /// Follows redirections within the same server.
    pub(super) fn following(&self, url: &str) -> Result<reqwest::Client, HttpError> {
        self.clients.following.get(url).map_err(HttpError::NoClient)
    }

    fn staying(&self, url: &str) -> Result<reqwest::Client, HttpError> {
        self.clients.staying.get(url).map_err(HttpError::NoClient)
    }

    /// One request that stays with whom it is for.
    pub(super) async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let url = request.uri().to_string();
        self.check_reach(&url).await?;
        execute(&self.staying(&url)?, request).await
    }

    /// Sends a request and follows redirects within the same server.
    pub(super) async fn send_following(&self, request: Request) -> Result<Response, HttpError> {
        let url = request.uri().to_string();
        self.check_reach(&url).await?;
        execute(&self.following(&url)?, request).await
    }

    /// Whether the reach policy allows a request to this URL.
    pub(super) async fn may_ask(&self, url: &Url) -> bool {
        let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        is_http && self.check_reach(url.as_str()).await.is_ok()
    }

    async fn check_reach(&self, url: &str) -> Result<(), HttpError> {
        match self.reach {
            Some(reach) if !reach.allows(url).await => Err(HttpError::OutOfReach),
            _ => Ok(()),
        }
    }
}

/// A GET request for metadata.
pub(super) fn metadata_request(url: &Url) -> Result<Request, HttpError> {
    let request = http::Request::get(url.as_str());
    let request = request.header("mcp-protocol-version", Revision::V2025_11_25.name());
    request.body(Vec::new()).map_err(|error| HttpError::NoClient(error.to_string()))
}

async fn execute(client: &reqwest::Client, request: Request) -> Result<Response, HttpError> {
    let is_look = request.method() == Method::GET;
    let mut request = reqwest::Request::try_from(request).map_err(broken)?;
    *request.timeout_mut() = Some(ANSWER_LIMIT);
    let mut response = client.execute(request).await.map_err(broken)?;
    let mut body = Vec::new();
    // The upstream itself is looked at too, and may begin to tell what never ends.
    if !(is_look && has_type(&response, "text/event-stream")) {
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            let room = ANSWER_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            match (chunk.len() > room, is_look) {
                (false, _) => {}
                // It is not what is looked for.
                (true, true) => break,
                (true, false) => return Err(HttpError::TooLarge),
            }
        }
    }
    let mut answer = http::Response::new(body);
    *answer.status_mut() = response.status();
    std::mem::swap(answer.headers_mut(), response.headers_mut());
    Ok(answer)
}

/// Without the address, in which there may be secrets.
fn broken(error: reqwest::Error) -> HttpError {
    HttpError::Broken(crate::upstream::http::format_error_chain(&error.without_url()))
}
