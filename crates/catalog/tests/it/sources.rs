//! Which source wins, and what can be seen of it.

use std::sync::Arc;

use catalog::{Catalog, Digest, Kind, OverridePolicy, ShadowReason, Source, SourceState};

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

/// Lets one content override others.
struct Only(Digest);

impl OverridePolicy for Only {
    fn may_override(&self, _: Kind, _: &Path, digest: &Digest) -> bool {
        *digest == self.0
    }
}

#[test]
fn project_overrides_only_what_is_trusted() {
    let (user, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let more = tempfile::tempdir().unwrap();
    write(user.path(), "a.json", &definition("same", "Yours"));
    write(project.path(), "a.json", &definition("same", "Theirs"));
    write(project.path(), "b.json", &definition("brand-new", "New"));
    write(more.path(), "b.json", &definition("brand-new", "Newer"));
    let of = |kind, path: &Path| Source::Folder { kind, path: path.to_owned() };
    let sources = vec![
        of(Kind::User, user.path()),
        of(Kind::Project, project.path()),
        of(Kind::Project, more.path()),
    ];
    let name = |catalog: &Catalog, id: &str| {
        catalog.snapshot().get(id).unwrap().workflow.as_ref().unwrap().name.to_string()
    };
    let catalog = Catalog::open(sources.clone());
    assert_eq!(name(&catalog, "same"), "Yours");
    assert_eq!(name(&catalog, "brand-new"), "Newer");
    let snapshot = catalog.snapshot();
    let [shadow] = &snapshot.untrusted().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(shadow.reason, ShadowReason::Untrusted);
    assert!(shadow.entry.path.starts_with(project.path()));
    assert_eq!(snapshot.overrides().count(), 0);

    let trusted = Catalog::with_policy(sources, Arc::new(Only(shadow.entry.digest.unwrap())));
    trusted.load();
    assert_eq!(name(&trusted, "same"), "Theirs");
    let snapshot = trusted.snapshot();
    assert_eq!(snapshot.untrusted().count(), 0);
    let overridden: Vec<_> = snapshot.overrides().map(|shadow| shadow.entry.path.clone()).collect();
    assert_eq!(overridden, [user.path().join("a.json").into()]);
}

#[test]
fn changed_override_keeps_its_trusted_content_until_it_is_removed() {
    let (user, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(user.path(), "a.json", &definition("same", "Yours"));
    let trusted = definition("same", "Theirs");
    write(project.path(), "a.json", &trusted);
    let of = |kind, path: &Path| Source::Folder { kind, path: path.to_owned() };
    let sources = vec![of(Kind::User, user.path()), of(Kind::Project, project.path())];
    let digest =
        sha2::Digest::finalize(sha2::Digest::chain_update(sha2::Sha256::default(), &trusted));
    let catalog = Catalog::with_policy(sources, Arc::new(Only(digest.into())));
    catalog.load();
    let name = |catalog: &Catalog| {
        catalog.snapshot().get("same").unwrap().workflow.as_ref().unwrap().name.to_string()
    };
    assert_eq!(name(&catalog), "Theirs");
    let other = definition("other", "Other");
    for changed in [&*format!("{trusted}\n"), &definition("same", "Changed"), "{", &other] {
        write(project.path(), "a.json", changed);
        // Twice: the trusted content outlives every load.
        for _ in 0..2 {
            catalog.load();
            assert_eq!(name(&catalog), "Theirs", "{changed}");
            let snapshot = catalog.snapshot();
            assert_eq!(snapshot.untrusted().count(), 1, "{changed}");
            assert_eq!(snapshot.overrides().count(), 1, "{changed}");
            assert!(snapshot.get("other").is_none());
        }
    }
    write(project.path(), "a.json", &trusted);
    catalog.load();
    assert_eq!(catalog.snapshot().untrusted().count(), 0);
    std::fs::remove_file(project.path().join("a.json")).unwrap();
    catalog.load();
    assert_eq!(name(&catalog), "Yours");
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
