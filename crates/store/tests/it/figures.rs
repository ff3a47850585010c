//! What a store says about how it fares.

use std::sync::mpsc::channel;

use store::Error;

use crate::{append, open, session};

#[test]
fn what_is_done_is_counted_by_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    let (sender, done) = channel();
    store.create_now(session("a")).unwrap();
    let created = sender.clone();
    store.create(session("b"), Box::new(move |result| created.send(result.is_ok()).unwrap()));
    assert!(done.recv().unwrap());
    store.append_now(append("a", 1)).unwrap();
    store.append(append("b", 1), Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    assert!(done.recv().unwrap());
    assert!(matches!(store.append_now(append("a", 1)), Err(Error::Conflict { .. })));
    store.end_handshake([1; 16], 2_000, 1_000).unwrap();

    let before = store.figures();
    assert_eq!((before.create.count(), before.append.count(), before.other.count()), (2, 3, 1));
    assert_eq!(before.conflicts, 1);
    assert!(!before.append.sum.is_zero(), "a disk takes its time");
    store.meta("a").unwrap();
    store.load("a").unwrap();
    let after = store.clone().figures();
    assert_eq!(after.read.count() - before.read.count(), 2, "clones count together");
    assert_eq!(after.append, before.append);
}
