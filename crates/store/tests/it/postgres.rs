//! The conformance suite on PostgreSQL, and what is only true of a server.

mod databases;

mod keyed {
    crate::conformance::conformance!(
        [#[ignore = "needs PostgreSQL: cargo xtask test"]]
        || super::databases::make(Some(store::Key::new(crate::KEY)))
    );
}

mod plain {
    crate::conformance::conformance!(
        [#[ignore = "needs PostgreSQL: cargo xtask test"]]
        || super::databases::make(None)
    );
}
