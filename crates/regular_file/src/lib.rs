//! Opens files in directories that others may write. A name that was a file a moment ago may be a pipe by now, and opening a
//! pipe waits for its other end: checking the name first is not enough.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a regular file for reading, through links. Everything else is refused, and nothing is waited for: no writer of a
/// pipe, no carrier of a line, no holder of a lease.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // A terminal must not become ours either.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        #[cfg(unix)]
        Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => irregular(),
        _ => error,
    })?;
    // Of the file that was opened, whatever has its name now.
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Only for a failure: nothing here waits.
    const WATCHDOG: Duration = Duration::from_secs(30);

    #[test]
    fn only_regular_files_are_opened_and_nothing_hangs() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap();
        assert!(made.success());
        let _socket = UnixListener::bind(path("socket")).unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        std::fs::write(path("file"), "text").unwrap();
        for (link, target) in [("good", "file"), ("bad", "fifo")] {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
        }
        for name in ["fifo", "socket", "directory", "bad", "/dev/null", "/dev/zero"] {
            let path = path(name);
            let (done, opened) = mpsc::channel();
            std::thread::spawn(move || done.send(open(&path)));
            let error = opened.recv_timeout(WATCHDOG).expect(name).expect_err(name);
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
        }
        assert_eq!(open(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        for name in ["file", "good"] {
            let mut text = String::new();
            open(&path(name)).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
    }
}
