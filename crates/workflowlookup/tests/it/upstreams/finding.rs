//! Finding a tool among many, and learning about it bit by bit.

use serde_json::{Value, json};

use super::calling::script;
use super::house::{ERAS, agent, arguments, parsed, place, refused, simply};
use super::upstream::Upstream;
use crate::agent::{Agent, Era};

fn find(agent: &mut Agent, arguments: Value) -> Value {
    parsed(&agent.call("list_mcp_capabilities", &arguments))
}

fn describe(agent: &mut Agent, arguments: Value) -> Value {
    parsed(&agent.call("describe_mcp", &arguments))
}

/// A script that lists as many tools as it is told, and calls none of them.
fn many(id: &str, count: usize, more: Value) -> Value {
    let tools: Vec<Value> = (0..count)
        .map(|number| {
            json!({
                "name": format!("{id}_operation_{number}"),
                "description": format!(
                    "Carries out operation number {number} of {id}, with all the care that such an operation needs, \
                     and tells at length what came of it, in words that fill a line and then some more"
                ),
                "inputSchema": {"type": "object", "properties": {"target": {"type": "string"}}},
            })
        })
        .collect();
    let script = r#"
id() { printf '%s' "$1" | sed 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/'; }
while IFS= read -r line; do
    case "$line" in
        *'"method":"initialize"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"many","version":"1"}}}\n' "$(id "$line")";;
        *'"method":"tools/list"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}\n' "$(id "$line")" "$TOOLS";;
        *'"id":'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$(id "$line")";;
    esac
done
"#;
    let mut entry = json!({
        "id": id,
        "title": format!("The server called {id}"),
        "summary": format!("Everything that has to do with {id}, from the very beginning to the bitter end, for all"),
        "sensitivity": "low",
        "timeoutMs": 30_000,
        "mcp": {
            "transport": "stdio",
            "command": "sh",
            "args": ["-c", script],
            "env": {"TOOLS": json!(tools).to_string()},
        },
    });
    more.as_object().unwrap().iter().for_each(|(name, value)| entry[name] = value.clone());
    entry
}

#[test]
fn a_tool_is_found_described_and_called() {
    let upstream = Upstream::start();
    let more = json!({
        "title": "Notes", "summary": "Keeps notes", "tags": ["paper"], "examples": ["say hello back"],
    });
    let place = place(&[upstream.entry("notes", more), many("weather", 3, json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let cards = find(&mut agent, json!({}));
        let notes = json!({"id": "notes", "title": "Notes", "summary": "Keeps notes"});
        assert_eq!(cards["servers"][0], notes);
        assert_eq!(cards["servers"].as_array().unwrap().len(), 2);
        assert!(cards.get("tools").is_none());

        let found = find(&mut agent, json!({"query": "say a text back"}));
        let best = &found["tools"][0];
        assert_eq!((&best["server"], &best["tool"]), (&json!("notes"), &json!("echo")));
        assert_eq!(best["description"], "Says a text back to who has sent it");
        assert!(found.get("notSearched").is_none(), "{found}");

        let summary = describe(&mut agent, json!({"id": "notes"}));
        assert_eq!(summary["tools"], 11);
        assert_eq!(
            (&summary["transport"], &summary["sensitivity"]),
            (&json!("http"), &json!("low"))
        );
        assert_eq!(summary["instructions"], "Ask nicely.");
        assert!(!summary.to_string().contains("127.0.0.1"), "where it is is nobody's business");

        let tools = describe(&mut agent, json!({"id": "notes", "detail": "tools"}));
        let first = json!({"name": "echo", "description": "Says a text back to who has sent it"});
        assert_eq!((&tools["tools"][0], &tools["total"]), (&first, &json!(11)));

        let schema =
            describe(&mut agent, json!({"id": "notes", "detail": "schema", "tool": "echo"}));
        let echo = &schema["tools"][0];
        assert_eq!(echo["inputSchema"]["required"], json!(["text"]));
        assert_eq!(echo["annotations"], json!({"readOnlyHint": true}));
        // Naming a tool is enough.
        assert_eq!(describe(&mut agent, json!({"id": "notes", "tool": "echo"})), schema);

        let types = describe(&mut agent, json!({"id": "notes", "detail": "types"}));
        let declared = types["types"].as_str().unwrap();
        assert!(declared.contains("export function echo(args: {"), "{declared}");

        let result = simply(&mut agent, era, &arguments("notes", "echo", json!({"text": "hi"})));
        assert_eq!(result["structuredContent"], json!({"text": "hi"}));
        agent.end();
    }
}

/// Every page is JSON, cursors lead through everything once, and end.
#[test]
fn pages_lead_through_all_tools() {
    let place = place(&[many("weather", 23, json!({}))]);
    let mut agent = agent(&place, Era::Legacy, false);
    for (detail, max) in [("tools", 10), ("schema", 7), ("types", 5), ("tools", 200)] {
        let mut names = Vec::new();
        let mut cursor = None;
        let mut pages = 0;
        loop {
            let mut wanted = json!({"id": "weather", "detail": detail, "maxTools": max});
            if let Some(cursor) = cursor {
                wanted["cursor"] = cursor;
            }
            let page = describe(&mut agent, wanted);
            assert_eq!(page["total"], 23);
            pages += 1;
            match detail {
                "types" => {
                    let text = page["types"].as_str().unwrap();
                    let functions = text.lines().filter(|line| line.starts_with("export function"));
                    names.extend(functions.map(|line| {
                        let name = line.trim_start_matches("export function ");
                        name.split('(').next().unwrap().to_owned()
                    }));
                }
                _ => names.extend(
                    page["tools"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|tool| tool["name"].as_str().unwrap().to_owned()),
                ),
            }
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert_eq!(pages, 23usize.div_ceil(max), "{detail}");
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!((names.len(), unique.len()), (23, 23), "{detail}");
    }
    for odd in [json!({"id": "weather", "cursor": "x"}), json!({"id": "weather", "maxTools": 0})] {
        let result = agent.call("describe_mcp", &odd);
        assert_eq!(refused(&result).1["code"], -32602);
    }
    let (advice, error) = {
        let result = agent.call("describe_mcp", &json!({"id": "wether"}));
        let (advice, error) = refused(&result);
        (advice.to_owned(), error)
    };
    assert_eq!(error["data"]["nearest"], json!(["weather"]), "{advice}");
    let result =
        agent.call("describe_mcp", &json!({"id": "weather", "tool": "weather_operation_99"}));
    assert_eq!(refused(&result).1["code"], -32602);
    agent.end();
}

/// About how many tokens a text has: words and signs, each of at most so many letters.
fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut letters = 0;
    for letter in text.chars() {
        if letter.is_alphanumeric() {
            letters += 1;
            // Long words are several.
            count += usize::from(letters % 6 == 1);
        } else {
            letters = 0;
            count += usize::from(letter != ' ');
        }
    }
    count
}

#[test]
fn an_answer_is_short_however_many_there_are() {
    let entries: Vec<Value> =
        (0..50).map(|number| many(&format!("service{number}"), 40, json!({}))).collect();
    let place = place(&entries);
    let mut agent = agent(&place, Era::Legacy, false);
    let query = json!({"query": "carry out an operation with care", "limit": 50});
    let start = std::time::Instant::now();
    // Fifty servers are started a few at a time; who was not looked into yet is named.
    let all = loop {
        let result = agent.call("list_mcp_capabilities", &query);
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(tokens(&text) <= 1_500 && text.len() <= 4_400, "{}: {text}", tokens(&text));
        if parsed(&result).get("notSearched").is_none() {
            break parsed(&result);
        }
        assert!(start.elapsed() < crate::transcripts::PATIENCE, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(all["tools"].as_array().unwrap().len() >= 5, "{all}");
    assert!(all["servers"].as_array().is_some(), "{all}");
    let one = find(&mut agent, json!({"query": "service7 operation 13", "limit": 1}));
    assert_eq!(one["tools"], json!([one["tools"][0]]));
    assert_eq!(one["tools"][0]["tool"], "service7_operation_13", "{one}");

    // Without a query all servers are there, page by page.
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let wanted = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let result = agent.call("list_mcp_capabilities", &wanted);
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(tokens(&text) <= 1_500, "{text}");
        let page = parsed(&result);
        let ids = page["servers"].as_array().unwrap().iter();
        seen.extend(ids.map(|server| server["id"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 50);
    agent.end();
}

/// Few are wanted, or none in particular; and what is left out is said.
#[test]
fn as_many_as_are_wanted() {
    let entries: Vec<Value> = (0..5)
        .map(|number| many(&format!("service{number}"), 1, json!({"tags": ["operations"]})))
        .collect();
    let place = place(&entries);
    let mut agent = agent(&place, Era::Legacy, false);
    let ids = |page: &Value| -> Vec<String> {
        let servers = page["servers"].as_array().unwrap().iter();
        servers.map(|server| server["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = find(&mut agent, json!({"limit": 2}));
    assert_eq!(ids(&first), ["service0", "service1"]);
    let rest = json!({"limit": 50, "cursor": first["nextCursor"]});
    let rest = find(&mut agent, rest);
    assert_eq!(ids(&rest), ["service2", "service3", "service4"]);
    assert!(rest.get("nextCursor").is_none(), "{rest}");
    for nothing in ["*", " ", "?!", "-"] {
        let all = find(&mut agent, json!({"query": nothing}));
        assert_eq!(ids(&all).len(), 5, "{nothing}");
        assert!(all.get("tools").is_none() && all.get("notSearched").is_none(), "{all}");
    }
    let found = find(&mut agent, json!({"query": "operations", "limit": 2}));
    assert_eq!((ids(&found).len(), &found["more"]), (2, &json!(3)), "{found}");
    agent.end();
}

/// What is of the wrong kind is named, in words of JSON.
#[test]
fn wrong_arguments_are_named() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Modern, false);
    for (tool, arguments, expected) in [
        (
            "call_mcp_tool",
            json!({"server": "notes", "tool": "echo", "arguments": "{\"text\": \"a\"}"}),
            r#"`arguments` must be an object, not JSON text in a string: send {"text": "a"} itself"#,
        ),
        (
            "list_mcp_capabilities",
            json!({"query": "a", "limit": "3"}),
            "`limit` must be an integer, not a string",
        ),
        (
            "list_mcp_capabilities",
            json!({"visibility": "opt_in"}),
            r#"`visibility` must be one of "default", "experimental", not "opt_in""#,
        ),
        ("describe_mcp", json!({"id": 7}), "`id` must be a string, not a number"),
        ("describe_mcp", json!({}), "id is required"),
    ] {
        let result = agent.call(tool, &arguments);
        let (_, error) = refused(&result);
        assert_eq!((&error["code"], &error["data"]["details"]), (&json!(-32602), &json!(expected)));
    }
    assert!(upstream.has_seen_nothing());
    agent.end();
}

/// What a server says about itself is searched once somebody was there; and where nothing fits, the servers are shown.
#[test]
fn a_server_is_found_by_what_it_says() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({})), many("weather", 1, json!({}))]);
    let mut agent = agent(&place, Era::Legacy, false);
    let start = std::time::Instant::now();
    let found = loop {
        // In the instructions of its handshake, and nowhere else.
        let found = find(&mut agent, json!({"query": "nicely"}));
        if found["servers"].as_array().unwrap().len() == 1 {
            break found;
        }
        assert!(start.elapsed() < crate::transcripts::PATIENCE, "{found}");
    };
    assert_eq!(found["servers"][0]["id"], "notes");
    assert!(found["hint"].as_str().unwrap().contains("detail: \"tools\""), "{found}");
    let found = find(&mut agent, json!({"query": "remember quokkas", "limit": 1}));
    assert_eq!((&found["tools"], &found["more"]), (&json!([]), &json!(1)), "{found}");
    assert_eq!(found["servers"][0]["id"], "notes");
    assert!(found["hint"].as_str().unwrap().contains("other words"), "{found}");
    agent.end();
}

/// An entry with a mistake in it is there, and cannot be used: who asks for it hears so.
#[test]
fn an_entry_with_errors_is_said_to_have_some() {
    let upstream = Upstream::start();
    let broken = json!({"id": "broken", "mcp": {"transport": "stdio", "comand": "sh"}});
    let unset = json!({"id": "unset", "mcp": {"command": "${NO_SUCH_VARIABLE_ANYWHERE}"}});
    let place = place(&[upstream.entry("notes", json!({})), broken, unset]);
    let mut agent = agent(&place, Era::Legacy, false);
    assert_eq!(find(&mut agent, json!({}))["unusable"], 2);
    assert_eq!(find(&mut agent, json!({"query": "echo"}))["unusable"], 2);
    for (id, why) in [("broken", "`command` is missing"), ("unset", "NO_SUCH_VARIABLE_ANYWHERE")] {
        let described = agent.call("describe_mcp", &json!({"id": id}));
        let called = agent.call("call_mcp_tool", &arguments(id, "echo", json!({})));
        for result in [described, called] {
            let (advice, error) = refused(&result);
            assert_eq!(error["code"], -32008, "{error}");
            let is_told = |word: &str| advice.contains(word);
            assert!(is_told(id) && is_told(why) && is_told("doctor"), "{advice}");
            assert!(is_told("Tell your user"), "{advice}");
        }
    }
    agent.end();
}

/// Who connects hears that there are others, as long as there are.
#[test]
fn instructions_tell_of_other_servers() {
    let told = |place: &crate::Place| {
        let mut agent = agent(place, Era::Modern, false);
        let discovered = agent.request("server/discover", json!({}));
        agent.end();
        discovered["instructions"].as_str().unwrap().contains("list_mcp_capabilities")
    };
    assert!(told(&place(&[script("script")])));
    assert!(!told(&crate::Place::new()));
}

/// One that never answers, one that does not exist and one that must not be looked into keep nobody waiting.
#[test]
fn a_bad_server_delays_nobody() {
    let upstream = Upstream::start();
    let silent = json!({
        "id": "silent", "timeoutMs": 3_000,
        "mcp": {"transport": "stdio", "command": "sleep", "args": ["1000"]},
    });
    let missing = json!({
        "id": "missing", "mcp": {"transport": "stdio", "command": "no-such-program-anywhere"},
    });
    let shy = many("shy", 2, json!({"autoDiscoverTools": false}));
    let place = place(&[silent, missing, shy, upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Legacy, false);
    let found = find(&mut agent, json!({"query": "say a text back"}));
    assert_eq!(found["tools"][0]["tool"], "echo");
    let not_searched = &found["notSearched"];
    assert_eq!(not_searched["starting"], json!(["silent"]), "{found}");
    assert_eq!(not_searched["onlyWhenCalled"], json!(["shy"]), "{found}");
    let why = not_searched["failed"]["missing"].as_str().unwrap();
    assert!(why.contains("no-such-program-anywhere") && !why.contains('\n'), "{why}");
    // Who starts is worth another search, also where something was found.
    assert!(found["hint"].as_str().unwrap().contains("search again"), "{found}");

    // Once it has had its time, it has failed, and nobody is told to wait for it.
    let start = std::time::Instant::now();
    let found = loop {
        let found = find(&mut agent, json!({"query": "nothing like quokkas"}));
        if found["notSearched"].get("starting").is_none() {
            break found;
        }
        assert!(start.elapsed() < crate::transcripts::PATIENCE, "{found}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let why = found["notSearched"]["failed"]["silent"].as_str().unwrap();
    assert!(why.contains("did not get ready"), "{found}");
    let hint = found["hint"].as_str().unwrap();
    assert!(!hint.contains("search again") && hint.contains("tell your user"), "{hint}");

    // What is not to be started by looking is not.
    let described = describe(&mut agent, json!({"id": "shy", "detail": "tools"}));
    let note = described["note"].as_str().unwrap();
    assert!(note.contains("autoDiscoverTools") && note.contains("call_mcp_tool"), "{described}");
    let (advice, _) = {
        let result = agent.call("describe_mcp", &json!({"id": "missing", "detail": "tools"}));
        let (advice, error) = refused(&result);
        (advice.to_owned(), error)
    };
    assert!(
        advice.contains("`missing`") && advice.contains("no-such-program-anywhere"),
        "{advice}"
    );
    agent.end();
}

/// Who is shown only when it is named, and who only when it is asked for.
#[test]
fn some_servers_are_not_shown_to_everybody() {
    let upstream = Upstream::start();
    let place = place(&[
        upstream.entry("plain", json!({})),
        upstream.entry("hidden", json!({"visibility": "opt_in"})),
        upstream.entry("daring", json!({"visibility": "experimental"})),
        script("script"),
    ]);
    let mut agent = agent(&place, Era::Legacy, false);
    let mut ids = |arguments: Value| -> Vec<String> {
        let answer = find(&mut agent, arguments);
        let servers = answer["servers"].as_array().unwrap().clone();
        let tools = answer["tools"].as_array().cloned().unwrap_or_default();
        let servers = servers.iter().map(|server| server["id"].clone());
        let tools = tools.iter().map(|tool| tool["server"].clone()).collect::<Vec<_>>();
        let all: std::collections::BTreeSet<String> =
            servers.chain(tools).map(|id| id.as_str().unwrap().to_owned()).collect();
        all.into_iter().collect()
    };
    assert_eq!(ids(json!({})), ["plain", "script"]);
    assert_eq!(ids(json!({"visibility": "experimental"})), ["daring", "plain", "script"]);
    assert_eq!(ids(json!({"query": "echo a text"})), ["plain"]);
    let found = ids(json!({"query": "echo a text", "visibility": "experimental"}));
    assert_eq!(found, ["daring", "plain"]);
    assert!(ids(json!({"query": "hidden echo"})).contains(&"hidden".to_owned()));
    // Whoever names it may use it.
    let result =
        simply(&mut agent, Era::Legacy, &arguments("hidden", "echo", json!({"text": "a"})));
    assert_eq!(result["structuredContent"]["text"], "a");
    agent.end();
}
