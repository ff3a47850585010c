//! `POST /sessions/{id}/approve` and `/reject`: somebody decides what waits, with a token that may approve. Where nobody has
//! to say who they are, anybody may, unless the session says otherwise.

use engine::{Channel, Decision};
use serde::Deserialize;
use transport::EndpointAnswer;

use super::{read, with_status};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::{Denied, Ruling, Standing, refusal};

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
    if session.state.waiting.is_none() {
        let why = Denied::Engine(engine::Refusal::NotWaiting);
        return Err(Refusal::Session { why, at: Standing::of(&session) });
    }
    let channel = match who {
        Who::Principal { .. } => Channel::Token,
        // Nobody has verified who it is.
        Who::Local(_) => Channel::Client,
    };
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let decision = Decision { who: who.name(&open).to_owned(), channel, reason };
    let (version, right) = (version.unwrap_or(session.version), who.right());
    let ruling = Ruling { session: id, version, is_approved, decision, right };
    let after = open.rule(ruling).map_err(|error| refusal(id, error))?;
    Ok(with_status(200, Some(Standing::of(&after).data())))
}
