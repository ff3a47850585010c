//! Taking in an exported log. Its plain chain is checked and made anew with this store's key; an id that exists is
//! refused, and so is a log that was changed. That it was honest when it was exported, nobody can check.

use crate::chain::Chain;
use crate::error::Error;
use crate::export::{EXPORT_FORMAT, ExportedEvent, ExportedLog, hex, link, root};
use crate::limits::{self, EVENTS_MAX};
use crate::model::{Event, Head, NewEvent, NewSession, Version};
use crate::verify::Flaw;

/// A checked log on its way to the writer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) session: NewSession,
    /// From the first, each with its time.
    pub(crate) events: Vec<(u64, NewEvent)>,
    pub(crate) head: Head,
    pub(crate) touched: u64,
}

/// Checks a log. `search` says what an event is to be found by, since exported logs do not have it.
pub(crate) fn check(
    log: &ExportedLog,
    search: &dyn Fn(&Event) -> Option<String>,
) -> Result<Incoming, Error> {
    if log.format != EXPORT_FORMAT {
        return Err(Error::Format { found: log.format, known: EXPORT_FORMAT });
    }
    let count = log.events.len() as Version;
    if count > EVENTS_MAX {
        return Err(Error::TooMany { max: EVENTS_MAX });
    }
    let head =
        Head { status: log.head.status, step: log.head.step.clone(), revision: log.head.revision };
    let plain = Chain::plain();
    let mut flaws = Vec::new();
    let mut last = root(&plain, &log.session, &log.definition);
    let mut events = Vec::with_capacity(log.events.len());
    for (version, exported) in (1..).zip(&log.events) {
        let bodies = [exported.body.get().to_owned(), compact(exported.body.get())];
        // Somebody may have had the document formatted. Events are written without white space, so taking it
        // out gives the same bytes again.
        let found = bodies.into_iter().find_map(|body| {
            let event = event(exported, body)?;
            let hash = link(&plain, &last, &log.session.id, &event);
            (exported.version == version && hex(&hash) == exported.hash).then_some((event, hash))
        });
        let Some((event, hash)) = found else {
            // What follows hangs on this one: it cannot be told apart.
            flaws.push(Flaw::Event(version));
            break;
        };
        last = hash;
        limits::number("time", event.time)?;
        let new = NewEvent {
            search: search(&event),
            kind: event.kind,
            body: event.body,
            revision: event.revision,
            digest: event.digest,
        };
        limits::event(&new)?;
        events.push((event.time, new));
    }
    let seal = plain.seal(&last, &log.session.id, count, &head, log.head.touched);
    if flaws.is_empty() && (hex(&seal) != log.seal || log.head.version != count || count == 0) {
        flaws.push(Flaw::Head(log.head.version));
    }
    if !flaws.is_empty() {
        return Err(Error::Broken(flaws));
    }
    limits::number("time", log.head.touched)?;
    let session = NewSession {
        id: log.session.id.clone(),
        key: log.session.key.clone(),
        owner: log.session.owner.clone(),
        shared_with: Vec::new(),
        workflow: log.session.workflow.clone(),
        goal: log.session.goal.clone(),
        definition: log.definition.clone(),
        event: events[0].1.clone(),
        head: head.clone(),
        time: log.session.created,
    };
    limits::new_session(&session)?;
    Ok(Incoming { session, events, head, touched: log.head.touched })
}

fn event(exported: &ExportedEvent, body: String) -> Option<Event> {
    let digest = match &exported.digest {
        None => None,
        Some(text) => Some(digest(text)?),
    };
    Some(Event {
        version: exported.version,
        time: exported.time,
        kind: exported.kind.clone(),
        revision: exported.revision,
        digest,
        body,
    })
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let pairs = text.as_bytes().chunks(2);
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// JSON without the white space between its signs.
fn compact(json: &str) -> String {
    let mut in_string = false;
    let mut escaped = false;
    json.chars()
        .filter(|sign| {
            if in_string {
                in_string = escaped || *sign != '"';
                escaped = *sign == '\\' && !escaped;
                return true;
            }
            in_string = *sign == '"';
            !sign.is_ascii_whitespace()
        })
        .collect()
}
