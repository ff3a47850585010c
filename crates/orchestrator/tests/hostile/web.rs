//! A server over HTTP that does everything wrong, byte by byte. It lives in the process that plays no row, so that nothing
//! of it is counted.

#[path = "../../examples/test_server/behaviour.rs"]
#[allow(dead_code, reason = "processes do more")]
mod behaviour;
mod http;
#[path = "../../examples/test_server/lies.rs"]
mod lies;
#[path = "../../examples/test_server/mischief.rs"]
#[allow(dead_code, reason = "processes do more")]
mod mischief;
#[path = "../../examples/test_server/server.rs"]
#[allow(dead_code, reason = "processes do more")]
mod server;
#[path = "../../examples/test_server/tools.rs"]
mod tools;
mod wrongs;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, answer};
use serde_json::Value;
use server::{Options, Server};
pub(crate) use wrongs::Does;

/// Asked with this path, it tells how many of its answers are being read.
const OPEN: &str = "/open";

pub(crate) struct Web {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    does: Does,
    server: Server,
    /// Where it sends us.
    elsewhere: SocketAddr,
    visits: AtomicUsize,
    /// Wrong answers that somebody reads.
    open: AtomicUsize,
}

impl Web {
    pub(crate) fn start(does: Does, era: &str) -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (listener, elsewhere) = (listen(), listen());
        let options = Options::read(["--era", era].map(str::to_owned).into_iter()).unwrap();
        let shared = Arc::new(Shared {
            does,
            server: Server::new(options, |_| {}),
            elsewhere: elsewhere.local_addr().unwrap(),
            visits: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        let address = listener.local_addr().unwrap();
        let (here, there) = (shared.clone(), shared.clone());
        // They end with this process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = here.clone();
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        std::thread::spawn(move || {
            for _ in elsewhere.incoming() {
                there.visits.fetch_add(1, Ordering::AcqRel);
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn visits_elsewhere(&self) -> usize {
        self.shared.visits.load(Ordering::Acquire)
    }

    /// How many of its wrong answers are being read.
    pub(crate) fn open_answers(url: &str) -> usize {
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {OPEN} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.rsplit("\r\n\r\n").next().unwrap().parse().unwrap()
    }
}

/// One connection, until somebody hangs up.
fn serve(shared: &Shared, mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    while let Some(request) = Request::read(&mut stream) {
        if request.path == OPEN {
            let open = shared.open.load(Ordering::Acquire);
            let _ = answer(
                &mut stream,
                "200 OK",
                &[("connection", "close")],
                open.to_string().as_bytes(),
            );
            return;
        }
        if shared.does.is_about(&request) {
            shared.open.fetch_add(1, Ordering::AcqRel);
            wrongs::answer(shared, &request, &mut stream);
            shared.open.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        if answer_well(shared, &request, &mut stream).is_err() {
            return;
        }
    }
}

fn answer_well(shared: &Shared, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
    if request.verb == "GET" {
        return answer(stream, "405 Method Not Allowed", &[], b"");
    }
    let Some(text) = shared.right_answer(&request.message) else {
        return answer(stream, "202 Accepted", &[], b"");
    };
    let mut headers = vec![("content-type", "application/json")];
    if request.message["method"] == "initialize" {
        headers.push(("mcp-session-id", "session-1"));
    }
    answer(stream, "200 OK", &headers, text.as_bytes())
}

impl Shared {
    /// What a good server says to it; nothing where there is nothing to say.
    fn right_answer(&self, message: &Value) -> Option<String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let server = Arc::new(self.server.heard_at(move |text| {
            let _ = sender.send(text.to_owned());
        }));
        server.hear(&message.to_string());
        drop(server);
        message.get("method").and(message.get("id"))?;
        receiver.recv_timeout(Duration::from_secs(60)).ok()
    }
}
