//! PostgreSQL for tests and benches: a private cluster in a temporary folder, databases in it, and a line to it that can
//! be cut. Nothing of the product depends on this. Nothing outlives the process that asked for it, however that ends.

mod account;
mod bounded;
mod cluster;
mod cut;
mod database;
mod guard;
mod port;
mod processes;
mod programs;
mod psql;

pub use cluster::Postgres;
pub use cut::{Cut, Flow, Towards};
pub use database::Database;
pub use processes::is_running;
pub use programs::{Missing, find};

/// Asks whatever database is at an address; the rows as lines, columns parted by `|`.
pub fn query(url: &str, sql: &str) -> Result<String, String> {
    let programs = find().map_err(|missing| missing.to_string())?;
    psql::query(&programs, url, sql)
}
