//! Beginning a session: its row, its first event and what it follows, in one statement. One that is shared counts with the
//! others of its owner, in a transaction.

use std::sync::Arc;

use deadpool_postgres::Client;

use super::append::{columns, link_of};
use super::attempts::{Attempt, transaction};
use super::failure::Failure;
use super::rows::{hash, signed, status_number};
use super::shares::{check_open, lock_owner};
use super::tips::Tip;
use super::tsvector::TsVector;
use crate::chain::{Hash, Root};
use crate::error::Error;
use crate::model::{Created, NewSession, Status};
use crate::words::owner_word;

pub(super) const CREATE: &str = "WITH pinned AS (
        INSERT INTO definitions (hash, text) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING
    ), begun AS (
        INSERT INTO sessions (id, key, owner, workflow, goal, definition, created, root, status, step, revision,
            touched, version, seal, finished)
        SELECT $3, $4, $5, $6, $7, $1, $8, $9, $10, $11, $12, $8, 1, $13, $14
        WHERE NOT EXISTS (SELECT 1 FROM definitions WHERE hash = $1 AND text <> $2)
        ON CONFLICT DO NOTHING RETURNING number
    ), shared AS (
        INSERT INTO shares (session, principal) SELECT DISTINCT number, name FROM begun, unnest($21::text[]) name
    )
    INSERT INTO events (session, version, time, kind, revision, digest, hash, body, words)
    SELECT number, 1, $8, $15, $16, $17, $18, $19, $20 FROM begun
    RETURNING session";
pub(super) const BY_KEY: &str = "SELECT id FROM sessions WHERE owner = $1 AND key = $2";
pub(super) const BY_ID: &str = "SELECT root, seal FROM sessions WHERE id = $1";
pub(super) const OTHER_DEFINITION: &str =
    "SELECT 1 FROM definitions WHERE hash = $1 AND text <> $2";

pub(super) async fn create(
    attempt: Attempt<'_>,
    session: Arc<NewSession>,
) -> Result<Created, Failure> {
    let Attempt { client, shared, is_again } = attempt;
    let chain = &shared.chain;
    let NewSession { definition, event, head, time, .. } = &*session;
    let root = chain.root(&Root::of(&session));
    let link = chain.link(&root, &link_of(&session.id, 1, *time, event));
    let seal = chain.seal(&link, &session.id, 1, head, *time);
    let (status, revision, at) = (status_number(head.status), signed(head.revision), signed(*time));
    let finished = (head.status == Status::Complete).then_some(at);
    let (event_revision, digest) = columns(event);
    let owner: Arc<str> = owner_word(&session.owner).into();
    let words = TsVector::of(&found_by(&session), &owner);
    let (root_bytes, link_bytes, seal_bytes) = (&root[..], &link[..], &seal[..]);
    let insert = async {
        let statement = client.prepare_cached(CREATE).await?;
        let row = client
            .query_opt(
                &statement,
                &[
                    &definition.hash,
                    &definition.text,
                    &session.id,
                    &session.key,
                    &session.owner,
                    &session.workflow,
                    &session.goal,
                    &at,
                    &root_bytes,
                    &status,
                    &head.step,
                    &revision,
                    &seal_bytes,
                    &finished,
                    &event.kind,
                    &event_revision,
                    &digest,
                    &link_bytes,
                    &event.body,
                    &words,
                    &session.shared_with,
                ],
            )
            .await?;
        Ok(row.is_some())
    };
    let is_new = match &*session.shared_with {
        [] => insert.await,
        names => {
            let owner = &session.owner;
            let share = async {
                lock_owner(client, owner).await?;
                let is_new = insert.await?;
                if is_new {
                    for name in names {
                        check_open(client, owner, name).await?;
                    }
                }
                Ok(is_new)
            };
            transaction(client, "BEGIN", share).await
        }
    };
    if is_new? {
        shared.tips.put(&session.id, Tip { version: 1, hash: link, seal, owner });
        return Ok(Created::New);
    }
    why_not(client, &session, &root, is_again).await
}

/// Something was in the way.
async fn why_not(
    client: &Client,
    session: &NewSession,
    root: &Hash,
    is_again: bool,
) -> Result<Created, Failure> {
    if let Some(id) = by_key(client, session).await? {
        return Ok(Created::Existing(id));
    }
    let statement = client.prepare_cached(BY_ID).await?;
    if let Some(row) = client.query_opt(&statement, &[&session.id]).await? {
        // Ours, from an attempt that we did not hear of.
        let is_ours = is_again && hash(&row, 0)? == *root;
        return if is_ours { Ok(Created::New) } else { Err(Error::Exists.into()) };
    }
    let (hash, text) = (&session.definition.hash, &session.definition.text);
    let statement = client.prepare_cached(OTHER_DEFINITION).await?;
    if client.query_opt(&statement, &[hash, text]).await?.is_some() {
        let why = "its hash belongs to another text already";
        return Err(Error::Invalid { what: "definition", why }.into());
    }
    // It was there a moment ago.
    Err(Failure::Again("somebody else begins and ends the same session".to_owned()))
}

pub(super) async fn by_key(
    client: &Client,
    session: &NewSession,
) -> Result<Option<String>, Failure> {
    let Some(key) = &session.key else { return Ok(None) };
    let statement = client.prepare_cached(BY_KEY).await?;
    let row = client.query_opt(&statement, &[&session.owner, key]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// The words of a session's goal and workflow are found with its first event.
pub(super) fn found_by(session: &NewSession) -> String {
    let outcome = session.event.search.as_deref().unwrap_or_default();
    format!("{} {} {outcome}", session.workflow, session.goal)
}
