//! Somebody changes the tables by hand: `verify` finds it and says where, and an append does not seal it.

use private_postgres::Database;
use store::{Error, Flaw, Store};

use super::{place, prepare};
use crate::tampering::put_sample;
use crate::{append, assert_sound, open};

/// A store with one session of ten events.
fn sample() -> (Store, Database) {
    let (store, database) = prepare();
    put_sample(&store);
    (store, database)
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn every_column_counts() {
    let (store, database) = sample();
    let event = |version| vec![Flaw::Event(version)];
    for (sql, undo, expected) in [
        ("events SET body = '{}' WHERE version = 7", None, event(7)),
        ("events SET kind = 'x' WHERE version = 3", None, event(3)),
        ("events SET time = time + 1 WHERE version = 3", None, event(3)),
        ("events SET revision = 9 WHERE version = 3", None, event(3)),
        ("events SET digest = NULL WHERE version = 7", None, event(7)),
        (
            "events SET version = 12 WHERE version = 10",
            None,
            vec![Flaw::Missing(10), Flaw::Surplus(12)],
        ),
        ("sessions SET goal = 'another'", Some("goal"), vec![Flaw::Start]),
        ("sessions SET owner = 'bob'", Some("owner"), vec![Flaw::Start]),
        ("sessions SET step = 'elsewhere'", Some("step"), vec![Flaw::Head(10)]),
        ("sessions SET touched = touched - 1", Some("touched"), vec![Flaw::Head(10)]),
        ("sessions SET seal = root", Some("seal"), vec![Flaw::Head(10)]),
        ("definitions SET text = '{}'", Some("text"), vec![Flaw::Start]),
        ("snapshots SET text = 'another'", Some("text"), vec![Flaw::Snapshot(9)]),
    ] {
        let table = sql.split(' ').next().unwrap();
        let undo = undo.map_or_else(String::new, |column| format!(" {column}"));
        let backup = format!("CREATE TABLE kept AS SELECT * FROM {table}");
        database
            .query(&format!("SET search_path = workflowlookup; {backup}; UPDATE {sql}"))
            .unwrap();
        assert_eq!(store.verify("a").unwrap().flaws, expected, "{sql}{undo}");
        database
            .query(&format!(
                "SET search_path = workflowlookup; SET session_replication_role = replica; DELETE FROM {table};
                INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept; DROP TABLE kept"
            ))
            .unwrap();
        assert_sound(&store, "a");
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn what_was_changed_is_not_gone_on_from() {
    for (sql, flaw) in [
        ("events SET body = '{}' WHERE version = 10", Flaw::Event(10)),
        ("sessions SET step = 'elsewhere'", Flaw::Head(10)),
        ("sessions SET version = 9", Flaw::Head(9)),
    ] {
        let (store, database) = sample();
        database.query(&format!("SET search_path = workflowlookup; UPDATE {sql}")).unwrap();
        let other = open(&place(&database));
        assert_eq!(other.load("a"), Err(Error::Broken(vec![flaw])), "{sql}");
        if !sql.starts_with("sessions") {
            continue;
        }
        let expected = other.meta("a").unwrap().unwrap().version;
        let appended = other.append_now(append("a", expected));
        assert!(matches!(appended, Err(Error::Damaged(_))), "{sql}: {appended:?}");
        // Who remembers how it was writes over it, and seals nothing that is forged.
        if store.append_now(append("a", 10)).is_ok() {
            assert_sound(&store, "a");
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn forged_or_set_back_checkpoint_is_noticed() {
    let (store, database) = sample();
    let run = |sql: &str| {
        database.query(&format!("SET search_path = workflowlookup; {sql}")).unwrap();
    };
    assert_eq!(store.counter(), Ok(None), "nothing was counted yet");
    store.checkpoint().unwrap();
    let first = store.counter().unwrap().unwrap();
    run("CREATE TABLE older AS SELECT * FROM checkpoint");
    store.append_now(append("a", 10)).unwrap();
    store.checkpoint().unwrap();
    let second = store.counter().unwrap().unwrap();
    assert_eq!((second.store.clone(), second.count), (first.store.clone(), first.count + 1));
    assert_eq!(store.counter_flaws(), Ok(vec![]));

    run("SELECT setval('events_id_seq', 3)");
    let flaws = store.counter_flaws().unwrap();
    assert_eq!(flaws, ["it ends at event 3 and was sealed with event 11"]);
    run("SELECT setval('events_id_seq', 11)");
    assert_eq!(store.counter_flaws(), Ok(vec![]));

    run(
        "UPDATE checkpoint SET (number, position, seal) = (SELECT number, position, seal FROM older)",
    );
    assert_eq!(
        store.counter(),
        Ok(Some(first)),
        "an older one is sound, and the anchor knows better"
    );
    run("UPDATE checkpoint SET number = number + 5");
    assert!(matches!(store.counter(), Err(Error::Damaged(_))));
    store.checkpoint().unwrap();
    let flaws = store.counter_flaws().unwrap();
    assert_eq!(flaws, ["the checkpoint of the store was changed"], "it is not sealed again");
}
