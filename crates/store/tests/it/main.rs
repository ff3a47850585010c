//! The store on real files, in threads and processes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a test may say what it left out")]

mod backups;
mod child;
mod conformance;
mod counting;
mod crash;
mod faults;
mod figures;
mod files;
mod forging;
mod histories;
mod moved;
mod postgres;
mod sessions;
mod sqlite;
mod tampering;
mod travel;

use std::path::Path;

use store::limits::PAGE_MAX;
use store::{
    Address, Adoption, Append, Definition, Event, Head, Key, NewEvent, NewSession, Status, Store,
    Version,
};

const KEY: [u8; 32] = [7; 32];

/// At a path, or at an address.
fn open(place: &Path) -> Store {
    let key = Some(Key::new(KEY));
    match place.to_str().filter(|place| place.starts_with("postgres:")) {
        Some(url) => Store::connect(&Address::parse(url).unwrap(), key, 8).unwrap(),
        None => Store::open(place, key).unwrap(),
    }
}

fn is_long() -> bool {
    std::env::var_os("WORKFLOWLOOKUP_LONG").is_some()
}

fn event(body: &str) -> NewEvent {
    NewEvent { kind: "advanced".to_owned(), body: body.to_owned(), ..NewEvent::default() }
}

fn running(revision: u64) -> Head {
    Head { status: Status::Running, step: Some("only".to_owned()), revision }
}

fn complete(revision: u64) -> Head {
    Head { status: Status::Complete, step: None, revision }
}

fn session(id: &str) -> NewSession {
    NewSession {
        id: id.to_owned(),
        key: None,
        owner: "ann".to_owned(),
        shared_with: Vec::new(),
        workflow: "tidy-up".to_owned(),
        goal: "tidy the cellar".to_owned(),
        definition: Definition { hash: "d1".to_owned(), text: "{\"id\":\"tidy-up\"}".to_owned() },
        event: NewEvent { kind: "started".to_owned(), ..event("{}") },
        head: running(0),
        time: 1_000,
    }
}

fn append(session: &str, expected: Version) -> Append {
    Append {
        session: session.to_owned(),
        expected,
        event: NewEvent { revision: Some(expected), ..event(&format!("{{\"n\":{expected}}}")) },
        head: running(expected),
        snapshot: None,
        is_reopened: false,
        time: 1_000 + expected,
    }
}

/// By which a log becomes Bea's.
fn adoption() -> Adoption {
    let event = NewEvent { kind: "imported".to_owned(), ..event("{}") };
    Adoption { owner: "bea".to_owned(), event, time: 9_000 }
}

/// Adds events until the session has this version.
fn fill(store: &Store, session: &str, version: Version) {
    for expected in store.meta(session).unwrap().unwrap().version..version {
        store.append_now(append(session, expected)).unwrap();
    }
}

/// All events of a session, page by page.
fn events(store: &Store, session: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let page = store.events(session, events.len() as u64 + 1, PAGE_MAX).unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

fn assert_sound(store: &Store, session: &str) {
    assert_eq!(store.verify(session).unwrap().flaws, [], "{session}");
}
