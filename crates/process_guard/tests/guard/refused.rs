//! What cannot be started, and what is said about it.

use std::fs;
use std::path::Path;
use std::process::Command;

use process_guard::stderr::{LastWords, drain};
use process_guard::{Child, GuardProgram, Spawn, shown};

use crate::processes::{Mark, bounded, command_line, guard_program};

/// By another process: a file that is open for writing here, and so for a moment in children of other tests, cannot be
/// executed.
fn write(path: &Path, text: &str, mode: &str) {
    let mut write = Command::new("sh");
    write.args(["-c", "printf %s \"$1\" > \"$0\" && chmod $2 \"$0\""]).arg(path).args([text, mode]);
    assert!(write.status().unwrap().success());
}

#[tokio::test]
async fn what_is_wrong_is_said_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(&root.join("text"), "only text", "644");
    fs::create_dir(root.join("folder")).unwrap();
    let path = [("PATH".to_owned(), format!("/nowhere:{}", root.display()))];
    let here = |command: &str| Spawn {
        env: path.clone().into(),
        cwd: Some(root.to_owned()),
        ..command_line(command, &[])
    };
    let named = |cwd: &str| Spawn { cwd: Some(root.join(cwd)), ..command_line("true", &[]) };
    let variable =
        Spawn { env: [("A=B".to_owned(), String::new())].into(), ..command_line("true", &[]) };
    let spawns = [
        here(""),
        here("no-such-command"),
        here("./missing"),
        here("text/inside"),
        here("folder"),
        here("./folder"),
        here("text"),
        here("./text"),
        named("missing"),
        named("text"),
        variable,
    ];
    let mut said = Vec::new();
    for spawn in spawns {
        let error = process_guard::spawn(&spawn, &guard_program()).await.unwrap_err();
        said.push(error.to_string().replace(root.to_str().unwrap(), "[ROOT]"));
    }
    insta::assert_snapshot!(said.join("\n\n"), @"
    there is no command to start: `command` is empty

    there is no program `no-such-command` in the folders of `PATH`: /nowhere:[ROOT]
    install it, or give its whole path as `command`

    there is no program `[ROOT]/missing`, which `command` names

    there is no program `[ROOT]/text/inside`, which `command` names

    there is no program `folder` in the folders of `PATH`: /nowhere:[ROOT]
    install it, or give its whole path as `command`

    `[ROOT]/folder`, which `command` names, is a folder and not a program

    `[ROOT]/text`, which `command` names, may not be executed
    if it is a program, `chmod +x` allows it

    `[ROOT]/text`, which `command` names, may not be executed
    if it is a program, `chmod +x` allows it

    there is no folder `[ROOT]/missing`, which `cwd` names

    `[ROOT]/text`, which `cwd` names, is not a folder

    `A=B` cannot be the name of a variable in `env`
    ");
}

/// The files are there; what they are is only known when they are run.
#[tokio::test]
async fn what_the_kernel_does_not_run_is_said_by_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(&root.join("no-interpreter"), "#!/no/such/interpreter\n", "755");
    let long = "x".repeat(200_000);
    let mut said = Vec::new();
    for (command, args) in [("./no-interpreter", &[][..]), ("/bin/true", &[long.as_str()])] {
        let spawn = Spawn { cwd: Some(root.to_owned()), ..command_line(command, args) };
        let line = match process_guard::spawn(&spawn, &guard_program()).await {
            Ok(Child { stderr, mut guarded, .. }) => {
                let last_words = LastWords::default();
                bounded(drain(stderr, last_words.clone(), |_| {})).await;
                let status = shown(bounded(guarded.exited()).await.unwrap());
                format!("the server ended with {status}{last_words}")
            }
            Err(error) => error.to_string(),
        };
        let guard = guard_program().0;
        let line = line.replace(root.to_str().unwrap(), "[ROOT]");
        said.push(line.replace(guard.to_str().unwrap(), "[GUARD]"));
    }
    insta::assert_snapshot!(said.join("\n\n"), @"
    the server ended with status 127; its last words:
      `[ROOT]/no-interpreter` could not be started: the interpreter in its first line is not there, or it is for another system

    the arguments and variables of `/bin/true` are too long for the system
    ");
}

#[tokio::test]
async fn a_guard_that_is_not_there_is_named() {
    let missing = GuardProgram("/no/such/guard".into());
    let error = process_guard::spawn(&command_line("/bin/true", &[]), &missing).await.unwrap_err();
    insta::assert_snapshot!(error, @"the guard of `/bin/true` could not be started from `/no/such/guard`: No such file or directory (os error 2)");
}

#[test]
fn a_program_that_starts_itself_is_stopped() {
    let mark = Mark::new();
    let mut hold = Command::new(guard_program().0);
    hold.arg("exec sleep 1000").env("WORKFLOWLOOKUP_DEPTH", "4");
    let output = hold.env("HOLD_MARK", mark.variable().1).output().unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"
    this program was started by itself, through other servers, 4 times; 4 is the most
    look for an entry whose command leads back here; `WORKFLOWLOOKUP_DEPTH` counts
    ");
    assert_eq!(mark.processes(), []);
}
