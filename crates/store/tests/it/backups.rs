//! Copies of a store that others write to meanwhile.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use store::{Append, Error, Key, Store};

use crate::{KEY, append, assert_sound, fill, open, session};

#[test]
fn backup_is_consistent_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    for id in ["a", "b"] {
        store.create_now(session(id)).unwrap();
        fill(&store, id, 40);
    }
    let is_over = AtomicBool::new(false);
    let copies: Vec<_> = (0..3).map(|number| folder.path().join(format!("{number}.db"))).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = open(&path);
            for expected in 40.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                for id in ["a", "b"] {
                    let snapshot = Some("state".to_owned());
                    other.append_now(Append { snapshot, ..append(id, expected) }).unwrap();
                }
            }
        });
        for copy in &copies {
            let backup = store.backup(copy).unwrap().unwrap();
            assert_eq!((backup.sessions, backup.flaws.as_slice()), (2, &[] as &[String]));
            assert!(backup.events >= 80, "{}", backup.events);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for copy in &copies {
        let restored = open(copy);
        let versions = ["a", "b"].map(|id| restored.meta(id).unwrap().unwrap().version);
        // The other writes to one after the other.
        assert!(versions[0] == versions[1] || versions[0] == versions[1] + 1, "{versions:?}");
        for (id, version) in ["a", "b"].into_iter().zip(versions) {
            assert_sound(&restored, id);
            assert_eq!(restored.append_now(append(id, version)), Ok(version + 1));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let drafts: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".tmp")).collect();
    assert_eq!(drafts, [""; 0], "no draft is left");
}

#[test]
fn backup_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    store.create_now(session("a")).unwrap();
    let taken = folder.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    assert!(matches!(store.backup(&taken), Err(Error::Invalid { .. })));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let nowhere = folder.path().join("nowhere/copy.db");
    assert!(matches!(store.backup(&nowhere), Err(Error::Unavailable(_))));
}

#[test]
fn backup_of_changed_store_names_its_flaws() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 3);
    let forged = "UPDATE events SET body = '{}' WHERE version = 2";
    Connection::open(&path).unwrap().execute_batch(forged).unwrap();
    let copy = folder.path().join("copy.db");
    let backup = store.backup(&copy).unwrap().unwrap();
    assert_eq!(backup.flaws, ["session `a`: event 2 was changed"]);
    assert!(Store::open(&copy, Some(Key::new(KEY))).is_ok());
}
