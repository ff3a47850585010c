//! Ends the server when we are gone, however we went. It is a shell that reads from a pipe which only we hold: the pipe
//! ends with us, also when we are killed. It stands apart from our group of processes, so that what kills the group
//! leaves it. (A signal at the parent's death would follow the thread that started the server, and tests' threads end.)

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bounded;

/// Lines are the server's number, or nothing where it does not run; the last one counts. Then the folder goes as well.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
server=
while read -r line; do server=$line; done
if [ -n "$server" ]; then
    kill -QUIT "$server"
    tries=0
    while kill -0 "$server" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
    [ $tries -lt 100 ] || kill -KILL "$server"
fi
rm -rf -- "$1"
"#;
/// The script's own patience, and what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// `folder` is removed at the end.
    pub(crate) fn start(folder: &Path) -> Result<Self, String> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "guard"]).arg(folder).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = command.spawn().map_err(|error| format!("`sh` did not start: {error}"))?;
        Ok(Self { shell })
    }

    pub(crate) fn watch(&mut self, server: u32) -> io::Result<()> {
        self.tell(&server.to_string())
    }

    /// The server has ended; its number may be somebody else's soon.
    pub(crate) fn forget(&mut self) {
        // Without a guard there is nobody who could mistake the number.
        let _ = self.tell("");
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let pipe = self.shell.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        if !matches!(bounded::wait(&mut self.shell, PATIENCE), Ok(Some(_))) {
            let _ = self.shell.kill();
            let _ = self.shell.wait();
        }
    }
}
