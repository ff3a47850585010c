//! Resources of upstreams as resources of ours: listed, read, followed.

use serde_json::{Value, json};

use super::calling::script;
use super::house::{ERAS, agent, arguments, place, simply, told, write};
use super::upstream::{Seen, Upstream};
use crate::agent::{Agent, Era, Heard};

/// All pages of the list: those of upstreams.
fn listed(agent: &mut Agent) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let params = cursor.map_or(json!({}), |cursor: Value| json!({"cursor": cursor}));
        let page = agent.request("resources/list", params);
        all.extend(page["resources"].as_array().unwrap().iter().cloned());
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    all.retain(|resource| resource["uri"].as_str().unwrap().starts_with("mcp+"));
    all
}

fn uris(agent: &mut Agent) -> Vec<String> {
    listed(agent).iter().map(|it| it["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn resources_are_listed_and_read() {
    let upstream = Upstream::start();
    let shy = upstream.entry("shy", json!({"autoDiscoverTools": false}));
    let place = place(&[upstream.entry("notes", json!({})), shy, script("script")]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let expected = json!({
            "uri": "mcp+notes:note:a", "name": "a", "title": "The note a", "description": "A note",
            "mimeType": "text/plain",
        });
        let all = listed(&mut agent);
        assert_eq!((all.len(), &all[0]), (2, &expected));
        // Who must not be looked into is in the list once it is there anyway.
        simply(&mut agent, era, &arguments("shy", "echo", json!({"text": "a"})));
        assert!(matches!(upstream.seen(), Seen::Called("echo", _)));
        let start = std::time::Instant::now();
        while uris(&mut agent).len() < 4 {
            assert!(start.elapsed() < crate::transcripts::PATIENCE, "it is never listed");
        }

        let read = agent.request("resources/read", json!({"uri": "mcp+notes:note:a"}));
        let contents =
            json!([{"uri": "mcp+notes:note:a", "mimeType": "text/plain", "text": "what it says"}]);
        assert_eq!(read["contents"], contents);
        assert_eq!(upstream.seen(), Seen::Read("note:a".to_owned()));
        let code = if era == Era::Legacy { -32002 } else { -32602 };
        for (uri, is_passed_on) in [
            ("mcp+notes:note:z", true),
            ("mcp+script:note:z", false),
            ("mcp+nobody:note:a", false),
            ("mcp-kept:0", false),
        ] {
            agent.begin("resources/read", json!({"uri": uri}));
            let missing = agent.process.receive().unwrap();
            assert_eq!(missing["error"]["code"], code, "{missing}");
            assert_eq!(missing["error"]["data"]["uri"], uri, "{missing}");
            assert_eq!(upstream.has_seen_nothing(), !is_passed_on, "{uri}");
        }
        let templates = agent.request("resources/templates/list", json!({}));
        let template = templates["resourceTemplates"].as_array().unwrap().last().unwrap();
        assert_eq!(template["uriTemplate"], "mcp+{server}:{+uri}");
        agent.end();
    }
}

/// What is shown only to who names it is not listed for everybody once somebody has used it.
#[test]
fn resources_of_servers_that_are_not_shown_are_not_listed() {
    let upstream = Upstream::start();
    let place = place(&[
        upstream.entry("plain", json!({})),
        upstream.entry("hidden", json!({"visibility": "opt_in"})),
        upstream.entry("daring", json!({"visibility": "experimental"})),
    ]);
    let mut agent = agent(&place, Era::Legacy, false);
    for server in ["hidden", "daring"] {
        simply(&mut agent, Era::Legacy, &arguments(server, "echo", json!({"text": "a"})));
        let uri = format!("mcp+{server}:note:a");
        let read = agent.request("resources/read", json!({"uri": uri}));
        assert_eq!(read["contents"][0]["text"], "what it says");
    }
    assert_eq!(uris(&mut agent), ["mcp+plain:note:a", "mcp+plain:note:b"]);
    agent.end();
}

/// Updates reach who follows, and nobody else is told.
#[test]
fn updates_are_passed_on() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let uri = "mcp+notes:note:a";
        let listening = match era {
            Era::Legacy => {
                assert_eq!(agent.request("resources/subscribe", json!({"uri": uri})), json!({}));
                0
            }
            Era::Modern => {
                let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
                let sent = agent.begin("subscriptions/listen", wanted);
                told(&mut agent, "notifications/subscriptions/acknowledged");
                sent
            }
        };
        // The upstream is asked beside our answer: until it knows, it is told again.
        let heard = until_told(&mut agent, || upstream.update("note:a"));
        assert_eq!(heard["uri"], uri);
        // Nobody follows the other one, or this one any more.
        upstream.update("note:b");
        match era {
            Era::Legacy => {
                let drain = |agent: &mut Agent| {
                    let sent = agent.begin("resources/unsubscribe", json!({"uri": uri}));
                    loop {
                        match agent.hear().unwrap() {
                            Heard::Answer { id, .. } if id == sent => break,
                            Heard::Told { params, .. } => assert_eq!(params["uri"], uri),
                            _ => panic!("nobody asked for this"),
                        }
                    }
                };
                drain(&mut agent);
            }
            Era::Modern => {
                let params = json!({"requestId": listening});
                let cancelled = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
                });
                agent.process.send(cancelled.to_string());
            }
        }
        upstream.update("note:a");
        let result = simply(&mut agent, era, &arguments("notes", "echo", json!({"text": "a"})));
        assert_eq!(result["structuredContent"]["text"], "a");
        assert!(matches!(upstream.seen(), Seen::Called("echo", _)));
        agent.process.input = None;
        while agent.hear().is_some() {}
    }
}

/// What can never be told of is not promised: no such server, a broken entry, a server that tells nothing.
#[test]
fn what_cannot_be_followed_is_refused() {
    let broken = json!({"id": "broken", "mcp": {"transport": "stdio", "comand": "sh"}});
    let place = place(&[script("script"), broken]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        // What it offers is known once it is there.
        simply(&mut agent, era, &arguments("script", "lives", json!({})));
        let start = std::time::Instant::now();
        while super::house::parsed(&agent.call("describe_mcp", &json!({"id": "script"})))
            .get("tools")
            .is_none()
        {
            assert!(start.elapsed() < crate::transcripts::PATIENCE, "it is never met");
        }
        let uris = ["mcp+nobody:note:a", "mcp+broken:note:a", "mcp+script:note:a", "mcp+odd"];
        match era {
            Era::Legacy => {
                for uri in uris {
                    agent.begin("resources/subscribe", json!({"uri": uri}));
                    let refused = agent.process.receive().unwrap();
                    assert_eq!(refused["error"]["code"], -32602, "{refused}");
                }
                agent.end();
            }
            Era::Modern => {
                let own = "workflow://a.b";
                let wanted = uris.into_iter().chain([own]).collect::<Vec<_>>();
                let wanted = json!({"notifications": {"resourceSubscriptions": wanted}});
                agent.begin("subscriptions/listen", wanted);
                let heard = told(&mut agent, "notifications/subscriptions/acknowledged");
                assert_eq!(heard["notifications"]["resourceSubscriptions"], json!([own]));
                agent.process.input = None;
                while agent.hear().is_some() {}
            }
        }
    }
}

/// Does it until it is told, on a thread of its own.
fn until_told(agent: &mut Agent, act: impl Fn() + Sync) -> Value {
    let is_told = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_told.load(std::sync::atomic::Ordering::Relaxed) {
                act();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let heard = told(agent, "notifications/resources/updated");
        is_told.store(true, std::sync::atomic::Ordering::Relaxed);
        heard
    })
}

/// Another server under the same name is asked for what is followed too.
#[test]
fn what_is_followed_stays_so_when_the_registry_changes() {
    let (first, second) = (Upstream::start(), Upstream::start());
    let place = place(&[first.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Legacy, false);
    agent.request("resources/subscribe", json!({"uri": "mcp+notes:note:a"}));
    until_told(&mut agent, || first.update("note:a"));
    write(&place, &[second.entry("notes", json!({}))]);
    until_told(&mut agent, || second.update("note:a"));
    agent.process.input = None;
    while agent.hear().is_some() {}
}
