//! Somebody else's names and pages: a browser that was tricked into calling us says so.

use super::{Attack, Target, post};
use crate::agent::Era;
use crate::http_agent::list;
use crate::http_client::Request;

pub(super) fn attacks() -> Vec<Attack> {
    let host = |name, value| {
        Attack::request(name, "a good call with this `Host`", calling().header("Host", value))
    };
    let origin = |name, value| {
        Attack::request(name, "a good call with this `Origin`", calling().header("Origin", value))
    };
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ping =
        move |headers: &str| post(&format!("Content-Length: {}\r\n{headers}", hello.len()), hello);
    vec![
        host("`Host: evil.example`", "evil.example"),
        host("`Host: localhost.evil.example`", "localhost.evil.example"),
        host("`Host: 127.0.0.1.evil.example`", "127.0.0.1.evil.example"),
        host("`Host: evil.example:80@127.0.0.1`", "evil.example:80@127.0.0.1"),
        host("`Host: localhost, evil.example`", "localhost, evil.example"),
        host("an empty `Host`", ""),
        Attack::raw("no `Host`", "HTTP/1.1 without one", ping("").replace("Host: {host}\r\n", "")),
        Attack::raw("two `Host`s", "a good one, and another", ping("Host: evil.example\r\n")),
        Attack::raw(
            "another host in the request line",
            "`POST http://evil.example/mcp`, and a good `Host`",
            ping("").replace("POST /mcp", "POST http://evil.example/mcp"),
        ),
        Attack::raw(
            "a user in the request line",
            "`POST http://127.0.0.1@evil.example/mcp`, and a good `Host`",
            ping("").replace("POST /mcp", "POST http://127.0.0.1@evil.example/mcp"),
        ),
        origin("`Origin: https://evil.example`", "https://evil.example"),
        origin("`Origin: null`", "null"),
        origin("`Origin: http://localhost.evil.example`", "http://localhost.evil.example"),
        origin("a page of this machine, on another port", "http://127.0.0.1:1"),
        Attack::raw("two `Origin`s", "both foreign", ping("Origin: null\r\nOrigin: http://a\r\n")),
        Attack::new("a foreign page's preflight", "`OPTIONS` as browsers send it", preflight),
        Attack::request(
            "a foreign page's `GET`",
            "`GET` for a stream, with its `Origin`",
            Request::new("GET", "/mcp")
                .header("Accept", "text/event-stream")
                .header("Origin", "https://evil.example"),
        ),
        Attack::request(
            "a form that a page sends without asking",
            "a good call as `text/plain`",
            calling().header("Content-Type", "text/plain"),
        ),
        Attack::request(
            "a form, as forms are sent",
            "a good call as `application/x-www-form-urlencoded`",
            calling().header("Content-Type", "application/x-www-form-urlencoded"),
        ),
        Attack::request(
            "`/metrics` for a foreign name",
            "`GET` with `Host: evil.example`",
            Request::new("GET", "/metrics").header("Host", "evil.example"),
        ),
    ]
}

fn calling() -> Request {
    list(Era::Modern, "")
}

fn preflight(target: &Target) -> String {
    let request = Request::new("OPTIONS", "/mcp")
        .header("Origin", "https://evil.example")
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type, mcp-session-id");
    let response = request.send(target.address()).unwrap();
    assert_eq!(response.head.header("Access-Control-Allow-Origin"), None);
    response.head.status.to_string()
}
