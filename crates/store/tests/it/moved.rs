//! Files that are removed, replaced or linked while a store has them open: nothing is acknowledged from then on, and
//! nothing is told of what they held.

use std::fs;
use std::path::{Path, PathBuf};

use store::{Error, Store};

use crate::{append, assert_sound, open, session};

struct OpenedFile {
    folder: tempfile::TempDir,
    store: Store,
}

impl OpenedFile {
    /// A store with one session, in use by readers and the writer.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Letters that a URI would take for something else.
        fs::create_dir(folder.path().join("50%3f #ü?")).unwrap();
        let store = open(&folder.path().join("50%3f #ü?/sessions.db"));
        store.create_now(session("a")).unwrap();
        store.load("a").unwrap();
        Self { folder, store }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.path().join(format!("50%3f #ü?/sessions.db{suffix}"))
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(self.path(suffix)).unwrap();
        }
    }

    #[track_caller]
    fn assert_refused(&self, what: &str) {
        let is_moved = |result: Result<(), Error>| match result {
            Err(Error::Moved(why)) => assert!(why.contains(what), "{why}"),
            other => panic!("{other:?}"),
        };
        for _ in 0..5 {
            is_moved(self.store.append_now(append("a", 1)).map(|_| ()));
        }
        is_moved(self.store.create_now(session("b")).map(|_| ()));
        let (sender, answers) = std::sync::mpsc::channel();
        self.store.append(append("a", 1), Box::new(move |result| sender.send(result).unwrap()));
        is_moved(answers.recv().unwrap().map(|_| ()));
        is_moved(self.store.meta("a").map(|_| ()));
        is_moved(self.store.load("a").map(|_| ()));
        is_moved(self.store.share("a", "bob", true));
        is_moved(self.store.prune(9_999, 10).map(|_| ()));
    }
}

#[test]
fn writes_to_removed_files_are_not_acknowledged() {
    let opened = OpenedFile::new();
    opened.remove();
    opened.assert_refused("was removed");
    assert!(!opened.path("").exists(), "no empty store takes its place");
}

#[test]
fn writes_to_replaced_file_are_not_acknowledged() {
    let opened = OpenedFile::new();
    let other = opened.folder.path().join("other.db");
    drop(open(&other));
    fs::rename(&other, opened.path("")).unwrap();
    opened.assert_refused("was replaced");
}

#[test]
fn store_made_anew_by_other_process_is_not_taken_for_the_old_one() {
    let opened = OpenedFile::new();
    opened.remove();
    let other = open(&opened.path(""));
    other.create_now(session("a")).unwrap();
    opened.assert_refused("was replaced");
    assert_eq!(other.append_now(append("a", 1)), Ok(2));
}

#[test]
fn writes_to_removed_log_are_not_acknowledged() {
    for suffix in ["-wal", "-shm"] {
        let opened = OpenedFile::new();
        fs::remove_file(opened.path(suffix)).unwrap();
        opened.assert_refused(&format!("sessions.db{suffix}` was removed"));
    }
}

#[test]
fn file_with_second_name_is_not_written() {
    let opened = OpenedFile::new();
    let second = opened.folder.path().join("second.db");
    fs::hard_link(opened.path(""), &second).unwrap();
    opened.assert_refused("has 2 names");
    fs::remove_file(second).unwrap();
    assert_eq!(opened.store.append_now(append("a", 1)), Ok(2));
}

/// SQLite keeps the log beside the file that the link leads to.
#[cfg(unix)]
#[test]
fn store_behind_symbolic_link_is_written_until_it_leads_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let [real, link, other] =
        ["real/sessions.db", "link.db", "other.db"].map(|name| folder.path().join(name));
    open(&real).create_now(session("a")).unwrap();
    std::os::unix::fs::symlink("real/sessions.db", &link).unwrap();
    let store = open(&link);
    assert_eq!(store.append_now(append("a", 1)), Ok(2));
    assert_sound(&store, "a");
    assert!(!folder.path().join("link.db-reserve").exists(), "the room is needed beside the file");
    drop(open(&other));
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let opened = OpenedFile { folder, store };
    opened.assert_refused("was replaced");
}

/// As `cp` does it: neither the inode nor the log tells.
#[test]
fn writes_to_overwritten_file_are_not_acknowledged() {
    let opened = OpenedFile::new();
    let carry_over = || {
        let other = rusqlite::Connection::open(opened.path("")).unwrap();
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        other.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(carry_over(), 0);
    let older = fs::read(opened.path("")).unwrap();
    for expected in 1..4 {
        assert_eq!(opened.store.append_now(append("a", expected)), Ok(expected + 1));
        assert_eq!(carry_over(), 0);
    }
    assert_eq!(opened.store.append_now(append("a", 4)), Ok(5), "others may carry the log over");
    fs::write(opened.path(""), older).unwrap();
    for _ in 0..3 {
        let result = opened.store.append_now(append("a", 5));
        let is_refused = matches!(&result, Err(Error::Moved(why)) if why.contains("overwritten"));
        assert!(is_refused, "{result:?}");
    }
}

#[test]
fn store_goes_on_when_its_files_are_put_back() {
    let opened = OpenedFile::new();
    let away = |path: &Path| path.with_extension("away");
    fs::rename(opened.path(""), away(&opened.path(""))).unwrap();
    opened.assert_refused("was removed");
    fs::rename(away(&opened.path("")), opened.path("")).unwrap();
    assert_eq!(opened.store.append_now(append("a", 1)), Ok(2));
    assert_sound(&opened.store, "a");
    assert_eq!(open(&opened.path("")).meta("a").unwrap().unwrap().version, 2);
}
