//! `new`, `validate`, `schema`, `completions`: an author at work.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;

#[test]
fn new_writes_a_valid_workflow_and_never_overwrites() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["new", "tidy-the-garage"]).shown(), @"
    exit 0
    --- stdout
    wrote workflows/tidy-the-garage.json
      edit it, then: workflowlookup validate workflows/tidy-the-garage.json
      walk it: workflowlookup run tidy-the-garage
    ");
    let validated = place.run(&["validate", "workflows", "--deny-warnings"]);
    insta::assert_snapshot!(validated.shown(), @"
    exit 0
    --- stdout
    1 file checked, nothing wrong
    ");
    let before =
        fs::read_to_string(place.project().join("workflows/tidy-the-garage.json")).unwrap();
    insta::assert_snapshot!(place.run(&["new", "tidy-the-garage"]).shown(), @"
    exit 1
    --- stderr
    error: `workflows/tidy-the-garage.json` is there already and was not touched
      try: choose another id, or remove the file first
    ");
    let after = fs::read_to_string(place.project().join("workflows/tidy-the-garage.json")).unwrap();
    assert_eq!(before, after);
    let schema = after.lines().nth(1).unwrap();
    let path = schema.split('"').nth(3).unwrap();
    let text = fs::read_to_string(place.project().join("workflows").join(path)).unwrap();
    assert_eq!(text, place.run(&["schema"]).stdout, "the schema reference leads somewhere");
    assert_eq!(place.run(&["next", "tidy-the-garage"]).status, 0);
    assert_eq!(place.run(&["--no-bundled", "list"]).stdout.lines().count(), 1);
}

#[test]
fn new_refuses_what_cannot_be_an_id() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["new", "../escape"]).shown(), @"
    exit 1
    --- stderr
    error: `../escape` cannot be an id
      try: use 3 to 64 lower-case letters, digits and `-`
    ");
    assert!(!place.root.path().join("escape.json").exists());
}

const SIX_MISTAKES: &str = r#"{
  "id": "six-mistakes",
  "name": "Six mistakes",
  "description": "Each is another one",
  "version": "1.0",
  "steps": [
    {
      "id": "first",
      "title": "First",
      "promt": "Misspelt"
    },
    {
      "id": "second",
      "title": "Second",
      "prompt": "Never runs",
      "runCondition": { "var": "size", "gt": 5, "lt": 3 }
    },
    {
      "id": "second",
      "title": "Third",
      "prompt": "The id is taken",
      "validationCriteria": [
        { "type": "regex", "pattern": "(open", "message": "Bad pattern" },
        { "type": "contains", "message": "No value" }
      ]
    }
  ]
}
"#;

#[test]
fn all_mistakes_are_shown_at_once() {
    let place = Place::new();
    place.write("six.json", SIX_MISTAKES);
    insta::assert_snapshot!(place.run(&["validate", "six.json"]).shown());
    let json = place.run(&["validate", "six.json", "--json"]);
    assert_eq!(json.status, 1);
    insta::assert_snapshot!(json.stdout);
}

#[test]
fn warnings_alone_are_good_unless_denied() {
    let place = Place::new();
    place.write("w.json", definition("warned", "W").replace("Do it.", "Do {{thing}}."));
    let done = place.run(&["validate", "w.json"]);
    insta::assert_snapshot!(done.shown(), @r#"
    exit 0
    --- stdout
    warning[W050]: nothing sets the variable `thing`
     --> w.json:2:69 (/steps/0/prompt)
      |
    2 |             "steps": [{"id": "only", "title": "Only", "prompt": "Do {{thing}}."}]}
      |                                                                     ^^^^^^^^^
      = try: tell the agent in an earlier prompt to set `thing` in the context

    1 file checked: 0 errors, 1 warning
    "#);
    assert_eq!(place.run(&["validate", "w.json", "--deny-warnings"]).status, 1);
}

#[test]
fn files_and_folders_are_validated_together() {
    let place = Place::new();
    place.write("a/one.json", definition("one", "One"));
    place.write("a/b/two.yml", definition("two", "Two"));
    place.write("three.json", definition("three", "Three"));
    insta::assert_snapshot!(place.run(&["validate", "a", "three.json"]).shown(), @"
    exit 0
    --- stdout
    3 files checked, nothing wrong
    ");
    insta::assert_snapshot!(place.run(&["validate", "a", "nowhere.json"]).shown(), @"
    exit 1
    --- stdout
    error[W070]: there is no such file or folder
     --> nowhere.json
      = try: see whether the path is right

    2 files checked: 1 error, 0 warnings
    ");
}

#[test]
fn the_bundled_workflows_are_valid_without_a_warning() {
    let place = Place::new();
    let folder = repository().join("workflows");
    let done = place.run(&["validate", "--deny-warnings", folder.to_str().unwrap()]);
    assert_eq!(done.status, 0, "{}", done.shown());
}

/// Kills the child when the test is over, however it ends.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_edit_is_picked_up_by_a_running_watch() {
    let place = Place::new();
    place.write("workflows/w.json", definition("watched", "W"));
    let mut command = place.command(&["validate", "workflows", "--watch"]);
    let mut child = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let (sender, inbox) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let next = || inbox.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(next(), "1 file checked, nothing wrong");
    assert_eq!(next(), "watching for edits; end with Ctrl-C");
    place.write("workflows/w.json", definition("watched", "W").replace("1.0.0", "one"));
    assert_eq!(next(), "");
    assert_eq!(next(), "error[W016]: `one` is not a semantic version");
    while !next().starts_with("1 file checked: 1 error") {}
    place.write("workflows/w.json", definition("watched", "W"));
    assert_eq!(next(), "");
    assert_eq!(next(), "1 file checked, nothing wrong");
}

#[test]
fn completions_are_made_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = place.run(&["completions", shell]);
        assert_eq!(done.status, 0);
        assert!(done.stdout.contains("validate"), "{shell}");
    }
}
