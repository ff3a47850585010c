//! `session approve` and `session reject` at a terminal.

use serde_json::json;

use crate::Place;
use crate::agent::{Agent, Era, Heard, LETTER, advance, structured};
use crate::running::live::Live;
use crate::transcripts::Process;

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

/// A letter to each friend, and one more step, whose title quotes the last letter.
const LETTERS: &str = "
id: letters
name: Letters
description: Writes to friends
version: 1.0.0
steps:
  - id: each
    type: loop
    title: Each
    loop: { type: forEach, items: friends, itemVar: friend, maxIterations: 9 }
    body:
      - { id: write-it, title: 'Write to {{friend}}', prompt: Write., requireConfirmation: true }
  - { id: send-it, title: 'Send {{steps.write-it.output}}{{ghost}}', prompt: Send., requireConfirmation: true }
";

#[test]
fn titles_are_filled_for_people_and_agents() {
    let place = Place::new();
    place.write("workflows/letters.yaml", LETTERS);
    let mut command = place.command(&["serve"]);
    command.stderr(std::process::Stdio::null());
    let capabilities = json!({"elicitation": {}});
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, capabilities);
    let context = json!({"friends": ["Ada", "Bob"]});
    let begun = json!({"workflowId": "letters", "context": context});
    let begun = agent.call("workflow_start", &begun);
    let session = structured(&begun)["sessionId"].as_str().unwrap().to_owned();
    // The user looks away, and a person decides at the command line.
    let mut submit = |revision, step, output, version: &str, shown: &str| {
        agent.begin_call("workflow_advance", &advance(&session, revision, step, output));
        let message = loop {
            match agent.hear().unwrap() {
                Heard::Asked { message, .. } => break message,
                Heard::Told { .. } => {}
                Heard::Answer { result, .. } => panic!("{result}"),
            }
        };
        assert!(message.contains(&format!("step `{step}`, {shown}, before")), "{message}");
        let name = format!("step `{step}` ({shown})");
        let show = place.run(&["session", "show", &session]).stdout;
        assert!(show.contains(&format!("stands at    {name}")), "{show}");
        assert!(show.contains(&format!("the output of {name}, version {version}")), "{show}");
        let approved = place.run(&["session", "approve", &session, "--version", version]).stdout;
        assert!(approved.contains(&format!("approved the output of {name}")), "{approved}");
        agent.answer();
    };
    submit(0, "write-it", "Dear Ada", "2", "Write to Ada");
    submit(1, "write-it", "Dear Bob", "4", "Write to Bob");
    submit(2, "send-it", "Sent.", "6", "Send Dear Bob…");
    let status = agent.status(&session);
    let titles = status["finished"].as_array().unwrap().iter().map(|step| &step["title"]);
    let titles: Vec<_> = titles.collect();
    assert_eq!(titles, ["Write to Ada", "Write to Bob", "Send Dear Bob…"]);
    agent.end();
    let report = place.run(&["session", "show", &session, "--markdown"]).stdout;
    for heading in ["1. Write to Ada (`write-it`)", "2. Write to Bob (`write-it`)"] {
        assert!(report.contains(&format!("### {heading}")), "{report}");
    }
    assert!(report.contains("### 3. Send Dear Bob… (`send-it`)"), "{report}");
}
