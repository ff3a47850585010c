//! Going on with a session: which one is meant, from which store, and with somebody else at it.

use super::*;

#[test]
fn what_cannot_be_begun_or_resumed() {
    let place = tidy();
    let shown = |arguments: &[&str]| place.run(arguments).shown();
    insta::assert_snapshot!(shown(&["run", "tidi"]), @"
    exit 1
    --- stderr
    error: no workflow has the id `tidi`
      try: did you mean `tidy`?
    ");
    insta::assert_snapshot!(shown(&["run", "--resume"]), @"
    exit 1
    --- stderr
    error: there is no session to go on with
      try: `workflowlookup run WORKFLOW` begins one
    ");
    insta::assert_snapshot!(shown(&["run", "--resume", "nothing"]), @"
    exit 1
    --- stderr
    error: there is no session `nothing`
      try: `workflowlookup session list` shows what there is
    ");
    assert!(
        !place.home().join(".local").exists(),
        "who never begins a session has no file of ours"
    );
    insta::assert_snapshot!(shown(&["run", "tidy", "--context", "size"]), @"
    exit 1
    --- stderr
    error: `size` is no context variable
      try: write `--context name=value`
    ");
    let id = place.run(&["run", "tidy"]).session();
    let shown = |arguments: &[&str]| place.run(arguments).shown().replace(&id, "[ID]");
    insta::assert_snapshot!(shown(&["run", "investigate-bug", "--resume"]), @"
    exit 1
    --- stderr
    error: there is no session of workflow `investigate-bug` to go on with
      try: `workflowlookup run investigate-bug` begins one
    ");
    insta::assert_snapshot!(shown(&["run", "investigate-bug", "--resume", &id]), @"
    exit 1
    --- stderr
    error: session `[ID]` is of workflow `tidy`, not `investigate-bug`
      try: `workflowlookup run --resume [ID]` goes on with it
    ");
    insta::assert_snapshot!(shown(&["run", "--resume", "tidy"]), @"
    exit 1
    --- stderr
    error: there is no session `tidy`
      try: `workflowlookup run tidy --resume` goes on with the newest of `tidy`
    ");
    assert_eq!(place.run(&["run", "--resume", &id, "--goal", "another"]).status, 1);
}

/// The newest that is not complete, of one workflow or of all.
#[test]
fn resuming_finds_the_session() {
    let place = tidy();
    place.write("workflows/only.json", definition("only", "Only"));
    let start = |workflow: &str| place.run(&["run", workflow]).session();
    let (_, second, third) = (start("tidy"), start("tidy"), start("only"));
    let resumed = |arguments: &[&str], input: &str| place.run_with_input(arguments, input);
    assert_eq!(resumed(&["run", "--resume"], "").session(), third);
    assert_eq!(resumed(&["run", "tidy", "--resume"], "").session(), second);
    // The definition is the session's own.
    fs::remove_dir_all(place.project().join("workflows")).unwrap();
    let done = resumed(&["run", "--resume"], "Done.\n.\n");
    assert_eq!((done.status, done.session()), (0, third.clone()));
    assert_eq!(resumed(&["run", "--resume"], "").session(), second);
    insta::assert_snapshot!(resumed(&["run", "--resume", &third], "").walked(), @"
    exit 0
    --- stdout
    Only (only)
    session: [ID]
    complete; one step is finished:
      only: Done.

    The workflow is complete: every step is done or does not apply.
    a report of all that was done:
      workflowlookup session show [ID] --markdown
    ");
}

/// The command that is printed names the store.
#[test]
fn a_store_of_ones_own() {
    let place = tidy();
    let done = place.run(&["run", "tidy", "--store", "sqlite:my sessions.db"]);
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID] --store 'sqlite:my sessions.db'` goes on
    ");
    let script = done.stderr.split('`').nth(1).unwrap();
    let script = script.replacen("workflowlookup", env!("CARGO_BIN_EXE_workflowlookup"), 1);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script]).current_dir(place.project());
    shell.env_clear().env("HOME", place.home());
    let again = place.finish(shell, "");
    assert_eq!(again.session(), done.session());
}

/// Somebody else has gone on while one was typing.
#[test]
fn two_at_the_same_session() {
    let place = tidy();
    let mut first = Live::start(place.command(&["run", "tidy"]));
    let shown = first.wait_for("Name the mess\n");
    let id = session_in(&shown);
    let done = place.run_with_input(&["run", "--resume", &id], "A mess.\n.\nThe chair.\n.\nl\n");
    assert_eq!(done.status, 0, "{}", done.shown());
    first.write("My own mess.\n.\n");
    first.wait_for("[l]ater\n");
    let shown = first.shown().replace(&id, "[ID]");
    let at = shown.find("Somebody else").unwrap();
    insta::assert_snapshot!(shown[at..], @"
    Somebody else has gone on with this session meanwhile.
    Now session `[ID]` is at revision 1, step `agree`, which waits for a person to confirm its output.
    What you typed was not handed in; `:e` opens it.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    ");
    // What waits now is decided elsewhere, too.
    let done = place.run_with_input(&["run", "--resume", &id], "n not that\n");
    assert_eq!(done.status, 1, "{}", done.shown());
    first.write("y\n");
    first.wait_for("Step 2, attempt 2");
    assert_eq!(first.shown().matches("Somebody else").count(), 2, "{}", first.shown());
    first.write("My chair.\n.\ny\n");
    first.wait_for("The workflow is complete");
    assert_eq!(first.ended(), Some(0));
}
