//! What a test stands on: a registry in a folder of its own, and an orchestrator that follows it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use orchestrator::pool::Event;
use orchestrator::{Answer, Asker, Call, CallResult, Error, Form, Options, Orchestrator};
use process_guard::GuardProgram;
use registry::{Places, Variables, Watched};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::broadcast;

/// Longer than anything that a test waits for. Nothing is measured with it: it ends tests that hang.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) watched: Arc<Watched>,
    pub(crate) orchestrator: Orchestrator,
}

impl World {
    /// Servers by their ids.
    pub(crate) fn new(servers: &[(&str, Value)]) -> Self {
        Self::with(servers, |_| {})
    }

    pub(crate) fn with(servers: &[(&str, Value)], change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempDir::new().unwrap();
        write(folder.path(), servers);
        let places = Places {
            named: Some(folder.path().join("mcp.registry.json")),
            variables: Variables::given([("SECRET_TOKEN", "s3cr3t-t0ken")]),
            ..Places::default()
        };
        let watched = Arc::new(Watched::looking_every(places, Duration::ZERO));
        let found = watched.current();
        assert!(found.findings.is_empty(), "{:#?}", found.findings);
        let mut options = Options { guard: GuardProgram(test_server()), ..Options::default() };
        change(&mut options);
        let orchestrator = Orchestrator::new(watched.clone(), options);
        Self { folder, watched, orchestrator }
    }

    /// Writes the registry anew.
    pub(crate) fn rewrite(&self, servers: &[(&str, Value)]) {
        write(self.folder.path(), servers);
        self.watched.look();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<CallResult, Error> {
        self.call_with(tool, arguments, |_| {}).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        change: impl FnOnce(&mut Call),
    ) -> Result<CallResult, Error> {
        let mut call = call("test", tool, arguments);
        change(&mut call);
        self.orchestrator.call(call).await
    }

    /// The text that a tool says.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap();
        result.raw["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn call(server: &str, tool: &str, arguments: Value) -> Call {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Call::new(server, tool, arguments)
}

fn write(folder: &Path, servers: &[(&str, Value)]) {
    let servers: Vec<Value> = servers
        .iter()
        .map(|(id, entry)| {
            let mut entry = entry.clone();
            entry["id"] = json!(id);
            entry
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({"servers": servers})).unwrap();
    std::fs::write(folder.join("mcp.registry.json"), text).unwrap();
}

/// The example, which cargo builds along with the tests.
pub(crate) fn test_server() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let path = this.parent().and_then(Path::parent).unwrap().join("examples/test_server");
    assert!(path.exists(), "`cargo test` builds {}", path.display());
    path
}

/// An entry for the example. It is not sensitive and has time, so that only what a test is about can go wrong.
pub(crate) fn stdio(arguments: &[&str]) -> Value {
    json!({
        "mcp": {"transport": "stdio", "command": test_server(), "args": arguments},
        "sensitivity": "low",
        "timeoutMs": 30_000,
        "maxCallsPerMinute": 100_000,
    })
}

/// The same with other fields.
pub(crate) fn and(mut entry: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry
}

/// What the server heard, line by line; the first of each process says that it began.
pub(crate) fn log(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The methods that the server heard.
pub(crate) fn methods(path: &Path) -> Vec<String> {
    let log = log(path);
    log.iter().filter_map(|line| line["method"].as_str().map(str::to_owned)).collect()
}

pub(crate) fn processes(path: &Path) -> Vec<i64> {
    log(path).iter().filter_map(|line| line["began"].as_i64()).collect()
}

/// Whether a process is there that is no corpse.
pub(crate) fn is_alive(process: i64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// Waits until something is the case.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < FOR_EVER, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for an event.
pub(crate) async fn event(
    events: &mut broadcast::Receiver<Event>,
    mut wanted: impl FnMut(&Event) -> bool,
) -> Event {
    let wait = async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(FOR_EVER, wait).await.expect("an event comes")
}

/// Somebody who answers always the same, and remembers what was asked.
pub(crate) struct Says {
    pub(crate) answer: Answer,
    pub(crate) asked: Mutex<Vec<Form>>,
}

impl Says {
    pub(crate) fn new(answer: Answer) -> Arc<Self> {
        Arc::new(Self { answer, asked: Mutex::default() })
    }

    pub(crate) fn yes() -> Arc<Self> {
        Self::new(Answer::Accepted(Map::new()))
    }

    pub(crate) fn forms(&self) -> Vec<Form> {
        self.asked.lock().unwrap().clone()
    }
}

impl Asker for Says {
    fn ask(&self, form: Form) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.asked.lock().unwrap().push(form);
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}
