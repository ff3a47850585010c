//! One call, whatever comes of it.

use serde_json::{Value, json};

use super::house::{ERAS, agent, arguments, parsed, place, refused, simply, text, told};
use super::upstream::{Seen, Upstream};
use crate::agent::{Era, Heard};

#[test]
fn everything_that_a_tool_says_arrives() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("notes", "everything", json!({})));
        let expected = json!([
            {"type": "text", "text": "a text"},
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
            {"type": "audio", "data": "BAUG", "mimeType": "audio/wav"},
            {
                "type": "resource",
                "resource": {"uri": "mcp+notes:note:a", "mimeType": "a/b", "text": "held"},
            },
            {
                "type": "resource_link", "uri": "mcp+notes:note:b", "name": "b", "title": "B",
                "description": "Another", "mimeType": "text/plain",
            },
        ]);
        assert_eq!(result["content"], expected);
        assert_eq!(result["structuredContent"], json!({"n": [1, 2]}));
        assert!(result.get("isError").is_none());

        // A tool that failed says so in its own words.
        let failed = simply(&mut agent, era, &arguments("notes", "fails", json!({})));
        assert_eq!(failed["isError"], true);
        assert_eq!(failed["content"], json!([{"type": "text", "text": "it cannot be done"}]));

        // An error of the protocol keeps its code, its message and its data.
        let broken = simply(&mut agent, era, &arguments("notes", "breaks", json!({})));
        let (advice, error) = refused(&broken);
        let data = json!({"details": "the moon is not full"});
        assert_eq!(error, json!({"code": -32602, "message": "Invalid params", "data": data}));
        assert!(advice.contains("`notes`") && advice.contains("-32602"), "{advice}");
        agent.end();
    }
}

#[test]
fn what_cannot_be_called_is_refused_before_it_is_sent() {
    let upstream = Upstream::start();
    let entry = upstream.entry("notes", json!({"tools": {"deny": ["dest*"]}}));
    let place = place(&[entry]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let mut refuse = |server: &str, tool: &str, given: Value| -> (String, Value) {
            let result = simply(&mut agent, era, &arguments(server, tool, given));
            let (advice, error) = refused(&result);
            (advice.to_owned(), error)
        };
        let (_, error) = refuse("note", "echo", json!({}));
        assert_eq!(
            (&error["code"], &error["data"]["nearest"]),
            (&json!(-32602), &json!(["notes"]))
        );
        let (_, error) = refuse("notes", "ecko", json!({}));
        assert_eq!(
            (&error["code"], &error["data"]["nearest"][0]),
            (&json!(-32602), &json!("echo"))
        );
        let (advice, error) = refuse("notes", "echo", json!({"text": 7}));
        assert_eq!(error["code"], -32602);
        assert_eq!(error["data"]["problems"][0]["pointer"], "/text");
        assert!(advice.contains("/text") && advice.contains("describe_mcp"), "{advice}");
        let (advice, error) = refuse("notes", "destroys", json!({}));
        assert_eq!(error["code"], -32007);
        assert!(advice.contains("dest*"), "{advice}");
        assert!(upstream.has_seen_nothing());
        agent.end();
    }
}

#[test]
fn large_arguments_are_bounded() {
    const BYTES_MAX: usize = 1024 * 1024;
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        // The braces, the name and the quotes count too.
        let text = |more: usize| json!({"text": "x".repeat(BYTES_MAX - 11 + more)});
        let result = simply(&mut agent, era, &arguments("notes", "echo", text(0)));
        assert!(result.get("isError").is_none());
        assert_eq!(upstream.seen(), Seen::Called("echo", text(0)));
        for (tool, given) in [
            ("call_mcp_tool", arguments("notes", "echo", text(1))),
            ("call_mcp_tool", arguments(&"x".repeat(5 * BYTES_MAX), "echo", json!({}))),
            ("execute_mcp_code", json!({"allowedMcpIds": [], "code": "1", "input": text(1)})),
            ("execute_mcp_code", json!({"allowedMcpIds": [], "code": " ".repeat(5 * BYTES_MAX)})),
            ("list_mcp_capabilities", json!({"query": "x".repeat(BYTES_MAX)})),
        ] {
            let result = agent.call(tool, &given);
            let (advice, error) = refused(&result);
            assert_eq!(error["code"], -32602, "{advice}");
            assert!(advice.contains(" bytes"), "{advice}");
        }
        assert!(upstream.has_seen_nothing());
        agent.end();
    }
}

/// Every step down the schema is taken twice: 2⁴⁰ evaluations.
#[test]
fn arguments_whose_check_takes_too_much_are_not_sent() {
    let mut steps = serde_json::Map::new();
    for step in 0..40 {
        let next = json!({"$ref": format!("#/$defs/s{}", step + 1)});
        steps.insert(format!("s{step}"), json!({"allOf": [next, next]}));
    }
    steps.insert("s40".to_owned(), json!({"type": "object"}));
    let schema = json!({"$ref": "#/$defs/s0", "$defs": steps});
    let tool = r#"{"name":"dies","inputSchema":"#;
    let doubling =
        SCRIPT.replace(&format!(r#"{tool}{{"type":"object"}}}}"#), &format!("{tool}{schema}}}"));
    assert_ne!(doubling, SCRIPT);
    let mut entry = script("script");
    entry["mcp"]["args"][1] = json!(doubling);
    let place = place(&[entry]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("script", "dies", json!({"a": 1})));
        let (advice, error) = refused(&result);
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32004), &json!("Validation error"))
        );
        assert!(advice.contains("`script.dies` was not called"), "{advice}");
        agent.end();
    }
}

#[test]
fn a_result_that_is_too_large_is_cut_and_can_be_read_whole() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("notes", "large", json!({})));
        let content = result["content"].as_array().unwrap();
        assert!(result.to_string().len() < 70_000, "agents refuse what is longer");
        let link = content.last().unwrap();
        assert_eq!(
            (&link["type"], &link["mimeType"]),
            (&json!("resource_link"), &json!("application/json"))
        );
        let uri = link["uri"].as_str().unwrap();
        let first = format!("{uri}?offset=0&length=65536");
        let said = content[0]["text"].as_str().unwrap();
        assert!(said.contains(uri) && said.contains(&first), "it says where the whole is: {said}");
        let read = agent.request("resources/read", json!({"uri": uri}));
        let whole: Value =
            serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 600_000);
        // The same in parts, each of which says where the next one is.
        let (mut parts, mut next) = (String::new(), Some(json!(first)));
        while let Some(uri) = next {
            let read = agent.request("resources/read", json!({"uri": uri}));
            let part = &read["contents"][0];
            assert_eq!((&part["uri"], &part["mimeType"]), (&uri, &json!("text/plain")));
            let text = part["text"].as_str().unwrap();
            assert!(text.len() <= 65_536 && !text.is_empty());
            parts += text;
            next = part["_meta"].get("workflowlookup/next").cloned();
        }
        assert_eq!(parts, read["contents"][0]["text"].as_str().unwrap());
        agent.end();
    }
}

/// Progress of the upstream is progress of our call, and taking our call back takes the upstream's back.
#[test]
fn progress_and_cancellation_go_through() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let called = arguments("notes", "waits", json!({}));
        let begin = |agent: &mut crate::agent::Agent, token: &str| {
            let mut params = json!({"name": "call_mcp_tool", "arguments": called});
            params["_meta"] = json!({"progressToken": token});
            if era == Era::Modern {
                params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
                params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            }
            agent.begin_as_it_is("tools/call", params)
        };
        let sent = begin(&mut agent, "first");
        let step = told(&mut agent, "notifications/progress");
        assert_eq!(step["progressToken"], "first");
        assert_eq!((&step["progress"], &step["total"]), (&json!(1.0), &json!(2.0)));
        assert_eq!(step["message"], "half of it");
        assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        upstream.finish();
        let (id, result) = agent.answer();
        assert_eq!((id, text(&result)), (sent, "done at last"));

        let sent = begin(&mut agent, "second");
        told(&mut agent, "notifications/progress");
        assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        let params = json!({"requestId": sent, "reason": "no longer needed"});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        agent.process.send(cancelled.to_string());
        assert_eq!(upstream.seen(), Seen::Withdrawn);
        // It is not answered, and the next one is.
        let result =
            simply(&mut agent, era, &arguments("notes", "echo", json!({"text": "still here"})));
        assert_eq!(text(&result), "still here");
        assert_eq!(upstream.seen(), Seen::Called("echo", json!({"text": "still here"})));
        agent.end();
    }
}

/// A server in the old way over pipes. It ends in the middle of a call, and is started again for the next. It reads on while it
/// waits for an answer to its question; `heard` is answered when it has that and was told that `asks` is taken back.
const SCRIPT: &str = r#"
id() { printf '%s' "$1" | sed 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/'; }
said() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
tell() { if [ -n "$waits" ] && [ -n "$word" ] && [ -n "$taken_back" ]; then said "$waits" "$word"; fi; }
while IFS= read -r line; do
    case "$line" in
        *'"method":"initialize"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"script","version":"1"}}}\n' "$(id "$line")";;
        *'"method":"tools/list"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"dies","inputSchema":{"type":"object"}},{"name":"asks","inputSchema":{"type":"object"}},{"name":"lives","inputSchema":{"type":"object"}},{"name":"old","inputSchema":{"type":"object"}},{"name":"heard","inputSchema":{"type":"object"}}]}}\n' "$(id "$line")";;
        *'"method":"resources/read"'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"note:z"}}}\n' "$(id "$line")";;
        *'"name":"dies"'*) exit 3;;
        *'"name":"lives"'*) said "$(id "$line")" alive;;
        *'"name":"old"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"toolResult":{"x":1}}}\n' "$(id "$line")";;
        *'"name":"heard"'*)
            waits=$(id "$line"); tell;;
        *'"method":"notifications/cancelled"'*'"requestId":'"$call"[,}]*)
            taken_back=1; tell;;
        *'"name":"asks"'*)
            call=$(id "$line")
            printf '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}\n';;
        *'"id":"q1"'*)
            case "$line" in
                *accept*) word=accepted;;
                *decline*) word=declined;;
                *) word=cancelled;;
            esac
            said "$call" "$word"; tell;;
        *'"id":'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$(id "$line")";;
    esac
done
"#;

pub(super) fn script(id: &str) -> Value {
    json!({
        "id": id,
        "mcp": {"transport": "stdio", "command": "sh", "args": ["-c", SCRIPT]},
        "sensitivity": "low",
        "timeoutMs": 30_000,
    })
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_call_is_said_so_and_started_again() {
    let place = place(&[script("script")]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let died = simply(&mut agent, era, &arguments("script", "dies", json!({})));
        let (advice, error) = refused(&died);
        assert_eq!((&error["code"], &error["message"]), (&json!(-32008), &json!("Upstream error")));
        assert!(advice.contains("`script`"), "{advice}");
        let lives = simply(&mut agent, era, &arguments("script", "lives", json!({})));
        assert_eq!(text(&lives), "alive");
        agent.end();
    }
}

/// The first revision had another field for it.
#[test]
fn a_result_without_content_arrives_as_its_json() {
    let place = place(&[script("script")]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("script", "old", json!({})));
        assert_eq!(text(&result), r#"{"toolResult":{"x":1}}"#);
        agent.end();
    }
}

/// A server that repeats a secret of its entry in an error. The agent hears all but the secret.
#[test]
fn a_secret_that_comes_back_in_an_error_is_hidden() {
    let script = SCRIPT.replace(
        r#"*'"name":"dies"'*) exit 3;;"#,
        r#"*'"name":"dies"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"bad token %s","data":{"sent":"Bearer %s"}}}\n' "$(id "$line")" "$API_KEY" "$API_KEY";;"#,
    );
    let mcp = json!({
        "transport": "stdio", "command": "sh", "args": ["-c", script], "env": {"API_KEY": "hunter-2-hunter-2"},
    });
    let place = place(&[json!({"id": "script", "mcp": mcp, "sensitivity": "low"})]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("script", "dies", json!({})));
        assert!(!result.to_string().contains("hunter"), "{result}");
        let (advice, error) = refused(&result);
        assert!(advice.contains("bad token ***"), "{advice}");
        assert_eq!(error["data"]["sent"], "Bearer ***", "{error}");
        agent.end();
    }
}

/// A server that asks in the middle of a call, in the old way.
#[test]
fn a_question_in_the_middle_of_a_call_is_answered() {
    let place = place(&[script("script")]);
    for era in ERAS {
        let mut agent = agent(&place, era, true);
        for (action, word) in
            [("accept", "accepted"), ("decline", "declined"), ("cancel", "cancelled")]
        {
            let mut asked = Vec::new();
            let result = super::house::call(
                &mut agent,
                era,
                &arguments("script", "asks", json!({})),
                |message| {
                    asked.push(message.to_owned());
                    match action {
                        "accept" => json!({"action": action, "content": {"name": "Ada"}}),
                        action => json!({"action": action}),
                    }
                },
            );
            assert_eq!(asked, ["`script` asks: Your name?"]);
            assert_eq!(text(&result), word);
        }
        agent.end();
    }
}

/// Our own program is a server like any other, over pipes.
#[test]
fn our_own_program_can_be_called() {
    let other = crate::Place::new();
    other.write("workflows/letter.json", crate::agent::LETTER);
    let program = env!("CARGO_BIN_EXE_workflowlookup");
    let args = json!(["serve", "--no-bundled"]);
    let mcp = json!({
        "transport": "stdio", "command": program, "args": args, "cwd": other.project(),
        "env": {"HOME": other.home()},
    });
    let place = place(&[json!({"id": "other", "sensitivity": "low", "mcp": mcp})]);
    for era in ERAS {
        let mut agent = agent(&place, era, false);
        let result = simply(&mut agent, era, &arguments("other", "workflow_list", json!({})));
        assert_eq!(result["structuredContent"]["workflows"][0]["id"], "letter");
        let missing = arguments("other", "workflow_get", json!({"id": "nothing-here"}));
        let result = simply(&mut agent, era, &missing);
        assert_eq!(result["isError"], true);
        let described = agent.call("describe_mcp", &json!({"id": "other", "detail": "tools"}));
        assert_eq!(parsed(&described)["tools"].as_array().unwrap().len(), 9, "it has no registry");
        agent.end();
    }
}

/// Who goes away while a call is under way leaves nothing behind that waits.
#[test]
fn the_end_of_a_client_is_the_end_of_its_calls() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut agent = agent(&place, Era::Legacy, false);
    agent.begin_call("call_mcp_tool", &arguments("notes", "waits", json!({})));
    assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
    agent.process.input = None;
    assert_eq!(upstream.seen(), Seen::Withdrawn);
    while let Some(heard) = agent.hear() {
        assert!(matches!(heard, Heard::Told { .. }));
    }
    assert_eq!(agent.process.wait().code(), Some(0));
}

/// Whoever reads the log sees each message, and nothing that is secret; so does whoever has them written down.
#[test]
fn nothing_secret_is_logged() {
    let upstream = Upstream::start();
    let auth = json!({"mcp": {"auth": {"type": "bearer", "token": "${A_TOKEN}"}}});
    let place = place(&[upstream.entry("notes", auth)]);
    let arguments_of_serve = ["serve", "--log-level", "debug", "--log-upstreams", "messages.jsonl"];
    let mut command = place.command(&arguments_of_serve);
    let log = place.root.path().join("log");
    command.env("A_TOKEN", "a-very-secret-token").stderr(std::fs::File::create(&log).unwrap());
    let process = crate::transcripts::Process::spawn(command);
    let mut agent = crate::agent::Agent::connect(process, Era::Legacy, json!({}));
    let said = json!({"text": "so be it: a-very-secret-token"});
    let result = simply(&mut agent, Era::Legacy, &arguments("notes", "echo", said));
    assert_eq!(text(&result), "so be it: a-very-secret-token", "what an agent says is its own");
    agent.end();
    let log = std::fs::read_to_string(log).unwrap();
    let messages = std::fs::read_to_string(place.project().join("messages.jsonl")).unwrap();
    for (name, written) in [("the log", &log), ("the file", &messages)] {
        assert!(written.contains("so be it: ***"), "{name}: {written}");
        assert!(!written.contains("a-very-secret-token"), "{name}: {written}");
    }
    assert!(log.contains("[MCP →] notes") && log.contains("[MCP ←] notes"), "{log}");
    assert!(!log.contains("peer_info"), "rmcp has its say: {log}");
}

/// A line of the log says whom a call was passed on to, and never with what.
#[test]
fn a_call_is_a_line_of_the_log() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let mut command = place.command(&["serve", "--log-level", "info", "--log-format", "json"]);
    let log = place.root.path().join("log");
    command.stderr(std::fs::File::create(&log).unwrap());
    let process = crate::transcripts::Process::spawn(command);
    let mut agent = crate::agent::Agent::connect(process, Era::Legacy, json!({}));
    simply(&mut agent, Era::Legacy, &arguments("notes", "echo", json!({"text": "for-nobody"})));
    simply(&mut agent, Era::Legacy, &arguments("notes", "fails", json!({})));
    agent.call("describe_mcp", &json!({"id": "notes"}));
    agent.end();
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("for-nobody"), "{log}");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let called = lines.filter(|line| line["message"] == "carried out" && line["server"] == "notes");
    let called: Vec<[Value; 3]> = called
        .map(|line| ["tool", "server_tool", "outcome"].map(|name| line[name].clone()))
        .collect();
    let expected = [
        [json!("call_mcp_tool"), json!("echo"), json!("ok")],
        [json!("call_mcp_tool"), json!("fails"), json!("refused")],
        [json!("describe_mcp"), Value::Null, json!("ok")],
    ];
    assert_eq!(called, expected, "{log}");
}
