//! Looks at the server once a second, for a process that serves others: whether it is there, and which handshakes were
//! ended elsewhere, so that no request has to ask. It also seals a checkpoint of what was written since the last look.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{sleep, timeout};

use super::attempts::{Attempt, Shared};
use super::checkpoint;
use super::failure::Failure;
use crate::limits::ENDED_MAX;

const LOOK: Duration = Duration::from_secs(1);
/// What takes longer is away.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// A number is given before its row is committed: so far back a late one is found.
const LATE_MAX: i64 = 1_000;
pub(super) const ENDED: &str =
    "SELECT number, id FROM ended WHERE number > $1 ORDER BY number LIMIT $2";
const PAGE: i64 = 10_000;
/// A standby, or a server that somebody has closed for writing.
const READ_ONLY: &str =
    "SELECT current_setting('transaction_read_only')::boolean OR pg_is_in_recovery()";

/// What the last look has shown.
#[derive(Debug, Default)]
pub(super) struct Watch {
    is_away: AtomicBool,
    /// None until it was read for the first time.
    ended: Mutex<Option<Ended>>,
}

#[derive(Debug, Default)]
struct Ended {
    ids: HashSet<[u8; 16]>,
    upto: i64,
}

impl Watch {
    /// From now on somebody looks. Until the first look has shown that it is there, it is away.
    pub(super) fn begin(&self) {
        self.is_away.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// None where nobody has looked.
    pub(super) fn has_ended(&self, id: &[u8; 16]) -> Option<bool> {
        self.ended().as_ref().map(|ended| ended.ids.contains(id))
    }

    /// By this process: known at once.
    pub(super) fn ends(&self, id: [u8; 16]) {
        if let Some(ended) = &mut *self.ended() {
            ended.ids.insert(id);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock()
    }

    fn upto(&self) -> i64 {
        self.ended().as_ref().map_or(0, |ended| ended.upto)
    }

    /// Takes in what was read. Says whether there is more.
    fn learn(&self, rows: Vec<(i64, [u8; 16])>) -> bool {
        let is_full = rows.len() as i64 == PAGE;
        let mut ended = self.ended();
        let ended = ended.get_or_insert_default();
        if ended.ids.len() as u64 > 2 * ENDED_MAX {
            // Most of them have been forgotten by the others too.
            *ended = Ended::default();
            return true;
        }
        ended.upto = rows.last().map_or(ended.upto, |(number, _)| *number);
        ended.ids.extend(rows.into_iter().map(|(_, id)| id));
        is_full
    }
}

/// Goes on for as long as the store does.
pub(super) async fn keep_watch(shared: Arc<Shared>) {
    // As it was told last: it need not be said that it is there at first.
    let mut was_away = false;
    loop {
        let looked = match timeout(LOOK_MAX, shared.once(|attempt| Box::pin(look(attempt)))).await {
            Ok(looked) => looked,
            Err(_) => {
                shared.doubt_connections();
                Err(Failure::Again("it does not answer".to_owned()))
            }
        };
        shared.watch.is_away.store(looked.is_err(), Ordering::Relaxed);
        match &looked {
            Ok(_) if was_away => tracing::info!("the store can be used again"),
            Err(failure) if !was_away => tracing::error!("the store is away: {failure}"),
            Ok(_) | Err(_) => {}
        }
        was_away = looked.is_err();
        if matches!(looked, Ok(true)) {
            continue;
        }
        sleep(LOOK).await;
    }
}

async fn look(attempt: Attempt<'_>) -> Result<bool, Failure> {
    let statement = attempt.client.prepare_cached(READ_ONLY).await?;
    if attempt.client.query_one(&statement, &[]).await?.try_get::<_, bool>(0)? {
        // The next connection may find another server.
        return Err(Failure::Again("it can only be read".to_owned()));
    }
    let from = attempt.shared.watch.upto() - LATE_MAX;
    let statement = attempt.client.prepare_cached(ENDED).await?;
    let mut ended = Vec::new();
    for row in attempt.client.query(&statement, &[&from, &PAGE]).await? {
        let id: &[u8] = row.try_get(1)?;
        // One of another length is nobody's.
        ended.extend(id.try_into().map(|id| (row.get(0), id)));
    }
    checkpoint::make(attempt).await?;
    Ok(attempt.shared.watch.learn(ended))
}
