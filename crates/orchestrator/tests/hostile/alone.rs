//! Plays rows, each in a process of its own, which is this program again.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use orchestrator::Call;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::left::Has;
use crate::processes::Mark;
use crate::row::{Asked, MEMORY_KEPT_MAX, MEMORY_PEAK_MAX, PATIENT, Row, Server, TOTAL};
use crate::web::Web;
use crate::world::{Says, World, and, call, stdio};
use crate::{ROW_BOUND, seen};

/// So many at the same time. Most of them wait most of the time.
const AT_ONCE: usize = 4;
/// What a busy machine may add to any time limit.
const SLACK: Duration = Duration::from_secs(30);
/// What the process is told.
const ROW: &str = "HOSTILE_ROW";
const ERA: &str = "HOSTILE_ERA";
const URL: &str = "HOSTILE_URL";
const SEEN: &str = "HOSTILE_SEEN";

/// What the caller of one row sees.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) first: String,
    /// How long that took.
    pub(crate) took: Duration,
    /// Of a good call afterwards.
    pub(crate) next: String,
}

/// A row that came to a good end.
struct Played {
    seen: Seen,
    /// Time and memory, for people.
    took: String,
}

/// Plays all rows, in each way of speaking that they have, and says what each took.
pub(crate) fn play_all(rows: &[Row]) -> (Vec<Vec<(&'static str, Seen)>>, String) {
    // To look at some of them: the page is not right then.
    let only = std::env::var("HOSTILE_ONLY").ok();
    let is_wanted = |row: &Row| only.as_ref().is_none_or(|only| row.does.contains(only.as_str()));
    let all = rows.iter().enumerate().filter(|(_, row)| is_wanted(row));
    let jobs: Vec<(usize, &'static str)> =
        all.flat_map(|(at, row)| row.eras.iter().map(move |era| (at, *era))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, era)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*at, *era, play_elsewhere(rows, *at, era)));
        }
        done
    };
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut seen: Vec<Vec<_>> = rows.iter().map(|_| Vec::new()).collect();
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for (at, era, played) in done {
        match played {
            Ok(played) => {
                took.push(played.took);
                seen[at].push((era, played.seen));
            }
            Err(why) => failed.push(why),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for eras in &mut seen {
        eras.sort_by_key(|(era, _)| *era);
    }
    (seen, took.join("\n"))
}

/// Starts the process, and waits for it.
fn play_elsewhere(rows: &[Row], at: usize, era: &str) -> Result<Played, String> {
    let row = &rows[at];
    let folder = TempDir::new().unwrap();
    let (path, output) = (folder.path().join("seen"), folder.path().join("output"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_row_in_a_process_of_its_own", "--nocapture"]);
    command.env(ROW, at.to_string()).env(ERA, era).env(SEEN, &path).env_remove("RUST_BACKTRACE");
    let web = match &row.server {
        Server::Web(does) => Some(Web::start(*does, era)),
        Server::Process(_) => None,
    };
    if let Some(web) = &web {
        command.env(URL, web.url());
    }
    let file = fs::File::create(&output).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut process = command.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        match process.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if began.elapsed() > ROW_BOUND => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.is_none() {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let output = String::from_utf8_lossy(&fs::read(&output).unwrap()).into_owned();
    let failed = |why: &str| Err(format!("\na server that {} ({era}): {why}\n{output}", row.does));
    match status {
        None => return failed("it does not end"),
        Some(status) if !status.success() => return failed("it fails"),
        Some(_) => {}
    }
    if let Some(web) = web
        && web.visits_elsewhere() > 0
    {
        return failed("we went where it sent us");
    }
    let memory = output.lines().find(|line| line.starts_with("memory:")).unwrap_or_default();
    let seconds = began.elapsed().as_secs_f64();
    let took = format!("{seconds:>5.1} s  {memory}  {} ({era})", row.does);
    let seen = serde_json::from_slice(&fs::read(path).unwrap());
    seen.map(|seen| Played { seen, took }).map_err(|error| error.to_string())
}

/// What this process was told.
pub(crate) struct Alone {
    row: usize,
    era: String,
    url: Option<String>,
    seen: PathBuf,
}

impl Alone {
    pub(crate) fn asked_for() -> Option<Self> {
        let told = |name: &str| std::env::var(name).ok();
        Some(Self {
            row: told(ROW)?.parse().ok()?,
            era: told(ERA)?,
            url: told(URL),
            seen: told(SEEN)?.into(),
        })
    }

    pub(crate) fn play(&self, rows: &[Row]) {
        let row = &rows[self.row];
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        // Those that wait for files go soon.
        runtime.enable_all().worker_threads(2).thread_keep_alive(Duration::from_millis(10));
        let runtime = runtime.build().unwrap();
        let mark = Mark::new();
        // What is made once is made now.
        runtime.block_on(async {
            let world = World::new(&[("good", marked(&mark, stdio(&[])))]);
            world.orchestrator.call(good()).await.unwrap();
            world.orchestrator.close().await;
        });
        let before = Has::before();
        let seen = runtime.block_on(self.scene(row, &mark));
        before.assert_nothing_is_left(&mark, MEMORY_KEPT_MAX, MEMORY_PEAK_MAX);
        fs::write(&self.seen, serde_json::to_vec(&seen).unwrap()).unwrap();
    }

    async fn scene(&self, row: &Row, mark: &Mark) -> Seen {
        let bad = match &row.server {
            Server::Process(arguments) => {
                let mut words = vec!["--era", &self.era];
                words.extend(arguments);
                marked(mark, stdio(&words))
            }
            Server::Web(_) => {
                and(stdio(&[]), json!({"mcp": {"transport": "http", "url": self.url}}))
            }
        };
        let patient = json!({"timeoutMs": PATIENT.as_millis() as u64});
        let servers = [("bad", and(bad, patient)), ("good", marked(mark, stdio(&[])))];
        let world = World::with(&servers, |options| options.total_limit = TOTAL);
        let stop = CancellationToken::new();
        // Somebody listens, and is slow.
        let _events = world.orchestrator.events();
        let beside = tokio::spawn(beside(world.orchestrator.clone(), stop.clone()));
        if row.is_prepared {
            world.orchestrator.tools("bad").await.unwrap();
        }
        let began = Instant::now();
        let first = ask(&world, row).await;
        let took = began.elapsed();
        let limit =
            if first.contains("Request timeout") { row.limit.max(TOTAL) } else { row.limit };
        assert!(took < limit + SLACK, "{took:?}: {first}");
        if row.lets_go {
            self.until_let_go().await;
        }
        let next =
            Call { timeout: Some(row.limit), ..call("bad", "echo", json!({"text": "hello"})) };
        let next = match row.is_prepared {
            // It is well again, if it can be.
            true => Call { timeout: Some(PATIENT), ..next },
            false => next,
        };
        let next = seen::called(world.orchestrator.call(next).await);
        stop.cancel();
        assert!(beside.await.unwrap() > 0, "a good server was called");
        world.orchestrator.close().await;
        assert_eq!(mark.processes(), [], "closing ends all processes");
        Seen { first, took, next }
    }

    /// Waits until nobody reads what the server sends.
    async fn until_let_go(&self) {
        let url = self.url.clone().unwrap();
        let begun = Instant::now();
        while Web::open_answers(&url) > 0 {
            assert!(begun.elapsed() < SLACK, "an answer is read that nobody waits for");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn ask(world: &World, row: &Row) -> String {
    match &row.asked {
        Asked::Tools => seen::listed(world.orchestrator.tools("bad").await),
        Asked::Read(uri) => seen::read(world.orchestrator.read("bad", uri).await),
        Asked::Call { tool, arguments } => {
            let call = Call { timeout: Some(row.limit), ..call("bad", tool, arguments.clone()) };
            // There is a person, who agrees to everything.
            let call = Call { asker: Some(Says::yes()), ..call };
            seen::called(world.orchestrator.call(call).await)
        }
        Asked::Together { tool, times } => {
            let mut calls = JoinSet::new();
            for number in 0..*times {
                let orchestrator = world.orchestrator.clone();
                let call = call("bad", tool, json!({"text": number.to_string(), "of": times}));
                calls.spawn(async move { (number, orchestrator.call(call).await.unwrap()) });
            }
            for (number, result) in calls.join_all().await {
                assert_eq!(result.raw["content"][0]["text"], number.to_string());
            }
            "each call gets the answer to it".to_owned()
        }
    }
}

/// Calls a good server again and again; how often.
async fn beside(orchestrator: orchestrator::Orchestrator, stop: CancellationToken) -> usize {
    let mut times = 0;
    loop {
        let result = orchestrator.call(good()).await.unwrap();
        assert_eq!(result.raw["content"][0]["text"], "good");
        times += 1;
        if stop.is_cancelled() {
            return times;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn good() -> Call {
    let arguments: Map<String, Value> = serde_json::from_value(json!({"text": "good"})).unwrap();
    Call::new("good", "echo", arguments)
}

/// Everything that comes of it can be found.
fn marked(mark: &Mark, mut entry: Value) -> Value {
    let (name, value) = mark.variable();
    entry["mcp"]["env"] = json!({name: value});
    entry
}
