//! Several processes with one login: one renews, and all have the new token.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use orchestrator::oauth::Logins;
use orchestrator::pool::Tokens as _;
use registry::entry::{Connect, Secret};

use super::Guarded;

/// Where the other process finds what it needs.
const FILE: &str = "TEST_LOGINS_FILE";
const URL: &str = "TEST_LOGINS_URL";
const PROCESSES: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn one_of_them_renews() {
    let guarded = Guarded::new().await;
    guarded.login().await.unwrap();
    guarded.expire();
    guarded.issuer.behave(|manners| manners.thinks = Duration::from_millis(200));
    let (file, url) = (guarded.file(), guarded.issuer.url());
    let tokens = tokio::task::spawn_blocking(move || {
        let mut others: Vec<Other> = (0..PROCESSES).map(|_| Other::start(&file, &url)).collect();
        // All are there before any begins.
        for other in &mut others {
            assert_eq!(other.line(), "ready");
        }
        for other in &mut others {
            other.go();
        }
        others.iter_mut().map(Other::line).collect::<Vec<_>>()
    });
    assert_eq!(tokens.await.unwrap(), ["access-token-4"; PROCESSES]);
    assert_eq!(guarded.issuer.asked_for("token refresh_token").len(), 1);
}

/// What the other process does. Where nobody started it as one, there is nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_process() {
    let (Some(file), Ok(url)) = (std::env::var_os(FILE), std::env::var(URL)) else { return };
    let logins = Logins::new(PathBuf::from(file));
    let connect =
        Connect::Http { url: Secret::plain(url), headers: Default::default(), auth: None };
    say("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    say(&logins.token("test", &connect).await.unwrap().unwrap());
}

/// Past the test's own output, which is kept back.
fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n> {text}").unwrap();
    out.flush().unwrap();
}

struct Other {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(file: &std::path::Path, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "oauth::processes::the_other_process", "--nocapture"])
            .env(FILE, file)
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let lines = self.output.by_ref().lines().map_while(Result::ok);
        let mut said = lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned));
        said.next().expect("it says something")
    }

    fn go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
