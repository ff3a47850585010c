//! The issuer's keys, as far as we know. They are fetched by one thread at a time, at most once in a while whoever asks,
//! and requests wait for it only where they must.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::fetch::Source;
use super::key_set::KeySet;

/// How patient we are.
#[derive(Debug, Clone)]
pub(super) struct Times {
    /// Whoever makes up names of keys does not make us ask the issuer more often than this.
    pub(super) fetch_interval_min: Duration,
    /// So long keys are used without a question. A key that was taken back is good no longer than this.
    pub(super) fresh_for: Duration,
    /// So long they are used while the issuer cannot be reached. Tokens rarely live longer, and without the issuer there
    /// are no new ones.
    pub(super) usable_for: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            fetch_interval_min: Duration::from_secs(10),
            fresh_for: Duration::from_secs(5 * 60),
            usable_for: Duration::from_secs(60 * 60),
        }
    }
}

#[derive(Debug)]
pub(super) struct Keys {
    source: Source,
    times: Times,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    known: Option<(Arc<KeySet>, Instant)>,
    /// When the issuer was asked last.
    asked: Option<Instant>,
    /// Closed when nobody is asking it.
    asking: watch::Receiver<()>,
    /// What went wrong last.
    why: String,
}

impl Keys {
    pub(super) fn new(source: Source, times: Times) -> Self {
        let (_, asking) = watch::channel(());
        let why = "they have not been fetched yet".to_owned();
        let state = State { known: None, asked: None, asking, why };
        Self { source, times, state: Arc::new(Mutex::new(state)) }
    }

    /// Begins to fetch them, and does not wait.
    pub(super) fn warm(&self) {
        self.ask(&mut self.state());
    }

    /// Why no token can be checked, where none can.
    pub(super) fn not_ready(&self) -> Option<String> {
        let mut state = self.state();
        if self.usable(&state).is_some() {
            return None;
        }
        self.ask(&mut state);
        Some(format!("the issuer's keys cannot be had: {}", state.why))
    }

    /// The keys that are known, if they are not too old; otherwise after they were fetched.
    pub(super) async fn current(&self) -> Result<Arc<KeySet>, String> {
        let asking = {
            let mut state = self.state();
            match self.usable(&state) {
                Some((keys, age)) => {
                    if age > self.times.fresh_for {
                        self.ask(&mut state);
                    }
                    return Ok(keys);
                }
                None => self.ask(&mut state),
            }
        };
        wait(asking).await;
        let state = self.state();
        self.usable(&state).map(|(keys, _)| keys).ok_or_else(|| state.why.clone())
    }

    /// Other keys than these, for a token that none of them has made. None where there are no others, or where the
    /// issuer was asked a moment ago.
    pub(super) async fn newer_than(&self, old: &Arc<KeySet>) -> Option<Arc<KeySet>> {
        let is_newer = |keys: &Arc<KeySet>| !Arc::ptr_eq(keys, old);
        let asking = {
            let mut state = self.state();
            let known = state.known.as_ref().map(|(keys, _)| keys);
            if let Some(keys) = known.filter(|keys| is_newer(keys)) {
                return Some(Arc::clone(keys));
            }
            self.ask(&mut state)
        };
        wait(asking).await;
        let state = self.state();
        self.usable(&state).map(|(keys, _)| keys).filter(is_newer)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn usable(&self, state: &State) -> Option<(Arc<KeySet>, Duration)> {
        let (keys, since) = state.known.as_ref()?;
        let age = since.elapsed();
        (age <= self.times.usable_for).then(|| (Arc::clone(keys), age))
    }

    /// Asks the issuer, unless it is being asked or was asked a moment ago. What comes back is closed when it is over,
    /// also where a thread panics; whoever waits may go away at any time.
    fn ask(&self, state: &mut State) -> Option<watch::Receiver<()>> {
        if state.asking.has_changed().is_ok() {
            return Some(state.asking.clone());
        }
        let interval = self.times.fetch_interval_min;
        if state.asked.is_some_and(|asked| asked.elapsed() < interval) {
            return None;
        }
        let (sender, asking) = watch::channel(());
        let (source, shared) = (self.source.clone(), Arc::clone(&self.state));
        let thread = std::thread::Builder::new().name("issuer-keys".to_owned()).spawn(move || {
            let fetched = source.fetch();
            let mut state = shared.lock();
            state.take(fetched);
            drop(state);
            drop(sender);
        });
        state.asked = Some(Instant::now());
        state.asking = asking.clone();
        if let Err(error) = thread {
            state.why = format!("no thread could be started: {error}");
        }
        Some(asking)
    }
}

impl State {
    fn take(&mut self, fetched: Result<KeySet, String>) {
        match fetched {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "the issuer's keys were fetched");
                if keys.len() == 0 {
                    tracing::warn!("the issuer has no key that can be used, and so no good tokens");
                }
                self.known = Some((Arc::new(keys), Instant::now()));
            }
            Err(why) => {
                tracing::warn!("the issuer's keys could not be fetched: {why}");
                self.why = why;
            }
        }
    }
}

async fn wait(asking: Option<watch::Receiver<()>>) {
    if let Some(mut asking) = asking {
        // Nothing is ever sent: the end is what is waited for.
        let _ = asking.changed().await;
    }
}
