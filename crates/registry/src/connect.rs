//! How a server is reached: the fields `command`, `url` and what goes with them, nested in `mcp` or flat, by our names
//! and by those of clients.

use std::ops::Range;

use super::credentials::credentials;
use super::draft::{Reached, Text};
use super::fields::first;
use super::filling::Filling;
use super::finding::{Code, Severity};
use super::http;
use super::limits::{SHORT_TEXT_MAX, VALUE_MAX};
use super::report::{At, Object, Raw, Report};
use super::secrecy::Role;
use super::shapes::Dialect;
use process_guard::is_loader;

/// An entry's own fields, and those nested in `mcp`.
pub(super) struct Sources<'a> {
    pub(super) outer: Object<'a>,
    pub(super) inner: Option<Object<'a>>,
    pub(super) dialect: Dialect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
    /// What came before Streamable HTTP.
    Sse,
}

const TRANSPORTS: &[(&str, Transport)] = &[
    ("stdio", Transport::Stdio),
    ("http", Transport::Http),
    ("sse", Transport::Sse),
    ("streamable-http", Transport::Http),
    ("streamableHttp", Transport::Http),
    ("streamable_http", Transport::Http),
];

impl<'a> Sources<'a> {
    /// A field that may stand in either place, and not in both.
    pub(super) fn take(&mut self, name: &'static str, report: &mut Report<'_>) -> Option<At<'a>> {
        let outer = self.outer.take(name);
        let inner = self.inner.as_mut().and_then(|inner| inner.take(name));
        self.either(inner, outer, name, report)
    }

    /// The same for a field that has several names.
    pub(super) fn take_any(
        &mut self,
        names: &[&'static str],
        report: &mut Report<'_>,
    ) -> Option<At<'a>> {
        let mut found = None;
        for name in names {
            let next = self.take(name, report);
            found = self.either(found, next, name, report);
        }
        found
    }

    fn either(
        &self,
        first: Option<At<'a>>,
        second: Option<At<'a>>,
        name: &str,
        report: &mut Report<'_>,
    ) -> Option<At<'a>> {
        if let (Some(first), Some(second)) = (&first, &second) {
            let message = format!("`{name}` is said twice, here and in `{}`", first.pointer);
            report.error(Code::TwoWays, second.key(), message, "remove one of them");
        }
        first.or(second)
    }

    pub(super) fn finish(self, report: &mut Report<'_>) {
        let severity = match self.dialect {
            Dialect::Own => Severity::Error,
            Dialect::Map | Dialect::Codex => Severity::Warning,
        };
        self.outer.finish(report, severity);
        if let Some(inner) = self.inner {
            inner.finish(report, severity);
        }
    }
}

/// Nothing where it cannot be reached, which was said.
pub(super) fn reached(
    entry: &At<'_>,
    fields: &mut Sources<'_>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<Reached> {
    let transport = transport(fields, report);
    let command = fields.take("command", report);
    let mut args = fields.take("args", report);
    let mut env = fields.take("env", report);
    let cwd = fields.take("cwd", report);
    let unconfined = fields.take("unconfined", report);
    let urls: &[&str] = match fields.dialect {
        Dialect::Map => &["url", "serverUrl", "httpUrl"],
        Dialect::Own | Dialect::Codex => &["url"],
    };
    let url = fields.take_any(urls, report);
    let headers = fields.take("headers", report);
    let more_headers = http::codex_headers(fields, report);
    let auth = credentials(fields, filling, report);
    let passed_on =
        if fields.dialect == Dialect::Codex { fields.take("env_vars", report) } else { None };
    match (command, url) {
        (Some(_), Some(url)) => {
            let message = "the server has both a `command` and a URL";
            report.error(Code::TwoWays, url.key(), message, "keep the one by which it is reached");
            None
        }
        (None, None) => {
            let (name, hint) = match transport {
                Some(Transport::Stdio) => {
                    ("`command` is missing", "name what is started, such as `\"command\": \"npx\"`")
                }
                Some(_) => ("`url` is missing", "write the whole URL, path included"),
                None => ("neither `command` nor `url` is there", "say how the server is reached"),
            };
            report.error(Code::Missing, (&entry.pointer, &first(&entry.node.range)), name, hint);
            None
        }
        (Some(command), None) => {
            if !matches!(transport, None | Some(Transport::Stdio)) {
                let message = "`url` is missing: a `command` is for the transport `stdio`";
                report.error(Code::Missing, command.key(), message, "write `stdio`, or a URL");
            }
            let unused = headers.iter().chain(more_headers.iter().map(|(at, _)| at));
            no_effect(unused.chain(auth.iter().map(|(at, _)| at)), "a command", report);
            let command = unnested(command, &mut args, &mut env, fields.dialect, report);
            let command = command.text(report, VALUE_MAX)?;
            let command = filling.text(&command, "command", Role::Path, report);
            let args = arguments(args, filling, report);
            let mut env = environment(env, filling, fields.dialect, report);
            env.extend(handed_on(passed_on, filling, report));
            let cwd = cwd.and_then(|at| at.text(report, VALUE_MAX));
            let cwd = cwd.map(|raw| filling.text(&raw, "cwd", Role::Path, report));
            let unconfined = unconfined.and_then(|at| at.flag(report)).unwrap_or_default();
            Some(Reached::Stdio { command, args, env, cwd, unconfined })
        }
        (None, Some(url)) => {
            if transport == Some(Transport::Stdio) {
                let message = "`command` is missing: a URL is for the transport `http`";
                report.error(Code::Missing, url.key(), message, "write `http`, or a command");
            }
            let ends_in_sse = url.node.text().is_some_and(|url| {
                let path = url.split(['?', '#']).next().unwrap_or_default();
                path.trim_end_matches('/').ends_with("/sse")
            });
            if transport.is_none() && ends_in_sse {
                let message = "a URL that ends in `/sse` is mostly one of the old transport, which Streamable HTTP replaced";
                let hint = "see whether the server has another URL, often ending in `/mcp`; where this is right, write `http`";
                report.warn(Code::OldTransport, url.key(), message, hint);
            }
            if transport == Some(Transport::Sse) {
                let message = "`sse` was replaced by Streamable HTTP, which is what we speak";
                let hint = "see whether the server has another URL for it, often ending in `/mcp`, and write `http`";
                report.warn(Code::OldTransport, url.key(), message, hint);
            }
            let unused = [&args, &env, &cwd, &unconfined, &passed_on];
            no_effect(unused.into_iter().flatten(), "a URL", report);
            http::reached(&url, headers, more_headers, auth.map(|(_, auth)| auth), filling, report)
        }
    }
}

fn transport(fields: &mut Sources<'_>, report: &mut Report<'_>) -> Option<Transport> {
    let at = match fields.dialect {
        Dialect::Own => fields.take_any(&["transport", "type"], report),
        Dialect::Map => fields.take_any(&["type", "transport"], report),
        // Codex sees it from the other fields.
        Dialect::Codex => None,
    }?;
    let known =
        at.node.text().is_some_and(|word| TRANSPORTS.iter().any(|(known, _)| *known == word));
    if !known && at.node.text().is_some() {
        let message = format!("`{}` is neither `stdio` nor `http`", at.name());
        report.error(
            Code::Transport,
            at.spot(),
            message,
            "servers are reached by one of these two",
        );
        return None;
    }
    at.word(report, TRANSPORTS)
}

fn no_effect<'f, 'a: 'f>(
    unused: impl Iterator<Item = &'f At<'a>>,
    with: &str,
    report: &mut Report<'_>,
) {
    for at in unused {
        let message = format!("`{}` has no effect with {with}", at.name());
        report.warn(Code::NoEffect, at.key(), message, "remove it");
    }
}

/// Zed used to keep `{"command": {"path": …, "args": …, "env": …}}`.
fn unnested<'a>(
    command: At<'a>,
    args: &mut Option<At<'a>>,
    env: &mut Option<At<'a>>,
    dialect: Dialect,
    report: &mut Report<'_>,
) -> At<'a> {
    if dialect != Dialect::Map || command.node.fields().is_none() {
        return command;
    }
    let Some(mut nested) = command.object(report) else { return command };
    *args = nested.take("args").or(args.take());
    *env = nested.take("env").or(env.take());
    let path = nested.take("path");
    nested.finish(report, Severity::Warning);
    path.unwrap_or(command)
}

fn arguments(args: Option<At<'_>>, filling: &Filling<'_>, report: &mut Report<'_>) -> Vec<Text> {
    let items = args.map(|at| at.items(report)).unwrap_or_default();
    let raws: Vec<Raw> = items.iter().filter_map(|at| at.any_text(report, VALUE_MAX)).collect();
    let mut texts: Vec<Text> = Vec::new();
    for (index, raw) in raws.iter().enumerate() {
        // What stands before it is written as it is: a variable is no option.
        let before = index.checked_sub(1).map(|before| raws[before].text.as_str());
        let text = filling.text(raw, &format!("args[{index}]"), Role::Argument(before), report);
        check_bytes(&text, raw, "an argument", report);
        texts.push(text);
    }
    texts
}

fn environment(
    env: Option<At<'_>>,
    filling: &Filling<'_>,
    dialect: Dialect,
    report: &mut Report<'_>,
) -> Vec<(String, Text)> {
    let fields = env.map(|at| at.fields(report)).unwrap_or_default();
    let mut texts = Vec::new();
    for (name, at) in fields {
        // VS Code writes null for a variable that is not to be there.
        if dialect == Dialect::Map && at.node.what() == "null" {
            continue;
        }
        let scalar = Filling::scalar(at.node).filter(|_| dialect == Dialect::Map);
        let scalar = scalar.map(|text| Raw {
            text,
            pointer: at.pointer.clone(),
            range: at.node.range.clone(),
        });
        let Some(raw) = scalar.or_else(|| at.any_text(report, VALUE_MAX)) else { continue };
        if name.is_empty() || name.len() > SHORT_TEXT_MAX || name.contains(['=', '\0']) {
            let message = "no variable of the environment can be called so";
            report.error(Code::BadEnvironment, at.key(), message, "use letters, digits and `_`");
            continue;
        }
        warn_of_loader(name, at.key(), report);
        let text = filling.text(&raw, &format!("env.{name}"), Role::Environment(name), report);
        check_bytes(&text, &raw, "a variable", report);
        texts.push((name.to_owned(), text));
    }
    texts
}

/// What Codex hands on from its own environment; empty where it is not there.
fn handed_on(
    names: Option<At<'_>>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Vec<(String, Text)> {
    let mut texts = Vec::new();
    for at in names.map(|at| at.items(report)).unwrap_or_default() {
        let name = match at.node.fields() {
            Some(_) => at.object(report).and_then(|mut object| {
                object.pass_over(&["source"]);
                let name = object.take("name");
                object.finish(report, Severity::Warning);
                name
            }),
            None => Some(at),
        };
        let Some(raw) = name.and_then(|at| at.text(report, SHORT_TEXT_MAX)) else { continue };
        warn_of_loader(&raw.text, (&raw.pointer, &raw.range), report);
        let role = Role::Environment(&raw.text);
        let text = filling.variable(&raw, ":-", role, report);
        texts.push((raw.text.clone(), text));
    }
    texts
}

/// The guard hands none of them on, and whoever wrote one should not have to find that out from what does not happen.
fn warn_of_loader(name: &str, at: (&str, &Range<usize>), report: &mut Report<'_>) {
    if is_loader(name) {
        let message = format!(
            "`{name}` is left out: it has a program run code that is not its own, before its own"
        );
        let hint = "give what the server needs as an argument of its command, or start a script that sets it";
        report.warn(Code::LoaderVariable, at, message, hint);
    }
}

/// A process cannot be given a zero byte.
fn check_bytes(text: &Text, raw: &Raw, what: &str, report: &mut Report<'_>) {
    if text.filled.reveal().contains('\0') {
        let message = format!("{what} has a zero byte in it, which no process can be given");
        report.error(Code::BadEnvironment, (&raw.pointer, &raw.range), message, "remove it");
    }
}
