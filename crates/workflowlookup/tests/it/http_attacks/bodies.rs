//! Bodies that are too large, too slow, or not what they say.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::{Attack, Target, answers, gone, plain, post};
use crate::http_client::Connection;

const MIB: usize = 1024 * 1024;
/// The server's constants for the time that headers and bodies have.
const TIME: Duration = Duration::from_secs(30);

pub(super) fn attacks() -> Vec<Attack> {
    vec![
        Attack::new("a body of 100 MiB", "with its length", |target| {
            let head = post(&format!("Content-Length: {}\r\n", 100 * MIB), "");
            // The length is enough; what the system takes on its way to nobody is not counted.
            large(target, &head, &[b' '; 64 * 1024], 0..100 * MIB)
        }),
        Attack::new("a body of 100 MiB, announced", "`Expect: 100-continue`", |target| {
            let headers = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", 100 * MIB);
            let mut connection = target.connect();
            connection.send_raw(target.filled_in(&post(&headers, "")).as_bytes()).unwrap();
            connection.head().unwrap().status.to_string()
        }),
        Attack::new("a body of 100 MiB, in chunks", "without its length", |target| {
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(64 * 1024));
            let head = post("Transfer-Encoding: chunked\r\n", "");
            large(target, &head, chunk.as_bytes(), 16 * MIB..64 * MIB)
        }),
        Attack::new("a body that is shorter than it says", "and then the end", |target| {
            let mut stream = plain(target);
            let text = target.filled_in(&post("Content-Length: 1000\r\n", "{}"));
            stream.write_all(text.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut came = Vec::new();
            match stream.read_to_end(&mut came) {
                Ok(_) if came.is_empty() => "closed".to_owned(),
                Ok(_) => String::from_utf8_lossy(&came[9..12]).into_owned(),
                Err(error) => gone(&error),
            }
        }),
        Attack::raw(
            "a body that is longer than it says",
            "garbage behind it",
            post("Content-Length: 2\r\n", "{}garbage\r\n\r\n"),
        ),
    ]
}

/// Each takes as long as the server's patience.
pub(super) fn slow_attacks() -> Vec<Attack> {
    vec![
        Attack::new("a slow body", "a byte a second", |target| {
            drip(target, &post("Content-Length: 1000\r\n", ""), "{")
        }),
        Attack::new("slow headers", "a line a second", |target| {
            drip(target, "POST /mcp HTTP/1.1\r\n", "X: 1\r\n")
        }),
        Attack::new("a connection that says nothing", "for as long as it may", |target| {
            drip(target, "", "")
        }),
    ]
}

/// Sends until an answer comes or nobody listens; what comes back, and whether so much was taken.
fn large(target: &Target, head: &str, piece: &[u8], taken: std::ops::Range<usize>) -> String {
    let mut stream = plain(target);
    stream.write_all(target.filled_in(head).as_bytes()).unwrap();
    let mut reader = stream.try_clone().unwrap();
    let answer = std::thread::spawn(move || {
        let mut came = [0; 12];
        reader.read_exact(&mut came).map(|()| String::from_utf8_lossy(&came[9..]).into_owned())
    });
    let mut sent = 0;
    while sent < 200 * MIB && !answer.is_finished() && stream.write_all(piece).is_ok() {
        sent += piece.len();
    }
    assert!(taken.contains(&sent), "{sent} bytes were taken");
    answer.join().unwrap().unwrap_or_else(|error| gone(&error))
}

/// Sends a little every second; what comes back, and about when.
fn drip(target: &Target, first: &str, drop: &str) -> String {
    let start = Instant::now();
    let mut stream = plain(target);
    stream.write_all(target.filled_in(first).as_bytes()).unwrap();
    let mut dripping = stream.try_clone().unwrap();
    let drop = drop.to_owned();
    let thread = std::thread::spawn(move || {
        while !drop.is_empty() && dripping.write_all(drop.as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let mut connection = Connection::over(stream).unwrap();
    let came = answers(&mut connection);
    let took = start.elapsed();
    assert!(took > TIME - Duration::from_secs(1) && took < 2 * TIME, "after {took:?}");
    let _ = connection.stream().unwrap().shutdown(Shutdown::Both);
    thread.join().unwrap();
    format!("{came} after 30 s")
}
