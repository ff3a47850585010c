//! Clients that share an upstream over pipes: what it asks is put to nobody but whose call it is, and what is kept for one is
//! not read by another.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hosting::{Client, token};
use super::house::{agent, arguments, place, text};
use super::upstream::Upstream;
use crate::agent::{Era, Heard};
use crate::http_server::Listening;

/// A server in the old way. `waits` is answered when `asks` is, which asks first.
const SCRIPT: &str = r#"
id() { printf '%s' "$1" | sed 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/'; }
said() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
waiting=
while IFS= read -r line; do
    case "$line" in
        *'"method":"initialize"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}}\n' "$(id "$line")";;
        *'"method":"tools/list"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"waits","inputSchema":{"type":"object"}},{"name":"asks","inputSchema":{"type":"object"}}]}}\n' "$(id "$line")";;
        *'"name":"waits"'*) waiting=$(id "$line"); : > "$MARK";;
        *'"name":"asks"'*)
            call=$(id "$line")
            printf '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}\n';;
        *'"id":"q1"'*)
            case "$line" in
                *accept*) word=accepted;;
                *decline*) word=declined;;
                *) word=cancelled;;
            esac
            said "$call" "$word"
            [ -z "$waiting" ] || said "$waiting" waited
            waiting=;;
        *'"id":'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$(id "$line")";;
    esac
done
"#;

fn script(mark: &std::path::Path) -> Value {
    let mcp = json!({
        "transport": "stdio", "command": "sh", "args": ["-c", SCRIPT], "env": {"MARK": mark},
    });
    json!({"id": "script", "mcp": mcp, "sensitivity": "low", "timeoutMs": 30_000})
}

fn wait_for(mark: &std::path::Path) {
    let began = Instant::now();
    while !mark.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody waits");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn warning(result: &Value) -> &str {
    result["content"][1]["text"].as_str().unwrap()
}

/// Ann's client cannot ask; Bob's can, and has something open.
#[test]
fn a_question_goes_to_nobody_elses_user() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let place = place(&[script(&mark)]);
    let (ann, bob) = (token(&place, "ann", "use"), token(&place, "bob", "use"));
    let server = Listening::start(&place);
    for tokens in [[Some(&*ann), Some(&*bob)], [Some(&ann), Some(&ann)]] {
        let is_one = tokens[0] == tokens[1];
        let [ann, bob] = tokens;
        let ann = Client::connect(&server, ann, Era::Modern, json!({}));
        let bob = Client::connect(&server, bob, Era::Modern, json!({"elicitation": {}}));
        let waits = arguments("script", "waits", json!({}));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| bob.call("call_mcp_tool", &waits));
            wait_for(&mark);
            std::fs::remove_file(&mark).unwrap();
            if is_one {
                let asking = scope
                    .spawn(|| ann.call("call_mcp_tool", &arguments("script", "asks", json!({}))));
                // It is the same person, and one of their clients can ask.
                let asked = waiting.join().unwrap();
                assert_eq!(asked["resultType"], "input_required", "{asked}");
                let answered = bob.ask(
                    "tools/call",
                    &json!({
                        "name": "call_mcp_tool", "arguments": waits, "requestState": asked["requestState"],
                        "inputResponses": {"answer": {"action": "accept", "content": {"name": "Ada"}}},
                    }),
                );
                assert_eq!(text(&answered["result"]), "waited");
                assert_eq!(text(&asking.join().unwrap()), "accepted");
                return;
            }
            let asked = ann.call("call_mcp_tool", &arguments("script", "asks", json!({})));
            assert_eq!(text(&asked), "cancelled");
            let waited = waiting.join().unwrap();
            assert_eq!(text(&waited), "waited");
            for result in [asked, waited] {
                assert!(warning(&result).contains("whose call it belongs to"), "{result}");
            }
        });
    }
}

/// Where nobody says who they are, each call is a stranger's.
#[test]
fn without_names_everybody_is_a_stranger() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let place = place(&[script(&mark)]);
    let server = Listening::start(&place);
    let can_ask = json!({"elicitation": {}});
    let [one, other] =
        [(); 2].map(|()| Client::connect(&server, None, Era::Modern, can_ask.clone()));
    std::thread::scope(|scope| {
        let waits = || one.call("call_mcp_tool", &arguments("script", "waits", json!({})));
        let waiting = scope.spawn(waits);
        wait_for(&mark);
        let asked = other.call("call_mcp_tool", &arguments("script", "asks", json!({})));
        assert_eq!(text(&asked), "cancelled");
        assert_eq!(text(&waiting.join().unwrap()), "waited");
    });
}

/// Over pipes there is one client, and one person.
#[test]
fn calls_of_one_client_at_a_time_may_ask() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let place = place(&[script(&mark)]);
    let mut agent = agent(&place, Era::Legacy, true);
    let waits = agent.begin_call("call_mcp_tool", &arguments("script", "waits", json!({})));
    wait_for(&mark);
    let asks = agent.begin_call("call_mcp_tool", &arguments("script", "asks", json!({})));
    let (mut asked, mut results) = (0, Vec::new());
    while results.len() < 2 {
        match agent.hear().unwrap() {
            Heard::Told { .. } => {}
            Heard::Asked { id, message } => {
                assert_eq!(message, "`script` asks: Your name?");
                asked += 1;
                agent.reply(&id, &json!({"action": "accept", "content": {"name": "Ada"}}));
            }
            Heard::Answer { id, result } => results.push((id, text(&result).to_owned())),
        }
    }
    results.sort_unstable();
    assert_eq!(results, [(waits, "waited".to_owned()), (asks, "accepted".to_owned())]);
    assert_eq!(asked, 1);
    agent.end();
}

#[test]
fn what_is_kept_for_one_is_not_there_for_another() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let (ann, bob) = (token(&place, "ann", "use"), token(&place, "bob", "use"));
    let server = Listening::start(&place);
    for era in [Era::Legacy, Era::Modern] {
        let client = |token: &str| Client::connect(&server, Some(token), era, json!({}));
        let large = client(&ann).call("call_mcp_tool", &arguments("notes", "large", json!({})));
        let blocks = large["content"].as_array().unwrap();
        let link = blocks.iter().find(|block| block["type"] == "resource_link").unwrap();
        let read =
            |token: &str, uri: &Value| client(token).ask("resources/read", &json!({"uri": uri}));
        let whole = read(&ann, &link["uri"]);
        assert!(whole["result"]["contents"][0]["text"].as_str().unwrap().len() > 600_000);
        let nowhere = json!("mcp-kept:00000000000000000000000000000000");
        let (theirs, none) = (read(&bob, &link["uri"]), read(&bob, &nowhere));
        let without = |answer: &Value, uri: &Value| {
            answer["error"].to_string().replace(uri.as_str().unwrap(), "…")
        };
        assert!(theirs.get("error").is_some(), "{theirs}");
        assert_eq!(without(&theirs, &link["uri"]), without(&none, &nowhere));
    }
}
