//! `GET /tokens`, `POST /tokens` and `DELETE /tokens/NAME`: the same as the commands do, for whoever has a token that may
//! manage. The first one is made on the command line.

use serde::Deserialize;
use serde_json::json;
use transport::EndpointAnswer;

use super::{read, with_status};
use crate::access::{Right, Who};
use crate::audit::{Audit, Line};
use crate::auth::{Record, TokenList};
use crate::error::Refusal;
use crate::sessions::{now, time_text};

/// How long a token is good for, where nobody says, and at most.
const DAYS: u64 = 90;
const DAYS_MAX: u64 = 3650;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    name: String,
    #[serde(default)]
    right: Right,
    days: Option<u64>,
}

pub(super) fn list(
    who: &Who,
    tokens: Option<TokenList>,
    wanted: &str,
    audit: &Audit,
) -> Result<EndpointAnswer, Refusal> {
    let (file, _) = managed(who, tokens, wanted, audit)?;
    let now = now();
    let tokens: Vec<_> = file.list()?.iter().map(|record| shown(record, now)).collect();
    Ok(with_status(200, Some(json!({"tokens": tokens}))))
}

pub(super) fn make(
    who: &Who,
    tokens: Option<TokenList>,
    body: &[u8],
    wanted: &str,
    audit: &Audit,
) -> Result<EndpointAnswer, Refusal> {
    let (file, principal) = managed(who, tokens, wanted, audit)?;
    let Body { name, right, days } = read(body)?;
    let days = days.unwrap_or(DAYS);
    if !(1..=DAYS_MAX).contains(&days) {
        let details = format!("a token is good for 1 to {DAYS_MAX} days");
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    let made = now();
    let (token, record) = file.make(&name, right, made, Some(made + days * DAY_MS))?;
    noted("tokenMade", principal, &record.name, Some(right), audit);
    let mut answer = shown(&record, made);
    answer["token"] = json!(token);
    Ok(with_status(201, Some(answer)))
}

pub(super) fn revoke(
    who: &Who,
    tokens: Option<TokenList>,
    name: &str,
    wanted: &str,
    audit: &Audit,
) -> Result<EndpointAnswer, Refusal> {
    let (file, principal) = managed(who, tokens, wanted, audit)?;
    file.revoke(name)?;
    noted("tokenRevoked", principal, name, None, audit);
    Ok(with_status(204, None))
}

/// The file, for who may manage it. Nobody may who has not said who they are: anybody could make tokens then.
fn managed<'a>(
    who: &'a Who,
    tokens: Option<TokenList>,
    wanted: &str,
    audit: &Audit,
) -> Result<(TokenList, &'a str), Refusal> {
    who.needs(Right::Admin, wanted, audit)?;
    match (who, tokens) {
        (Who::Principal { name, .. }, Some(file)) => Ok((file, name)),
        (Who::Principal { .. }, None) => Err(Refusal::Store {
            details: "there is no folder to keep tokens in".to_owned(),
            hint: Some("name a file with `--tokens FILE`".to_owned()),
        }),
        (Who::Local(_), _) => {
            let refusal = Refusal::Right { needed: Right::Admin, has: None };
            who.refused(wanted, None, &refusal.to_string(), audit);
            Err(refusal)
        }
    }
}

/// Everything but what is secret.
fn shown(record: &Record, now: u64) -> serde_json::Value {
    json!({
        "name": record.name,
        "id": record.id,
        "right": record.right,
        "status": if record.is_expired(now) { "expired" } else { "good" },
        "made": time_text(record.made),
        "expires": record.until.map(time_text),
    })
}

fn noted(
    event: &'static str,
    principal: &str,
    name: &str,
    token_right: Option<Right>,
    audit: &Audit,
) {
    let (principal, right, token) = (Some(principal), Some(Right::Admin), Some(name));
    audit.write(&Line { event, principal, right, token, token_right, ..Line::default() });
}
