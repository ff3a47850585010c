//! What one caller brings along, from the first attempt to the last.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::deadline::Deadline;
use crate::call::{Asker, Party, Progress};
use crate::lock;

/// So many remarks are made about one call.
const REMARKS_MAX: usize = 8;

/// What one caller brings along: all attempts of a call share it.
pub(crate) struct Course {
    pub(crate) deadline: Deadline,
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Nobody's where it is our own business: lists, signs of life, subscriptions. Servers ask nobody for their sake.
    pub(crate) party: Option<Party>,
    /// How many questions go by this call at the moment.
    pub(crate) questions: AtomicUsize,
    /// What the caller should know beside the result.
    pub(super) remarks: Mutex<Vec<String>>,
}

impl Course {
    /// For what nobody follows.
    pub(crate) fn quiet(deadline: Deadline) -> Arc<Self> {
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
            remarks: Mutex::default(),
        }
    }

    /// Each is made once, however often there is a reason for it.
    pub(crate) fn remark(&self, remark: String) {
        let mut remarks = lock(&self.remarks);
        if remarks.len() < REMARKS_MAX && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }

    /// Tells whoever follows how far it is.
    pub(super) fn tell(&self, progress: Progress) {
        if let Some(hear) = &self.progress {
            hear(progress);
        }
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }
}

impl fmt::Debug for Course {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Course").field("party", &self.party).finish_non_exhaustive()
    }
}
