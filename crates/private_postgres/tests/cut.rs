//! The line that can be cut, with a server that sends back what it gets.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use private_postgres::{Cut, Flow, Towards};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is listened whether nothing comes. Longer makes a test surer, never wrong.
const SILENCE: Duration = Duration::from_millis(200);

/// Sends back what it gets until the client says no more, then says goodbye.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                let _ = stream.write_all(b"bye");
            });
        }
    });
    address
}

/// A server whose side of the connections is the test's.
fn accepting() -> (SocketAddr, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            if sender.send(stream).is_err() {
                return;
            }
        }
    });
    (address, accepted)
}

fn connect(cut: &Cut) -> TcpStream {
    let stream = TcpStream::connect(cut.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn say(mut stream: &TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

#[track_caller]
fn hears(mut stream: &TcpStream, text: &str) {
    let mut buffer = vec![0; text.len()];
    stream.read_exact(&mut buffer).unwrap();
    assert_eq!(buffer, text.as_bytes());
}

#[track_caller]
fn hears_nothing(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let read = stream.read(&mut [0; 16]);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let silence = read.unwrap_err().kind();
    assert!(matches!(silence, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
}

/// An orderly end or a torn connection, whichever it was.
#[track_caller]
fn hears_the_end(mut stream: &TcpStream) {
    let read: io::Result<usize> = stream.read(&mut [0; 16]);
    let is_end = match &read {
        Ok(count) => *count == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    };
    assert!(is_end, "{read:?}");
}

#[test]
fn everything_passes_and_ends_are_passed_on() {
    let cut = Cut::before(echo()).unwrap();
    let clients = [(); 3].map(|()| connect(&cut));
    for client in &clients {
        say(client, "hello");
        hears(client, "hello");
    }
    assert_eq!(cut.accepted(), 3);
    // More than any buffer on the way holds.
    let long = "0123456789".repeat(200_000);
    std::thread::scope(|scope| {
        scope.spawn(|| say(&clients[0], &long));
        hears(&clients[0], &long);
    });
    clients[0].shutdown(Shutdown::Write).unwrap();
    hears(&clients[0], "bye");
    hears_the_end(&clients[0]);
}

#[test]
fn a_delay_is_kept_and_order_too() {
    let cut = Cut::before(echo()).unwrap();
    let client = connect(&cut);
    let delay = Duration::from_millis(50);
    cut.set(Flow::Delay(delay));
    let start = Instant::now();
    say(&client, "one");
    hears(&client, "one");
    assert!(start.elapsed() >= 2 * delay);
    cut.set_towards(Towards::Client, Flow::Pass);
    let start = Instant::now();
    say(&client, "two");
    say(&client, "three");
    hears(&client, "twothree");
    assert!(start.elapsed() >= delay);
    // Nobody waits for a delay that was called off.
    cut.set(Flow::Delay(PATIENCE * 10));
    say(&client, "four");
    cut.set(Flow::Pass);
    hears(&client, "four");
}

#[test]
fn what_is_held_arrives_later() {
    let cut = Cut::before(echo()).unwrap();
    let client = connect(&cut);
    say(&client, "a");
    hears(&client, "a");
    cut.set(Flow::Hold);
    say(&client, "b");
    let late = connect(&cut);
    say(&late, "c");
    hears_nothing(&client);
    hears_nothing(&late);
    cut.set(Flow::Pass);
    hears(&client, "b");
    hears(&late, "c");
}

#[test]
fn an_answer_is_held_and_the_request_is_not() {
    let (server, accepted) = accepting();
    let cut = Cut::before(server).unwrap();
    let client = connect(&cut);
    let server = accepted.recv_timeout(PATIENCE).unwrap();
    cut.set_towards(Towards::Client, Flow::Hold);
    say(&client, "commit");
    hears(&server, "commit");
    say(&server, "done");
    hears_nothing(&client);
    // The client never learns of it.
    cut.refuse();
    hears_the_end(&client);
    hears_the_end(&server);
}

#[test]
fn what_is_swallowed_is_lost_for_ever() {
    let (server, accepted) = accepting();
    let cut = Cut::before(server).unwrap();
    let client = connect(&cut);
    let server = accepted.recv_timeout(PATIENCE).unwrap();
    say(&client, "a");
    hears(&server, "a");
    cut.set(Flow::Swallow);
    say(&client, "b");
    say(&server, "c");
    // Much, so that nobody is held up by a full buffer.
    say(&client, &"x".repeat(8 << 20));
    hears_nothing(&client);
    hears_nothing(&server);
    let late = connect(&cut);
    say(&late, "d");
    hears_nothing(&late);

    cut.set(Flow::Pass);
    say(&client, "e");
    hears_nothing(&server);
    hears_nothing(&client);
    hears_nothing(&late);
    // The end is not heard either: the server goes on waiting for a client that is gone.
    drop(client);
    hears_nothing(&server);
    let fresh = connect(&cut);
    let served = accepted.recv_timeout(PATIENCE).unwrap();
    say(&fresh, "f");
    hears(&served, "f");
    cut.refuse();
    hears_the_end(&server);
    hears_the_end(&late);
}

#[test]
fn refused_means_closed_at_once_and_new_ones_too() {
    let (server, accepted) = accepting();
    let cut = Cut::before(server).unwrap();
    let clients = [(); 3].map(|()| connect(&cut));
    let servers = [(); 3].map(|()| accepted.recv_timeout(PATIENCE).unwrap());
    cut.refuse();
    clients.iter().chain(&servers).for_each(hears_the_end);
    hears_the_end(&connect(&cut));
    assert!(accepted.try_recv().is_err());
    // Held ones as well.
    cut.set(Flow::Hold);
    let held = connect(&cut);
    say(&held, "a");
    cut.refuse();
    hears_the_end(&held);
    cut.set(Flow::Pass);
    let client = connect(&cut);
    say(&client, "b");
    // The held one reached the server, perhaps, but nothing that it said.
    let server = std::iter::repeat_with(|| accepted.recv_timeout(PATIENCE).unwrap())
        .find(|mut server| matches!(server.read(&mut [0; 1]), Ok(1)));
    say(&server.unwrap(), "c");
    hears(&client, "c");
}

#[test]
fn half_of_a_connection_ends() {
    let (server, accepted) = accepting();
    let cut = Cut::before(server).unwrap();
    for towards in [Towards::Server, Towards::Client] {
        let client = connect(&cut);
        let server = accepted.recv_timeout(PATIENCE).unwrap();
        say(&client, "a");
        hears(&server, "a");
        say(&server, "b");
        hears(&client, "b");
        cut.half_close(towards);
        let (deaf, heard) = match towards {
            Towards::Server => (&server, &client),
            Towards::Client => (&client, &server),
        };
        hears_the_end(deaf);
        // The other direction goes on.
        say(deaf, "c");
        hears(heard, "c");
        hears_nothing(heard);
    }
}

#[test]
fn without_a_server_a_client_is_closed() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cut = Cut::before(nobody).unwrap();
    hears_the_end(&connect(&cut));
    // Swallowed, it does not notice.
    cut.set(Flow::Swallow);
    let client = connect(&cut);
    say(&client, "a");
    hears_nothing(&client);
}

#[test]
fn everything_ends_with_it() {
    let (server, accepted) = accepting();
    for flow in [Flow::Pass, Flow::Delay(PATIENCE * 10), Flow::Hold] {
        let cut = Cut::before(server).unwrap();
        cut.set(flow);
        let client = connect(&cut);
        let server = accepted.recv_timeout(PATIENCE).unwrap();
        // One that nobody takes anything from.
        let stuck = connect(&cut);
        let _unread = accepted.recv_timeout(PATIENCE).unwrap();
        stuck.set_nonblocking(true).unwrap();
        let mut written = &stuck;
        while written.write(&[0; 65536]).is_ok() {}
        say(&client, "a");
        let address = cut.address();
        drop(cut);
        let mut rest = Vec::new();
        let _ = (&server).read_to_end(&mut rest);
        let _ = (&client).read_to_end(&mut rest);
        assert!(matches!(rest.as_slice(), b"" | b"a"));
        TcpStream::connect(address).unwrap_err();
    }
}
