//! The project's own chores. What CI runs and what a contributor runs are the same.

#![allow(clippy::print_stderr, reason = "this is where chores say what they do")]

mod clients;
mod nginx;
mod outside;
mod packages;
mod postgres;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test [--long]   format, lints, all tests, with real clients; --long runs the properties for longer
cargo xtask generate        write the schema, the documents and the snapshots that come from the code
cargo xtask bench [--write] measure speed as ratios; --write keeps the table in docs/performance.md
cargo xtask bench --baseline PROGRAM
                            compare calls with those of an earlier build, in turns
cargo xtask postgres        start a PostgreSQL for a trial, say where it is, and end it with Ctrl-C";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["test"] => test(Effort::Usual),
        ["test", "--long"] => test(Effort::Long),
        ["generate"] => generate(),
        ["bench"] => bench(&[]),
        ["bench", "--write"] => bench(&["--write"]),
        ["bench", "--baseline", program] => bench(&["--baseline", program]),
        ["postgres"] => postgres::trial(),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("xtask: {what}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Usual,
    Long,
}

fn test(effort: Effort) -> Result<(), String> {
    component("fmt", "rustfmt")?;
    component("clippy", "clippy")?;
    let clients = clients::install()?;
    let nginx = nginx::install()?;
    let postgres = postgres::install()?;
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["fmt", "--all", "--check", "--manifest-path", "bench/Cargo.toml"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    run(cargo().args(clippy))?;
    // Nothing else builds it before somebody wants to measure.
    let bench = ["check", "--all-targets", "--locked", "--manifest-path", "bench/Cargo.toml"];
    run(cargo().args(bench).args(["--target-dir", "target"]))?;
    // Stopped when this function is left, whatever the tests come to.
    let cluster = postgres::start(&postgres)?;
    let outside = outside::find();
    let mut tests = cargo();
    // Ignored tests need the clients, nginx, PostgreSQL or data of others. One run shows everything that fails.
    tests.args(["test", "--workspace", "--locked", "--no-fail-fast", "--", "--include-ignored"]);
    tests.args(outside.skipped.iter().flat_map(|part| ["--skip", part]));
    tests.envs(outside.variables);
    tests.env("WORKFLOWLOOKUP_CLIENTS", clients).env("WORKFLOWLOOKUP_NGINX", nginx);
    tests.env("WORKFLOWLOOKUP_POSTGRES", postgres);
    tests.env("WORKFLOWLOOKUP_POSTGRES_URL", cluster.maintenance_url());
    if effort == Effort::Long {
        tests.env("WORKFLOWLOOKUP_LONG", "1");
    }
    let done = run(&mut tests);
    // At the end, where somebody reads it.
    for line in &outside.not_run {
        eprintln!("xtask: {line}");
    }
    done
}

/// The tests that compare generated files write them when they are told to.
fn generate() -> Result<(), String> {
    let tests = ["test", "--workspace", "--locked", "generated"];
    run(cargo().args(tests).env("WORKFLOWLOOKUP_UPDATE", "1"))
}

fn bench(arguments: &[&str]) -> Result<(), String> {
    if !packages::has("wrk") && !packages::install(&["wrk"]) {
        return Err("the bench loads servers with `wrk`, and it is not here: `apt install wrk` on Debian and Ubuntu, \
                    `brew install wrk` on macOS"
            .to_owned());
    }
    postgres::install()?;
    let clients = clients::install()?;
    let bench = ["run", "--release", "--locked", "--manifest-path", "bench/Cargo.toml", "--"];
    run(cargo().args(bench).args(arguments).env("WORKFLOWLOOKUP_CLIENTS", clients))
}

/// Says which component is missing before something fails for a reason that nobody understands.
fn component(subcommand: &str, name: &str) -> Result<(), String> {
    let answer = cargo().args([subcommand, "--version"]).output();
    match answer {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("{name} is missing; install it with `rustup component add {name}`")),
    }
}

fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    let line = words.join(" ");
    eprintln!("xtask: {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}` did not start: {error}")),
    }
}
