//! What a client carries from its handshake, changed, too old, somebody else's or ended.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::{Attack, Target};
use crate::agent::Era;
use crate::http_agent::{handshake, legacy, list};
use crate::http_client::{Connection, Request};
use crate::http_server::Listening;

pub(super) fn attacks() -> Vec<Attack> {
    vec![
        Attack::new("no session id", "a call of the era with a handshake", |target| {
            let request = Request::post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
            target.status(&request)
        }),
        Attack::new("one bit of a session id flipped", "each of its bits in turn", each_bit),
        Attack::new("10,000 session ids that are garbage", "one after the other", garbage),
        Attack::new("a session id that is too old", "signed with the right key", |target| {
            forged(target, 1_000, None)
        }),
        Attack::new("somebody else's session id", "of a principal, sent by nobody", |target| {
            forged(target, FAR, Some("ann"))
        }),
        Attack::new("a session id of another server", "signed with another key", |target| {
            let other = Target::start(|place| place.command(super::SERVE));
            target.status(&list(Era::Legacy, &handshake(other.address())))
        }),
        Attack::new("a session id after its end", "`DELETE`, then a call", deleted),
        Attack::new(
            "the same at another replica",
            "`DELETE` to one, a call to the other",
            elsewhere,
        ),
        Attack::new("a version that nobody knows", "`GET` and `DELETE` with it", |target| {
            let session = handshake(target.address());
            let delete = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session);
            let statuses = [Request::listen(&session), delete]
                .map(|request| target.status(&request.header("MCP-Protocol-Version", "1.0")));
            assert_eq!(statuses[0], statuses[1]);
            statuses[0].clone()
        }),
        Attack::new("a stream that was never begun", "a made-up `Last-Event-ID`", |target| {
            let session = handshake(target.address());
            target.status(&Request::listen(&session).header("Last-Event-ID", "garbage"))
        }),
        Attack::new("an event that is yet to come", "the largest `Last-Event-ID` there is", ahead),
        Attack::new("an answer that nobody asked for", "with made-up ids of requests", answers),
    ]
}

/// The year 5138.
const FAR: u64 = 100_000_000_000_000;

/// The one status of all these calls.
fn all(target: &Target, sessions: impl Iterator<Item = String>) -> String {
    let mut connection = target.connect();
    let mut statuses: Vec<u16> = sessions
        .map(|session| connection.ask(&list(Era::Legacy, &session)).unwrap().head.status)
        .collect();
    let count = statuses.len();
    statuses.dedup();
    format!("{statuses:?}, {count} times").replace(['[', ']'], "")
}

fn each_bit(target: &Target) -> String {
    let session = handshake(target.address());
    assert_eq!(target.status(&list(Era::Legacy, &session)), "200");
    let bytes = URL_SAFE_NO_PAD.decode(&session).unwrap();
    all(
        target,
        (0..8 * bytes.len()).map(|bit| {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            URL_SAFE_NO_PAD.encode(bytes)
        }),
    )
}

fn garbage(target: &Target) -> String {
    let odd = |number: usize| match number % 4 {
        0 => format!("{number}"),
        1 => "A".repeat(number % 700 + 1),
        2 => URL_SAFE_NO_PAD.encode(vec![number as u8; 59]),
        _ => format!("../../{number}; DROP TABLE sessions"),
    };
    all(target, (0..10_000).map(odd))
}

/// A session id that was made with the server's own key, as only the server can.
fn forged(target: &Target, until: u64, principal: Option<&str>) -> String {
    let file = target.place.home().join(".local/state/workflowlookup/key");
    let key = fs::read_to_string(file).unwrap();
    let key = (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap());
    let mac = |key: &[u8], said: &[u8]| -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(said);
        mac.finalize().into_bytes().to_vec()
    };
    let key = mac(&key.collect::<Vec<u8>>(), b"handshake");
    let sign = |until: u64, principal: Option<&str>| {
        let bits = if principal.is_some() { 8 } else { 0 };
        let head = [1, 3, bits];
        let said =
            [&head, &until.to_be_bytes()[..], &[7; 16], principal.unwrap_or_default().as_bytes()];
        let said = said.concat();
        URL_SAFE_NO_PAD.encode([&said[..], &mac(&key, &said)].concat())
    };
    // One that is as it should be is taken, so that this is no garbage.
    assert_eq!(target.status(&list(Era::Legacy, &sign(FAR, None))), "200");
    target.status(&list(Era::Legacy, &sign(until, principal)))
}

fn end(session: &str) -> Request {
    Request::new("DELETE", "/mcp").header("Mcp-Session-Id", session)
}

fn deleted(target: &Target) -> String {
    let session = handshake(target.address());
    assert_eq!(target.status(&end(&session)), "204");
    let again = target.status(&end(&session));
    assert_eq!(again, target.status(&Request::listen(&session)));
    assert_eq!(again, target.status(&list(Era::Legacy, &session)));
    again
}

/// Both know by the store that they share. Where there is none yet, each knows what it has heard itself.
fn elsewhere(target: &Target) -> String {
    let begin = json!({"name": "workflow_start", "arguments": {"workflowId": "letter"}});
    let session = handshake(target.address());
    assert_eq!(target.status(&legacy(&session, 1, "tools/call", &begin)), "200");
    let replica = Listening::spawn(target.place.command(super::SERVE));
    let there = |request: &Request| request.send(replica.address).unwrap().head.status.to_string();
    assert_eq!(there(&list(Era::Legacy, &session)), "200");
    assert_eq!(target.status(&end(&session)), "204");
    let came = there(&list(Era::Legacy, &session));
    assert_eq!(there(&end(&session)), came);
    replica.end();
    came
}

fn ahead(target: &Target) -> String {
    let session = handshake(target.address());
    let mut connection = target.connect();
    connection.begin(&Request::listen(&session)).unwrap();
    let primed = connection.event().unwrap().unwrap().id.unwrap();
    let (stream, _) = primed.split_once('-').unwrap();
    let mut again: Connection = target.connect();
    let listen =
        Request::listen(&session).header("Last-Event-ID", &format!("{stream}-{}", u64::MAX));
    let head = again.begin(&listen).unwrap();
    // What comes from now on is heard all the same.
    let begin = json!({"name": "workflow_start", "arguments": {"workflowId": "letter"}});
    assert_eq!(target.status(&legacy(&session, 1, "tools/call", &begin)), "200");
    let told = again.event().unwrap().unwrap().data;
    assert!(told.contains("notifications/resources/list_changed"), "{told}");
    format!("{}, and what comes then", head.status)
}

fn answers(target: &Target) -> String {
    let session = handshake(target.address());
    let state = format!("{}.2.{FAR}.1.1.digest.session", "0".repeat(64));
    let ids = ["ask-1".to_owned(), "ask-0-1/gate/x".to_owned(), format!("ask-0-1/gate/{state}")];
    let statuses = ids.map(|id| {
        let answer = json!({"action": "accept", "content": {"decision": "approve"}});
        let message = json!({"jsonrpc": "2.0", "id": id, "result": answer}).to_string();
        target.status(&crate::http_agent::carrying(&session, message))
    });
    assert!(statuses.iter().all(|status| *status == statuses[0]));
    format!("{}, and nothing is decided", statuses[0])
}
