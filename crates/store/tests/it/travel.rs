//! Exported logs: readable, checked on the way in, and readable for ever.

use serde_json::{Value, json};
use store::limits::EVENTS_MAX;
use store::{
    Append, Created, Error, ExportedLog, Filter, Flaw, Key, Meta, NewEvent, NewSession, Status,
    Store,
};
use tempfile::TempDir;

use crate::{adoption, append, assert_sound, complete, event, fill, open, session};

/// Logs that were exported by released formats. They must always be taken.
const OLD: &[&str] = &[include_str!("../logs/1.json")];

fn store(key: Option<Key>) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("sessions.db"), key).unwrap();
    (folder, store)
}

fn sample() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    store.create_now(NewSession { key: Some("k".to_owned()), ..session("a") }).unwrap();
    fill(&store, "a", 3);
    let marked = NewEvent {
        digest: Some([0xab; 32]),
        search: Some("needle".to_owned()),
        ..event(r#"{"number":1.5,"text":"ü \" \\ { ,"}"#)
    };
    let last = Append { event: marked, head: complete(3), ..append("a", 3) };
    store.append_now(Append { snapshot: Some("state".to_owned()), ..last }).unwrap();
    (folder, store)
}

#[test]
fn a_log_travels() {
    let (_here, from) = sample();
    let text = serde_json::to_string_pretty(&from.export("a").unwrap()).unwrap();
    let log: ExportedLog = serde_json::from_str(&text).unwrap();
    for key in [None, Some(Key::new([8; 32]))] {
        let (_there, to) = store(key);
        let search =
            |event: &store::Event| event.body.contains("text").then(|| "needle".to_owned());
        to.import(&log, &adoption(), &search).unwrap();
        assert_sound(&to, "a");
        let (before, after) = (from.load("a").unwrap().unwrap(), to.load("a").unwrap().unwrap());
        let (key, owner) = (None, "bea".to_owned());
        let (touched, version) = (adoption().time, before.meta.version + 1);
        let is_imported = true;
        let adopted = Meta { key, owner, touched, version, is_imported, ..before.meta };
        assert_eq!(adopted, after.meta);
        assert_eq!(to.list(&Filter { limit: 5, ..Filter::default() }).unwrap().sessions, [adopted]);
        let (mark, events) = after.events.split_last().unwrap();
        assert_eq!(from.events("a", 1, 100).unwrap(), events);
        assert_eq!((&*mark.kind, mark.time), ("imported", adoption().time));
        assert_eq!(after.snapshot, None);
        assert_eq!(to.definition("d1"), from.definition("d1"));
        assert_eq!(to.search("needle", Some("bea"), 5).unwrap().len(), 1);
        assert_eq!(to.search("cellar", None, 5).unwrap().len(), 1);
        assert_eq!(to.append_now(append("a", 5)), Ok(6));
        assert_eq!(to.import(&log, &adoption(), &|_| None), Err(Error::Exists));
        // Out again and in again, it keeps where it came from before.
        let (_elsewhere, third) = store(None);
        third.import(&to.export("a").unwrap(), &adoption(), &|_| None).unwrap();
        let kinds: Vec<_> = third.events("a", 5, 9).unwrap().into_iter().map(|e| e.kind).collect();
        assert_eq!(kinds, ["imported", "advanced", "imported"]);
    }
}

#[test]
fn a_key_does_not_travel() {
    let (_here, from) = sample();
    let log = from.export("a").unwrap();
    let (_there, to) = store(None);
    to.import(&log, &adoption(), &|_| None).unwrap();
    for owner in ["ann", "bea"] {
        let new = session(&format!("of-{owner}"));
        let started = NewSession { key: Some("k".to_owned()), owner: owner.to_owned(), ..new };
        assert_eq!(to.create_now(started), Ok(Created::New));
    }
}

#[test]
fn formatting_the_document_does_no_harm() {
    let (_here, from) = sample();
    let value = serde_json::to_value(from.export("a").unwrap()).unwrap();
    let formatted = serde_json::to_string_pretty(&value).unwrap();
    assert!(formatted.contains("\"n\": 2"));
    let log: ExportedLog = serde_json::from_str(&formatted).unwrap();
    let (_there, to) = store(None);
    to.import(&log, &adoption(), &|_| None).unwrap();
    assert_eq!(to.events("a", 1, 4), from.events("a", 1, 4));
}

#[test]
fn the_text_of_a_log_is_readable_and_taken() {
    let (_here, from) = sample();
    let spaced = Append { event: event("{ \"n\":\n4 }"), ..append("a", 4) };
    for is_spaced in [false, true] {
        if is_spaced {
            from.append_now(spaced.clone()).unwrap();
        }
        let text = from.export("a").unwrap().to_text().unwrap();
        assert_eq!(text.contains("\"number\": 1.5,\n"), !is_spaced);
        let log: ExportedLog = serde_json::from_str(&text).unwrap();
        let (_there, to) = store(None);
        to.import(&log, &adoption(), &|_| None).unwrap();
        let events = from.events("a", 1, 100).unwrap();
        assert_eq!(to.events("a", 1, events.len()), Ok(events));
    }
}

#[test]
fn a_changed_document_is_refused() {
    let (_here, from) = sample();
    let sound = serde_json::to_value(from.export("a").unwrap()).unwrap();
    let broken = |flaw: Flaw| Error::Broken(vec![flaw]);
    let cases: &[(&str, Value, Error)] = &[
        ("/events/1/body/n", json!(2), broken(Flaw::Event(2))),
        ("/events/1/time", json!(2), broken(Flaw::Event(2))),
        ("/events/3/digest", json!("00"), broken(Flaw::Event(4))),
        ("/events/3/digest", json!("+1".repeat(32)), broken(Flaw::Event(4))),
        ("/events/2/version", json!(9), broken(Flaw::Event(3))),
        ("/session/goal", json!("x"), broken(Flaw::Event(1))),
        ("/definition/text", json!("x"), broken(Flaw::Event(1))),
        ("/head/status", json!("running"), broken(Flaw::Head(4))),
        ("/head/version", json!(3), broken(Flaw::Head(3))),
        ("/events", json!([]), broken(Flaw::Head(4))),
        ("/format", json!(3), Error::Format { found: 3, known: 2 }),
        ("/format", json!(0), Error::Format { found: 0, known: 2 }),
    ];
    for (place, value, wanted) in cases {
        let mut document = sound.clone();
        *document.pointer_mut(place).unwrap() = value.clone();
        let log: ExportedLog = serde_json::from_str(&document.to_string()).unwrap();
        let (_there, to) = store(None);
        assert_eq!(to.import(&log, &adoption(), &|_| None).as_ref(), Err(wanted), "{place}");
        assert_eq!(to.meta("a"), Ok(None));
    }
    let mut log = from.export("a").unwrap();
    log.events = vec![log.events[0].clone(); EVENTS_MAX as usize + 1];
    assert_eq!(from.import(&log, &adoption(), &|_| None), Err(Error::TooMany { max: EVENTS_MAX }));
}

#[test]
fn old_logs_are_taken() {
    for text in OLD {
        let log: ExportedLog = serde_json::from_str(text).unwrap();
        let (_there, to) = store(Some(Key::new([8; 32])));
        to.import(&log, &adoption(), &|_| None).unwrap();
        let id = &log.session.id;
        assert_sound(&to, id);
        assert_eq!(to.meta(id).unwrap().unwrap().head.status, Status::Complete);
        // And every event is as it was then.
        let events = json!(
            to.events(id, 1, log.events.len())
                .unwrap()
                .iter()
                .map(|event| &event.body)
                .collect::<Vec<_>>()
        );
        let then = json!(log.events.iter().map(|event| event.body.get()).collect::<Vec<_>>());
        assert_eq!(events, then);
    }
}
