//! Exported logs: readable, checked on the way in, and readable for ever.

use serde_json::{Value, json};
use store::limits::EVENTS_MAX;
use store::{Append, Error, ExportedLog, Flaw, Key, NewEvent, NewSession, Status, Store};
use tempfile::TempDir;

use crate::{append, assert_sound, complete, event, fill, open, session};

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
        to.import(&log, &|event| event.body.contains("text").then(|| "needle".to_owned())).unwrap();
        assert_sound(&to, "a");
        let (before, after) = (from.load("a").unwrap().unwrap(), to.load("a").unwrap().unwrap());
        assert_eq!(before.meta, after.meta);
        assert_eq!(from.events("a", 1, 100).unwrap(), after.events);
        assert_eq!(after.snapshot, None);
        assert_eq!(to.definition("d1"), from.definition("d1"));
        assert_eq!(to.search("needle", Some("ann"), 5).unwrap().len(), 1);
        assert_eq!(to.search("cellar", None, 5).unwrap().len(), 1);
        assert_eq!(to.append_now(append("a", 4)), Ok(5));
        assert_eq!(to.import(&log, &|_| None), Err(Error::Exists));
        // Out again, it is the same.
        let (_elsewhere, third) = store(None);
        third.import(&log, &|_| None).unwrap();
        assert_eq!(serde_json::to_string_pretty(&third.export("a").unwrap()).unwrap(), text);
    }
}

#[test]
fn a_key_that_is_taken_is_not_taken_over() {
    let (_here, from) = sample();
    let log = from.export("a").unwrap();
    let (_there, to) = store(None);
    to.create_now(NewSession { key: Some("k".to_owned()), ..session("b") }).unwrap();
    assert_eq!(to.import(&log, &|_| None), Err(Error::Exists));
    assert_eq!(to.meta("a"), Ok(None));
}

#[test]
fn formatting_the_document_does_no_harm() {
    let (_here, from) = sample();
    let value = serde_json::to_value(from.export("a").unwrap()).unwrap();
    let formatted = serde_json::to_string_pretty(&value).unwrap();
    assert!(formatted.contains("\"n\": 2"));
    let log: ExportedLog = serde_json::from_str(&formatted).unwrap();
    let (_there, to) = store(None);
    to.import(&log, &|_| None).unwrap();
    assert_eq!(to.events("a", 1, 100), from.events("a", 1, 100));
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
        to.import(&log, &|_| None).unwrap();
        assert_eq!(to.events("a", 1, 100), from.events("a", 1, 100));
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
        ("/format", json!(2), Error::Format { found: 2, known: 1 }),
    ];
    for (place, value, wanted) in cases {
        let mut document = sound.clone();
        *document.pointer_mut(place).unwrap() = value.clone();
        let log: ExportedLog = serde_json::from_str(&document.to_string()).unwrap();
        let (_there, to) = store(None);
        assert_eq!(to.import(&log, &|_| None).as_ref(), Err(wanted), "{place}");
        assert_eq!(to.meta("a"), Ok(None));
    }
    let mut log = from.export("a").unwrap();
    log.events = vec![log.events[0].clone(); EVENTS_MAX as usize + 1];
    assert_eq!(from.import(&log, &|_| None), Err(Error::TooMany { max: EVENTS_MAX }));
}

#[test]
fn old_logs_are_taken() {
    for text in OLD {
        let log: ExportedLog = serde_json::from_str(text).unwrap();
        let (_there, to) = store(Some(Key::new([8; 32])));
        to.import(&log, &|_| None).unwrap();
        let id = &log.session.id;
        assert_sound(&to, id);
        assert_eq!(to.meta(id).unwrap().unwrap().head.status, Status::Complete);
        // And the hashes are computed as they were then.
        let again = serde_json::to_value(to.export(id).unwrap()).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(text).unwrap());
    }
}
