//! Writing an imported log.

use rusqlite::Connection;

use crate::chain::Chain;
use crate::error::Error;
use crate::import::Incoming;
use crate::sqlite::counter::Delta;
use crate::sqlite::create::insert;

/// Writes it, inside the writer's transaction.
pub(crate) fn import(
    connection: &Connection,
    chain: &Chain,
    log: &Incoming,
    delta: &mut Delta,
) -> Result<(), Error> {
    let Incoming { session, events, head, touched } = log;
    let events = events.iter().map(|(time, event)| (*time, event));
    insert(connection, chain, session, &session.definition, events, head, *touched, delta)
}
