//! A disk that is full or fails, injected by `strace` or by a limit on the size of files: an error to the caller,
//! nothing lost that was acknowledged, nothing there that was not, and it works again afterwards.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::child::Child;
use crate::{assert_sound, events, open, session};

const TRIES: usize = 120;
/// Enough for the log to be carried over into the file.
const TRIES_TO_CHECKPOINT: usize = 500;
/// One at a time, and several at once, whose writes go into one transaction.
const IDS: [&[&str]; 2] = [&["a"], &["a", "b", "c", "d"]];

#[test]
fn failing_flushes() {
    for ids in IDS {
        through_faults(ids, "fsync,fdatasync", "EIO", "20..24");
    }
}

#[test]
fn a_full_disk() {
    for ids in IDS {
        through_faults(ids, "write,pwrite64", "ENOSPC", "120..160");
    }
}

#[test]
fn failing_writes() {
    for ids in IDS {
        through_faults(ids, "write,pwrite64", "EIO", "121..130");
    }
}

fn through_faults(ids: &[&str], calls: &str, error: &str, when: &str) {
    if !can_inject() {
        return;
    }
    let folder = prepare(ids);
    let path = folder.path().join("sessions.db");
    let said = run(&path, "-wal", calls, error, when, "go-on", TRIES, ids);
    assert_eq!(said.len(), TRIES * ids.len());
    assert!(said.iter().any(|line| line.starts_with("failed")), "no fault came through");
    for id in ids {
        let last = said.iter().rfind(|line| line.split(' ').nth(1) == Some(id));
        assert!(last.unwrap().starts_with("ok"), "{id} did not get over it");
    }
    check(&path, ids, &said);
}

/// The pages of a write whose flush failed stand in the file. Who opens it next must not take them for good.
#[test]
fn a_crash_after_a_failed_flush() {
    if !can_inject() {
        return;
    }
    for when in ["20", "20..21", "20+"] {
        let folder = prepare(&["a"]);
        let path = folder.path().join("sessions.db");
        let said = run(&path, "-wal", "fsync,fdatasync", "EIO", when, "die", TRIES, &["a"]);
        assert!(said.last().unwrap().starts_with("failed"), "{said:?}");
        check(&path, &["a"], &said);
    }
}

/// Carrying the log over into the file can wait: it stays in the log, and nobody is told of it.
#[test]
fn failing_checkpoints() {
    if !can_inject() {
        return;
    }
    for (calls, error) in [("fsync,fdatasync", "EIO"), ("write,pwrite64", "ENOSPC")] {
        let folder = prepare(&["a"]);
        let path = folder.path().join("sessions.db");
        let said = run(&path, "", calls, error, "1+", "go-on", TRIES_TO_CHECKPOINT, &["a"]);
        assert!(said.iter().all(|line| line.starts_with("ok")), "{said:?}");
        check(&path, &["a"], &said);
    }
}

/// Appends in a process whose calls on one file fail. Calls are counted by thread.
#[expect(clippy::too_many_arguments, reason = "one helper of four tests")]
fn run(
    path: &Path,
    file: &str,
    calls: &str,
    error: &str,
    when: &str,
    then: &str,
    tries: usize,
    ids: &[&str],
) -> Vec<String> {
    let file = format!("{}{file}", path.display());
    let trace = format!("trace={calls}");
    let inject = format!("inject={calls}:error={error}:when={when}");
    let strace =
        ["strace", "-f", "-qq", "-o", "/dev/null", "-P", &file, "-e", &trace, "-e", &inject];
    let tries = tries.to_string();
    let arguments: Vec<&str> = [then, &tries].iter().chain(ids).copied().collect();
    Child::start_under(&strace, "faults", path, &arguments).lines()
}

/// The same without `strace`: no file may grow beyond a size, until the limit is gone.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow() {
    let folder = prepare(&["a"]);
    let path = folder.path().join("sessions.db");
    let script = "trap '' XFSZ; ulimit -f 600; exec \"$0\" \"$@\"";
    let child = Child::start_under(&["sh", "-c", script], "faults", &path, &["go-on", "400", "a"]);
    let said = child.lines();
    assert!(said.first().unwrap().starts_with("ok"), "{said:?}");
    assert!(said.last().unwrap().starts_with("failed"), "{said:?}");
    check(&path, &["a"], &said);
}

/// A file system of its own that is really full.
#[cfg(target_os = "linux")]
#[test]
fn pruning_works_on_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mount = folder.path().join("disk");
    std::fs::create_dir(&mount).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24m none '{}' || exit 9; exec \"$0\" \"$@\"",
        mount.display()
    );
    let namespace = ["unshare", "--map-root-user", "--mount", "sh", "-c"];
    let can_mount = Command::new(namespace[0])
        .args(&namespace[1..])
        .args([&script, "true"])
        .stderr(Stdio::null())
        .status();
    if !can_mount.is_ok_and(|status| status.success()) {
        println!("left out: file systems cannot be mounted here");
        return;
    }
    let program: Vec<&str> = namespace.into_iter().chain([&*script]).collect();
    let said = Child::start_under(&program, "full-disk", &mount.join("sessions.db"), &[]).lines();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].starts_with("Some(DiskFull("), "{said:?}");
    assert_eq!(said[1..], ["running true", "pruned true", "sound Ok([]) Ok([])"]);
}

fn prepare(ids: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    for id in ids {
        store.create_now(session(id)).unwrap();
    }
    folder
}

/// Exactly what was acknowledged is there, and more can be added.
fn check(path: &Path, ids: &[&str], said: &[String]) {
    let store = open(path);
    for id in ids {
        let prefix = format!("ok {id} ");
        let acknowledged = said.iter().filter_map(|line| line.strip_prefix(&*prefix));
        let acknowledged: Vec<&str> = acknowledged.collect();
        assert!(!acknowledged.is_empty());
        let events = events(&store, id);
        assert_eq!(events.len(), acknowledged.len() + 1, "{id}");
        for (event, line) in events[1..].iter().zip(&acknowledged) {
            let (version, number) = line.split_once(' ').unwrap();
            assert_eq!(event.version.to_string(), version);
            assert!(event.body.starts_with(&format!("{{\"try\":{number},")), "{id} {version}");
        }
        assert_sound(&store, id);
        let version = events.len() as u64;
        assert_eq!(store.append_now(crate::append(id, version)), Ok(version + 1));
        assert_sound(&store, id);
    }
}

fn can_inject() -> bool {
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=1..2", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        println!("left out: `strace` is not there or not allowed");
    }
    can
}
