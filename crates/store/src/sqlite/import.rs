//! Writing an imported log.

use rusqlite::Connection;

use crate::chain::Chain;
use crate::error::Error;
use crate::import::Incoming;
use crate::sqlite::create::{by_key, insert};

/// Writes it, inside the writer's transaction.
pub(crate) fn import(connection: &Connection, chain: &Chain, log: &Incoming) -> Result<(), Error> {
    let Incoming { session, events, head, touched } = log;
    if by_key(connection, &session.owner, session.key.as_deref())?.is_some() {
        return Err(Error::Exists);
    }
    let events = events.iter().map(|(time, event)| (*time, event));
    insert(connection, chain, session, &session.definition, events, head, *touched)
}
