//! Taking in an exported log. Its plain chain is checked and made anew with this store's key; an id that exists is
//! refused, and so is a log that was changed. That it was honest when it was exported, the chain cannot say: the log becomes
//! the importer's, without the key that it was started with, and an event at its end says where it came from.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::chain::Chain;
use crate::error::Error;
use crate::export::{
    EXPORT_FORMAT, ExportedEvent, ExportedLog, OLDEST_EXPORT_FORMAT, hex, link, root,
};
use crate::limits::{self, EVENTS_MAX, IMPORT_BYTES_MAX};
use crate::model::{Event, Head, NewEvent, NewSession, Version};
use crate::verify::Flaw;

/// A file with an exported log.
#[derive(Debug, Clone)]
pub struct ImportFile {
    pub log: ExportedLog,
    /// SHA-256 of the whole text, in hexadecimal.
    pub digest: String,
}

impl ImportFile {
    pub fn read(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        if text.len() > IMPORT_BYTES_MAX {
            return Err(Error::TooLarge { what: "exported session", max: IMPORT_BYTES_MAX });
        }
        let unreadable = |error: serde_json::Error| Error::NotExported(error.to_string());
        // First, since a newer format may look different.
        let Version { format } = serde_json::from_str(text).map_err(unreadable)?;
        check_format(format)?;
        let log = serde_json::from_str(text).map_err(unreadable)?;
        Ok(Self { log, digest: hex(&Sha256::digest(text.as_bytes())) })
    }
}

/// Whose an imported log becomes, and what is appended to it.
#[derive(Debug, Clone)]
pub struct Adoption {
    pub owner: String,
    /// Says where the log came from. It leaves the head as it is.
    pub event: NewEvent,
    pub time: u64,
}

fn check_format(found: u32) -> Result<(), Error> {
    match (OLDEST_EXPORT_FORMAT..=EXPORT_FORMAT).contains(&found) {
        true => Ok(()),
        false => Err(Error::Format { found, known: EXPORT_FORMAT }),
    }
}

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
    adoption: &Adoption,
    search: &dyn Fn(&Event) -> Option<String>,
) -> Result<Incoming, Error> {
    check_format(log.format)?;
    let count = log.events.len() as Version;
    // One more is appended.
    if count >= EVENTS_MAX {
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
    limits::event(&adoption.event)?;
    limits::number("time", adoption.time)?;
    events.push((adoption.time, adoption.event.clone()));
    let session = NewSession {
        id: log.session.id.clone(),
        key: None,
        owner: adoption.owner.clone(),
        shared_with: Vec::new(),
        workflow: log.session.workflow.clone(),
        goal: log.session.goal.clone(),
        definition: log.definition.clone(),
        event: events[0].1.clone(),
        head: head.clone(),
        time: log.session.created,
    };
    limits::new_session(&session)?;
    Ok(Incoming { session, events, head, touched: adoption.time })
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
