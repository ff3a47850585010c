//! The sealed counter, written in the transaction of what it counts. It binds the number of writes and the seals of all
//! sessions: a session that was removed, or put back as it once was, does not add up.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::chain::{Chain, Hash};
use crate::counter::{Counter, SealSum};
use crate::error::Error;
use crate::export::hex;

pub(crate) const READ: &str =
    "SELECT store, writes, sessions, sum, seal FROM counter WHERE one = 1";
/// Only over what is known: the seal binds all of it.
pub(crate) const WRITE: &str = "UPDATE counter SET writes = ?1, sessions = ?2, sum = ?3, seal = ?4 WHERE one = 1 AND seal = ?5";
const MAKE: &str = "INSERT INTO counter (one, store, writes, sessions, sum, seal)
    VALUES (1, randomblob(16), 0, 0, zeroblob(32), zeroblob(32))";
/// Goes through all sessions: for a file of an older format, and for `verify`.
const SEALS: &str = "SELECT seal FROM sessions";

const UNIT: &str = "writes";
pub(crate) const FORGED: &str = "the counter of the store was changed or removed";

/// What a write adds to the counter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delta {
    writes: u64,
    sessions: i64,
    sum: SealSum,
}

impl Delta {
    /// Something that has no sessions in it.
    pub(crate) fn wrote(&mut self) {
        self.writes += 1;
    }

    pub(crate) fn began(&mut self, seal: &Hash) {
        self.writes += 1;
        self.sessions += 1;
        self.sum.add(seal);
    }

    pub(crate) fn appended(&mut self, before: &Hash, after: &Hash) {
        self.writes += 1;
        self.sum.remove(before);
        self.sum.add(after);
    }

    pub(crate) fn removed(&mut self, seal: &Hash) {
        self.writes += 1;
        self.sessions -= 1;
        self.sum.remove(seal);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes == 0
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.writes += other.writes;
        self.sessions += other.sessions;
        self.sum.join(&other.sum);
    }
}

/// The row as it is stored. A writer keeps the one that it wrote last: as long as nobody else writes, one statement
/// replaces it.
#[derive(Debug, Clone)]
pub(crate) struct CounterRow {
    store: Vec<u8>,
    writes: u64,
    sessions: i64,
    sum: Hash,
    seal: Hash,
}

impl CounterRow {
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether it is the same counter, not set back.
    pub(crate) fn is_from(&self, earlier: &Self) -> bool {
        self.store == earlier.store && self.writes >= earlier.writes
    }

    fn read(connection: &Connection) -> Result<Option<Self>, Error> {
        let mut statement = connection.prepare_cached(READ)?;
        let row = statement.query_row([], |row| {
            let (store, writes, sessions) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Self { store, writes, sessions, sum: row.get(3)?, seal: row.get(4)? })
        });
        Ok(row.optional()?)
    }

    fn sealed(&self, chain: &Chain) -> Hash {
        chain.counter(&self.store, self.writes, self.sessions.unsigned_abs(), &self.sum)
    }

    /// The row after a transaction.
    fn after(&self, delta: &Delta, chain: &Chain) -> Self {
        let mut sum = SealSum::from_bytes(&self.sum);
        sum.join(&delta.sum);
        let mut after = Self {
            store: self.store.clone(),
            writes: self.writes + delta.writes,
            sessions: self.sessions + delta.sessions,
            sum: sum.to_bytes(),
            seal: self.seal,
        };
        after.seal = after.sealed(chain);
        after
    }

    /// Says whether the row was still the one before.
    fn replace(&self, connection: &Connection, before: &Hash) -> Result<bool, Error> {
        let Self { writes, sessions, sum, seal, .. } = self;
        let values = params![writes, sessions, sum, seal, before];
        Ok(connection.prepare_cached(WRITE)?.execute(values)? == 1)
    }

    fn counter(&self) -> Counter {
        Counter { store: hex(&self.store), count: self.writes, unit: UNIT }
    }
}

/// Makes the counter of a file that has none yet, over the sessions that are there.
pub(crate) fn make(connection: &Connection, chain: &Chain) -> Result<(), Error> {
    connection.execute(MAKE, [])?;
    let Some(row) = CounterRow::read(connection)? else { return Ok(()) };
    let (sessions, sum) = add_up(connection)?;
    let delta = Delta { writes: 0, sessions, sum };
    row.after(&delta, chain).replace(connection, &row.seal)?;
    Ok(())
}

/// Counts what a transaction has written, from the row that is known or the one that is there. A counter that was forged
/// is not sealed again: it stays as it is, and `verify` tells of it.
pub(crate) fn advance(
    connection: &Connection,
    chain: &Chain,
    delta: &Delta,
    known: Option<&CounterRow>,
) -> Result<Option<CounterRow>, Error> {
    if let Some(known) = known {
        let after = known.after(delta, chain);
        if after.replace(connection, &known.seal)? {
            return Ok(Some(after));
        }
    }
    let Some(row) = CounterRow::read(connection)?.filter(|row| row.sealed(chain) == row.seal)
    else {
        tracing::error!("{FORGED}: `workflowlookup session verify` says more");
        return Ok(None);
    };
    let after = row.after(delta, chain);
    after.replace(connection, &row.seal)?;
    Ok(Some(after))
}

/// How far the store has come.
pub(crate) fn read(connection: &Connection, chain: &Chain) -> Result<Counter, Error> {
    match CounterRow::read(connection)?.filter(|row| row.sealed(chain) == row.seal) {
        Some(row) => Ok(row.counter()),
        None => Err(Error::Damaged(FORGED.to_owned())),
    }
}

/// The counter in the database file alone, as nobody writes to it. None where it cannot be read or is not ours.
pub(crate) fn read_file(path: &Path, chain: &Chain) -> Option<CounterRow> {
    let mut uri = "file:".to_owned();
    for byte in path.to_str()?.bytes() {
        match byte {
            b'%' | b'?' | b'#' | 0x80.. => uri.push_str(&format!("%{byte:02x}")),
            byte => uri.push(char::from(byte)),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags).ok()?;
    let row = CounterRow::read(&connection).ok().flatten()?;
    (row.sealed(chain) == row.seal).then_some(row)
}

/// Compares the counter with the sessions that are there.
pub(crate) fn flaws(connection: &Connection, chain: &Chain) -> Result<Vec<String>, Error> {
    let Some(row) = CounterRow::read(connection)?.filter(|row| row.sealed(chain) == row.seal)
    else {
        return Ok(vec![FORGED.to_owned()]);
    };
    let (sessions, sum) = add_up(connection)?;
    let flaw = if sessions != row.sessions {
        let expected = row.sessions;
        format!("sessions were removed or added: {sessions} found, {expected} expected")
    } else if sum.to_bytes() != row.sum {
        "a session was put back as it once was, or replaced by another one".to_owned()
    } else {
        return Ok(Vec::new());
    };
    Ok(vec![flaw])
}

fn add_up(connection: &Connection) -> Result<(i64, SealSum), Error> {
    let (mut sessions, mut sum) = (0, SealSum::default());
    let mut statement = connection.prepare(SEALS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        sessions += 1;
        // One that is not a seal any more is found with its session.
        if let Ok(seal) = row.get(0) {
            sum.add(&seal);
        }
    }
    Ok((sessions, sum))
}
