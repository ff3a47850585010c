//! A log as one readable JSON document, to be kept or taken elsewhere. Its chain is the plain one, which everybody
//! can check: another store has another key. A log that is broken here is not exported.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::backend::Backend;
use crate::chain::{Chain, Hash, Root};
use crate::error::Error;
use crate::indent::indented;
use crate::limits::PAGE_MAX;
use crate::model::{Definition, Event, EventPage, Head, Meta, Order, Status, Version};
use crate::verify::Flaw;

/// The format that is written. Format 1 had fewer kinds of events and is still read.
pub const EXPORT_FORMAT: u32 = 2;
pub(crate) const OLDEST_EXPORT_FORMAT: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExportedLog {
    pub format: u32,
    pub session: ExportedSession,
    pub head: ExportedHead,
    pub definition: Definition,
    pub events: Vec<ExportedEvent>,
    /// The plain chain's end: a hash over the head and the last event's hash, in hexadecimal.
    pub seal: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExportedSession {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub owner: String,
    pub workflow: String,
    pub goal: String,
    pub created: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExportedHead {
    pub version: Version,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub revision: u64,
    pub touched: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExportedEvent {
    pub version: Version,
    pub time: u64,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// In hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The event itself, not a string that holds it.
    pub body: Box<RawValue>,
    /// In hexadecimal.
    pub hash: String,
}

impl ExportedLog {
    /// The document, for people and for [`crate::Store::import`].
    pub fn to_text(&self) -> Result<String, Error> {
        let unwritable = |error: serde_json::Error| Error::Damaged(error.to_string());
        let text = match indented(&serde_json::to_string(self).map_err(unwritable)?) {
            Some(text) => text,
            // An event that came with white space keeps it: its hash was made with it.
            None => serde_json::to_string_pretty(self).map_err(unwritable)?,
        };
        Ok(text + "\n")
    }
}

/// From verbs that each see a state of their own: what is at or before a version never changes.
pub(crate) fn export(backend: &dyn Backend, session: &str) -> Result<ExportedLog, Error> {
    let meta = backend.meta(session)?.ok_or(Error::NotFound)?;
    let mut flaws = backend.verify(session)?.flaws;
    // A cache does not travel.
    flaws.retain(|flaw| !matches!(flaw, Flaw::Snapshot(_)));
    if !flaws.is_empty() {
        return Err(Error::Broken(flaws));
    }
    let text = backend.definition(&meta.definition)?.unwrap_or_default();
    let definition = Definition { hash: meta.definition.clone(), text };
    let plain = Chain::plain();
    let mut last = root(&plain, &exported_session(&meta), &definition);
    let mut events = Vec::new();
    let mut from = 1;
    while from <= meta.version {
        let (order, limit) = (Order::OldestFirst, PAGE_MAX);
        let page = EventPage { from, order, limit, omit_bodies_of: None };
        let mut page = backend.events(session, page)?;
        page.retain(|event| event.version <= meta.version);
        // Somebody has pruned it meanwhile.
        from = page.last().ok_or(Error::NotFound)?.version + 1;
        for event in page {
            last = link(&plain, &last, session, &event);
            events.push(exported_event(event, &last)?);
        }
    }
    let seal = plain.seal(&last, session, meta.version, &meta.head, meta.touched);
    Ok(ExportedLog {
        format: EXPORT_FORMAT,
        session: exported_session(&meta),
        head: exported_head(&meta),
        definition,
        events,
        seal: hex(&seal),
    })
}

pub(crate) fn root(chain: &Chain, session: &ExportedSession, definition: &Definition) -> Hash {
    chain.root(&Root {
        id: &session.id,
        key: session.key.as_deref(),
        owner: &session.owner,
        workflow: &session.workflow,
        goal: &session.goal,
        definition_hash: &definition.hash,
        definition_text: definition.text.as_bytes(),
        created: session.created,
    })
}

pub(crate) fn link(chain: &Chain, previous: &Hash, session: &str, event: &Event) -> Hash {
    chain.link(previous, &event.link(session))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn exported_session(meta: &Meta) -> ExportedSession {
    ExportedSession {
        id: meta.id.clone(),
        key: meta.key.clone(),
        owner: meta.owner.clone(),
        workflow: meta.workflow.clone(),
        goal: meta.goal.clone(),
        created: meta.created,
    }
}

fn exported_head(meta: &Meta) -> ExportedHead {
    let Head { status, step, revision } = meta.head.clone();
    ExportedHead { version: meta.version, status, step, revision, touched: meta.touched }
}

fn exported_event(event: Event, hash: &Hash) -> Result<ExportedEvent, Error> {
    // It was checked when it came in.
    let body = RawValue::from_string(event.body)
        .map_err(|error| Error::Damaged(format!("event {}: {error}", event.version)))?;
    Ok(ExportedEvent {
        version: event.version,
        time: event.time,
        kind: event.kind,
        revision: event.revision,
        digest: event.digest.map(|digest| hex(&digest)),
        body,
        hash: hex(hash),
    })
}
