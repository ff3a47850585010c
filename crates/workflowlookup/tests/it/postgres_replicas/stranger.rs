//! Somebody with a token of their own, who looks for the sessions of others all the time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http_agent::{answer_of, modern};

const PAUSE: Duration = Duration::from_millis(50);
/// The id of a session that is not there.
const NOBODY: &str = "zzzzzzzzzzzzzzzzzzzz";
/// How often it is told of new ones.
const ANEW: Duration = Duration::from_secs(1);

/// Asks about a session.
type Asking<'a> = dyn Fn(&str) -> Option<Value> + 'a;

/// Looks until it is over, in lists and at ids that somebody has told it; how often there was an answer.
pub(super) fn look_around(
    proxy: SocketAddr,
    token: &str,
    ids: &dyn Fn() -> Vec<String>,
    is_over: &AtomicBool,
    deadline: Instant,
) -> usize {
    // A replica that dies and a store that is away are for others to tell of.
    let ask = |method: &str, params: Value| -> Option<Value> {
        let request = modern(method, params, &json!({}));
        let request = request.header("Authorization", &format!("Bearer {token}"));
        let response = request.send(proxy).ok()?;
        let is_answer = [200, 400, 404].contains(&response.head.status);
        let answer = is_answer.then(|| answer_of(&response))?;
        (!answer.to_string().contains("the store cannot be used")).then_some(answer)
    };
    let call = |tool: &str, arguments: Value| {
        ask("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let mut looks = 0;
    let (mut known, mut told) = (Vec::new(), None::<Instant>);
    while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
        if let Some(listed) = call("workflow_status", json!({})) {
            let listed = &listed["result"]["structuredContent"]["sessions"];
            assert_eq!(*listed, json!([]), "a stranger sees sessions of others");
            looks += 1;
        }
        if told.is_none_or(|told| told.elapsed() > ANEW) {
            (known, told) = (ids(), Some(Instant::now()));
        }
        for id in &known {
            let asked: [&Asking<'_>; 3] = [
                &|id| call("workflow_status", json!({"sessionId": id})),
                &|id| {
                    let (step, output) = ("one", "mine");
                    let arguments =
                        json!({"sessionId": id, "revision": 0, "stepId": step, "output": output});
                    call("workflow_advance", arguments)
                },
                &|id| ask("resources/read", json!({"uri": format!("session://{id}")})),
            ];
            for ask in asked {
                let (Some(heard), Some(expected)) = (ask(id), ask(NOBODY)) else { continue };
                let heard = heard.to_string().replace(&**id, NOBODY);
                assert_eq!(heard, expected.to_string(), "a stranger hears of a session");
                looks += 1;
            }
        }
        std::thread::sleep(PAUSE);
    }
    looks
}
