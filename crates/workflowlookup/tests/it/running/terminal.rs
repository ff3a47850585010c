//! `run` at a terminal: broken lines, questions, and that nothing typed is lost.

use super::*;

const COLUMNS: u16 = 60;

fn at_terminal(place: &Place, arguments: &[&str]) -> Live {
    let mut command = place.command(arguments);
    // An editor that shows what it is given, and changes nothing.
    command.env("EDITOR", "cat").env("TMPDIR", place.root.path());
    Live::at_terminal(command, COLUMNS)
}

#[test]
fn a_walk_at_a_terminal() {
    let place = tidy();
    let mut live = at_terminal(&place, &["run", "tidy"]);
    live.wait_for("> ");
    live.write(":set size=large\n");
    live.wait_for("> ");
    live.write("A mess.\n");
    live.wait_for("> ");
    // By Ctrl-D.
    live.write("\u{4}");
    live.wait_for("Step 2");
    live.wait_for("> ");
    live.write("The chair.\n");
    live.wait_for("\n> ");
    live.write(".\n");
    live.wait_for("[l]ater: ");
    live.write("perhaps\n");
    live.wait_for("[l]ater: ");
    live.write("n\n");
    live.wait_for("Why not? ");
    live.write("the table too\n");
    live.wait_for("> ");
    live.write(":q\n");
    assert_eq!(live.ended(), Some(0));
    let shown = live.shown();
    insta::assert_snapshot!(shown.replace(&session_in(&shown), "[ID]"), @r#"
    Tidy up (tidy)
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

    Type the output, and end it with a line that has only a dot,
    or with Ctrl-D.
    . hand in · :e editor · :f file · :set variable · :q leave ·
    :? help
    > :set size=large
    with the output: size = "large"
    > A mess.
    > 
    accepted

    Step 2: Agree on it (agree)

    Say what goes.

    Then you are asked to confirm the result.

    . hand in · :e editor · :f file · :set variable · :q leave ·
    :? help
    > The chair.
    > .

    A person has to confirm the output of `agree`:

      │ The chair.

    Confirm? [y]es, [n]o with a reason, [l]ater: perhaps
    error: `perhaps` is no answer
      try: `y`, `n` and why not, or `l`
    Confirm? [y]es, [n]o with a reason, [l]ater: n
    Why not? the table too
    not accepted
      - not confirmed: the table too

    Step 2, attempt 2: Agree on it (agree)

    . hand in · :e edit what you had · :f file · :set variable ·
    :p prompt · :q leave · :? help
    > :q
    the session stays as it is; this goes on with it:
      workflowlookup run --resume [ID]
    "#);
}

#[test]
fn what_makes_no_sense_loses_nothing() {
    let place = tidy();
    let mut live = at_terminal(&place, &["run", "tidy"]);
    live.wait_for("> ");
    for line in
        ["A mess", ":param", ":skip", ":f gone.md", ":set size", ":back", "and more.", ":?", ":p"]
    {
        live.write(&format!("{line}\n"));
        live.wait_for("\n> ");
    }
    live.write(".\n");
    live.wait_for("Step 2");
    live.wait_for("> ");
    // At the end of nothing one leaves.
    live.write("\u{4}");
    assert_eq!(live.ended(), Some(0));
    let done = place.run(&["run", "--resume"]);
    assert!(done.stdout.contains("  look: A mess and more.\n"), "{}", done.shown());
}

#[test]
fn somebody_elses_step_does_not_cost_what_was_typed() {
    let place = tidy();
    let mut live = at_terminal(&place, &["run", "tidy"]);
    let shown = live.wait_for("> ");
    live.write("My own mess.\n");
    live.wait_for("\n> ");
    let done = place.run_with_input(&["run", "--resume", &session_in(&shown)], "A mess.\n.\n");
    assert_eq!(done.status, 1, "{}", done.shown());
    live.write(".\n");
    live.wait_for("Somebody else has gone on");
    live.wait_for("Step 2");
    live.wait_for("\n> ");
    // The editor shows what it was given, and that is handed in.
    live.write(":e\n");
    live.wait_for("My own mess.");
    live.wait_for("A person has to confirm");
    live.wait_for("My own mess.");
}

/// It is for the editor to say what Ctrl-C means; without an editor it ends the walk.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_is_the_editors_while_it_runs() {
    let place = tidy();
    place.write("editor.sh", "trap 'echo A mess. > \"$1\"; exit 0' INT; echo ready; read line");
    // Only what has a terminal as its own is reached by its keys, and only if the tests were not started in the
    // background of a script, whose children do not hear of them.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "env", "--default-signal=INT,QUIT"]);
    command.args([env!("CARGO_BIN_EXE_workflowlookup"), "run", "tidy"]);
    // Whether there is colour depends on the environment, so it gets none of ours.
    command.current_dir(place.project()).env_clear().env("HOME", place.home());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("EDITOR", "sh editor.sh").env("TMPDIR", place.root.path());
    let mut live = Live::at_terminal(command, COLUMNS);
    live.wait_for("> ");
    live.write(":e\n");
    live.wait_for("ready");
    live.write("\u{3}");
    live.wait_for("accepted");
    live.wait_for("\n> ");
    live.write("\u{3}");
    assert_eq!(live.ended(), None, "ended by a signal: {}", live.shown());
    let done = place.run(&["run", "--resume"]);
    assert!(done.stdout.contains("  look: A mess.\n"), "{}", done.shown());
}
