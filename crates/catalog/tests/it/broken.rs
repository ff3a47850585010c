//! A broken file hides nothing else, and its id answers with what is wrong.

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
