//! The conformance suite on PostgreSQL, and what is only true of a server.

mod cut;
mod opening;
mod racing;
mod tampering;
mod travel;

use std::path::PathBuf;

use private_postgres::Database;
use store::{Address, Key, Store};

use crate::KEY;

fn make(key: Option<Key>) -> (Store, Database) {
    let database = Database::create().unwrap();
    (Store::connect(&Address::parse(&database.url()).unwrap(), key, 8).unwrap(), database)
}

/// A store with our key.
fn prepare() -> (Store, Database) {
    make(Some(Key::new(KEY)))
}

fn place(database: &Database) -> PathBuf {
    database.url().into()
}

mod keyed {
    crate::conformance::conformance!(
        [#[ignore = "needs PostgreSQL: cargo xtask test"]]
        super::prepare
    );
}

mod plain {
    crate::conformance::conformance!(
        [#[ignore = "needs PostgreSQL: cargo xtask test"]]
        || super::make(None)
    );
}
