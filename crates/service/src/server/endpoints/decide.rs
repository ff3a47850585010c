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
    /// What was seen. Nothing newer is decided.
    version: Option<Version>,
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
    let version = version.ok_or_else(|| Refusal::InvalidParams {
        details: "`version` is missing: name the version that you have seen".to_owned(),
        hint: Some("it is `waiting.version` of `workflow_status`, and of the resource".to_owned()),
    })?;
    let open = app.sessions().seen_by(who, id, wanted)?;
    let session = open.sessions.open(id).map_err(|error| refusal(id, error))?;
    let channel = match who {
        Who::Principal { .. } => Channel::Token,
        // Nobody has verified who it is.
        Who::Local(_) => Channel::Client,
    };
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let decision = Decision { who: who.name(&open).to_owned(), channel, reason };
    if session.version > version && was_decided(&open, id, version + 1, &decision, is_approved)? {
        return Ok(with_status(200, Some(Standing::of(&session).data())));
    }
    if session.state.pending().is_none() {
        let why = Denied::Engine(engine::Refusal::NotWaiting);
        return Err(Refusal::Session { why, at: Standing::of(&session) });
    }
    let ruling = Ruling { session: id, version, is_approved, decision, right: who.right() };
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
        Some(Event::Approved { decision: made, .. } | Event::LoopApproved { decision: made }) => {
            is_approved && made == *decision
        }
        Some(Event::Declined { decision: made } | Event::LoopDeclined { decision: made }) => {
            !is_approved && made == *decision
        }
        _ => false,
    })
}
