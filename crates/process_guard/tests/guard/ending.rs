//! How children end, and that everything below them does.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use process_guard::{Child, Ended, shown};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::processes::{Mark, bounded, until};

fn told(ended: Ended) -> i32 {
    match ended {
        Ended::Told(status) => status.code().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Until a script has written something.
async fn until_up(child: &mut Child) {
    bounded(child.stdout.read_u8()).await.unwrap();
}

#[tokio::test]
async fn the_status_is_the_commands() {
    let mark = Mark::new();
    for (script, status) in
        [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)]
    {
        let mut child = mark.sh(script).await;
        let exited = bounded(child.guarded.exited()).await.unwrap();
        assert_eq!(exited.code(), Some(status), "{script}");
    }
}

#[test]
fn a_status_is_shown_in_words() {
    let shown = [0, 1 << 8, 143 << 8, 255 << 8, 9].map(|raw| shown(ExitStatusExt::from_raw(raw)));
    insta::assert_debug_snapshot!(shown, @r#"
    [
        "status 0",
        "status 1",
        "status 143 (SIGTERM)",
        "status 255",
        "signal 9 (SIGKILL), sent to its guard",
    ]
    "#);
}

#[tokio::test]
async fn a_closed_input_ends_a_good_child() {
    let mark = Mark::new();
    let Child { stdin, guarded, .. } = mark.start("cat", &[]).await;
    drop(stdin);
    let Ended::ByItself(status) = guarded.end().await else { panic!() };
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_child_that_does_not_care_is_told() {
    let mark = Mark::new();
    let Child { stdin, guarded, .. } = mark.start("sleep", &["1000"]).await;
    drop(stdin);
    assert_eq!(told(guarded.end().await), 143);
    assert_eq!(mark.processes(), []);
}

#[tokio::test]
async fn a_child_has_time_for_an_end_of_its_own() {
    let mark = Mark::new();
    let script = "trap 'sleep 0.2; exit 7' TERM; echo; while :; do sleep 0.1; done";
    let mut child = mark.sh(script).await;
    until_up(&mut child).await;
    let Child { stdin, guarded, .. } = child;
    drop(stdin);
    assert_eq!(told(guarded.end().await), 7);
}

/// Its wrapper is gone at once; what it wraps needs a moment.
#[tokio::test]
async fn what_is_below_a_child_has_time_too() {
    let mark = Mark::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("said");
    let inner =
        "trap 'sleep 0.2; echo bye > $SAID; exit 0' TERM; echo; while :; do sleep 0.1; done";
    let script = format!("export SAID='{}'; sh -c \"$0\" & wait", file.display());
    let mut child = mark.start("sh", &["-c", &script, inner]).await;
    until_up(&mut child).await;
    let Child { stdin, guarded, .. } = child;
    drop(stdin);
    assert_eq!(told(guarded.end().await), 143);
    assert_eq!(fs::read_to_string(file).unwrap(), "bye\n");
}

#[tokio::test]
async fn the_deaf_are_killed() {
    let mark = Mark::new();
    let deaf = "trap '' TERM HUP INT; echo; while :; do sleep 1000; done";
    let mut child = mark.sh(deaf).await;
    until_up(&mut child).await;
    let Child { stdin, guarded, .. } = child;
    drop(stdin);
    assert_eq!(told(guarded.end().await), 137);

    let mut child = mark.sh(deaf).await;
    until_up(&mut child).await;
    assert_eq!(told(child.guarded.end_at_once().await), 137);
    assert_eq!(mark.processes(), []);
}

#[tokio::test]
async fn whoever_is_dropped_ends() {
    let mark = Mark::new();
    let child = mark.sh("setsid sleep 1000 & sleep 1000").await;
    until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 2);
    drop(child);
    mark.until_gone();
}

/// Nobody waits for it any more when it is started.
#[tokio::test]
async fn whoever_is_not_wanted_any_more_ends() {
    let mark = Mark::new();
    for micros in 0..20 {
        let wait = std::time::Duration::from_micros(micros * 200);
        let _ = tokio::time::timeout(wait, mark.start("sleep", &["1000"])).await;
    }
    // Their guards need the runtime.
    tokio::task::spawn_blocking(move || mark.until_gone()).await.unwrap();
}

/// SIGHUP is what tells a guard to end at once, and under `nohup` it is ignored until the guard has a handler.
#[test]
fn abandoned_children_end_if_hangups_are_ignored() {
    let this = std::env::current_exe().unwrap();
    let tried = std::process::Command::new("nohup")
        .arg(this)
        .args(["--exact", "ending::whoever_is_not_wanted_any_more_ends"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stdout));
    assert!(String::from_utf8_lossy(&tried.stdout).contains("1 passed"), "{tried:?}");
}

#[tokio::test]
async fn what_a_child_leaves_behind_ends_with_it() {
    let mark = Mark::new();
    let script = "setsid sleep 1000 & (sleep 1000 &); trap '' TERM; setsid sleep 1000 & exit 4";
    let mut child = mark.sh(script).await;
    assert_eq!(bounded(child.guarded.exited()).await.unwrap().code(), Some(4));
    assert_eq!(mark.processes(), []);
}

/// They fork while they are killed: a tree of them, each in a session of its own.
#[tokio::test]
async fn a_crowd_that_grows_is_ended() {
    let script = "[ $0 -gt 0 ] || exec sleep 1000
        trap '' TERM; echo
        setsid sh -c \"$1\" $(($0 - 1)) \"$1\" &
        setsid sh -c \"$1\" $(($0 - 1)) \"$1\" &
        exec sleep 1000";
    for wait in [0, 5, 20, 80, 300] {
        let mark = Mark::new();
        let mut child = mark.start("sh", &["-c", script, "7", script]).await;
        until_up(&mut child).await;
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        assert_eq!(told(child.guarded.end_at_once().await), 137);
        assert_eq!(mark.processes(), [], "after {wait} ms");
    }
}

/// One after another: each starts the next and is gone.
#[tokio::test]
async fn a_runner_is_caught() {
    let script = "trap '' TERM; [ $0 -gt 0 ] || exec sleep 1000
        [ $0 -lt 1990 ] || echo
        setsid sh -c \"$1\" $(($0 - 1)) \"$1\" & exit 0";
    let command = "sh -c \"$0\" 2000 \"$0\"; sleep 1000";
    let mark = Mark::new();
    let mut child = mark.start("sh", &["-c", command, script]).await;
    until_up(&mut child).await;
    // By the first signal or, on a machine that has much to do, by the second.
    assert!([143, 137].contains(&told(child.guarded.end_at_once().await)));
    assert_eq!(mark.processes(), []);
}

#[tokio::test]
async fn the_end_of_its_output_is_seen_while_it_lives() {
    let mark = Mark::new();
    let mut child = mark.sh("echo said; exec >&- 2>&-; exec sleep 1000").await;
    let mut said = String::new();
    bounded(child.stdout.read_to_string(&mut said)).await.unwrap();
    bounded(child.stderr.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "said\n");
    until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 1);
}

#[tokio::test]
async fn that_its_input_is_closed_is_seen_while_it_lives() {
    let mark = Mark::new();
    let mut child = mark.sh("exec <&-; echo; exec sleep 1000").await;
    until_up(&mut child).await;
    // Its guard may be about to let go of it.
    let refused = async {
        loop {
            match child.stdin.write_all(b"nobody reads").await {
                Ok(()) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                Err(error) => break error,
            }
        }
    };
    let error = bounded(refused).await;
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 1);
}
