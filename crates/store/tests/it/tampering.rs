//! Somebody changes the file by hand: `verify` finds it and says where, and an append does not seal it.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Append, Error, Flaw, NewEvent, Store};
use tempfile::TempDir;

use crate::{KEY, adoption, append, assert_sound, event, fill, open, session};

/// A store with one session of ten events, closed.
fn prepare() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    put_sample(&open(&path));
    (folder, path)
}

/// One session of ten events.
pub(crate) fn put_sample(store: &Store) {
    store.create_now(session("a")).unwrap();
    fill(store, "a", 6);
    let marked = NewEvent { digest: Some([1; 32]), ..event("{\"text\":\"the marked one\"}") };
    store.append_now(Append { event: marked, ..append("a", 6) }).unwrap();
    fill(store, "a", 8);
    store.append_now(Append { snapshot: Some("state".to_owned()), ..append("a", 8) }).unwrap();
    fill(store, "a", 10);
    assert_sound(store, "a");
}

fn flaws(path: &Path) -> Vec<Flaw> {
    open(path).verify("a").unwrap().flaws
}

#[test]
fn a_changed_byte_is_found_with_its_version() {
    for (from, to) in [(&b"the marked one"[..], &b"the marred one"[..]), (b"marked", b"mark\xffd")]
    {
        let (_folder, path) = prepare();
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        fs::write(&path, bytes).unwrap();
        assert_eq!(flaws(&path), [Flaw::Event(7)]);
        assert!(matches!(open(&path).export("a"), Err(Error::Broken(_))));
    }
}

#[test]
fn what_was_changed_is_not_gone_on_from() {
    for (sql, flaw) in [
        ("UPDATE events SET body = '{}' WHERE version = 10", Flaw::Event(10)),
        ("UPDATE sessions SET step = 'elsewhere'", Flaw::Head(10)),
        ("UPDATE sessions SET version = 9", Flaw::Head(9)),
    ] {
        let (_folder, path) = prepare();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        assert_eq!(open(&path).load("a"), Err(Error::Broken(vec![flaw])), "{sql}");
    }
}

#[test]
fn a_table_that_is_missing_is_damage() {
    let (_folder, path) = prepare();
    Connection::open(&path).unwrap().execute_batch("DROP TABLE snapshots").unwrap();
    assert!(matches!(open(&path).load("a"), Err(Error::Damaged(_))));
}

#[test]
fn sqlite_itself_is_asked_about_the_file() {
    let (_folder, path) = prepare();
    assert_eq!(open(&path).file_flaws(), Ok(vec![]));
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|window| window == b"aann").unwrap();
    bytes[at] = b'b';
    fs::write(&path, bytes).unwrap();
    let store = open(&path);
    assert_eq!(
        store.file_flaws().unwrap(),
        ["row 1 missing from index sqlite_autoindex_sessions_1"]
    );
    let ids = store.ids(None, 10).unwrap();
    let [(at, id)] = &ids[..] else { panic!("{ids:?}") };
    assert_eq!(id, b"b");
    assert_eq!(store.verify("b"), Err(Error::NotFound));
    assert_eq!(store.is_there(*at), Ok(true));
    assert_eq!(store.ids(Some(*at), 10), Ok(vec![]));
}

#[test]
fn every_column_counts() {
    let cases: &[(&str, &[Flaw])] = &[
        ("UPDATE events SET time = time + 1 WHERE version = 3", &[Flaw::Event(3)]),
        ("UPDATE events SET kind = 'approved' WHERE version = 3", &[Flaw::Event(3)]),
        ("UPDATE events SET revision = 99 WHERE version = 3", &[Flaw::Event(3)]),
        ("UPDATE events SET revision = NULL WHERE version = 3", &[Flaw::Event(3)]),
        ("UPDATE events SET digest = NULL WHERE version = 7", &[Flaw::Event(7)]),
        ("UPDATE events SET digest = zeroblob(32) WHERE version = 3", &[Flaw::Event(3)]),
        // The next one was made from the old hash.
        (
            "UPDATE events SET hash = zeroblob(32) WHERE version = 3",
            &[Flaw::Event(3), Flaw::Event(4)],
        ),
        ("UPDATE events SET hash = x'00' WHERE version = 10", &[Flaw::Event(10), Flaw::Head(10)]),
        (
            "UPDATE events SET body = '{}' WHERE version IN (2, 5)",
            &[Flaw::Event(2), Flaw::Event(5)],
        ),
        ("DELETE FROM events WHERE version = 4", &[Flaw::Missing(4), Flaw::Event(5)]),
        (
            "DELETE FROM events WHERE version > 8",
            &[Flaw::Missing(9), Flaw::Missing(10), Flaw::Snapshot(9)],
        ),
        // Cut off with the head put back: the seal does not know it.
        (
            "DELETE FROM events WHERE version = 10; UPDATE sessions SET version = 9",
            &[Flaw::Head(9)],
        ),
        ("UPDATE sessions SET version = 11", &[Flaw::Missing(11)]),
        (
            "INSERT INTO events (session, version, time, kind, hash, body)
            VALUES (1, 11, 1, 'x', zeroblob(32), '{}')",
            &[Flaw::Surplus(11)],
        ),
        ("UPDATE sessions SET status = 2", &[Flaw::Head(10)]),
        ("UPDATE sessions SET step = 'last'", &[Flaw::Head(10)]),
        ("UPDATE sessions SET revision = 77", &[Flaw::Head(10)]),
        ("UPDATE sessions SET touched = 77", &[Flaw::Head(10)]),
        ("UPDATE sessions SET goal = 'x'", &[Flaw::Start]),
        ("UPDATE sessions SET owner = 'bob'", &[Flaw::Start]),
        ("UPDATE sessions SET key = 'k'", &[Flaw::Start]),
        ("UPDATE sessions SET workflow = 'x'", &[Flaw::Start]),
        ("UPDATE sessions SET created = 1", &[Flaw::Start]),
        ("UPDATE sessions SET root = zeroblob(32)", &[Flaw::Start, Flaw::Event(1)]),
        ("UPDATE definitions SET text = '{}'", &[Flaw::Start]),
        ("UPDATE snapshots SET text = 'forged'", &[Flaw::Snapshot(9)]),
        ("UPDATE snapshots SET version = 8", &[Flaw::Snapshot(8)]),
    ];
    for (sql, wanted) in cases {
        let (_folder, path) = prepare();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        assert_eq!(flaws(&path), *wanted, "{sql}");
    }
}

#[test]
fn swapped_events_are_found() {
    let (_folder, path) = prepare();
    let sql = "UPDATE events SET version = 99 WHERE version = 3;
        UPDATE events SET version = 3 WHERE version = 4;
        UPDATE events SET version = 4 WHERE version = 99";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    assert_eq!(flaws(&path), [Flaw::Event(3), Flaw::Event(4), Flaw::Event(5)]);
}

#[test]
fn a_forged_head_is_not_appended_to() {
    let (_folder, path) = prepare();
    Connection::open(&path).unwrap().execute_batch("UPDATE sessions SET step = 'last'").unwrap();
    let store = open(&path);
    assert!(matches!(store.append_now(append("a", 10)), Err(Error::Damaged(_))));
    assert_eq!(store.verify("a").unwrap().flaws, [Flaw::Head(10)]);
    // The others in the same store go on.
    store.create_now(session("b")).unwrap();
}

#[test]
fn snapshots_are_only_a_cache() {
    for sql in ["DELETE FROM snapshots", "UPDATE snapshots SET text = 'forged'"] {
        let (_folder, path) = prepare();
        let before = open(&path).load("a").unwrap().unwrap();
        assert_eq!((before.events.len(), before.snapshot.unwrap().version), (1, 9));
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let store = open(&path);
        let after = store.load("a").unwrap().unwrap();
        assert_eq!((after.snapshot, after.events.len(), &after.meta), (None, 10, &before.meta));
        assert_eq!(after.events[9..], before.events);
        assert_eq!(store.append_now(append("a", 10)), Ok(11));
    }
}

/// Who has no key can only compute the plain hashes, and these do not fit.
#[test]
fn a_chain_made_without_the_key_is_found() {
    let (folder, path) = prepare();
    let log = open(&path).export("a").unwrap();
    let forged = folder.path().join("forged.db");
    let store = store::Store::open(&forged, None).unwrap();
    store.import(&log, &adoption(), &|_| None).unwrap();
    assert_sound(&store, "a");
    drop(store);
    let connection = Connection::open(&forged).unwrap();
    let mut key = [0; 32];
    let real = Connection::open(&path).unwrap();
    let sql = "SELECT value FROM settings WHERE name = 'key'";
    key.copy_from_slice(&real.query_row(sql, [], |row| row.get::<_, Vec<u8>>(0)).unwrap());
    assert_ne!(key, KEY);
    connection.execute("UPDATE settings SET value = ?1 WHERE name = 'key'", [key]).unwrap();
    drop((connection, real));
    let flaws = flaws(&forged);
    assert_eq!((flaws[0], flaws.len()), (Flaw::Start, 13));
}
