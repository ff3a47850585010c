//! Plays the server's part of a log of messages again. Each message of the client's is looked up in what the client said
//! then, in order among those of the same kind; what the server said between that and the client's next message is said
//! again, and the answer to it in any case, with the ids of now.

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

/// One message of the client's, and what came of it.
struct Turn {
    message: Value,
    said: Vec<Value>,
    is_played: bool,
}

pub(crate) fn play(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut turns: Vec<Turn> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let message = line["message"].clone();
        match line["way"].as_str() {
            Some("out") => turns.push(Turn { message, said: Vec::new(), is_played: false }),
            Some("in") => {
                // An answer belongs to its request, and news to what was said last.
                let is_answer = message.get("method").is_none();
                let asked = |turn: &Turn| is_answer && turn.message["id"] == message["id"];
                let at = turns.iter().rposition(asked).or(turns.len().checked_sub(1));
                if let Some(at) = at {
                    turns[at].said.push(message);
                }
            }
            _ => {}
        }
    }
    let mut tokens = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let heard: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let turn =
            turns.iter_mut().find(|turn| !turn.is_played && kind(&turn.message) == kind(&heard));
        let Some(turn) = turn else {
            if heard.get("id").is_some() {
                let error =
                    json!({"code": -32601, "message": "the log has no such message any more"});
                say(&json!({"jsonrpc": "2.0", "id": heard["id"], "error": error}))?;
            }
            continue;
        };
        turn.is_played = true;
        let token = |message: &Value| message["params"]["_meta"]["progressToken"].to_string();
        tokens.insert(token(&turn.message), heard["params"]["_meta"]["progressToken"].clone());
        for message in &turn.said {
            let mut message = message.clone();
            if message.get("method").is_none() {
                message["id"] = heard["id"].clone();
            }
            if let Some(now) = tokens.get(&message["params"]["progressToken"].to_string()) {
                message["params"]["progressToken"] = now.clone();
            }
            say(&message)?;
        }
    }
    Ok(())
}

/// What two messages must have in common to be the same.
fn kind(message: &Value) -> (String, String) {
    (message["method"].to_string(), message["params"]["name"].to_string())
}

fn say(message: &Value) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())
}
