//! Where a person confirms: yes, no with a reason, later, and what they see before they decide.

use super::*;

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

    Then you are asked to confirm the result.

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

    Then you are asked to confirm the result.

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
    stopped: the input ended while a person has to decide
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
