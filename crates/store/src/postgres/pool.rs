//! The connections: a bounded number of them, made when they are needed, and set up so that nothing that is said over
//! them takes for ever.

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use tokio_postgres::NoTls;

use super::address::Address;
use super::failure::Failure;
use crate::error::Error;
use crate::limits::{CONNECT_MAX, STATEMENT_MAX};

/// Where our tables are, beside whatever else is in the database.
pub(super) const SCHEMA: &str = "workflowlookup";

pub(super) fn make(address: &Address, connections: usize) -> Result<Pool, Error> {
    let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match address.tls()? {
        Some(tls) => Manager::from_config(address.config(), tls, config),
        None => Manager::from_config(address.config(), NoTls, config),
    };
    let timeouts = Timeouts { wait: None, create: Some(CONNECT_MAX), recycle: None };
    let settings = settings();
    let pool = Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .timeouts(timeouts)
        .post_create(Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(
                async move { client.batch_execute(&settings).await.map_err(HookError::Backend) },
            )
        }))
        .build();
    pool.map_err(|error| Error::Unavailable(error.to_string()))
}

/// What every connection begins with. A transaction whose client is gone must not hold anything for long, and what is
/// acknowledged is on a disk, whatever the server does for others.
fn settings() -> String {
    let statement = STATEMENT_MAX.as_millis();
    format!(
        "SET search_path = {SCHEMA}; SET statement_timeout = {statement}; SET idle_in_transaction_session_timeout = \
         {statement}; SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = on; \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                match Self::from(error) {
                    Self::Final(Error::Damaged(why)) => Self::Final(Error::Unavailable(why)),
                    failure => failure,
                }
            }
            PoolError::Timeout(_) => Self::Again("it does not answer".to_owned()),
            error => Self::Again(error.to_string()),
        }
    }
}
