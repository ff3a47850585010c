//! A PostgreSQL that is not there when the server starts, and one that goes and comes back.

use private_postgres::{Database, Flow, Postgres, find};
use serde_json::json;

use super::client::{LATEST, PAUSE};
use super::{Client, LONG, Site, Walk};
use crate::Place;
use crate::agent::{Agent, Era, advance, refused};
use crate::http_agent::{answer_of, modern};
use crate::http_client::Request;
use crate::http_server::Listening;

/// How many clients there are with a handshake, more than threads that read requests.
const CLIENTS: usize = 16;

/// A server that lets anybody in: tokens are where the store is, and nobody could say whether there are any.
fn unasked(place: &Place) -> Listening {
    Listening::spawn(place.command(&["serve", "--http", "127.0.0.1:0", "--insecure"]))
}

/// Where it cannot be said whether there are tokens, nobody is let in without one.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn nobody_is_let_in_before_the_tokens_are_read() {
    let mut postgres = Postgres::start(&find().unwrap()).unwrap();
    let place = Place::storing(postgres.maintenance_url());
    let made = place.run(&["token", "new", "ann"]);
    assert_eq!(made.status, 0, "{}", made.shown());
    postgres.stop().unwrap();
    let server = Listening::start(&place);
    let list = || modern("tools/list", json!({}), &json!({}));
    let with_token = || list().header("Authorization", &format!("Bearer {}", made.stdout.trim()));
    for request in [list(), with_token()] {
        assert_eq!(request.send(server.address).unwrap().head.status, 503);
    }
    postgres.restart().unwrap();
    let is_ready =
        || Request::new("GET", "/readyz").send(server.address).unwrap().head.status == 200;
    while !is_ready() {
        std::thread::sleep(PAUSE);
    }
    assert_eq!(list().send(server.address).unwrap().head.status, 401);
    assert_eq!(with_token().send(server.address).unwrap().head.status, 200);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_waits_for_its_store_to_come() {
    let mut postgres = Postgres::start(&find().unwrap()).unwrap();
    postgres.stop().unwrap();
    let place = Place::storing(postgres.url("sessions"));
    place.write("workflows/long-one.json", LONG);
    let server = unasked(&place);
    let clients = [(); CLIENTS].map(|()| Client::of(server.address));
    let client = &clients[0];
    assert_eq!(client.status("/readyz"), 503, "from the first moment");
    let start = json!({"workflowId": "long-one", "key": "one"});
    std::thread::scope(|scope| {
        for client in &clients {
            let start = &start;
            scope.spawn(move || {
                client.ask_without_a_store();
                assert!(!client.call(Era::Legacy, "workflow_start", start).is_good());
            });
        }
        for _ in 0..10 {
            client.ask_without_a_store();
            assert_eq!(client.status("/readyz"), 503);
            std::thread::sleep(PAUSE);
        }
    });
    postgres.restart().unwrap();
    let begun = client.call(Era::Modern, "workflow_start", &start);
    assert!(!begun.is_good(), "there is no database yet: {begun:?}");
    postgres.query("postgres", "create database sessions").unwrap();
    client.wait_until_ready();
    let begun = client.call(Era::Legacy, "workflow_start", &start).good();
    let id = begun["structuredContent"]["sessionId"].as_str().unwrap();
    // What was answered is there after a crash of PostgreSQL, and who asks in the meantime is told so.
    for revision in 0..3 {
        let arguments = advance(id, revision, "round", "done");
        let taken = client.call(Era::Legacy, "workflow_advance", &arguments).good();
        assert_eq!(taken["structuredContent"]["revision"], revision + 1);
        postgres.kill().unwrap();
        let read = json!({"uri": format!("session://{id}")});
        assert!(!client.ask(Era::Modern, "resources/read", &read, LATEST).is_good());
        client.wait_until_away();
        postgres.restart().unwrap();
        client.wait_until_ready();
        let again = client.call(Era::Modern, "workflow_advance", &arguments).good();
        assert_eq!(again["structuredContent"], taken["structuredContent"]);
    }
    clients.into_iter().for_each(Client::part);
    assert_eq!(place.run(&["session", "verify"]).status, 0);
    server.end();
}

/// It could not read what is there, and nobody could read what it would write.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_with_another_key_is_not_ready() {
    let database = Database::create().unwrap();
    let first = Place::storing(database.url());
    assert_eq!(first.run(&["token", "new", "ann"]).status, 0);
    let other = Place::storing(database.url());
    other.write("workflows/long-one.json", LONG);
    let server = unasked(&other);
    let client = Client::of(server.address);
    let params = json!({"name": "workflow_start", "arguments": {"workflowId": "long-one"}});
    let answer = answer_of(&modern("tools/call", params, &json!({})).send(server.address).unwrap());
    let (text, code) = refused(&answer["result"]);
    assert_eq!(code, -32006);
    assert!(text.contains("another key") && text.contains("--key-file"), "{text}");
    for _ in 0..10 {
        assert_eq!(client.status("/readyz"), 503);
        client.ask_without_a_store();
    }
    let said = server.end();
    assert!(said.iter().any(|line| line.contains("another key")), "{said:?}");
    assert_eq!(first.run(&["session", "verify"]).status, 0);
}

/// Told to end, it does, although nobody hears what it still has to ask.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_server_ends_while_its_store_says_nothing() {
    let site = Site::new();
    let mut walk = Walk::start(&site.client, Era::Modern);
    walk.must_go_on(&site.client);
    site.cut.set(Flow::Hold);
    let Site { mut server, client, cut, place, .. } = site;
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| walk.go_on(&client));
        std::thread::sleep(PAUSE);
        server.terminate();
        assert!(!asked.join().unwrap().is_good(), "what is under way is answered");
        assert_eq!(server.wait(), Some(0));
    });
    let mut agent = Agent::start(&place);
    agent.begin_call("workflow_status", &json!({"sessionId": walk.id}));
    agent.process.input = None;
    assert_eq!(agent.process.wait().code(), Some(0), "and so it is over stdio");
    cut.set(Flow::Pass);
    let mut agent = Agent::start(&place);
    let revision = agent.status(&walk.id)["revision"].as_u64();
    assert!(matches!(revision, Some(1 | 2)), "it was written or not: {revision:?}");
    agent.end();
}
