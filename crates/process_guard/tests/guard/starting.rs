//! What a child has when it starts: its folder, its variables, its files, its limits, and nothing else of ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use process_guard::{Child, Spawn};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::processes::{Mark, bounded, command_line, guard_program};

async fn said(spawn: &Spawn) -> String {
    let Child { mut stdout, mut guarded, .. } =
        process_guard::spawn(spawn, &guard_program()).await.unwrap();
    let mut said = String::new();
    bounded(stdout.read_to_string(&mut said)).await.unwrap();
    bounded(guarded.exited()).await.unwrap();
    said
}

#[tokio::test]
async fn data_goes_through() {
    let mark = Mark::new();
    let Child { mut stdin, mut stdout, guarded: _guarded, .. } = mark.start("cat", &[]).await;
    let sent = vec![b'x'; 3_000_000];
    let writing = async {
        stdin.write_all(&sent).await.unwrap();
        drop(stdin);
    };
    let mut came = Vec::new();
    let (_, read) = tokio::join!(bounded(writing), bounded(stdout.read_to_end(&mut came)));
    read.unwrap();
    assert!(came == sent, "{} bytes", came.len());
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let args = ["-c", "printf '<%s>' \"$@\"", "sh", "", "a b", "$HOME", "--", "-", "ü\n"];
    assert_eq!(said(&command_line("sh", &args)).await, "<><a b><$HOME><--><-><ü\n>");
}

/// The kernel does not run it; whoever starts programs by a shell, or as one does, does.
#[tokio::test]
async fn a_script_needs_no_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // By another process, as another test may start one meanwhile that has the file open.
    let mut write = Command::new("sh");
    write.args(["-c", r#"echo 'printf "<%s>" "$@"' > "$0" && chmod 755 "$0""#]).arg(&script);
    assert!(write.status().unwrap().success());
    let spawn = command_line(script.to_str().unwrap(), &["a b", "-"]);
    assert_eq!(said(&spawn).await, "<a b><->");
}

/// Ours are many: those of this process and of the one that runs it. What the child sees is what the table says.
#[test]
fn the_environment_is_as_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("environ");
    let script =
        format!("tr '\\0' '\\n' < /proc/$$/environ > {0}.new; mv {0}.new {0}", file.display());
    let mark = Mark::new();
    let mut hold = Command::new(guard_program().0);
    hold.arg(script).env_clear().envs([
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("BASH_ENV", "/evil"),
        ("DOCKER_HOST", "unix:///run/docker.sock"),
        ("HOLD_MARK", &mark.variable().1),
        ("HOME", "/home/user"),
        ("HTTPS_PROXY", "http://proxy:1"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C"),
        ("NODE_OPTIONS", "--require=/evil.js"),
        ("PATH", "/usr/bin:/bin"),
        ("PYTHONPATH", "/evil"),
        ("TERM", "xterm"),
        ("TMPDIR", "/tmp"),
        ("WORKFLOWLOOKUP_DEPTH", "1"),
        ("XDG_CONFIG_HOME", "/home/user/.config"),
        ("no_proxy", "localhost"),
    ]);
    // Its input is at its end.
    assert!(hold.output().unwrap().status.success());
    let environment = fs::read_to_string(file).unwrap();
    let mut lines: Vec<&str> = environment.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n").replace(&mark.variable().1, "[MARK]"), @r"
    DOCKER_HOST=unix:///run/docker.sock
    HOME=/home/user
    HTTPS_PROXY=http://proxy:1
    LANG=C.UTF-8
    LC_ALL=C
    MARK=[MARK]
    PATH=/usr/bin:/bin
    TERM=xterm
    TMPDIR=/tmp
    WORKFLOWLOOKUP_DEPTH=2
    XDG_CONFIG_HOME=/home/user/.config
    no_proxy=localhost
    ");
}

/// None of ours, that is. What whoever started us left open for everybody, everybody has.
#[tokio::test]
async fn no_other_file_is_open() {
    // Some of ours, beside those of the runtime and of other tests.
    let _files: Vec<fs::File> = (0..20).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    let mut expected = vec!["0".to_owned(), "1".to_owned(), "2".to_owned()];
    expected.extend(handed_on());
    // The folder that it reads, which has the first number that is free.
    let read =
        (3..).map(|number: u32| number.to_string()).find(|number| !expected.contains(number));
    expected.extend(read);
    expected.sort();
    let said = said(&command_line("ls", &["/proc/self/fd"])).await;
    let mut open: Vec<&str> = said.lines().collect();
    open.sort_unstable();
    assert_eq!(open, expected);
}

/// Files of this process that stay open in a program that it becomes.
fn handed_on() -> Vec<String> {
    const CLOSED_BY_EXEC: u32 = 0o2_000_000;
    let numbers = fs::read_dir("/proc/self/fdinfo").unwrap();
    let numbers = numbers.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stays = |number: &String| {
        // Those of other tests come and go; they are closed.
        let said = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & CLOSED_BY_EXEC == 0)
    };
    let is_standard = |number: &String| ["0", "1", "2"].contains(&number.as_str());
    numbers.filter(|number| !is_standard(number) && stays(number)).collect()
}

#[tokio::test]
async fn the_guard_has_no_copy_of_the_pipes() {
    let mark = Mark::new();
    let child = mark.start("cat", &[]).await;
    let files = format!("/proc/{}/fd", child.guarded.id());
    let standard = || ["0", "1", "2"].map(|file| fs::read_link(Path::new(&files).join(file)).ok());
    let nothing = || [const { "/dev/null" }; 3].map(|file| Some(file.into()));
    crate::processes::until(|| format!("{:?}", standard()), || standard() == nothing());
}

#[tokio::test]
async fn it_runs_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/pwd", root.join("bin/where")).unwrap();
    for (command, path) in
        [("pwd", None), ("bin/where", None), ("./bin/where", None), ("where", Some("bin"))]
    {
        let spawn = Spawn {
            cwd: Some(root.clone()),
            env: path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect(),
            ..command_line(command, &[])
        };
        assert_eq!(said(&spawn).await.trim_end(), root.to_str().unwrap(), "{command}");
    }
    let here = std::env::current_dir().unwrap();
    assert_eq!(said(&command_line("pwd", &[])).await.trim_end(), here.to_str().unwrap());
}

#[tokio::test]
async fn it_leads_a_group_without_a_terminal() {
    let mark = Mark::new();
    // The process, its group, its session, its terminal.
    let script = "set -- $(cat /proc/$$/stat); echo $1 $5 $6 $7; exec sleep 1000";
    let mut child = mark.sh(script).await;
    let mut said = [0; 100];
    let count = bounded(child.stdout.read(&mut said)).await.unwrap();
    let said = std::str::from_utf8(&said[..count]).unwrap();
    let numbers: Vec<u32> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers[1..], [numbers[0], child.guarded.id(), 0]);
}

/// We allow ourselves more; a child has what we had.
#[test]
fn it_may_open_as_many_files_as_we_might() {
    let before = getrlimit(Resource::Nofile).current.unwrap().min(500);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limit");
    let script = format!(
        "ulimit -S -n {before}; exec \"$0\" 'ulimit -n > {0}.new; mv {0}.new {0}'",
        file.display()
    );
    let mut hold = Command::new("sh");
    hold.args(["-c", &script]).arg(guard_program().0);
    assert!(hold.output().unwrap().status.success());
    assert_eq!(fs::read_to_string(file).unwrap().trim_end(), before.to_string());
}

#[tokio::test]
async fn variables_of_an_entry_are_there_and_loaders_are_not() {
    let env = [("KEY", "given"), ("LD_PRELOAD", "/none.so"), ("NODE_OPTIONS", "--none")];
    let env: BTreeMap<String, String> =
        env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let script = "echo ${KEY-none} ${LD_PRELOAD-none} ${NODE_OPTIONS-none}";
    let spawn = Spawn { env, ..command_line("sh", &["-c", script]) };
    assert_eq!(said(&spawn).await, "given none none\n");
}
