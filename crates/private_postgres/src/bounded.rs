//! Runs a program to its end, and not longer than is said. What it writes goes through files, so that a full pipe holds
//! nothing up.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked whether something has happened.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// What it wrote to its output, without the last line's end; or what went wrong, with what it complained about.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let no_file = |error: io::Error| format!("`{name}` has nowhere to write: {error}");
    let mut output = tempfile::tempfile().map_err(no_file)?;
    let mut complaints = tempfile::tempfile().map_err(no_file)?;
    command.stdin(Stdio::null());
    command.stdout(output.try_clone().map_err(no_file)?);
    command.stderr(complaints.try_clone().map_err(no_file)?);
    let mut child = command.spawn().map_err(|error| format!("`{name}` did not start: {error}"))?;
    let status = wait(&mut child, limit);
    if !matches!(status, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    match status {
        Ok(Some(status)) if status.success() => Ok(content(&mut output)),
        Ok(Some(status)) => {
            Err(format!("`{name}` ended with {status}\n{}", content(&mut complaints)))
        }
        Ok(None) => {
            Err(format!("`{name}` took longer than {limit:?}\n{}", content(&mut complaints)))
        }
        Err(error) => Err(format!("`{name}` cannot be waited for: {error}")),
    }
}

/// How a process ended, or nothing where it still runs after that time.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() || start.elapsed() >= limit {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether it came true within that time.
pub(crate) fn until(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is_true() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is only missing in a message, or in an answer that then is not what was expected.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_answer_and_a_complaint() {
        let patience = Duration::from_secs(60);
        assert_eq!(run(&mut shell("echo one; echo two >&2"), patience).unwrap(), "one");
        let failed = run(&mut shell("echo one; echo two >&2; exit 3"), patience).unwrap_err();
        assert!(failed.contains("exit status: 3") && failed.contains("two"), "{failed}");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let late = run(&mut shell("exec sleep 600"), Duration::from_millis(50)).unwrap_err();
        assert!(late.contains("took longer than 50ms"), "{late}");
    }
}
