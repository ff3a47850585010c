//! What goes with a request of ours through the protocol's library, unseen by the upstream: where its answer is to be put,
//! and who hears of it meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::deadline::Deadline;
use super::failure::Failure;
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

    pub(crate) fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }
}

/// The result as it was sent, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

/// Travels in a request's extensions.
#[derive(Clone)]
pub(crate) struct Ticket(Arc<Inner>);

struct Inner {
    course: Arc<Course>,
    answer: Mutex<Option<oneshot::Sender<Outcome>>>,
    /// Bytes of it may have left us.
    sent: AtomicBool,
    /// The server did not know the session that it was sent in.
    lost_session: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(course: Arc<Course>) -> (Self, oneshot::Receiver<Outcome>) {
        let (answer, outcome) = oneshot::channel();
        let answer = Mutex::new(Some(answer));
        (
            Self(Arc::new(Inner {
                course,
                answer,
                sent: AtomicBool::new(false),
                lost_session: AtomicBool::new(false),
            })),
            outcome,
        )
    }

    /// The first outcome counts.
    pub(crate) fn settle(&self, outcome: Outcome) {
        let answer = lock(&self.0.answer).take();
        if let Some(answer) = answer {
            // Whoever is gone does not want to know.
            let _ = answer.send(outcome);
        }
    }

    /// Nobody waits for it any more.
    pub(crate) fn is_given_up(&self) -> bool {
        lock(&self.0.answer).as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    pub(crate) fn course(&self) -> &Arc<Course> {
        &self.0.course
    }

    pub(crate) fn mark_sent(&self) {
        self.0.sent.store(true, Ordering::Release);
    }

    /// It is certain that nothing arrived.
    pub(crate) fn mark_unsent(&self) {
        self.0.sent.store(false, Ordering::Release);
    }

    /// The server does not know the session; whether that is so for the first time.
    pub(crate) fn loses_session(&self) -> bool {
        !self.0.lost_session.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.0.sent.load(Ordering::Acquire)
    }
}
