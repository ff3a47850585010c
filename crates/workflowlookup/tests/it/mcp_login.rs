//! `mcp login` and `mcp logout`, with a server that wants a login and one that gives tokens.

#[path = "../../../orchestrator/tests/it/oauth/issuer.rs"]
#[expect(dead_code, reason = "it can do more than is asked of it here")]
mod issuer;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use super::*;
use issuer::Issuer;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The servers, as long as this is there, and a registry that names them.
struct World {
    place: Place,
    issuer: Issuer,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let issuer = runtime.block_on(Issuer::start());
        let place = Place::new();
        let entry =
            serde_json::json!({"id": "guarded", "mcp": {"transport": "http", "url": issuer.url()}});
        place.write_trusted(
            "mcp.registry.json",
            serde_json::json!({"servers": [entry]}).to_string(),
        );
        Self { place, issuer, runtime }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.place.run(&[&["--registry", "mcp.registry.json", "mcp"], arguments].concat())
    }

    /// What a command shows, without what changes.
    fn shown(&self, arguments: &[&str]) -> String {
        self.masked(&self.run(arguments).shown())
    }

    fn masked(&self, text: &str) -> String {
        assert!(!text.contains("access-token") && !text.contains("refresh-token"), "{text}");
        text.replace(&self.issuer.base, "[ISSUER]")
    }

    fn begin(&self, arguments: &[&str]) -> Login {
        let mut command = self.place.command(&["--registry", "mcp.registry.json", "mcp", "login"]);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Login::start(command)
    }

    fn browse(&self, url: &str) -> u16 {
        self.runtime.block_on(async { reqwest::get(url).await.unwrap().status().as_u16() })
    }

    fn file(&self) -> PathBuf {
        self.place.home().join(".local/state/workflowlookup/logins/logins.json")
    }
}

/// A login that waits.
struct Login {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Login {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it said in the end, and how it ended.
    fn end(mut self) -> (i32, String) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        let mut complained = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut complained).unwrap();
        (self.child.wait().unwrap().code().unwrap(), said + &complained)
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn in_and_out() {
    let world = World::new();
    insta::assert_snapshot!(world.shown(&["call", "guarded.read"]), @r#"
    exit 1
    --- stderr
    error: `guarded` does not let us in (HTTP 401): no credentials were sent (it says: Bearer error="invalid_token", scope="read", resource_metadata="[ISSUER]/.well-known/oauth-protected-resource/mcp"); log in with `workflowlookup mcp login guarded`, or name a token in `mcp.auth`
    "#);

    let mut login = world.begin(&["guarded", "--no-browser"]);
    let invitation = login.line();
    insta::assert_snapshot!(world.masked(&invitation), @"log in at `[ISSUER]` to use `guarded`, and open this address for it:");
    let url = login.line();
    assert_eq!(world.browse(&url), 200);
    let (status, said) = login.end();
    insta::assert_snapshot!(format!("{said}exit {status}"), @r"
    logged in to `guarded` for `read`
    exit 0
    ");
    assert_eq!(fs::metadata(world.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(world.file().parent().unwrap()).unwrap().permissions().mode() & 0o777,
        0o700
    );

    let called = world.run(&["call", "guarded.read"]);
    assert_eq!(
        (called.status, &*called.stdout),
        (0, "you showed access-token-3\n"),
        "{}",
        called.stderr
    );

    // The log has no token, whatever it has.
    let debugged = world.run(&["--log-level", "debug", "call", "guarded.read"]);
    assert!(
        debugged.stderr.contains("[MCP ←] guarded: ") && debugged.stderr.contains("you showed ***"),
        "{}",
        debugged.stderr
    );
    world.masked(&debugged.stderr);

    insta::assert_snapshot!(world.shown(&["logout", "guarded"]), @r"
    exit 0
    --- stdout
    logged out of `guarded`; its token was revoked
    ");
    insta::assert_snapshot!(world.shown(&["logout", "guarded"]), @r"
    exit 0
    --- stdout
    there is no login to `guarded`
    ");
    assert_eq!(world.run(&["call", "guarded.read"]).status, 1);
}

#[test]
fn as_json_and_without_a_registry() {
    let world = World::new();
    let url = world.issuer.url();
    let refused = world.shown(&["call", "--http", &url, "read"]);
    insta::assert_snapshot!(refused, @r#"
    exit 1
    --- stderr
    error: `server` does not let us in (HTTP 401): no credentials were sent (it says: Bearer error="invalid_token", scope="read", resource_metadata="[ISSUER]/.well-known/oauth-protected-resource/mcp")
      try: `workflowlookup mcp login --http [ISSUER]/mcp`
    "#);
    let mut login = world.begin(&["--http", &url, "--no-browser", "--json"]);
    // The address is not part of the answer.
    let mut note = String::new();
    BufReader::new(login.child.stderr.as_mut().unwrap()).read_line(&mut note).unwrap();
    let address = note.split_whitespace().last().unwrap();
    assert_eq!(world.browse(address), 200);
    let (status, said) = login.end();
    insta::assert_snapshot!(world.masked(&format!("{said}exit {status}")), @r#"
    {
      "server": "server",
      "issuer": "[ISSUER]",
      "scopes": [
        "read"
      ],
      "secondsLeft": 3600,
      "isRenewable": true
    }
    exit 0
    "#);
    assert_eq!(world.run(&["call", "--http", &url, "read"]).status, 0);
    // That is another one than the one in the registry.
    assert_eq!(world.run(&["call", "guarded.read"]).status, 1);
}

#[test]
fn a_browser_is_opened_where_there_is_one() {
    let world = World::new();
    let (programs, opened) =
        (world.place.root.path().join("bin"), world.place.root.path().join("opened"));
    fs::create_dir(&programs).unwrap();
    let browser = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.part\n/bin/mv {0}.part {0}\n",
        opened.display()
    );
    fs::write(programs.join(browser), script).unwrap();
    fs::set_permissions(programs.join(browser), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command =
        world.place.command(&["--registry", "mcp.registry.json", "mcp", "login", "guarded"]);
    command.env("PATH", &programs).env("DISPLAY", ":0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = Login::start(command);
    let (_, url) = (login.line(), login.line());
    let began = Instant::now();
    while !opened.exists() {
        assert!(began.elapsed() < PATIENCE, "no browser was opened");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_to_string(&opened).unwrap().trim_end(), url);
    world.browse(&url);
    assert_eq!(login.end().0, 0);
}

#[test]
fn what_can_go_wrong() {
    let world = World::new();
    insta::assert_snapshot!(world.shown(&["login", "garded", "--no-browser"]), @r"
    exit 1
    --- stderr
    error: there is no server `garded` in the registry; did you mean `guarded`?
    ");
    insta::assert_snapshot!(world.shown(&["login", "--stdio", "cat", "--no-browser"]), @"
    exit 1
    --- stderr
    error: unexpected argument '--stdio' found

      tip: to pass '--stdio' as a value, use '-- --stdio'

    Usage: workflowlookup mcp login [OPTIONS] [SERVER]

    For more information, try '--help'.
    ");
    let mut late = world.begin(&["guarded", "--no-browser", "--timeout", "300ms"]);
    let _ = (late.line(), late.line());
    let (status, said) = late.end();
    insta::assert_snapshot!(format!("{said}exit {status}"), @r"
    error: nobody completed the login within 300ms; try again
    exit 1
    ");
    world.issuer.behave(|manners| manners.registers = false);
    insta::assert_snapshot!(world.shown(&["login", "guarded", "--no-browser"]), @r#"
    exit 1
    --- stderr
    error: `[ISSUER]` registers no clients by itself; register one there with the redirect address `http://localhost:PORT/callback`, and put its id and the port into `mcp.auth` of `guarded`: `{"type": "oauth", "clientId": "…", "callbackPort": PORT}`
    "#);
    world
        .issuer
        .behave(|manners| (manners.registers, manners.refuses) = (true, Some("access_denied")));
    let mut refused = world.begin(&["guarded", "--no-browser"]);
    let (_, url) = (refused.line(), refused.line());
    world.browse(&url);
    let (status, said) = refused.end();
    insta::assert_snapshot!(format!("{said}exit {status}"), @r"
    error: the login was refused: access_denied (not today)
    exit 1
    ");
    // A file that others can read is ours to complain about.
    fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    fs::write(world.file(), "{\"version\": 1}").unwrap();
    fs::set_permissions(world.file(), fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!(world.shown(&["login", "guarded", "--no-browser"]), @r"
    exit 2
    --- stderr
    fault: `[ROOT]/home/.local/state/workflowlookup/logins/logins.json`, where tokens are kept, can be read by others, and is not used; see who did that, then `chmod 600` it, or remove it and log in anew
    ");
}

#[test]
fn doctor_looks_at_logins() {
    let world = World::new();
    let look = || {
        let done = world.place.run(&["--registry", "mcp.registry.json", "doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let checks =
            report["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "logins");
        checks
            .map(|check| format!("{}: {} ({})", check["level"], check["message"], check["hint"]))
            .collect::<Vec<_>>()
    };
    // It does not say that it wants one.
    assert_eq!(look(), [""; 0]);
    let entry = |auth: bool| {
        let mut entry = serde_json::json!({"id": "guarded", "mcp": {"transport": "http", "url": world.issuer.url()}});
        if auth {
            entry["mcp"]["auth"] = serde_json::json!({"type": "oauth"});
        }
        serde_json::json!({"servers": [entry]}).to_string()
    };
    world.place.write_trusted("mcp.registry.json", entry(true));
    let missing =
        r#""note": "the login to `guarded` is missing" ("`workflowlookup mcp login guarded`")"#;
    assert_eq!(look(), [missing]);
    world.place.write_trusted("mcp.registry.json", entry(false));
    world.issuer.behave(|manners| manners.gives_refresh_tokens = false);
    let mut login = world.begin(&["guarded", "--no-browser"]);
    let (_, url) = (login.line(), login.line());
    world.browse(&url);
    assert_eq!(login.end(), (0, "logged in to `guarded` for `read`\nthe login ends in 1h, since the server gives nothing to renew it with\n".to_owned()));
    assert_eq!(look(), [r#""ok": "1 login kept" (null)"#]);
    let kept = fs::read_to_string(world.file()).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    kept["logins"][0]["login"]["expiresAt"] = 1.into();
    fs::write(world.file(), kept.to_string()).unwrap();
    let ended =
        r#""warning": "the login to `guarded` has ended" ("`workflowlookup mcp login guarded`")"#;
    assert_eq!(look(), [ended]);
    fs::set_permissions(world.file(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(
        look()[0].contains("problem") && look()[0].contains("can be read by others"),
        "{:?}",
        look()
    );
}
