//! What one of them does, the others know.

use std::time::{Duration, Instant};

use private_postgres::Database;
use serde_json::json;

use crate::Place;
use crate::agent::{Agent, Era, advance};
use crate::http_agent::{handshake, hello, legacy, modern, session_of};
use crate::http_client::{Connection, Request};
use crate::http_replicas::{
    TOLD_WITHIN, call, furnished, is_answered_elsewhere, next_message, replica,
    tells_of_another_replica, walks_through_both,
};
use crate::sessions_live::hears_of_another_server;

const PAUSE: Duration = Duration::from_millis(20);

fn on_a_server(test: impl FnOnce(&Place)) {
    let database = Database::create().unwrap();
    test(&furnished(Place::storing(database.url())));
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_client_walks_through_both() {
    on_a_server(walks_through_both);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn an_answer_may_reach_another_replica_than_the_one_that_asked() {
    on_a_server(is_answered_elsewhere);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_stream_tells_what_another_replica_does() {
    on_a_server(tells_of_another_replica);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn who_follows_a_session_over_stdio_hears_what_another_server_does() {
    on_a_server(hears_of_another_server);
}

/// The same without a handshake.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_listener_hears_what_another_replica_does() {
    on_a_server(|place| {
        let [own, other] = [(); 2].map(|()| replica(place, "127.0.0.1:0"));
        let session = handshake(other.address);
        let letter = json!({"workflowId": "letter"});
        let begun = call(other.address, &session, "workflow_start", &letter);
        let id = begun["sessionId"].as_str().unwrap();
        let uri = format!("session://{id}");
        let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let mut stream = Connection::open(own.address).unwrap();
        let listen = modern("subscriptions/listen", filter, &json!({}));
        assert!(stream.begin(&listen).unwrap().is_stream());
        let first = next_message(&mut stream);
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        stream.set_patience(TOLD_WITHIN);
        for revision in 0..3 {
            call(
                other.address,
                &session,
                "workflow_advance",
                &advance(id, revision, "write-it", "Hey"),
            );
            let told = next_message(&mut stream);
            assert_eq!(told["method"], "notifications/resources/updated", "{told}");
            assert_eq!(told["params"]["uri"], *uri);
        }
    });
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn who_said_goodbye_to_one_is_unknown_to_all() {
    on_a_server(|place| {
        let [own, other] = [(); 2].map(|()| replica(place, "127.0.0.1:0"));
        let (session, stays) = (handshake(own.address), handshake(own.address));
        let status = |session: &str| {
            let list = json!({"name": "workflow_list", "arguments": {}});
            legacy(session, 1, "tools/call", &list).send(other.address).unwrap().head.status
        };
        assert_eq!(status(&session), 200);
        let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session);
        assert_eq!(end.send(own.address).unwrap().head.status, 204);
        let start = Instant::now();
        while status(&session) != 404 {
            assert!(start.elapsed() < TOLD_WITHIN, "it is still known elsewhere");
            std::thread::sleep(PAUSE);
        }
        assert_eq!(status(&stays), 200);
        // One that starts later knows it too.
        let third = replica(place, "127.0.0.1:0");
        let list = json!({"name": "workflow_list", "arguments": {}});
        let known = legacy(&session, 1, "tools/call", &list).send(third.address).unwrap();
        assert_eq!(known.head.status, 404);
    });
}

/// A person decides on the command line, while the client's user is being asked.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test"]
fn a_decision_on_the_command_line_reaches_who_waits() {
    on_a_server(|place| {
        let server = replica(place, "127.0.0.1:0");
        let session = session_of(&hello(&json!({"elicitation": {}})).send(server.address).unwrap());
        let letter = json!({"workflowId": "letter"});
        let begun = call(server.address, &session, "workflow_start", &letter);
        let id = begun["sessionId"].as_str().unwrap();
        call(server.address, &session, "workflow_advance", &advance(id, 0, "write-it", "Dear Ada"));
        let arguments = advance(id, 1, "send-it", "by post");
        let params = json!({"name": "workflow_advance", "arguments": arguments});
        let mut waiting = Connection::open(server.address).unwrap();
        assert!(waiting.begin(&legacy(&session, 7, "tools/call", &params)).unwrap().is_stream());
        let asked = next_message(&mut waiting);
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let approved = place.run(&["session", "approve", id, "--version", "3", "--reason", "fine"]);
        assert_eq!(approved.status, 0, "{}", approved.shown());
        waiting.set_patience(TOLD_WITHIN);
        let cancelled = next_message(&mut waiting);
        assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
        let answered = next_message(&mut waiting);
        assert_eq!(answered["result"]["structuredContent"]["accepted"], true, "{answered}");
        // The same over standard input and output, for one that cannot ask and only follows.
        let mut agent = Agent::start_in(Era::Legacy, place);
        assert_eq!(agent.status(id)["step"]["id"], "file-it");
        agent.end();
    });
}
