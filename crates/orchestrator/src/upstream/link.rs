//! The one connection of an upstream, made when it is first needed and anew when it is gone. However many want it at the same
//! time, it is made once; it goes on being made when they give up, for the next one may be more patient.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::call_context::CallContext;
use super::connect::{Settings, connect};
use super::connection::Connection;
use super::failure::{Failure, incident};
use super::info::Era;
use super::notices::Notices;
use crate::error::Awaited;

pub(crate) struct Link {
    settings: Arc<Settings>,
    notices: Arc<Notices>,
    state: Arc<Mutex<State>>,
    /// Ends what is being made.
    closed: CancellationToken,
    on_connected: Arc<OnConnected>,
}

/// Hears of each new connection.
pub(super) type OnConnected = dyn Fn(&Arc<Connection>) + Send + Sync;

#[derive(Default)]
struct State {
    stage: Stage,
    /// How the server was spoken to last time.
    era: Option<Era>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Connecting(watch::Receiver<Made>),
    Connected(Arc<Connection>),
}

/// Nothing as long as it is being made.
type Made = Option<Result<Arc<Connection>, Failure>>;

impl Link {
    pub(super) fn new(
        settings: Settings,
        notices: Arc<Notices>,
        on_connected: Box<OnConnected>,
    ) -> Self {
        Self {
            settings: Arc::new(settings),
            notices,
            state: Arc::default(),
            closed: CancellationToken::new(),
            on_connected: on_connected.into(),
        }
    }

    /// The connection, where there is one that can be used.
    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        match &self.state.lock().stage {
            Stage::Connected(connection) if !connection.is_over() => Some(connection.clone()),
            Stage::Connected(_) | Stage::Connecting(_) | Stage::Idle => None,
        }
    }

    /// The connection, as soon as there is one.
    pub(crate) async fn connection(
        &self,
        context: &CallContext,
    ) -> Result<Arc<Connection>, Failure> {
        let mut made = match self.look() {
            Ok(connection) => return Ok(connection),
            Err(made) => made,
        };
        tokio::select! {
            biased;
            made = made.wait_for(Option::is_some) => match made.map(|made| made.clone()) {
                Ok(Some(result)) => result,
                Ok(None) | Err(_) => Err(Failure::Connect { why: "connecting was given up".to_owned(), incident: 0 }),
            },
            () = context.cancelled.cancelled() => Err(Failure::Cancelled),
            () = context.deadline.passed() => {
                Err(Failure::Timeout { what: Awaited::Connection, after: context.deadline.elapsed() })
            }
        }
    }

    /// What there is, or what is to come, which begins now where it has not.
    fn look(&self) -> Result<Arc<Connection>, watch::Receiver<Made>> {
        let mut state = self.state.lock();
        match &state.stage {
            Stage::Connected(connection) if !connection.is_over() => return Ok(connection.clone()),
            Stage::Connecting(made) => return Err(made.clone()),
            Stage::Connected(_) | Stage::Idle => {}
        }
        let (sender, made) = watch::channel(None);
        let era = state.era;
        state.stage = Stage::Connecting(made.clone());
        drop(state);
        self.settings.runtime.spawn(make(
            self.settings.clone(),
            self.notices.clone(),
            Arc::downgrade(&self.state),
            self.closed.clone(),
            self.on_connected.clone(),
            era,
            sender,
        ));
        Err(made)
    }

    /// Ends the connection, politely, and what is being made of one. A new one can be made afterwards, though nobody should.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        let stage = std::mem::take(&mut self.state.lock().stage);
        match stage {
            Stage::Connected(connection) => connection.close().await,
            Stage::Connecting(mut made) => {
                let made = made.wait_for(Option::is_some).await.map(|made| made.clone());
                if let Ok(Some(Ok(connection))) = made {
                    connection.close().await;
                }
            }
            Stage::Idle => {}
        }
        // Also of what failed or was given up before, each within a bound of its own.
        self.settings.tasks.close();
        self.settings.tasks.wait().await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

async fn make(
    settings: Arc<Settings>,
    notices: Arc<Notices>,
    state: std::sync::Weak<Mutex<State>>,
    closed: CancellationToken,
    on_connected: Arc<OnConnected>,
    era: Option<Era>,
    sender: watch::Sender<Made>,
) {
    let serial = incident();
    let result = tokio::select! {
        biased;
        () = closed.cancelled() => Err(Failure::Connect { why: "we are ending".to_owned(), incident: serial }),
        made = timeout(settings.limit, connect(&settings, &notices, era, serial)) => made.unwrap_or_else(|_| {
            let seconds = settings.limit.as_secs_f64();
            let why = format!("it does not complete the handshake within {seconds:.1} s");
            Err(Failure::Connect { why, incident: serial })
        }),
    };
    let Some(state) = state.upgrade() else { return };
    {
        let mut state = state.lock();
        // Only what worked is remembered.
        state.era = result.as_ref().ok().map(|connection| connection.info().era);
        state.stage = match &result {
            Ok(connection) if !closed.is_cancelled() => Stage::Connected(connection.clone()),
            Ok(_) | Err(_) => Stage::Idle,
        };
    }
    match &result {
        Ok(connection) => {
            let info = connection.info();
            tracing::info!(
                server = &*settings.server,
                revision = info.revision,
                "connected to `{}` {}",
                info.name,
                info.version
            );
            notices.connected();
            on_connected(connection);
        }
        Err(failure) => {
            tracing::info!(
                server = &*settings.server,
                "{}",
                failure.clone().into_error(&settings.server)
            );
        }
    }
    let _ = sender.send(Some(result));
}
