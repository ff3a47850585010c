//! The sealed counter of a file: what a chain of one session cannot show, it does.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use store::{Error, Store};

use crate::{append, assert_sound, fill, open, session};

const FORGED: &str = "the counter of the store was changed or removed";

/// A store with two sessions, changed by hand while it was closed.
fn changed(sql: &str) -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    for id in ["a", "b"] {
        store.create_now(session(id)).unwrap();
        fill(&store, id, 5);
    }
    assert_eq!(store.counter().unwrap().unwrap().count, 10);
    assert_eq!(store.counter_flaws(), Ok(vec![]));
    drop(store);
    change(&path, sql);
    (open(&path), folder)
}

fn change(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn removed_session_is_noticed() {
    let (store, _folder) = changed(
        "DELETE FROM words; DELETE FROM unindexed; DELETE FROM events WHERE session = 1;
        DELETE FROM sessions WHERE number = 1",
    );
    assert_sound(&store, "b");
    assert_eq!(
        store.counter_flaws(),
        Ok(vec!["sessions were removed or added: 1 found, 2 expected".to_owned()])
    );
    // It stays so whatever is written later.
    fill(&store, "b", 8);
    store.create_now(session("c")).unwrap();
    assert_eq!(store.counter_flaws().unwrap().len(), 1);
}

#[test]
fn session_put_back_as_it_was_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 3);
    let older = folder.path().join("older.db");
    store.backup(&older).unwrap();
    fill(&store, "a", 5);
    drop(store);
    let sql = format!(
        "ATTACH '{}' AS older;
        DELETE FROM events WHERE version > 3;
        UPDATE sessions SET (step, revision, touched, version, seal) =
            (SELECT step, revision, touched, version, seal FROM older.sessions)",
        older.display()
    );
    change(&path, &sql);
    let store = open(&path);
    assert_sound(&store, "a");
    let flaws = store.counter_flaws().unwrap();
    assert_eq!(flaws, ["a session was put back as it once was, or replaced by another one"]);
}

#[test]
fn forged_counter_is_noticed_and_not_sealed_again() {
    for sql in [
        "UPDATE counter SET writes = writes + 1",
        "UPDATE counter SET sessions = 3",
        "UPDATE counter SET store = randomblob(16)",
        "UPDATE counter SET sum = randomblob(32)",
        "DELETE FROM counter",
    ] {
        let (store, _folder) = changed(sql);
        assert_eq!(store.counter(), Err(Error::Damaged(FORGED.to_owned())), "{sql}");
        assert_eq!(store.append_now(append("a", 5)), Ok(6), "{sql}");
        assert_eq!(store.counter_flaws(), Ok(vec![FORGED.to_owned()]), "{sql}");
    }
}

#[test]
fn older_copy_has_a_smaller_count_and_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    store.create_now(session("a")).unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).unwrap();
    fill(&store, "a", 4);
    let (newer, older) = (store.counter(), open(&copy).counter());
    let (newer, older) = (newer.unwrap().unwrap(), older.unwrap().unwrap());
    assert_eq!((older.store, older.count, newer.count), (newer.store.clone(), 1, 4));
    let other = open(&folder.path().join("other.db"));
    assert_ne!(other.counter().unwrap().unwrap().store, newer.store);
}

/// The same file with an older content: neither its device nor its inode tells.
#[test]
fn older_content_in_the_open_file_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    store.create_now(session("a")).unwrap();
    let older = folder.path().join("older.db");
    store.backup(&older).unwrap();
    fill(&store, "a", 4);
    // Through SQLite, as its own tools restore a backup.
    let sql = format!(
        "ATTACH '{}' AS older; DELETE FROM events WHERE version > 1;
        UPDATE sessions SET (step, revision, touched, version, seal) =
            (SELECT step, revision, touched, version, seal FROM older.sessions);
        UPDATE counter SET (writes, sessions, sum, seal) =
            (SELECT writes, sessions, sum, seal FROM older.counter)",
        older.display()
    );
    change(&path, &sql);
    let result = store.append_now(append("a", 1));
    assert!(matches!(&result, Err(Error::Moved(why)) if why.contains("went back")), "{result:?}");
    assert!(fs::exists(&path).unwrap());
}
