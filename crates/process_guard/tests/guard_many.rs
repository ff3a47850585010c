//! Very many children at once. In a process of its own, so that everything that is left is theirs.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

#[path = "guard/processes.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod processes;

use std::fs;
use std::time::Duration;

use process_guard::{Child, Ended};
use processes::{Mark, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

const CHILDREN: usize = 200;

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

async fn start_and_end(mark: &Mark, children: usize) {
    let mut started = JoinSet::new();
    for _ in 0..children {
        let mark = mark.clone();
        started.spawn(async move { mark.start("cat", &[]).await });
    }
    let mut ending = JoinSet::new();
    for Child { mut stdin, mut stdout, stderr: _, guarded } in started.join_all().await {
        ending.spawn(async move {
            stdin.write_all(b"x").await.unwrap();
            assert_eq!(stdout.read_u8().await.unwrap(), b'x');
            drop((stdin, stdout));
            guarded.end().await
        });
    }
    for ended in ending.join_all().await {
        assert!(matches!(ended, Ended::ByItself(status) if status.success()), "{ended:?}");
    }
    assert_eq!(mark.processes(), []);
}

#[test]
fn nothing_is_left_of_many_children() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // The threads that look for commands go soon.
    runtime.enable_all().worker_threads(2).thread_keep_alive(Duration::from_millis(10));
    let runtime = runtime.build().unwrap();
    let mark = Mark::new();
    // What is made once is made now.
    runtime.block_on(start_and_end(&mark, 1));
    let settled = |before: usize| {
        until(|| format!("{}", count("/proc/self/task")), || count("/proc/self/task") <= before);
    };
    // This, the test's, two of the runtime's and the one that spawns.
    settled(5);
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    runtime.block_on(start_and_end(&mark, CHILDREN));
    settled(before.1);
    assert_eq!((count("/proc/self/fd"), count("/proc/self/task")), before);
    // No dead child waits to be waited for.
    let error = rustix::process::wait(rustix::process::WaitOptions::NOHANG).unwrap_err();
    assert_eq!(error, rustix::io::Errno::CHILD);
}
