//! From an entry to a connection that can be used: starting what must be started, and finding out how to speak with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mcp::client::{ErrorObject, HandshakeError};
use parking_lot::Mutex;
use registry::entry::Connect;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::{Channel, Transport, handshake_failure};
use super::child::{self, Kin};
use super::client_handler;
use super::connection::{Connection, Endings};
use super::failure::{Failure, incident};
use super::http::{self, HttpTransport};
use super::info::{Era, Info};
use super::keeper::Keeper;
use super::notices::Notices;
use super::router::MessageRouter;
use super::stdio::{self, PeerClosed, StdioWriter};
use crate::pool::Tokens;
use crate::wire::{Secrets, Tap, WireLog};
use process_guard::GuardProgram;

/// All that connecting needs to know. The same for every connection of one upstream.
pub(crate) struct Settings {
    pub(crate) server: Arc<str>,
    pub(crate) connect: Connect,
    pub(crate) guard: GuardProgram,
    pub(crate) runtime: Handle,
    /// What must come to its end before the upstream is closed.
    pub(crate) tasks: TaskTracker,
    pub(crate) wire: Option<WireLog>,
    pub(crate) secrets: Secrets,
    pub(crate) tokens: Option<Arc<dyn Tokens>>,
    pub(crate) http: Arc<http::Client>,
    pub(crate) limit: Duration,
    /// Whether the registry still has the entry that all of this is from, and it is trusted.
    pub(crate) is_current: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Connects. `era` is how it was spoken to last time, where that is known: it is not asked again then.
pub(super) async fn connect(
    settings: &Arc<Settings>,
    notices: &Arc<Notices>,
    era: Option<Era>,
    serial: u64,
) -> Result<Arc<Connection>, Failure> {
    let attempt = attempt(settings, notices, era, serial).await;
    match attempt {
        // Some old servers die of a question that they do not know.
        Err(Attempt::Died) if era.is_none() => {
            let again = self::attempt(settings, notices, Some(Era::Legacy), serial).await;
            again.map_err(|attempt| attempt.into_failure(serial))
        }
        other => other.map_err(|attempt| attempt.into_failure(serial)),
    }
}

/// Why there is no connection.
enum Attempt {
    /// Its process ended while it was asked how it speaks.
    Died,
    Failed(Failure),
}

impl Attempt {
    fn into_failure(self, serial: u64) -> Failure {
        match self {
            Self::Died => {
                Failure::Connect { why: "its process ended".to_owned(), incident: serial }
            }
            Self::Failed(failure) => failure,
        }
    }
}

async fn attempt(
    settings: &Arc<Settings>,
    notices: &Arc<Notices>,
    era: Option<Era>,
    serial: u64,
) -> Result<Arc<Connection>, Attempt> {
    if !(settings.is_current)() {
        return Err(Attempt::Failed(Failure::Outdated));
    }
    let (router, inbound) = MessageRouter::new(notices.clone(), settings.secrets.clone());
    let tap = Tap {
        log: settings.wire.clone(),
        secrets: settings.secrets.clone(),
        server: settings.server.clone(),
        connection: serial,
    };
    let (stop, closed) = (CancellationToken::new(), PeerClosed::default());
    // Stops the tasks of the connection if this attempt is dropped.
    let given_up = stop.clone().drop_guard();
    let (transport, mut kin) = match &settings.connect {
        Connect::Stdio { .. } => {
            let started = child::start(settings, tap.clone()).await;
            let (stdin, stdout, kin) = started.map_err(|error| {
                Attempt::Failed(Failure::Unusable { why: hidden(settings, &error.to_string()) })
            })?;
            let writer = StdioWriter::new(stdin, tap.clone(), closed.broken_input.clone());
            let (router, stray) = (router.clone(), kin.last_words());
            let (stop, eof) = (stop.clone(), closed.eof.clone());
            let receive = async move {
                let received = stdio::receive(stdout, &router, &tap, &stray);
                if stop.run_until_cancelled(received).await.is_some() {
                    eof.cancel();
                }
            };
            settings.tasks.spawn_on(receive, &settings.runtime);
            (Transport::Stdio(writer), Some(kin))
        }
        Connect::Http { .. } => {
            let forgotten = closed.forgotten.clone();
            let http = HttpTransport::new(settings, router.clone(), tap, forgotten);
            let http = http.map_err(Attempt::Failed)?;
            (Transport::Http(http), None)
        }
    };
    let (runtime, revision) = (settings.runtime.clone(), Mutex::default());
    let channel = Arc::new(Channel { serial, router, transport, runtime, revision });
    let serve =
        stop.clone().run_until_cancelled_owned(client_handler::serve(channel.clone(), inbound));
    settings.tasks.spawn_on(serve, &settings.runtime);
    let handshake = tokio::select! {
        biased;
        handshake = channel.handshake(era) => handshake,
        () = closed.eof.cancelled() => {
            Err(channel.connection_lost("it is closed".to_owned(), true))
        }
    };
    let info = match handshake {
        Ok(server) => Info::new(server),
        Err(failure) => return Err(explained(settings, kin.as_mut(), failure, era).await),
    };
    let endings = Endings::default();
    let connection = Arc::new(Connection {
        channel: channel.clone(),
        info,
        endings: endings.clone(),
        closed: closed.clone(),
        is_verifying: AtomicBool::new(false),
        _drop: endings.politely.clone().drop_guard(),
    });
    let (notices, secrets) = (notices.clone(), settings.secrets.clone());
    let stop = given_up.disarm();
    let keeper = Keeper { channel, stop, closed, kin, notices, secrets, endings };
    settings.tasks.spawn_on(keeper.keep(), &settings.runtime);
    Ok(connection)
}

/// Why the handshake came to nothing.
async fn explained(
    settings: &Settings,
    kin: Option<&mut Kin>,
    failure: Failure,
    era: Option<Era>,
) -> Attempt {
    let failure = match (failure, kin) {
        // The process exited or closed its input.
        (Failure::Broken { incident, .. }, Some(kin)) => {
            let why = hidden(settings, &kin.epitaph("closed its output").await);
            if era.is_none() {
                let server = &*settings.server;
                tracing::debug!(server, "it does not survive `server/discover`: {why}");
                return Attempt::Died;
            }
            Failure::Connect { why, incident }
        }
        // A broken handshake may be retried.
        (Failure::Broken { why, incident, .. }, None) => Failure::Connect { why, incident },
        (Failure::Refused { why, .. }, _) => Failure::Connect { why, incident: incident() },
        (Failure::Upstream { code, message, data }, _) => {
            handshake_failure(HandshakeError::Refused(ErrorObject { code, message, data }))
        }
        (other, _) => other,
    };
    Attempt::Failed(match failure {
        Failure::Connect { why, incident } => {
            Failure::Connect { why: hidden(settings, &why), incident }
        }
        Failure::Unusable { why } => Failure::Unusable { why: hidden(settings, &why) },
        other => other,
    })
}

/// Servers repeat what they were given.
fn hidden(settings: &Settings, text: &str) -> String {
    (settings.secrets)().hide(text).into_owned()
}
