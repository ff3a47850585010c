//! A PID namespace whose session leader is outside, as a container runtime or a CI runner makes it.

use std::process::{Command, Stdio};

use rustix::process::geteuid;

/// Prepares a command in a new PID namespace, with a `/proc` of its own.
fn unshare() -> Command {
    let mut unshare = Command::new("unshare");
    if !geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--pid", "--fork", "--mount-proc"]).stdin(Stdio::null());
    unshare
}

#[test]
fn killed_guard_leaves_nothing_where_our_session_is_invisible() {
    let is_possible = unshare().arg("true").stderr(Stdio::null()).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user cannot create PID namespaces with `unshare`");
        return;
    }
    let tests = std::env::current_exe().unwrap();
    let output = unshare()
        .arg(tests)
        .args(["--exact", "reach::daemon_of_a_killed_guard_is_killed"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
