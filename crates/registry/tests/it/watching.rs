//! A registry that follows its files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use registry::place::FILE_NAME;
use registry::{Places, Registry, State, Watched};

struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn file(&self, kind: &str) -> PathBuf {
        let folder = self.root.path().join(kind);
        fs::create_dir_all(&folder).unwrap();
        folder.join(FILE_NAME)
    }

    fn write(&self, text: &str) {
        fs::write(self.file("project"), text).unwrap();
    }

    /// As editors and our own commands do it.
    fn replace(&self, text: &str) {
        let draft = self.root.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.file("project")).unwrap();
    }

    fn places(&self) -> Places {
        Places {
            project: Some(self.root.path().join("project")),
            user: Some(self.root.path().join("user")),
            variables: crate::variables(),
            trust: crate::trusting(),
            ..Places::default()
        }
    }

    /// Looks whenever it is asked.
    fn watched(&self) -> Watched {
        Watched::looking_every(self.places(), Duration::ZERO)
    }
}

fn servers(servers: &[(&str, &str)]) -> String {
    let servers = servers
        .iter()
        .map(|(id, command)| format!(r#"{{"id": "{id}", "mcp": {{"command": "{command}"}}}}"#));
    format!(r#"{{"servers": [{}]}}"#, servers.collect::<Vec<_>>().join(", "))
}

fn ids(registry: &Registry) -> Vec<&str> {
    registry.entries.iter().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn an_edit_counts_and_what_did_not_change_is_shared() {
    let folder = Folder::new();
    folder.write(&servers(&[("a", "x"), ("b", "x"), ("c", "x")]));
    let watched = folder.watched();
    let first = watched.current();
    assert_eq!((ids(&first), first.generation), (vec!["a", "b", "c"], 0));
    assert!(Arc::ptr_eq(&first, &watched.current()), "nothing has changed");

    folder.replace(&servers(&[("a", "x"), ("b", "y"), ("d", "x")]));
    let second = watched.current();
    assert_eq!((ids(&second), second.generation), (vec!["a", "b", "d"], 1));
    assert_eq!(second.changed_since(&first), ["b", "d", "c"]);
    assert!(Arc::ptr_eq(first.get("a").unwrap(), second.get("a").unwrap()));
    assert!(!Arc::ptr_eq(first.get("b").unwrap(), second.get("b").unwrap()));
    assert!(second.get("c").is_none());
    assert!(second.changed_since(&second).is_empty());
}

#[test]
fn edits_of_the_same_length_in_the_same_moment_are_seen() {
    let folder = Folder::new();
    folder.write(&servers(&[("a", "x")]));
    let watched = folder.watched();
    for id in ["b", "c", "d", "e"] {
        folder.write(&servers(&[(id, "x")]));
        assert_eq!(ids(&watched.current()), [id]);
    }
}

#[test]
fn a_broken_edit_keeps_what_was_good() {
    let folder = Folder::new();
    folder.write(&servers(&[("a", "x")]));
    let watched = folder.watched();
    let good = watched.current();
    for broken in ["", "{\"servers\": [", "{}", "{\"servers\": 1}", "\u{0}"] {
        folder.write(broken);
        let current = watched.current();
        assert_eq!(ids(&current), ["a"], "{broken:?}");
        assert_eq!(current.files[0].state, State::Kept);
        assert!(current.findings.iter().any(|finding| finding.is_error()), "{broken:?}");
        assert!(current.changed_since(&good).is_empty());
    }
    folder.write(&servers(&[("b", "x")]));
    let mended = watched.current();
    assert_eq!((ids(&mended), mended.files[0].state), (vec!["b"], State::Read));
    assert!(mended.findings.is_empty());
}

#[test]
fn a_broken_entry_does_not_keep_the_others_from_changing() {
    let folder = Folder::new();
    folder.write(&servers(&[("a", "x"), ("b", "x")]));
    let watched = folder.watched();
    folder.write(r#"[{"id": "a", "mcp": {"command": "y"}}, {"id": "b", "mcp": {"comand": "x"}}]"#);
    let current = watched.current();
    assert_eq!(ids(&current), ["a"]);
    assert_eq!(current.files[0].state, State::Read);
}

#[test]
fn files_come_and_go() {
    let folder = Folder::new();
    let watched = folder.watched();
    assert!(watched.current().is_empty());
    fs::write(folder.file("user"), servers(&[("a", "user"), ("b", "user")])).unwrap();
    assert_eq!(ids(&watched.current()), ["a", "b"]);
    folder.write(&servers(&[("a", "project")]));
    let both = watched.current();
    assert_eq!(ids(&both), ["a", "b"]);
    assert_eq!(both.shadows[0].id, "a");
    fs::remove_file(folder.file("project")).unwrap();
    let left = watched.current();
    assert_eq!(left.changed_since(&both), ["a"]);
    fs::remove_file(folder.file("user")).unwrap();
    assert!(watched.current().is_empty());
}

#[test]
fn former_secrets_stay_hidden() {
    let with = |token: &str| {
        format!(r#"[{{"id": "a", "mcp": {{"command": "x", "env": {{"TOKEN": "{token}"}}}}}}]"#)
    };
    let folder = Folder::new();
    folder.write(&with("first-secret"));
    let watched = folder.watched();
    folder.write(&with("second-secret"));
    let masks = Arc::clone(watched.current().masks());
    assert_eq!(masks.hide("first-secret, second-secret"), "***, ***");
}

#[test]
fn between_two_looks_nothing_is_read() {
    let folder = Folder::new();
    folder.write(&servers(&[("a", "x")]));
    let watched = Watched::looking_every(folder.places(), Duration::from_secs(3600));
    folder.write(&servers(&[("b", "x")]));
    assert_eq!(ids(&watched.current()), ["a"]);
    watched.look();
    assert_eq!(ids(&watched.current()), ["b"]);
}

#[test]
fn many_may_ask_while_it_changes() {
    let folder = Folder::new();
    folder.replace(&servers(&[("a", "x"), ("b", "x")]));
    let watched = folder.watched();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut generation = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let current = watched.current();
                    assert_eq!(current.entries.len(), 2, "half of an edit was seen");
                    assert!(current.generation >= generation);
                    generation = current.generation;
                }
            });
        }
        for round in 0..200 {
            folder.replace(&servers(&[("a", &round.to_string()), ("b", "x")]));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    watched.look();
    let last = format!("{:?}", watched.current().get("a").unwrap().connect);
    assert!(last.contains("\"199\""), "{last}");
}
