//! `run`: a person's way through a workflow, by a pipe. How it is at a terminal is in `running/terminal.rs`.

mod killed;
mod live;
mod terminal;

use live::Live;

use super::*;

/// A step that is checked, one that a person confirms, and one that depends on what was reported.
const TIDY: &str = r#"
id: tidy
name: Tidy up
description: Tidies a room
version: 1.0.0
steps:
  - id: look
    title: Look around
    prompt: |-
      Say what lies about, and set `size`.

      ```
      as it is
      ```
    validationCriteria:
      - { type: contains, value: mess, message: Name the mess }
  - id: agree
    title: Agree on it
    prompt: Say what goes.
    requireConfirmation: true
  - id: carry
    title: Carry it out
    prompt: Carry the {{size}} things out.
    runCondition: { var: size, equals: large }
"#;

fn tidy() -> Place {
    let place = Place::new();
    place.write("workflows/tidy.yaml", TIDY);
    place
}

fn session_in(shown: &str) -> String {
    let line = shown.lines().find_map(|line| line.strip_prefix("session: "));
    line.unwrap_or_else(|| panic!("no session: {shown}")).to_owned()
}

impl Done {
    /// The id of the session.
    fn session(&self) -> String {
        session_in(&self.stdout)
    }

    /// What a user sees, with the id masked.
    fn walked(&self) -> String {
        self.shown().replace(&self.session(), "[ID]")
    }

    /// Only what comes after the first line that begins so.
    fn walked_from(&self, start: &str) -> String {
        let walked = self.walked();
        let at = walked.find(&format!("\n{start}")).unwrap_or_else(|| panic!("{walked}"));
        format!("exit {}\n…{}", self.status, &walked[at..])
    }
}

#[test]
fn from_the_first_step_to_the_last() {
    let place = tidy();
    let input = ":set size=large\nA mess.\n.\nThe chair.\n.\ny\nGone.\n.\n";
    let done = place.run_with_input(&["run", "tidy", "--goal", "a clean room"], input);
    insta::assert_snapshot!(done.walked(), @r#"
    exit 0
    --- stdout
    Tidy up (tidy)
    goal: a clean room
    session: [ID]
    leave when you like; this goes on from where you were:
      workflowlookup run --resume [ID]

    Step 1: Look around (look)

    Say what lies about, and set `size`.

    ```
    as it is
    ```

    Your output will be checked for:
    - Name the mess
    with the output: size = "large"
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    confirmed

    Step 3: Carry it out (carry)

    Carry the large things out.
    accepted

    The workflow is complete: every step is done or does not apply.
    a report of all that was done:
      workflowlookup session show [ID] --markdown
    "#);
}

#[test]
fn what_is_not_good_is_asked_for_again() {
    let place = tidy();
    let done = place.run_with_input(&["run", "tidy"], ":set size=1\nClean.\n.\nA mess.\n.\n");
    insta::assert_snapshot!(done.walked_from("with the output"), @r#"
    exit 1
    …
    with the output: size = 1
    not accepted
      - Name the mess
    what to change:
      - Review validation criteria and adjust output accordingly.
      - Include the text "mess", spelt exactly so.
    still set: size

    Step 1, attempt 2: Look around (look)
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.
    --- stderr
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
    "#);
    // Who comes back is told what was wrong, and still has what was handed in and reported.
    let done = place.run_with_input(&["run", "tidy"], ":set size=large\nClean.\n.\n");
    place.write("add.sh", "echo 'No: a mess.' >> \"$1\"");
    let mut command = place.command(&["run", "--resume", &done.session()]);
    command.env("EDITOR", "sh add.sh");
    let done = place.finish(command, ":e\nThe chair.\n.\ny\nGone.\n.\n");
    insta::assert_snapshot!(done.walked(), @r#"
    exit 0
    --- stdout
    Tidy up (tidy)
    session: [ID]
    no step is finished yet

    Step 1, attempt 2: Look around (look)

    Say what lies about, and set `size`.

    ```
    as it is
    ```

    Your output will be checked for:
    - Name the mess

    what was handed in last was not accepted
      - Name the mess
    what to change:
      - Review validation criteria and adjust output accordingly.
      - Include the text "mess", spelt exactly so.
    still set: size
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    confirmed

    Step 3: Carry it out (carry)

    Carry the large things out.
    accepted

    The workflow is complete: every step is done or does not apply.
    a report of all that was done:
      workflowlookup session show [ID] --markdown
    "#);
}

#[test]
fn nothing_is_handed_in_by_accident() {
    let place = tidy();
    let done = place.run_with_input(&["run", "tidy"], ".\n\n  \n.\nA mess.\n.\n");
    insta::assert_snapshot!(done.walked_from("An empty"), @"
    exit 1
    …
    An empty output is not handed in.
    An empty output is not handed in.
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.
    --- stderr
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
    ");
    // The end of the input ends an output, as Ctrl-D does.
    let done = place.run_with_input(&["run", "tidy"], "A mess.");
    assert!(done.stdout.contains("Step 2: Agree on it"), "{}", done.shown());
    let done = place.run_with_input(&["run", "--resume"], "");
    assert!(done.stdout.contains("one step is finished:\n  look: A mess.\n"), "{}", done.shown());
}

#[test]
fn a_person_says_yes_no_or_later() {
    let place = tidy();
    let start = "A mess.\n.\nThe chair.\n.\n";
    let done = place.run_with_input(&["run", "tidy"], &format!("{start}l\n"));
    insta::assert_snapshot!(done.walked_from("Step 2"), @"
    exit 0
    …
    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    the session stays as it is; this goes on with it:
      workflowlookup run --resume [ID]
    ");
    // Who comes back later decides about what waits.
    let done = place.run_with_input(
        &["run", "--resume"],
        "no, the table too\nBoth.\n.\nn\nand the lamp\nAll.\n.\nn\n\nAll of it.\n.\nYES\n",
    );
    insta::assert_snapshot!(done.walked(), @"
    exit 0
    --- stdout
    Tidy up (tidy)
    session: [ID]
    one step is finished:
      look: A mess.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    not accepted
      - not confirmed: the table too

    Step 2, attempt 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.

    A person has to confirm the output of `agree`:

      │ Both.

    Confirm? [y]es, [n]o with a reason, [l]ater
    Why not?
    not accepted
      - not confirmed: and the lamp

    Step 2, attempt 3: Agree on it (agree)

    A person has to confirm the output of `agree`:

      │ All.

    Confirm? [y]es, [n]o with a reason, [l]ater
    Why not?
    not accepted
      - not confirmed

    Step 2, attempt 4: Agree on it (agree)

    A person has to confirm the output of `agree`:

      │ All of it.

    Confirm? [y]es, [n]o with a reason, [l]ater
    confirmed

    The workflow is complete: every step is done or does not apply.
    a report of all that was done:
      workflowlookup session show [ID] --markdown
    ");
    let done = place.run_with_input(&["run", "tidy"], &format!("{start}The table.\n.\n"));
    insta::assert_snapshot!(done.walked_from("Confirm"), @"
    exit 1
    …
    Confirm? [y]es, [n]o with a reason, [l]ater
    --- stderr
    error: `The table.` is no answer
      try: `y`, `n` and why not, or `l`
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
    let done = place.run_with_input(&["run", "--resume"], "");
    insta::assert_snapshot!(done.walked(), @"
    exit 1
    --- stdout
    Tidy up (tidy)
    session: [ID]
    one step is finished:
      look: A mess.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    --- stderr
    stopped: the input ended while a person has to confirm an output
      try: `workflowlookup run --resume [ID]` goes on
    ");
}

#[test]
fn who_confirms_sees_what_is_reported_with_it() {
    let place = tidy();
    let input = "A mess.\n.\n:set size=large\n:set who=[1, 2]\nThe chair.\n.\nl\n";
    let done = place.run_with_input(&["run", "tidy"], input);
    insta::assert_snapshot!(done.walked_from("A person has"), @r#"
    exit 0
    …
    A person has to confirm the output of `agree`:

      │ The chair.
      and what it reports besides:
      │ size = "large"
      │ who = [1,2]

    Confirm? [y]es, [n]o with a reason, [l]ater
    the session stays as it is; this goes on with it:
      workflowlookup run --resume [ID]
    "#);
}

#[test]
fn back_to_a_step() {
    let place = tidy();
    let input = "A mess.\n.\n:back look I forgot the size\n:set size=large\n:e\nThe chair.\n.\ny\n";
    let mut command = place.command(&["run", "tidy"]);
    // What was handed in then is there to begin with.
    command.env("EDITOR", "grep -q 'A mess.'");
    let done = place.finish(command, input);
    insta::assert_snapshot!(done.walked_from("back at"), @r#"
    exit 1
    …
    back at `look`
    `:e` opens what you had

    Step 1: Look around (look)

    Say what lies about, and set `size`.

    ```
    as it is
    ```

    Your output will be checked for:
    - Name the mess
    with the output: size = "large"
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater
    confirmed

    Step 3: Carry it out (carry)

    Carry the large things out.
    --- stderr
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
    "#);
    let done = place.run_with_input(&["run", "--resume"], ":back tidying why not\n");
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    error: the session has not been at step `tidying`
      try: you have been at `look`, `agree`
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
    let done = place.run_with_input(&["run", "--resume"], ":back look\n");
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    error: going back takes a step and a reason
      try: `:back STEP REASON`; you have been at `look`, `agree`
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
    let done = place.run_with_input(&["run", "--resume"], ":back carry I am here\n");
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    error: `carry` is the current step
      try: you have been at `look`, `agree`
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
}

#[test]
fn an_output_from_a_file() {
    let place = tidy();
    place.write("my notes.md", "A mess.\nAnd more.\n");
    fs::write(place.home().join("notes.md"), "All of it.").unwrap();
    let input = "Seen:\n::-)\n:f my notes.md\n:f ~/notes.md\n";
    let done = place.run_with_input(&["run", "tidy"], input);
    insta::assert_snapshot!(done.walked_from("A person has"), @"
    exit 1
    …
    A person has to confirm the output of `agree`:

      │ All of it.

    Confirm? [y]es, [n]o with a reason, [l]ater
    --- stderr
    stopped: the input ended while a person has to confirm an output
      try: `workflowlookup run --resume [ID]` goes on
    ");
    let done = place.run_with_input(&["run", "--resume"], "l\n");
    assert!(done.stdout.contains("  look: Seen: :-) A mess. And more.\n"), "{}", done.shown());
}

#[test]
fn an_output_from_the_editor() {
    let place = tidy();
    place.write(
        "editor.sh",
        "cat \"$2\" >&2; printf '%s\\n' \"$1\" >> \"$2\"; ls -l \"$2\" | cut -c1-10 >&2",
    );
    let run = |editor: &str, input: &str| {
        let mut command = place.command(&["run", "tidy"]);
        command.env("EDITOR", editor).env("TMPDIR", place.root.path());
        place.finish(command, input)
    };
    // The prompt is not in the file, what was typed is; and nobody else can read it.
    let done = run("sh editor.sh 'A mess.'", "So far\n:e\n");
    insta::assert_snapshot!(done.walked_from("accepted"), @"
    exit 1
    …
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.
    --- stderr
    So far
    -rw-------
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
    ");
    let done = run("sh editor.sh 'A mess.'", "Clean.\n.\n:e\n");
    insta::assert_snapshot!(done.walked_from("not accepted"), @r#"
    exit 1
    …
    not accepted
      - Name the mess
    what to change:
      - Review validation criteria and adjust output accordingly.
      - Include the text "mess", spelt exactly so.

    Step 1, attempt 2: Look around (look)
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    A person confirms the result before the session goes on.
    --- stderr
    Clean.
    -rw-------
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
    "#);
    for (editor, why) in [
        ("false", "the editor ended with status 1. `:e` opens it again."),
        ("true", "the text is as it was. `:e` opens it again."),
        ("no-such-editor", "there is no such editor. `:e` opens it again."),
        ("cp /dev/null", "the text is empty."),
        ("kill $$;", "the editor was ended by a signal. `:e` opens it again."),
    ] {
        let done = run(editor, "Clean.\n.\n:e\nA mess.\n.\n");
        assert!(
            done.stdout.ends_with(&format!("Nothing was handed in: {why}\n")),
            "{}",
            done.shown()
        );
        assert_eq!(done.status, 1);
    }
    let left = fs::read_dir(place.root.path()).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().path().extension().is_some());
    assert_eq!(left.count(), 0);
}

#[test]
fn what_makes_no_sense_stops_a_pipe() {
    let place = tidy();
    place.write("empty.md", "\n");
    place.write("large.md", "!".repeat(256 * 1024 + 1));
    let mut errors = String::new();
    for input in [
        ":param x: the room\n",
        ":skip\n",
        ":set size\n",
        ":set _loops={}\n",
        ":f\n",
        ":f gone.md\n",
        ":f empty.md\n",
        ":f large.md\n",
        ":e\n",
        "A mess.\n.\nThe chair.\n.\nyesterday\n",
    ] {
        let done = place.run_with_input(&["run", "tidy"], &format!("{input}A mess.\n.\n"));
        let stderr = done.stderr.replace(&done.session(), "[ID]");
        assert_eq!(done.status, 1, "{stderr}");
        let (error, stopped) = stderr.split_once("stopped: ").unwrap();
        assert_eq!(
            stopped,
            "nothing more was handed in\n  try: `workflowlookup run --resume [ID]` goes on\n"
        );
        writeln!(errors, "{input}{error}").unwrap();
    }
    insta::assert_snapshot!(errors, @"
    :param x: the room
    error: `:param x: the room` is no command
      try: `::param x: the room`, if it is text

    :skip
    error: a step cannot be skipped: its output is what the next one builds on
      try: `:q` leaves, and `:back STEP REASON` goes back

    :set size
    error: `size` is no context variable
      try: write `:set name=value`

    :set _loops={}
    error: `_loops` is kept by the session and cannot be reported
      try: the session counts loops itself

    :f
    error: there is no file named
      try: `:f PATH`

    :f gone.md
    error: the output `gone.md` cannot be read: No such file or directory (os error 2)
      try: name a file; `~/` is your home folder

    :f empty.md
    error: the file `empty.md` is empty
      try: an empty output is not handed in

    :f large.md
    error: the output is larger than 262144 bytes

    :e
    error: no editor is set, and standard input is no terminal
      try: set $VISUAL or $EDITOR; `:f PATH` hands in a file

    A mess.
    .
    The chair.
    .
    yesterday
    error: `yesterday` is no answer
      try: `y`, `n` and why not, or `l`
    ");
    let done = place.finish(place.command(&["run", "tidy"]), b"A mess \xff.\n.\n");
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    error: the output is not UTF-8 text
      try: `:e` opens what is left of it
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
    // As much as there may be, and no more, however it comes.
    let most = format!("A mess.\n{}", "!".repeat(256 * 1024 - 8));
    let done = place.run_with_input(&["run", "tidy"], &format!("{most}\n.\n"));
    assert!(done.stdout.contains("\naccepted\n"), "{}", done.shown());
    // Six times as long as JSON.
    place.write("control.md", format!("mess{}", "\u{1}".repeat(256 * 1024 - 4)));
    let done = place.run_with_input(&["run", "tidy"], ":f control.md\n");
    assert!(done.stdout.contains("\naccepted\n"), "{}", done.shown());
    let line = "!".repeat(256 * 1024 + 1);
    let at_gate = place.run_with_input(&["run", "tidy"], &format!("A mess.\n.\nGo.\n.\n{line}\n"));
    for large in [format!("{most}!\n.\n"), format!("{line}\n.\n"), "!\n".repeat(3_000_000)] {
        let done = place.run_with_input(&["run", "tidy"], &large);
        let stderr = |done: &Done| done.stderr.replace(&done.session(), "[ID]");
        assert_eq!(stderr(&done), stderr(&at_gate));
    }
    let done = at_gate;
    insta::assert_snapshot!(done.stderr.replace(&done.session(), "[ID]"), @"
    error: an output may have 262144 bytes
      try: make it shorter
    stopped: nothing more was handed in
      try: `workflowlookup run --resume [ID]` goes on
    ");
}

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
