//! From rows to what is in them. What a column holds that we never put there is damage.

use tokio_postgres::Row;

use super::failure::Failure;
use crate::chain::Hash;
use crate::error::Error;
use crate::model::{Event, Head, Meta, Status};

/// What [`meta`] reads, of `sessions s`.
macro_rules! meta_columns {
    () => {
        "s.id, s.key, s.owner, s.workflow, s.goal, s.definition, s.created, s.touched, s.version, s.status, s.step, s.revision, s.number, EXISTS (SELECT 1 FROM events i WHERE i.session = s.number AND i.kind = 'imported')"
    };
}
pub(super) use meta_columns;

pub(super) fn number(row: &Row, at: usize) -> Result<u64, Failure> {
    let value: i64 = row.try_get(at)?;
    u64::try_from(value).map_err(|_| damaged("a number below zero"))
}

pub(super) fn hash(row: &Row, at: usize) -> Result<Hash, Failure> {
    let bytes: &[u8] = row.try_get(at)?;
    bytes.try_into().map_err(|_| damaged("a hash of another length"))
}

/// The status, the step and the revision, in three columns from this one on.
pub(super) fn head(row: &Row, at: usize) -> Result<Head, Failure> {
    Ok(Head {
        status: status(row, at)?,
        step: row.try_get(at + 1)?,
        revision: number(row, at + 2)?,
    })
}

pub(super) fn status(row: &Row, at: usize) -> Result<Status, Failure> {
    let value: i16 = row.try_get(at)?;
    Status::of(i64::from(value)).ok_or_else(|| damaged("a status that we do not know"))
}

pub(super) fn meta(row: &Row) -> Result<Meta, Failure> {
    Ok(Meta {
        id: row.try_get(0)?,
        key: row.try_get(1)?,
        owner: row.try_get(2)?,
        workflow: row.try_get(3)?,
        goal: row.try_get(4)?,
        definition: row.try_get(5)?,
        created: number(row, 6)?,
        touched: number(row, 7)?,
        version: number(row, 8)?,
        head: head(row, 9)?,
        is_imported: row.try_get(13)?,
    })
}

/// From the version, the time, the kind, the revision, the digest and the body.
pub(super) fn event(row: &Row) -> Result<Event, Failure> {
    let revision: Option<i64> = row.try_get(3)?;
    let digest: Option<&[u8]> = row.try_get(4)?;
    let digest = digest.map(TryInto::try_into).transpose();
    Ok(Event {
        version: number(row, 0)?,
        time: number(row, 1)?,
        kind: row.try_get(2)?,
        revision: revision.map(u64::try_from).transpose().map_err(|_| damaged("a revision"))?,
        digest: digest.map_err(|_| damaged("a digest of another length"))?,
        body: row.try_get(5)?,
    })
}

fn damaged(what: &str) -> Failure {
    Error::Damaged(format!("{what} stands in a row")).into()
}

/// For a column of numbers. What comes in was checked to fit.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn status_number(status: Status) -> i16 {
    i16::try_from(status.number()).unwrap_or_default()
}
