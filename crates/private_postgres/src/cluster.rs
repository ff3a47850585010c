//! A cluster of our own: made, started, killed as a crash would, started again, and gone with its folder in the end.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::account::Account;
use crate::guard::Guard;
use crate::port::Port;
use crate::processes::{self, Signal};
use crate::{bounded, psql};

/// The superuser of the cluster, and the database that is there from the start.
const NAME: &str = "postgres";
/// Making a cluster takes a second or two, where nobody else is at work.
const INITIALISING: Duration = Duration::from_secs(120);
const ANSWERING: Duration = Duration::from_secs(60);
const STOPPING: Duration = Duration::from_secs(60);
const STOPPING_AT_ONCE: Duration = Duration::from_secs(10);
const DYING: Duration = Duration::from_secs(10);
/// How often another port is tried when somebody was faster.
const PORTS: usize = 5;
/// How much of the log an error shows.
const LINES: usize = 20;
/// A commit is written before it is answered, and what was written survives the server's death; only the machine's own
/// is not provided for. What shared memory has files has them in our folder.
const SETTINGS: [&str; 7] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "fsync=off",
    "synchronous_commit=on",
    "dynamic_shared_memory_type=mmap",
    "log_line_prefix=%m [%p] %a ",
];

pub struct Postgres {
    programs: PathBuf,
    settings: Vec<String>,
    account: Account,
    port: Port,
    server: Option<Child>,
    guard: Guard,
    /// Removed last.
    folder: TempDir,
}

impl Postgres {
    /// `programs` is the folder with PostgreSQL's programs, see [`crate::find`].
    pub fn start(programs: &Path) -> Result<Self, String> {
        Self::start_with(programs, &[])
    }

    /// The same with settings of its own, which win over ours.
    pub fn start_with(programs: &Path, settings: &[&str]) -> Result<Self, String> {
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let account = Account::choose()?;
        let folder = account.folder()?;
        let guard = Guard::start(folder.path())?;
        let port = Port::reserve()?;
        let programs = programs.to_path_buf();
        let mut cluster = Self { programs, settings, account, port, server: None, guard, folder };
        cluster.initialise()?;
        for _ in 1..PORTS {
            match cluster.launch() {
                Err(Failure::Ended(_)) => cluster.port = Port::reserve()?,
                launched => return launched.map_err(Failure::what).map(|()| cluster),
            }
        }
        cluster.launch().map_err(Failure::what)?;
        Ok(cluster)
    }

    /// Where one of its databases is.
    pub fn url(&self, database: &str) -> String {
        self.url_at(self.address(), database)
    }

    /// The same by way of another address, such as a [`crate::Cut`]'s.
    pub fn url_at(&self, address: SocketAddr, database: &str) -> String {
        format!("postgres://{NAME}@{address}/{database}")
    }

    /// The database that is there from the start, in which others can be made.
    pub fn maintenance_url(&self) -> String {
        self.url(NAME)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()))
    }

    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// The server's process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Asks a database; the rows as lines, columns parted by `|`.
    pub fn query(&self, database: &str, sql: &str) -> Result<String, String> {
        psql::query(&self.programs, &self.url(database), sql)
    }

    /// As a crash: every process of the server is killed in the middle of what it does, and says nothing to anybody.
    /// What was committed is there after [`Self::restart`].
    pub fn kill(&mut self) -> Result<(), String> {
        let Some(server) = &mut self.server else { return Ok(()) };
        let id = server.id();
        // Stopped, it begins no process that would be missed, and keeps the numbers of those that end. They are not in
        // its group: each makes one of its own.
        processes::signal(id, Signal::STOP);
        bounded::until(DYING, || processes::is_stopped(id));
        let children = processes::children(id);
        children.iter().for_each(|child| processes::signal(*child, Signal::KILL));
        // Only when the last has let go of the shared memory can the next server have it.
        let are_dead =
            bounded::until(DYING, || !children.iter().any(|child| processes::is_running(*child)));
        let killed = server.kill().and_then(|()| server.wait());
        self.server = None;
        self.guard.forget();
        match killed {
            Ok(_) if are_dead => Ok(()),
            Ok(_) => Err(format!("some of PostgreSQL's processes do not die: {children:?}")),
            Err(error) => Err(format!("PostgreSQL cannot be killed: {error}")),
        }
    }

    /// Ends it in order: transactions are broken off, clients are told, all is written.
    pub fn stop(&mut self) -> Result<(), String> {
        self.end(Signal::INT, STOPPING)
    }

    /// Starts it again, on the same port with the same data, after it was killed or stopped; one that runs is stopped
    /// before.
    pub fn restart(&mut self) -> Result<(), String> {
        self.stop()?;
        self.launch().map_err(Failure::what)
    }

    fn initialise(&self) -> Result<(), String> {
        let mut command = self.program("initdb");
        command.args(["--username", NAME, "--auth", "trust", "--encoding", "UTF8"]);
        command.args(["--locale", "C", "--no-sync", "--pgdata"]).arg(self.data());
        bounded::run(&mut command, INITIALISING).map(drop)
    }

    /// Starts the server and waits until it answers.
    fn launch(&mut self) -> Result<(), Failure> {
        let broken = |error: std::io::Error| Failure::Broken(format!("PostgreSQL's log: {error}"));
        let log = File::options().create(true).append(true).open(self.log_file());
        let log = log.map_err(broken)?;
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port().to_string()]);
        let own = self.settings.iter().map(String::as_str);
        command.args(SETTINGS.into_iter().chain(own).flat_map(|setting| ["-c", setting]));
        // What ends our group of processes, such as a key of the terminal, is not for the server to see; its guard
        // ends it.
        command.process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(broken)?).stderr(log);
        let server = command.spawn();
        let server = server
            .map_err(|error| Failure::Broken(format!("`postgres` did not start: {error}")))?;
        let watched = self.guard.watch(server.id());
        self.server = Some(server);
        watched.map_err(|error| Failure::Broken(format!("PostgreSQL's guard is gone: {error}")))?;
        self.wait()
    }

    fn wait(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while !self.is_ready() {
            let Some(server) = &mut self.server else { break };
            if let Ok(Some(status)) = server.try_wait() {
                self.server = None;
                self.guard.forget();
                let what = format!("PostgreSQL ended with {status} as it started");
                return Err(Failure::Ended(self.with_log(&what)));
            }
            if start.elapsed() > ANSWERING {
                let what = format!("PostgreSQL does not answer after {ANSWERING:?}");
                return Err(Failure::Broken(self.with_log(&what)));
            }
            std::thread::sleep(bounded::PAUSE);
        }
        Ok(())
    }

    /// As the server says itself: whoever answers on the port might be somebody else. The file has the server's number
    /// in the first line, and how it is in the eighth.
    fn is_ready(&self) -> bool {
        let file = fs::read_to_string(self.lock_file()).unwrap_or_default();
        let mut lines = file.lines();
        let is_ours = lines.next().map(str::parse) == self.id().map(Ok);
        is_ours && lines.nth(6).is_some_and(|status| status.trim_end() == "ready")
    }

    fn end(&mut self, signal: Signal, limit: Duration) -> Result<(), String> {
        let Some(server) = &mut self.server else { return Ok(()) };
        processes::signal(server.id(), signal);
        if let Ok(Some(_)) = bounded::wait(server, limit) {
            self.server = None;
            self.guard.forget();
            return Ok(());
        }
        let what = format!("PostgreSQL did not stop within {limit:?}, and was killed");
        self.kill().and_then(|()| Err(self.with_log(&what)))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        // Ours may be a folder that the account cannot enter.
        command.current_dir(self.folder.path());
        psql::without_settings(&mut command);
        self.account.apply(&mut command);
        command
    }

    fn with_log(&self, what: &str) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        format!("{what}; the end of its log:\n  {}", last.join("\n  "))
    }

    /// A server that was killed leaves a few bytes of shared memory, which only the next one would clear away.
    fn clear(&self) {
        let file = fs::read_to_string(self.lock_file()).unwrap_or_default();
        if let Some(id) = file.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
            let mut command = Command::new("ipcrm");
            // There are systems without this program, and the machine's next start clears all.
            let _ = bounded::run(command.args(["-m", id]), DYING);
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("postgres.log")
    }

    fn lock_file(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Nobody needs the data, so it need not be written. One that does not listen is killed by `end`.
        let _ = self.end(Signal::QUIT, STOPPING_AT_ONCE);
        self.clear();
    }
}

enum Failure {
    /// It ended by itself; perhaps because somebody else has taken the port.
    Ended(String),
    Broken(String),
}

impl Failure {
    fn what(self) -> String {
        match self {
            Self::Ended(what) | Self::Broken(what) => what,
        }
    }
}
