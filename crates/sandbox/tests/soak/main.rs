//! Many programs, one after the other and at once, leave nothing behind: no thread, no process, no descriptor, and little memory.
//! Each test runs in a process of its own, so that what is left is known to be of it.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what it took is worth knowing")]

mod left;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::process::Command;
use std::time::Duration;

use left::Has;
use sandbox::{Kind, Limits, Mode, Program, Sandbox};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::world::{run, sandbox};

/// Memory that may be kept.
const KEPT_MAX: u64 = 16 * 1024 * 1024;
/// What the process of a test is told.
const SCENE: &str = "SANDBOX_SCENE";

/// A plain program, and others that do what programs do.
const PLAIN: [&str; 4] = [
    "[1, 2, 3].map((number) => number * 2)",
    "import { echo } from 'mcp-clients/tools'; await Promise.all([echo({ a: 1 }), echo({ b: 2 })])",
    "import { fail } from 'mcp-clients/tools'; await fail({}).catch((error) => error.message)",
    "const rows = Array.from({ length: 10_000 }, (_, at) => ({ at, text: 'x'.repeat(at % 50) })); rows.length",
];

/// Programs that fill their memory, each in another way.
const BOMBS: [&str; 4] = [
    "const list = []; for (;;) list.push({ list: [list.length] });",
    "const texts = []; for (;;) texts.push('x'.repeat(1000) + texts.length);",
    "const map = new Map(); for (;;) map.set(map.size, new Uint8Array(100));",
    "let own; for (;;) { const kept = own; own = { kept, get: () => kept }; }",
];

#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    mode: Mode,
    /// How many programs, and how many of them at once.
    programs: usize,
    at_once: usize,
    /// Whether every third of them fills its memory.
    has_bombs: bool,
}

const fn scene(name: &'static str, mode: Mode, programs: usize, at_once: usize) -> Scene {
    Scene { name, mode, programs, at_once, has_bombs: false }
}

const SCENES: [Scene; 7] = [
    scene("threads in a row", Mode::Thread, 1_000, 1),
    scene("threads at once", Mode::Thread, 500, 50),
    Scene { has_bombs: true, ..scene("threads with bombs in a row", Mode::Thread, 24, 1) },
    Scene { has_bombs: true, ..scene("threads with bombs at once", Mode::Thread, 24, 50) },
    scene("processes in a row", Mode::Process, 300, 1),
    scene("processes at once", Mode::Process, 200, 50),
    Scene { has_bombs: true, ..scene("processes with bombs", Mode::Process, 24, 50) },
];

#[test]
fn nothing_is_left_of_programs() {
    // Two at a time: they mostly wait for each other's ends.
    for scenes in SCENES.chunks(2) {
        std::thread::scope(|scope| {
            for scene in scenes {
                scope.spawn(|| play_elsewhere(scene));
            }
        });
    }
}

fn play_elsewhere(scene: &Scene) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_scene_alone", "--nocapture"]).env(SCENE, scene.name);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", scene.name);
    let told: Vec<&str> = said.lines().filter(|line| line.starts_with("left: ")).collect();
    eprintln!("{}: {}", scene.name, told.join("\n"));
}

/// Does nothing unless the test above has started it.
#[test]
fn a_scene_alone() {
    let Ok(name) = std::env::var(SCENE) else { return };
    let scene = SCENES.into_iter().find(|scene| scene.name == name).unwrap();
    let runtime = Runtime::new().unwrap();
    let sandbox = sandbox(scene.mode);
    // What is made once is made now.
    runtime.block_on(play(
        &sandbox,
        Scene { programs: scene.programs / 3, has_bombs: false, ..scene },
    ));
    let before = Has::settled(&sandbox);
    runtime.block_on(play(&sandbox, scene));
    let after = Has::settled(&sandbox);
    eprintln!("left: {before:?} before, {after:?} after");
    after.assert_no_more_than(before, KEPT_MAX);
}

async fn play(sandbox: &Sandbox, scene: Scene) {
    let mut runs = JoinSet::new();
    for at in 0..scene.programs {
        let is_bomb = scene.has_bombs && at % 3 == 0;
        let program = if is_bomb { BOMBS[at / 3 % BOMBS.len()] } else { PLAIN[at % PLAIN.len()] };
        let (sandbox, limits) = (sandbox.clone(), limits());
        runs.spawn(async move {
            let outcome = run(&sandbox, Program::of(program), limits).await;
            let kind = outcome.error.as_ref().map(|error| error.kind);
            assert_eq!(kind, is_bomb.then_some(Kind::Memory), "{program}: {outcome:?}");
        });
        while runs.len() >= scene.at_once {
            runs.join_next().await.unwrap().unwrap();
        }
    }
    runs.join_all().await;
}

/// Time enough on a slow machine.
fn limits() -> Limits {
    Limits { time: Duration::from_secs(120), ..Limits::default() }
}
