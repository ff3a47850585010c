//! Outputs of earlier steps, read back by copies: from their own log, and from their original while it is in the store.

use store::sessions::{Attempt, AttemptLookup, AttemptQuery, UnavailableOutput};
use store::{Definition, Head, NewEvent, NewSession, Status};

use super::*;

fn workflow() -> Workflow {
    let definition = json!({
        "id": "shed", "name": "Shed", "description": "Builds a shed", "version": "1.0.0",
        "steps": [
            {"id": "plan", "title": "Plan", "prompt": "Plan."},
            {"id": "build", "title": "Build", "prompt": "Build {{steps.plan.output}}."},
            {"id": "check", "title": "Check",
             "prompt": "Check {{steps.build.output}} against {{steps.plan.output}}."},
        ],
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap()
}

/// A session `s1` that is planned, and a copy `c1` of it at the step after that. The original is complete.
fn with_copy() -> World {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    advance(&sessions, "s1", 0, "plan", "a small shed");
    fork(&sessions, "s1", 1, "build", "c1");
    advance(&sessions, "s1", 1, "build", "the shed of s1");
    advance(&sessions, "s1", 2, "check", "good");
    world
}

fn advance(sessions: &Sessions, id: &str, revision: u64, step: &str, output: &str) {
    let advanced = sessions.advance(id, revision, &submission(step, output), 2).unwrap();
    assert_eq!(advanced.verdict, Verdict::Accepted);
}

fn fork(sessions: &Sessions, id: &str, revision: u64, step: &str, copy: &str) {
    let ids = NewIds { id: copy.to_owned(), owner: "me".to_owned(), time: 3, ..NewIds::default() };
    sessions.fork(id, revision, step, "another try", ids).unwrap();
}

/// Removes every session that is complete.
fn prune(sessions: &Sessions) {
    assert!(sessions.store().prune(u64::from(u32::MAX), 9).unwrap() > 0);
}

fn prompt(sessions: &Sessions, id: &str) -> String {
    let session = sessions.open(id).unwrap();
    let (outputs, budget) = (sessions.outputs(&session), engine::Budget::for_call());
    let detail = Opening::Reminder;
    let view = engine::view(&session.workflow, &session.state, detail, &outputs, &budget).unwrap();
    let prompt = view.guidance.prompt.to_string();
    outputs.finish().unwrap();
    prompt.lines().next().unwrap().to_owned()
}

fn lookup(sessions: &Sessions, id: &str, step: &str) -> AttemptLookup {
    let session = sessions.open(id).unwrap();
    sessions.attempt(&session, step, AttemptQuery::default()).unwrap()
}

fn output(sessions: &Sessions, id: &str, step: &str) -> String {
    match lookup(sessions, id, step) {
        AttemptLookup::Found(Attempt { output, .. }) => output,
        other => panic!("{id} {step}: {other:?}"),
    }
}

#[track_caller]
fn assert_unavailable(sessions: &Sessions, id: &str, step: &str, why: UnavailableOutput) {
    let found = lookup(sessions, id, step);
    assert_eq!(found, AttemptLookup::Missing { earlier: Some(why) }, "{id} {step}");
}

#[test]
fn copy_reads_outputs_of_its_original() {
    let world = with_copy();
    let sessions = world.sessions();
    assert_eq!(prompt(&sessions, "c1"), "Build a small shed.");
    assert_eq!(output(&sessions, "c1", "plan"), "a small shed");
    // What the original did after the copy was made is not the copy's.
    assert_eq!(lookup(&sessions, "c1", "build"), AttemptLookup::Missing { earlier: None });
}

#[test]
fn copy_keeps_its_outputs_when_the_original_is_pruned() {
    let world = with_copy();
    let sessions = world.sessions();
    prune(&sessions);
    let plan = "(the output of step `plan` is not available: its original session was removed)";
    assert_eq!(prompt(&sessions, "c1"), format!("Build {plan}."));
    assert_unavailable(&sessions, "c1", "plan", UnavailableOutput::OriginalRemoved);
    advance(&sessions, "c1", 0, "build", "a blue shed");
    assert_eq!(output(&sessions, "c1", "build"), "a blue shed");
    assert_eq!(prompt(&sessions, "c1"), format!("Check a blue shed against {plan}."));
    // A copy of the copy reads on until where the chain is broken.
    fork(&sessions, "c1", 1, "check", "c2");
    assert_eq!(output(&sessions, "c2", "build"), "a blue shed");
    assert_unavailable(&sessions, "c2", "plan", UnavailableOutput::OriginalRemoved);
    assert_eq!(prompt(&sessions, "c2"), format!("Check a blue shed against {plan}."));
}

#[test]
fn imported_copy_says_that_it_came_without_its_original() {
    let world = with_copy();
    let sessions = world.sessions();
    advance(&sessions, "c1", 0, "build", "a blue shed");
    let log = sessions.store().export("c1").unwrap();
    let elsewhere = World::new();
    import(&elsewhere, &log).unwrap();
    let sessions = elsewhere.sessions();
    let why = "the session was imported without its original";
    let plan = format!("(the output of step `plan` is not available: {why})");
    assert_eq!(prompt(&sessions, "c1"), format!("Check a blue shed against {plan}."));
    assert_eq!(output(&sessions, "c1", "build"), "a blue shed");
    assert_unavailable(&sessions, "c1", "plan", UnavailableOutput::OriginalNotImported);
    // In the store that has the original it says the same: the file may name any session.
    prune_and_import_again(&world, &log);
    let sessions = world.sessions();
    assert_eq!(prompt(&sessions, "c1"), format!("Check a blue shed against {plan}."));
    assert_unavailable(&sessions, "c1", "plan", UnavailableOutput::OriginalNotImported);
    // So does a copy of the imported one.
    fork(&sessions, "c1", 1, "check", "c2");
    assert_eq!(output(&sessions, "c2", "build"), "a blue shed");
    assert_unavailable(&sessions, "c2", "plan", UnavailableOutput::OriginalNotImported);
}

/// Imports the copy into its own store, which has the original once more.
fn prune_and_import_again(world: &World, copy: &ExportedLog) {
    let sessions = world.sessions();
    let original = sessions.store().export("s1").unwrap();
    advance(&sessions, "c1", 1, "check", "good");
    prune(&sessions);
    import(world, &original).unwrap();
    import(world, copy).unwrap();
}

#[test]
fn outputs_of_a_removed_session_are_not_found() {
    let world = with_copy();
    let sessions = world.sessions();
    let session = sessions.open("s1").unwrap();
    prune(&sessions);
    let found = sessions.attempt(&session, "plan", AttemptQuery::default());
    assert!(matches!(found, Err(Error::NotFound)), "{found:?}");
}

/// Imports of earlier versions of the product did not check locations.
#[test]
fn location_of_no_event_is_not_damage() {
    let world = with_copy();
    let sessions = world.sessions();
    let hash = sessions.store().meta("c1").unwrap().unwrap().definition;
    let text = sessions.store().definition(&hash).unwrap().unwrap();
    let mut log = json!(sessions.store().export("c1").unwrap());
    let started = &mut log["events"][0]["body"];
    for (id, version) in [("x1", u64::MAX), ("x2", 9), ("x3", 1), ("x4", 0)] {
        started["outputs"] = json!({"plan": {"version": version}});
        let body = started.to_string();
        let event = NewEvent { kind: "started".to_owned(), body, ..NewEvent::default() };
        let step = Some("build".to_owned());
        let new = NewSession {
            id: id.to_owned(),
            key: None,
            owner: "me".to_owned(),
            shared_with: Vec::new(),
            workflow: "shed".to_owned(),
            goal: String::new(),
            definition: Definition { hash: hash.clone(), text: text.clone() },
            event,
            head: Head { status: Status::Running, step, revision: 0 },
            time: 4,
        };
        sessions.store().create_now(new).unwrap();
        let plan = "(the output of step `plan` is not available: no record of it was found)";
        assert_eq!(prompt(&sessions, id), format!("Build {plan}."), "{version}");
    }
}
