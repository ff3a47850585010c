//! `run`: a person's way through a workflow, by a pipe. How it is at a terminal is in `running/terminal.rs`.

mod gates;
mod killed;
pub(super) mod live;
mod resuming;
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

    Checked for:
    - Name the mess

    Report what later steps use, by `:set NAME=VALUE`:
    - `size` (compared with "large")
    with the output: size = "large"
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.

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

/// No tool of an agent's is named, and nobody is told to ask their user.
#[test]
fn prompts_are_worded_for_a_person() {
    let place = Place::new();
    place.write("workflows/parcel.yaml", include_str!("../transcripts/workflows/parcel.yaml"));
    let input = ":set size=large\nTwo kilos.\n.\nOne.\n.\nTwo.\n.\n";
    let done = place.run_with_input(&["run", "parcel"], input);
    insta::assert_snapshot!(done.walked_from("First make"), @r#"
    exit 1
    …
    First make sure that:
    - The parcel is closed

    Settle first:
    - Is it urgent?

    Throughout:
    - Lift with your knees

    Step 1: Weigh (weigh)

    Weigh it.

    Checked for:
    - Be short (at most 20000 characters)

    Report by `:set NAME=VALUE`:
    - `size`: "small" or "large" (how large the parcel is)
    with the output: size = "large"
    accepted

    Step 2: Lift the large one (lift)

    Iteration 1 of 2: Carry

    It was: Two kilos.
    accepted

    Step 3: Lift the large one (lift)

    Iteration 2 of 2: Carry

    It was: Two kilos.
    accepted

    Step 4: Send off (send-off)

    Loop `carry` ended after 2 iterations.

    Carried: Two.

    Then you are asked to confirm the result.
    --- stderr
    stopped: the input ended before the workflow was complete
      try: `workflowlookup run --resume [ID]` goes on
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
      - Include the text "mess", spelt exactly so.
    still set: size

    Step 1, attempt 2: Look around (look)
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.
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

    Checked for:
    - Name the mess

    Report what later steps use, by `:set NAME=VALUE`:
    - `size` (compared with "large")

    what was handed in last was not accepted
      - Name the mess
    what to change:
      - Include the text "mess", spelt exactly so.
    still set: size
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.

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

    Then you are asked to confirm the result.
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

    Checked for:
    - Name the mess

    Report what later steps use, by `:set NAME=VALUE`:
    - `size` (compared with "large")
    with the output: size = "large"
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.

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
    stopped: the input ended while a person has to decide
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

    Then you are asked to confirm the result.
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
      - Include the text "mess", spelt exactly so.

    Step 1, attempt 2: Look around (look)
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.
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
