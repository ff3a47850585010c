//! Odd requests: other protocols, other methods, other paths, headers without end, and JSON that is none.

use std::io::Write as _;

use serde_json::json;

use super::{Attack, Target, answers, gone, plain, post};
use crate::agent::Era;
use crate::http_agent::{handshake, legacy, list, modern};
use crate::http_client::Request;

pub(super) fn attacks() -> Vec<Attack> {
    let method = |name, method: &str| {
        Attack::request(name, "to `/mcp`", Request::new(method, "/mcp").body("{}"))
    };
    let get = |name, path: &str| Attack::request(name, "`GET`", Request::new("GET", path));
    let body = |name, sent, body: String| Attack::request(name, sent, Request::post(body));
    let nested =
        |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    vec![
        method("`PUT`", "PUT"),
        method("`PATCH`", "PATCH"),
        method("`TRACE`", "TRACE"),
        method("a method that nobody knows", "BREW"),
        Attack::raw(
            "`CONNECT`",
            "to another host",
            "CONNECT evil.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        ),
        get("`/healthz`", "/healthz"),
        get("`/readyz`", "/readyz"),
        get("`/metrics`", "/metrics"),
        get("an unknown path", "/admin"),
        get("a path that climbs", "/../../etc/passwd"),
        get("a path that climbs, encoded", "/%2e%2e/%2e%2e/etc/passwd"),
        get("nearly the endpoint", "/mcp/"),
        Attack::raw("no HTTP at all", "`hello`", "hello\r\n\r\n"),
        Attack::new("zeros", "4 KiB", |target| target.answers([0; 4096])),
        Attack::new("TLS", "how it begins", |target| {
            target.answers(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        }),
        Attack::raw("HTTP/2", "its preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        Attack::raw(
            "HTTP/9.9",
            "a version to come",
            "GET /healthz HTTP/9.9\r\nHost: {host}\r\n\r\n",
        ),
        Attack::raw(
            "an upgrade to HTTP/2",
            "`Upgrade: h2c`",
            post(
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\
             Content-Length: 2\r\n",
                "{}",
            ),
        ),
        Attack::new("too many headers", "1,000 of them", |target| {
            let headers: String = (0..1_000).map(|number| format!("X-{number}: 1\r\n")).collect();
            target.answers(target.filled_in(&post(&headers, "")))
        }),
        Attack::new("a header that is too large", "1 MiB", |target| {
            target.answers(target.filled_in(&post(&format!("X: {}\r\n", "x".repeat(1 << 20)), "")))
        }),
        Attack::new("headers without end", "until we are not heard any more", endless_headers),
        Attack::new("a request line that is too long", "1 MiB", |target| {
            target.answers(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)))
        }),
        Attack::raw("a zero in a header", "`X: a\\0b`", post("X: a\0b\r\n", "")),
        body("no JSON", "`{`", "{".to_owned()),
        body("deep JSON", "100,000 arrays in each other", nested("[", "]")),
        body(
            "deep JSON, in a message",
            "100,000 objects in each other as `params`",
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}}"#,
                nested("{\"a\":", "}")
            ),
        ),
        body("many messages", "an array of 100,000", format!("[{}1]", "1,".repeat(100_000))),
        body("half a letter", "a body that is no UTF-8", String::new()).with_bytes(b"\"\xff\xfe\""),
        Attack::request(
            "a body that is packed",
            "`Content-Encoding: gzip`",
            Request::post(b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec())
                .header("Content-Encoding", "gzip"),
        ),
        Attack::new("`shutdown`", "as over standard input, with a handshake", |target| {
            let response = legacy(&handshake(target.address()), 1, "shutdown", &json!({}));
            let response = response.send(target.address()).unwrap();
            format!("{}, error {}", response.head.status, response.json()["error"]["code"])
        }),
        Attack::raw(
            "a header that says two things",
            "a good `Mcp-Name`, and another",
            super::post(
                "Content-Length: 2\r\nMcp-Name: workflow_list\r\nMcp-Name: workflow_get\r\n",
                "{}",
            ),
        ),
        Attack::new("headers that lie about the body", "`Mcp-Name` of another tool", |target| {
            let request = list(Era::Modern, "").header("Mcp-Name", "workflow_get");
            let response = request.send(target.address()).unwrap();
            format!("{}, error {}", response.head.status, response.json()["error"]["code"])
        }),
        Attack::new(
            "many subscriptions",
            "1,001 resources in one `subscriptions/listen`",
            |target| {
                let uris: Vec<String> =
                    (0..1_001).map(|number| format!("session://{number}")).collect();
                let listen = json!({"notifications": {"resourceSubscriptions": uris}});
                let response = modern("subscriptions/listen", listen, &json!({}));
                let response = response.send(target.address()).unwrap();
                format!("{}, error {}", response.head.status, response.json()["error"]["code"])
            },
        ),
    ]
}

impl Attack {
    /// The same with a body that is no text.
    fn with_bytes(self, bytes: &'static [u8]) -> Self {
        Self::request(self.name, self.sent, Request::post(bytes))
    }
}

fn endless_headers(target: &Target) -> String {
    let mut stream = plain(target);
    stream
        .write_all(target.filled_in("GET /healthz HTTP/1.1\r\nHost: {host}\r\n").as_bytes())
        .unwrap();
    let line = format!("X: {}\r\n", "x".repeat(1000));
    let mut sent = 0;
    while stream.write_all(line.as_bytes()).is_ok() {
        sent += line.len();
        assert!(sent < 64 << 20, "it reads headers for ever");
    }
    let mut connection = target.connect();
    connection
        .send_raw(
            target
                .filled_in("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
        .unwrap();
    assert_eq!(answers(&mut connection), "200, closed");
    gone(&std::io::ErrorKind::ConnectionReset.into())
}
