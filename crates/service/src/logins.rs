//! Where logins to other servers are kept: one file for all of them, in a folder of its own, which nobody else can look into.

use std::sync::Arc;

use orchestrator::oauth::Logins;
use orchestrator::pool::Tokens;

use crate::sessions::state_folder;

/// None where the platform has no folder for us.
pub fn logins() -> Option<Logins> {
    Some(Logins::new(state_folder()?.join("logins").join("logins.json")))
}

/// The same, for who calls servers.
pub fn tokens() -> Option<Arc<dyn Tokens>> {
    logins().map(|logins| Arc::new(logins) as Arc<dyn Tokens>)
}
