//! Two requests that look like one to somebody on the way, or one that looks like two. Whatever is made of them, nothing
//! that was hidden in a body is ever carried out.

use super::{Attack, Target, post};

/// What is hidden: were it carried out, it would be counted.
const HIDDEN: &str = "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Hidden: 1\r\n\r\n";

/// The attempts, by name: what is done, and the bytes.
pub(in super::super) fn attempts() -> Vec<(&'static str, &'static str, String)> {
    let chunked = format!("0\r\n\r\n{HIDDEN}");
    let hidden_chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let both = |te: &str| post(&format!("Content-Length: {}\r\n{te}", chunked.len()), &chunked);
    vec![
        (
            "CL.TE",
            "a length and chunks, and a request behind the last chunk",
            both("Transfer-Encoding: chunked\r\n"),
        ),
        (
            "TE.CL",
            "chunks and a length that ends inside the first",
            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", &hidden_chunk),
        ),
        (
            "TE.TE, the second unknown",
            "`chunked`, then `identity`",
            both("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        ),
        (
            "`Transfer-Encoding: chunked, identity`",
            "one header",
            both("Transfer-Encoding: chunked, identity\r\n"),
        ),
        ("`Transfer-Encoding: xchunked`", "with a length", both("Transfer-Encoding: xchunked\r\n")),
        (
            "`Transfer-Encoding : chunked`",
            "a space before the colon",
            both("Transfer-Encoding : chunked\r\n"),
        ),
        (
            "`Transfer-Encoding:\\x0bchunked`",
            "an odd space behind the colon",
            both("Transfer-Encoding:\x0bchunked\r\n"),
        ),
        (
            "a folded header",
            "`Transfer-Encoding:`, and `chunked` on the next line",
            both("Transfer-Encoding:\r\n chunked\r\n"),
        ),
        (
            "two lengths",
            "another one first",
            post(
                &format!("Content-Length: 2\r\nContent-Length: {}\r\n", HIDDEN.len() + 2),
                &format!("{{}}{HIDDEN}"),
            ),
        ),
        (
            "a list of lengths",
            "`Content-Length: 2, 2`",
            post("Content-Length: 2, 2\r\n", &format!("{{}}{HIDDEN}")),
        ),
        (
            "a length with a sign",
            "`Content-Length: +2`",
            post("Content-Length: +2\r\n", &format!("{{}}{HIDDEN}")),
        ),
        (
            "a length that is none",
            "`Content-Length: 0x2`",
            post("Content-Length: 0x2\r\n", &format!("{{}}{HIDDEN}")),
        ),
        ("a length below zero", "`Content-Length: -1`", post("Content-Length: -1\r\n", HIDDEN)),
        (
            "a length beyond all numbers",
            "`Content-Length: 18446744073709551618`",
            post("Content-Length: 18446744073709551618\r\n", HIDDEN),
        ),
        (
            "a chunk that is too large",
            "`ffffffffffffffff0`",
            post("Transfer-Encoding: chunked\r\n", &format!("ffffffffffffffff0\r\n{HIDDEN}")),
        ),
        (
            "a chunk whose size is none",
            "`2x`",
            post("Transfer-Encoding: chunked\r\n", &format!("2x\r\n{{}}\r\n{chunked}")),
        ),
        (
            "a chunk without its end",
            "something else where its line end belongs",
            post("Transfer-Encoding: chunked\r\n", &format!("2\r\n{{}}XX{chunked}")),
        ),
        (
            "bare line feeds in chunks",
            "`\\n` for `\\r\\n`",
            post("Transfer-Encoding: chunked\r\n", &format!("2\n{{}}\n0\n\n{HIDDEN}")),
        ),
        (
            "chunks of HTTP/1.0",
            "which has none",
            both("Transfer-Encoding: chunked\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1),
        ),
        (
            "a bare carriage return in a header",
            "`X: a\\rContent-Length: 0`",
            post(
                &format!("X: a\rContent-Length: 0\r\nContent-Length: {}\r\n", HIDDEN.len()),
                HIDDEN,
            ),
        ),
        (
            "a header before the first",
            "a request line, a space, a header",
            post(&format!("Content-Length: {}\r\n", HIDDEN.len()), HIDDEN).replacen(
                "Host:",
                " X: 1\r\nHost:",
                1,
            ),
        ),
    ]
}

pub(super) fn attacks() -> Vec<Attack> {
    let smuggled = attempts().into_iter().map(|(name, sent, bytes)| {
        Attack::new(name, sent, move |target| {
            let before = target.counted("http_responses_total");
            let came = target.answers(target.filled_in(&bytes));
            let seen = target.counted("http_responses_total") - before;
            assert!(seen <= 1, "{name}: {seen} requests were seen");
            came
        })
    });
    let mut attacks: Vec<Attack> = smuggled.collect();
    attacks.push(Attack::new("bare line feeds", "`\\n` for `\\r\\n` in the headers", |target| {
        target.answers(target.filled_in("GET /healthz HTTP/1.1\nHost: {host}\n\n"))
    }));
    attacks.push(Attack::new(
        "three requests at once",
        "on one connection, as is allowed",
        pipelined,
    ));
    attacks
}

fn pipelined(target: &Target) -> String {
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {{host}}\r\n\r\n");
    let all = request("/healthz") + &request("/unknown") + &request("/mcp");
    let came = target.answers(target.filled_in(&all));
    format!("{came}, in their order")
}
