//! What every backend of the store must do. Each function gets an empty store; `conformance!` puts a backend under all
//! of them.

mod documents;
mod imports;
mod shares;

use std::sync::mpsc::channel;

use proptest::prelude::*;
use store::limits::{
    BODY_BYTES_MAX, EVENTS_MAX, GOAL_BYTES_MAX, PAGE_BYTES_MAX, PAGE_MAX, QUEUE_MAX,
};
use store::{
    Append, Created, Cursor, Definition, Error, Filter, Head, Mark, NewEvent, NewSession, Status,
    Store,
};

use crate::{append, assert_sound, complete, event, fill, running, session};

pub(crate) use documents::*;
pub(crate) use imports::*;
pub(crate) use shares::*;

/// Makes a test of each function below, on a store that the factory makes and keeps alive. What stands in brackets is put
/// in front of each.
macro_rules! conformance {
    (@ [$($how:tt)*] $factory:expr; $name:ident) => {
        #[test]
        $($how)*
        fn $name() {
            let (store, _kept) = $factory();
            $crate::conformance::$name(store);
        }
    };
    ([$($how:tt)*] $factory:expr) => {
        $crate::conformance::conformance! { [$($how)*] $factory;
            what_goes_in_comes_out
            an_old_version_is_a_conflict
            an_unknown_session_is_not_found
            a_key_begins_one_session
            an_id_begins_one_session
            ids_and_sizes_are_bounded
            a_definition_is_kept_once
            snapshots_change_nothing_but_speed
            answers_are_found_by_revision
            events_come_in_pages
            pages_are_bounded_by_bytes
            lists_come_newest_first_in_stable_pages
            the_beginning_of_an_id_finds_its_session
            what_was_written_since_is_told
            words_find_sessions
            a_query_is_only_words
            many_writes_in_flight_see_each_other
            a_callback_that_panics_hurts_nobody
            what_is_queued_is_written_when_the_store_goes
            only_old_and_complete_sessions_are_pruned
            a_session_is_bounded
            an_ended_handshake_is_remembered_for_its_time
            a_document_is_replaced_by_who_knows_it
            sessions_are_counted
            counter_never_goes_back
            a_session_is_shared_until_it_is_not
            what_is_shared_with_somebody_is_listed
            shares_are_bounded
            open_shares_between_two_principals_are_bounded
            open_shares_are_bounded_for_concurrent_writers
            complete_shares_displace_no_open_ones
            an_imported_session_is_its_importers
            an_imported_key_reaches_nobody
            a_forged_log_is_refused_with_its_place
            a_forged_decision_counts_as_unverified
            a_copy_from_a_file_shows_nothing_of_the_session_that_it_names
            a_forged_output_is_refused_in_the_context
            outputs_of_a_copy_lie_before_it
            wild_numbers_in_a_log_end_a_summary
        }
    };
    ($how:tt $factory:expr; $($name:ident)*) => {
        $($crate::conformance::conformance! { @ $how $factory; $name })*
    };
}
pub(crate) use conformance;

pub(crate) fn what_goes_in_comes_out(store: Store) {
    let new = NewSession { key: Some("k".to_owned()), ..session("a") };
    assert_eq!(store.create_now(new).unwrap(), Created::New);
    let body = "{ \"text\": \"ü \\u0000 \\\"\" ,\n\"number\": 1.0 }";
    let one = Append {
        event: NewEvent { digest: Some([9; 32]), revision: Some(1), ..event(body) },
        head: Head { status: Status::Waiting, step: Some("gate".to_owned()), revision: 1 },
        time: 5_000,
        ..append("a", 1)
    };
    assert_eq!(store.append_now(one).unwrap(), 2);

    let log = store.load("a").unwrap().unwrap();
    assert_eq!(log.snapshot, None);
    assert_eq!(log.events.len(), 2);
    assert_eq!(log.events[0].kind, "started");
    let event = &log.events[1];
    assert_eq!((event.version, event.time, &*event.body), (2, 5_000, body));
    assert_eq!((event.revision, event.digest), (Some(1), Some([9; 32])));
    let meta = log.meta;
    assert_eq!((meta.version, meta.created, meta.touched), (2, 1_000, 5_000));
    assert_eq!((&*meta.owner, &*meta.workflow, &*meta.goal), ("ann", "tidy-up", "tidy the cellar"));
    assert_eq!((meta.key.as_deref(), &*meta.definition), (Some("k"), "d1"));
    assert_eq!((meta.head.status, meta.head.step.as_deref()), (Status::Waiting, Some("gate")));
    assert_eq!(store.meta("a").unwrap().unwrap().head.revision, 1);
    assert_sound(&store, "a");
}

pub(crate) fn an_old_version_is_a_conflict(store: Store) {
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 3);
    for expected in [0, 1, 2, 4, u64::from(u32::MAX)] {
        let result = store.append_now(append("a", expected));
        assert_eq!(result, Err(Error::Conflict { actual: 3 }), "{expected}");
    }
    assert_eq!(store.append_now(append("a", 3)), Ok(4));
}

pub(crate) fn an_unknown_session_is_not_found(store: Store) {
    assert_eq!(store.append_now(append("a", 1)), Err(Error::NotFound));
    assert_eq!(store.load("a"), Ok(None));
    assert_eq!(store.meta("a"), Ok(None));
    assert_eq!(store.events("a", 1, 10), Err(Error::NotFound));
    assert_eq!(store.event_at_revision("a", 1), Ok(None));
    assert_eq!(store.definition("d1"), Ok(None));
    assert_eq!(store.verify("a"), Err(Error::NotFound));
    assert!(matches!(store.export("a"), Err(Error::NotFound)));
}

pub(crate) fn a_key_begins_one_session(store: Store) {
    let with = |id: &str, owner: &str, key: Option<&str>| NewSession {
        owner: owner.to_owned(),
        key: key.map(str::to_owned),
        ..session(id)
    };
    assert_eq!(store.create_now(with("a", "ann", Some("k"))), Ok(Created::New));
    let existing = Ok(Created::Existing("a".to_owned()));
    assert_eq!(store.create_now(with("b", "ann", Some("k"))), existing);
    // The very same call again, after its answer was lost.
    assert_eq!(store.create_now(with("a", "ann", Some("k"))), existing);
    assert_eq!(store.meta("b"), Ok(None));
    assert_eq!(store.create_now(with("c", "bob", Some("k"))), Ok(Created::New));
    assert_eq!(store.create_now(with("d", "ann", None)), Ok(Created::New));
    assert_eq!(store.create_now(with("e", "ann", None)), Ok(Created::New));

    // Also where they come at once.
    let (sender, answers) = channel();
    for number in 0..8 {
        let sender = sender.clone();
        let new = with(&format!("f{number}"), "ann", Some("same"));
        store.create(new, Box::new(move |result| sender.send(result.unwrap()).unwrap()));
    }
    drop(sender);
    assert_eq!(answers.iter().filter(|created| *created == Created::New).count(), 1);
}

pub(crate) fn an_id_begins_one_session(store: Store) {
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 2);
    assert_eq!(store.create_now(session("a")), Err(Error::Exists));
    assert_eq!(store.meta("a").unwrap().unwrap().version, 2);
}

pub(crate) fn ids_and_sizes_are_bounded(store: Store) {
    for id in ["", "a b", "../a", "-rf", ".a", "ä", "a\0", &"x".repeat(129)] {
        assert!(store.create_now(session(id)).is_err(), "{id}");
    }
    let large = NewSession { goal: "x".repeat(GOAL_BYTES_MAX + 1), ..session("a") };
    assert!(matches!(store.create_now(large), Err(Error::TooLarge { what: "goal", .. })));
    store.create_now(session("a")).unwrap();

    let with = |body: String| Append { event: event(&body), ..append("a", 1) };
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let result = store.append_now(with(text(BODY_BYTES_MAX + 1)));
    assert_eq!(result, Err(Error::TooLarge { what: "event", max: BODY_BYTES_MAX }));
    for body in ["", "{", "{} {}", "nil"] {
        let result = store.append_now(with(body.to_owned()));
        assert!(matches!(result, Err(Error::Invalid { what: "event", .. })), "{body}");
    }
    let late = Append { time: u64::MAX, ..append("a", 1) };
    assert!(matches!(store.append_now(late), Err(Error::Invalid { what: "time", .. })));
    assert_eq!(store.append_now(with(text(BODY_BYTES_MAX))), Ok(2));
    assert_sound(&store, "a");
}

pub(crate) fn a_definition_is_kept_once(store: Store) {
    store.create_now(session("a")).unwrap();
    store.create_now(session("b")).unwrap();
    assert_eq!(store.definition("d1").unwrap().as_deref(), Some("{\"id\":\"tidy-up\"}"));
    let other = Definition { hash: "d1".to_owned(), text: "{}".to_owned() };
    let result = store.create_now(NewSession { definition: other, ..session("c") });
    assert!(matches!(result, Err(Error::Invalid { what: "definition", .. })));
    assert_eq!(store.meta("c"), Ok(None));
}

pub(crate) fn snapshots_change_nothing_but_speed(store: Store) {
    for (id, snapshot) in [("with", Some("state".to_owned())), ("without", None)] {
        store.create_now(session(id)).unwrap();
        fill(&store, id, 5);
        store.append_now(Append { snapshot, ..append(id, 5) }).unwrap();
        fill(&store, id, 8);
        assert_sound(&store, id);
    }
    let with = store.load("with").unwrap().unwrap();
    let without = store.load("without").unwrap().unwrap();
    let snapshot = with.snapshot.unwrap();
    assert_eq!((snapshot.version, &*snapshot.text), (6, "state"));
    assert_eq!(without.snapshot, None);
    assert_eq!(with.events, without.events[6..]);
    assert_eq!(store.events("with", 1, 100).unwrap(), without.events);
    // The newest counts.
    store.append_now(Append { snapshot: Some("later".to_owned()), ..append("with", 8) }).unwrap();
    let log = store.load("with").unwrap().unwrap();
    assert_eq!((log.snapshot.unwrap().version, log.events), (9, vec![]));
}

pub(crate) fn answers_are_found_by_revision(store: Store) {
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 20);
    store.append_now(Append { event: event("{}"), ..append("a", 20) }).unwrap();
    assert_eq!(store.event_at_revision("a", 7).unwrap().unwrap().version, 8);
    assert_eq!(store.event_at_revision("a", 20).unwrap(), None);
    // Where two have it, the later one is the answer.
    let again = NewEvent { revision: Some(7), ..event("{\"again\":true}") };
    store.append_now(Append { event: again, ..append("a", 21) }).unwrap();
    assert_eq!(store.event_at_revision("a", 7).unwrap().unwrap().version, 22);
}

pub(crate) fn events_come_in_pages(store: Store) {
    store.create_now(session("a")).unwrap();
    fill(&store, "a", 12);
    let versions = |from, limit| -> Vec<u64> {
        store.events("a", from, limit).unwrap().iter().map(|event| event.version).collect()
    };
    assert_eq!(versions(1, 5), [1, 2, 3, 4, 5]);
    assert_eq!(versions(11, 5), [11, 12]);
    assert_eq!(versions(0, 1), [1]);
    assert_eq!(versions(13, 5), [0; 0]);
    assert_eq!(versions(u64::MAX, usize::MAX), [0; 0]);
}

pub(crate) fn pages_are_bounded_by_bytes(store: Store) {
    const COUNT: u64 = 20;
    store.create_now(session("a")).unwrap();
    for expected in 1..=COUNT {
        // One is larger than a page.
        let length = if expected == 10 { PAGE_BYTES_MAX + 1 } else { PAGE_BYTES_MAX / 3 };
        let body = event(&format!("\"{}\"", "x".repeat(length)));
        store.append_now(Append { event: body, ..append("a", expected) }).unwrap();
    }
    let mut versions = Vec::new();
    while versions.len() as u64 <= COUNT {
        let page = store.events("a", versions.len() as u64 + 1, PAGE_MAX).unwrap();
        let bytes: usize = page.iter().map(|event| event.body.len()).sum();
        assert!(bytes <= PAGE_BYTES_MAX || page.len() == 1, "{} events, {bytes} bytes", page.len());
        assert!(!page.is_empty(), "after {versions:?}");
        versions.extend(page.iter().map(|event| event.version));
    }
    assert_eq!(versions, (1..=COUNT + 1).collect::<Vec<_>>());
    let log = store.load("a").unwrap().unwrap();
    let bytes: usize = log.events.iter().map(|event| event.body.len()).sum();
    assert!(log.is_cut && bytes <= PAGE_BYTES_MAX, "{} events, {bytes} bytes", log.events.len());
    assert_eq!(log.meta.version, COUNT + 1);
    assert_sound(&store, "a");
    assert_eq!(store.export("a").unwrap().events.len() as u64, COUNT + 1);
}

pub(crate) fn counter_never_goes_back(store: Store) {
    let mut last = 0;
    let mut advanced = |what: &str| {
        store.checkpoint().unwrap();
        let count = store.counter().unwrap().unwrap().count;
        assert!(count > last, "{what}: {last}, then {count}");
        last = count;
        assert_eq!(store.counter_flaws(), Ok(vec![]), "{what}");
    };
    store.create_now(session("a")).unwrap();
    advanced("a start");
    store.append_now(append("a", 1)).unwrap();
    advanced("an append");
    store.append_now(Append { head: complete(2), ..append("a", 2) }).unwrap();
    advanced("an end");
    store.append_now(append("a", 1)).unwrap_err();
    assert_eq!(store.prune(u64::from(u32::MAX), 10), Ok(1));
    store.create_now(session("b")).unwrap();
    advanced("pruning");
    let log = store.export("b").unwrap();
    let other = store.export("b").unwrap();
    assert_eq!(log.seal, other.seal);
    store.checkpoint().unwrap();
    assert_eq!(store.counter().unwrap().unwrap().count, last, "reading counts nothing");
}

pub(crate) fn lists_come_newest_first_in_stable_pages(store: Store) {
    let workflows = ["tidy-up", "review"];
    for number in 0..24_usize {
        let status = [Status::Running, Status::Waiting, Status::Complete][number % 3];
        let new = NewSession {
            owner: ["ann", "bob"][number / 12].to_owned(),
            workflow: workflows[number % 2].to_owned(),
            head: Head { status, ..running(0) },
            ..session(&format!("s{number:02}"))
        };
        store.create_now(new).unwrap();
    }
    let ids = |filter: &Filter| -> (Vec<String>, Option<Cursor>) {
        let page = store.list(filter).unwrap();
        (page.sessions.into_iter().map(|meta| meta.id).collect(), page.next)
    };
    let all = Filter { limit: PAGE_MAX, ..Filter::default() };
    let newest: Vec<String> = (0..24).rev().map(|number| format!("s{number:02}")).collect();
    assert_eq!(ids(&all), (newest.clone(), None));

    // Every filter, against the same done by hand, in pages of two.
    let metas = store.list(&all).unwrap().sessions;
    for owner in [None, Some("ann"), Some("nobody")] {
        for statuses in [vec![], vec![Status::Running], vec![Status::Running, Status::Complete]] {
            for workflow in [None, Some("review")] {
                let wanted: Vec<&str> = metas
                    .iter()
                    .filter(|meta| owner.is_none_or(|owner| meta.owner == owner))
                    .filter(|meta| statuses.is_empty() || statuses.contains(&meta.head.status))
                    .filter(|meta| workflow.is_none_or(|workflow| meta.workflow == workflow))
                    .map(|meta| meta.id.as_str())
                    .collect();
                let mut filter = Filter {
                    owner: owner.map(str::to_owned),
                    statuses: statuses.clone(),
                    workflow: workflow.map(str::to_owned),
                    before: None,
                    limit: 2,
                };
                let mut found = Vec::new();
                loop {
                    let (page, next) = ids(&filter);
                    found.extend(page);
                    filter.before = next.map(|next| Cursor::from_number(next.to_number()));
                    if next.is_none() {
                        break;
                    }
                }
                assert_eq!(found, wanted, "{filter:?}");
            }
        }
    }

    // Appends, new and removed sessions do not move what follows.
    let (_, next) = ids(&Filter { limit: 10, ..Filter::default() });
    store.append_now(Append { head: complete(1), ..append("s03", 1) }).unwrap();
    store.create_now(session("new")).unwrap();
    store.prune(1_001, 1).unwrap();
    let (rest, _) = ids(&Filter { before: next, ..all });
    assert_eq!(rest, newest[10..].iter().filter(|id| *id != "s02").cloned().collect::<Vec<_>>());
}

pub(crate) fn the_beginning_of_an_id_finds_its_session(store: Store) {
    for id in ["abca", "abc", "abcz", "abd", "ABC", "ab", "abc-1", "abc:1", "abc_1"] {
        store.create_now(session(id)).unwrap();
    }
    let found = |beginning: &str, limit| -> Vec<String> {
        let found = store.beginning_with(beginning, limit).unwrap();
        found.into_iter().map(|meta| meta.id).collect()
    };
    assert_eq!(found("abc", 10), ["abc", "abc-1", "abc:1", "abc_1", "abca", "abcz"]);
    assert_eq!(found("abc", 2), ["abc", "abc-1"]);
    assert_eq!(found("abcz", 10), ["abcz"]);
    assert_eq!(found("", 20).len(), 9);
    for odd in ["abcd", "abc%", "abc*", "ä", "\u{7f}", "abc\0"] {
        assert_eq!(found(odd, 10), [""; 0], "{odd}");
    }
}

pub(crate) fn what_was_written_since_is_told(store: Store) {
    let start = store.mark().unwrap();
    assert_eq!(store.changes(&start).unwrap().1, []);
    store.create_now(session("a")).unwrap();
    store.create_now(session("b")).unwrap();
    let told = |since: Mark| -> (Mark, Vec<(String, Status)>) {
        let (mark, changes) = store.changes(&since).unwrap();
        let short = changes.into_iter().map(|change| (change.session, change.status));
        (mark, short.collect())
    };
    let (mark, changes) = told(start);
    let expected = ["a", "b"].map(|id| (id.to_owned(), Status::Running));
    assert_eq!(changes, expected);
    assert_eq!(store.changes(&store.mark().unwrap()).unwrap().1, []);
    store.append_now(Append { head: complete(1), ..append("a", 1) }).unwrap();
    let (mark, changes) = told(mark);
    assert_eq!(changes, [("a".to_owned(), Status::Complete)]);
    // What is gone is not told, and the next one is all the same.
    assert_eq!(store.prune(u64::from(u32::MAX), 10), Ok(1));
    let (mark, changes) = told(mark);
    assert!(changes.is_empty(), "{changes:?}");
    fill(&store, "b", 2);
    assert_eq!(told(mark).1, [("b".to_owned(), Status::Running)]);
}

pub(crate) fn words_find_sessions(store: Store) {
    let with = |id: &str, owner: &str, goal: &str| NewSession {
        owner: owner.to_owned(),
        goal: goal.to_owned(),
        ..session(id)
    };
    store.create_now(with("a", "ann", "find the crash in the Größe parser")).unwrap();
    store.create_now(with("b", "bob", "find the keys")).unwrap();
    let search = Some("the parser divides by zero".to_owned());
    let found = NewEvent { search, ..event("{}") };
    store.append_now(Append { event: found, ..append("b", 1) }).unwrap();

    let ids = |query: &str, owner: Option<&str>| -> Vec<String> {
        let metas = store.search(query, owner, 10).unwrap();
        metas.into_iter().map(|meta| meta.id).collect()
    };
    assert_eq!(ids("parser", None), ["b", "a"]);
    assert_eq!(ids("parser", Some("ann")), ["a"]);
    assert_eq!(ids("PARS", Some("bob")), ["b"]);
    // Accents do not count.
    assert_eq!(ids("GROSSE", None), [""; 0]);
    assert_eq!(ids("große", None), ["a"]);
    assert_eq!(ids("größe", None), ["a"]);
    assert_eq!(ids("tidy-up keys", None), ["b"]);
    assert_eq!(ids("crash keys", None), [""; 0]);
    assert_eq!(ids("", None), [""; 0]);
    assert_eq!(store.search("find", None, 1).unwrap().len(), 1);
    // An owner's name is not found by its words, and no text speaks for an owner.
    assert_eq!(ids("ann", None), [""; 0]);
}

pub(crate) fn a_query_is_only_words(store: Store) {
    store.create_now(session("a")).unwrap();
    for query in ["\"", "text:", "* OR *", "NEAR(a b)", "owner : x", "a\0b", "' --", "( )", "^tidy"]
    {
        assert!(store.search(query, Some("ann"), 10).is_ok(), "{query}");
    }
    // `NOT` is a word like any other, and nobody has it.
    assert_eq!(store.search("tidy NOT cellar", None, 10).unwrap(), []);
    assert_eq!(store.search("tidy* cellar", None, 10).unwrap().len(), 1);
    // What every text has is not looked for.
    assert_eq!(store.search("Tidy about THE cellar", None, 10).unwrap().len(), 1);
    assert_eq!(store.search("the", None, 10).unwrap(), []);
    proptest!(|(query in any::<String>())| {
        prop_assert!(store.search(&query, None, 10).is_ok());
    });
}

pub(crate) fn many_writes_in_flight_see_each_other(store: Store) {
    store.create_now(session("a")).unwrap();
    store.create_now(session("b")).unwrap();
    let (sender, answers) = channel();
    let count = 2 * QUEUE_MAX as u64;
    for expected in 1..=count {
        // Beside each good one, one that is refused: it must leave no trace and hurt nobody.
        for (id, expected) in [("a", expected), ("b", expected), ("a", expected), ("none", 1)] {
            let sender = sender.clone();
            let done = Box::new(move |result| sender.send((id, expected, result)).unwrap());
            store.append(append(id, expected), done);
        }
    }
    drop(sender);
    let mut good = 0;
    for (id, expected, result) in answers {
        match result {
            Ok(version) => {
                assert_eq!(version, expected + 1);
                good += 1;
            }
            Err(Error::Conflict { actual }) => assert_eq!((id, actual), ("a", expected + 1)),
            Err(error) => assert_eq!((id, error), ("none", Error::NotFound)),
        }
    }
    assert_eq!(good, 2 * count);
    for id in ["a", "b"] {
        assert_eq!(store.load(id).unwrap().unwrap().events.len() as u64, count + 1);
        assert_sound(&store, id);
    }
}

pub(crate) fn a_callback_that_panics_hurts_nobody(store: Store) {
    store.create_now(session("a")).unwrap();
    store.append(append("a", 1), Box::new(|_| panic!("on purpose")));
    assert_eq!(store.append_now(append("a", 2)), Ok(3));
}

pub(crate) fn what_is_queued_is_written_when_the_store_goes(store: Store) {
    store.create_now(session("a")).unwrap();
    let (sender, answers) = channel();
    for expected in 1..50 {
        // Each callback holds the store, so the last one is dropped by the writer itself.
        let (sender, kept) = (sender.clone(), store.clone());
        let done = move |result| {
            sender.send(result).unwrap();
            drop(kept);
        };
        store.append(append("a", expected), Box::new(done));
    }
    drop((store, sender));
    assert!(answers.iter().map(Result::unwrap).eq(2..51));
}

pub(crate) fn only_old_and_complete_sessions_are_pruned(store: Store) {
    for (number, status) in [Status::Running, Status::Waiting, Status::Complete].iter().enumerate()
    {
        for copy in 0..12 {
            let id = format!("s{number}-{copy}");
            let definition = Definition { hash: format!("d{id}"), text: "{}".to_owned() };
            let key = Some(id.clone());
            store.create_now(NewSession { definition, key, ..session(&id) }).unwrap();
            let head = Head { status: *status, ..running(1) };
            let search = Some(format!("word{number}"));
            let event = NewEvent { search, ..event("{}") };
            let snapshot = Some("state".to_owned());
            let time = 2_000 + copy;
            store.append_now(Append { head, event, snapshot, time, ..append(&id, 1) }).unwrap();
        }
    }
    assert_eq!((store.prunable(2_000), store.prune(2_000, 100)), (Ok(0), Ok(0)));
    assert_eq!(store.prunable(u64::from(u32::MAX)), Ok(12));
    // The oldest go first, as many as were asked for.
    assert_eq!(store.prune(u64::from(u32::MAX), 1), Ok(1));
    assert_eq!(store.meta("s2-0"), Ok(None));
    assert_eq!((store.prunable(2_010), store.prune(2_010, 100)), (Ok(9), Ok(9)));
    for copy in 0..12 {
        let id = format!("s2-{copy}");
        assert_eq!(store.meta(&id).unwrap().is_none(), copy < 10);
        assert_eq!(store.definition(&format!("d{id}")).unwrap().is_none(), copy < 10);
    }
    assert_eq!(store.search("word2", None, 100).unwrap().len(), 2);
    assert_eq!(store.search("word0", None, 100).unwrap().len(), 12);
    let again = NewSession { key: Some("s2-3".to_owned()), ..session("new") };
    assert_eq!(store.create_now(again), Ok(Created::New));
    assert_eq!(store.prune(u64::from(u32::MAX), 100), Ok(2));
    assert_eq!(store.list(&Filter { limit: 100, ..Filter::default() }).unwrap().sessions.len(), 25);
}

pub(crate) fn a_session_is_bounded(store: Store) {
    store.create_now(session("a")).unwrap();
    let (sender, answers) = channel();
    for expected in 1..EVENTS_MAX {
        let sender = sender.clone();
        store.append(append("a", expected), Box::new(move |result| sender.send(result).unwrap()));
    }
    drop(sender);
    assert!(answers.iter().all(|result| result.is_ok()));
    let result = store.append_now(append("a", EVENTS_MAX));
    assert_eq!(result, Err(Error::TooMany { max: EVENTS_MAX }));
    assert_eq!(store.verify("a").unwrap().version, EVENTS_MAX);
    assert_sound(&store, "a");
}

pub(crate) fn an_ended_handshake_is_remembered_for_its_time(store: Store) {
    let id = |number: u8| [number; 16];
    for number in 1..=3 {
        assert_eq!(store.has_ended(&id(number)), Ok(false));
        store.end_handshake(id(number), 100 * u64::from(number), 50).unwrap();
    }
    // Whoever says goodbye twice is not heard twice.
    store.end_handshake(id(3), 300, 50).unwrap();
    for number in 1..=3 {
        assert_eq!(store.has_ended(&id(number)), Ok(true));
    }
    assert_eq!(store.has_ended(&id(4)), Ok(false));
    store.end_handshake(id(4), 1_000, 250).unwrap();
    let known = [1, 2, 3, 4].map(|number| store.has_ended(&id(number)).unwrap());
    assert_eq!(known, [false, false, true, true], "what is too old anyway is forgotten");
    let late = store.end_handshake(id(5), u64::MAX, 0).unwrap_err();
    assert!(matches!(late, Error::Invalid { what: "time", .. }), "{late}");
}
