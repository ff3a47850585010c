//! `POST /sessions/{id}/approve` and `/reject`: somebody decides what waits, with a token that may approve. Where nobody has
//! to say who they are, anybody may, unless the session says otherwise.

use engine::{Channel, Decision, Event};
use serde::Deserialize;
use store::Version;
use transport::EndpointAnswer;

use super::{read, with_status};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::{Denied, Open, Ruling, Standing, from_store, refusal};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    reason: Option<String>,
    /// What was seen; without it, what waits now is decided.
    version: Option<u64>,
}

pub(super) fn decide(
    app: &App,
    who: &Who,
    id: &str,
    is_approved: bool,
    body: &[u8],
    wanted: &str,
) -> Result<EndpointAnswer, Refusal> {
    // First, so that whoever may not decide does not learn what there is.
    who.needs(Right::Approve, wanted, app.sessions().audit())?;
    let Body { reason, version } = read(body)?;
    let open = app.sessions().seen_by(who, id, wanted)?;
    let session = open.sessions.open(id).map_err(|error| refusal(id, error))?;
    let channel = match who {
        Who::Principal { .. } => Channel::Token,
        // Nobody has verified who it is.
        Who::Local(_) => Channel::Client,
    };
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let decision = Decision { who: who.name(&open).to_owned(), channel, reason };
    // Without a version, what was decided last is meant where nothing waits.
    let before = version.unwrap_or(session.version.saturating_sub(1));
    if (session.state.waiting.is_none() || session.version > before)
        && was_decided(&open, id, before + 1, &decision, is_approved)?
    {
        return Ok(with_status(200, Some(Standing::of(&session).data())));
    }
    if session.state.waiting.is_none() {
        let why = Denied::Engine(engine::Refusal::NotWaiting);
        return Err(Refusal::Session { why, at: Standing::of(&session) });
    }
    let (version, right) = (version.unwrap_or(session.version), who.right());
    let ruling = Ruling { session: id, version, is_approved, decision, right };
    let after = open.rule(ruling).map_err(|error| refusal(id, error))?;
    Ok(with_status(200, Some(Standing::of(&after).data())))
}

/// Whether this very decision is the event of this version: the call is made again by somebody who has lost the answer.
fn was_decided(
    open: &Open,
    id: &str,
    version: Version,
    decision: &Decision,
    is_approved: bool,
) -> Result<bool, Refusal> {
    let found = open.sessions.store().events(id, version, 1).map_err(|error| from_store(&error))?;
    let event = found.first().filter(|event| event.version == version);
    let event = event.and_then(|event| serde_json::from_str(&event.body).ok());
    Ok(match event {
        Some(Event::Approved { decision: made, .. }) => is_approved && made == *decision,
        Some(Event::Declined { decision: made }) => !is_approved && made == *decision,
        _ => false,
    })
}
