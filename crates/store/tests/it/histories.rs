//! Recorded histories of writers that race, checked for linearizability: a session is a register that holds a version,
//! and `append` is its compare-and-set. What an operation saw or made may not be older than anything that had
//! ended before it began.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use store::{Append, Error, Store};

use crate::child::Child;
use crate::{append, assert_sound, event, open, session};

const WRITERS: usize = 8;
/// Operations of one writer.
const OPERATIONS: usize = 60;

pub(crate) struct Operation {
    session: String,
    /// Nanoseconds by the clock that all processes share.
    began: u128,
    ended: u128,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Made(u64),
    /// A conflict: expected the first, found the second.
    Saw(u64, u64),
    Read(u64),
}

/// Appends to these sessions in turn, believing what it last saw, and reads between.
pub(crate) fn write(store: &Store, writer: u64, sessions: &[&str]) -> Vec<Operation> {
    let mut known: HashMap<&str, u64> = sessions.iter().map(|id| (*id, 1)).collect();
    let mut operations = Vec::new();
    for number in 0..OPERATIONS {
        let id = sessions[(number + writer as usize) % sessions.len()];
        let expected = known[id];
        let body = event(&format!("{{\"writer\":{writer},\"number\":{number}}}"));
        let began = now();
        let outcome = if number % 7 == 6 {
            Outcome::Read(store.meta(id).unwrap().unwrap().version)
        } else {
            match store.append_now(Append { event: body, ..append(id, expected) }) {
                Ok(version) => Outcome::Made(version),
                Err(Error::Conflict { actual }) => Outcome::Saw(expected, actual),
                Err(error) => panic!("{error}"),
            }
        };
        let ended = now();
        known.insert(id, outcome.version());
        operations.push(Operation { session: id.to_owned(), began, ended, outcome });
    }
    operations
}

#[test]
fn threads_on_one_session() {
    in_a_file(|place| threads(place, 1));
}

#[test]
fn threads_on_many_sessions() {
    in_a_file(|place| threads(place, 5));
}

#[test]
fn processes_on_one_session() {
    in_a_file(|place| processes(place, 1));
}

#[test]
fn processes_on_many_sessions() {
    in_a_file(|place| processes(place, 5));
}

fn in_a_file(run: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    run(&folder.path().join("sessions.db"));
}

pub(crate) fn threads(place: &Path, sessions: usize) {
    let (store, ids) = prepare(place, sessions);
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let history = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS as u64)
            .map(|writer| {
                let (store, ids) = (store.clone(), &ids);
                scope.spawn(move || write(&store, writer, ids))
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    check(&store, &history);
}

pub(crate) fn processes(place: &Path, sessions: usize) {
    let (store, ids) = prepare(place, sessions);
    let children: Vec<Child> = (0..WRITERS)
        .map(|writer| {
            let writer = writer.to_string();
            let arguments: Vec<&str> =
                std::iter::once(&*writer).chain(ids.iter().map(String::as_str)).collect();
            Child::start("history", place, &arguments)
        })
        .collect();
    let lines = children.into_iter().flat_map(Child::lines);
    let history: Vec<Operation> = lines.map(|line| Operation::parse(&line)).collect();
    check(&store, &history);
}

fn prepare(place: &Path, sessions: usize) -> (Store, Vec<String>) {
    let store = open(place);
    let ids: Vec<String> = (0..sessions).map(|number| format!("s{number}")).collect();
    for id in &ids {
        store.create_now(session(id)).unwrap();
    }
    (store, ids)
}

fn check(store: &Store, history: &[Operation]) {
    assert_eq!(history.len(), WRITERS * OPERATIONS);
    let mut by_session: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        by_session.entry(&operation.session).or_default().push(operation);
    }
    for (id, operations) in by_session {
        // Each version was made once, without a gap, and is what the store has.
        let mut made: Vec<u64> = operations
            .iter()
            .filter_map(|operation| match operation.outcome {
                Outcome::Made(version) => Some(version),
                Outcome::Saw(..) | Outcome::Read(_) => None,
            })
            .collect();
        made.sort_unstable();
        let last = store.meta(id).unwrap().unwrap().version;
        assert!(made.iter().copied().eq(2..=last), "{id}: {made:?}");
        check_order(id, &operations);
        assert_sound(store, id);
    }
}

/// Goes through the history in the order of time. At each moment, the newest version that an operation which has
/// ended saw or made is a floor for all that begin later.
fn check_order(id: &str, operations: &[&Operation]) {
    let mut moments: Vec<(u128, bool, usize)> = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        // What ends in the nanosecond in which another begins counts as overlapping: beginnings first.
        moments.push((operation.began, false, index));
        moments.push((operation.ended, true, index));
    }
    moments.sort_unstable();
    let mut newest = 1;
    let mut floors = vec![0; operations.len()];
    for (_, is_end, index) in moments {
        if !is_end {
            floors[index] = newest;
            continue;
        }
        let (outcome, floor) = (operations[index].outcome, floors[index]);
        match outcome {
            Outcome::Made(version) => assert!(version > floor, "{id}: {version} after {floor}"),
            Outcome::Saw(expected, actual) => {
                assert!(actual >= floor, "{id}: {actual} after {floor}");
                assert_ne!(expected, actual, "{id}: a conflict with nobody");
            }
            Outcome::Read(version) => assert!(version >= floor, "{id}: {version} after {floor}"),
        }
        newest = newest.max(outcome.version());
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

impl Outcome {
    fn version(self) -> u64 {
        match self {
            Self::Made(version) | Self::Saw(_, version) | Self::Read(version) => version,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, began, ended, outcome } = self;
        let (name, expected, version) = match outcome {
            Outcome::Made(version) => ("made", 0, version),
            Outcome::Saw(expected, version) => ("saw", *expected, version),
            Outcome::Read(version) => ("read", 0, version),
        };
        write!(out, "{session} {began} {ended} {name} {expected} {version}")
    }
}

impl Operation {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [session, began, ended, name, expected, version] = *words else { panic!("{line}") };
        let (expected, version) = (expected.parse().unwrap(), version.parse().unwrap());
        Self {
            session: session.to_owned(),
            began: began.parse().unwrap(),
            ended: ended.parse().unwrap(),
            outcome: match name {
                "made" => Outcome::Made(version),
                "saw" => Outcome::Saw(expected, version),
                _ => Outcome::Read(version),
            },
        }
    }
}
