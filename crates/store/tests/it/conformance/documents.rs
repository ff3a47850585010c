//! What processes share besides sessions, and how many of those there are.

use store::limits::DOCUMENT_BYTES_MAX;
use store::{Append, Counts, Document, Error, Head, Status, Store, Usage};

use crate::{append, complete, running, session};

pub(crate) fn a_document_is_replaced_by_who_knows_it(store: Store) {
    let document = |version, text: &str| Document { version, text: text.to_owned() };
    assert_eq!(store.document("a"), Ok(None));
    assert_eq!(store.replace_document("a", document(1, "one")), Ok(false));
    assert_eq!(store.replace_document("a", document(0, "one")), Ok(true));
    assert_eq!(store.replace_document("a", document(0, "other")), Ok(false));
    assert_eq!(store.document("a"), Ok(Some(document(1, "one"))));
    assert_eq!(store.replace_document("a", document(1, "two")), Ok(true));
    assert_eq!(store.replace_document("a", document(1, "other")), Ok(false));
    assert_eq!(store.document("a"), Ok(Some(document(2, "two"))));
    assert_eq!(store.document("b"), Ok(None));
    let large = store.replace_document("b", document(0, &"x".repeat(DOCUMENT_BYTES_MAX + 1)));
    assert!(matches!(large, Err(Error::TooLarge { .. })));
}

pub(crate) fn sessions_are_counted(store: Store) {
    assert_eq!(store.counts(), Ok(Counts::default()));
    for id in ["a", "b", "c", "d"] {
        store.create_now(session(id)).unwrap();
    }
    store.append_now(Append { head: complete(1), ..append("a", 1) }).unwrap();
    let waiting = Head { status: Status::Waiting, ..running(1) };
    store.append_now(Append { head: waiting, ..append("b", 1) }).unwrap();
    assert_eq!(store.counts(), Ok(Counts { running: 2, waiting: 1, complete: 1 }));
    let usage = store.usage("ann").unwrap();
    assert_eq!(usage.open_sessions, 3);
    let logs = ["a", "b", "c", "d"].map(|id| store.load(id).unwrap().unwrap());
    let bytes: u64 =
        logs.iter().flat_map(|log| &log.events).map(|event| event.body.len() as u64).sum();
    assert_eq!(usage.stored_bytes, bytes);
    assert_eq!(store.usage("bob"), Ok(Usage::default()));
}
