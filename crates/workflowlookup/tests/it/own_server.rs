//! Our own server as one that we call: over stdio and over HTTP, in both ways of speaking. A person is asked through both
//! halves of the product.

#![cfg(target_os = "linux")]

mod old;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orchestrator::pool::{Event, Kind};
use orchestrator::upstream::info::Era;
use orchestrator::{Answer, Asker, Call, CallResult, Error, Form, Options, Orchestrator, Wanted};
use process_guard::GuardProgram;
use registry::{Places, Watched};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use super::Place;
use super::agent::LETTER;
use super::http_server::Listening;

const PROGRAM: &str = env!("CARGO_BIN_EXE_workflowlookup");
/// Only stops what would hang.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio() {
    let place = place();
    let entry = json!({"transport": "stdio", "command": PROGRAM, "args": ["serve"]});
    walk(&place, in_place(&place, entry), Era::Modern).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio_in_the_old_way() {
    let place = place();
    // It never hears the question whether it knows the new one.
    let script = format!("grep --line-buffered -v server/discover | '{PROGRAM}' serve");
    let entry = json!({"transport": "stdio", "command": "sh", "args": ["-c", script]});
    walk(&place, in_place(&place, entry), Era::Legacy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    let place = place();
    let server = Listening::start(&place);
    walk(&place, json!({"transport": "http", "url": server.url()}), Era::Modern).await;
    server.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_in_the_old_way() {
    let place = place();
    let server = Listening::start(&place);
    let url = format!("http://{}/mcp", old::before(server.address));
    walk(&place, json!({"transport": "http", "url": url}), Era::Legacy).await;
    server.end();
}

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

fn in_place(place: &Place, mut entry: Value) -> Value {
    entry["cwd"] = json!(place.project());
    entry["env"] = json!({"HOME": place.home()});
    entry
}

/// From the handshake to the end of a session.
async fn walk(place: &Place, mcp: Value, era: Era) {
    let ours = Ours::new(place.root.path(), mcp);
    let info = ours.orchestrator.info("ours").await.unwrap();
    assert_eq!((info.name.as_str(), info.era), ("workflowlookup", era));
    let tools = ours.orchestrator.tools("ours").await.unwrap();
    assert!(tools.get("workflow_advance").is_some() && tools.notes.is_empty(), "{:?}", tools.notes);
    let error = ours.call("workflow_next", json!({"workflowId": 5})).await.unwrap_err();
    assert!(matches!(error, Error::Arguments { .. }), "{error}");
    let result = ours.call("workflow_get", json!({"id": "nowhere"})).await.unwrap();
    assert!(result.is_error && result.warnings.is_empty(), "{result:?}");
    ours.look_at_resources().await;
    ours.finish_a_session(place).await;
    ours.orchestrator.ping("ours").await.unwrap();
    ours.orchestrator.close().await;
    assert_eq!(ours.orchestrator.ping("ours").await, Err(Error::Closed));
}

struct Ours {
    orchestrator: Orchestrator,
    person: Arc<Person>,
}

impl Ours {
    fn new(folder: &Path, mcp: Value) -> Self {
        let path = folder.join("mcp.registry.json");
        let entry = json!({"id": "ours", "mcp": mcp, "sensitivity": "low", "timeoutMs": 60_000, "maxCallsPerMinute": 1_000});
        std::fs::write(&path, json!({"servers": [entry]}).to_string()).unwrap();
        let places = Places { named: Some(path), ..Places::default() };
        let watched = Arc::new(Watched::looking_every(places, PATIENCE));
        let options = Options { guard: GuardProgram(PROGRAM.into()), ..Options::default() };
        Self { orchestrator: Orchestrator::new(watched, options), person: Arc::default() }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<CallResult, Error> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let mut call = Call::new("ours", tool, arguments);
        call.asker = Some(self.person.clone());
        self.orchestrator.call(call).await
    }

    /// What a call answers for programs, which is what its tool says.
    async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.unwrap();
        assert!(!result.is_error && result.warnings.is_empty(), "{result:?}");
        result.raw["structuredContent"].clone()
    }

    async fn look_at_resources(&self) {
        let resources = self.orchestrator.resources("ours").await.unwrap();
        let is_letter = |item: &Value| item["uri"] == "workflow://letter";
        assert!(resources.items.iter().any(|item| is_letter(&item.value().unwrap())));
        assert_eq!(self.orchestrator.templates("ours").await.unwrap().items.len(), 3);
        assert!(!self.orchestrator.prompts("ours").await.unwrap().items.is_empty());
        let read = self.orchestrator.read("ours", "workflow://letter").await.unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Dear"));
        let error = self.orchestrator.read("ours", "workflow://nowhere").await.unwrap_err();
        assert!(
            matches!(&error, Error::Upstream { data: Some(data), .. } if data["uri"] == "workflow://nowhere"),
            "{error}"
        );
    }

    async fn finish_a_session(&self, place: &Place) {
        let mut events = self.orchestrator.events();
        let arguments = json!({"workflowId": "letter", "context": {"whom": "Ada"}});
        let begun = self.answer("workflow_start", arguments).await;
        let session = begun["sessionId"].as_str().unwrap();
        let uri = format!("session://{session}");
        self.orchestrator.subscribe("ours", &uri).await.unwrap();
        let advance = |revision: u64, step: &str, output: &str| json!({"sessionId": session, "revision": revision, "stepId": step, "output": output});
        let refused = self.answer("workflow_advance", advance(0, "write-it", "Hi")).await;
        assert_eq!(refused["accepted"], false);
        let written = self.answer("workflow_advance", advance(1, "write-it", "Dear Ada")).await;
        assert_eq!(written["step"]["id"], "send-it");
        heard(
            &mut events,
            |event| matches!(event, Event::Updated { uri: told, .. } if *told == uri),
        )
        .await;
        // Here a person is asked.
        let sent = self.answer("workflow_advance", advance(2, "send-it", "by post")).await;
        assert_eq!((&sent["accepted"], &sent["step"]["id"]), (&json!(true), &json!("file-it")));
        let asked = std::mem::take(&mut *self.person.0.lock().unwrap());
        assert!(
            matches!(asked.as_slice(), [Form { wanted: Wanted::Values { .. }, .. }]),
            "{asked:?}"
        );
        let filed = self.answer("workflow_advance", advance(3, "file-it", "in a box")).await;
        assert_eq!(filed["isComplete"], true);
        self.orchestrator.unsubscribe("ours", &uri).await.unwrap();
        // A file more is a resource more.
        place.write("workflows/card.json", LETTER.replace("\"letter\"", "\"card\""));
        heard(&mut events, |event| matches!(event, Event::Changed { list: Kind::Resources, .. }))
            .await;
        let begun = std::time::Instant::now();
        while self.orchestrator.read("ours", "workflow://card").await.is_err() {
            assert!(begun.elapsed() < PATIENCE, "the new file is not seen");
        }
    }
}

async fn heard(events: &mut broadcast::Receiver<Event>, wanted: impl Fn(&Event) -> bool) {
    let wait = async { while !wanted(&events.recv().await.unwrap()) {} };
    tokio::time::timeout(PATIENCE, wait).await.expect("an event comes");
}

/// Approves of everything, and remembers what it was.
#[derive(Default)]
struct Person(Mutex<Vec<Form>>);

impl Asker for Person {
    fn ask(&self, form: Form) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.0.lock().unwrap().push(form);
        let values = Map::from_iter([("decision".to_owned(), json!("approve"))]);
        Box::pin(async { Answer::Accepted(values) })
    }
}
