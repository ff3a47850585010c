//! The file itself: who may read it, which ones are refused, and several processes that make it at once.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::Connection;
use store::{Error, Key, Store};

use crate::child::Child;
use crate::{KEY, append, assert_sound, open, session};

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("state/workflowlookup");
    let store = open(&inside.join("sessions.db"));
    store.create_now(session("a")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inside), 0o700);
    for file in fs::read_dir(&inside).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn it_is_durable_by_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    drop(open(&path));
    let connection = Connection::open(&path).unwrap();
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    drop(open(&path));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Store::open(&path, Some(Key::new(KEY))).unwrap_err();
    assert_eq!(error, Error::Newer { found: 99, known: 4 });
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// As the first format was: without what came later.
#[test]
fn an_older_format_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    store.create_now(session("a")).unwrap();
    drop(store);
    let older = "DROP TABLE ended; DROP TABLE shares; DROP TABLE documents; DROP TABLE counter; DROP INDEX events_imported;
        PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(older).unwrap();
    let store = open(&path);
    assert_sound(&store, "a");
    assert_eq!(store.append_now(append("a", 1)), Ok(2));
    assert_eq!(store.has_ended(&[1; 16]), Ok(false));
    assert_eq!(store.end_handshake([1; 16], 20, 10), Ok(()));
    assert_eq!(open(&path).has_ended(&[1; 16]), Ok(true), "every store of the file knows");
    assert_eq!(store.share("a", "bob", true), Ok(()));
    assert_eq!(open(&path).is_shared("a", "bob"), Ok(true));
    assert_eq!(store.counter_flaws(), Ok(vec![]), "what was there already is counted");
    assert_eq!(store.counter().unwrap().unwrap().count, 3, "an append, a handshake and a share");
    let made = |name: &str| {
        let connection = Connection::open(folder.path().join(name)).unwrap();
        let sql =
            "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema ORDER BY name)";
        connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap()
    };
    drop(open(&folder.path().join("new.db")));
    assert_eq!(made("sessions.db"), made("new.db"), "as if it had been made today");
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(Store::open(&path, None).unwrap_err(), Error::NotOurs);
    assert_eq!(fs::read(&path).unwrap(), before);

    let path = folder.path().join("text.db");
    fs::write(&path, "not a database, but long enough to be looked at".repeat(100)).unwrap();
    assert_eq!(Store::open(&path, None).unwrap_err(), Error::NotOurs);
}

#[test]
fn another_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    drop(open(&path));
    for key in [None, Some(Key::new([8; 32]))] {
        assert_eq!(Store::open(&path, key).unwrap_err(), Error::WrongKey);
    }
    drop(open(&path));
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let result = Store::open(&file.join("sessions.db"), None);
    assert!(matches!(result, Err(Error::Unavailable(_))));
}

#[test]
fn processes_may_make_it_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let children: Vec<Child> =
            (0..6).map(|number| Child::start("open", &path, &[&format!("s{number}")])).collect();
        for child in children {
            assert_eq!(child.lines(), ["opened"]);
        }
        let store = open(&path);
        for number in 0..6 {
            assert_sound(&store, &format!("s{number}"));
        }
    }
}

#[test]
fn two_stores_of_one_process_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let stores = [open(&path), open(&path)];
    stores[0].create_now(session("a")).unwrap();
    for expected in 1..20 {
        assert_eq!(
            stores[expected as usize % 2].append_now(append("a", expected)),
            Ok(expected + 1)
        );
    }
    assert_sound(&stores[0], "a");
}

#[test]
fn another_process_that_writes_is_waited_for_and_does_not_stop_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    store.create_now(session("a")).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (sender, answers) = channel();
    store.append(append("a", 1), Box::new(move |result| sender.send(result).unwrap()));
    assert_eq!(store.load("a").unwrap().unwrap().meta.version, 1);
    assert_eq!(answers.recv_timeout(Duration::from_millis(100)), Err(RecvTimeoutError::Timeout));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(answers.recv().unwrap(), Ok(2));
}
