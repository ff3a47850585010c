//! A private cluster to try things with: prints where it is, and runs until the input ends.

#![allow(clippy::print_stdout, reason = "whoever starts this wants to know where it is")]

use std::io::Read as _;

use private_postgres::{Postgres, find};

fn main() -> Result<(), String> {
    let programs = find().map_err(|missing| missing.to_string())?;
    let mut cluster = Postgres::start(&programs)?;
    println!("{}", cluster.maintenance_url());
    // With a number, tests see whether it is gone.
    println!("{}", cluster.id().unwrap_or_default());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    cluster.stop()
}
