//! Many processes that begin at once, and tables of other versions of ours.

use private_postgres::Database;
use store::{Error, Key, Store};

use super::{make, place, prepare};
use crate::child::Child;
use crate::{append, assert_sound, open, session};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn processes_may_make_the_tables_at_once() {
    for _ in 0..3 {
        let database = Database::create().unwrap();
        let place = place(&database);
        let children: Vec<Child> =
            (0..6).map(|number| Child::start("open", &place, &[&format!("s{number}")])).collect();
        for child in children {
            assert_eq!(child.lines(), ["opened"]);
        }
        let store = open(&place);
        for number in 0..6 {
            assert_sound(&store, &format!("s{number}"));
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn another_key_is_refused() {
    let (store, database) = prepare();
    store.create_now(session("a")).unwrap();
    for key in [None, Some(Key::new([8; 32]))] {
        let address = store::Address::parse(&database.url()).unwrap();
        let other = Store::connect(&address, key, 2).unwrap();
        assert_eq!(other.meta("a"), Err(Error::WrongKey));
        assert_eq!(other.create_now(session("b")), Err(Error::WrongKey));
    }
    assert_eq!(store.append_now(append("a", 1)), Ok(2));
}

/// A newer program may have been here. Where it says that we can go on beside it, we do.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_newer_format_is_gone_on_with_or_left_alone() {
    let (store, database) = prepare();
    store.create_now(session("a")).unwrap();
    let format = "UPDATE workflowlookup.settings SET format = 99";
    database.query(format).unwrap();
    assert_eq!(open(&place(&database)).append_now(append("a", 1)), Ok(2));
    database.query("UPDATE workflowlookup.settings SET needs = 98").unwrap();
    let error = open(&place(&database)).append_now(append("a", 2)).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    assert_eq!(database.query("SELECT format FROM workflowlookup.settings").unwrap().trim(), "99");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn what_cannot_be_reached_is_said() {
    let (_store, database) = make(None);
    let nowhere = database.url().replace(database.name(), "nowhere");
    let error = open(nowhere.as_ref()).meta("a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store cannot be used now: database \"nowhere\" does not exist"
    );
}

/// Somebody who may make nothing in the database works in a schema that was made for them.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_schema_that_somebody_else_has_made_is_enough() {
    let database = Database::create().unwrap();
    let role = format!("lowly_{}", database.name());
    database.query(&format!("CREATE ROLE {role} LOGIN")).unwrap();
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let error = open(url.as_ref()).create_now(session("a")).unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    database.query(&format!("CREATE SCHEMA workflowlookup AUTHORIZATION {role}")).unwrap();
    let store = open(url.as_ref());
    store.create_now(session("a")).unwrap();
    assert_sound(&store, "a");
    drop(store);
    database.query(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn who_only_looks_makes_nothing() {
    let database = Database::create().unwrap();
    let address = store::Address::parse(&database.url()).unwrap();
    let looking = Store::looking(&address, Some(Key::new([8; 32])), 1).unwrap();
    assert_eq!(looking.is_made(), Ok(false));
    assert_eq!(looking.meta("a"), Err(Error::NotMade));
    let store = open(&place(&database));
    store.create_now(session("a")).unwrap();
    assert_eq!(looking.is_made(), Err(Error::WrongKey), "another one was first");
}
