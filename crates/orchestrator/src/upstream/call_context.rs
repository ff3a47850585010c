//! The context of one call, shared by all its attempts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::deadline::Deadline;
use crate::call::{Asker, Party, Progress};

/// The most warnings of one call.
const WARNINGS_MAX: usize = 8;

/// What a caller passes along with a call.
pub(crate) struct CallContext {
    pub(crate) deadline: Deadline,
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// The caller. None for lists, pings and subscriptions, which cannot cause elicitations.
    pub(crate) party: Option<Party>,
    /// How many elicitations this call is answering.
    pub(crate) questions: AtomicUsize,
    /// Warnings for the caller, besides the result.
    pub(super) warnings: Mutex<Vec<String>>,
}

impl CallContext {
    /// The context of a request that no caller waits for.
    pub(crate) fn background(deadline: Deadline) -> Arc<Self> {
        Arc::new(Self::new(deadline))
    }

    pub(crate) fn new(deadline: Deadline) -> Self {
        Self {
            deadline,
            cancelled: CancellationToken::new(),
            progress: None,
            asker: None,
            party: None,
            questions: AtomicUsize::new(0),
            warnings: Mutex::default(),
        }
    }

    /// Adds a warning, unless it was added before.
    pub(crate) fn add_warning(&self, warning: String) {
        let mut warnings = self.warnings.lock();
        if warnings.len() < WARNINGS_MAX && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Forwards progress to the caller.
    pub(super) fn report_progress(&self, progress: Progress) {
        if let Some(hear) = &self.progress {
            hear(progress);
        }
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CallContext").field("party", &self.party).finish_non_exhaustive()
    }
}
