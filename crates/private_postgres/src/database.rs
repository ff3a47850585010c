//! A database of one test's own, in a cluster that many tests share: the one that `cargo xtask test` started, or one that
//! this process starts for itself where nobody has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::{Postgres, find, port, psql};

/// Where the cluster is that `cargo xtask test` started: its maintenance database.
const VARIABLE: &str = "WORKFLOWLOOKUP_POSTGRES_URL";

pub struct Database {
    programs: PathBuf,
    maintenance: String,
    name: String,
}

impl Database {
    pub fn create() -> Result<Self, String> {
        let programs = find().map_err(|missing| missing.to_string())?;
        let maintenance = maintenance(&programs)?;
        let name = format!("test_{:016x}", port::random());
        psql::query(&programs, &maintenance, &format!("create database {name}"))?;
        Ok(Self { programs, maintenance, name })
    }

    pub fn url(&self) -> String {
        replaced(&self.maintenance, None, &self.name)
    }

    /// The same by way of another address, such as a [`crate::Cut`]'s.
    pub fn url_at(&self, address: SocketAddr) -> String {
        replaced(&self.maintenance, Some(address), &self.name)
    }

    /// Where the cluster listens.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let host = parts(&self.maintenance).host;
        host.parse().map_err(|_| format!("`{host}` in `{VARIABLE}` is not an address and a port"))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows as lines, columns parted by `|`.
    pub fn query(&self, sql: &str) -> Result<String, String> {
        psql::query(&self.programs, &self.url(), sql)
    }
}

impl Drop for Database {
    /// Also under those who are still connected, or nobody would know why the next test finds no connection left.
    fn drop(&mut self) {
        let sql = format!("drop database if exists {} with (force)", self.name);
        let _ = psql::query(&self.programs, &self.maintenance, &sql);
    }
}

fn maintenance(programs: &std::path::Path) -> Result<String, String> {
    // Never dropped, as it is static; its guard ends it with this process.
    static OURS: OnceLock<Result<Postgres, String>> = OnceLock::new();
    match std::env::var(VARIABLE) {
        Ok(url) => Ok(url),
        Err(_) => {
            let ours = OURS.get_or_init(|| Postgres::start(programs));
            ours.as_ref().map(Postgres::maintenance_url).map_err(String::clone)
        }
    }
}

/// `postgres://` user `@` host `/` database `?` settings
struct Parts<'a> {
    before: &'a str,
    host: &'a str,
    after: &'a str,
}

fn parts(url: &str) -> Parts<'_> {
    let (rest, after) = url.find('?').map_or((url, ""), |at| url.split_at(at));
    let start = rest.find("://").map_or(0, |at| at + 3);
    let start = rest[start..].rfind('@').map_or(start, |at| start + at + 1);
    let end = rest[start..].find('/').map_or(rest.len(), |at| start + at);
    Parts { before: &rest[..start], host: &rest[start..end], after }
}

fn replaced(url: &str, address: Option<SocketAddr>, database: &str) -> String {
    let Parts { before, host, after } = parts(url);
    let host = address.map_or_else(|| host.to_owned(), |address| address.to_string());
    format!("{before}{host}/{database}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_another_database_or_another_address() {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 9)));
        let url = "postgres://me:a/b@host:5432/postgres?sslmode=require";
        assert_eq!(replaced(url, None, "x"), "postgres://me:a/b@host:5432/x?sslmode=require");
        assert_eq!(replaced(url, address, "x"), "postgres://me:a/b@127.0.0.1:9/x?sslmode=require");
        assert_eq!(replaced("postgres://host", None, "x"), "postgres://host/x");
    }
}
