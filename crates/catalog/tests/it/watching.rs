//! The watcher on real files. Waiting is bounded and generous: the tests assert what is served, not
//! how fast.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catalog::{Beside, Change, Watch};

use super::*;

struct Watched {
    home: tempfile::TempDir,
    catalog: Arc<Catalog>,
    changes: Arc<Mutex<Vec<Change>>>,
    _watch: Watch,
}

impl Watched {
    fn new(prepare: impl FnOnce(&Path), sources: impl FnOnce(&Path) -> Vec<Source>) -> Self {
        let home = tempfile::tempdir().unwrap();
        prepare(home.path());
        let catalog = Arc::new(Catalog::open(sources(home.path())));
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        let record = move |change: &Change| seen.lock().unwrap().push(change.clone());
        let watch = Watch::start(Arc::clone(&catalog), record).unwrap();
        Self { home, catalog, changes, _watch: watch }
    }

    fn in_folder(prepare: impl FnOnce(&Path)) -> Self {
        Self::new(prepare, |path| vec![folder(path)])
    }

    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(&Catalog) -> bool) {
        let start = Instant::now();
        while !holds(&self.catalog) {
            assert!(start.elapsed() < Duration::from_secs(20), "never came: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn name_of(catalog: &Catalog, id: &str) -> Option<String> {
        let snapshot = catalog.snapshot();
        Some(snapshot.get(id)?.workflow.as_ref()?.name.to_string())
    }
}

#[test]
fn edits_new_files_and_removals_are_seen() {
    let watched = Watched::in_folder(|home| write(home, "a.json", &definition("aaa", "Old")));
    let home = watched.home.path();
    write(home, "a.json", &definition("aaa", "New"));
    watched.wait_until("the edit", |c| Watched::name_of(c, "aaa").as_deref() == Some("New"));
    write(home, "new/folder/b.yaml", &definition("bbb", "B"));
    watched.wait_until("the new file", |c| usable(c) == ["aaa", "bbb"]);
    fs::rename(home.join("a.json"), home.join("c.json")).unwrap();
    watched.wait_until("the renamed file", |c| {
        c.snapshot().get("aaa").is_some_and(|entry| entry.path.ends_with("c.json"))
    });
    fs::remove_file(home.join("c.json")).unwrap();
    watched.wait_until("the removal", |c| usable(c) == ["bbb"]);
    fs::remove_dir_all(home.join("new")).unwrap();
    watched.wait_until("the removed folder", |c| usable(c).is_empty());
}

#[test]
fn an_edit_of_the_same_length_is_seen() {
    let watched = Watched::in_folder(|home| write(home, "a.json", &definition("aaa", "0")));
    for round in 1..10 {
        let name = (round % 10).to_string();
        write(watched.home.path(), "a.json", &definition("aaa", &name));
        watched.wait_until("the edit", |c| Watched::name_of(c, "aaa").as_deref() == Some(&name));
    }
}

#[test]
fn a_folder_that_does_not_exist_yet_is_watched_for() {
    let watched = Watched::new(|_| {}, |home| vec![folder(&home.join("one/two/three"))]);
    let target = watched.home.path().join("one/two/three");
    write(&target, "a.json", &definition("aaa", "A"));
    watched.wait_until("the first file", |c| usable(c) == ["aaa"]);
    fs::remove_dir_all(watched.home.path().join("one")).unwrap();
    watched.wait_until("the removal", |c| usable(c).is_empty());
    write(&target, "b.json", &definition("bbb", "B"));
    watched.wait_until("the folder that came back", |c| usable(c) == ["bbb"]);
    write(&target, "c.json", &definition("ccc", "C"));
    watched.wait_until("a file in it", |c| usable(c) == ["bbb", "ccc"]);
}

#[test]
fn a_broken_edit_answers_with_its_findings_and_heals() {
    let watched = Watched::in_folder(|home| write(home, "file.json", &definition("aaa", "A")));
    write(watched.home.path(), "file.json", "{ \"id\": ");
    watched.wait_until("the broken file", |c| usable(c).is_empty());
    assert_eq!(codes(&watched.catalog, "aaa"), ["W001"], "it still answers by its last id");
    write(watched.home.path(), "file.json", &definition("aaa", "A"));
    watched.wait_until("the mended file", |c| usable(c) == ["aaa"]);
}

/// YAML cut off anywhere is often good YAML, so this is where a half-written file would show.
#[test]
#[cfg(target_os = "linux")]
fn a_half_written_file_is_never_served() {
    let text = |steps: usize, name: &str| {
        let mut text = format!("id: slow\nname: {name}\ndescription: D\nversion: 1.0.0\nsteps:\n");
        for step in 0..steps {
            text.push_str(&format!("  - {{id: step-{step}, title: T, prompt: P}}\n"));
        }
        text
    };
    let watched = Watched::in_folder(|home| write(home, "slow.yaml", &text(40, "Old")));
    let steps = |catalog: &Catalog| {
        let snapshot = catalog.snapshot();
        snapshot.get("slow").map(|entry| entry.workflow.as_ref().map_or(0, |w| w.steps.len()))
    };
    let path = watched.home.path().join("slow.yaml");
    let mut file = fs::File::create(&path).unwrap();
    for line in text(60, "New").lines() {
        writeln!(file, "{line}").unwrap();
        file.flush().unwrap();
        // Some other edit makes the catalogue look again in the middle of it.
        write(watched.home.path(), "other.json", &definition("other", "O"));
        std::thread::sleep(Duration::from_millis(15));
        assert_eq!(steps(&watched.catalog), Some(40), "before {line}");
    }
    drop(file);
    watched.wait_until("the whole file", |c| steps(c) == Some(60));
}

#[test]
fn a_burst_of_edits_costs_few_reloads() {
    let watched = Watched::in_folder(|_| {});
    for number in 0..500 {
        write(
            watched.home.path(),
            &format!("f{number}.json"),
            &definition(&format!("id-{number}"), "N"),
        );
    }
    watched.wait_until("all files", |c| usable(c).len() == 500);
    // A change is told of when it can be seen already.
    let added = || {
        let changes = watched.changes.lock().unwrap();
        changes.iter().map(|change| change.added.len()).sum::<usize>()
    };
    watched.wait_until("word of all of them", |_| added() == 500);
    let reloads = watched.changes.lock().unwrap().len();
    assert!(reloads < 100, "{reloads} reloads for one burst of 500 files");
}

#[test]
fn a_file_that_has_not_changed_is_not_read_again() {
    let watched = Watched::in_folder(|home| {
        write(home, "a.json", &definition("aaa", "A"));
        write(home, "b.json", &definition("bbb", "B"));
    });
    let before = watched.catalog.snapshot();
    write(watched.home.path(), "b.json", &definition("bbb", "New"));
    watched.wait_until("the edit", |c| Watched::name_of(c, "bbb").as_deref() == Some("New"));
    let after = watched.catalog.snapshot();
    assert!(std::ptr::eq(before.get("aaa").unwrap(), after.get("aaa").unwrap()));
    let changes = watched.changes.lock().unwrap();
    assert!(changes.iter().all(|change| change.changed == ["bbb".into()]), "{changes:?}");
}

/// A watch follows a folder and not its name.
#[test]
fn a_folder_that_is_swapped_for_another_is_watched() {
    let watched = Watched::new(
        |home| write(home, "flows/a.json", &definition("aaa", "A")),
        |home| vec![folder(&home.join("flows"))],
    );
    let home = watched.home.path();
    fs::rename(home.join("flows"), home.join("old")).unwrap();
    write(home, "flows/b.json", &definition("bbb", "B"));
    watched.wait_until("the new folder", |c| usable(c) == ["bbb"]);
    write(home, "flows/c.json", &definition("ccc", "C"));
    watched.wait_until("a later file in it", |c| usable(c) == ["bbb", "ccc"]);
    write(home, "flows/b.json", &definition("bbb", "New"));
    watched.wait_until("an edit in it", |c| Watched::name_of(c, "bbb").as_deref() == Some("New"));
}

#[cfg(unix)]
#[test]
fn a_link_that_is_pointed_elsewhere_is_followed() {
    use std::os::unix::fs::symlink;
    let prepare = |home: &Path| {
        write(home, "one/a.json", &definition("aaa", "A"));
        write(home, "two/b.json", &definition("bbb", "B"));
        symlink("one", home.join("flows")).unwrap();
    };
    let watched = Watched::new(prepare, |home| vec![folder(&home.join("flows"))]);
    let home = watched.home.path();
    symlink("two", home.join("next")).unwrap();
    fs::rename(home.join("next"), home.join("flows")).unwrap();
    watched.wait_until("the other folder", |c| usable(c) == ["bbb"]);
    write(home, "two/c.json", &definition("ccc", "C"));
    watched.wait_until("a file in it", |c| usable(c) == ["bbb", "ccc"]);
}

/// What is bundled, refused or not to be read is the same after a reload, and nobody is told otherwise.
#[cfg(unix)]
#[test]
fn a_reload_reports_only_what_changed() {
    let bundled: &'static [(&str, &str)] = Box::leak(Box::new([(
        "x.json",
        Box::leak(definition("bundled", "B").into_boxed_str()) as &str,
    )]));
    let prepare = |home: &Path| {
        write(home, "flows/a.json", &definition("aaa", "A"));
        write(home, "outside.json", &definition("outside", "O"));
        std::os::unix::fs::symlink("../outside.json", home.join("flows/link.json")).unwrap();
    };
    let sources = |home: &Path| vec![Source::Bundled(bundled), folder(&home.join("flows"))];
    let watched = Watched::new(prepare, sources);
    write(watched.home.path(), "flows/note.txt", "nothing");
    write(watched.home.path(), "flows/b.json", &definition("bbb", "B"));
    watched.wait_until("the new file", |c| usable(c) == ["aaa", "bbb", "bundled"]);
    let changes = watched.changes.lock().unwrap();
    let expected = Change { added: vec!["bbb".into()], lists: true, ..Change::default() };
    assert_eq!(*changes, [expected]);
}

#[test]
fn a_reload_says_whether_a_list_reads_differently() {
    let prepare = |home: &Path| write(home, "flows/a.json", &definition("aaa", "A"));
    let watched = Watched::new(prepare, |home| vec![folder(&home.join("flows"))]);
    let edits = [(definition("aaa", "A") + " ", false), (definition("aaa", "Another"), true)];
    for (at, (text, lists)) in edits.into_iter().enumerate() {
        write(watched.home.path(), "flows/a.json", &text);
        let changed = || watched.changes.lock().unwrap().len() > at;
        watched.wait_until("the edit", |_| changed());
        let expected = Change { changed: vec!["aaa".into()], lists, ..Change::default() };
        assert_eq!(watched.changes.lock().unwrap()[at], expected);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_held_open_and_empty_is_not_there_yet() {
    let watched = Watched::in_folder(|_| {});
    let mut file = fs::File::create(watched.home.path().join("slow.json")).unwrap();
    write(watched.home.path(), "other.json", &definition("other", "O"));
    watched.wait_until("the other file", |c| usable(c) == ["other"]);
    std::thread::sleep(Duration::from_millis(700));
    assert!(watched.catalog.snapshot().get("slow").is_none());
    file.write_all(definition("slow", "S").as_bytes()).unwrap();
    drop(file);
    watched.wait_until("the whole file", |c| usable(c) == ["other", "slow"]);
}

/// Files that are no sources are watched for who asks, wherever they are, and whether they are there yet or not. Reading one
/// is no edit: otherwise whoever looks at it when it is touched would be told for ever.
#[test]
fn files_beside_the_sources_are_told_of() {
    let home = tempfile::tempdir().unwrap();
    let (sources, file) = (home.path().join("sources"), home.path().join("not/yet/there.json"));
    fs::create_dir_all(&sources).unwrap();
    let catalog = Arc::new(Catalog::open(vec![folder(&sources)]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (told, read) = (Arc::clone(&seen), file.clone());
    let touched = move || told.lock().unwrap().push(fs::read_to_string(&read).ok());
    let beside = Beside { files: vec![file.clone()], touched: Some(Box::new(touched)) };
    let changes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&changes);
    let count = move |_: &Change| *counted.lock().unwrap() += 1;
    let _watch = Watch::start_with(catalog, count, beside).unwrap();
    let wait_for = |expected: Option<&str>| {
        let start = Instant::now();
        while seen.lock().unwrap().last().map(Option::as_deref) != Some(expected) {
            assert!(start.elapsed() < Duration::from_secs(20), "never told: {expected:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(None);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for text in ["one", "two"] {
        fs::write(&file, text).unwrap();
        wait_for(Some(text));
    }
    // As editors do it.
    fs::write(home.path().join("draft"), "three").unwrap();
    fs::rename(home.path().join("draft"), &file).unwrap();
    wait_for(Some("three"));
    fs::remove_dir_all(home.path().join("not")).unwrap();
    wait_for(None);
    assert_eq!(*changes.lock().unwrap(), 0, "no workflow has changed");
    assert!(seen.lock().unwrap().len() < 100, "it is told without end");
}
