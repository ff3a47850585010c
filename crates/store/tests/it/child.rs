//! This test binary as a process of its own: it runs itself again, with one "test" that does what the environment
//! says and prints what came of it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;

use store::{Append, Error, NewSession, Store};

use crate::{append, assert_sound, complete, event, fill, histories, open, session};

const MODE: &str = "STORE_TEST_MODE";
const FILE: &str = "STORE_TEST_FILE";
const ARGUMENTS: &str = "STORE_TEST_ARGUMENTS";
/// Tells our lines from the test harness's.
const MARK: &str = "store> ";

pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub(crate) fn start(mode: &str, path: &Path, arguments: &[&str]) -> Self {
        Self::start_under(&[], mode, path, arguments)
    }

    /// Runs it by another program, such as `strace`.
    pub(crate) fn start_under(
        program: &[&str],
        mode: &str,
        path: &Path,
        arguments: &[&str],
    ) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match program {
            [] => Command::new(own),
            [name, rest @ ..] => {
                let mut command = Command::new(name);
                command.args(rest).arg(own);
                command
            }
        };
        command
            .args(["child::run", "--exact", "--nocapture", "--test-threads=1"])
            .env(MODE, mode)
            .env(FILE, path)
            .env(ARGUMENTS, arguments.join(" "))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness may have begun the line. A line that was cut off was never said.
            if let (Some(at), true) = (line.find(MARK), line.ends_with('\n')) {
                return Some(line[at + MARK.len()..].trim_end().to_owned());
            }
        }
    }

    /// Everything that it says until it ends.
    pub(crate) fn lines(mut self) -> Vec<String> {
        let lines = std::iter::from_fn(|| self.line()).collect();
        self.process.wait().unwrap();
        lines
    }

    /// Ends it with SIGKILL, and gives what it had said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.lines()
    }
}

#[test]
fn run() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let path = std::env::var(FILE).unwrap();
    let arguments = std::env::var(ARGUMENTS).unwrap();
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let store = open(Path::new(&path));
    match (&*mode, &*arguments) {
        ("open", [id]) => {
            store.create_now(session(id)).unwrap();
            say("opened");
        }
        ("crash", ids) => append_for_ever(store, ids),
        ("history", [writer, ids @ ..]) => {
            for operation in histories::write(&store, writer.parse().unwrap(), ids) {
                say(&operation.to_string());
            }
        }
        ("faults", [then, count, ids @ ..]) => std::thread::scope(|scope| {
            for id in ids {
                scope.spawn(|| append_through_faults(&store, id, count, then));
            }
        }),
        ("full-disk", []) => full_disk(store, Path::new(&path)),
        other => panic!("unknown: {other:?}"),
    }
}

/// Fills the disk that the store is on, and has sessions pruned there.
fn full_disk(store: Store, path: &Path) {
    let mut ids = Vec::new();
    let stopped = (0..).find_map(|number| {
        let id = format!("s{number}");
        let new = NewSession { head: complete(0), ..session(&id) };
        let body = format!("\"{}\"", "x".repeat(20_000));
        let new = NewSession { event: event(&body), ..new };
        match store.create_now(new) {
            Ok(_) => ids.push(id),
            Err(error) => return Some(error),
        }
        None
    });
    say(&format!("{stopped:?}"));
    // To the last byte, by somebody else.
    let mut filler = std::fs::File::create(path.with_extension("filler")).unwrap();
    for size in [4096, 1] {
        while filler.write_all(&vec![1; size]).is_ok() {}
    }
    let before = ids.len();
    say(&format!("running {:?}", store.create_now(session("more")).is_err()));
    drop(store);
    // Nobody has the file open, so even its index has to be made anew.
    let store = open(path);
    let pruned = store.prune(u64::from(u32::MAX), before / 2).unwrap();
    say(&format!("pruned {}", pruned == before / 2));
    store.create_now(session("more")).unwrap();
    fill(&store, "more", 20);
    for id in &ids[before / 2..] {
        assert_sound(&store, id);
    }
    assert_sound(&store, "more");
    say(&format!("sound {:?} {:?}", store.counter_flaws(), store.file_flaws()));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{MARK}{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Appends to each session as fast as it can, all at once, and says what was acknowledged.
fn append_for_ever(store: Store, ids: &[&str]) {
    let store = Arc::new(store);
    std::thread::scope(|scope| {
        for id in ids {
            let store = Arc::clone(&store);
            scope.spawn(move || {
                store.create_now(session(id)).unwrap();
                say(&format!("{id} 1"));
                for expected in 1.. {
                    // Snapshots and words take part too.
                    let snapshot = (expected % 5 == 0).then(|| "state".repeat(100));
                    let search = Some(format!("word{expected} of {id}"));
                    let mut append = Append { snapshot, ..append(id, expected) };
                    append.event.search = search;
                    let version = store.append_now(append).unwrap();
                    say(&format!("{id} {version}"));
                }
            });
        }
    });
}

/// Appends one after the other, tries again after a fault, and says what came of each try.
fn append_through_faults(store: &Store, id: &str, count: &str, then: &str) {
    let mut version = 1;
    for number in 0..count.parse::<u64>().unwrap() {
        let body = format!("{{\"try\":{number},\"fill\":\"{}\"}}", "x".repeat(3_000));
        match store.append_now(Append { event: event(&body), ..append(id, version) }) {
            Ok(now) => {
                assert_eq!(now, version + 1);
                version = now;
                say(&format!("ok {id} {version} {number}"));
            }
            Err(Error::Unavailable(why) | Error::DiskFull(why)) => {
                say(&format!("failed {id} {why}"));
                if then == "die" {
                    // Without closing anything, as if killed.
                    std::process::abort();
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}
