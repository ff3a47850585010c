//! A collector of spans: it takes what is posted to it, or behaves badly.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::transcripts::PATIENCE;

/// What it does about a request.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    Takes,
    /// It reads, and never answers.
    Hangs,
    /// It sends the first requests away with this status, so many of them.
    Refuses(u16, usize),
}

pub(super) struct Collector {
    pub(super) address: SocketAddr,
    taken: Receiver<Value>,
    /// How many have connected.
    pub(super) connections: Arc<AtomicUsize>,
    /// How many requests have come.
    pub(super) requests: Arc<AtomicUsize>,
    /// Connections that nobody answers, kept open.
    _kept: Arc<Mutex<Vec<TcpStream>>>,
}

/// A span as a test looks at it.
#[derive(Debug, Clone)]
pub(super) struct Span(pub(super) Value);

impl Collector {
    pub(super) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, taken) = channel();
        let (connections, requests) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let kept = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (own_connections, own_requests) = (Arc::clone(&connections), Arc::clone(&requests));
        let own_kept = Arc::clone(&kept);
        // Both end with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                own_connections.fetch_add(1, Ordering::SeqCst);
                own_kept.lock().unwrap().push(stream.try_clone().unwrap());
                let (sender, requests) = (sender.clone(), Arc::clone(&own_requests));
                std::thread::spawn(move || serve(&stream, manner, &requests, &sender));
            }
        });
        Self { address, taken, connections, requests, _kept: kept }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next spans, as many as are waited for.
    pub(super) fn spans(&self, count: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        while spans.len() < count {
            let posted = self.taken.recv_timeout(PATIENCE).expect("a span");
            spans.extend(in_body(&posted));
        }
        assert_eq!(spans.len(), count, "{spans:?}");
        spans
    }

    /// What has come and was not looked at; to be asked once the server is gone.
    pub(super) fn rest(&self) -> Vec<Span> {
        self.taken.try_iter().flat_map(|posted| in_body(&posted)).collect()
    }
}

/// Reads requests as long as they come.
fn serve(stream: &TcpStream, manner: Manner, requests: &AtomicUsize, taken: &Sender<Value>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        assert_eq!(head[0], "POST /v1/traces HTTP/1.1");
        let header = |name: &str| {
            let named = head.iter().filter_map(|line| line.split_once(": "));
            let mut own = named.filter(|(own, _)| own.eq_ignore_ascii_case(name));
            own.next().map(|(_, value)| value.to_owned())
        };
        assert_eq!(header("content-type").as_deref(), Some("application/json"));
        let length: usize = header("content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let (status, answer) = match manner {
            Manner::Hangs => continue,
            Manner::Refuses(status, count) if number < count => (status, "no".to_owned()),
            Manner::Takes | Manner::Refuses(..) => {
                let _ = taken.send(serde_json::from_slice(&body).unwrap());
                (200, json!({"partialSuccess": {}}).to_string())
            }
        };
        let length = answer.len();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{answer}");
        let mut stream = stream;
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

/// The spans of a request, after a look at what goes with them.
fn in_body(body: &Value) -> Vec<Span> {
    let resource = &body["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some("workflowlookup"), "{body}");
    assert_eq!(attribute(resource, "service.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(attribute(resource, "service.instance.id").unwrap().len(), 32);
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    spans.iter().cloned().map(Span).collect()
}

fn attribute<'v>(of: &'v Value, key: &str) -> Option<&'v str> {
    let all = of["attributes"].as_array().unwrap();
    let own = all.iter().find(|attribute| attribute["key"] == key)?;
    own["value"]["stringValue"].as_str()
}

impl Span {
    pub(super) fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_else(|| panic!("{field} in {self:?}"))
    }

    pub(super) fn attribute(&self, key: &str) -> Option<&str> {
        attribute(&self.0, key)
    }

    pub(super) fn is_error(&self) -> bool {
        self.0["status"]["code"] == 2
    }
}
