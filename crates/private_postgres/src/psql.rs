//! Asks a database by PostgreSQL's own client.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bounded;

/// A statement that waits for longer waits for ever, and the server ends it.
const STATEMENT: Duration = Duration::from_secs(120);
const CONNECT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(180);

/// The rows as lines, columns parted by `|`.
pub(crate) fn query(programs: &Path, url: &str, sql: &str) -> Result<String, String> {
    let mut command = Command::new(programs.join("psql"));
    without_settings(&mut command);
    command.env("PGCONNECT_TIMEOUT", CONNECT.as_secs().to_string());
    command.env("PGOPTIONS", format!("-c statement_timeout={}", STATEMENT.as_millis()));
    command.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--no-password"]);
    command.args(["--set", "ON_ERROR_STOP=1", "--dbname", url, "--command", sql]);
    bounded::run(&mut command, PATIENCE).map_err(|what| format!("{what}\n  asked: {sql}"))
}

/// What the user has set for other servers is not for this one, and messages are in one language.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
}
