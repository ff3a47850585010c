//! Calls that a person has to confirm: by sensitivity, by what the tool says of itself, by the registry's exceptions, and by
//! whether anybody can be asked.

use serde_json::json;

use super::house::{ERAS, agent, arguments, call, place, refused, simply, text};
use super::upstream::{Seen, Upstream};
use crate::agent::{Agent, Era};

/// Every combination, and what comes of it.
#[test]
fn who_is_asked_and_who_is_not() {
    let upstream = Upstream::start();
    let mut entries = Vec::new();
    for sensitivity in ["low", "medium", "high"] {
        for (suffix, always_allow) in [("", json!([])), ("-always", json!(["destr*", "harmless"]))]
        {
            let more = json!({"sensitivity": sensitivity, "mcp": {"alwaysAllow": always_allow}});
            entries.push(upstream.entry(&format!("{sensitivity}{suffix}"), more));
        }
    }
    let place = place(&entries);
    for era in ERAS {
        for can_ask in [false, true] {
            let mut agent = agent(&place, era, can_ask);
            for entry in &entries {
                let server = entry["id"].as_str().unwrap();
                for tool in ["harmless", "destroys"] {
                    let is_asked = match server {
                        "high" => true,
                        "medium" => tool == "destroys",
                        _ => false,
                    };
                    let called = arguments(server, tool, json!({"what": "everything"}));
                    let what = format!("{server} {tool}, can ask: {can_ask}");
                    let mut asked = 0;
                    let result = call(&mut agent, era, &called, |message| {
                        assert!(message.contains(&format!("`{server}.{tool}`")), "{message}");
                        assert!(message.contains("\"what\": \"everything\""), "{message}");
                        // Nothing is called before they say yes.
                        assert!(upstream.has_seen_nothing());
                        asked += 1;
                        json!({"action": "accept", "content": {}})
                    });
                    assert_eq!(asked, usize::from(is_asked && can_ask), "{what}");
                    if is_asked && !can_ask {
                        let (advice, error) = refused(&result);
                        assert_eq!(error["code"], -32007, "{what}");
                        assert!(advice.contains("alwaysAllow"), "{advice}");
                        // An agent could do that as well.
                        assert!(!advice.contains("mcp call"), "{advice}");
                        assert!(upstream.has_seen_nothing());
                    } else {
                        assert_eq!(text(&result), format!("{tool}: done"), "{what}");
                        let Seen::Called(name, _) = upstream.seen() else { panic!("{what}") };
                        assert_eq!(name, tool);
                        assert!(upstream.has_seen_nothing());
                    }
                }
            }
            agent.end();
        }
    }
}

#[test]
fn who_says_no_or_nothing_is_not_called_for() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({"sensitivity": "high"}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, true);
        for action in ["decline", "cancel"] {
            let called = arguments("notes", "echo", json!({"text": "a"}));
            let result = call(&mut agent, era, &called, |_| json!({"action": action}));
            let (advice, error) = refused(&result);
            assert_eq!(error["code"], -32007, "{advice}");
            let is_no = advice.contains("does not want");
            assert_eq!(is_no, action == "decline", "{advice}");
        }
        assert!(upstream.has_seen_nothing());
        agent.end();
    }
}

/// Nothing of what is confirmed is hidden: neither behind what is long, nor in letters that nobody sees.
#[test]
fn who_confirms_sees_what_they_confirm() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({"sensitivity": "high"}))]);
    let mut agent = agent(&place, Era::Legacy, true);
    let long = format!("{}; rm -rf /", "A".repeat(100_000));
    let what = json!({"text": long, "zz": "tail\u{202e}"});
    let mut asked = 0;
    call(&mut agent, Era::Legacy, &arguments("notes", "echo", what), |message| {
        asked += 1;
        for part in ["NOT ALL of the arguments is shown", "; rm -rf /\"", "\"zz\": \"tail\\u202e\""]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(message.len() < 10_000);
        json!({"action": "decline"})
    });
    assert_eq!(asked, 1);
    let mut many = json!({"text": "a"});
    for at in 0..1_000 {
        many[format!("name-{at}")] = json!("a value");
    }
    let result = simply(&mut agent, Era::Legacy, &arguments("notes", "echo", many));
    let (advice, error) = refused(&result);
    assert_eq!(error["code"], -32007, "{advice}");
    assert!(advice.contains("fewer arguments"), "{advice}");
    assert!(upstream.has_seen_nothing());
    agent.end();
}

fn ask(agent: &mut Agent, params: &serde_json::Value) -> serde_json::Value {
    agent.request("tools/call", params.clone())
}

/// What a client carries confirms one call, of these arguments, once.
#[test]
fn a_confirmation_is_for_one_call() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({"sensitivity": "high"}))]);
    let mut agent = agent(&place, Era::Modern, true);
    let params = |text: &str| {
        let arguments = arguments("notes", "echo", json!({"text": text}));
        json!({"name": "call_mcp_tool", "arguments": arguments})
    };
    let asked = ask(&mut agent, &params("a"));
    assert_eq!(asked["resultType"], "input_required");
    let answered = |text: &str, state: &serde_json::Value| {
        let mut params = params(text);
        params["inputResponses"] = json!({"answer": {"action": "accept"}});
        params["requestState"] = state.clone();
        params
    };
    let state = asked["requestState"].clone();
    for odd in [
        answered("b", &state),
        answered("a", &json!(format!("{}0", state.as_str().unwrap()))),
        answered("a", &json!("upstream1.x")),
    ] {
        agent.begin("tools/call", odd);
        let refused = agent.process.receive().unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(upstream.has_seen_nothing());
    assert_eq!(text(&ask(&mut agent, &answered("a", &state))), "a");
    assert!(matches!(upstream.seen(), Seen::Called("echo", _)));
    agent.begin("tools/call", answered("a", &state));
    let again = agent.process.receive().unwrap();
    assert_eq!(again["error"]["code"], -32602, "{again}");
    assert!(upstream.has_seen_nothing());
    agent.end();
}

/// What is decided and what is refused is noted, with the server and the tool, and never with arguments.
#[test]
fn decisions_are_noted() {
    let upstream = Upstream::start();
    let more = json!({"sensitivity": "high", "tools": {"deny": ["large"]}});
    let place = place(&[upstream.entry("notes", more)]);
    let mut agent = agent(&place, Era::Legacy, true);
    let called = arguments("notes", "echo", json!({"text": "a-secret"}));
    for action in ["accept", "decline", "cancel"] {
        call(&mut agent, Era::Legacy, &called, |_| json!({"action": action}));
    }
    simply(&mut agent, Era::Legacy, &arguments("notes", "large", json!({"text": "a-secret"})));
    agent.end();
    let mut agent = super::house::agent(&place, Era::Legacy, false);
    simply(&mut agent, Era::Legacy, &called);
    agent.end();
    let file = place.home().join(".local/state/workflowlookup/audit.jsonl");
    let noted = std::fs::read_to_string(file).unwrap();
    assert!(!noted.contains("a-secret"), "{noted}");
    let lines: Vec<serde_json::Value> =
        noted.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let word = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            ["event", "wanted", "server", "tool", "channel", "ruling", "reason"].map(word).join(" ")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    decided call_mcp_tool notes echo client approved -
    decided call_mcp_tool notes echo client rejected -
    refused call_mcp_tool notes echo - - nobody answered whether it may be called
    refused call_mcp_tool notes large - - the registry does not allow it
    refused call_mcp_tool notes echo - - its client cannot ask who would have to confirm it
    ");
}
