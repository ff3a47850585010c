//! Runs a command to its end, and prints the most memory in KiB that it, or anything that it waited for, had. Small itself, for
//! the kernel counts a process from before it becomes another program.

use std::error::Error;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or("a command")?;
    let status = Command::new(program).args(words).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("it ended with {status}").into());
    }
    let most = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    writeln!(std::io::stdout(), "{most}")?;
    Ok(())
}
