//! nginx in front of replicas, with the configuration that users are shown. It is in the foreground, in a folder of
//! its own, and gone when this is.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Reserved;
use crate::http_client::Connection;
use crate::http_server::Listening;
use crate::repository;
use crate::transcripts::PATIENCE;

pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
    _reserved: Reserved,
}

impl Nginx {
    pub(crate) fn start(replicas: &[SocketAddr]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let reserved = Reserved::new();
        let address = reserved.address;
        let shown = fs::read_to_string(repository().join("docs/hosting/nginx.conf")).unwrap();
        // Two are shown; who has more adds lines like theirs.
        let server = |address: SocketAddr| format!("    server {address} max_fails=0;\n");
        let servers: String = replicas.iter().copied().map(server).collect();
        let two =
            [8081, 8082].map(|port| server(SocketAddr::from(([127, 0, 0, 1], port)))).concat();
        let parts = [("127.0.0.1:8080", address.to_string()), (two.as_str(), servers)];
        let filled_in = parts.iter().fold(shown, |text, (shown, own)| {
            assert_eq!(text.matches(shown).count(), 1, "{shown}");
            text.replace(shown, own)
        });
        fs::write(folder.path().join("workflowlookup.conf"), filled_in).unwrap();
        fs::write(folder.path().join("nginx.conf"), main_file(folder.path())).unwrap();
        let mut command = Command::new(program());
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let nginx = Self { child: command.spawn().unwrap(), address, folder, _reserved: reserved };
        nginx.wait();
        nginx
    }

    /// Until it accepts connections.
    fn wait(&self) {
        let start = std::time::Instant::now();
        while Connection::open(self.address).is_err() {
            assert!(start.elapsed() < PATIENCE, "nginx does not listen: {}", self.errors());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// What it complains about.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    /// How many requests it has passed on.
    pub(crate) fn passed_on(&self) -> u64 {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap();
        log.lines().filter(|line| !line.ends_with(" -")).count() as u64
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process, whoever starts it, and everything that it writes is in one folder.
fn main_file(folder: &Path) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {};\n", folder.join(kind).display()));
    format!(
        "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log {0}/error.log warn;\n\
         events {{ worker_connections 4096; }}\nhttp {{\n{1}    log_format passed '$status $upstream_status';\n    \
         access_log {0}/access.log passed;\n    include {0}/workflowlookup.conf;\n}}\n",
        folder.display(),
        temporary.concat(),
    )
}

/// Where `cargo xtask test` has found it, or where it usually is.
fn program() -> PathBuf {
    let usual = || PathBuf::from("/usr/sbin/nginx");
    std::env::var_os("WORKFLOWLOOKUP_NGINX").map_or_else(usual, PathBuf::from)
}

/// What a replica has answered so far.
pub(crate) fn answered(replica: &Listening) -> u64 {
    let response =
        crate::http_client::Request::new("GET", "/metrics").send(replica.address).unwrap();
    let text = String::from_utf8(response.body).unwrap();
    let counts = text.lines().filter_map(|line| {
        line.strip_prefix("workflowlookup_http_responses_total{")?
            .rsplit_once(' ')?
            .1
            .parse::<u64>()
            .ok()
    });
    counts.sum()
}
