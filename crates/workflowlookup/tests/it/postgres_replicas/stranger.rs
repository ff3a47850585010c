//! Somebody with a token of their own, who looks for the sessions of others all the time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http_agent::{answer_of, modern};

const PAUSE: Duration = Duration::from_millis(50);

/// Looks until it is over; how often there was something to look at.
pub(super) fn look_around(
    proxy: SocketAddr,
    token: &str,
    is_over: &AtomicBool,
    deadline: Instant,
) -> usize {
    let params = json!({"name": "workflow_status", "arguments": {}});
    let request = modern("tools/call", params, &json!({}));
    let request = request.header("Authorization", &format!("Bearer {token}"));
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
        // A replica that dies and a store that is away are for others to tell of.
        let answered = request.send(proxy).ok().filter(|response| response.head.status == 200);
        let result = answered.map(|response| answer_of(&response)["result"].take());
        if let Some(result) = result.filter(|result| result.get("isError").is_none()) {
            check(&result["structuredContent"]);
            looks += 1;
        }
        std::thread::sleep(PAUSE);
    }
    looks
}

/// What the stranger may see. For now that is what everybody sees: sessions belong to whoever runs the server.
fn check(listed: &Value) {
    assert!(listed["sessions"].is_array(), "{listed}");
}
