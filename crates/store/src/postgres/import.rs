//! Writing an imported log, all of it or nothing.

use std::sync::Arc;

use deadpool_postgres::Client;

use super::append::{columns, link_of};
use super::attempts::{Attempt, transaction};
use super::create::{BY_ID, found_by};
use super::failure::Failure;
use super::rows::{hash, signed, status_number};
use super::tsvector::TsVector;
use crate::chain::{Hash, Root};
use crate::error::Error;
use crate::import::Incoming;
use crate::model::{Status, Version};
use crate::words::owner_word;

pub(super) const PIN: &str =
    "INSERT INTO definitions (hash, text) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
pub(super) const SAME_DEFINITION: &str = "SELECT text = $2 FROM definitions WHERE hash = $1";
pub(super) const BEGIN: &str =
    "INSERT INTO sessions (id, key, owner, workflow, goal, definition, created, root,
        status, step, revision, touched, version, seal, finished)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT DO NOTHING RETURNING number";
pub(super) const EVENT: &str =
    "INSERT INTO events (session, version, time, kind, revision, digest, hash, body, words)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

pub(super) async fn import(attempt: Attempt<'_>, log: Arc<Incoming>) -> Result<(), Failure> {
    let Attempt { client, shared, is_again } = attempt;
    let session = &log.session;
    let mut hashes: Vec<Hash> = Vec::with_capacity(log.events.len());
    let start = shared.chain.root(&Root::of(session));
    for (version, (time, event)) in (1..).zip(&log.events) {
        let previous = hashes.last().unwrap_or(&start);
        hashes.push(shared.chain.link(previous, &link_of(&session.id, version, *time, event)));
    }
    let last = hashes.last().unwrap_or(&start);
    let version = log.events.len() as Version;
    let seal = shared.chain.seal(last, &session.id, version, &log.head, log.touched);
    let written = transaction(client, "BEGIN", write(client, &log, &start, &hashes, &seal)).await;
    if is_again && matches!(written, Err(Failure::Final(Error::Exists))) {
        let statement = client.prepare_cached(BY_ID).await?;
        let row = client.query_opt(&statement, &[&session.id]).await?;
        // Ours, from an attempt that we did not hear of.
        if let Some(row) = row
            && hash(&row, 1)? == seal
        {
            return Ok(());
        }
    }
    written
}

async fn write(
    client: &Client,
    log: &Incoming,
    root: &Hash,
    hashes: &[Hash],
    seal: &Hash,
) -> Result<(), Failure> {
    let Incoming { session, events, head, touched } = log;
    let (definition, text) = (&session.definition.hash, &session.definition.text);
    client.execute(PIN, &[definition, text]).await?;
    if !client.query_one(SAME_DEFINITION, &[definition, text]).await?.try_get::<_, bool>(0)? {
        let why = "its hash belongs to another text already";
        return Err(Error::Invalid { what: "definition", why }.into());
    }
    let (status, revision, touched) =
        (status_number(head.status), signed(head.revision), signed(*touched));
    let finished = (head.status == Status::Complete).then_some(touched);
    let row = client
        .query_opt(
            BEGIN,
            &[
                &session.id,
                &session.key,
                &session.owner,
                &session.workflow,
                &session.goal,
                definition,
                &signed(session.time),
                &root.as_slice(),
                &status,
                &head.step,
                &revision,
                &touched,
                &signed(events.len() as Version),
                &seal.as_slice(),
                &finished,
            ],
        )
        .await?;
    let number: i64 = row.ok_or(Error::Exists)?.try_get(0)?;
    let statement = client.prepare_cached(EVENT).await?;
    let owner = owner_word(&session.owner);
    for (version, ((time, event), hash)) in (1_i64..).zip(events.iter().zip(hashes)) {
        let (revision, digest) = columns(event);
        let found = if version == 1 { Some(found_by(session)) } else { event.search.clone() };
        let words = found.map(|text| TsVector::of(&text, &owner));
        let hash = hash.as_slice();
        client
            .execute(
                &statement,
                &[
                    &number,
                    &version,
                    &signed(*time),
                    &event.kind,
                    &revision,
                    &digest,
                    &hash,
                    &event.body,
                    &words,
                ],
            )
            .await?;
    }
    Ok(())
}
