//! Whoever starts children dies, in every way and at every moment. Nobody is left.

use std::process::Command;
use std::time::Duration;

use process_guard::shown;
use rustix::process::{Pid, Signal, kill_process};

use crate::processes::{Hold, Mark, Process, bounded, until};

/// What children do who do not want to go; each with how many times it runs `sleep`.
const SCRIPTS: [(&str, usize); 9] = [
    ("exec sleep 1000", 1),
    ("sleep 1000 & sleep 1000", 2),
    // Deaf.
    ("trap '' TERM HUP INT; sleep 1000 & while :; do sleep 1000; done", 2),
    // A session of its own.
    ("setsid sleep 1000 & sleep 1000", 2),
    // A daemon: its parents are gone.
    ("(setsid sh -c '(sleep 1000 &)' &); sleep 1000", 2),
    // The same, deaf.
    ("(trap '' TERM HUP; setsid sh -c 'setsid sleep 1000 &' &); sleep 1000", 2),
    // A chain, each waiting for the next.
    ("sh -c 'sh -c \"sh -c \\\"sleep 1000; :\\\"; :\"; :'; :", 1),
    // Stopped.
    ("sleep 1000 & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep 1000", 2),
    ("sh -c 'kill -STOP $$' & sleep 1000", 1),
];

/// As a server of npm's runs below `npx`.
const NODE: &str = "exec node -e '
    const { spawn } = require(\"node:child_process\");
    spawn(process.execPath, [\"-e\", \"setInterval(() => {}, 1000)\"], { stdio: \"inherit\" });
    spawn(\"sleep\", [\"1000\"], { detached: true, stdio: \"ignore\" }).unref();
    setInterval(() => {}, 1000);
'";

/// The scripts, and what must be running before it is interesting.
fn scripts() -> (Vec<String>, usize, usize) {
    let mut scripts: Vec<String> = SCRIPTS.iter().map(|(script, _)| script.to_string()).collect();
    let sleeping: usize = SCRIPTS.iter().map(|(_, sleeping)| sleeping).sum();
    if Command::new("node").arg("--version").output().is_err() {
        return (scripts, sleeping, 0);
    }
    scripts.push(NODE.to_owned());
    (scripts, sleeping + 1, 2)
}

/// All children of a parent are up.
fn held(mark: &Mark) -> Hold {
    let (scripts, sleeping, nodes) = scripts();
    let mut hold = Hold::start(mark, &scripts);
    hold.until_ready();
    until(
        || format!("{:?}", mark.processes()),
        || mark.count("sleep") == sleeping && mark.count("node") == nodes,
    );
    assert_eq!(mark.count("mcp-guard"), scripts.len());
    hold
}

/// Each thread that asked for a child has ended, after the child was there.
#[test]
fn everybody_lives_while_their_parent_does() {
    let mark = Mark::new();
    let _hold = held(&mark);
    let programs = ["mcp-guard", "sleep", "node"];
    let stays = |process: &Process| programs.iter().any(|program| process.runs(program));
    let those = || mark.processes().into_iter().filter(stays).collect::<Vec<_>>();
    let before = those();
    // Longer than what an orphan has.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(those(), before);
}

#[test]
fn nobody_is_left_of_a_parent_that_is_killed() {
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let mark = Mark::new();
        held(&mark).kill(signal);
        mark.until_gone();
    }
}

#[test]
fn nobody_is_left_of_a_parent_that_ends() {
    let mark = Mark::new();
    let mut hold = held(&mark);
    drop(hold.stdin.take());
    // It has ended each of its children when it ends.
    hold.wait();
    assert_eq!(mark.processes(), []);
}

#[test]
fn a_parent_may_die_at_any_moment() {
    let (scripts, ..) = scripts();
    for tenths in 0..40 {
        let mark = Mark::new();
        let mut hold = Hold::start(&mark, &scripts);
        std::thread::sleep(Duration::from_micros(500) * tenths);
        hold.kill(Signal::KILL);
        // A guard that was about to start: it is the last to go.
        mark.until_gone();
    }
}

#[tokio::test]
async fn whoever_a_killed_guard_guarded_dies_too() {
    let mark = Mark::new();
    let script = "trap '' TERM HUP; sleep 1000 & sh -c 'sleep 1000 & sleep 1000; :'";
    let mut child = mark.sh(script).await;
    until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 3);
    let guard = Pid::from_raw(i32::try_from(child.guarded.id()).unwrap()).unwrap();
    kill_process(guard, Signal::KILL).unwrap();
    let status = bounded(child.guarded.exited()).await.unwrap();
    assert_eq!(shown(status), "signal 9 (SIGKILL), sent to its guard");
    mark.until_gone();
}

#[test]
fn a_guard_that_was_stopped_is_woken_to_end() {
    let mark = Mark::new();
    let mut hold = Hold::start(&mark, &["exec sleep 1000".to_owned()]);
    hold.until_ready();
    until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 1);
    let processes = mark.processes();
    let guard = processes.iter().find(|process| process.runs("mcp-guard")).unwrap();
    kill_process(guard.pid, Signal::STOP).unwrap();
    drop(hold.stdin.take());
    hold.wait();
    assert_eq!(mark.processes(), []);
}
