//! A whole `mcp call`, from before its process is made to its end: the registry is read, a guard and the server started, the tools
//! listed, the call made and the server ended. The yardstick only starts the server and calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{TEXT, entry, id, write_registry};
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 60;
const MEMORY_ROUNDS: usize = 5;
/// Until a call has certainly reached the server.
const SETTLED_AFTER: Duration = Duration::from_millis(300);
const KIBIBYTES: f64 = 1024.0;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let folder = home.join("whole-call");
    let registry = write_registry(&folder, std::iter::once(entry(programs, &id(0))));
    let server = programs.echo_upstream.display().to_string();
    let registry = registry.display().to_string();
    let text = format!("text={TEXT}");
    let target = |tool| format!("{}.{tool}", id(0));
    let echo = target("echo");
    let run = |program: &PathBuf, words: &[&str]| Run {
        program: program.clone(),
        words: words.iter().map(|&word| word.to_owned()).collect(),
        folder: folder.clone(),
    };
    let ours = run(&programs.product, &["mcp", "call", "--registry", &registry, &echo, &text]);
    let ad_hoc = run(&programs.product, &["mcp", "call", "--stdio", &server, "echo", &text]);
    let bare = run(&programs.bare_call, &[&server, TEXT]);
    let runs = [&ours, &bare, &ad_hoc];
    let mut times: [Vec<f64>; 3] = Default::default();
    // The first round fills the system's cache, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..runs.len() {
            let at = (round + turn) % runs.len();
            let time = runs[at].timed();
            if round > 0 {
                times[at].push(time);
            }
        }
    }
    let [ours_most, bare_most, ad_hoc_most] = runs.map(|run| run.most_memory(programs));
    let parked = target("park");
    let parked = run(&programs.product, &["mcp", "call", "--registry", &registry, &parked]);
    let [guard, itself] = parked.memory_of_guard();
    let ratio = |at: usize| {
        median(times[at].iter().zip(&times[1]).map(|(one, other)| one / other).collect())
    };
    let (figure, ad_hoc_figure) = (ratio(0), ratio(2));
    let [ours_time, bare_time, ad_hoc_time] = times.clone().map(median);
    details.upstreams.push(format!(
        "A whole `mcp call` takes {ours_time:.1} ms and {ours_most:.1} MiB, with `--stdio` instead of a registry {ad_hoc_time:.1} ms \
         ({ad_hoc_figure:.2} × the bare client) and {ad_hoc_most:.1} MiB, and the bare client {bare_time:.1} ms and \
         {bare_most:.1} MiB. The guard beside it has {guard:.1} MiB, when it has {itself:.1} MiB itself."
    ));
    vec![
        Row {
            what: "A whole `mcp call` over stdio, from start to end, time",
            yardstick: "a bare program with rmcp's client that makes the call",
            figure,
            unit: Unit::Ratio,
            limit: Limit::AtMost(3.0),
        },
        Row {
            what: "Its most memory",
            yardstick: "",
            figure: ours_most,
            unit: Unit::Mebibytes,
            limit: Limit::AtMost(15.0),
        },
    ]
}

/// A program that makes one call and ends.
struct Run {
    program: PathBuf,
    words: Vec<String>,
    folder: PathBuf,
}

impl Run {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_clear().env("HOME", &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Milliseconds from before its start to its end.
    fn timed(&self) -> f64 {
        let mut command = self.command(&self.program);
        command.args(&self.words);
        let start = Instant::now();
        let output = command.output().expect("a program");
        let time = start.elapsed();
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!((said.trim(), &*complaint), (TEXT, ""), "{}", self.program.display());
        time.as_secs_f64() * 1e3
    }

    /// What the kernel says it had, the largest of a few, in MiB. What it started is smaller.
    fn most_memory(&self, programs: &Programs) -> f64 {
        let one = || {
            let mut command = self.command(&programs.peak);
            let output = command.arg(&self.program).args(&self.words).output().expect("`peak`");
            let said = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>();
            said.expect("a size") / KIBIBYTES
        };
        (0..MEMORY_ROUNDS).map(|_| one()).fold(0.0, f64::max)
    }

    /// The most memory of the guard of a call that waits, and of the process that started it.
    fn memory_of_guard(&self) -> [f64; 2] {
        let mut command = self.command(&self.program);
        let mut child = command.args(&self.words).spawn().expect("a program");
        std::thread::sleep(SETTLED_AFTER);
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let guards = |path: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().filter_map(|id| id.parse::<u32>().ok()).collect::<Vec<_>>()
        };
        // The guard belongs to the thread that starts guards.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
        let mut found = guards(&children);
        for task in tasks.flatten() {
            found.extend(guards(&task.path().join("children").display().to_string()));
        }
        let sizes = [*found.first().expect("a guard"), child.id()].map(high_water);
        child.kill().expect("its end");
        child.wait().expect("its end");
        sizes
    }
}

/// The most memory that a process has had, in MiB.
fn high_water(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let size = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix(" kB"));
    size.and_then(|size| size.trim().parse::<f64>().ok()).expect("a size") / KIBIBYTES
}
