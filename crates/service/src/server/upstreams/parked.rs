//! Calls that wait for an answer of our client's user. Each waits in this process, under an id that only its client
//! carries, and for a bounded time: after that the upstream hears that nobody answered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use orchestrator::{Answer, Form};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::call::Conversation;

/// So many calls may wait at a time.
const WAITING_MAX: usize = 256;
/// How long each may. A client with a handshake is given up before.
const TIME: Duration = Duration::from_secs(300);

/// So many questions that were answered are remembered, for who answers once more.
const ANSWERED_MAX: usize = 1_000;

#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    waiting: HashMap<String, Waiting>,
    /// The oldest first.
    answered: VecDeque<String>,
}

/// There is no room for another one.
pub(super) struct Full;

/// A call under way, whose upstream has asked something.
pub(super) struct Waiting {
    pub(super) conversation: Conversation,
    pub(super) question: Asking,
    end: Option<AbortHandle>,
}

/// What was asked, and where the answer goes. Dropped, it is that nobody answered.
pub(super) struct Asking {
    pub(super) form: Form,
    pub(super) answer: oneshot::Sender<Answer>,
    /// How many answers did not fit so far.
    pub(super) misfits: usize,
}

impl Parked {
    /// Keeps it, where there is room. To be called inside the runtime.
    pub(super) fn park(
        &self,
        id: String,
        conversation: Conversation,
        question: Asking,
    ) -> Result<(), Full> {
        let mut all = self.all();
        if all.waiting.len() >= WAITING_MAX {
            return Err(Full);
        }
        let mut waiting = Waiting { conversation, question, end: None };
        let (own, ending) = (self.clone(), id.clone());
        let end = tokio::spawn(async move {
            tokio::time::sleep(TIME).await;
            if own.all().waiting.remove(&ending).is_some() {
                tracing::info!("nobody answered what an upstream asked");
            }
        });
        waiting.end = Some(end.abort_handle());
        all.waiting.insert(id, waiting);
        Ok(())
    }

    /// What is asked there, while it waits on.
    pub(super) fn form(&self, id: &str) -> Option<Form> {
        self.all().waiting.get(id).map(|waiting| waiting.question.form.clone())
    }

    /// It goes on with an answer.
    pub(super) fn answer(&self, id: &str) -> Option<Waiting> {
        let waiting = self.take(id)?;
        let mut all = self.all();
        if all.answered.len() >= ANSWERED_MAX {
            all.answered.pop_front();
        }
        all.answered.push_back(id.to_owned());
        Some(waiting)
    }

    /// Whether it had its answer before.
    pub(super) fn was_answered(&self, id: &str) -> bool {
        self.all().answered.iter().any(|own| own == id)
    }

    /// It does not wait any more.
    pub(super) fn take(&self, id: &str) -> Option<Waiting> {
        let waiting = self.all().waiting.remove(id)?;
        if let Some(end) = &waiting.end {
            end.abort();
        }
        Some(waiting)
    }

    pub(super) fn count(&self) -> usize {
        self.all().waiting.len()
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock()
    }
}
