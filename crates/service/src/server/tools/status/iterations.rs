//! The iterations that finished steps belong to, for their titles: "Try {{file}}" names the file of its iteration. They
//! are read from the end of the log, along the same way as a summary and with the same bound.

use engine::{Budget, Event, LoopState};
use store::sessions::{Finished, Session};
use store::{Error, Version};

use crate::error::Refusal;
use crate::sessions::{Open, from_store};

/// How many events are read at once, and in all.
const PAGE: Version = 16;
const EVENTS_MAX: Version = 256;
/// What reading an event costs. A long log is read on a worker.
const EVENT_STEPS: u64 = 4_000;

/// Where the loops stood when each of these steps was finished; nowhere if the log is too long to tell.
pub(super) fn loops_at(
    open: &Open,
    session: &Session,
    steps: &[Finished],
    budget: &Budget,
) -> Result<Vec<LoopState>, Refusal> {
    let has_slots = |step: &Finished| {
        session.workflow.step(&step.step).is_some_and(|step| step.title().contains("{{"))
    };
    let mut loops = Vec::new();
    if steps.iter().any(has_slots) {
        let found = newest_first(open, session, steps.len(), budget)?;
        let known = steps.iter().rev().zip(found).take_while(|(step, (id, _))| step.step == *id);
        loops.extend(known.map(|(_, (_, loops))| loops));
    }
    loops.resize_with(steps.len(), LoopState::default);
    loops.reverse();
    Ok(loops)
}

fn newest_first(
    open: &Open,
    session: &Session,
    count: usize,
    budget: &Budget,
) -> Result<Vec<(String, LoopState)>, Refusal> {
    let mut found = Vec::new();
    let (mut id, mut at) = (session.id.clone(), session.version);
    let mut left = EVENTS_MAX;
    // A confirmed output stands before its confirmation.
    let mut confirmed = None;
    'pages: while at > 0 && left > 0 && found.len() < count {
        let events = PAGE.min(at).min(left);
        if budget.spend(events * EVENT_STEPS).is_err() {
            break;
        }
        left -= events;
        let page = open.sessions.store().events(&id, at - events + 1, events as usize);
        let page = match page {
            // The session that this one was copied from is gone.
            Err(Error::NotFound) if id != session.id => break,
            page => page.map_err(|error| from_store(&error))?,
        };
        at -= events;
        for stored in page.into_iter().rev() {
            // Whoever has to know that a log is damaged hears it from the summary.
            let Ok(event) = serde_json::from_str(&stored.body) else { break 'pages };
            match event {
                Event::Accepted { submission, place } => found.push((submission.step, place.loops)),
                Event::Approved { place, .. } => confirmed = Some(place.loops),
                Event::Submitted { submission } => {
                    found.extend(confirmed.take().map(|loops| (submission.step, loops)));
                }
                Event::Rewound { version, .. } => {
                    at = version.min(stored.version - 1);
                    break;
                }
                // A file may name anybody's session as the original of a copy.
                Event::Started { .. } if session.state.imported.is_some() => break 'pages,
                Event::Started { forked_from: Some(from), .. } => {
                    (id, at) = (from.session, from.version);
                    break;
                }
                Event::Returned { .. }
                | Event::Declined { .. }
                | Event::Started { .. }
                | Event::LoopApproved { .. }
                | Event::LoopDeclined { .. }
                | Event::Imported { .. } => {}
            }
        }
    }
    found.truncate(count);
    Ok(found)
}
