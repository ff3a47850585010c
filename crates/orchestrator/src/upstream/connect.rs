//! From an entry to a connection that can be used: starting what must be started, and finding out how to speak with it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use registry::entry::Connect;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::child::{self, Kin};
use super::connection::{Connection, Endings};
use super::failure::Failure;
use super::host::Host;
use super::info::{Era, Info};
use super::keeper::Keeper;
use super::ledger::Ledger;
use super::lines::{Gone, Lines};
use super::notices::Notices;
use super::web;
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
    let ledger = Arc::new(Ledger::new(notices.clone()));
    let tap = Tap {
        log: settings.wire.clone(),
        secrets: settings.secrets.clone(),
        server: settings.server.clone(),
        connection: serial,
    };
    let (stop, gone) = (CancellationToken::new(), Gone::default());
    // Whoever gives up half-way leaves nothing that waits for the server.
    let given_up = stop.clone().drop_guard();
    let mut kin = None;
    let running = match &settings.connect {
        Connect::Stdio { .. } => {
            let started = child::start(settings, tap.clone()).await;
            let (stdin, stdout, child) = started.map_err(|error| {
                Attempt::Failed(Failure::Unusable { why: hidden(settings, &error.to_string()) })
            })?;
            let lines = Lines::new(stdout, stdin, ledger.clone(), tap, gone.clone())
                .with_last_words(child.last_words());
            kin = Some(child);
            serve(&ledger, lines, era, &stop).await
        }
        Connect::Http { .. } => {
            let transport = web::transport(settings, ledger.clone(), tap, stop.clone())
                .map_err(Attempt::Failed)?;
            serve(&ledger, transport, era, &stop).await
        }
    };
    let running = match running {
        Ok(running) => running,
        Err(error) => return Err(explained(settings, &ledger, kin, error, era, serial).await),
    };
    let Some(info) = Info::read(&ledger, running.peer()) else {
        let why = "its handshake says nothing about it".to_owned();
        return Err(Attempt::Failed(Failure::Protocol { why }));
    };
    let endings = Endings::default();
    let connection = Arc::new(Connection {
        serial,
        peer: running.peer().clone(),
        ledger: ledger.clone(),
        info,
        runtime: settings.runtime.clone(),
        endings: endings.clone(),
        has_process: kin.is_some(),
        doubted: AtomicBool::new(false),
        _drop: endings.politely.clone().drop_guard(),
    });
    let keeper = Keeper {
        serial,
        running,
        stop: given_up.disarm(),
        gone,
        kin,
        ledger,
        notices: notices.clone(),
        secrets: settings.secrets.clone(),
        endings,
    };
    settings.tasks.spawn_on(keeper.keep(), &settings.runtime);
    Ok(connection)
}

type Running = RunningService<RoleClient, Host>;

async fn serve<T>(
    ledger: &Arc<Ledger>,
    transport: T,
    era: Option<Era>,
    stop: &CancellationToken,
) -> Result<Running, ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
{
    let host = Host { ledger: ledger.clone() };
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match era {
        Some(Era::Legacy) => ClientLifecycleMode::Initialize,
        Some(Era::Modern) => ClientLifecycleMode::Discover { preferred_versions },
        None => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    serve_client_with_lifecycle_and_ct(host, transport, mode, stop.clone()).await
}

/// Why the handshake came to nothing.
async fn explained(
    settings: &Settings,
    ledger: &Ledger,
    kin: Option<Kin>,
    error: ClientInitializeError,
    era: Option<Era>,
    serial: u64,
) -> Attempt {
    if let Some(failure) = ledger.handshake().failure() {
        return Attempt::Failed(failure);
    }
    let has_hung_up = is_broken(&error);
    if let (Some(mut kin), true) = (kin, has_hung_up) {
        let why = hidden(settings, &kin.epitaph("closed its output").await);
        drop(kin);
        if era.is_none() {
            tracing::debug!(
                server = &*settings.server,
                "it does not survive `server/discover`: {why}"
            );
            return Attempt::Died;
        }
        return Attempt::Failed(Failure::Connect { why, incident: serial });
    }
    let why = match &error {
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refuses the handshake: {} {}", error.code.0, error.message)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => match &**fallback {
            ClientInitializeError::JsonRpcError(error) => {
                format!("it refuses the handshake: {} {}", error.code.0, error.message)
            }
            other => other.to_string(),
        },
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            let why =
                format!("it speaks only revisions that we do not know: {}", theirs.join(", "));
            return Attempt::Failed(Failure::Unusable { why: hidden(settings, &why) });
        }
        other => other.to_string(),
    };
    Attempt::Failed(Failure::Connect { why: hidden(settings, &why), incident: serial })
}

/// Whether the other side was gone, as opposed to saying something wrong.
fn is_broken(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_broken(fallback),
        _ => false,
    }
}

/// Servers repeat what they were given.
fn hidden(settings: &Settings, text: &str) -> String {
    (settings.secrets)().hide(text).into_owned()
}
