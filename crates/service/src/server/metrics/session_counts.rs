//! How many sessions there are, by how they stand. That is a question to the store, so it is asked seldom, elsewhere, and
//! nobody waits for the answer: who looks gets the last one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::Counts;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::app::App;

/// How often the store is asked, at most. One that takes longer to answer counts as away.
const ASK_EVERY: Duration = Duration::from_secs(15);

/// What is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// None while nobody knows.
    pub(super) counts: Option<Counts>,
    /// None where there was nothing to look at.
    pub(super) is_up: Option<bool>,
}

pub(super) struct SessionCounts {
    app: App,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Option<(Instant, JoinHandle<()>)>,
    last: Counted,
}

impl SessionCounts {
    pub(super) fn new(app: App) -> Self {
        Self { app, state: Mutex::default() }
    }

    /// What was found out last. Where that is some time ago, somebody looks again.
    pub(super) fn look(this: &Arc<Self>) -> Counted {
        let mut state = this.state.lock();
        let (is_due, is_late) = match &state.asked {
            None => (true, false),
            Some((at, asking)) => {
                let is_old = at.elapsed() >= ASK_EVERY;
                (is_old && asking.is_finished(), is_old && !asking.is_finished())
            }
        };
        if is_due && let Ok(runtime) = Handle::try_current() {
            let own = Arc::clone(this);
            state.asked = Some((Instant::now(), runtime.spawn_blocking(move || own.ask())));
        }
        if is_late {
            state.last = Counted { counts: None, is_up: Some(false) };
        }
        state.last
    }

    fn ask(&self) {
        let found = match self.app.sessions().get_if_any() {
            Ok(None) => Counted { counts: Some(Counts::default()), is_up: None },
            Ok(Some(open)) => match open.sessions.store().counts() {
                Ok(counts) => Counted { counts: Some(counts), is_up: Some(true) },
                Err(error) => {
                    tracing::warn!("sessions cannot be counted: {error}");
                    Counted { counts: None, is_up: Some(false) }
                }
            },
            Err(refusal) => {
                tracing::warn!("sessions cannot be counted: {refusal}");
                Counted { counts: None, is_up: Some(false) }
            }
        };
        self.state.lock().last = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use crate::sessions::Serving;
    use crate::trust::WorkspaceTrust;

    /// However often somebody looks, the store is asked once in a while.
    #[tokio::test]
    async fn a_look_waits_for_nobody_and_asks_seldom() {
        let counts = Arc::new(SessionCounts::new(App::unloaded(
            Vec::new(),
            WorkspaceTrust::new(None, None),
            None,
            Audit::choose(None),
            Serving::default(),
        )));
        assert_eq!(SessionCounts::look(&counts), Counted::default(), "nobody knows yet");
        let asked = || {
            let state = counts.state.lock();
            state.asked.as_ref().map(|(at, asking)| (*at, asking.is_finished())).unwrap()
        };
        let (first, _) = asked();
        while !asked().1 {
            tokio::task::yield_now().await;
        }
        // Without a place there are no sessions.
        let found = Counted { counts: Some(Counts::default()), is_up: None };
        assert_eq!(SessionCounts::look(&counts), found);
        assert_eq!(asked().0, first, "the first answer is still good");
        let long_ago = first.checked_sub(ASK_EVERY).unwrap();
        counts.state.lock().asked.as_mut().unwrap().0 = long_ago;
        assert_eq!(SessionCounts::look(&counts), found, "the old one, while somebody asks again");
        assert!(asked().0 > long_ago);
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_away() {
        let counts = Arc::new(SessionCounts::new(App::unloaded(
            Vec::new(),
            WorkspaceTrust::new(None, None),
            None,
            Audit::choose(None),
            Serving::default(),
        )));
        let never = tokio::spawn(std::future::pending());
        let long_ago = Instant::now().checked_sub(ASK_EVERY).unwrap();
        counts.state.lock().asked = Some((long_ago, never));
        let away = Counted { counts: None, is_up: Some(false) };
        assert_eq!(SessionCounts::look(&counts), away);
        let state = counts.state.lock();
        assert_eq!(state.asked.as_ref().unwrap().0, long_ago, "one at a time");
    }
}
