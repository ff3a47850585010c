//! How something is asked of the server: an attempt that must not take long, and another one where the first came to
//! nothing, until a deadline. All that we ask may be asked twice: reads, and writes that see whether they were made
//! before.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Client, Object, Pool};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout_at};

use super::failure::Failure;
use super::schema;
use super::tips::Tips;
use super::turns::Turn;
use super::watch::Watch;
use crate::chain::Chain;
use crate::error::Error;
use crate::limits::{ATTEMPT_MAX, AWAY_MAX, WAIT_MAX};

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// What all calls share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) chain: Chain,
    pub(super) tips: Tips,
    pub(super) watch: Watch,
    /// Whether the tables are made where there are none.
    pub(super) may_make: AtomicBool,
    /// Set once the tables are there and are ours.
    prepared: OnceCell<()>,
}

/// One attempt.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'c> {
    pub(super) client: &'c Client,
    pub(super) shared: &'c Shared,
    /// An earlier one may have come to something without our hearing of it.
    pub(super) is_again: bool,
}

pub(super) type Answer<'c, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'c>>;
/// What is asked, with its arguments.
pub(super) type Ask<A, T> = for<'c> fn(Attempt<'c>, Arc<A>) -> Answer<'c, T>;

impl Shared {
    pub(super) fn new(pool: Pool, chain: Chain) -> Self {
        let (tips, watch) = Default::default();
        let may_make = AtomicBool::new(false);
        Self { pool, chain, tips, watch, may_make, prepared: OnceCell::new() }
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.initialized()
    }

    /// Asks, in its turn where there is one, until there is an answer or no more time.
    pub(super) async fn ask<A, T>(
        &self,
        ask: Ask<A, T>,
        arguments: Arc<A>,
        turn: Option<&mut Turn>,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let deadline = begun + WAIT_MAX;
        if let Some(turn) = turn
            && timeout_at(deadline, turn.come()).await.is_err()
        {
            return Err(Error::Unavailable(SILENT.to_owned()));
        }
        let mut pause = PAUSE_FIRST;
        let mut is_again = false;
        loop {
            let until = deadline.min(Instant::now() + ATTEMPT_MAX);
            let attempt = self.attempt(ask, &arguments, &mut is_again);
            let why = match timeout_at(until, attempt).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Failure::Final(error))) => return Err(error),
                Ok(Err(Failure::Again(why))) => why,
                Err(_) => {
                    self.doubt_connections();
                    SILENT.to_owned()
                }
            };
            // Where it is known to be away there is no use in having many wait for it.
            let is_late = self.watch.is_away() && begun.elapsed() >= AWAY_MAX;
            if is_late || Instant::now() + pause >= deadline {
                return Err(Error::Unavailable(why));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn attempt<A, T>(
        &self,
        ask: Ask<A, T>,
        arguments: &Arc<A>,
        is_again: &mut bool,
    ) -> Result<T, Failure> {
        self.lend(async |client| {
            let attempt = Attempt { client, shared: self, is_again: *is_again };
            *is_again = true;
            ask(attempt, Arc::clone(arguments)).await
        })
        .await
    }

    /// Asks once.
    pub(super) async fn once<T>(
        &self,
        ask: for<'c> fn(Attempt<'c>) -> Answer<'c, T>,
    ) -> Result<T, Failure> {
        self.lend(async |client| ask(Attempt { client, shared: self, is_again: false }).await).await
    }

    /// Has a connection used, once the tables are there.
    async fn lend<T>(
        &self,
        run: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut lent = Lent(Some(self.pool.get().await?));
        let Some(client) = &lent.0 else { return Err(Failure::Again(SILENT.to_owned())) };
        let may_make = self.may_make.load(Ordering::Relaxed);
        let prepare = || schema::prepare(client, &self.chain, may_make);
        let prepared = self.prepared.get_or_try_init(prepare).await;
        let answer = match prepared {
            Ok(()) => run(client).await,
            Err(failure) => Err(failure),
        };
        if !matches!(answer, Err(Failure::Again(_))) {
            lent.give_back();
        }
        answer
    }

    /// Where one connection is dead without a word, so are those that nobody uses: each would be found out in turn.
    pub(super) fn doubt_connections(&self) {
        self.pool.retain(|_, _| false);
    }
}

const SILENT: &str = "it does not answer";

/// A connection that goes back to the others only when it is known to be good: whoever drops it in the middle of
/// something leaves it in a state that nobody knows.
struct Lent(Option<Client>);

impl Lent {
    fn give_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// Does several things as one, and nothing of them where one fails.
pub(super) async fn transaction<T>(
    client: &Client,
    kind: &str,
    run: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    client.batch_execute(kind).await?;
    match run.await {
        Ok(value) => {
            client.batch_execute("COMMIT").await?;
            Ok(value)
        }
        Err(failure) => {
            // Where this fails too, the connection is not used again.
            client.batch_execute("ROLLBACK").await?;
            Err(failure)
        }
    }
}
