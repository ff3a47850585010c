//! Why one attempt came to nothing. Whoever makes attempts decides by it whether to make another one; callers get
//! [`Error`], which names the upstream too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::error::{Awaited, Credentials, Error, INTERNAL_ERROR};

/// Counts connections, and failures that are none of a whole connection, of all upstreams.
static INCIDENTS: AtomicU64 = AtomicU64::new(1);

/// A number that nothing had before.
pub(super) fn incident() -> u64 {
    INCIDENTS.fetch_add(1, Ordering::Relaxed)
}

/// `incident` tells breaks apart: many may wait when a connection breaks, and all of them tell of the same break.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// There is no connection, and the next attempt may find one.
    Connect {
        why: String,
        incident: u64,
    },
    /// There cannot be one before somebody changes something.
    Unusable {
        why: String,
    },
    Unauthorized {
        status: u16,
        sent: Credentials,
        /// What it says to it.
        said: Option<String>,
    },
    /// The connection broke while an answer was awaited.
    Broken {
        why: String,
        sent: bool,
        incident: u64,
    },
    Upstream {
        code: i64,
        message: String,
        data: Option<Value>,
    },
    /// It answers that it did not do it, without an error of the protocol.
    Refused {
        why: String,
        /// Worth another attempt, some time later.
        is_for_now: bool,
        retry_after: Option<Duration>,
    },
    TooLarge {
        limit: usize,
    },
    Protocol {
        why: String,
    },
    /// The HTTP session is gone, and nothing was done. The connection ends, and the next one begins a new session.
    Forgotten {
        status: String,
    },
    Unanswered {
        why: String,
    },
    Timeout {
        what: Awaited,
        after: Duration,
    },
    /// The entry that it would be started by does not count any more.
    Outdated,
    Cancelled,
}

/// Whether something may be done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Reading, listing, and tools that say so.
    Harmless,
    /// It may have been carried out already.
    Never,
}

impl Failure {
    /// Whether another attempt makes sense and does no harm.
    pub(crate) fn may_try_again(&self, repeat: Repeat) -> bool {
        let harmless = repeat == Repeat::Harmless;
        match self {
            Self::Connect { .. } | Self::Forgotten { .. } => true,
            Self::Broken { sent, .. } => harmless || !sent,
            Self::Upstream { code, .. } => harmless && *code == INTERNAL_ERROR,
            // Nothing was done, and it says when it will be.
            Self::Refused { retry_after, .. } => retry_after.is_some(),
            Self::Unusable { .. }
            | Self::Unauthorized { .. }
            | Self::TooLarge { .. }
            | Self::Protocol { .. }
            | Self::Unanswered { .. }
            | Self::Timeout { .. }
            | Self::Outdated
            | Self::Cancelled => false,
        }
    }

    /// How long to wait at least before another attempt.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(crate) fn into_error(self, server: &str) -> Error {
        let server = server.to_owned();
        match self {
            Self::Connect { why, .. } => Error::Connect { server, why, is_lasting: false },
            Self::Unusable { why } => Error::Connect { server, why, is_lasting: true },
            Self::Unauthorized { status, sent, said } => {
                let said = said.map(|text| format!(" (it says: {text})")).unwrap_or_default();
                let (why, hint) = why(&server, status, sent);
                Error::Unauthorized { server, status, sent, why: format!("{why}{said}"), hint }
            }
            Self::Broken { why, sent, .. } => Error::Transport { server, why, sent },
            Self::Upstream { code, message, data } => {
                Error::Upstream { server, code, message, data }
            }
            Self::Refused { why, is_for_now, retry_after } => {
                Error::Refused { server, why, is_for_now, retry_after }
            }
            Self::TooLarge { limit } => Error::TooLarge { server, limit },
            Self::Protocol { why } => Error::Protocol { server, why },
            Self::Unanswered { why } => Error::Unanswered { server, why },
            Self::Forgotten { status } => {
                let why =
                    format!("it forgets its sessions at once, also a new one (HTTP {status})");
                Error::Protocol { server, why }
            }
            Self::Timeout { what, after } => Error::Timeout { server, what, after },
            Self::Outdated => Error::Outdated { server },
            Self::Cancelled => Error::Cancelled { server },
        }
    }
}

/// Why a server does not let us in, as far as we know, and what helps.
fn why(server: &str, status: u16, sent: Credentials) -> (&'static str, String) {
    let login = format!("`workflowlookup mcp login {server}`");
    match (sent, status) {
        (Credentials::None, _) => (
            "no credentials were sent",
            format!("log in with {login}, or name a token in `mcp.auth`"),
        ),
        (Credentials::Own, 403) => (
            "the credentials that it was given may lack a right",
            "use others in `mcp.auth` or `mcp.headers`".to_owned(),
        ),
        (Credentials::Own, _) => (
            "it does not take the credentials that it was given",
            "see that `mcp.auth` or `mcp.headers` has the right ones, and that they are still good"
                .to_owned(),
        ),
        (Credentials::Login, 403) => {
            ("the login may lack a right", format!("log in anew with {login}"))
        }
        (Credentials::Login, _) => {
            ("it does not take the login any more", format!("log in anew with {login}"))
        }
    }
}
