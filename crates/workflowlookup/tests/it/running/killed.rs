//! A walk that is killed in the middle, as hard as can be.

use super::*;

#[test]
fn what_was_accepted_is_there_after_a_kill() {
    let place = tidy();
    let mut live = Live::start(place.command(&["run", "tidy"]));
    live.write(":set size=large\nA mess.\n.\n");
    live.wait_for("Step 2: Agree on it");
    live.write("This was not ended by a dot.\n");
    let id = session_in(&live.kill());
    let input = "The chair.\n.\ny\nGone.\n.\n";
    let done = place.run_with_input(&["run", "--resume"], input);
    assert_eq!(done.session(), id);
    insta::assert_snapshot!(done.walked(), @"
    exit 0
    --- stdout
    Tidy up (tidy)
    session: [ID]
    one step is finished:
      look: A mess.

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
    ");
}

/// Between the check and the decision of a person.
#[test]
fn what_waits_for_a_person_is_there_after_a_kill() {
    let place = tidy();
    let mut live = Live::start(place.command(&["run", "tidy"]));
    live.write("A mess.\n.\nThe chair.\n.\n");
    live.wait_for("[l]ater\n");
    let id = session_in(&live.kill());
    let done = place.run_with_input(&["run", "--resume", &id], "y\n");
    assert_eq!(done.status, 0, "{}", done.shown());
    assert!(done.stdout.contains("  │ The chair.\n"), "{}", done.shown());
}
