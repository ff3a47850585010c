//! Which source wins, and what can be seen of it.

use catalog::{Catalog, Source, SourceState};

use super::*;

#[test]
fn later_sources_win_and_what_they_hide_can_be_seen() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(one.path(), "a.json", &definition("same", "First"));
    write(one.path(), "b.json", &definition("only-one", "One"));
    write(two.path(), "deep/er/c.json", &definition("same", "Second"));
    let bundled: &'static [(&str, &str)] = Box::leak(Box::new([(
        "x.json",
        Box::leak(definition("same", "Bundled").into_boxed_str()) as &str,
    )]));
    let sources = vec![Source::Bundled(bundled), folder(one.path()), folder(two.path())];
    let catalog = Catalog::open(sources);
    let snapshot = catalog.snapshot();
    assert_eq!(usable(&catalog), ["only-one", "same"]);
    let same = snapshot.get("same").unwrap();
    assert_eq!(&*same.workflow.as_ref().unwrap().name, "Second");
    assert_eq!(same.source, 2);
    let hidden: Vec<_> =
        snapshot.shadows().iter().map(|shadow| (shadow.entry.source, &*shadow.by.path)).collect();
    let winner = two.path().join("deep/er/c.json");
    assert_eq!(hidden, [(0, winner.as_path()), (1, winner.as_path())]);
}

#[test]
fn json_yaml_and_yml_are_read_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", &definition("aaa", "A"));
    write(home.path(), "b.yaml", &definition("bbb", "B"));
    write(home.path(), "c.YML", &definition("ccc", "C"));
    write(home.path(), "d.txt", &definition("ddd", "D"));
    write(home.path(), ".hidden.json", &definition("eee", "E"));
    write(home.path(), ".git/f.json", &definition("fff", "F"));
    assert_eq!(usable(&open(home.path())), ["aaa", "bbb", "ccc"]);
}

#[test]
fn a_missing_folder_is_told_apart_from_an_empty_one() {
    let home = tempfile::tempdir().unwrap();
    let state = |path: &Path| open(path).snapshot().sources[0].state;
    assert_eq!(state(home.path()), SourceState::Read);
    assert_eq!(state(&home.path().join("nowhere")), SourceState::Missing);
    write(home.path(), "file", "");
    assert_eq!(state(&home.path().join("file")), SourceState::Unreadable);
}

#[test]
fn an_id_is_never_a_path() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "inner/a.json", &definition("aaa", "A"));
    write(home.path(), "secret.json", &definition("secret", "S"));
    let catalog = open(&home.path().join("inner"));
    for id in ["../secret", "a.json", "a", "", "/", "inner/aaa", "aaa\0"] {
        assert!(catalog.snapshot().get(id).is_none(), "{id:?}");
    }
}
