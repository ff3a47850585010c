//! What somebody hears while they listen: of sessions that they may see at that moment, and of no others.

use serde_json::json;

use super::actions::{change, heard};
use super::house::{House, next};
use crate::agent::{Era, advance};
use crate::http_client::Connection;

/// The next session that is told of.
fn told_of(stream: &mut Connection) -> String {
    loop {
        let told = next(stream);
        if let Some(uri) = told["params"]["uri"].as_str() {
            assert_eq!(told["method"], "notifications/resources/updated");
            return uri.strip_prefix("session://").unwrap().to_owned();
        }
    }
}

#[test]
fn who_is_let_in_on_a_session_hears_of_it_until_that_is_taken_back() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    for era in [Era::Modern, Era::Legacy] {
        for who in ["other", "stranger"] {
            let start = json!({"workflowId": "letter"});
            let begin = |start| {
                let begun = owner.told("workflow_start", start);
                begun["sessionId"].as_str().unwrap().to_owned()
            };
            let hidden = begin(&start);
            let marker = begin(&json!({"workflowId": "letter", "sharedWith": [who]}));
            let client = house.client(Some(who), era);
            // It follows what it may not see, which is as good as following what is not there.
            let uris = [&hidden, &marker].map(|id| format!("session://{id}"));
            let mut stream = client.listen(&uris);
            assert!(!heard(&owner, &mut stream, &hidden, 0, &marker, 0));

            let share = ["session", "share", &hidden, who, "--audit-log", "audit.jsonl"];
            assert_eq!(house.place.run(&share).status, 0);
            assert!(heard(&owner, &mut stream, &hidden, 1, &marker, 2), "from now on it does");

            let unshare = [&share[..], &["--remove"]].concat();
            assert_eq!(house.place.run(&unshare).status, 0);
            assert!(!heard(&owner, &mut stream, &hidden, 2, &marker, 4), "and not any more");
        }
    }
    let lines = house.audit();
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    // Each by a command, and the others with the start.
    assert_eq!((count("shared"), count("unshared")), (8, 4));
}

/// That somebody else has begun something is nobody's business.
#[test]
fn a_list_changes_for_those_whose_it_is() {
    let house = House::open("asking");
    for era in [Era::Modern, Era::Legacy] {
        let (owner, other) = (house.client(Some("owner"), era), house.client(Some("other"), era));
        let (mut owners, mut others) = (owner.listen(&[]), other.listen(&[]));
        let mut bosses = house.client(Some("boss"), era).listen(&[]);
        let mut colleagues = house.client(Some("colleague"), era).listen(&[]);
        let session = owner.start();
        for stream in [&mut owners, &mut bosses, &mut colleagues] {
            assert_eq!(next(stream)["method"], "notifications/resources/list_changed");
        }
        // What comes first is about something of its own, whose end it hears of by its name.
        let own = other.start();
        assert_eq!(next(&mut others)["method"], "notifications/resources/list_changed");
        let back = json!({"sessionId": own, "revision": 0, "toStep": "write-it", "reason": "anew"});
        owner.told("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
        other.told("workflow_rewind", &back);
        assert_eq!(next(&mut others)["method"], "notifications/resources/list_changed");
        others.set_patience(std::time::Duration::from_millis(200));
        assert!(others.event().is_err(), "twice, and no more");
    }
}

/// Who may do something else than before is told nothing by what was opened then.
#[test]
fn a_stream_ends_with_the_right_that_it_was_opened_with() {
    for era in [Era::Modern, Era::Legacy] {
        let mut house = House::open("asking");
        let owner = house.client(Some("owner"), era);
        let (hidden, marker) = (owner.start(), owner.start());
        let uris = [&hidden, &marker].map(|id| format!("session://{id}"));
        let before = house.client(Some("boss"), era);
        let mut stream = before.listen(&uris);
        change(&owner, &hidden, 0);
        assert_eq!(told_of(&mut stream), hidden);

        house.make_anew("boss", "use");
        change(&owner, &hidden, 1);
        while let Some(event) = stream.event().unwrap() {
            assert!(!event.data.contains("resources/updated"), "{event:?}");
        }
        if era == Era::Legacy {
            // The same handshake, with the new token: what was subscribed to is forgotten.
            let mut after = house.client(Some("boss"), era);
            after.carry(&before);
            let mut stream = after.resume();
            let share = ["session", "share", &marker, "boss", "--audit-log", "audit.jsonl"];
            assert_eq!(house.place.run(&share).status, 0);
            let uri = json!({"uri": format!("session://{marker}")});
            assert_eq!(after.ask("resources/subscribe", &uri).head.status, 200);
            assert!(!heard(&owner, &mut stream, &hidden, 2, &marker, 0));
        }
    }
}

/// A server that anybody may use, until there are tokens.
#[test]
fn a_stream_of_nobody_ends_once_there_are_tokens() {
    let place = crate::Place::new();
    place.write("workflows/letter.json", crate::agent::LETTER);
    let server = crate::http_server::Listening::start(&place);
    let nobody = super::house::nobody(server.address);
    let session = nobody.start();
    let mut stream = nobody.listen(&[format!("session://{session}")]);
    assert_eq!(place.run(&["token", "new", "ci"]).status, 0);
    let start = std::time::Instant::now();
    while nobody.call("workflow_list", &json!({})).head.status != 401 {
        assert!(start.elapsed() < crate::transcripts::PATIENCE, "it goes on letting anybody in");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let resume = ["run", "--resume", &session];
    place.run_with_input(&resume, "Dear Ada\n.\n");
    while let Some(event) = stream.event().unwrap() {
        assert!(!event.data.contains("resources/updated"), "{event:?}");
    }
    server.end();
}
