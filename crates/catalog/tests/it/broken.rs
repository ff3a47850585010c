//! A broken file hides nothing else, and its id answers with what is wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn a_broken_file_answers_by_its_own_id() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "good.json", &definition("good", "Good"));
    write(home.path(), "file-name.json", &definition("own-id", "X").replace("1.0.0", "one"));
    let catalog = open(home.path());
    assert_eq!(usable(&catalog), ["good"]);
    assert_eq!(codes(&catalog, "own-id"), ["W016"]);
    assert!(catalog.snapshot().get("file-name").is_none());
}

#[test]
fn a_file_that_cannot_be_read_answers_by_the_id_in_it() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "some-file.json", &definition("my-flow", "X")[..60]);
    let catalog = open(home.path());
    assert_eq!(codes(&catalog, "my-flow"), ["W001"]);
    assert!(catalog.snapshot().get("some-file").is_none());
}

#[test]
fn a_file_without_a_readable_id_answers_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "no-text.json", "\u{0}");
    let catalog = open(home.path());
    assert_eq!(codes(&catalog, "no-text"), ["W001"]);
}

#[test]
fn a_guessed_id_never_hides_a_good_workflow() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "a.json", &definition("same", "Good"));
    write(home.path(), "same.json", "{ broken");
    let catalog = open(home.path());
    assert_eq!(usable(&catalog), ["same"]);
    assert_eq!(catalog.snapshot().shadows().len(), 1, "but it can be seen");
}

#[test]
fn broken_criteria_leave_the_workflow_usable() {
    let home = tempfile::tempdir().unwrap();
    let rule = r#""prompt": "Do it.", "validationCriteria": [{"type": "regex", "pattern": "(", "message": "m"}]"#;
    write(home.path(), "a.json", &definition("aaa", "A").replace(r#""prompt": "Do it.""#, rule));
    let catalog = open(home.path());
    assert_eq!(usable(&catalog), ["aaa"]);
    assert_eq!(codes(&catalog, "aaa"), ["W043"]);
}

#[test]
fn findings_name_their_file() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "sub/x.json", "{");
    let catalog = open(home.path());
    let snapshot = catalog.snapshot();
    let file = snapshot.get("x").unwrap().findings[0].file.as_deref().unwrap().to_owned();
    assert!(file.ends_with("x.json") && file.contains("sub"), "{file}");
}

/// Files come and go while the folder is read: what stays is served each time, and what vanished is not
/// reported as broken.
#[test]
fn files_that_vanish_while_they_are_read_hide_nothing() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "stays.json", &definition("stays", "S"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for number in 0..40 {
                    // Renamed into place, so that it is whole whenever it is there.
                    write(home.path(), "new.tmp", &definition(&format!("goes-{number}"), "G"));
                    let path = home.path().join(format!("goes-{number}.json"));
                    fs::rename(home.path().join("new.tmp"), path).unwrap();
                }
                for number in 0..40 {
                    fs::remove_file(home.path().join(format!("goes-{number}.json"))).unwrap();
                }
            }
        });
        // Ends the other thread too where an assertion fails.
        let _end = End(&is_over);
        for _ in 0..200 {
            let catalog = open(home.path());
            let snapshot = catalog.snapshot();
            assert!(snapshot.get("stays").is_some_and(|entry| entry.workflow.is_some()));
            let broken: Vec<_> =
                snapshot.entries().iter().filter(|e| e.workflow.is_none()).collect();
            assert!(broken.is_empty(), "{broken:?}");
        }
    });
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
