//! The tools of the test server. Each does one thing that a client must cope with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::behaviour::complain;
use super::mischief;
use super::server::{MODERN, Server};

pub(crate) fn all() -> Vec<Value> {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let plain = object(json!({}), json!([]));
    let text = object(json!({"text": {"type": "string"}}), json!(["text"]));
    let mut tools = vec![
        json!({"name": "echo", "description": "Says it again", "inputSchema": text, "annotations": {"readOnlyHint": true}}),
        json!({"name": "slow", "inputSchema": object(json!({"ms": {"type": "integer"}, "progress": {"type": "integer"}}), json!(["ms"]))}),
        json!({"name": "flaky_read", "inputSchema": plain, "annotations": {"readOnlyHint": true}}),
        json!({"name": "flaky_write", "inputSchema": plain}),
        json!({"name": "destroy", "inputSchema": plain, "annotations": {"destructiveHint": true}}),
        json!({"name": "lies", "inputSchema": plain, "outputSchema": object(json!({"count": {"type": "integer"}}), json!(["count"]))}),
        json!({"name": "regional", "inputSchema": object(json!({"region": {"type": "string", "x-mcp-header": "Region"}}), json!([]))}),
        json!({"name": "misheaded", "inputSchema": {"type": "object", "x-mcp-header": "Nowhere"}}),
        json!({"name": "silent", "inputSchema": plain, "outputSchema": object(json!({}), json!([]))}),
    ];
    for name in [
        "never",
        "hang_all",
        "die",
        "fail",
        "tool_error",
        "big",
        "all_content",
        "ask",
        "ask_for_ever",
        "change",
        "update",
        "environment",
        "want",
        "calls",
        "strange",
        "deep",
        "half",
        "too_long",
        "counts",
        "until",
    ]
    .into_iter()
    .chain(mischief::NAMES)
    {
        tools.push(json!({"name": name, "inputSchema": plain}));
    }
    tools
}

pub(crate) fn call(server: &Arc<Server>, id: &Value, params: &Value) {
    let arguments = &params["arguments"];
    let number = |name: &str| arguments[name].as_u64().unwrap_or(0);
    let word = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let said =
        |text: &str| json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
    if mischief::call(server, id, params) {
        return;
    }
    match params["name"].as_str().unwrap_or_default() {
        "echo" => server.answer(id, said(&word("text"))),
        "slow" => slow(server, id, params, number("ms"), number("progress")),
        "never" => wait_for_cancellation(server, id, Duration::from_secs(600)),
        // Whoever reads our input holds this lock from now on.
        "die" => {
            complain("out of memory, or so");
            complain(&format!("token was {}", word("secret")));
            std::process::exit(i32::try_from(number("status")).unwrap_or(1));
        }
        "flaky_read" | "flaky_write" => flaky(server, id, arguments),
        "fail" => server.refuse(
            id,
            arguments["code"].as_i64().unwrap_or(-32000),
            "it went wrong",
            arguments["data"].clone(),
        ),
        "tool_error" => server.answer(
            id,
            json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
        ),
        "big" => server.answer(id, said(&"x".repeat(number("bytes") as usize))),
        "all_content" => server.answer(id, all_content()),
        "lies" => server.answer(id, json!({"content": [], "structuredContent": {"count": "many"}})),
        "silent" => server.answer(id, said("nothing structured")),
        "ask" => {
            if let Some(file) = arguments["file"].as_str() {
                wait_for(file);
            }
            ask(server, id, params)
        }
        "until" => {
            wait_for(&word("file"));
            server.answer(id, said("done"));
        }
        "ask_for_ever" => server.answer(id, question("again?")),
        "change" => {
            server.state().added.push(word("name"));
            server.notify("notifications/tools/list_changed", json!({}));
            server.answer(id, said("changed"));
        }
        "update" => {
            server.notify("notifications/resources/updated", json!({"uri": word("uri")}));
            server.answer(id, said("updated"));
        }
        "environment" => {
            let variables: Vec<String> =
                std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            server.answer(id, said(&variables.join("\n")));
        }
        // Something that a client need not do.
        "want" => {
            let answer = server.ask(&word("method"), json!({}));
            server.answer(id, said(&answer.unwrap_or_default().to_string()));
        }
        "calls" => {
            let calls = server.state().calls;
            server.answer(id, said(&calls.to_string()));
        }
        "counts" => {
            let text =
                json!({"lists": server.state().lists, "subscribed": server.state().subscribed})
                    .to_string();
            server.answer(id, said(&text));
        }
        "strange" => server.say(&json!({"jsonrpc": "2.0", "id": id})),
        "deep" => {
            let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
            server.say_text(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{deep}}}}}"#
            ));
        }
        "half" => {
            server.say_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#));
            std::process::exit(0);
        }
        "too_long" => {
            let at_end = arguments["idLast"] == true;
            let text = "y".repeat(80 * 1024 * 1024);
            server.say_text(&match at_end {
                true => format!(r#"{{"jsonrpc":"2.0","result":{{"content":"{text}"}},"id":{id}}}"#),
                false => {
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"{text}"}}}}"#)
                }
            });
        }
        "regional" => server.answer(id, said(&word("region"))),
        "destroy" => server.answer(id, said("destroyed")),
        name if name.starts_with("in_") => server.answer(id, said("done")),
        name if name.starts_with("out_") => {
            server.answer(id, json!({"content": [], "structuredContent": {"a": 1}}))
        }
        name => server.refuse(id, -32602, "Unknown tool", json!({"name": name})),
    }
}

fn slow(server: &Server, id: &Value, params: &Value, milliseconds: u64, steps: u64) {
    let token = &params["_meta"]["progressToken"];
    for step in 1..=steps {
        std::thread::sleep(Duration::from_millis(milliseconds / (steps + 1)));
        let params = json!({"progressToken": token, "progress": step, "total": steps, "message": format!("step {step}")});
        server
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
    if !is_cancelled_within(server, id, Duration::from_millis(milliseconds / (steps + 1))) {
        server.answer(
            id,
            json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
        );
    }
}

fn is_cancelled_within(server: &Server, id: &Value, time: Duration) -> bool {
    let until = Instant::now() + time;
    let mut state = server.state();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if state.cancelled.contains(&id.to_string()) || left.is_zero() {
            return !left.is_zero();
        }
        state = server
            .cancelled
            .wait_timeout(state, left)
            .map(|(state, _)| state)
            .unwrap_or_else(|error| error.into_inner().0);
    }
}

fn wait_for_cancellation(server: &Server, id: &Value, time: Duration) {
    is_cancelled_within(server, id, time);
}

/// Whatever is cancelled meanwhile.
fn wait_for(file: &str) {
    let began = Instant::now();
    while !std::path::Path::new(file).exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Fails as often as the file says, over all processes that there will be.
fn flaky(server: &Server, id: &Value, arguments: &Value) {
    let path = arguments["file"].as_str().unwrap_or_default();
    let left: u64 =
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if left == 0 {
        return server.answer(id, json!({"content": [{"type": "text", "text": "at last"}]}));
    }
    let _ = std::fs::write(path, (left - 1).to_string());
    match arguments["how"].as_str() {
        Some("die") => std::process::exit(9),
        _ => server.refuse(id, -32603, "Internal error", Value::Null),
    }
}

fn all_content() -> Value {
    json!({
        "resultType": "complete",
        "content": [
            {"type": "text", "text": "t", "annotations": {"priority": 0.5}, "unknown": [1]},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "test://a", "text": "a", "_meta": {"m": 1}}},
            {"type": "resource_link", "uri": "test://b", "name": "b"},
            {"type": "hologram", "points": [[1, 2, 3]], "exact": 1.50},
        ],
        "structuredContent": null,
        "_meta": {"example.com/trace": "x"},
        "future": {"field": true},
    })
}

fn form(message: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    })
}

fn question(message: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": form(message)}},
        "requestState": "opaque-state",
    })
}

fn is_modern(params: &Value) -> bool {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN
}

fn ask(server: &Server, id: &Value, params: &Value) {
    let answer = if is_modern(params) {
        match params["inputResponses"].get("who") {
            None => return server.answer(id, question("who are you?")),
            Some(answer) if params["requestState"] == "opaque-state" => answer.clone(),
            Some(_) => return server.refuse(id, -32602, "the state is lost", Value::Null),
        }
    } else {
        let answer = server.ask("elicitation/create", form("who are you?"));
        answer.unwrap_or_default()["result"].clone()
    };
    let text = answer.to_string();
    server
        .answer(id, json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}));
}

pub(crate) fn ask_in_read(server: &Server, id: &Value, params: &Value) {
    if is_modern(params) && params["inputResponses"].get("who").is_none() {
        return server.answer(id, question("who reads?"));
    }
    server.answer(id, json!({"resultType": "complete", "contents": []}));
}
