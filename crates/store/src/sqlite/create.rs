//! Beginning a session, inside the writer's transaction.

use rusqlite::{Connection, OptionalExtension, params};

use crate::chain::{Chain, Hash, Root};
use crate::error::Error;
use crate::model::{Created, Definition, Head, NewEvent, NewSession, Version};
use crate::sqlite::append::{Place, insert_event};
use crate::sqlite::counter::Delta;
use crate::sqlite::shares;

pub(crate) const BY_KEY: &str = "SELECT id FROM sessions WHERE owner = ?1 AND key = ?2";
pub(crate) const EXISTS: &str = "SELECT 1 FROM sessions WHERE id = ?1";
pub(crate) const SAME_DEFINITION: &str = "SELECT text = ?2 FROM definitions WHERE hash = ?1";
pub(crate) const INSERT_DEFINITION: &str = "INSERT INTO definitions (hash, text) VALUES (?1, ?2)";
pub(crate) const INSERT_SESSION: &str = "INSERT INTO sessions (id, key, owner, workflow, goal,
    definition, created, root, status, step, revision, touched, version, seal)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
pub(crate) const UPDATE_SEAL: &str = "UPDATE sessions SET seal = ?2 WHERE number = ?1";

pub(crate) fn create(
    connection: &Connection,
    chain: &Chain,
    session: &NewSession,
    delta: &mut Delta,
) -> Result<Created, Error> {
    if let Some(id) = by_key(connection, &session.owner, session.key.as_deref())? {
        return Ok(Created::Existing(id));
    }
    insert(
        connection,
        chain,
        session,
        &session.definition,
        std::iter::once((session.time, &session.event)),
        &session.head,
        session.time,
        delta,
    )?;
    Ok(Created::New)
}

fn by_key(
    connection: &Connection,
    owner: &str,
    key: Option<&str>,
) -> Result<Option<String>, Error> {
    let Some(key) = key else { return Ok(None) };
    let mut statement = connection.prepare_cached(BY_KEY)?;
    Ok(statement.query_row([owner, key], |row| row.get(0)).optional()?)
}

/// Adds a session with its events. The words of its goal and workflow are found with its first event.
#[expect(clippy::too_many_arguments, reason = "the two ways by which a session comes in share it")]
pub(crate) fn insert<'a>(
    connection: &Connection,
    chain: &Chain,
    session: &NewSession,
    definition: &Definition,
    events: impl Iterator<Item = (u64, &'a NewEvent)>,
    head: &Head,
    touched: u64,
    delta: &mut Delta,
) -> Result<(), Error> {
    if connection.prepare_cached(EXISTS)?.exists([&session.id])? {
        return Err(Error::Exists);
    }
    keep_definition(connection, definition)?;
    let root = chain.root(&Root::of(session));
    let events: Vec<_> = events.collect();
    let version = events.len() as Version;
    let number = connection.prepare_cached(INSERT_SESSION)?.insert(params![
        session.id,
        session.key,
        session.owner,
        session.workflow,
        session.goal,
        definition.hash,
        session.time,
        root,
        head.status.number(),
        head.step,
        head.revision,
        touched,
        version,
        root,
    ])?;
    let place = Place { session: &session.id, number, owner: &session.owner };
    let mut last: Hash = root;
    for (version, (time, event)) in (1..).zip(events) {
        let first;
        let event = if version == 1 {
            let outcome = event.search.as_deref().unwrap_or_default();
            let search = format!("{} {} {outcome}", session.workflow, session.goal);
            first = NewEvent { search: Some(search), ..event.clone() };
            &first
        } else {
            event
        };
        last = insert_event(connection, chain, &place, &last, version, time, event)?;
    }
    let seal = chain.seal(&last, &session.id, version, head, touched);
    connection.prepare_cached(UPDATE_SEAL)?.execute(params![number, seal])?;
    delta.began(&seal);
    session.shared_with.iter().try_for_each(|name| shares::add(connection, number, name))?;
    Ok(())
}

fn keep_definition(connection: &Connection, definition: &Definition) -> Result<(), Error> {
    let Definition { hash, text } = definition;
    let is_same = connection
        .prepare_cached(SAME_DEFINITION)?
        .query_row([hash, text], |row| row.get::<_, bool>(0))
        .optional()?;
    match is_same {
        Some(true) => Ok(()),
        Some(false) => Err(Error::Invalid {
            what: "definition",
            why: "its hash belongs to another text already",
        }),
        None => {
            connection.prepare_cached(INSERT_DEFINITION)?.execute([hash, text])?;
            Ok(())
        }
    }
}
