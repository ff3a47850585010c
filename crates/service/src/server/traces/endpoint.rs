//! Where spans are sent: a collector's address, and what comes of one POST to it.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::header::CONTENT_TYPE;
use reqwest::Client;
use serde::Deserialize;

use crate::web_client::{Address, Answer, WebClient};

/// Where collectors take traces, below their address.
const PATH: &str = "/v1/traces";
/// How long a collector may take for one request.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);
/// An answer says nothing, or how many spans were refused and why.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What `--otlp` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    is_secure: bool,
    is_here: bool,
}

impl FromStr for Endpoint {
    type Err = String;

    /// The address of a collector, or the whole one where it takes traces.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "no address of a web server".to_owned())?;
        let (Some(scheme @ ("http" | "https")), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err("an address begins with `http://` or `https://`".to_owned());
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("an address of a collector names nobody at it".to_owned());
        }
        if text.contains(['?', '#']) {
            return Err("an address of a collector has neither `?` nor `#`".to_owned());
        }
        let base = text.trim_end_matches('/');
        let url = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let number = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost"
            || number.parse::<IpAddr>().is_ok_and(|number| number.is_loopback());
        Ok(Self { url, is_secure: scheme == "https", is_here })
    }
}

/// Why spans were not taken.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may be otherwise in a moment.
    ForNow(String),
    ForGood(String),
}

/// A collector with a connection that is kept between requests.
pub(super) struct Collector {
    /// Or why there is none.
    client: Result<WebClient, String>,
    url: String,
}

impl Collector {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let Endpoint { url, is_secure, is_here } = endpoint;
        Self { client: WebClient::new(Address { is_secure, is_local: is_here }), url }
    }

    /// How many of them were refused.
    pub(super) fn send(&self, body: &str) -> Result<u64, Failure> {
        let client = self.client.as_ref().map_err(|why| Failure::ForGood(why.clone()))?;
        let post = |client: &Client| {
            let post = client.post(&self.url).header(CONTENT_TYPE, "application/json");
            post.body(body.to_owned())
        };
        let answer = client.call(post, SEND_TIME_MAX, ANSWER_BYTES_MAX);
        let Answer { status, body } = answer.map_err(Failure::ForNow)?;
        let why = || format!("it answered with the status {status}");
        match status {
            200..300 => Ok(body.map(|text| rejected(&text)).unwrap_or_default()),
            429 | 502..=504 => Err(Failure::ForNow(why())),
            _ => Err(Failure::ForGood(why())),
        }
    }
}

/// How many spans an answer says were refused. One that cannot be read says nothing.
fn rejected(answer: &[u8]) -> u64 {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Answer {
        partial_success: Partial,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Partial {
        rejected_spans: serde_json::Value,
    }
    let answer: Answer = serde_json::from_slice(answer).unwrap_or_default();
    // Numbers of so many bits are texts in this JSON, but not everybody writes them so.
    let count = answer.partial_success.rejected_spans;
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_collectors() {
        for (text, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://example.com/otlp", "https://example.com/otlp/v1/traces"),
            ("https://example.com/otlp/v1/traces", "https://example.com/otlp/v1/traces"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().url, url);
        }
        for odd in
            ["", "4318", "localhost:4318", "grpc://x:4317", "http://", "http://me@x", "http://x?y"]
        {
            assert!(odd.parse::<Endpoint>().is_err(), "{odd}");
        }
    }

    #[test]
    fn an_answer_may_say_that_some_were_refused() {
        for (answer, count) in [
            ("", 0),
            ("{}", 0),
            ("nonsense", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":2}}"#, 2),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
