//! `session approve` and `session reject` at a terminal.

use serde_json::json;

use crate::Place;
use crate::agent::{Agent, LETTER, advance, structured};
use crate::running::live::Live;

#[test]
fn only_what_the_terminal_showed_is_decided() {
    for (verb, question) in [("approve", "Approve? [y/N] "), ("reject", "Reject? [y/N] ")] {
        let place = Place::new();
        place.write("workflows/letter.json", LETTER);
        let mut agent = Agent::start(&place);
        let session = agent.start_session("letter");
        agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
        agent.call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
        let decide = || Live::at_terminal(place.command(&["session", verb, &session]), 80);

        // The agent hands in something else while the person reads.
        let mut late = decide();
        late.wait_for("by post");
        late.wait_for(question);
        let waits = agent.call("workflow_advance", &advance(&session, 1, "send-it", "by pigeon"));
        assert_eq!(structured(&waits)["waiting"]["version"], 4);
        late.write("y\n");
        assert_eq!(late.ended(), Some(1));
        let shown = late.shown();
        assert!(shown.contains("version 4 waits for a person now"), "{shown}");
        assert_eq!(agent.status(&session)["waitingOutput"], "by pigeon", "it waits still");

        let mut undecided = decide();
        undecided.wait_for("by pigeon");
        undecided.wait_for(question);
        undecided.write("n\n");
        assert_eq!(undecided.ended(), Some(1));
        assert_eq!(agent.status(&session)["waiting"]["version"], 4);

        let mut decided = decide();
        decided.wait_for(question);
        decided.write("y\n");
        assert_eq!(decided.ended(), Some(0), "{}", decided.shown());
        assert_eq!(agent.status(&session)["waiting"], json!(null));
        agent.end();
    }
}
