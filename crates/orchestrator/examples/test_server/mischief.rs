//! Tools of the test server that mean harm. None of them is asked for by a client that does not want to see it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::Server;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

pub(crate) const NAMES: [&str; 21] = [
    "abort",
    "batch",
    "binary",
    "close_input",
    "close_output",
    "deaf",
    "flood_notifications",
    "flood_progress",
    "flood_stderr",
    "flood_updates",
    "huge_error",
    "huge_question",
    "leave_children",
    "line_without_end",
    "lines_without_end",
    "many_parts",
    "no_object",
    "out_of_order",
    "rude_error",
    "wrong_id",
    "wrong_types",
];

/// On the thread that reads what we are told, which reads nothing meanwhile. Whether that is all there is to it.
pub(crate) fn on_the_reader(server: &Server, id: &Value, name: &str) -> bool {
    match name {
        "hang_all" => std::thread::sleep(LONG),
        // Only here: a read that waits on another thread would keep it open.
        "close_input" => {
            let nothing = std::fs::File::open("/dev/null");
            let _ = nothing.map(|nothing| rustix::stdio::dup2_stdin(&nothing));
            server.answer(id, said("closed"));
            std::thread::sleep(LONG);
        }
        _ => return false,
    }
    true
}

/// Whether there is such a tool.
pub(crate) fn call(server: &Arc<Server>, id: &Value, params: &Value) -> bool {
    let arguments = &params["arguments"];
    let number = |name: &str| arguments[name].as_u64().unwrap_or(0);
    match params["name"].as_str().unwrap_or_default() {
        "abort" => std::process::abort(),
        "batch" => {
            server.say_text(&zeros());
            server.answer(id, said("after all that"));
        }
        "binary" => {
            let noise: Vec<u8> = (0..=255).cycle().take(100_000).collect();
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(&noise).and_then(|()| stdout.write_all(b"\n\xff\xfe\0\0\n"));
            drop(stdout);
            server.answer(id, said("after all that"));
        }
        "close_output" => {
            let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null");
            let _ = nothing.map(|nothing| rustix::stdio::dup2_stdout(&nothing));
        }
        "deaf" => std::thread::sleep(LONG),
        "line_without_end" => {
            // Nobody else gets a word in.
            let mut stdout = std::io::stdout().lock();
            while stdout.write_all(&[b'z'; 64 * 1024]).is_ok() {}
        }
        "lines_without_end" => {
            let lines = "y\n".repeat(32 * 1024);
            let mut stdout = std::io::stdout().lock();
            while stdout.write_all(lines.as_bytes()).is_ok() {}
        }
        "flood_notifications" => {
            for _ in 0..number("count") {
                server.notify("notifications/message", json!({"level": "info", "data": "x"}));
            }
            server.answer(id, said("done"));
        }
        "flood_progress" => flood_progress(server, params),
        "flood_stderr" => {
            let line = format!("{}\n", "complaint ".repeat(100));
            let mut stderr = std::io::stderr().lock();
            for _ in 0..=number("bytes") / line.len() as u64 {
                let _ = stderr.write_all(line.as_bytes());
            }
            server.answer(id, said("done"));
        }
        "flood_updates" => {
            let uri = format!("test://{}", "u".repeat(number("bytes") as usize));
            for _ in 0..number("count") {
                server.notify("notifications/resources/updated", json!({"uri": uri}));
            }
            server.answer(id, said("done"));
        }
        "huge_error" => server.say_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":{zeros},"data":{zeros}}}}}"#,
            zeros = zeros_of(25),
        )),
        "huge_question" => {
            server.say_text(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{{"message":"?","requestedSchema":{}}}}}"#,
                zeros(),
            ));
            server.answer(id, said("never mind"));
        }
        "many_parts" => server.say_text(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{zeros},"structuredContent":{zeros}}}}}"#,
            zeros = zeros_of(25),
        )),
        "leave_children" => {
            let script =
                "sleep 1000 & setsid sleep 1000 & (trap '' TERM HUP; setsid sleep 1000 &) & wait";
            let shell = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn();
            if shell.is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
            std::process::exit(5);
        }
        "no_object" => server.answer(id, json!(7)),
        "out_of_order" => out_of_order(server, id, arguments),
        "rude_error" => {
            let message = format!("\u{1b}[2J{}", "no ".repeat(100_000));
            let error = json!({"code": "E_NO", "message": message, "data": {"why": "no"}});
            server.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        "wrong_id" => server.answer(&json!(999_999), said("to somebody")),
        "wrong_types" => server.answer(
            id,
            json!({
                "content": "a text", "structuredContent": 5, "isError": "yes", "_meta": [],
            }),
        ),
        _ => return false,
    }
    true
}

/// Small as text, and huge as anything else.
pub(crate) fn zeros() -> String {
    zeros_of(50)
}

fn zeros_of(mebibytes: usize) -> String {
    format!("[{}0]", "0,".repeat(mebibytes * 512 * 1024))
}

fn said(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// For ever, and never an answer.
fn flood_progress(server: &Server, params: &Value) {
    for step in 0_u64.. {
        let params = json!({"progressToken": params["_meta"]["progressToken"], "progress": step});
        server
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
}

/// Answers when so many wait, the last one first.
fn out_of_order(server: &Server, id: &Value, arguments: &Value) {
    let text = arguments["text"].as_str().unwrap_or_default();
    let waiting = {
        let mut state = server.state();
        state.waiting.push((id.clone(), said(text)));
        if (state.waiting.len() as u64) < arguments["of"].as_u64().unwrap_or(1) {
            return;
        }
        std::mem::take(&mut state.waiting)
    };
    for (id, result) in waiting.into_iter().rev() {
        server.answer(&id, result);
    }
}
