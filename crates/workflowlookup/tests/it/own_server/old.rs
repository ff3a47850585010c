//! What stands before a server over HTTP and makes an old one of it: it knows no `server/discover`. All else passes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

const UNKNOWN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Where it is.
pub(super) fn before(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with this process.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || pass(client, server));
        }
    });
    address
}

/// One request of a connection. The server hangs up after its answer, so that the end of that is known.
fn pass(mut client: TcpStream, server: SocketAddr) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(Some(0), |(_, length)| length.trim().parse().ok())?];
    client.read_exact(&mut body).ok()?;
    if String::from_utf8_lossy(&body).contains("server/discover") {
        return client.write_all(UNKNOWN).ok();
    }
    let mut server = TcpStream::connect(server).ok()?;
    let (first, rest) = head.split_once("\r\n")?;
    write!(server, "{first}\r\nconnection: close\r\n{rest}").ok()?;
    server.write_all(&body).ok()?;
    let mut answers = server.try_clone().ok()?;
    let mut to = client.try_clone().ok()?;
    let copied = std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    // Whoever hangs up on us hangs up on the server too.
    let _ = client.read(&mut [0]);
    let _ = server.shutdown(Shutdown::Both);
    copied.join().ok()
}
