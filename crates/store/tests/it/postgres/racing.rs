//! Writers that race, and a server that dies under them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use private_postgres::{Database, Postgres, find};
use store::{Append, Error, Store};

use super::place;
use crate::{append, assert_sound, event, histories, open, session};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn threads_are_linearizable() {
    for sessions in [1, 5] {
        histories::threads(&place(&Database::create().unwrap()), sessions);
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn processes_are_linearizable() {
    for sessions in [1, 5] {
        histories::processes(&place(&Database::create().unwrap()), sessions);
    }
}

/// What was acknowledged is there, once, whatever became of the server.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_that_is_killed_loses_nothing() {
    let mut server = Postgres::start(&find().unwrap()).unwrap();
    let url = server.maintenance_url();
    let store = open(Path::new(&url));
    let is_over = AtomicBool::new(false);
    let ids = ["a", "b", "c", "d"];
    for id in ids {
        store.create_now(session(id)).unwrap();
    }
    let acknowledged = std::thread::scope(|scope| {
        let writers: Vec<_> =
            ids.iter().map(|id| scope.spawn(|| write(&store, id, &is_over))).collect();
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(700));
            server.kill().unwrap();
            server.restart().unwrap();
        }
        std::thread::sleep(Duration::from_millis(700));
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    for (id, bodies) in ids.iter().zip(acknowledged) {
        assert!(bodies.len() > 10, "{id} had a chance to write");
        assert_sound(&store, id);
        let mut stored = Vec::new();
        while let Some(page) = Some(store.events(id, stored.len() as u64 + 2, 1_000).unwrap())
            .filter(|page| !page.is_empty())
        {
            stored.extend(page.into_iter().map(|event| event.body));
        }
        // In the order in which they were acknowledged, none twice and none that nobody knows of.
        assert_eq!(stored, bodies, "{id}");
    }
}

/// Fewer than a log may have, however long a restart takes.
const WRITES_MAX: usize = 9_000;

/// One event after the other, each again until it is acknowledged.
fn write(store: &Store, id: &str, is_over: &AtomicBool) -> Vec<String> {
    let mut bodies = Vec::new();
    while !is_over.load(Ordering::Relaxed) && bodies.len() < WRITES_MAX {
        let expected = bodies.len() as u64 + 1;
        let body = format!("{{\"number\":{expected}}}");
        let new = || Append { event: event(&body), ..append(id, expected) };
        loop {
            match store.append_now(new()) {
                Ok(version) => break assert_eq!(version, expected + 1),
                // Ours, from a call that came to no answer: nobody else writes here.
                Err(Error::Conflict { actual }) => break assert_eq!(actual, expected + 1),
                Err(Error::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        bodies.push(body);
    }
    bodies
}
