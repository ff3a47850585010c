//! The line to the server is cut: what is under way is done once, or its caller is told to make the call again.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use private_postgres::{Cut, Database, Flow, Towards};
use store::limits::WAIT_MAX;
use store::{Address, Created, Error, Key, Store};

use crate::{KEY, append, assert_sound, fill, open, session};

/// A store by way of a line, and another that is not.
fn prepare() -> (Database, Cut, Store, Store) {
    let database = Database::create().unwrap();
    let cut = Cut::before(database.address().unwrap()).unwrap();
    let address = Address::parse(&database.url_at(cut.address())).unwrap();
    let store = Store::connect(&address, Some(Key::new(KEY)), 4).unwrap();
    let witness = open(database.url().as_ref());
    store.create_now(session("a")).unwrap();
    (database, cut, store, witness)
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it never comes to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn begin<T: Send + 'static>(
    call: impl FnOnce(Box<dyn FnOnce(Result<T, Error>) + Send>),
) -> Receiver<Result<T, Error>> {
    let (sender, answers) = channel();
    call(Box::new(move |answer| sender.send(answer).unwrap()));
    answers
}

/// The server has written it, and nobody hears of that. It is asked again, and recognised.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_lost_answer_is_found() {
    let (_database, cut, store, witness) = prepare();
    fill(&store, "a", 2);
    cut.set_towards(Towards::Client, Flow::Hold);
    let appended = begin(|done| store.append(append("a", 2), done));
    wait_until(|| witness.meta("a").unwrap().unwrap().version == 3);
    cut.refuse();
    cut.set(Flow::Pass);
    assert_eq!(appended.recv().unwrap(), Ok(3));

    // What was never said over a connection is prepared first, and that would not be answered either.
    store.create_now(session("c")).unwrap();
    cut.set_towards(Towards::Client, Flow::Hold);
    let created = begin(|done| store.create(session("b"), done));
    wait_until(|| witness.meta("b").unwrap().is_some());
    cut.refuse();
    cut.set(Flow::Pass);
    assert_eq!(created.recv().unwrap(), Ok(Created::New));

    for id in ["a", "b", "c"] {
        assert_sound(&witness, id);
    }
}

/// Somebody else was first meanwhile: that is no answer of ours.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn what_somebody_else_wrote_is_not_taken_for_ours() {
    let (_database, cut, store, witness) = prepare();
    cut.set_towards(Towards::Server, Flow::Hold);
    let appended = begin(|done| store.append(append("a", 1), done));
    let mut other = append("a", 1);
    other.event.body = "{\"other\":true}".to_owned();
    assert_eq!(witness.append_now(other), Ok(2));
    cut.refuse();
    cut.set(Flow::Pass);
    assert_eq!(appended.recv().unwrap(), Err(Error::Conflict { actual: 2 }));
}

/// The bound is generous: it is about waiting for ever.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn nobody_waits_beyond_the_deadline() {
    let (_database, cut, store, witness) = prepare();
    type Break = fn(&Cut);
    let breaks: [(&str, Break); 4] = [
        ("swallows", |cut| cut.set(Flow::Swallow)),
        ("refuses", Cut::refuse),
        ("holds answers", |cut| cut.set_towards(Towards::Client, Flow::Hold)),
        ("is slow", |cut| cut.set(Flow::Delay(Duration::from_secs(30)))),
    ];
    for (how, cut_it) in breaks {
        let version = witness.meta("a").unwrap().unwrap().version;
        cut_it(&cut);
        let begun = Instant::now();
        let appended = begin(|done| store.append(append("a", version), done));
        let read = store.meta("a");
        assert!(matches!(read, Err(Error::Unavailable(_))), "{how}: {read:?}");
        let answer = appended.recv().unwrap();
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{how}: {answer:?}");
        assert!(begun.elapsed() < WAIT_MAX * 2, "{how}: {:?}", begun.elapsed());
        // It recovers by itself.
        cut.refuse();
        cut.set(Flow::Pass);
        let now = store.meta("a").unwrap().unwrap().version;
        let again = store.append_now(append("a", now));
        assert_eq!(again, Ok(now + 1), "{how}");
        assert!(now <= version + 1, "{how}");
        assert_sound(&witness, "a");
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_line_that_is_closed_on_one_side_is_made_anew() {
    let (_database, cut, store, witness) = prepare();
    for towards in [Towards::Client, Towards::Server] {
        let version = witness.meta("a").unwrap().unwrap().version;
        cut.half_close(towards);
        assert_eq!(store.append_now(append("a", version)), Ok(version + 1));
    }
    assert_sound(&witness, "a");
}

/// What a process that serves others knows without asking.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_watched_server_is_known_to_be_away() {
    let (_database, cut, store, witness) = prepare();
    store.keep_watch();
    assert_eq!(store.has_ended(&[1; 16]), Ok(false));
    witness.end_handshake([1; 16], 1_000, 0).unwrap();
    wait_until(|| store.has_ended(&[1; 16]) == Ok(true));
    cut.refuse();
    wait_until(|| store.is_away());
    assert_eq!(store.has_ended(&[1; 16]), Ok(true));
    cut.set(Flow::Pass);
    wait_until(|| !store.is_away());
}

/// Such as a standby.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_that_can_only_be_read_is_away() {
    let (database, cut, store, _witness) = prepare();
    store.keep_watch();
    wait_until(|| !store.is_away());
    let read_only = |is: &str| {
        let name = database.name();
        let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = {is}");
        // The next connections are so.
        private_postgres::query(
            &database.url(),
            &format!("SET transaction_read_only = off; {sql}"),
        )
        .unwrap();
        cut.refuse();
        cut.set(Flow::Pass);
    };
    read_only("on");
    wait_until(|| store.is_away());
    let error = store.append_now(append("a", 1)).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    read_only("off");
    wait_until(|| !store.is_away());
    assert_eq!(store.append_now(append("a", 1)), Ok(2));
}
