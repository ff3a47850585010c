//! A database for each test, in the server that `cargo xtask test` starts.

use std::sync::atomic::{AtomicUsize, Ordering};

use store::{Address, Key, Store};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::NoTls;

/// Where the server is.
const VARIABLE: &str = "WORKFLOWLOOKUP_POSTGRES_URL";

/// Gone with everything in it when this goes.
pub(crate) struct Database {
    name: String,
    url: String,
}

pub(crate) fn make(key: Option<Key>) -> (Store, Database) {
    let database = Database::new();
    (database.open(key), database)
}

impl Database {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let server = server();
        execute(&server, &format!("CREATE DATABASE {name}"));
        let (base, _) = server.rsplit_once('/').unwrap();
        Self { url: format!("{base}/{name}"), name }
    }

    #[allow(dead_code, reason = "for the tests that come")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn open(&self, key: Option<Key>) -> Store {
        Store::connect(&Address::parse(&self.url).unwrap(), key, 8).unwrap()
    }

    /// Does something to it behind the store's back.
    pub(crate) fn execute(&self, sql: &str) {
        execute(&self.url, sql);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        execute(&server(), &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn server() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| panic!("{VARIABLE} says where PostgreSQL is"))
}

fn execute(url: &str, sql: &str) {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        let _ = connection.await;
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
