//! The conformance suite on SQLite, with a key and without.

use store::{Key, Store};
use tempfile::TempDir;

use crate::KEY;

fn make(key: Option<Key>) -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Store::open(&folder.path().join("sessions.db"), key).unwrap(), folder)
}

mod keyed {
    crate::conformance::conformance!([] || super::make(Some(store::Key::new(super::KEY))));
}

mod plain {
    crate::conformance::conformance!([] || super::make(None));
}
