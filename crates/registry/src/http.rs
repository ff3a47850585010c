//! A server over HTTP: its address and its headers.

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::connect::Sources;
use super::draft::{Credentials, Reached, Text};
use super::filling::Filling;
use super::finding::Code;
use super::limits::VALUE_MAX;
use super::report::{At, Raw, Report};
use super::secrecy::Role;
use super::shapes::Dialect;

/// Headers that belong to the transport. Whoever asks for another value would be refused by it.
const RESERVED: &[&str] = &[
    "accept",
    "content-type",
    "content-length",
    "host",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// What a client keeps of a header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Value,
    /// The name of a variable of the environment.
    Variable,
}

/// Codex keeps values and names of variables apart.
pub(super) fn codex_headers<'a>(
    fields: &mut Sources<'a>,
    report: &mut Report<'_>,
) -> Vec<(At<'a>, Holds)> {
    if fields.dialect != Dialect::Codex {
        return Vec::new();
    }
    let kept = [("http_headers", Holds::Value), ("env_http_headers", Holds::Variable)];
    let kept =
        kept.into_iter().filter_map(|(name, holds)| Some((fields.take(name, report)?, holds)));
    kept.collect()
}

pub(super) fn reached(
    url: &At<'_>,
    headers: Option<At<'_>>,
    more: Vec<(At<'_>, Holds)>,
    auth: Option<Credentials>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<Reached> {
    let raw = url.text(report, VALUE_MAX)?;
    let before = report.errors();
    let address = filling.text(&raw, "url", Role::Address, report);
    // Names of variables are no URL.
    let is_whole = report.errors() == before && filling.has_values();
    let parsed = if is_whole { check_url(&address, &raw, report) } else { None };
    let mut texts: Vec<(String, Text)> = Vec::new();
    let all = headers.map(|at| (at, Holds::Value)).into_iter().chain(more);
    for (at, holds) in all {
        for (name, at) in at.fields(report) {
            let Some(text) = header(name, &at, holds, filling, report) else { continue };
            if texts.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                let message = format!("the header `{name}` is there twice");
                report.error(Code::TwoWays, at.key(), message, "remove one of them");
                continue;
            }
            let is_authorization = name.eq_ignore_ascii_case("authorization");
            if is_authorization && matches!(auth, Some(Credentials::Bearer(_))) {
                let message = "there are both a token in `auth` and a header `Authorization`";
                report.error(Code::TwoWays, at.key(), message, "keep one of them");
            }
            texts.push((name.to_owned(), text));
        }
    }
    let is_secret = |text: &Text| text.filled.secrets().next().is_some();
    let has_secret =
        auth.is_some() || is_secret(&address) || texts.iter().any(|(_, text)| is_secret(text));
    if has_secret && parsed.is_some_and(|url| url.scheme() == "http" && !is_here(&url)) {
        let message = "what lets us in is sent over the network unprotected";
        report.warn(Code::PlainHttp, (&raw.pointer, &raw.range), message, "use `https`");
    }
    Some(Reached::Http { url: address, headers: texts, auth })
}

fn check_url(text: &Text, raw: &Raw, report: &mut Report<'_>) -> Option<Url> {
    let hint = "write the whole URL, such as `https://example.com/mcp`";
    let message = match Url::parse(text.filled.reveal()) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            "`url` begins neither with `https://` nor with `http://`".to_owned()
        }
        Ok(url) if url.host_str().is_none_or(str::is_empty) => "`url` names no host".to_owned(),
        Ok(url) => return Some(url),
        // What it says is about the form, and has nothing of the text in it.
        Err(error) => format!("`url` is no URL: {error}"),
    };
    report.error(Code::BadUrl, (&raw.pointer, &raw.range), message, hint);
    None
}

/// On this machine, where nobody else listens.
pub fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn header(
    name: &str,
    at: &At<'_>,
    holds: Holds,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<Text> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        let hint = "use letters, digits and `-`";
        report.error(Code::BadHeader, at.key(), format!("no header can be called `{name}`"), hint);
        return None;
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        let message = format!("the header `{name}` has no effect: the protocol says what it holds");
        report.warn(Code::NoEffect, at.key(), message, "remove it");
        return None;
    }
    let raw = at.any_text(report, VALUE_MAX)?;
    let text = match holds {
        Holds::Value => filling.text(&raw, &format!("headers.{name}"), Role::Header(name), report),
        Holds::Variable => filling.variable(&raw, "", Role::Header(name), report),
    };
    if HeaderValue::from_str(text.filled.reveal()).is_err() {
        let message = format!("the header `{name}` holds something that cannot be sent");
        let hint = "use plain letters in one line; a variable may end with a line break";
        report.error(Code::BadHeader, at.spot(), message, hint);
    }
    Some(text)
}
