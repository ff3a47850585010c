//! The fields of an entry, one by one. What a field may hold is said where it is read.

use std::time::Duration;

use super::connect::{Sources, reached};
use super::draft::{Credentials, Draft, Reached};
use super::entry::{Auth, Connect, Entry, Sensitivity, Visibility};
use super::finding::{Code, Severity};
use super::limits::{CALLS_PER_MINUTE_MAX, LONG_TEXT_MAX, SHORT_TEXT_MAX, TIMEOUT_MS_MAX};
use super::report::{At, Object, Raw, Report};
use super::shapes::{Dialect, Listed};
use crate::policy::glob::Glob;

pub(super) use super::filling::Filling;

/// Fields of clients that say nothing to us.
const PASSED_OVER: &[&str] = &[
    // VS Code.
    "gallery",
    "version",
    "dev",
    "sandbox",
    "name",
    "displayName",
    // Zed.
    "source",
    "settings",
    "remote",
    // Codex.
    "startup_timeout_sec",
    "startup_timeout_ms",
    "required",
    "supports_parallel_tool_calls",
    "default_tools_approval_mode",
    "experimental_environment",
    "oauth_resource",
    // Others.
    "icon",
    "trust",
];

/// Nothing where it is no server at all, which was said.
pub(super) fn read_draft(
    listed: &Listed<'_>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<Draft> {
    let mut outer = listed.at.object(report)?;
    let dialect = listed.dialect;
    let id = match dialect {
        Dialect::Own => id(&mut outer, report),
        Dialect::Map | Dialect::Codex => String::new(),
    };
    let is_disabled = is_disabled(&mut outer, report);
    let inner = outer.take("mcp").filter(|_| dialect != Dialect::Codex);
    let inner = inner.and_then(|at| at.object(report));
    let mut fields = Sources { outer, inner, dialect };
    if dialect == Dialect::Map && is_extension(&mut fields) {
        let message = "only Zed can start this: it is one of its extensions";
        let at = listed.at.key();
        report.add((Code::ClientOnly, Severity::Note), at, message, None);
        return None;
    }
    let title = text(fields.outer.take("title"), SHORT_TEXT_MAX, report);
    let summary = text(fields.outer.take("summary"), LONG_TEXT_MAX, report);
    let summary = match dialect {
        Dialect::Own => summary,
        _ => summary.or(text(fields.outer.take("description"), LONG_TEXT_MAX, report)),
    };
    let mut list = |name, longest, report: &mut Report<'_>| {
        let at = fields.outer.take(name);
        plain(at.map(|at| at.texts(report, longest)).unwrap_or_default())
    };
    let domains = list("domains", SHORT_TEXT_MAX, report);
    let tags = list("tags", SHORT_TEXT_MAX, report);
    let examples = list("examples", LONG_TEXT_MAX, report);
    let filling = filling.of(dialect, is_disabled);
    let reached = reached(&listed.at, &mut fields, &filling, report);
    let always_allow = fields.take("alwaysAllow", report);
    let always_allow = always_allow.map(|at| at.texts(report, SHORT_TEXT_MAX)).unwrap_or_default();
    let outer = &mut fields.outer;
    let (allow, deny) = tools(outer, dialect, report);
    check_always_allow(&always_allow, &allow, &deny, report);
    let sensitivity = outer.take("sensitivity");
    let sensitivity = sensitivity.and_then(|at| at.word(report, Sensitivity::WORDS));
    let visibility = outer.take("visibility");
    let visibility = visibility.and_then(|at| at.word(report, Visibility::WORDS));
    let priority = outer.take("priority").and_then(|at| at.number(report, 1, 10));
    let auto = outer.take("autoDiscoverTools").and_then(|at| at.flag(report));
    let timeout_ms = timeout(outer, dialect, report);
    let calls = outer.take("maxCallsPerMinute");
    let calls = calls.and_then(|at| at.number(report, 1, CALLS_PER_MINUTE_MAX));
    if dialect != Dialect::Own {
        told_of_clients(outer, report);
        outer.pass_over(PASSED_OVER);
    }
    fields.finish(report);
    Some(Draft {
        id,
        name: None,
        is_disabled,
        title,
        summary,
        domains,
        tags,
        examples,
        reached,
        always_allow: plain(always_allow),
        sensitivity,
        visibility,
        priority: priority.and_then(|number| number.try_into().ok()),
        auto_discover_tools: auto,
        allow: plain(allow),
        deny: plain(deny),
        timeout_ms,
        calls_per_minute: calls.and_then(|number| number.try_into().ok()),
    })
}

fn text(at: Option<At<'_>>, longest: usize, report: &mut Report<'_>) -> Option<String> {
    at.and_then(|at| at.text(report, longest)).map(|raw| raw.text)
}

fn plain(texts: Vec<Raw>) -> Vec<String> {
    texts.into_iter().map(|raw| raw.text).collect()
}

/// Empty where there is none that could be one.
fn id(outer: &mut Object<'_>, report: &mut Report<'_>) -> String {
    let Some(at) = outer.take("id") else {
        let hint = "give the server an id, such as `\"id\": \"github\"`";
        report.error(
            Code::Missing,
            (&outer.pointer, &first(&outer.range)),
            "`id` is missing",
            hint,
        );
        return String::new();
    };
    at.text(report, LONG_TEXT_MAX).map(|raw| raw.text).unwrap_or_default()
}

/// What is missing is reported at the beginning of what lacks it.
pub(super) fn first(range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    range.start..range.start + 1
}

fn is_disabled(outer: &mut Object<'_>, report: &mut Report<'_>) -> bool {
    let disabled = outer.take("disabled").and_then(|at| at.flag(report));
    let enabled = outer.take("enabled").and_then(|at| at.flag(report));
    disabled == Some(true) || enabled == Some(false)
}

/// What Zed runs as an extension of its own has settings, and nothing that could be started.
fn is_extension(fields: &mut Sources<'_>) -> bool {
    let outer = &mut fields.outer;
    let source = outer.take("source");
    let says_so = source.is_some_and(|at| at.node.text() == Some("extension"));
    let is_bare = outer.take("command").is_none() && outer.take("url").is_none();
    says_so || (is_bare && outer.take("settings").is_some() && fields.inner.is_none())
}

/// Which tools there are, as globs: ours, and the lists that clients keep.
fn tools(
    outer: &mut Object<'_>,
    dialect: Dialect,
    report: &mut Report<'_>,
) -> (Vec<Raw>, Vec<Raw>) {
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    let tools = outer.take("tools").filter(|_| dialect != Dialect::Codex);
    // The command line of GitHub's Copilot keeps a list of those that are allowed.
    if let Some(at) =
        tools.as_ref().filter(|at| dialect == Dialect::Map && at.node.items().is_some())
    {
        allow.extend(at.texts(report, SHORT_TEXT_MAX));
    } else if let Some(mut object) = tools.and_then(|at| at.object(report)) {
        for (name, globs) in [("allow", &mut allow), ("deny", &mut deny)] {
            globs.extend(
                object.take(name).map(|at| at.texts(report, SHORT_TEXT_MAX)).unwrap_or_default(),
            );
        }
        object.finish(report, Severity::Error);
    }
    if dialect != Dialect::Own {
        let lists = [
            (&mut allow, ["enabled_tools", "enabledTools", "includeTools"]),
            (&mut deny, ["disabled_tools", "disabledTools", "excludeTools"]),
        ];
        for (globs, names) in lists {
            for name in names {
                let at = outer.take(name);
                globs.extend(at.map(|at| at.texts(report, SHORT_TEXT_MAX)).unwrap_or_default());
            }
        }
    }
    check_globs(allow.iter().chain(&deny), report);
    (allow, deny)
}

fn check_globs<'r>(globs: impl Iterator<Item = &'r Raw>, report: &mut Report<'_>) {
    for raw in globs {
        let (what, hint) =
            if raw.text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
                ("has a space in it, which no name of a tool has", "remove the space")
            } else if Glob::new(&raw.text).is_ok_and(|glob| !glob.is_closed()) {
                ("has a bracket that is not closed", "close it, or write a backslash before it")
            } else {
                continue;
            };
        let message = format!("the pattern `{}` {what}", raw.text);
        report.error(Code::BadGlob, (&raw.pointer, &raw.range), message, hint);
    }
}

fn check_always_allow(always: &[Raw], allow: &[Raw], deny: &[Raw], report: &mut Report<'_>) {
    check_globs(always.iter(), report);
    let compiled = |raws: &[Raw]| -> Vec<Glob> {
        raws.iter().filter_map(|raw| Glob::new(&raw.text).ok()).collect()
    };
    let (allow, deny) = (compiled(allow), compiled(deny));
    // Of patterns, only names can be held against others.
    for raw in always.iter().filter(|raw| !raw.text.contains(['*', '?', '[', '{', '\\'])) {
        let name = raw.text.as_str();
        let why = if deny.iter().any(|glob| glob.matches(name)) {
            "`tools.deny` denies it"
        } else if !allow.is_empty() && !allow.iter().any(|glob| glob.matches(name)) {
            "`tools.allow` does not allow it"
        } else {
            continue;
        };
        let message = format!("`{name}` skips a confirmation, but {why}");
        let hint = "remove it from one of the two";
        report.warn(Code::DeniedAnyway, (&raw.pointer, &raw.range), message, hint);
    }
}

fn timeout(outer: &mut Object<'_>, dialect: Dialect, report: &mut Report<'_>) -> Option<u64> {
    let own = outer.take("timeoutMs").and_then(|at| at.number(report, 1, TIMEOUT_MS_MAX));
    if dialect == Dialect::Codex
        && let Some(at) = outer.take("tool_timeout_sec")
    {
        return own.or_else(|| at.seconds(report, TIMEOUT_MS_MAX));
    }
    own
}

/// What a client would do, and we do not: better said than found out.
fn told_of_clients(outer: &mut Object<'_>, report: &mut Report<'_>) {
    let only = |at: &At<'_>, report: &mut Report<'_>, message: &str, hint: &str| {
        report.warn(Code::ClientOnly, at.key(), message, hint);
    };
    if let Some(at) = outer.take("envFile") {
        only(
            &at,
            report,
            "`envFile` is not read",
            "name the variables in `env`, such as `\"X\": \"${X}\"`",
        );
    }
    if let Some(at) = outer.take("headersHelper") {
        let hint = "put the headers into `headers`, with variables for what is secret";
        only(&at, report, "`headersHelper` is not run", hint);
    }
    if let Some(at) = outer.take("sandboxEnabled").filter(|at| at.flag(report) == Some(true)) {
        only(
            &at,
            report,
            "the server does not run in a sandbox here",
            "start it in a container, for example",
        );
    }
    if let Some(at) = outer.take("timeout") {
        let message = "`timeout` has no effect: some clients count seconds, others milliseconds";
        report.warn(Code::NoEffect, at.key(), message, "write `timeoutMs`");
    }
    if let Some(at) = outer.take("autoApprove") {
        let message = "`autoApprove` has no effect";
        report.warn(Code::NoEffect, at.key(), message, "write `alwaysAllow`");
    }
}

impl Filling<'_> {
    /// The entry that a draft without an error comes to.
    pub(super) fn entry(&self, draft: &Draft) -> Option<Entry> {
        let connect = match draft.reached.clone()? {
            Reached::Stdio { command, args, env, cwd, unconfined } => Connect::Stdio {
                command: self.at_home(command.filled.reveal()),
                args: args.into_iter().map(|arg| arg.filled).collect(),
                env: env.into_iter().map(|(name, text)| (name, text.filled)).collect(),
                cwd: cwd.map(|cwd| self.folder(cwd.filled.reveal())),
                unconfined,
            },
            Reached::Http { url, headers, auth } => Connect::Http {
                url: url.filled,
                headers: headers.into_iter().map(|(name, text)| (name, text.filled)).collect(),
                auth: auth.map(|auth| match auth {
                    Credentials::Bearer(token) => Auth::Bearer(token.filled),
                    Credentials::OAuth { client_id, client_secret, scopes, callback_port } => {
                        let client_id = client_id.map(|id| id.filled.reveal().to_owned());
                        let client_secret = client_secret.map(|secret| secret.filled);
                        Auth::OAuth { client_id, client_secret, scopes, callback_port }
                    }
                }),
            },
        };
        let draft = draft.clone();
        Some(Entry {
            id: draft.id,
            title: draft.title,
            summary: draft.summary,
            domains: draft.domains,
            tags: draft.tags,
            examples: draft.examples,
            connect,
            always_allow: draft.always_allow,
            sensitivity: draft.sensitivity.unwrap_or_default(),
            visibility: draft.visibility.unwrap_or_default(),
            priority: draft.priority.unwrap_or(Entry::PRIORITY),
            auto_discover_tools: draft.auto_discover_tools.unwrap_or(true),
            allow: draft.allow,
            deny: draft.deny,
            own_timeout: draft.timeout_ms.map(Duration::from_millis),
            own_calls_per_minute: draft.calls_per_minute,
        })
    }
}
