//! Behind nginx, which hands requests to the replicas in turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::nginx::{Nginx, answered};
use super::walk::{Kind, Met, Walker};
use super::{Reserved, place, replica};
use crate::Place;
use crate::agent::Era;
use crate::http_agent::{allow_many_files, is_well};
use crate::http_attacks::smuggling;
use crate::http_client::{Connection, Request};
use crate::http_server::Listening;
use crate::transcripts::PATIENCE;

/// How many clients there are of each era.
const CLIENTS: usize = 200;
/// Connections of one address, as `docs/hosting/nginx.conf` has it.
const CONNECTIONS_MAX: usize = 256;
/// A client needs little.
const STACK_BYTES: usize = 512 * 1024;

#[test]
#[ignore = "needs nginx, which `cargo xtask test` installs"]
fn clients_survive_the_death_of_a_replica() {
    allow_many_files();
    let place = place();
    let reserved = [(); 2].map(|()| Reserved::new());
    let mut replicas = reserved.each_ref().map(|own| replica(&place, &own.address.to_string()));
    let nginx = Nginx::start(&[replicas[0].address, replicas[1].address]);
    let met = Met::default();
    let start = Instant::now();
    let ends: BTreeMap<String, u64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2 * CLIENTS)
            .map(|number| {
                let walker = walker(number, &nginx, &met);
                let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, || walker.walk()).unwrap()
            })
            .collect();
        let steps = |share: usize| 2 * CLIENTS * 4 * share / 100;
        wait_for(&met.answers, steps(15));
        replicas[0].child.kill().unwrap();
        replicas[0].wait();
        restart(&mut replicas[0], &place);
        wait_for(&met.answers, steps(50));
        replicas[1].terminate();
        assert_eq!(replicas[1].wait(), Some(0));
        restart(&mut replicas[1], &place);
        clients.into_iter().map(|client| client.join().unwrap().end()).collect()
    });
    let took = start.elapsed();
    check(&place, &ends);
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    eprintln!(
        "{} clients, {} answers in {took:.1?}, a replica killed and another told to end meanwhile; to be tried again: \
         {} connections that broke, {} answers of the proxy that it lost a replica, {} that there was too much; {} \
         decisions, {} calls answered before one, {} changes heard; 0 lost",
        2 * CLIENTS,
        load(&met.answers),
        load(&met.broken),
        load(&met.gateway),
        load(&met.busy),
        load(&met.decided),
        load(&met.undecided),
        load(&met.heard),
    );
    assert!(load(&met.heard) > 0, "nobody heard of anything");
    assert_eq!(load(&met.store), 0, "a file is there all the time");
    assert!(load(&met.broken) + load(&met.gateway) > 0, "nobody noticed that a replica died");
    for replica in replicas {
        assert_eq!(replica.end(), [""; 0], "nothing to complain about");
    }
}

/// A connection counts while its request is in flight: its header is read, and its body is not.
#[test]
#[ignore = "needs nginx, which `cargo xtask test` installs"]
fn proxy_bounds_the_connections_of_an_address() {
    let place = place();
    let replica = replica(&place, "127.0.0.1:0");
    let nginx = Nginx::start(&[replica.address]);
    let begin = || {
        let mut connection = Connection::open(nginx.address).unwrap();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n";
        connection.send_raw(head.as_bytes()).unwrap();
        connection
    };
    let status = || Request::new("GET", "/healthz").send(nginx.address).unwrap().head.status;
    let wait_for = |wanted: u16| {
        let start = Instant::now();
        while status() != wanted {
            assert!(start.elapsed() < PATIENCE, "not {wanted}: {}", nginx.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut unfinished: Vec<Connection> = (1..CONNECTIONS_MAX).map(|_| begin()).collect();
    assert_eq!(status(), 200);
    unfinished.push(begin());
    wait_for(429);
    drop(unfinished);
    wait_for(200);
    drop(nginx);
    assert_eq!(replica.end(), [""; 0]);
}

fn walker<'a>(number: usize, nginx: &Nginx, met: &'a Met) -> Walker<'a> {
    let era = if number.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
    let kind = match (era, number / 2 % 5) {
        (_, 0) => Kind::Gated,
        (Era::Legacy, 1) => Kind::Following,
        _ => Kind::Plain,
    };
    Walker::new(nginx.address, era, kind, format!("client-{number}"), met)
}

/// Begins it anew where it was.
fn restart(own: &mut Listening, place: &Place) {
    *own = replica(place, &own.address.to_string());
}

fn wait_for(answers: &AtomicUsize, wanted: usize) {
    let start = Instant::now();
    while answers.load(Ordering::Relaxed) < wanted {
        assert!(start.elapsed() < 2 * PATIENCE, "the clients do not get on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// There is one session for each client, complete, where its client saw it last; and every chain holds.
fn check(place: &Place, ends: &BTreeMap<String, u64>) {
    let listed = place.run(&["session", "list", "--limit", "1000", "--json"]).json();
    let sessions = listed["sessions"].as_array().unwrap();
    let stored: BTreeMap<String, u64> = sessions
        .iter()
        .map(|session: &Value| {
            assert_eq!(session["status"], "complete", "{session}");
            let id = session["sessionId"].as_str().unwrap().to_owned();
            (id, session["revision"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(sessions.len(), 2 * CLIENTS);
    assert_eq!(stored, *ends);
    let verified = place.run(&["session", "verify"]);
    assert_eq!(verified.status, 0, "{}", verified.shown());
}

/// Whatever nginx makes of them, no replica sees a request that nginx did not mean to pass on.
#[test]
#[ignore = "needs nginx, which `cargo xtask test` installs"]
fn nothing_is_smuggled_past_the_proxy() {
    let place = place();
    let reserved = [(); 2].map(|()| Reserved::new());
    let replicas = reserved.each_ref().map(|own| replica(&place, &own.address.to_string()));
    let nginx = Nginx::start(&[replicas[0].address, replicas[1].address]);
    let seen = || replicas.iter().map(answered).sum::<u64>();
    // What a client is answered by a proxy on one connection, attack by attack.
    for (name, _, bytes) in smuggling::attempts() {
        let mut connection = Connection::open(nginx.address).unwrap();
        let bytes = bytes.replace("{host}", &nginx.address.to_string());
        let _ = connection.send_raw(bytes.as_bytes());
        eprintln!("{name}: {}", crate::http_attacks::answers(&mut connection));
        is_well(nginx.address, None).unwrap();
        let start = Instant::now();
        // It writes its log behind the answer.
        while seen() != nginx.passed_on() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(seen() <= nginx.passed_on(), "{name}: {} {}", seen(), nginx.passed_on());
    }
    let status = |request: Request| request.send(nginx.address).unwrap().head.status;
    assert_eq!(status(Request::new("GET", "/metrics")), 404);
    assert_eq!(status(Request::post(vec![b' '; 16 * 1024 * 1024 + 1])), 413);
    assert_eq!(status(Request::new("GET", "/readyz")), 200);
    assert_eq!(nginx.errors().matches("[emerg]").count(), 0);
}
