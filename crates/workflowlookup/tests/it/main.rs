//! The product as a user meets it: the real binary, a home folder and a project folder of its own.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod agent;
mod authoring;
mod bad_input;
mod bad_lines;
mod budgets;
mod call_log;
mod clients;
mod conformance;
mod connect;
mod crash;
mod deception;
mod disk_faults;
mod doctor;
mod findings;
mod generated;
mod guard;
mod http_agent;
mod http_attacks;
mod http_client;
mod http_ending;
mod http_replicas;
mod http_server;
mod http_streams;
mod limits;
mod listing;
mod loop_gates;
mod mcp_commands;
mod mcp_import;
mod mcp_login;
mod metrics;
mod own_server;
mod planted;
mod postgres_commands;
mod postgres_cut;
mod postgres_replicas;
mod rights;
mod running;
mod serving;
mod session_commands;
mod sessions_live;
mod store_files;
mod tenants;
mod token_commands;
mod tools_option;
mod traces;
mod transcripts;
mod unconfined;
mod upstreams;
mod walking;
mod workspace_trust;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use service::trust::{Consent, TrustRecord};

/// A home folder and a project folder, both empty at first.
struct Place {
    root: tempfile::TempDir,
    /// Where every command keeps its sessions; otherwise it is a file in the home folder.
    store: Option<String>,
}

/// What a command did.
struct Done {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap(), store: None };
        fs::create_dir_all(place.project()).unwrap();
        fs::create_dir_all(place.home()).unwrap();
        place
    }

    /// The same with its sessions elsewhere.
    fn storing(store: impl Into<String>) -> Self {
        Self { store: Some(store.into()), ..Self::new() }
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Writes a file of the project.
    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.project().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a registry of the project that a person has trusted. Consent comes first, so that nobody sees it without.
    fn write_trusted(&self, file: &str, text: impl AsRef<str>) {
        let path = self.project().join(file);
        let consent = Consent::to_registry(&path, text.as_ref()).unwrap();
        let record = self.home().join(".local/state/workflowlookup/trust/trust.json");
        TrustRecord::at(record).grant([consent]).unwrap();
        // As editors do: a reader sees the old one or the new one.
        let draft = path.with_extension("draft");
        fs::write(&draft, text.as_ref()).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// Trusts everything that the project has, as a person would who does not look.
    fn trust(&self) {
        let done = self.run(&["trust", "--yes"]);
        assert_eq!(done.status, 0, "{}", done.shown());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_workflowlookup"));
        command.args(arguments).current_dir(self.project());
        command.env_clear().env("HOME", self.home());
        command.envs(self.store.iter().map(|store| ("WORKFLOWLOOKUP_STORE", store)));
        command
    }

    /// The same command as somebody whom permissions hold back. The superuser may do everything, so for
    /// them it is run as nobody.
    #[cfg(target_os = "linux")]
    fn powerless(&self, arguments: &[&str]) -> Command {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        use std::os::unix::process::CommandExt as _;

        let program = self.root.path().join("workflowlookup");
        if !program.exists() {
            fs::set_permissions(self.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
            // Copied by another process: a file that is open for writing here, and so for a moment in
            // children of other tests, cannot be executed.
            let mut copy = Command::new("cp");
            copy.args([Path::new(env!("CARGO_BIN_EXE_workflowlookup")), &program]);
            assert!(copy.status().unwrap().success());
        }
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(self.project()).env_clear().env("HOME", self.home());
        if fs::metadata(self.root.path()).unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.finish(self.command(arguments), "")
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> Done {
        self.finish(self.command(arguments), input)
    }

    fn finish(&self, mut command: Command, input: impl AsRef<[u8]>) -> Done {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may be gone before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(self.root.path().to_str().unwrap(), "[ROOT]")
        };
        Done {
            status: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Done {
    /// Everything that a user sees, for a snapshot.
    fn shown(&self) -> String {
        let mut shown = format!("exit {}\n", self.status);
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(shown, "--- {name}\n{text}").unwrap();
                if !text.ends_with('\n') {
                    shown.push('\n');
                }
            }
        }
        shown
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }
}

/// A small good definition.
fn definition(id: &str, name: &str) -> String {
    format!(
        r#"{{"id": "{id}", "name": "{name}", "description": "For a test", "version": "1.0.0",
            "steps": [{{"id": "only", "title": "Only", "prompt": "Do it."}}]}}"#
    )
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
