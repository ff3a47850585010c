//! What an upstream wants to know from a person, passed on to our client's user while its call waits.

use serde_json::{Value, json};

use super::calling::script;
use super::house::{ERAS, agent, arguments, call, place, refused, simply, text};
use super::upstream::Upstream;
use crate::agent::{Era, Heard};

fn named(message: &str) -> Value {
    match message {
        "`notes` asks: Your name?" => json!({"action": "accept", "content": {"name": "Ada"}}),
        "`notes` asks: Your age?" => json!({"action": "accept", "content": {"age": 36}}),
        message => panic!("{message}"),
    }
}

#[test]
fn an_answer_finds_the_call_that_waits_for_it() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, true);
        let asks = arguments("notes", "asks", json!({}));
        assert_eq!(text(&call(&mut agent, era, &asks, named)), "Hello, Ada");
        let declined = call(&mut agent, era, &asks, |_| json!({"action": "decline"}));
        assert_eq!(text(&declined), "they do not want to say");
        let twice = arguments("notes", "asks_twice", json!({}));
        assert_eq!(text(&call(&mut agent, era, &twice, named)), "Ada is 36");
        agent.end();
    }
}

/// Also where the call itself has to be confirmed first.
#[test]
fn a_confirmation_and_a_question_come_one_after_the_other() {
    let upstream = Upstream::start();
    let place =
        place(&[upstream.entry("notes", json!({"sensitivity": "high", "timeoutMs": 30_000}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, true);
        let mut asked = Vec::new();
        let result = call(&mut agent, era, &arguments("notes", "asks", json!({})), |message| {
            asked.push(message.contains("needs a person's yes"));
            match asked.len() {
                1 => json!({"action": "accept"}),
                _ => named(message),
            }
        });
        assert_eq!((asked, text(&result)), (vec![true, false], "Hello, Ada"));
        agent.end();
    }
}

/// Nobody can be asked: the upstream hears so, and says what becomes of that.
#[test]
fn a_client_that_cannot_ask_answers_nothing() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({})), script("script")]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("notes", "asks", json!({})));
        let (advice, _) = refused(&result);
        assert!(advice.contains("`notes`"), "{advice}");
        let result = simply(&mut agent, era, &arguments("script", "asks", json!({})));
        // Nobody has declined, and the agent hears why there was no answer.
        assert_eq!(text(&result), "cancelled");
        let warning = result["content"][1]["text"].as_str().unwrap();
        assert!(warning.contains("asked for input, which was not passed on"), "{warning}");
        agent.end();
    }
}

/// A client without handshake brings its answer to whom it likes: only where the call waits can it go on.
#[test]
fn an_answer_for_another_process_is_refused_clearly() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Modern, true);
    let mut params =
        json!({"name": "call_mcp_tool", "arguments": arguments("notes", "asks", json!({}))});
    let asked = agent.request("tools/call", params.clone());
    params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"name": "Ada"}}});
    params["requestState"] = asked["requestState"].clone();
    // Over pipes each process has a key of its own, and does not even know that it was asked.
    let mut other = super::house::agent(&place, Era::Modern, true);
    other.begin("tools/call", params.clone());
    let refusal = other.process.receive().unwrap();
    assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
    other.end();
    // It still waits where it was asked, for one answer.
    assert_eq!(text(&agent.request("tools/call", params.clone())), "Hello, Ada");
    let late = agent.request("tools/call", params);
    let (advice, error) = refused(&late);
    assert_eq!(error["code"], -32005);
    assert!(advice.contains("was answered already"), "{advice}");
    agent.end();
}

/// An answer of another kind than was asked for never gets to the upstream: who gave it hears what is wrong, and may answer
/// again.
#[test]
fn an_answer_that_does_not_fit_is_sent_back() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let asks = arguments("notes", "asks", json!({}));
    let mut old = agent(&place, Era::Legacy, true);
    let mut asked = Vec::new();
    let result = call(&mut old, Era::Legacy, &asks, |message| {
        asked.push(message.to_owned());
        let name = if asked.len() == 1 { json!(5) } else { json!("Ada") };
        json!({"action": "accept", "content": {"name": name}})
    });
    assert_eq!(text(&result), "Hello, Ada");
    insta::assert_snapshot!(asked.join("\n\n"), @"
    `notes` asks: Your name?

    The last answer did not fit: /name: wanted string, found an integer

    `notes` asks: Your name?
    ");
    old.end();
    let mut agent = agent(&place, Era::Modern, true);
    let mut params = json!({"name": "call_mcp_tool", "arguments": asks});
    let asked = agent.request("tools/call", params.clone());
    params["requestState"] = asked["requestState"].clone();
    for odd in [json!({"name": 5}), json!({})] {
        params["inputResponses"] = json!({"answer": {"action": "accept", "content": odd}});
        agent.begin("tools/call", params.clone());
        let refusal = agent.process.receive().unwrap();
        assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
        assert!(refusal["error"].to_string().contains("/name"), "{refusal}");
    }
    params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"name": "Ada"}}});
    assert_eq!(text(&agent.request("tools/call", params)), "Hello, Ada");
    agent.end();
}

/// Who answers never the right thing is not asked for ever.
#[test]
fn answers_that_never_fit_come_to_an_end() {
    let place = place(&[super::calling::script("script")]);
    let mut agent = agent(&place, Era::Legacy, true);
    let asks = arguments("script", "asks", json!({}));
    let mut asked = 0;
    let result = call(&mut agent, Era::Legacy, &asks, |_| {
        asked += 1;
        json!({"action": "accept", "content": {"name": 5}})
    });
    assert_eq!((asked, text(&result)), (4, "cancelled"));
    let warning = result["content"][1]["text"].as_str().unwrap();
    assert!(warning.contains("did not fit"), "{warning}");
    agent.end();
}

/// Taking the call back while its user is being asked takes the upstream's call back too.
#[test]
fn a_call_that_is_taken_back_while_it_asks_is_forgotten() {
    let place = place(&[script("script")]);
    let mut agent = agent(&place, Era::Legacy, true);
    let sent = agent.begin_call("call_mcp_tool", &arguments("script", "asks", json!({})));
    loop {
        if let Heard::Asked { message, .. } = agent.hear().unwrap() {
            assert_eq!(message, "`script` asks: Your name?");
            break;
        }
    }
    let params = json!({"requestId": sent, "reason": "no longer needed"});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    agent.process.send(cancelled.to_string());
    let taken_back = super::house::told(&mut agent, "notifications/cancelled");
    assert!(taken_back["requestId"].as_str().unwrap().starts_with("ask-"));
    // The server hears of it, and that nobody answers its question, in whatever order; meanwhile it can be called.
    let result = simply(&mut agent, Era::Legacy, &arguments("script", "heard", json!({})));
    assert_eq!(text(&result), "cancelled");
    agent.end();
}

/// Two calls that ask at the same time are two conversations.
#[test]
fn several_calls_may_wait_at_a_time() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Modern, true);
    let params = |text: &str| {
        let called = arguments("notes", "asks", json!({"for": text}));
        json!({"name": "call_mcp_tool", "arguments": called})
    };
    let names = ["Ada", "Grace", "Alan"];
    let asked: Vec<Value> =
        names.iter().map(|name| agent.request("tools/call", params(name))).collect();
    for (name, asked) in names.iter().zip(asked).rev() {
        let mut params = params(name);
        params["inputResponses"] =
            json!({"answer": {"action": "accept", "content": {"name": name}}});
        params["requestState"] = asked["requestState"].clone();
        assert_eq!(text(&agent.request("tools/call", params)), format!("Hello, {name}"));
    }
    agent.end();
}
