//! The process of a program while it runs, as the kernel tells of it.

use std::fs;
use std::time::{Duration, Instant};

use sandbox::{Limits, Mode, Program};

use crate::world::{run, sandbox};

/// To stop hangs only.
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_running_program_has_nothing() {
    let program = "
        import { slow } from 'mcp-clients/tools';
        console.log('here');
        await slow({ ms: 3_000 });
        'done';
    ";
    let sandbox = sandbox(Mode::Process);
    let running = run(&sandbox, Program::of(program), Limits::default());
    let looking = tokio::task::spawn_blocking(look);
    let (outcome, told) = tokio::join!(running, looking);
    assert_eq!(outcome.result.unwrap().get(), "\"done\"");
    insta::assert_snapshot!(told.unwrap(), @r"
    arguments: workflowlookup __sandbox [PARENT]
    variables:
    threads: main program
    NoNewPrivs: 1
    Seccomp: 2
    Max cpu time: 12 13
    Max file size: 0 0
    Max core file size: 0 0
    Max processes: 0 0
    Max open files: 1 1
    ");
}

/// Once it has all its walls.
fn look() -> String {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < BOUND, "there is no such process");
        std::thread::sleep(Duration::from_millis(5));
        for child in children() {
            let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            let arguments =
                fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if arguments.contains("__sandbox") && status.contains("\nSeccomp:\t2") {
                return told(&child, &status);
            }
        }
    }
}

fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children =
        tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    children.flat_map(|own| own.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn told(child: &str, status: &str) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{child}/{name}")).unwrap();
    let names = |folder: &str| {
        let entries = fs::read_dir(format!("/proc/{child}/{folder}")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let mut threads: Vec<String> = names("task")
        .iter()
        .map(|task| {
            if task == child {
                "main".to_owned()
            } else {
                read(&format!("task/{task}/comm")).trim().to_owned()
            }
        })
        .collect();
    threads.sort();
    let arguments = read("cmdline").trim_end_matches('\0').replace('\0', " ");
    let mut told = vec![
        format!("arguments: {}", arguments.replace(&std::process::id().to_string(), "[PARENT]")),
        format!("variables: {}", read("environ").replace('\0', " ")).trim_end().to_owned(),
        format!("threads: {}", threads.join(" ")),
    ];
    for name in ["NoNewPrivs:", "Seccomp:"] {
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        told.push(format!("{name} {}", value.trim()));
    }
    let limits = read("limits");
    for name in
        ["Max cpu time", "Max file size", "Max core file size", "Max processes", "Max open files"]
    {
        let value = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let value: Vec<&str> = value.split_whitespace().take(2).collect();
        told.push(format!("{name}: {}", value.join(" ")));
    }
    told.join("\n")
}
