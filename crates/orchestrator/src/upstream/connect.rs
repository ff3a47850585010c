//! From an entry to a connection that can be used: starting what must be started, and finding out how to speak with it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp::client::{ErrorObject, HandshakeError};
use registry::entry::Connect;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::{Channel, Wire, refused};
use super::child::{self, Kin};
use super::connection::{Connection, Endings};
use super::failure::{Failure, incident};
use super::host;
use super::in_flight::InFlight;
use super::info::{Era, Info};
use super::keeper::Keeper;
use super::lines::{self, Gone, Lines};
use super::notices::Notices;
use super::web::{self, Web};
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
    pub(crate) http: Arc<web::Client>,
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
    let (in_flight, wanted) = InFlight::new(notices.clone());
    let tap = Tap {
        log: settings.wire.clone(),
        secrets: settings.secrets.clone(),
        server: settings.server.clone(),
        connection: serial,
    };
    let (stop, gone) = (CancellationToken::new(), Gone::default());
    // Whoever gives up half-way leaves nothing that waits for the server.
    let given_up = stop.clone().drop_guard();
    let (wire, mut kin) = match &settings.connect {
        Connect::Stdio { .. } => {
            let started = child::start(settings, tap.clone()).await;
            let (stdin, stdout, kin) = started.map_err(|error| {
                Attempt::Failed(Failure::Unusable { why: hidden(settings, &error.to_string()) })
            })?;
            let lines = Lines::new(stdin, tap.clone(), gone.deaf.clone());
            let (in_flight, stray) = (in_flight.clone(), kin.last_words());
            let (stop, hung_up) = (stop.clone(), gone.hung_up.clone());
            let hear = async move {
                let hearing = lines::hear(stdout, &in_flight, &tap, &stray);
                if stop.run_until_cancelled(hearing).await.is_some() {
                    hung_up.cancel();
                }
            };
            settings.tasks.spawn_on(hear, &settings.runtime);
            (Wire::Child(lines), Some(kin))
        }
        Connect::Http { .. } => {
            let web = Web::new(settings, in_flight.clone(), tap).map_err(Attempt::Failed)?;
            (Wire::Web(web), None)
        }
    };
    let (runtime, revision) = (settings.runtime.clone(), Mutex::default());
    let channel = Arc::new(Channel { serial, in_flight, wire, runtime, revision });
    let serve = stop.clone().run_until_cancelled_owned(host::serve(channel.clone(), wanted));
    settings.tasks.spawn_on(serve, &settings.runtime);
    let said = tokio::select! {
        biased;
        said = channel.shake_hands(era, settings.limit) => said,
        () = gone.hung_up.cancelled() => Err(channel.broken("it is closed".to_owned(), true)),
    };
    let info = match said {
        Ok(said) => Info::new(said),
        Err(failure) => return Err(explained(settings, kin.as_mut(), failure, era).await),
    };
    let endings = Endings::default();
    let connection = Arc::new(Connection {
        channel: channel.clone(),
        info,
        endings: endings.clone(),
        gone: gone.clone(),
        doubted: AtomicBool::new(false),
        _drop: endings.politely.clone().drop_guard(),
    });
    let (notices, secrets) = (notices.clone(), settings.secrets.clone());
    let stop = given_up.disarm();
    let keeper = Keeper { channel, stop, gone, kin, notices, secrets, endings };
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
        // Its process has ended, or does not hear us any more.
        (Failure::Broken { incident, .. }, Some(kin)) => {
            let why = hidden(settings, &kin.epitaph("closed its output").await);
            if era.is_none() {
                let server = &*settings.server;
                tracing::debug!(server, "it does not survive `server/discover`: {why}");
                return Attempt::Died;
            }
            Failure::Connect { why, incident }
        }
        // A handshake that breaks is one that can be tried again.
        (Failure::Broken { why, incident, .. }, None) => Failure::Connect { why, incident },
        (Failure::Refused { why, .. }, _) => Failure::Connect { why, incident: incident() },
        (Failure::Upstream { code, message, data }, _) => {
            refused(HandshakeError::Refused(ErrorObject { code, message, data }))
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
