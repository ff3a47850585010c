//! Bounds, links and other things that are not followed.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::sync::mpsc;
#[cfg(unix)]
use std::time::Duration;

use catalog::{FILES_MAX, FOLDER_DEPTH_MAX, SourceState};

use super::*;

#[test]
fn a_file_over_the_limit_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    let long = definition("large", &"x".repeat(2 * 1024 * 1024));
    write(home.path(), "large.json", &long);
    write(home.path(), "good.json", &definition("good", "Good"));
    let catalog = open(home.path());
    assert_eq!(usable(&catalog), ["good"]);
    assert_eq!(codes(&catalog, "large"), ["W004"]);
}

#[test]
fn folders_nest_within_a_bound() {
    let home = tempfile::tempdir().unwrap();
    let path = |depth: usize| "d/".repeat(depth - 1);
    let last = FOLDER_DEPTH_MAX;
    write(home.path(), &format!("{}last.json", path(last)), &definition("last", "L"));
    write(home.path(), &format!("{}beyond.json", path(last + 1)), &definition("beyond", "B"));
    let catalog = open(home.path());
    assert_eq!(usable(&catalog), ["last"]);
    assert_eq!(catalog.snapshot().sources[0].findings[0].code.name(), "W072");
}

#[test]
fn the_number_of_files_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..FILES_MAX + 1 {
        fs::write(home.path().join(format!("{number:05}.json")), "").unwrap();
    }
    let catalog = open(home.path());
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.entries().len(), FILES_MAX);
    assert_eq!(snapshot.sources[0].findings[0].code.name(), "W072");
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_out_of_its_folder_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("inner");
        write(home.path(), "secret.json", &definition("secret", "S"));
        write(home.path(), "outer/more.json", &definition("more", "M"));
        write(&inner, "sub/good.json", &definition("good", "G"));
        symlink("../secret.json", inner.join("leads-out.json")).unwrap();
        symlink("../outer", inner.join("folder")).unwrap();
        symlink("sub/good.json", inner.join("stays.json")).unwrap();
        symlink("nowhere.json", inner.join("dangling.json")).unwrap();
        symlink(".", inner.join("circle")).unwrap();
        let catalog = open(&inner);
        assert_eq!(usable(&catalog), ["good"]);
        assert_eq!(codes(&catalog, "leads-out"), ["W071"]);
        assert_eq!(codes(&catalog, "dangling"), ["W070"]);
        assert!(catalog.snapshot().get("secret").is_none());
        assert!(catalog.snapshot().get("more").is_none());
        let findings = &catalog.snapshot().sources[0].findings;
        let files: Vec<_> = findings.iter().map(|finding| finding.code.name()).collect();
        assert_eq!(files, ["W071"], "the link to a folder outside is told too");
    }

    #[test]
    fn a_pipe_does_not_hang_the_load() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        write(home.path(), "good.json", &definition("good", "G"));
        let catalog = open(home.path());
        assert_eq!(usable(&catalog), ["good"]);
        assert_eq!(codes(&catalog, "pipe"), ["W070"]);
    }

    #[test]
    fn what_must_not_be_read_is_reported() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), "good.json", &definition("good", "G"));
        write(home.path(), "closed.json", &definition("closed", "C"));
        write(home.path(), "shut/inner.json", &definition("inner", "I"));
        let lock = |name: &str, mode| {
            let path = home.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        lock("closed.json", 0o000);
        lock("shut", 0o000);
        if fs::read(home.path().join("closed.json")).is_ok() {
            // The superuser reads everything: nothing to see here. The command line's tests cover it
            // by running as somebody else.
            lock("shut", 0o755);
            return;
        }
        let catalog = open(home.path());
        lock("shut", 0o755);
        assert_eq!(usable(&catalog), ["good"]);
        assert_eq!(codes(&catalog, "closed"), ["W070"]);
        let snapshot = catalog.snapshot();
        assert_eq!(snapshot.sources[0].state, SourceState::Read);
        assert_eq!(snapshot.sources[0].findings[0].code.name(), "W070");
    }
}

/// A file and a FIFO take turns under one name while it is loaded, again and again.
#[cfg(unix)]
#[test]
fn fifo_swapped_in_while_loading_never_hangs() {
    const LOADS: usize = 2_000;
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    write(&path("source"), "a.json", &definition("a-file", "A"));
    fs::write(path("file"), definition("a-file", "A")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap();
    assert!(made.success());
    let is_over = AtomicBool::new(false);
    let (done, loaded) = mpsc::channel();
    let source = path("source");
    std::thread::spawn(move || {
        (0..LOADS).for_each(|_| drop(open(&source)));
        done.send(())
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for name in ["fifo", "file"] {
                    fs::hard_link(path(name), path("next")).unwrap();
                    fs::rename(path("next"), path("source/a.json")).unwrap();
                }
            }
        });
        // Only for a failure.
        let ended = loaded.recv_timeout(Duration::from_secs(60));
        is_over.store(true, Ordering::Relaxed);
        ended.expect("loading waits for a FIFO");
    });
}
