//! What programs of agents may use, as options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use process_guard::GuardProgram;
use sandbox::{Limits, Mode, Sandbox};

use service::server::upstreams::Code;

const HEADING: &str = "Programs of agents";

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct CodeOptions {
    /// Where they run: each in a process of its own that can open nothing, or on the one thread for them in this one (who finds it taken gets a process); otherwise `process`
    #[arg(long, value_name = "WHERE", value_enum, requires_if("thread", "sandbox_unconfined"))]
    sandbox: Option<Where>,
    /// Run programs even if the system cannot confine them; `--sandbox thread` needs it
    #[arg(long)]
    sandbox_unconfined: bool,
    /// Memory of each; otherwise 64MiB
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    code_memory: Option<usize>,
    /// Time of each, waiting for calls included; otherwise 10s
    #[arg(long, value_name = "DURATION", value_parser = time)]
    code_time: Option<Duration>,
    /// Stack of each; otherwise 1MiB
    #[arg(long, value_name = "SIZE", value_parser = stack)]
    code_stack: Option<usize>,
    /// How many calls each makes; otherwise 200
    #[arg(long, value_name = "NUMBER")]
    code_calls: Option<usize>,
    /// How many of them at a time, others wait; otherwise 16
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    code_calls_at_once: Option<u16>,
    /// How many lines each writes to its console; otherwise 200
    #[arg(long, value_name = "NUMBER")]
    code_lines: Option<usize>,
    /// How large the result of each is; otherwise 256KiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    code_result: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Where {
    Process,
    Thread,
}

impl CodeOptions {
    /// `sandbox` is one for many programs, or for one.
    pub(crate) fn code(&self, sandbox: fn(Mode, PathBuf) -> Sandbox) -> Code {
        let GuardProgram(program) = GuardProgram::default();
        Code { sandbox: sandbox(self.mode(), program), limits: self.limits() }
    }

    fn mode(&self) -> Mode {
        match self.sandbox {
            Some(Where::Thread) => Mode::Thread,
            None | Some(Where::Process) if self.sandbox_unconfined => Mode::UnconfinedProcess,
            None | Some(Where::Process) => Mode::Process,
        }
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            memory: self.code_memory.unwrap_or(usual.memory),
            time: self.code_time.unwrap_or(usual.time),
            stack: self.code_stack.unwrap_or(usual.stack),
            calls: self.code_calls.unwrap_or(usual.calls),
            calls_at_once: self.code_calls_at_once.map_or(usual.calls_at_once, usize::from),
            lines: self.code_lines.unwrap_or(usual.lines),
            result: self.code_result.unwrap_or(usual.result),
        }
    }
}

const KIB: usize = 1024;
/// The engine itself needs some.
const MEMORY: (usize, usize) = (2 * KIB * KIB, 4 * KIB * KIB * KIB);
const STACK: (usize, usize) = (64 * KIB, 256 * KIB * KIB);

fn memory(text: &str) -> Result<usize, String> {
    between(text, MEMORY, "2MiB and 4GiB")
}

fn stack(text: &str) -> Result<usize, String> {
    between(text, STACK, "64KiB and 256MiB")
}

fn between(text: &str, (least, most): (usize, usize), words: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    if (least..=most).contains(&bytes) { Ok(bytes) } else { Err(format!("it is between {words}")) }
}

/// `64MiB`, `256KiB`, or so many bytes.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let units = [("KiB", KIB), ("MiB", KIB * KIB), ("GiB", KIB * KIB * KIB)];
    let unit = units.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let bytes = number.trim_end().parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
    bytes.ok_or_else(|| "write `64MiB`, `256KiB`, or a number of bytes".to_owned())
}

/// A day is longer than anybody waits.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() || time > TIME_MAX => Err("it is up to a day".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}; write `10s` or `2m`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_a_process_unless_somebody_says_otherwise() {
        assert_eq!(CodeOptions::default().mode(), Mode::Process);
        let on_threads = CodeOptions { sandbox: Some(Where::Thread), ..CodeOptions::default() };
        assert_eq!(on_threads.mode(), Mode::Thread);
        let unconfined = CodeOptions { sandbox_unconfined: true, ..CodeOptions::default() };
        assert_eq!(unconfined.mode(), Mode::UnconfinedProcess);
    }

    #[test]
    fn sizes_are_written_as_people_do() {
        assert_eq!(size("64MiB"), Ok(64 * KIB * KIB));
        assert_eq!(size("1 KiB"), Ok(KIB));
        assert_eq!(size("12"), Ok(12));
        for odd in ["", "MiB", "64MB", "-1", "1.5MiB", "99999999999GiB"] {
            assert!(size(odd).is_err(), "{odd}");
        }
        assert!(memory("1MiB").is_err() && memory("64MiB").is_ok());
    }
}
