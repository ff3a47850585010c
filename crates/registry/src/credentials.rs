//! What lets us in to a server over HTTP: `auth`, and what clients have instead of it.

use super::connect::Sources;
use super::draft::Credentials;
use super::filling::Filling;
use super::finding::{Code, Severity};
use super::limits::{SHORT_TEXT_MAX, VALUE_MAX};
use super::report::{At, Object, Report};
use super::secrecy::Role;
use super::shapes::Dialect;

#[derive(Clone, Copy)]
enum Kind {
    Bearer,
    OAuth,
}

/// What was found, and where.
pub(super) fn credentials<'a>(
    fields: &mut Sources<'a>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<(At<'a>, Credentials)> {
    let auth = fields.take("auth", report);
    let read =
        auth.and_then(|at| Some((at.clone(), auth_field(&at, fields.dialect, filling, report)?)));
    if fields.dialect == Dialect::Own {
        return read;
    }
    // Claude Code and VS Code keep an `oauth`, Codex too, with its scopes beside it.
    let oauth = fields.take("oauth", report);
    let scopes = fields.take("scopes", report);
    let token = if fields.dialect == Dialect::Codex {
        fields.take("bearer_token_env_var", report)
    } else {
        None
    };
    let oauth = match (oauth, scopes) {
        (Some(at), scopes) if at.node.fields().is_some() => {
            let object = at.object(report)?;
            Some((at.clone(), oauth_fields(object, scopes, filling, report)))
        }
        (None, Some(scopes)) => {
            let list = scope_list(Some(scopes.clone()), report);
            Some((scopes, oauth_of(None, None, list, None)))
        }
        // Others say only whether.
        _ => None,
    };
    let token = token.and_then(|at| {
        let raw = at.text(report, SHORT_TEXT_MAX)?;
        Some((at, Credentials::Bearer(filling.variable(&raw, "", Role::Token, report))))
    });
    read.or(token).or(oauth)
}

fn auth_field(
    at: &At<'_>,
    dialect: Dialect,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Option<Credentials> {
    let mut object = at.object(report)?;
    let Some(kind) = object.take("type") else {
        // Cursor: a client that was registered by hand.
        if dialect == Dialect::Map && at.node.get("CLIENT_ID").is_some() {
            return Some(oauth_fields(object, None, filling, report));
        }
        let hint = "write `\"type\": \"bearer\"` or `\"type\": \"oauth\"`";
        report.error(Code::Missing, at.spot(), "`type` is missing in `auth`", hint);
        return None;
    };
    match kind.word(report, &[("bearer", Kind::Bearer), ("oauth", Kind::OAuth)])? {
        Kind::OAuth => Some(oauth_fields(object, None, filling, report)),
        Kind::Bearer => {
            let token = object.take("token");
            object.finish(report, Severity::Error);
            let Some(token) = token else {
                let hint = "write `\"token\": \"${NAME}\"`, and set the variable";
                report.error(Code::Missing, at.spot(), "`token` is missing in `auth`", hint);
                return None;
            };
            let raw = token.text(report, VALUE_MAX)?;
            let text = filling.text(&raw, "auth.token", Role::Token, report);
            if text.filled.reveal().trim().is_empty() {
                let hint = "set the variable to the token";
                report.error(Code::TextLength, token.spot(), "`auth.token` is empty", hint);
            }
            Some(Credentials::Bearer(text))
        }
    }
}

fn oauth_fields(
    mut object: Object<'_>,
    scopes: Option<At<'_>>,
    filling: &Filling<'_>,
    report: &mut Report<'_>,
) -> Credentials {
    let mut any = |names: [&'static str; 3], role: Role<'_>, report: &mut Report<'_>| {
        let mut found = names.into_iter().filter_map(|name| object.take(name)).collect::<Vec<_>>();
        let raw = found.pop().and_then(|at| at.text(report, VALUE_MAX));
        raw.map(|raw| filling.text(&raw, names[0], role, report))
    };
    let client_id = any(["clientId", "client_id", "CLIENT_ID"], Role::Path, report);
    let client_secret =
        any(["clientSecret", "client_secret", "CLIENT_SECRET"], Role::Token, report);
    let scopes = object.take("scopes").or(scopes);
    let port = object.take("callbackPort");
    let port = port.and_then(|at| at.number(report, 1, u64::from(u16::MAX)));
    object.pass_over(&["authServerMetadataUrl", "xaa"]);
    object.finish(report, Severity::Warning);
    let scopes = scope_list(scopes, report);
    oauth_of(client_id, client_secret, scopes, port.and_then(|port| port.try_into().ok()))
}

fn oauth_of(
    client_id: Option<super::draft::Text>,
    client_secret: Option<super::draft::Text>,
    scopes: Vec<String>,
    callback_port: Option<u16>,
) -> Credentials {
    Credentials::OAuth { client_id, client_secret, scopes, callback_port }
}

/// A list, or one text with spaces between them.
fn scope_list(scopes: Option<At<'_>>, report: &mut Report<'_>) -> Vec<String> {
    let Some(at) = scopes else { return Vec::new() };
    if at.node.text().is_some() {
        let raw = at.text(report, VALUE_MAX);
        let words = raw.iter().flat_map(|raw| raw.text.split_whitespace());
        return words.map(str::to_owned).collect();
    }
    at.texts(report, SHORT_TEXT_MAX).into_iter().map(|raw| raw.text).collect()
}
