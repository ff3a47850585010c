//! How upstreams are treated, all of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use registry::entry::Connect;

use crate::wire::WireLog;
use process_guard::GuardProgram;

/// Results up to here are handed over whole: clients refuse what has more than some 25,000 tokens.
const RESULT_LIMIT: usize = 64 * 1024;
/// What is kept of larger ones, all together.
const KEPT_LIMIT: u64 = 256 * 1024 * 1024;
/// Programs that are fetched first (`npx`, `uvx`) take their time.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// The longest call, however much progress it makes and whatever a person thinks about.
const TOTAL_LIMIT: Duration = Duration::from_secs(600);

/// What a host decides.
#[derive(Clone)]
pub struct Options {
    /// The program that watches over children.
    pub guard: GuardProgram,
    /// Where every message is written down.
    pub wire: Option<WireLog>,
    /// Who has tokens for servers that one logs in to.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Results that are larger than this as text are cut, and kept whole beside.
    pub result_limit: usize,
    /// How many bytes of large results are kept; the oldest go first.
    pub kept_limit: u64,
    /// How long connecting goes on, also after those who wanted it have given up.
    pub connect_limit: Duration,
    /// How long a call may take that makes progress, or asks a person.
    pub total_limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            guard: GuardProgram::default(),
            wire: None,
            tokens: None,
            result_limit: RESULT_LIMIT,
            kept_limit: KEPT_LIMIT,
            connect_limit: CONNECT_LIMIT,
            total_limit: TOTAL_LIMIT,
        }
    }
}

/// Tokens that were obtained by logging in. One belongs to an upstream at its address: whoever asks says how it is reached.
pub trait Tokens: Send + Sync {
    /// The one to send now; nothing where nobody logged in.
    fn token<'f>(
        &'f self,
        server: &'f str,
        connect: &'f Connect,
    ) -> Boxed<'f, Result<Option<String>, NoToken>>;

    /// The server did not let us in. Whether there is another token to try.
    fn refused<'f>(&'f self, refusal: Refusal<'f>) -> Boxed<'f, Result<bool, NoToken>>;

    /// All that must not be seen anywhere. The same one as long as nothing is added.
    fn secrets(&self) -> Arc<[String]>;
}

/// What a server said to a token, or to none.
#[derive(Clone, Copy)]
pub struct Refusal<'r> {
    pub server: &'r str,
    pub connect: &'r Connect,
    /// The one that was sent.
    pub token: Option<&'r str>,
    /// 401, or 403.
    pub status: u16,
    /// Its `WWW-Authenticate`.
    pub challenge: Option<&'r str>,
}

/// Why it cannot be said whether there is a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoToken {
    /// Not before somebody changes something.
    Unusable(String),
    /// The next attempt may find one.
    Unavailable(String),
}

pub type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;
