//! Whom sessions are shared with.

use store::limits::{PRINCIPAL_BYTES_MAX, SHARES_MAX};
use store::{Append, Created, Error, NewSession, Status, Store};

use crate::{append, assert_sound, complete, session};

pub(crate) fn a_session_is_shared_until_it_is_not(store: Store) {
    let shared_with = vec!["bob".to_owned(), "eve".to_owned(), "bob".to_owned()];
    store.create_now(NewSession { shared_with, ..session("a") }).unwrap();
    store.create_now(session("b")).unwrap();
    let with = |id: &str| store.shares(id).unwrap();
    assert_eq!(with("a"), ["bob", "eve"]);
    assert_eq!(with("b"), [""; 0]);
    assert_eq!(store.is_shared("a", "bob"), Ok(true));
    assert_eq!(store.is_shared("a", "ann"), Ok(false), "its owner has it anyway");
    assert_eq!(store.is_shared("b", "bob"), Ok(false));
    assert_eq!(store.is_shared("none", "bob"), Ok(false));

    // What is so already stays so.
    for _ in 0..2 {
        store.share("b", "https://login.example#Zoë", true).unwrap();
        store.share("a", "bob", false).unwrap();
    }
    assert_eq!(with("a"), ["eve"]);
    assert_eq!(with("b"), ["https://login.example#Zoë"]);
    assert_eq!(store.is_shared("a", "bob"), Ok(false));
    for is_on in [true, false] {
        assert_eq!(store.share("none", "bob", is_on), Err(Error::NotFound));
    }
    assert_eq!(store.shares("none"), Err(Error::NotFound));

    // A start that is repeated shares nothing anew.
    let keyed = |shared: &str| NewSession {
        key: Some("k".to_owned()),
        shared_with: vec![shared.to_owned()],
        ..session("c")
    };
    assert_eq!(store.create_now(keyed("bob")), Ok(Created::New));
    assert_eq!(store.create_now(keyed("eve")), Ok(Created::Existing("c".to_owned())));
    assert_eq!(with("c"), ["bob"]);
    // It is no part of the log.
    for id in ["a", "b", "c"] {
        assert_sound(&store, id);
    }
}

pub(crate) fn what_is_shared_with_somebody_is_listed(store: Store) {
    let shared_with = vec!["bob".to_owned()];
    for id in ["a", "b", "c", "d"] {
        let shared_with = shared_with.clone();
        store.create_now(NewSession { shared_with, ..session(id) }).unwrap();
    }
    store.create_now(session("e")).unwrap();
    store.share("d", "bob", false).unwrap();
    store.share("e", "eve", true).unwrap();
    store.append_now(Append { head: complete(1), ..append("b", 1) }).unwrap();
    let listed = |principal: &str, statuses: &[Status], limit| {
        let found = store.shared_with(principal, statuses, limit).unwrap();
        found.into_iter().map(|meta| meta.id).collect::<Vec<_>>()
    };
    assert_eq!(listed("bob", &[], 10), ["c", "b", "a"], "the newest first");
    assert_eq!(listed("bob", &[Status::Running, Status::Waiting], 10), ["c", "a"]);
    assert_eq!(listed("bob", &[Status::Running], 1), ["c"]);
    assert_eq!(listed("bob", &[Status::Complete], 10), ["b"]);
    assert_eq!(listed("eve", &[], 10), ["e"]);
    assert_eq!(listed("ann", &[], 10), [""; 0]);
    let meta = store.shared_with("eve", &[], 1).unwrap().remove(0);
    assert_eq!(Some(meta), store.meta("e").unwrap());

    // What is pruned is nobody's any more.
    assert_eq!(store.prune(u64::from(u32::MAX), 100), Ok(1));
    assert_eq!(listed("bob", &[], 10), ["c", "a"]);
    assert_eq!(store.is_shared("b", "bob"), Ok(false));
}

pub(crate) fn shares_are_bounded(store: Store) {
    let names = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>();
    let with = |id: &str, count| NewSession { shared_with: names(count), ..session(id) };
    assert_eq!(store.create_now(with("a", SHARES_MAX + 1)), Err(Error::TooManyShares));
    assert_eq!(store.meta("a"), Ok(None));
    assert_eq!(store.create_now(with("a", SHARES_MAX)), Ok(Created::New));
    assert_eq!(store.share("a", "one more", true), Err(Error::TooManyShares));
    assert_eq!(store.share("a", "p0", true), Ok(()), "it is one of them");
    assert_eq!(store.shares("a").unwrap().len(), SHARES_MAX);
    store.share("a", "p0", false).unwrap();
    assert_eq!(store.share("a", "one more", true), Ok(()));

    let long = "x".repeat(PRINCIPAL_BYTES_MAX);
    store.share("a", "p1", false).unwrap();
    assert_eq!(store.share("a", &long, true), Ok(()));
    for name in ["", &format!("{long}x")] {
        assert!(store.share("a", name, true).is_err());
        let shared_with = vec![name.to_owned()];
        assert!(store.create_now(NewSession { shared_with, ..session("b") }).is_err());
    }
    let owner = NewSession { owner: long.clone(), ..session("c") };
    assert_eq!(store.create_now(owner), Ok(Created::New));
    assert_eq!(store.meta("c").unwrap().unwrap().owner, long);
}
