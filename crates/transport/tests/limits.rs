//! Bounds, with times and counts that a test can wait for. What the real ones do to the real server is in the product's
//! table of attacks.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::future::ready;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use mcp::{Call, Caller, Changed, Outcome, Server};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use transport::limits::{INLINE_TIME_MAX, SILENCE};
use transport::{Context, Denied, Feed, Host, Limits, Options, OutcomeFuture, Principal, Service};

/// Much longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(300);
const MIB: usize = 1024 * 1024;

/// A host that can do nothing: most bounds are in front of it. What a user has decided takes it long.
struct Nothing(Arc<Server>);

impl Host for Nothing {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.0)
    }

    fn call(&self, call: Call, _caller: Caller, context: Context) -> OutcomeFuture {
        match call {
            Call::Settle { .. } => context.run(|| {
                std::thread::sleep(SILENCE + SOON);
                Outcome::Fault
            }),
            _ => Box::pin(ready(Outcome::Fault)),
        }
    }
}

struct Serving {
    runtime: Runtime,
    address: SocketAddr,
    feed: Feed,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

fn server() -> Arc<Server> {
    Arc::new(Server::new("test", "Test", "1.0.0", "For tests", "Nothing", Vec::new()))
}

impl Serving {
    fn start(limits: Limits) -> Self {
        Self::start_with(Nothing(server()), limits)
    }

    fn start_with(host: impl Host, limits: Limits) -> Self {
        let feed = Feed::default();
        let options = Options { limits, ..Options::default() };
        let service = Service::new(host, options, feed.clone()).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(transport::serve(service, listener, async {
            let _ = stopped.await;
        }));
        Self { runtime, address, feed, stop: Some(stop), served }
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, host: self.address }
    }

    /// What is counted under this name.
    fn counted(&self, name: &str) -> u64 {
        let mut client = self.connect();
        client.send("GET /metrics HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n");
        let mut text = String::new();
        client.stream.read_to_string(&mut text).unwrap();
        let name = format!("workflowlookup_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    fn wait_for(&self, name: &str, wanted: u64) {
        let start = Instant::now();
        while self.counted(name) != wanted {
            assert!(start.elapsed() < PATIENCE, "{name} is {}", self.counted(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

struct Client {
    stream: TcpStream,
    host: SocketAddr,
}

impl Client {
    fn send(&mut self, text: &str) {
        self.stream.write_all(text.replace("{host}", &self.host.to_string()).as_bytes()).unwrap();
    }

    /// A message, as clients of the modern era send it.
    fn post(&mut self, method: &str, params: &serde_json::Value) {
        self.post_as("nobody", method, params);
    }

    fn post_as(&mut self, principal: &str, method: &str, params: &serde_json::Value) {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let headers = format!(
            "Authorization: {principal}\r\nMcp-Method: {method}\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nContent-Length: {}\r\n",
            body.len()
        );
        self.send(&head(&headers));
        self.send(&body);
    }

    fn listen(&mut self, uri: &str) {
        let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
        self.post("subscriptions/listen", &filter);
    }

    /// The beginning of an answer, with all of its headers.
    fn head(&mut self) -> io::Result<String> {
        self.head_as_it_is().map(|head| head.to_ascii_lowercase())
    }

    fn head_as_it_is(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte)?;
            head.extend(byte);
        }
        Ok(String::from_utf8(head).unwrap())
    }

    /// Whether a text comes before the end of the connection.
    fn reads(&mut self, text: &str) -> bool {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.stream.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
            if String::from_utf8_lossy(&all).contains(text) {
                return true;
            }
        }
        false
    }

    fn status(&mut self) -> u16 {
        self.head().unwrap()[9..12].parse().unwrap()
    }
}

fn head(headers: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\n{headers}\r\n"
    )
}

#[test]
fn slow_bodies_and_slow_headers_are_not_waited_for() {
    let limits = Limits { body_time: SOON, headers_time: SOON, ..Limits::default() };
    let serving = Serving::start(limits);
    let mut body = serving.connect();
    body.send(&head("Content-Length: 10\r\n"));
    body.send("{");
    let mut headers = serving.connect();
    headers.send("POST /mcp HTTP/1.1\r\nHost");
    let mut silent = serving.connect();
    assert_eq!(body.status(), 408);
    for client in [&mut headers, &mut silent] {
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "it is let go without a word");
    }
}

/// It follows something, and never reads what it is told.
#[test]
fn who_does_not_read_is_given_up() {
    let serving = Serving::start(Limits { write_time: SOON, ..Limits::default() });
    let uri = format!("a://{}", "x".repeat(2000));
    let mut client = serving.connect();
    client.listen(&uri);
    assert_eq!(client.status(), 200);
    assert_eq!(serving.counted("streams"), 1);
    assert_eq!(serving.counted("requests_under_way"), 0, "who only listens is no request");
    let start = Instant::now();
    while serving.counted("streams") > 0 {
        // More than the system keeps for a connection, after a while.
        for _ in 0..200 {
            serving.feed.tell(Changed { uris: vec![uri.clone()], ..Changed::default() });
        }
        assert!(start.elapsed() < PATIENCE, "it keeps its place");
    }
    let mut other = serving.connect();
    other.post("server/discover", &json!({}));
    assert_eq!(other.status(), 200);
}

/// And what did not become a stream leaves nothing behind.
#[test]
fn streams_are_bounded() {
    let limits = Limits { streams_per_principal: 2, ..Limits::default() };
    let serving = Serving::start(limits);
    let open: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = serving.connect();
            client.listen("a://b");
            assert_eq!(client.status(), 200);
            client
        })
        .collect();
    for _ in 0..3 {
        let mut late = serving.connect();
        late.listen("a://b");
        let head = late.head().unwrap();
        let is_busy = head.starts_with("http/1.1 429") && head.contains("\r\nretry-after: 1\r\n");
        assert!(is_busy, "{head}");
    }
    serving.wait_for("requests_under_way", 0);
    drop(open);
    serving.wait_for("streams", 0);
    let mut again = serving.connect();
    again.listen("a://b");
    assert_eq!(again.status(), 200);
}

#[test]
fn requests_are_bounded() {
    let serving = Serving::start(Limits { requests: 1, ..Limits::default() });
    let mut first = serving.connect();
    first.send(&head("Content-Length: 2\r\n"));
    serving.wait_for("requests_under_way", 1);
    let mut second = serving.connect();
    second.post("server/discover", &json!({}));
    assert_eq!(second.status(), 429);
    first.send("{}");
    assert_eq!(first.status(), 400);
    serving.wait_for("requests_under_way", 0);
}

/// Who only says that much will come takes no room away from those who send it.
#[test]
fn what_is_announced_costs_nothing() {
    let serving = Serving::start(Limits::default());
    let announced: Vec<Client> = (0..40)
        .map(|number| {
            let mut client = serving.connect();
            match number % 2 {
                0 => client.send(&head(&format!("Content-Length: {}\r\n", 16 * MIB))),
                _ => client.send(&head("Transfer-Encoding: chunked\r\n")),
            }
            client
        })
        .collect();
    serving.wait_for("requests_under_way", 40);
    let mut client = serving.connect();
    client.send(&head(&format!("Content-Length: {}\r\n", 10 * MIB)));
    client.send(&" ".repeat(10 * MIB));
    assert_eq!(client.status(), 400, "read to its end, and no message");
    drop(announced);
}

/// Large bodies that never arrive whole take room until their time is over.
#[test]
fn stalled_bodies_of_one_principal_leave_room_for_another() {
    const KIB: usize = 1024;
    let log = Arc::new(Log::default());
    let host = Blocking { server: server(), log };
    let serving =
        Serving::start_with(host, Limits { large_bodies_bytes: 4 * MIB, ..Limits::default() });
    let send = |principal: &str, announced: usize, sent: usize| {
        let mut client = serving.connect();
        let headers = format!("Authorization: {principal}\r\nContent-Length: {announced}\r\n");
        client.send(&head(&headers));
        // It may be refused before its end.
        let _ = client.stream.write_all(&vec![b' '; sent]);
        client
    };
    let (start, mut stalled) = (Instant::now(), Vec::new());
    while send("ann", 100 * KIB, 100 * KIB).status() != 429 {
        assert!(start.elapsed() < PATIENCE, "her bodies have as much room as they like");
        stalled.push(send("ann", MIB, 256 * KIB));
    }
    let status = send("bob", 100 * KIB, 100 * KIB).status();
    assert_eq!(status, 400, "read to its end, and no message");
    drop(stalled);
}

/// An answer to a question of ours has none itself, and so is no stream however long it takes to act upon it.
#[test]
fn what_needs_no_answer_is_taken() {
    let serving = Serving::start(Limits::default());
    let mut client = serving.connect();
    let body = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": body});
    let body = body.to_string();
    client.send(&head(&format!("Content-Length: {}\r\n", body.len())));
    client.send(&body);
    let answer = client.head_as_it_is().unwrap();
    let (_, session) = answer.split_once("mcp-session-id: ").unwrap();
    let session = session.split_once('\r').unwrap().0;
    let body = json!({"jsonrpc": "2.0", "id": "ask-0-1/gate/x", "result": {"action": "cancel"}});
    let body = body.to_string();
    let mut client = serving.connect();
    client.send(&head(&format!("Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n", body.len())));
    client.send(&body);
    assert_eq!(client.status(), 202);
}

/// A proxy keeps connections open, and may just be sending something when we are told to end.
#[test]
fn a_request_on_its_way_is_served_at_the_end() {
    let limits = Limits { drain_grace: PATIENCE, drain_time: PATIENCE, ..Limits::default() };
    let mut serving = Serving::start(limits);
    let mut client = serving.connect();
    client.post("server/discover", &json!({}));
    let first = client.head().unwrap();
    assert!(!first.contains("\r\nconnection: close"), "{first}");
    serving.stop();
    let start = Instant::now();
    while TcpStream::connect(serving.address).is_ok() {
        assert!(start.elapsed() < PATIENCE, "it still accepts connections");
    }
    // The body of the first answer comes before the second.
    let length = first.split_once("content-length: ").unwrap().1.split_once('\r').unwrap().0;
    client.stream.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
    client.post("server/discover", &json!({}));
    let last = client.head().unwrap();
    assert!(last.starts_with("http/1.1 200") && last.contains("\r\nconnection: close"), "{last}");
    let mut rest = Vec::new();
    client.stream.read_to_end(&mut rest).unwrap();
    serving.runtime.block_on(serving.served).unwrap();
    assert!(start.elapsed() < PATIENCE, "nobody is waited for");
}

#[test]
fn connection_without_authentication_is_closed_after_its_time() {
    let limits = Limits { unauthenticated_time: SOON, ..Limits::default() };
    let serving = Serving::start(limits);
    let mut admitted = serving.connect();
    admitted.post("server/discover", &json!({}));
    assert_eq!(admitted.status(), 200);
    let mut prober = serving.connect();
    prober.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", serving.address);
    let start = Instant::now();
    // Requests do not extend its time.
    while prober.stream.write_all(request.as_bytes()).is_ok()
        && prober.stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0)
    {
        assert!(start.elapsed() < PATIENCE, "it is never closed");
    }
    serving.wait_for("connections_evicted_total{kind=\"unauthenticated\"}", 1);
    let mut body = [0; 4096];
    assert!(admitted.stream.read(&mut body).unwrap() > 0, "the body of the first answer");
    admitted.post("server/discover", &json!({}));
    assert_eq!(admitted.status(), 200, "a connection that authenticated is kept");
}

#[test]
fn idle_connection_is_evicted_before_older_event_stream() {
    let serving = Serving::start(Limits { connections: 4, ..Limits::default() });
    let mut stream = serving.connect();
    stream.listen("a://b");
    assert_eq!(stream.status(), 200);
    let [mut idle, mut other] = [(); 2].map(|()| {
        let mut client = serving.connect();
        client.post("server/discover", &json!({}));
        assert_eq!(client.status(), 200);
        client
    });
    let mut last = serving.connect();
    idle.stream.read_to_end(&mut Vec::new()).unwrap();
    last.post("server/discover", &json!({}));
    assert_eq!(last.status(), 200);
    other.post("server/discover", &json!({}));
    assert!(other.reads("HTTP/1.1 200"), "it was not evicted");
    serving.feed.tell(Changed { uris: vec!["a://b".to_owned()], ..Changed::default() });
    assert!(stream.reads("resources/updated"), "the stream goes on");
}

/// A host that knows principals by their names, and blocks a thread for each call of ann's until it is released.
struct Blocking {
    server: Arc<Server>,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    ann_running: AtomicUsize,
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Log {
    fn release(&self) {
        *self.is_released.lock().unwrap() = true;
        self.released.notify_all();
    }
}

/// Releases all calls when a test ends: one that fails would wait for them for ever.
struct ReleaseOnDrop(Arc<Log>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Host for Blocking {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    fn call(&self, _call: Call, caller: Caller, context: Context) -> OutcomeFuture {
        let log = Arc::clone(&self.log);
        let is_ann = caller.principal.as_deref() == Some("ann");
        context.run(move || {
            if is_ann {
                log.ann_running.fetch_add(1, Ordering::SeqCst);
                let is_released = log.is_released.lock().unwrap();
                drop(log.released.wait_while(is_released, |is_released| !*is_released).unwrap());
            }
            Outcome::BadParams("done".to_owned())
        })
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Principal>, Denied> {
        let name = headers.get("authorization").and_then(|value| value.to_str().ok());
        Ok(name.map(|name| Principal { name: name.into(), scope: "use".into(), until: None }))
    }
}

#[test]
fn blocking_calls_of_one_principal_do_not_delay_another() {
    const THREADS: usize = 4;
    let log = Arc::new(Log::default());
    let host = Blocking { server: server(), log: Arc::clone(&log) };
    let serving = Serving::start_with(host, Limits { threads: THREADS, ..Limits::default() });
    let _release = ReleaseOnDrop(Arc::clone(&log));
    let ann: Vec<Client> = (0..3 * THREADS)
        .map(|_| {
            let mut client = serving.connect();
            client.post_as("ann", "resources/list", &json!({}));
            client
        })
        .collect();
    serving.wait_for("requests_under_way", 3 * THREADS as u64);
    let start = Instant::now();
    while log.ann_running.load(Ordering::SeqCst) < THREADS - 1 {
        assert!(start.elapsed() < PATIENCE, "her calls do not run");
    }
    let mut bob = serving.connect();
    bob.post_as("bob", "resources/list", &json!({}));
    assert!(bob.reads("done"));
    assert_eq!(log.ann_running.load(Ordering::SeqCst), THREADS - 1, "the rest of hers wait");
    log.release();
    drop(ann);
}

/// A host whose calls take CPU time on the thread that reads requests, and then block that for ann until she is released.
struct Inline {
    server: Arc<Server>,
    log: Arc<Log>,
    is_async: bool,
}

impl Host for Inline {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    fn call(&self, _call: Call, caller: Caller, _context: Context) -> OutcomeFuture {
        let log = Arc::clone(&self.log);
        let is_ann = caller.principal.as_deref() == Some("ann");
        let work = move || {
            if is_ann && log.ann_running.fetch_add(1, Ordering::SeqCst) == 0 {
                spin(INLINE_TIME_SPENT);
            } else if is_ann {
                let is_released = log.is_released.lock().unwrap();
                drop(log.released.wait_while(is_released, |is_released| !*is_released).unwrap());
            }
            Outcome::BadParams("done".to_owned())
        };
        match self.is_async {
            true => Box::pin(async move { work() }),
            false => Box::pin(ready(work())),
        }
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Principal>, Denied> {
        let name = headers.get("authorization").and_then(|value| value.to_str().ok());
        Ok(name.map(|name| Principal { name: name.into(), scope: "use".into(), until: None }))
    }
}

/// CPU time that takes seconds to drain, so that a busy machine has time for the calls that follow.
const INLINE_TIME_SPENT: Duration = Duration::from_millis(200);

/// Works until the thread has used so much CPU time, which is what is counted.
fn spin(time: Duration) {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let start = used();
    while used() - start < time {
        std::hint::spin_loop();
    }
}

/// More calls than there are threads that read requests would block all of them.
#[test]
fn costly_calls_of_one_principal_leave_the_reading_threads() {
    for is_async in [false, true] {
        let readers = std::thread::available_parallelism().unwrap().get();
        let log = Arc::new(Log::default());
        let host = Inline { server: server(), log: Arc::clone(&log), is_async };
        let limits = Limits { threads: 2 * readers + 2, ..Limits::default() };
        let serving = Serving::start_with(host, limits);
        let _release = ReleaseOnDrop(Arc::clone(&log));
        let mut first = serving.connect();
        first.post_as("ann", "resources/list", &json!({}));
        assert!(first.reads("done"));
        let ann: Vec<Client> = (0..=readers)
            .map(|_| {
                let mut client = serving.connect();
                client.post_as("ann", "resources/list", &json!({}));
                client
            })
            .collect();
        let start = Instant::now();
        while log.ann_running.load(Ordering::SeqCst) < readers + 2 {
            assert!(start.elapsed() < PATIENCE, "her calls do not run");
        }
        let mut bob = serving.connect();
        bob.post_as("bob", "resources/list", &json!({}));
        assert!(bob.reads("done"), "told: {is_async}");
        log.release();
        for mut client in ann {
            assert!(client.reads("done"), "told: {is_async}");
        }
    }
}

#[test]
fn cpu_time_of_calls_that_end_elsewhere_is_charged() {
    let limits = Limits { cpu_time_per_principal: INLINE_TIME_MAX / 10, ..Limits::default() };
    let host = Inline { server: server(), log: Arc::default(), is_async: true };
    let serving = Serving::start_with(host, limits);
    let mut ann = serving.connect();
    ann.post_as("ann", "resources/list", &json!({}));
    assert!(ann.reads("done"));
    let mut again = serving.connect();
    again.post_as("ann", "resources/list", &json!({}));
    assert_eq!(again.status(), 429);
}

#[test]
fn principal_over_its_budget_is_told_when_to_come_again() {
    let limits = Limits { bytes_per_principal: 1_000, ..Limits::default() };
    let log = Arc::new(Log::default());
    let serving = Serving::start_with(Blocking { server: server(), log }, limits);
    let mut ann = serving.connect();
    let large = json!({"filler": "x".repeat(2_000)});
    ann.post_as("ann", "server/discover", &large);
    assert_eq!(ann.status(), 200);
    let mut again = serving.connect();
    again.post_as("ann", "server/discover", &json!({}));
    let head = again.head().unwrap();
    assert!(head.starts_with("http/1.1 429") && head.contains("\r\nretry-after: "), "{head}");
    assert!(again.reads("\"retryAfterMs\":"));
    let mut bob = serving.connect();
    bob.post_as("bob", "server/discover", &json!({}));
    assert_eq!(bob.status(), 200, "others have budgets of their own");
}
