//! Sessions as agents meet them: nobody skips, nobody loses an update, a repeated call gets its answer again, and
//! all of it also after the process was started anew.

mod large_logs;
mod loop_gates;
mod outputs;
mod ways;

use std::sync::Arc;

use engine::{Channel, Checker, Decision, Opening, Refusal, Submission, View};
use serde_json::json;
use store::sessions::{Error, Importer, NewIds, Session, Sessions, Start, Verdict};
use store::{ExportedLog, ImportFile, Key, Store};
use workflow::{Context, Format, Scrutiny, Workflow, read};

/// What is handed out, without earlier outputs.
fn view(session: &Session) -> Result<View<'_>, Refusal> {
    let budget = engine::Budget::for_call();
    let detail = Opening::Reminder;
    engine::view(&session.workflow, &session.state, detail, &|_: &str| None, &budget)
}

fn workflow() -> Workflow {
    let definition = json!({
        "id": "letter", "name": "Letter", "description": "Writes a letter", "version": "1.0.0",
        "steps": [
            {"id": "write", "title": "Write", "prompt": "Write to {{whom}}.",
             "validationCriteria": [{"type": "contains", "value": "Dear", "message": "Be polite"}]},
            {"id": "send", "title": "Send", "prompt": "Send it.", "requireConfirmation": true},
            {"id": "file", "title": "File", "prompt": "File it."},
        ],
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap()
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// As a process that was just started sees it.
    fn sessions(&self) -> Sessions {
        let path = self.folder.path().join("sessions.db");
        let store = Store::open(&path, Some(Key::new([7; 32]))).unwrap();
        Sessions::new(store, Arc::new(Checker::default()))
    }
}

fn start(id: &str) -> Start {
    let context = json!({"whom": "Ada"}).as_object().unwrap().clone();
    let goal = Some("a letter".to_owned());
    let (id, owner) = (id.to_owned(), "me".to_owned());
    Start { id, owner, goal, context, time: 1, ..Start::default() }
}

fn submission(step: &str, output: &str) -> Submission {
    Submission { step: step.to_owned(), output: output.to_owned(), context: Context::new() }
}

fn decision(reason: Option<&str>) -> Decision {
    let reason = reason.map(str::to_owned);
    Decision { who: "me".to_owned(), channel: Channel::Cli, reason }
}

/// Where a session stands, in a word.
fn place(sessions: &Sessions, id: &str) -> (u64, Option<String>, bool) {
    let state = &sessions.open(id).unwrap().state;
    (state.revision, state.step.clone(), state.waiting.is_some())
}

#[test]
fn a_session_goes_its_way_and_cannot_be_skipped_through() {
    let world = World::new();
    let sessions = world.sessions();
    let session = sessions.start(&workflow(), start("s1")).unwrap();
    assert_eq!(session.state.step.as_deref(), Some("write"));
    let advance = |revision, step: &str, output: &str| {
        sessions.advance("s1", revision, &submission(step, output), 2)
    };
    let returned = advance(0, "write", "Hey").unwrap().verdict;
    assert!(matches!(&returned, Verdict::Returned { issues, .. } if issues == &["Be polite"]));
    for (revision, step, output) in
        [(1, "send", "sent"), (0, "write", "Dear Ada"), (9, "write", "Dear Ada")]
    {
        let Err(Error::Refused { refusal, session: Some(session) }) =
            advance(revision, step, output)
        else {
            panic!("{revision} {step} is not refused");
        };
        let is_right =
            matches!(refusal, Refusal::NotCurrent { .. } | Refusal::WrongRevision { .. });
        assert!(is_right, "{refusal:?}");
        assert_eq!((session.state.revision, session.state.step.as_deref()), (1, Some("write")));
    }
    assert_eq!(advance(1, "write", "Dear Ada").unwrap().verdict, Verdict::Accepted);
    assert_eq!(place(&sessions, "s1"), (2, Some("send".to_owned()), false));
    assert!(matches!(advance(2, "nowhere", "x"), Err(Error::Refused { .. })));
    assert!(matches!(sessions.open("other"), Err(Error::NotFound)));
    assert!(sessions.store().verify("s1").unwrap().is_sound());
}

#[test]
fn a_gate_waits_for_a_person_and_the_same_call_gets_what_became_of_it() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    sessions.advance("s1", 0, &submission("write", "Dear Ada"), 2).unwrap();
    let sent = submission("send", "by post");
    let advance = |sessions: &Sessions| sessions.advance("s1", 1, &sent, 3).unwrap();
    assert_eq!(advance(&sessions).verdict, Verdict::Waiting);
    assert_eq!(advance(&sessions).verdict, Verdict::Waiting, "and nothing new is written");
    assert_eq!(sessions.open("s1").unwrap().version, 3);
    sessions.decline("s1", 3, &decision(Some("too early")), 4).unwrap();
    let again = advance(&sessions);
    assert_eq!(again.verdict, Verdict::Declined { reason: Some("too early".to_owned()) });
    assert_eq!(again.session.state.revision, 2);
    let sent_again = submission("send", "by post, later");
    sessions.advance("s1", 2, &sent_again, 5).unwrap();
    // Somebody else decides, in another process.
    world.sessions().approve("s1", 5, &decision(None), 6).unwrap();
    let answered = sessions.advance("s1", 2, &sent_again, 7).unwrap();
    assert_eq!(answered.verdict, Verdict::Accepted);
    assert_eq!(answered.session.state.step.as_deref(), Some("file"));
    assert!(matches!(
        sessions.approve("s1", 6, &decision(None), 8),
        Err(Error::Refused { refusal: Refusal::NotWaiting, .. })
    ));
}

#[test]
fn a_repeated_call_gets_the_answer_that_it_got() {
    let world = World::new();
    let sessions = world.sessions();
    let begin = || Start { key: Some("k".to_owned()), ..start("s1") };
    sessions.start(&workflow(), begin()).unwrap();
    let same = sessions.start(&workflow(), Start { id: "s2".to_owned(), ..begin() }).unwrap();
    assert_eq!(same.id, "s1");
    let bad = submission("write", "Hey");
    let first = sessions.advance("s1", 0, &bad, 2).unwrap();
    sessions.advance("s1", 1, &submission("write", "Dear Ada"), 3).unwrap();
    // Much later, and after a new start.
    let again = world.sessions().advance("s1", 0, &bad, 9).unwrap();
    assert_eq!(again.verdict, first.verdict);
    assert_eq!(again.session.state, first.session.state);
    assert_eq!(sessions.open("s1").unwrap().version, 3);
}

#[test]
fn going_back_keeps_the_history_and_a_copy_goes_its_own_way() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    sessions.advance("s1", 0, &submission("write", "Dear Ada"), 2).unwrap();
    let never = sessions.rewind("s1", 1, "file", "why not", 3);
    assert!(matches!(never, Err(Error::NeverThere { .. })), "what comes later is not told");
    let ids = NewIds { id: "s2".to_owned(), owner: "me".to_owned(), time: 4, ..NewIds::default() };
    let copy = sessions.fork("s1", 1, "send", "another try", ids.clone()).unwrap();
    assert_eq!((copy.state.revision, copy.state.step.as_deref()), (0, Some("send")));
    let back = sessions.rewind("s1", 1, "write", "the wrong Ada", 3).unwrap();
    assert_eq!((back.state.revision, back.state.step.as_deref()), (2, Some("write")));
    assert_eq!(back.version, 3, "nothing is lost");
    // What is superseded is no place to go to: that would be the way forward.
    for refused in [
        sessions.rewind("s1", 2, "send", "I was there", 4),
        sessions.fork("s1", 2, "send", "I was there", ids),
    ] {
        assert!(matches!(refused, Err(Error::NeverThere { .. })), "{refused:?}");
    }
    sessions.advance("s2", 0, &submission("send", "sent"), 5).unwrap();
    assert_eq!(place(&sessions, "s1"), (2, Some("write".to_owned()), false));
    assert_eq!(place(&world.sessions(), "s2"), (0, Some("send".to_owned()), true));
}

#[test]
fn of_many_at_once_one_is_first_and_the_others_are_told() {
    let world = World::new();
    world.sessions().start(&workflow(), start("s1")).unwrap();
    let tries: Vec<_> = (0..8)
        .map(|number| {
            let sessions = world.sessions();
            std::thread::spawn(move || {
                let output = format!("Dear Ada, {number}");
                sessions.advance("s1", 0, &submission("write", &output), 2)
            })
        })
        .collect();
    let ended: Vec<_> = tries.into_iter().map(|thread| thread.join().unwrap()).collect();
    let accepted = ended.iter().filter(|ended| ended.is_ok()).count();
    assert_eq!(accepted, 1);
    for refused in ended.iter().filter_map(|ended| ended.as_ref().err()) {
        let Error::Refused { session: Some(session), .. } = refused else { panic!("{refused:?}") };
        assert_eq!(session.state.step.as_deref(), Some("send"));
    }
}

#[test]
fn a_long_session_is_opened_from_its_snapshot_and_means_the_same_without() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    for revision in 0..200 {
        sessions.advance("s1", revision, &submission("write", "Hey"), 2).unwrap();
    }
    let open = world.sessions().open("s1").unwrap();
    assert_eq!((open.version, open.state.attempts), (201, 200));
    let log = sessions.store().load("s1").unwrap().unwrap();
    assert!(log.events.len() < 64, "{}", log.events.len());
    assert_eq!(open.state, sessions.open("s1").unwrap().state);
}

#[test]
fn a_person_decides_about_what_they_saw_and_nothing_else() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    sessions.advance("s1", 0, &submission("write", "Dear Ada"), 2).unwrap();
    let seen = sessions.advance("s1", 1, &submission("send", "by post"), 3).unwrap().session;
    // Meanwhile, in another process.
    world.sessions().advance("s1", 1, &submission("send", "by pigeon"), 4).unwrap();
    for rule in [Sessions::approve, Sessions::decline] {
        let ruled = rule(&sessions, "s1", seen.version, &decision(None), 5);
        let Err(Error::NoLonger { session }) = ruled else { panic!("{ruled:?}") };
        assert_eq!(session.state.waiting.as_ref().unwrap().output, "by pigeon");
    }
    sessions.approve("s1", seen.version + 1, &decision(None), 6).unwrap();
    assert_eq!(place(&sessions, "s1"), (2, Some("file".to_owned()), false));
}

#[test]
fn a_rejected_output_is_not_got_around_by_going_back_and_forth() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    let advance = |revision, step: &str, output: &str| {
        sessions.advance("s1", revision, &submission(step, output), 2).unwrap().verdict
    };
    advance(0, "write", "Dear Ada");
    advance(1, "send", "by post");
    sessions.approve("s1", 3, &decision(None), 3).unwrap();
    sessions.rewind("s1", 2, "write", "the wrong Ada", 4).unwrap();
    advance(3, "write", "Dear Bob");
    assert_eq!(advance(4, "send", "by post"), Verdict::Waiting);
    sessions.decline("s1", 7, &decision(Some("never")), 5).unwrap();
    let forward = sessions.rewind("s1", 5, "file", "it was approved once", 6);
    assert!(matches!(forward, Err(Error::NeverThere { .. })), "{forward:?}");
}

#[test]
fn a_gate_is_not_taken_back_by_what_an_agent_reports() {
    let definition = json!({
        "id": "risk", "name": "Risk", "description": "Takes a risk", "version": "1.0.0",
        "steps": [
            {"id": "jump", "title": "Jump", "prompt": "Jump.",
             "requireConfirmation": {"var": "risky", "equals": true}},
            {"id": "land", "title": "Land", "prompt": "Land."},
        ],
    });
    let definition = definition.to_string();
    let workflow = read(definition.as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap();
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow, start("s1")).unwrap();
    let jump = |id: &str, revision, is_risky: bool| {
        let context = json!({"risky": is_risky}).as_object().unwrap().clone();
        let submission = Submission { context, ..submission("jump", "off the roof") };
        sessions.advance(id, revision, &submission, 2).unwrap().verdict
    };
    assert_eq!(jump("s1", 0, true), Verdict::Waiting);
    assert_eq!(jump("s1", 0, false), Verdict::Waiting, "somebody is being asked");
    sessions.decline("s1", 3, &decision(Some("no")), 3).unwrap();
    assert_eq!(jump("s1", 1, false), Verdict::Waiting, "the answer was no");
    sessions.rewind("s1", 1, "jump", "once more", 4).unwrap();
    assert_eq!(jump("s1", 2, false), Verdict::Waiting, "also after going back");
    let ids = NewIds { id: "s2".to_owned(), owner: "me".to_owned(), time: 5, ..NewIds::default() };
    sessions.fork("s1", 2, "jump", "a copy", ids).unwrap();
    assert_eq!(jump("s2", 0, false), Verdict::Waiting, "and in a copy");
    sessions.approve("s1", 7, &decision(None), 6).unwrap();
    assert_eq!(place(&world.sessions(), "s1"), (3, Some("land".to_owned()), false));
}

#[test]
fn what_was_wrong_last_is_remembered() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    let last = |sessions: &Sessions| sessions.last_try(&sessions.open("s1").unwrap()).unwrap();
    assert_eq!(last(&sessions), None);
    let returned = sessions.advance("s1", 0, &submission("write", "Hey"), 2).unwrap().verdict;
    assert_eq!(last(&world.sessions()), Some(returned));
    sessions.advance("s1", 1, &submission("write", "Dear Ada"), 3).unwrap();
    assert_eq!(last(&sessions), None);
    sessions.advance("s1", 2, &submission("send", "by post"), 4).unwrap();
    assert_eq!(last(&sessions), None, "it waits");
    sessions.decline("s1", 4, &decision(Some("no")), 5).unwrap();
    assert_eq!(last(&sessions), Some(Verdict::Declined { reason: Some("no".to_owned()) }));
}

#[test]
fn a_full_session_says_so_and_leaves_room_for_a_decision() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    sessions.advance("s1", 0, &submission("write", "Dear Ada"), 2).unwrap();
    let mut version = 2;
    while version < store::limits::EVENTS_MAX - 2 {
        let outputs = ["by post", "by pigeon"];
        let output = outputs[usize::try_from(version % 2).unwrap()];
        sessions.advance("s1", 1, &submission("send", output), 3).unwrap();
        version += 1;
    }
    let last = sessions.advance("s1", 1, &submission("send", "by ship"), 4).unwrap();
    assert_eq!(last.session.version, store::limits::EVENTS_MAX - 1);
    let full = sessions.advance("s1", 1, &submission("send", "by air"), 5);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    sessions.approve("s1", last.session.version, &decision(None), 6).unwrap();
    assert_eq!(place(&sessions, "s1"), (2, Some("file".to_owned()), false));
    let full = sessions.advance("s1", 2, &submission("file", "filed"), 7);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    let ids = NewIds { id: "s2".to_owned(), owner: "me".to_owned(), time: 8, ..NewIds::default() };
    sessions.fork("s1", 2, "file", "it is full", ids).unwrap();
    sessions.advance("s2", 0, &submission("file", "filed"), 9).unwrap();
}

/// The finished steps with their outputs, and whether there were more.
fn summary(sessions: &Sessions, id: &str, max: usize) -> (Vec<String>, bool) {
    let summary = sessions.summary(&sessions.open(id).unwrap(), max).unwrap();
    let steps = summary.steps.into_iter().map(|done| format!("{}: {}", done.step, done.output));
    (steps.collect(), summary.is_cut)
}

#[test]
fn finished_steps_are_summed_up_without_what_was_superseded() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    assert_eq!(summary(&sessions, "s1", 10), (vec![], false));
    let advance = |id: &str, revision, step: &str, output: &str| {
        sessions.advance(id, revision, &submission(step, output), 2).unwrap();
    };
    advance("s1", 0, "write", "Hey");
    advance("s1", 1, "write", "Dear Ada");
    advance("s1", 2, "send", "by post");
    let written = vec!["write: Dear Ada".to_owned()];
    assert_eq!(summary(&sessions, "s1", 10), (written.clone(), false));
    sessions.approve("s1", 4, &decision(None), 3).unwrap();
    let sent = vec!["write: Dear Ada".to_owned(), "send: by post".to_owned()];
    assert_eq!(summary(&sessions, "s1", 10), (sent.clone(), false));
    assert_eq!(summary(&sessions, "s1", 1), (sent[1..].to_vec(), true));
    sessions.rewind("s1", 3, "send", "too slow", 4).unwrap();
    assert_eq!(summary(&sessions, "s1", 10), (written.clone(), false));
    advance("s1", 4, "send", "by pigeon");
    sessions.approve("s1", 7, &decision(None), 5).unwrap();
    let anew = vec!["write: Dear Ada".to_owned(), "send: by pigeon".to_owned()];
    assert_eq!(summary(&sessions, "s1", 10), (anew, false));
    // A copy knows what came before it, for as long as that is there.
    let ids = NewIds { id: "s2".to_owned(), owner: "me".to_owned(), time: 6, ..NewIds::default() };
    sessions.fork("s1", 5, "send", "by both", ids).unwrap();
    assert_eq!(summary(&sessions, "s2", 10), (written, false));
    advance("s1", 5, "file", "filed");
    sessions.store().prune(u64::from(u32::MAX), 1).unwrap();
    assert_eq!(summary(&sessions, "s2", 10), (vec![], true));
}

#[tokio::test]
async fn what_was_written_is_noted_although_nobody_waits_for_it() {
    let world = World::new();
    let sessions = Arc::new(world.sessions());
    let (sender, noted) = std::sync::mpsc::channel();
    let (started, advanced) = (sender.clone(), sender);
    let workflow = workflow();
    let start = sessions.start_async(&workflow, start("s1"), move |session| {
        started.send(session.version).unwrap();
    });
    drop_once_begun(start);
    let version = noted.recv().unwrap();
    let submission = submission("write", "Hey");
    let advance = sessions.advance_async("s1", 0, &submission, 2, move |after| {
        advanced.send(after.session.version).unwrap();
    });
    drop_once_begun(advance);
    assert_eq!(noted.recv(), Ok(version + 1));
}

fn drop_once_begun(future: impl Future) {
    let mut future = std::pin::pin!(future);
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut task).is_pending());
}

#[tokio::test]
async fn advance_without_a_thread_looks_again_where_somebody_else_was_first() {
    let world = World::new();
    let sessions = Arc::new(world.sessions());
    sessions.start_async(&workflow(), start("s1"), |_| ()).await.unwrap();
    let advance = async |revision, output: &str| {
        sessions
            .advance_async("s1", revision, &submission("write", output), 2, |_| ())
            .await
            .map(drop)
    };
    advance(0, "Hey").await.unwrap();
    // Somebody else is first: whoever has an old copy is told to look again, and then gets it right.
    world.sessions().advance("s1", 1, &submission("write", "Hey there"), 3).unwrap();
    assert!(matches!(advance(1, "Dear Ada").await, Err(Error::Overtaken)));
    assert!(matches!(advance(1, "Dear Ada").await, Err(Error::Refused { .. })));
    advance(1, "Hey there").await.unwrap();
    advance(2, "Dear Ada").await.unwrap();
    assert_eq!(place(&sessions, "s1"), (3, Some("send".to_owned()), false));
}

fn import(world: &World, log: &ExportedLog) -> Result<(), Error> {
    let file = ImportFile::read(&log.to_text().unwrap()).unwrap();
    let importer = Importer { owner: "you".to_owned(), time: u64::from(u32::MAX) << 10 };
    world.sessions().import(&file, &importer).map(drop)
}

#[test]
fn a_session_travels_and_is_doubted() {
    let world = World::new();
    let sessions = world.sessions();
    sessions.start(&workflow(), start("s1")).unwrap();
    sessions.advance("s1", 0, &submission("write", "Dear Ada Lovelace"), 2).unwrap();
    assert_eq!(sessions.verify("s1").unwrap().flaws, Vec::<String>::new());
    let log = sessions.store().export("s1").unwrap();
    let elsewhere = World::new();
    import(&elsewhere, &log).unwrap();
    assert_eq!(place(&elsewhere.sessions(), "s1"), place(&sessions, "s1"));
    let found = elsewhere.sessions().store().search("lovelace", Some("you"), 10).unwrap();
    assert_eq!(found.len(), 1);
    let mut odd = log.clone();
    odd.head.step = Some("file".to_owned());
    assert!(import(&World::new(), &odd).is_err());
    let mut odd = log;
    odd.definition.text = odd.definition.text.replace("true", "false");
    assert!(import(&World::new(), &odd).is_err(), "its hash is that of another text");
}

/// Logs of every version that ever wrote one. They are never changed, and must always mean the same.
const OLD: &[(&str, u64, Option<&str>)] = &[
    (include_str!("../logs/session-1.json"), 10, None),
    (include_str!("../logs/session-1-copy.json"), 0, Some("survey")),
    (include_str!("../logs/session-strict.json"), 3, Some("file-it")),
];

#[test]
fn old_sessions_are_replayed_and_go_on() {
    for (text, revision, step) in OLD {
        let log: store::ExportedLog = serde_json::from_str(text).unwrap();
        let world = World::new();
        import(&world, &log).unwrap();
        let sessions = world.sessions();
        let id = &log.session.id;
        assert_eq!(sessions.verify(id).unwrap().flaws, Vec::<String>::new());
        let session = sessions.open(id).unwrap();
        assert_eq!((session.state.revision, session.state.step.as_deref()), (*revision, *step));
        assert!(view(&session).is_ok());
        assert_eq!(session.state.strict, text.contains("\"strict\": true"));
        let again = json!(sessions.store().export(id).unwrap());
        let bodies = |log: &serde_json::Value| {
            let events = log["events"].as_array().unwrap();
            events.iter().map(|event| event["body"].clone()).collect::<Vec<_>>()
        };
        let (again, then) = (bodies(&again), bodies(&json!(log)));
        assert_eq!(again[..then.len()], then, "and out again it is the same");
        if let Some(step) = step {
            let output = submission(step, "three beds");
            assert_eq!(
                sessions.advance(id, *revision, &output, 9).unwrap().verdict,
                Verdict::Accepted
            );
        } else {
            // The last thing that was done could be done anew.
            sessions.rewind(id, *revision, "report", "once more", 9).unwrap();
        }
    }
}

#[test]
fn rewind_that_reopens_a_session_counts_its_shares() {
    let world = World::new();
    let sessions = world.sessions();
    let shared = |id: &str| Start { shared_with: vec!["bob".to_owned()], ..start(id) };
    sessions.start(&workflow(), shared("done")).unwrap();
    sessions.advance("done", 0, &submission("write", "Dear Ada"), 2).unwrap();
    sessions.advance("done", 1, &submission("send", "by post"), 3).unwrap();
    sessions.approve("done", 3, &decision(None), 4).unwrap();
    sessions.advance("done", 2, &submission("file", "filed"), 5).unwrap();
    for number in 0..store::limits::OPEN_SHARES_MAX {
        sessions.start(&workflow(), shared(&format!("open-{number}"))).unwrap();
    }
    let rewind = || sessions.rewind("done", 3, "file", "once more", 6);
    let too_many = store::Error::TooManyOpenShares { principal: "bob".to_owned() };
    assert!(matches!(rewind(), Err(Error::Store(error)) if error == too_many));
    assert_eq!(place(&sessions, "done"), (3, None, false));
    sessions.store().share("open-0", "bob", false).unwrap();
    assert_eq!(rewind().unwrap().state.step.as_deref(), Some("file"));
}

/// Where the first step is found only after much searching.
#[tokio::test]
async fn costly_start_is_left_to_a_thread_of_its_own() {
    let never = json!({"id": "never", "title": "N", "prompt": "N",
        "runCondition": {"var": "log", "contains": "now"}});
    let definition = json!({
        "id": "costly", "name": "Costly", "description": "Searches", "version": "1.0.0",
        "steps": [
            {"id": "each", "type": "loop", "title": "Each", "body": [never],
             "loop": {"type": "for", "count": 400, "maxIterations": 400}},
            {"id": "last", "title": "Last", "prompt": "Last."},
        ],
    });
    let reading = read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax);
    let (workflow, world) = (reading.workflow.unwrap(), World::new());
    let context: Context = json!({"log": "x".repeat(40_000)}).as_object().cloned().unwrap();
    let sessions = Arc::new(world.sessions());
    let start = |id: &str| Start {
        id: id.to_owned(),
        owner: "ann".to_owned(),
        context: context.clone(),
        ..Start::default()
    };
    let inline = sessions.start_async(&workflow, start("inline"), |_| ()).await;
    assert!(matches!(inline, Err(Error::Overtaken)));
    assert!(matches!(sessions.open("inline"), Err(Error::NotFound)), "nothing was written");
    let session = sessions.start(&workflow, start("costly")).unwrap();
    assert_eq!(session.state.step.as_deref(), Some("last"));
    let inline = engine::Budget::for_inline_call();
    let seen = engine::view(&workflow, &session.state, Opening::Full, &|_: &str| None, &inline);
    assert!(seen.is_err() && inline.is_exhausted());
    assert!(view(&session).is_ok());
}
