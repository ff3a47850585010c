//! What the product's own tools never do: panic, wait for long, or be called before there is anything to
//! answer from. The session is the real one, over real pipes; only the tools are made up.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, channel};
use std::thread::JoinHandle;

use mcp::content::{About, Tool};
use mcp::{Ask, Form};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// The client's side of a session that runs on a thread.
struct Client {
    input: Option<File>,
    output: BufReader<File>,
    news: SyncSender<Loading>,
    waker: Waker,
    /// Lets the work of the tool `waits` end, one for each.
    go: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

fn tool(name: &'static str) -> Tool {
    let about = || About {
        title: "Tool",
        description: "For a test",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    Tool { name, is_method: false, about }
}

fn done(text: &str) -> Outcome {
    Outcome::Tool { text: text.into(), structured: "{}".to_owned() }
}

impl Client {
    fn start() -> Self {
        let (their_input, our_input) = rustix::pipe::pipe().unwrap();
        let (our_output, their_output) = rustix::pipe::pipe().unwrap();
        let (wake, waker) = Wake::new().unwrap();
        let (news, inbox) = sync_channel(NEWS_MAX);
        let (go, gone) = channel();
        let gone = Arc::new(Mutex::new(gone));
        let session_waker = waker.clone();
        let thread = std::thread::spawn(move || {
            let ready = Ready::new(their_input.as_fd(), their_output, wake);
            let names = ["answers", "asks", "panics", "waits", "panics_later"];
            let server = Server::new("test", "Test", "1", "", "", names.map(tool).into());
            let carry_out = async |gone: Arc<Mutex<Receiver<()>>>,
                                   call: Call,
                                   caller: Caller,
                                   context: Context| {
                let Call::Tool { name, .. } = call else { return Outcome::Fault };
                match name {
                    "answers" => done("answer"),
                    "asks" if caller.answers.is_some() => {
                        let answers = caller.answers.unwrap_or_default();
                        done(&format!("{} answers", answers.given.len()))
                    }
                    "asks" => {
                        let form =
                            Form { message: "Well?".to_owned(), schema: json!({"type": "object"}) };
                        let questions = vec![("well".to_owned(), form.into())];
                        let patience = Duration::from_millis(300);
                        Outcome::Ask(Box::new(Ask {
                            call,
                            questions,
                            patience,
                            about: None,
                            state: None,
                        }))
                    }
                    "panics" => panic!("the tool is broken"),
                    "panics_later" => context.run(|| panic!("the work is broken")).await,
                    _ => {
                        let work = move || {
                            let _ = gone.lock().recv();
                            done("waited")
                        };
                        context.run(work).await
                    }
                }
            };
            let host = HostSide {
                server: Arc::new(server),
                carry_out: Box::new(move |call, caller, context| {
                    Box::pin(carry_out(Arc::clone(&gone), call, caller, context))
                }),
                load: Some(Box::new(|| Ok(()))),
                look: Box::new(|_| Looked::default()),
            };
            Session::new(ready, inbox, host, &session_waker, None).run()
        });
        let mut client = Self {
            input: Some(our_input.into()),
            output: BufReader::new(our_output.into()),
            news,
            waker,
            go,
            thread,
        };
        let capabilities = json!({"elicitation": {}});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(client.receive().unwrap()["id"], 0, "before anything is loaded");
        client
    }

    /// A session that has everything that it answers from.
    fn loaded() -> Self {
        let mut client = Self::start();
        client.load();
        client.call(0, "answers");
        client.answers(1);
        client
    }

    fn load(&self) {
        self.news.send(Loading::Loaded).unwrap();
        self.waker.wake();
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, id: usize, name: &str) {
        let params = json!({"name": name});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn ping(&mut self, id: usize) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    }

    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.output.read_line(&mut line).unwrap();
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next answers: the ids, each with its text or its error's code.
    fn answers(&mut self, count: usize) -> Vec<(i64, Value)> {
        let answer = |message: Value| {
            let text = message["result"]["content"][0]["text"].clone();
            let outcome = if text.is_null() { message["error"]["code"].clone() } else { text };
            (message["id"].as_i64().unwrap(), outcome)
        };
        (0..count).map(|_| answer(self.receive().unwrap())).collect()
    }

    /// Closes the input; what still comes back, until the session has ended well.
    fn end(mut self) -> usize {
        self.input = None;
        let mut count = 0;
        while self.receive().is_some() {
            count += 1;
        }
        self.thread.join().unwrap().unwrap();
        count
    }
}

#[test]
fn a_panic_ends_one_call_and_nothing_else() {
    let mut client = Client::loaded();
    for (id, name) in ["panics", "answers", "panics_later", "answers"].into_iter().enumerate() {
        client.call(id, name);
    }
    let (fault, answer) = (json!(-32603), json!("answer"));
    let mut answers = client.answers(4);
    answers.sort_by_key(|(id, _)| *id);
    assert_eq!(answers, [(0, fault.clone()), (1, answer.clone()), (2, fault), (3, answer)]);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_call_that_waits_holds_nobody_back() {
    let mut client = Client::loaded();
    client.call(1, "waits");
    client.call(2, "answers");
    client.ping(3);
    assert_eq!(client.answers(2), [(2, json!("answer")), (3, Value::Null)]);
    client.go.send(()).unwrap();
    assert_eq!(client.answers(1), [(1, json!("waited"))]);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_call_that_waits_can_be_taken_back() {
    let mut client = Client::loaded();
    client.call(1, "waits");
    let params = json!({"requestId": 1});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    client.ping(2);
    assert_eq!(client.answers(1), [(2, Value::Null)]);
    client.go.send(()).unwrap();
    assert_eq!(client.end(), 0, "nobody waits for it");
}

#[test]
fn too_many_calls_that_wait_are_refused() {
    let mut client = Client::loaded();
    // Four are carried out, sixteen wait for their turn.
    for id in 1..=21 {
        client.call(id, "waits");
    }
    assert_eq!(client.answers(1), [(21, json!(-32000))]);
    for _ in 0..20 {
        client.go.send(()).unwrap();
    }
    let mut answers = client.answers(20);
    answers.sort_by_key(|(id, _)| *id);
    let expected: Vec<(i64, Value)> = (1..=20).map(|id| (id, json!("waited"))).collect();
    assert_eq!(answers, expected);
    assert_eq!(client.end(), 0);
}

#[test]
fn the_end_of_the_input_lets_work_end_but_does_not_wait_for_ever() {
    let mut client = Client::loaded();
    client.call(1, "waits");
    client.ping(2);
    assert_eq!(client.answers(1), [(2, Value::Null)]);
    client.go.send(()).unwrap();
    assert_eq!(client.end(), 1);
    // This one nobody lets go.
    let mut client = Client::loaded();
    client.call(1, "waits");
    assert_eq!(client.end(), 0);
}

#[test]
fn shutdown_answers_first_what_came_before_it() {
    let mut client = Client::loaded();
    client.call(1, "waits");
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
    client.ping(3);
    client.go.send(()).unwrap();
    assert_eq!(client.answers(2), [(1, json!("waited")), (2, Value::Null)]);
    assert_eq!(client.end(), 0, "nothing after it is looked at");
    // A call that does not end is not waited for.
    let mut client = Client::loaded();
    client.call(1, "waits");
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
    assert_eq!(client.answers(1), [(2, Value::Null)]);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_user_is_asked_and_not_waited_for_for_ever() {
    let mut client = Client::loaded();
    client.call(1, "asks");
    let asked = client.receive().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let result = json!({"action": "accept", "content": {}});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert_eq!(client.answers(1), [(1, json!("1 answers"))]);
    // This time nobody answers.
    client.call(2, "asks");
    let asked = client.receive().unwrap();
    client.ping(3);
    assert_eq!(client.answers(1), [(3, Value::Null)]);
    let taken_back = client.receive().unwrap();
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(client.answers(1), [(2, json!("0 answers"))]);
    assert_eq!(client.end(), 0);
}

#[test]
fn calls_wait_for_the_catalogue_in_order() {
    let mut client = Client::start();
    client.call(1, "answers");
    // Taken back at once: nothing is left to wait for.
    let params = json!({"requestId": 1});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    client.ping(2);
    assert_eq!(client.answers(1), [(2, Value::Null)]);
    client.call(3, "answers");
    client.ping(4);
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "shutdown"}));
    client.ping(6);
    client.input = None;
    client.load();
    let answers = client.answers(3);
    assert_eq!(answers, [(3, json!("answer")), (4, Value::Null), (5, Value::Null)]);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_catalogue_that_cannot_be_loaded_ends_the_session() {
    let mut client = Client::start();
    client.call(1, "answers");
    client.news.send(Loading::NotWatching(io::Error::other("no"))).unwrap();
    client.waker.wake();
    assert!(client.thread.join().unwrap().is_err());
}
