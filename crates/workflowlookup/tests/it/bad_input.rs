//! Bad input gets a clear message and the right exit status, and everything else is still served.

use super::*;

#[test]
fn bad_arguments_exit_with_1() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["lst"]).shown(), @"
    exit 1
    --- stderr
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: workflowlookup [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run(&["next", "ai-task-implementation", "--context", "novalue"]).shown(), @"
    exit 1
    --- stderr
    error: `novalue` is no context variable
      try: write `--context name=value`
    ");
    insta::assert_snapshot!(place.run(&["next", "ai-task-implementation", "--context", "=5"]).shown(), @"
    exit 1
    --- stderr
    error: `=5` is no context variable
      try: write `--context name=value`
    ");
    assert_eq!(place.run(&["check", "ai-task-implementation"]).status, 1);
    assert_eq!(place.run(&[]).status, 1);
    assert_eq!(place.run(&["--help"]).status, 0);
    assert_eq!(place.run(&["--version"]).status, 0);
}

/// Files that no definition should be, and the code of what is said about each.
fn bad_files() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good = definition("good", "Good");
    let truncated = definition("truncated", "Good");
    let deep = |open: &str, close: &str| {
        let nested = format!("{}{}", open.repeat(10_000), close.repeat(10_000));
        good.replace("\"Do it.\"", &nested).into_bytes()
    };
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(good.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let large = definition("large", &"x".repeat(2 * 1024 * 1024));
    vec![
        ("not-json.json", b"hello".to_vec(), "W001"),
        ("empty.json", Vec::new(), "W001"),
        ("truncated.json", truncated.as_bytes()[..truncated.len() / 2].to_vec(), "W001"),
        (
            "latin1.json",
            good.replace("Good", "G\u{1}")
                .replace('\u{1}', "ü")
                .into_bytes()
                .into_iter()
                .filter(|byte| *byte != 0xc3)
                .collect(),
            "W002",
        ),
        ("utf16.json", utf16, "W002"),
        (
            "with-bom.json",
            [b"\xef\xbb\xbf", good.replace("good", "with-bom").as_bytes()].concat(),
            "W003",
        ),
        ("large.json", large.into_bytes(), "W004"),
        ("deep.json", deep("[", "]"), "W005"),
        ("deep-flow.yaml", deep("[", "]"), "W005"),
        ("endless.yaml", b"a: &a [*a]\n".to_vec(), "W006"),
    ]
}

#[test]
fn every_bad_file_is_explained_and_hides_nothing() {
    let place = Place::new();
    place.write("workflows/good.json", definition("still-served", "Good"));
    for (name, bytes, code) in bad_files() {
        place.write(&format!("workflows/{name}"), bytes);
        let done = place.run(&["validate", &format!("workflows/{name}"), "--json"]);
        let codes: Vec<String> = done.json()["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(codes, [code], "{name}");
        assert_eq!(done.status, i32::from(code != "W003"), "{name}");
    }
    assert_eq!(place.run(&["next", "still-served"]).status, 0);
    let sources = place.run(&["sources", "--json"]);
    assert_eq!(sources.status, 0);
    insta::assert_snapshot!(place.run(&["next", "large"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow `large` was refused: the file is larger than 1048576 bytes
      try: `workflowlookup sources` shows the file
    ");
    insta::assert_snapshot!(place.run(&["next", "truncated"]).shown(), @"
    exit 1
    --- stderr
    error: the workflow `truncated` cannot be used: the file ends in the middle of a string
      try: `workflowlookup validate workflows/truncated.json` shows all that is wrong
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_without_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    place.write("workflows/good.json", definition("still-served", "Good"));
    place.write("workflows/shut/inner.json", definition("inner", "Inner"));
    place.write("workflows/closed.json", definition("closed", "Closed"));
    let lock = |path: &str, mode| {
        fs::set_permissions(place.project().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    lock("workflows/shut", 0o000);
    lock("workflows/closed.json", 0o000);
    let run = |arguments: &[&str]| place.finish(place.powerless(arguments), "");
    let listed = run(&["--no-bundled", "list"]);
    insta::assert_snapshot!(listed.shown(), @"
    exit 0
    --- stdout
    still-served	1.0.0	general	Good
    --- stderr
    warning: one file cannot be used
      try: `workflowlookup sources` shows which, and why
    ");
    insta::assert_snapshot!(run(&["next", "closed"]).shown(), @"
    exit 1
    --- stderr
    error: the file of workflow `closed` cannot be read: Permission denied (os error 13)
      try: `workflowlookup sources` shows the file
    ");
    insta::assert_snapshot!(run(&["--no-bundled", "sources"]).shown(), @"
    exit 0
    --- stdout
    user	missing	[ROOT]/home/.local/share/workflowlookup/workflows
    project	2, 1 broken	workflows
    project	missing	.workflowlookup/workflows

    Findings
    error[W070]: cannot be read: Permission denied (os error 13)
     --> workflows/shut
      = try: allow yourself to read it
    error[W070]: cannot be read: Permission denied (os error 13)
     --> workflows/closed.json
      = try: allow yourself to read it
    `workflowlookup validate FILE` shows them in place
    ");
    let validated = run(&["validate", "workflows"]);
    assert_eq!(validated.status, 1, "{}", validated.shown());
    lock("workflows/shut", 0o755);
}

#[test]
fn a_catastrophic_pattern_does_no_harm() {
    let place = Place::new();
    let rule = r#""prompt": "Do it.", "validationCriteria": [{"type": "regex", "pattern": "^(a+)+$", "message": "Only a"}]"#;
    place.write("workflows/c.json", definition("slow", "S").replace(r#""prompt": "Do it.""#, rule));
    let output = format!("{}!", "a".repeat(100_000));
    let done = place.run_with_input(&["check", "slow", "only", "--output", "-"], &output);
    insta::assert_snapshot!(done.shown(), @"
    exit 1
    --- stdout
    not valid
      - Only a
    what to change:
      - Make some part of the output match the pattern /^(a+)+$/.
    ");
}

#[test]
fn outputs_that_cannot_be_read_are_refused() {
    let place = Place::new();
    place.write("workflows/a.json", definition("aaa", "A"));
    place.write("binary", [0xff, 0xfe, 0x00]);
    insta::assert_snapshot!(place.run(&["check", "aaa", "only", "--output", "binary"]).shown(), @"
    exit 1
    --- stderr
    error: the output is not UTF-8 text
    ");
    insta::assert_snapshot!(place.run(&["check", "aaa", "only", "--output", "."]).shown(), @"
    exit 1
    --- stderr
    error: the output `.` cannot be read: Is a directory (os error 21)
      try: name a file, or `-` for standard input
    ");
}

#[test]
fn a_missing_folder_that_was_asked_for_is_named() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["--workflows", "nowhere", "--no-bundled", "list"]).shown(), @"
    exit 0
    --- stderr
    warning: the folder `nowhere` does not exist
    warning: there is no workflow
      try: `workflowlookup new ID` writes one to start from
    ");
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let place = Place::new();
    let mut command = place.command(&["schema"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A definition is a stranger's: it must not steer the terminal.
#[test]
fn escape_sequences_are_not_printed() {
    let place = Place::new();
    place.write("workflows/e.json", definition("esc", "E\\u001b[31m\\u0007"));
    let done = place.run(&["show", "esc"]);
    assert!(!done.stdout.contains('\u{1b}') && !done.stdout.contains('\u{7}'), "{:?}", done.stdout);
}

#[test]
fn an_option_that_would_be_lost_is_refused() {
    let place = Place::new();
    let done = place.run(&["--workflows", "one", "list", "--workflows", "two"]);
    insta::assert_snapshot!(done.shown(), @r"
    exit 1
    --- stderr
    error: `--workflows` stands before the command and behind it
      try: give all of them on one side
    ");
    for good in [
        ["--workflows", "a", "--workflows=b", "list"],
        ["list", "--workflows=a", "--workflows", "b"],
    ] {
        assert_eq!(place.run(&good).status, 0, "{good:?}");
    }
}
