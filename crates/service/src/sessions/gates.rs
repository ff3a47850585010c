//! Deciding what waits for a person, whichever way the decision comes: it is recorded in the session, and in the audit
//! log.

use std::sync::Arc;

use clap::ValueEnum;
use engine::Decision;
use store::Version;
use store::sessions::{Error, Session};

use super::{Open, Ruled, now};
use crate::access::Right;
use crate::audit::Line;

/// Whose word counts about what waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Gates {
    /// The client asks its user, who may also decide on the command line
    #[default]
    Asking,
    /// Only a decision with a token that may approve; sessions that begin so stay so
    Strict,
}

/// A decision about what waited at a version, and nothing else.
#[derive(Debug)]
pub struct Ruling<'a> {
    pub session: &'a str,
    pub version: Version,
    pub is_approved: bool,
    pub decision: Decision,
    /// What the token of whoever decides is good for, where they have one.
    pub right: Option<Right>,
}

impl Open {
    pub fn rule(&self, ruling: Ruling<'_>) -> Result<Arc<Session>, Error> {
        let Ruling { session: id, version, is_approved, decision, right } = ruling;
        let before = self.sessions.open(id).ok().filter(|session| session.version == version);
        let pending = before.as_ref().and_then(|session| session.state.pending());
        let (session, version) = (Some(id), Some(version));
        let step = pending.map(engine::Pending::step);
        let about = Line { session, step, version, ..Line::default() };
        let version = ruling.version;
        let ruled = match is_approved {
            true => self.sessions.approve(id, version, &decision, now()),
            false => self.sessions.decline(id, version, &decision, now()),
        };
        match &ruled {
            Ok(_) => {
                let ruled = if is_approved { Ruled::Approved } else { Ruled::Declined };
                self.tally.decided(decision.channel, ruled);
                self.audit.decided(&decision, right, &about, is_approved);
            }
            Err(Error::Refused { refusal: refusal @ engine::Refusal::StrictGate, .. }) => {
                self.audit.refused(&Line {
                    principal: Some(&decision.who),
                    right,
                    channel: Some(decision.channel),
                    wanted: Some(if is_approved { "approve" } else { "reject" }),
                    reason: Some(&refusal.to_string()),
                    ..about
                });
            }
            Err(_) => {}
        }
        ruled
    }

    /// Whether only a token decides what waits in a session, wherever it began.
    pub(crate) fn is_strict(&self, session: &Session) -> bool {
        self.gates == Gates::Strict || session.state.strict
    }
}
