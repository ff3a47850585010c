//! A file with a session is not believed: every event is decided again, and what nobody can decide again is marked.

use std::sync::Arc;

use engine::{Channel, Decision, Submission};
use serde_json::{Value, json};
use store::sessions::{Error, Importer, Sessions, Start};
use store::{Append, Filter, ImportFile, NewEvent, NewSession, Store};
use workflow::{Format, Scrutiny, Workflow, read};

use crate::forging::reseal;
use crate::{append, session};

const NOW: u64 = 1_800_000_000_000;
const WILD: u64 = 1 << 62;

fn workflow() -> Workflow {
    let definition = json!({
        "id": "letter", "name": "Letter", "description": "Writes a letter", "version": "1.0.0",
        "steps": [
            {"id": "write", "title": "Write", "prompt": "Write.",
             "validationCriteria": [{"type": "contains", "value": "Dear", "message": "Be polite"}]},
            {"id": "send", "title": "Send", "prompt": "Send it.", "requireConfirmation": true},
            {"id": "file", "title": "File", "prompt": "File it."},
        ],
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap()
}

fn on(store: Store) -> Sessions {
    Sessions::new(store, Arc::default())
}

fn importer() -> Importer {
    Importer { owner: "bea".to_owned(), time: NOW }
}

fn import(sessions: &Sessions, log: &Value) -> Result<engine::ImportOrigin, Error> {
    sessions.import(&ImportFile::read(&log.to_string()).unwrap(), &importer())
}

/// Mallory's session, written elsewhere: a bad output, a good one, one that was approved, and back to the first step.
fn honest() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let sessions = on(Store::open(&folder.path().join("sessions.db"), None).unwrap());
    let (id, owner, key) = ("s1".to_owned(), "mallory".to_owned(), Some("k".to_owned()));
    let start = Start { id, owner, key, time: 1, ..Start::default() };
    sessions.start(&workflow(), start).unwrap();
    let outputs = [("write", "Hey"), ("write", "Dear Ada"), ("send", "by post")];
    for (revision, (step, output)) in (0..).zip(outputs) {
        let (step, output) = (step.to_owned(), output.to_owned());
        let submission = Submission { step, output, context: Default::default() };
        sessions.advance("s1", revision, &submission, 2).unwrap();
    }
    let who = "mallory".to_owned();
    let decision = Decision { who, channel: Channel::Cli, reason: None };
    sessions.approve("s1", 4, &decision, 3).unwrap();
    sessions.rewind("s1", 3, "write", "once more", 4).unwrap();
    let log = sessions.store().export("s1").unwrap();
    // As a value its keys are in another order.
    let mut log = serde_json::from_str(&log.to_text().unwrap()).unwrap();
    reseal(&mut log);
    log
}

/// The first events only.
fn cut(mut log: Value, events: usize, head: Value) -> Value {
    log["events"].as_array_mut().unwrap().truncate(events);
    log["head"] = head;
    log["head"]["touched"] = json!(4);
    reseal(&mut log);
    log
}

/// A session that says that it is a copy of another.
fn copy_of(original: &str, version: u64) -> Value {
    let head = json!({"status": "running", "step": "write", "revision": 0});
    let mut log = cut(honest(), 1, head);
    log["session"]["id"] = json!("s2");
    log["events"][0]["body"]["forkedFrom"] = json!({"session": original, "version": version});
    reseal(&mut log);
    log
}

pub(crate) fn an_imported_session_is_its_importers(store: Store) {
    let sessions = on(store);
    let log = honest();
    let origin = import(&sessions, &log).unwrap();
    assert_eq!((&*origin.session, &*origin.owner, origin.unverified), ("s1", "mallory", 1));
    assert_eq!(origin.digest.len(), 64);
    let found = sessions.store().list(&Filter { limit: 9, ..Filter::default() }).unwrap();
    let meta = &found.sessions[0];
    assert_eq!((&*meta.owner, &meta.key, meta.is_imported), ("bea", &None, true));
    assert_eq!((meta.version, meta.touched, meta.created), (7, NOW, 1));
    let session = sessions.open("s1").unwrap();
    assert_eq!(session.state.imported.as_ref(), Some(&origin));
    let verification = sessions.verify("s1").unwrap();
    assert_eq!((verification.flaws, verification.imported), (vec![], Some(origin.clone())));
    assert!(matches!(import(&sessions, &log), Err(Error::Store(store::Error::Exists))));
    // It goes on, and a copy says where it came from too.
    let copied = store::sessions::NewIds { id: "c1".to_owned(), ..Default::default() };
    let revision = session.state.revision;
    let copy = sessions.fork("s1", revision, "write", "try", copied).unwrap();
    assert_eq!(copy.state.imported, Some(origin));
    // Out again and in again elsewhere, it keeps the chain of its origins.
    let folder = tempfile::tempdir().unwrap();
    let third = on(Store::open(&folder.path().join("sessions.db"), None).unwrap());
    let again = sessions.store().export("s1").unwrap().to_text().unwrap();
    let origin = third.import(&ImportFile::read(&again).unwrap(), &importer()).unwrap();
    assert_eq!((&*origin.owner, origin.unverified), ("bea", 1));
    let events = third.store().events("s1", 7, 9).unwrap();
    assert!(events.iter().all(|event| event.kind == "imported") && events.len() == 2);
}

/// A key that a file brings with it would hand the session to whoever starts one with the same key.
pub(crate) fn an_imported_key_reaches_nobody(store: Store) {
    let sessions = on(store);
    let mut log = honest();
    log["session"]["owner"] = json!("victim");
    reseal(&mut log);
    import(&sessions, &log).unwrap();
    for owner in ["victim", "bea", "mallory"] {
        let (id, owner) = (format!("of-{owner}"), owner.to_owned());
        let start = Start { id, owner, key: Some("k".to_owned()), time: 5, ..Start::default() };
        let expected = start.id.clone();
        assert_eq!(sessions.start(&workflow(), start).unwrap().id, expected);
    }
}

pub(crate) fn a_forged_log_is_refused_with_its_place(store: Store) {
    let sessions = on(store);
    let looping = json!({
        "id": "letter", "name": "Letter", "description": "Writes a letter", "version": "1.0.0",
        "steps": [
            {"id": "write", "type": "loop", "title": "A", "body": "send",
             "loop": {"type": "for", "count": 2, "maxIterations": 2}},
            {"id": "send", "type": "loop", "title": "B", "body": "write",
             "loop": {"type": "for", "count": 2, "maxIterations": 2}},
            {"id": "file", "title": "File", "prompt": "File it."},
        ],
    });
    let strict = json!({"body": {"strict": true}});
    let approved = honest()["events"][4].clone();
    // What is changed, into what, and where the import stops.
    let cases: &[(&str, Value, &str)] = &[
        ("/definition/text", json!(looping.to_string()), "/definition/text"),
        ("/definition/text", json!("{}"), "/definition/text"),
        ("/events/5/body/version", json!(WILD), "/events/5/body/version"),
        ("/events/5/body/version", json!(2), "/events/5/body/version"),
        ("/events/5/body/version", json!(0), "/events/5/body/version"),
        ("/events/5/body/context", json!({"x": 1}), "/events/5/body/place"),
        ("/events/5/body/place/step", json!("file"), "/events/5/body/version"),
        ("/events/0/body/context/x", json!(1), "/events/5/body/place"),
        ("/events/0/body/rules", json!(99), "/events/0/body/rules"),
        ("/events/0/body/gated", json!(["send"]), "/events/0/body"),
        ("/events/0/body/place/step", json!("file"), "/events/0/body/place/step"),
        ("/events/0/body/workflowId", json!("other"), "/session/workflow"),
        ("/events/0/time", json!(NOW + (1 << 40)), "/events/0/time"),
        ("/events/1/body/submission/output", json!("Dear"), "/events/1/body/type"),
        ("/events/1/revision", json!(7), "/events/1/revision"),
        ("/events/1/kind", json!("accepted"), "/events/1/kind"),
        ("/events/2/body/submission/output", json!("Hey"), "/events/2/body/type"),
        ("/events/2/body/submission/step", json!("send"), "/events/2/body"),
        ("/events/2/body/place/step", json!("file"), "/events/2/body/place/step"),
        ("/events/2/body/place/completed", json!([]), "/events/2/body/place/completed"),
        ("/events/3", approved, "/events/3/body"),
        ("/events/0", strict, "/events/4/body"),
        ("/session/goal", json!("another"), "/session/goal"),
        ("/session/created", json!(WILD), "/session/created"),
        ("/head/step", json!("file"), "/head"),
        ("/head/status", json!("complete"), "/head"),
    ];
    for (place, value, wanted) in cases {
        let mut log = honest();
        merge(&mut log, place, value);
        reseal(&mut log);
        let refused = import(&sessions, &log);
        let Err(Error::Mismatch(mismatch)) = refused else { panic!("{place}: {refused:?}") };
        assert_eq!(mismatch.pointer, *wanted, "{place}: {mismatch}");
        assert_eq!(sessions.store().meta("s1"), Ok(None), "{place}");
    }
    for version in [WILD, 0] {
        let refused = import(&sessions, &copy_of("s9", version));
        let Err(Error::Mismatch(mismatch)) = refused else { panic!("{refused:?}") };
        assert_eq!(mismatch.pointer, "/events/0/body/forkedFrom");
    }
    let mut elsewhere = copy_of("s9", 1);
    elsewhere["events"][0]["body"]["place"] = json!({"step": "file", "completed": ["write"]});
    reseal(&mut elsewhere);
    let Err(Error::Mismatch(mismatch)) = import(&sessions, &elsewhere) else { panic!() };
    assert_eq!(mismatch.pointer, "/events/0/body/place", "no copy can begin there");
}

/// A session, with texts that refer to earlier outputs, that is planned, and its copy at the step after that.
fn with_references() -> (Value, Value) {
    let step = |id: &str, prompt: &str| json!({"id": id, "title": "T", "prompt": prompt});
    let definition = json!({
        "id": "shed", "name": "Shed", "description": "Builds a shed", "version": "1.0.0",
        "steps": [
            step("plan", "Plan."),
            step("build", "Build {{steps.plan.output}}."),
            {"id": "each", "type": "loop", "title": "Each", "body": [step("paint", "Paint.")],
             "loop": {"type": "for", "count": 2, "maxIterations": 2}},
        ],
    });
    let workflow = read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax);
    let folder = tempfile::tempdir().unwrap();
    let sessions = on(Store::open(&folder.path().join("sessions.db"), None).unwrap());
    let start = Start { id: "s1".to_owned(), time: 1, ..Start::default() };
    sessions.start(&workflow.workflow.unwrap(), start).unwrap();
    let (step, output) = ("plan".to_owned(), "a small shed".to_owned());
    let submission = Submission { step, output, context: Default::default() };
    sessions.advance("s1", 0, &submission, 2).unwrap();
    let ids = store::sessions::NewIds { id: "c1".to_owned(), time: 3, ..Default::default() };
    sessions.fork("s1", 1, "build", "try", ids).unwrap();
    let export = |id: &str| {
        let text = sessions.store().export(id).unwrap().to_text().unwrap();
        let mut log = serde_json::from_str(&text).unwrap();
        reseal(&mut log);
        log
    };
    (export("s1"), export("c1"))
}

#[track_caller]
fn assert_refused(sessions: &Sessions, mut log: Value, pointer: &str) {
    reseal(&mut log);
    let refused = import(sessions, &log);
    let Err(Error::Mismatch(mismatch)) = refused else { panic!("{pointer}: {refused:?}") };
    assert_eq!(mismatch.pointer, pointer, "{mismatch}");
}

/// A session that did not refer to outputs would take them from the context, which an agent can set.
pub(crate) fn a_forged_output_is_refused_in_the_context(store: Store) {
    let sessions = on(store);
    let (original, copy) = with_references();
    let forged = json!({"steps": {"plan": {"output": "FORGED"}}});
    for mut log in [original.clone(), copy.clone()] {
        let started = log["events"][0]["body"].as_object_mut().unwrap();
        assert_eq!(started.remove("referencesOutputs"), Some(json!(true)));
        started.remove("outputs");
        assert_refused(&sessions, log.clone(), "/events/0/body/referencesOutputs");
        // Sessions of rules 1 have no such field, and no such context either.
        log["events"][0]["body"].as_object_mut().unwrap().remove("rules");
        let mut late = log.clone();
        log["events"][0]["body"]["context"] = forged.clone();
        let place = match log["session"]["id"].as_str() {
            // The engine refuses it.
            Some("s1") => "/events/0/body",
            _ => "/events/0/body/context",
        };
        assert_refused(&sessions, log, place);
        if late["session"]["id"] == "s1" {
            late["events"][1]["body"]["submission"]["context"] = forged.clone();
            assert_refused(&sessions, late, "/events/1/body/submission/context");
        }
    }
    let mut marked = honest();
    marked["events"][0]["body"]["referencesOutputs"] = json!(true);
    assert_refused(&sessions, marked, "/events/0/body/referencesOutputs");
    let mut old = original;
    for field in ["rules", "referencesOutputs"] {
        old["events"][0]["body"].as_object_mut().unwrap().remove(field).unwrap();
    }
    reseal(&mut old);
    import(&sessions, &old).unwrap();
    import(&sessions, &copy).unwrap();
}

pub(crate) fn outputs_of_a_copy_lie_before_it(store: Store) {
    let sessions = on(store);
    let (_, copy) = with_references();
    let outputs = &copy["events"][0]["body"]["outputs"];
    assert_eq!(*outputs, json!({"plan": {"session": "s1", "version": 2}}));
    let of = |session: &str, version: u64| json!({"session": session, "version": version});
    for (step, location) in [
        ("plan", json!({"version": u64::MAX})),
        ("plan", json!({"version": 1})),
        ("plan", of("c1", 2)),
        ("plan", of("", 2)),
        ("plan", of(&"s".repeat(129), 2)),
        ("plan", of("s1", 3)),
        ("plan", of("s1", u64::MAX)),
        ("plan", of("s1", 1)),
        ("plan", of("s1", 0)),
        ("plan", of("s0", WILD)),
        ("each", of("s1", 2)),
        ("later", of("s1", 2)),
    ] {
        let mut log = copy.clone();
        log["events"][0]["body"]["outputs"] = json!({step: location});
        assert_refused(&sessions, log, &format!("/events/0/body/outputs/{step}"));
    }
    let mut unused = copy_of("s9", 3);
    unused["events"][0]["body"]["outputs"] = json!({"write": of("s9", 2)});
    assert_refused(&sessions, unused, "/events/0/body/outputs");
    // The original may be a copy too.
    let mut log = copy;
    log["events"][0]["body"]["outputs"]["paint"] = of("s0", 4);
    reseal(&mut log);
    import(&sessions, &log).unwrap();
}

/// Objects are merged; anything else takes the place of what was there.
fn merge(log: &mut Value, place: &str, value: &Value) {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = log.pointer_mut(parent).unwrap();
    let target = match parent {
        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
        parent => &mut parent[key],
    };
    match (target, value.pointer("/body/strict")) {
        (target, Some(strict)) => target["body"]["strict"] = strict.clone(),
        (target, None) => *target = value.clone(),
    }
}

pub(crate) fn a_forged_decision_counts_as_unverified(store: Store) {
    let sessions = on(store);
    let head = json!({"status": "running", "step": "file", "revision": 3});
    let mut log = cut(honest(), 5, head);
    log["events"][4]["body"]["decision"] = json!({"who": "the boss", "channel": "token"});
    reseal(&mut log);
    assert_eq!(import(&sessions, &log).unwrap().unverified, 1);
    assert_eq!(sessions.verify("s1").unwrap().imported.unwrap().unverified, 1);
    // A copy's beginning is another thing that nobody can decide again.
    assert_eq!(import(&sessions, &copy_of("s9", 3)).unwrap().unverified, 1);
}

pub(crate) fn a_copy_from_a_file_shows_nothing_of_the_session_that_it_names(store: Store) {
    let sessions = on(store);
    let (id, owner) = ("secret".to_owned(), "victim".to_owned());
    sessions.start(&workflow(), Start { id, owner, time: 1, ..Start::default() }).unwrap();
    let (step, output) = ("write".to_owned(), "Dear diary".to_owned());
    let submission = Submission { step, output, context: Default::default() };
    sessions.advance("secret", 0, &submission, 2).unwrap();
    import(&sessions, &copy_of("secret", 2)).unwrap();
    let session = sessions.open("s2").unwrap();
    let summary = sessions.summary(&session, 9).unwrap();
    assert!(summary.steps.is_empty() && summary.is_cut, "{summary:?}");
}

/// Whoever has written a log like this, reading it ends.
pub(crate) fn wild_numbers_in_a_log_end_a_summary(store: Store) {
    let body = |body: Value| NewEvent { body: body.to_string(), ..Default::default() };
    let place = json!({"step": "write"});
    let origin = json!({"session": "a", "version": WILD});
    let started =
        json!({"type": "started", "workflowId": "letter", "forkedFrom": origin, "place": place});
    let started = NewEvent { kind: "started".to_owned(), ..body(started) };
    let sessions = on(store);
    let definition = {
        let start = Start { id: "other".to_owned(), time: 1, ..Start::default() };
        sessions.start(&workflow(), start).unwrap();
        let hash = sessions.store().meta("other").unwrap().unwrap().definition;
        let text = sessions.store().definition(&hash).unwrap().unwrap();
        store::Definition { hash, text }
    };
    let new =
        NewSession { definition, event: started, workflow: "letter".to_owned(), ..session("a") };
    sessions.store().create_now(new).unwrap();
    let context = json!({});
    let rewound = json!({
        "type": "rewound", "reason": "x", "version": WILD, "context": context, "place": place,
    });
    let event = NewEvent { kind: "rewound".to_owned(), ..body(rewound) };
    sessions.store().append_now(Append { event, ..append("a", 1) }).unwrap();
    let session = sessions.open("a").unwrap();
    let summary = sessions.summary(&session, 9).unwrap();
    assert!(summary.steps.is_empty() && summary.is_cut, "{summary:?}");
}
