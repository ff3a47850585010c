//! Whom sessions are shared with.

use std::sync::atomic::{AtomicUsize, Ordering};

use store::limits::{OPEN_SHARES_MAX, PAGE_MAX, PRINCIPAL_BYTES_MAX, SHARES_MAX};
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

pub(crate) fn open_shares_between_two_principals_are_bounded(store: Store) {
    let with = |id: String, owner: &str| NewSession {
        owner: owner.to_owned(),
        shared_with: vec!["bob".to_owned()],
        ..session(&id)
    };
    for number in 0..OPEN_SHARES_MAX {
        store.create_now(with(format!("s{number}"), "ann")).unwrap();
    }
    let too_many = Error::TooManyOpenShares { principal: "bob".to_owned() };
    assert_eq!(store.create_now(with("one-more".to_owned(), "ann")), Err(too_many.clone()));
    assert_eq!(store.meta("one-more"), Ok(None), "nothing of it was begun");
    store.create_now(session("one-more")).unwrap();
    assert_eq!(store.share("one-more", "bob", true), Err(too_many.clone()));
    assert_eq!(store.shares("one-more"), Ok(Vec::new()));
    assert_eq!(store.share("s0", "bob", true), Ok(()), "it is one of them");

    // Others share with him, and she with others and with herself.
    assert_eq!(store.create_now(with("of-eve".to_owned(), "eve")), Ok(Created::New));
    assert_eq!(store.share("one-more", "eve", true), Ok(()));
    for number in 0..=OPEN_SHARES_MAX {
        let shared_with = vec!["ann".to_owned()];
        store.create_now(NewSession { shared_with, ..session(&format!("own{number}")) }).unwrap();
    }

    // One that is complete, or is shared no more, makes room.
    store.append_now(Append { head: complete(1), ..append("s0", 1) }).unwrap();
    assert_eq!(store.share("one-more", "bob", true), Ok(()));
    store.share("s1", "bob", false).unwrap();
    assert_eq!(store.create_now(with("last".to_owned(), "ann")), Ok(Created::New));
    assert_eq!(store.share("s1", "bob", true), Err(too_many.clone()));

    // One that is open again counts again.
    let reopened = || Append { is_reopened: true, ..append("s0", 2) };
    assert_eq!(store.append_now(reopened()), Err(too_many));
    assert_eq!(store.meta("s0").unwrap().unwrap().head.status, Status::Complete);
    store.share("s2", "bob", false).unwrap();
    assert_eq!(store.append_now(reopened()), Ok(3));
    assert_sound(&store, "s0");
}

pub(crate) fn open_shares_are_bounded_for_concurrent_writers(store: Store) {
    const WRITERS: usize = 4;
    let shared = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, shared) = (&store, &shared);
            scope.spawn(move || {
                for number in 0..OPEN_SHARES_MAX / 2 {
                    let id = format!("w{writer}-{number}");
                    let is_shared = if number % 2 == 0 {
                        let shared_with = vec!["bob".to_owned()];
                        store.create_now(NewSession { shared_with, ..session(&id) }).is_ok()
                    } else {
                        store.create_now(session(&id)).unwrap();
                        store.share(&id, "bob", true).is_ok()
                    };
                    shared.fetch_add(usize::from(is_shared), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(shared.into_inner(), OPEN_SHARES_MAX);
    assert_eq!(store.shared_with("bob", &[], 100).unwrap().len(), OPEN_SHARES_MAX);
}

pub(crate) fn complete_shares_displace_no_open_ones(store: Store) {
    let with = |id: String| NewSession { shared_with: vec!["bob".to_owned()], ..session(&id) };
    store.create_now(with("open".to_owned())).unwrap();
    for number in 0..=PAGE_MAX {
        let new = NewSession { head: complete(0), ..with(format!("c{number}")) };
        store.create(new, Box::new(|created| assert_eq!(created, Ok(Created::New))));
    }
    let found = store.shared_with("bob", &[Status::Running, Status::Waiting], 10).unwrap();
    assert_eq!(found.iter().map(|meta| &*meta.id).collect::<Vec<_>>(), ["open"]);
}
