//! The gate of a loop is decided before its first step is handed out, and nothing leads around it.

use store::Status;

use super::*;

fn workflow() -> Workflow {
    let definition = json!({
        "id": "wipe", "name": "Wipe", "description": "Wipes disks", "version": "1.0.0",
        "steps": [
            {"id": "plan", "title": "Plan", "prompt": "Plan."},
            {"id": "each", "type": "loop", "title": "Each", "requireConfirmation": true,
             "loop": {"type": "for", "count": 2, "maxIterations": 2},
             "body": [{"id": "erase", "title": "Erase", "prompt": "Erase it."}]},
        ],
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap()
}

/// What is handed out, and how the session is listed.
fn seen(sessions: &Sessions, id: &str) -> (Option<String>, Status, Option<String>) {
    let session = sessions.open(id).unwrap();
    let view = view(&session).unwrap();
    let meta = sessions.store().meta(id).unwrap().unwrap();
    (view.step.map(|step| step.id.to_owned()), meta.head.status, meta.head.step)
}

#[test]
fn a_loop_waits_before_its_first_step_whatever_is_tried() {
    let world = World::new();
    let closed = (None, Status::Waiting, Some("each".to_owned()));
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    let arrived = sessions.advance("s1", 0, &submission("plan", "all"), 2).unwrap();
    assert_eq!(arrived.verdict, Verdict::Accepted);
    assert_eq!(seen(&sessions, "s1"), closed);
    // A process that was just started sees the same.
    let sessions = world.sessions();
    assert_eq!(seen(&sessions, "s1"), closed);
    let refused = sessions.advance("s1", 1, &submission("erase", "gone"), 3);
    let is_refused =
        matches!(refused, Err(Error::Refused { refusal: Refusal::LoopGate { .. }, .. }));
    assert!(is_refused);
    // A rejection hands out nothing.
    sessions.decline("s1", 2, &decision(Some("not today")), 4).unwrap();
    assert_eq!(seen(&sessions, "s1"), closed);
    let gate = sessions.open("s1").unwrap().state.loop_gate.clone().unwrap();
    assert_eq!(gate.rejection.unwrap().reason.as_deref(), Some("not today"));
    // Neither does going back to the step behind the gate, nor a copy from there.
    sessions.rewind("s1", 2, "erase", "around it", 5).unwrap();
    assert_eq!(seen(&sessions, "s1"), closed);
    let copy = NewIds { id: "c1".to_owned(), owner: "me".to_owned(), ..NewIds::default() };
    sessions.fork("s1", 3, "erase", "around it", copy).unwrap();
    assert_eq!(seen(&sessions, "c1"), closed);
    // Who decided about what they saw before decides nothing now.
    let late = sessions.approve("s1", 2, &decision(None), 6);
    assert!(matches!(late, Err(Error::NoLonger { .. })));
    sessions.approve("s1", 4, &decision(None), 6).unwrap();
    let opened = (Some("erase".to_owned()), Status::Running, Some("erase".to_owned()));
    assert_eq!(seen(&sessions, "s1"), opened);
    // Once approved, its steps can be done anew without another decision; the second iteration asks nobody.
    sessions.advance("s1", 4, &submission("erase", "gone"), 7).unwrap();
    sessions.rewind("s1", 5, "plan", "again", 8).unwrap();
    sessions.advance("s1", 6, &submission("plan", "all"), 9).unwrap();
    assert_eq!(seen(&sessions, "s1"), closed, "but another start of the loop asks again");
    sessions.approve("s1", 8, &decision(None), 6).unwrap();
    sessions.advance("s1", 8, &submission("erase", "gone"), 7).unwrap();
    assert_eq!(seen(&sessions, "s1"), opened);
    sessions.advance("s1", 9, &submission("erase", "gone"), 7).unwrap();
    assert_eq!(seen(&sessions, "s1"), (None, Status::Complete, None));
    let finished = sessions.summary(&sessions.open("s1").unwrap(), 9).unwrap().steps;
    let finished: Vec<_> = finished.into_iter().map(|done| done.step).collect();
    assert_eq!(finished, ["plan", "erase", "erase"]);
    assert_eq!(sessions.verify("s1").unwrap().flaws, Vec::<String>::new());
    // What happened so is decided so again elsewhere.
    for id in ["s1", "c1"] {
        import(&World::new(), &sessions.store().export(id).unwrap()).unwrap();
    }
}

/// Sessions that began before the rules number was recorded go on as they began.
#[test]
fn an_old_session_asks_with_the_output_of_the_first_step() {
    let text = include_str!("../../logs/session-1-loop.json");
    let log: ExportedLog = serde_json::from_str(text).unwrap();
    let world = World::new();
    import(&world, &log).unwrap();
    let (sessions, id) = (world.sessions(), &*log.session.id);
    let session = sessions.open(id).unwrap();
    let view = view(&session).unwrap();
    assert_eq!(view.step.map(|step| step.id), Some("erase"));
    let revision = session.state.revision;
    let advanced = sessions.advance(id, revision, &submission("erase", "gone"), 9).unwrap();
    assert_eq!(advanced.verdict, Verdict::Waiting);
}

/// Logs of rules 2, before a loop for the second time: as they were written, and imported once already. They are never
/// changed, and must always mean the same.
#[test]
fn a_stored_session_waits_before_its_loop() {
    let logs = [
        (include_str!("../../logs/session-2-loop.json"), 8),
        (include_str!("../../logs/session-2-imported.json"), 9),
    ];
    for (text, version) in logs {
        let log: ExportedLog = serde_json::from_str(text).unwrap();
        let world = World::new();
        import(&world, &log).unwrap();
        let (sessions, id) = (world.sessions(), &*log.session.id);
        let closed = (None, Status::Waiting, Some("each".to_owned()));
        assert_eq!(seen(&sessions, id), closed);
        let state = &sessions.open(id).unwrap().state;
        assert_eq!((state.revision, state.imported.as_ref().unwrap().unverified), (6, 2));
        sessions.approve(id, version, &decision(None), 9).unwrap();
        assert_eq!(seen(&sessions, id).0.as_deref(), Some("erase"));
    }
}
