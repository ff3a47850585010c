//! What of a text is secret: what stands where secrets stand (a token, a header that lets somebody in, a variable that
//! is called so, a password in an address), and what looks like one wherever it stands.

use std::ops::Range;

use super::entry::{HIDDEN, Secret};
use super::variables::{Filled, From, Piece, Variable};

/// What a text is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role<'a> {
    /// A command, or a folder.
    Path,
    /// An argument, and the one before it.
    Argument(Option<&'a str>),
    Environment(&'a str),
    Address,
    Header(&'a str),
    /// All of it is secret.
    Token,
}

/// Words in a name that say what is kept under it.
const SECRET_WORDS: &[&str] = &[
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];
/// The same, where a name ends with one.
const SECRET_ENDINGS: &[&str] = &["PAT", "PWD", "PASS", "AUTH", "DSN", "SIG", "SIGNATURE"];
/// With these, it is only said where the secret is.
const PLACE_ENDINGS: &[&str] = &["FILE", "PATH", "DIR"];
/// How the tokens of well-known services begin.
const TOKEN_BEGINNINGS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "lin_api_",
    "ntn_",
    "secret_",
    "figd_",
    "dop_v1_",
    "SG.",
    "shpat_",
    "glsa_",
    "whsec_",
    "tvly-",
    "sntrys_",
    "sbp_",
    "wfl_",
];
/// Shorter than this nothing is taken for a token by its beginning.
const TOKEN_MIN: usize = 12;
/// Shorter than this nothing is taken for one by its letters.
const RANDOM_MIN: usize = 20;
const HEX_MIN: usize = 32;

pub(super) fn secret(role: Role<'_>, filled: Filled<'_>) -> Secret {
    let Filled { value, spans, .. } = filled;
    let mut parts = parts(role, &value);
    for (piece, range) in &spans {
        if let Piece::Variable(variable) = piece
            && (is_secret_variable(role, variable) || looks_like_token(&value[range.clone()]))
        {
            parts.push(range.clone());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| (part.start, part.end));
    parts.dedup();
    let shown = spans.iter().map(|(piece, range)| match piece {
        Piece::Text(_) => starred(&value, range, &parts),
        Piece::Variable(variable) => {
            let is_secret =
                parts.iter().any(|part| part.start < range.end && range.start < part.end);
            match variable.default {
                Some(default)
                    if !default.is_empty() && (is_secret || looks_like_token(default)) =>
                {
                    variable.raw.replacen(&format!(":-{default}"), &format!(":-{HIDDEN}"), 1)
                }
                _ => variable.raw.to_owned(),
            }
        }
    });
    let shown = shown.collect();
    Secret::in_parts(value, shown, parts)
}

fn is_secret_variable(role: Role<'_>, variable: &Variable<'_>) -> bool {
    match variable.from {
        // What lets somebody in is the usual reason for a variable in a header.
        From::Environment(name) | From::Input(name) => {
            is_secret_name(name) || matches!(role, Role::Header(_))
        }
        From::Home | From::Project | From::ProjectName | From::Separator => false,
    }
}

/// A range of the value, with stars for each part that is secret.
fn starred(value: &str, range: &Range<usize>, parts: &[Range<usize>]) -> String {
    let mut shown = String::new();
    let mut at = range.start;
    for part in parts {
        let (start, end) = (part.start.max(at), part.end.min(range.end));
        if start >= end {
            continue;
        }
        shown.push_str(&value[at..start]);
        // Two that touch are one to whoever looks.
        if start > at || !shown.ends_with(HIDDEN) {
            shown.push_str(HIDDEN);
        }
        at = end;
    }
    shown.push_str(&value[at..range.end]);
    shown
}

fn parts(role: Role<'_>, value: &str) -> Vec<Range<usize>> {
    match role {
        Role::Path => Vec::new(),
        Role::Token => vec![credential(value, 0)],
        Role::Address => address(value),
        Role::Environment(name) if is_secret_name(name) => named(value),
        Role::Header(name) if is_secret_name(name) => vec![credential(value, 0)],
        Role::Environment(_) | Role::Header(_) => anywhere(value),
        Role::Argument(before) => argument(before, value),
    }
}

/// A value under a secret name: all of it, or of an address what lets somebody in.
fn named(value: &str) -> Vec<Range<usize>> {
    let parts = in_addresses(value);
    if parts.is_empty() { std::iter::once(0..value.len()).collect() } else { parts }
}

/// What comes after the word that says how one is let in, `Bearer` for example.
fn credential(value: &str, offset: usize) -> Range<usize> {
    let text = &value[offset..];
    let start = offset + text.len() - text.trim_start().len();
    let start = match value[start..].split_once(' ') {
        Some((scheme, rest)) if scheme.chars().all(|letter| letter.is_ascii_alphabetic()) => {
            value.len() - rest.trim_start().len()
        }
        _ => start,
    };
    start..value.len()
}

fn argument(before: Option<&str>, value: &str) -> Vec<Range<usize>> {
    if let Some(flag) = before.filter(|before| before.starts_with('-') && !before.contains('=')) {
        if is_secret_name(flag) && !value.starts_with('-') {
            return named(value);
        }
        // As `curl` and `mcp-remote` take headers.
        if matches!(flag, "-H" | "--header")
            && let Some((name, _)) = value.split_once(':')
            && is_secret_name(name)
        {
            return vec![credential(value, name.len() + 1)];
        }
    }
    // `--api-key=…`, and `TOKEN=…` as `docker run -e` takes it.
    if let Some((name, rest)) = value.split_once('=')
        && !name.contains([' ', '/', '?'])
        && is_secret_name(name)
    {
        return std::iter::once(value.len() - rest.len()..value.len()).collect();
    }
    anywhere(value)
}

fn anywhere(value: &str) -> Vec<Range<usize>> {
    let mut parts = in_addresses(value);
    let is_border = |letter: char| letter.is_whitespace() || "\"'`,;=:()<>[]{}|".contains(letter);
    parts.extend(
        words(value, 0..value.len(), is_border)
            .filter(|word| looks_like_token(&value[word.clone()])),
    );
    parts
}

/// One address, also where it lacks its beginning.
fn address(value: &str) -> Vec<Range<usize>> {
    let mut parts = in_addresses(value);
    if !value.contains("://") {
        in_address(value, 0..value.len(), &mut parts);
    }
    parts
}

/// Who is let in, and by what: between `//` and `@`, behind `?`, or in the path itself.
fn in_addresses(value: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(at) = value[from..].find("://") {
        let start = from + at + 3;
        let end = value[start..].find(char::is_whitespace).map_or(value.len(), |end| start + end);
        in_address(value, start..end, &mut parts);
        from = end;
    }
    parts
}

/// `range` is what follows `://`.
fn in_address(value: &str, range: Range<usize>, parts: &mut Vec<Range<usize>>) {
    let rest = &value[range.clone()];
    let authority = range.start..range.start + rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if let Some((user, _)) = value[authority.clone()].rsplit_once('@') {
        let password = user.find(':').map_or(0, |colon| colon + 1);
        parts.push(authority.start + password..authority.start + user.len());
    }
    let query = value[authority.end..range.end].find(['?', '#']);
    let query = query.map_or(range.end, |query| authority.end + query);
    let segments = words(value, authority.end..query, |letter| letter == '/');
    parts.extend(segments.filter(|segment| looks_like_token(&value[segment.clone()])));
    for field in words(value, query..range.end, |letter| "?#&;".contains(letter)) {
        let text = &value[field.clone()];
        let (name, start) = match text.find('=') {
            Some(equals) => (&text[..equals], field.start + equals + 1),
            None => ("", field.start),
        };
        if is_secret_name(name) || looks_like_token(&value[start..field.end]) {
            parts.push(start..field.end);
        }
    }
}

/// The pieces of a range between borders.
fn words(
    value: &str,
    range: Range<usize>,
    is_border: impl Fn(char) -> bool,
) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    let mut words = Vec::new();
    for (at, letter) in value[range.clone()].char_indices() {
        let at = range.start + at;
        if is_border(letter) {
            words.push(start..at);
            start = at + letter.len_utf8();
        }
    }
    words.push(start..range.end);
    words.into_iter().filter(|word| !word.is_empty())
}

/// Whether secrets are kept under such a name: of a variable, a header, an option or a field of a query.
pub(super) fn is_secret_name(name: &str) -> bool {
    let plain = name.trim().trim_start_matches('-').replace(['-', '.', ' '], "_");
    let plain = plain.to_ascii_uppercase();
    let last = plain.rsplit('_').next().unwrap_or_default();
    !PLACE_ENDINGS.contains(&last)
        && (SECRET_ENDINGS.contains(&last) || SECRET_WORDS.iter().any(|word| plain.contains(word)))
}

/// Whether a word is a token by its looks: a well-known beginning, or letters and digits as only chance has them.
pub(super) fn looks_like_token(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.+/=~%".contains(letter);
    if !word.chars().all(is_plain) {
        return false;
    }
    if word.len() >= TOKEN_MIN && TOKEN_BEGINNINGS.iter().any(|start| word.starts_with(start)) {
        return true;
    }
    let bare = word.replace('-', "");
    if bare.len() >= HEX_MIN && bare.chars().all(|letter| letter.is_ascii_hexdigit()) {
        return true;
    }
    // Paths, addresses and names of packages have their words apart.
    if word.len() < RANDOM_MIN || word.contains(['/', '.', '=', '%']) {
        return false;
    }
    let has = |test: fn(&char) -> bool| word.chars().filter(test).count() >= 2;
    has(char::is_ascii_digit) && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::super::variables::{Variables, fill, parse};
    use super::*;

    /// What is shown, and what is secret.
    fn seen(role: Role<'_>, text: &str) -> (String, Vec<String>) {
        let variables =
            Variables::given([("T", "abcdef"), ("API_TOKEN", "s3cr3t"), ("MODE", "fast")]);
        let secret = secret(role, fill(parse(text).unwrap(), &variables));
        (secret.to_string(), secret.secrets().map(str::to_owned).collect())
    }

    #[track_caller]
    fn check(role: Role<'_>, text: &str, shown: &str, secrets: &[&str]) {
        let (seen_text, seen_secrets) = seen(role, text);
        assert_eq!(
            (seen_text.as_str(), seen_secrets),
            (shown, secrets.iter().map(|s| (*s).to_owned()).collect())
        );
    }

    #[test]
    fn headers() {
        let auth = Role::Header("Authorization");
        check(auth, "Bearer abc", "Bearer ***", &["abc"]);
        check(auth, "Bearer ${T}", "Bearer ${T}", &["abcdef"]);
        check(auth, "${T}", "${T}", &["abcdef"]);
        check(auth, "Bearer ${NONE:-fallback}", "Bearer ${NONE:-***}", &["fallback"]);
        check(Role::Header("X-Api-Key"), "abc", "***", &["abc"]);
        check(Role::Header("X-Client"), "release-review", "release-review", &[]);
        check(Role::Header("X-Client"), "${T}", "${T}", &["abcdef"]);
    }

    #[test]
    fn environment() {
        check(Role::Environment("GITHUB_TOKEN"), "abc", "***", &["abc"]);
        check(Role::Environment("MODE"), "fast", "fast", &[]);
        check(Role::Environment("MODE"), "${MODE}", "${MODE}", &[]);
        check(Role::Environment("OTHER"), "${API_TOKEN}", "${API_TOKEN}", &["s3cr3t"]);
        check(Role::Environment("SENTRY_DSN"), "https://k@s.io/1", "https://***@s.io/1", &["k"]);
        check(Role::Environment("TOKEN_FILE"), "/run/token", "/run/token", &[]);
        check(
            Role::Environment("DATABASE_URL"),
            "postgres://anna:pw@db/x",
            "postgres://anna:***@db/x",
            &["pw"],
        );
    }

    #[test]
    fn addresses() {
        check(Role::Address, "https://example.com/mcp", "https://example.com/mcp", &[]);
        check(
            Role::Address,
            "https://u:p@example.com/a?x=1&api_key=k#f",
            "https://u:***@example.com/a?x=1&api_key=***#f",
            &["p", "k"],
        );
        check(Role::Address, "u:p@h/x?token=t", "u:***@h/x?token=***", &["p", "t"]);
        check(Role::Address, "https://tok@example.com", "https://***@example.com", &["tok"]);
        check(
            Role::Address,
            "https://example.com/s/AbCdEfGh12345678XyZ0/mcp?t=${API_TOKEN}",
            "https://example.com/s/***/mcp?t=${API_TOKEN}",
            &["AbCdEfGh12345678XyZ0", "s3cr3t"],
        );
    }

    #[test]
    fn arguments() {
        let after = |flag| Role::Argument(Some(flag));
        check(after("--api-key"), "abc", "***", &["abc"]);
        check(after("--api-key"), "--verbose", "--verbose", &[]);
        check(
            after("-y"),
            "@modelcontextprotocol/server-everything@2026.1.14",
            "@modelcontextprotocol/server-everything@2026.1.14",
            &[],
        );
        check(after("x"), "--api-key=abc", "--api-key=***", &["abc"]);
        check(after("-e"), "GITHUB_TOKEN=abc", "GITHUB_TOKEN=***", &["abc"]);
        check(
            after("--header"),
            "Authorization: Bearer abc",
            "Authorization: Bearer ***",
            &["abc"],
        );
        check(after("--header"), "Authorization:${T}", "Authorization:${T}", &["abcdef"]);
        check(after("-c"), "x ghp_0123456789ab y", "x *** y", &["ghp_0123456789ab"]);
        check(Role::Argument(None), "--key-file=/a/b", "--key-file=/a/b", &[]);
    }

    #[test]
    fn tokens_by_their_looks() {
        let yes = ["ghp_0123456789ab", "sk-ant-REDACTED", "0123456789abcdef0123456789abcdef"];
        for word in
            yes.into_iter().chain(["c0ffee00-1234-4321-8888-0123456789ab", "AbCdEfGh12345678XyZ0"])
        {
            assert!(looks_like_token(word), "{word}");
        }
        let no =
            ["sk-", "server-filesystem-2025-11-25-linux-x64", "/usr/local/bin/NodeJs20/Server1"];
        for word in no.into_iter().chain(["mcp.example.com", "true", "", "Playwright"]) {
            assert!(!looks_like_token(word), "{word}");
        }
    }
}
