//! Waits for the answer to a login: the browser is sent to a port of this machine with it. Anybody here can come to that
//! port, so only what has the `state` of this login counts, and nothing else ends the wait.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::error::Error;

/// Browsers open a few connections that they may never use.
const CONNECTIONS_MAX: usize = 32;
/// How long one of them may take.
const CONNECTION_LIMIT: Duration = Duration::from_secs(30);
/// How long a request's head may take.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// More than any answer has.
const HEAD_BYTES_MAX: usize = 32 * 1024;

const PATH: &str = "/callback";

/// The port that answers come to.
pub(super) struct Callback {
    listener: TcpListener,
    redirect_uri: String,
}

/// What the login server says.
pub(super) enum Answer {
    Code { code: String, issuer: Option<String> },
    Refused { code: String, description: Option<String> },
}

impl Callback {
    /// Takes the port, or any that is free.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, Error> {
        let failed = |source| Error::Listen { port: port.unwrap_or(0), source };
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or(0));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let taken = listener.local_addr().map_err(failed)?.port();
        // Who registers a client by hand writes a name there, and login servers compare letter by letter.
        let host = if port.is_some() { "localhost" } else { "127.0.0.1" };
        Ok(Self { listener, redirect_uri: format!("http://{host}:{taken}{PATH}") })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The answer with this `state`. Whoever calls this bounds it; `seen` tells whether something else came.
    pub(super) async fn answer(self, state: &str, seen: &Foreign) -> Answer {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    // One that breaks at once is nobody's loss.
                    let Ok((stream, _)) = accepted else { continue };
                    connections.spawn(serve(stream, state.to_owned(), seen.clone()));
                }
                // The browser has its page by then.
                Some(served) = connections.join_next() => if let Ok(Some(answer)) = served {
                    return answer;
                },
            }
        }
    }
}

/// Whether something came that was no answer to this login.
#[derive(Clone, Default)]
pub(super) struct Foreign(Arc<std::sync::atomic::AtomicBool>);

impl Foreign {
    pub(super) fn has_come(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn came(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

async fn serve(stream: TcpStream, state: String, foreign: Foreign) -> Option<Answer> {
    let found = Arc::new(Mutex::new(None));
    let slot = found.clone();
    let service = service_fn(move |request: http::Request<Incoming>| {
        let page = match read(request.method(), request.uri(), &state) {
            Read::Answer(answer) => {
                let page = match &answer {
                    Answer::Code { .. } => Page::Done,
                    Answer::Refused { .. } => Page::Refused,
                };
                *slot.lock() = Some(answer);
                page
            }
            Read::Foreign => {
                foreign.came();
                Page::Foreign
            }
            Read::Nothing => Page::Nothing,
        };
        std::future::ready(Ok::<_, Infallible>(page.response()))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whether the browser got its page or not, what it brought counts.
    let _ = timeout(CONNECTION_LIMIT, connection).await;
    found.lock().take()
}

enum Read {
    Answer(Answer),
    /// It looks like an answer, and is none to this login.
    Foreign,
    Nothing,
}

fn read(method: &Method, uri: &http::Uri, state: &str) -> Read {
    if method != Method::GET || uri.path() != PATH {
        return Read::Nothing;
    }
    let Ok(url) = Url::parse(&format!("http://127.0.0.1{uri}")) else { return Read::Nothing };
    let value = |name: &str| {
        let mut values = url.query_pairs().filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.into_owned());
        // What stands there twice can mean two things, and so means nothing.
        value.filter(|_| values.next().is_none())
    };
    if !value("state").is_some_and(|found| is_same(&found, state)) {
        return Read::Foreign;
    }
    match (value("code"), value("error")) {
        (Some(code), None) => Read::Answer(Answer::Code { code, issuer: value("iss") }),
        (None, Some(code)) => {
            let description = value("error_description").map(|text| shown(&text));
            Read::Answer(Answer::Refused { code: shown(&code), description })
        }
        _ => Read::Foreign,
    }
}

/// Takes the same time wherever they differ.
fn is_same(left: &str, right: &str) -> bool {
    let differences =
        left.bytes().zip(right.bytes()).fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && differences == 0
}

/// So much of what a login server says is shown.
const SHOWN_CHARS: usize = 300;

/// Without what would steer a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SHOWN_CHARS).collect()
}

enum Page {
    Done,
    Refused,
    Foreign,
    Nothing,
}

impl Page {
    /// Fixed texts: nothing that came is shown.
    fn response(&self) -> http::Response<String> {
        let (status, text) = match self {
            Self::Done => {
                (StatusCode::OK, "You can close this window, and go back to where you came from.")
            }
            Self::Refused => {
                (StatusCode::OK, "The login was refused. Where you came from it says why.")
            }
            Self::Foreign => {
                (StatusCode::BAD_REQUEST, "This is not the answer to the login that is waited for.")
            }
            Self::Nothing => (StatusCode::NOT_FOUND, "There is nothing here."),
        };
        let body = format!(
            "<!doctype html><meta charset=utf-8><title>workflowlookup</title><p>{text}</p>\n"
        );
        let mut response = http::Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_this_login_counts() {
        for (method, target, expected) in [
            (Method::GET, "/callback?code=c&state=s", "code c"),
            (
                Method::GET,
                "/callback?state=s&code=a%2Bb&iss=https%3A%2F%2Fx",
                "code a+b of https://x",
            ),
            (
                Method::GET,
                "/callback?error=access_denied&error_description=no%0Away&state=s",
                "refused access_denied noway",
            ),
            (Method::GET, "/callback?code=c&state=t", "foreign"),
            (Method::GET, "/callback?code=c&state=", "foreign"),
            (Method::GET, "/callback?code=c", "foreign"),
            (Method::GET, "/callback?code=c&state=s&state=s", "foreign"),
            (Method::GET, "/callback?code=c&code=d&state=s", "foreign"),
            (Method::GET, "/callback?code=c&error=e&state=s", "foreign"),
            (Method::GET, "/callback?state=s", "foreign"),
            (Method::POST, "/callback?code=c&state=s", "nothing"),
            (Method::GET, "/favicon.ico", "nothing"),
            (Method::GET, "/?code=c&state=s", "nothing"),
        ] {
            let found = match read(&method, &target.parse().unwrap(), "s") {
                Read::Answer(Answer::Code { code, issuer: None }) => format!("code {code}"),
                Read::Answer(Answer::Code { code, issuer: Some(issuer) }) => {
                    format!("code {code} of {issuer}")
                }
                Read::Answer(Answer::Refused { code, description }) => {
                    format!("refused {code} {}", description.unwrap_or_default())
                }
                Read::Foreign => "foreign".to_owned(),
                Read::Nothing => "nothing".to_owned(),
            };
            assert_eq!(found, expected, "{method} {target}");
        }
    }
}
