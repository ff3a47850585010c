//! The server over HTTP: the same calls as over stdio, carried out by the same host, for many clients at once.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use mcp::{Call, Caller, Carried, Server};
use store::{Mark, Store};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use transport::{Allowed, Denied, Feed, Limits, Options, Principal, Service};

use super::Host;
use super::host::changed;
use super::live;
use super::stdio::loading::report;
use super::stdio::{Direction, WireLog};
use crate::app::App;
use crate::auth::Authenticator;
use crate::error::Refusal;
use crate::sessions::now;

mod open_files;

/// How often we look whether another process has changed a session.
const LOOK: Duration = Duration::from_secs(1);

/// How to serve.
#[derive(Debug)]
pub(crate) struct HttpOptions {
    pub(crate) address: SocketAddr,
    pub(crate) allowed: Allowed,
    /// Absent where anybody is let in.
    pub(crate) authenticator: Option<Authenticator>,
    /// Where clients learn how to be let in.
    pub(crate) metadata_url: String,
    /// What anybody may read, by its path.
    pub(crate) documents: Vec<(String, String)>,
}

/// A server that accepts connections.
pub(crate) struct Serving {
    runtime: Runtime,
    /// Where it is reached.
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    watch: Option<catalog::Watch>,
}

/// Begins to serve.
pub(crate) fn begin(
    host: &Arc<Host>,
    options: HttpOptions,
    wire_log: Option<WireLog>,
) -> Result<Serving, crate::cli::Failure> {
    let key = host.app().sessions().handshake_key()?;
    let connections = open_files::connections(Limits::default().connections);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let listener = bind(&runtime, options.address)?;
    let address = listener.local_addr()?;
    let feed = Feed::default();
    let watch = load(host, &feed);
    let looker = Arc::new(Looker {
        app: host.app().clone(),
        feed: feed.clone(),
        touched: Notify::new(),
        mark: Mutex::default(),
        is_followed: AtomicBool::new(false),
    });
    let adapter = Adapter {
        host: Arc::clone(host),
        looker: Arc::clone(&looker),
        authenticator: options.authenticator,
        metadata_url: options.metadata_url,
        wire_log: wire_log.map(Mutex::new),
    };
    if let Some(authenticator) = &adapter.authenticator {
        authenticator.warm();
    }
    let limits = Limits { connections, ..Limits::default() };
    let HttpOptions { allowed, documents, .. } = options;
    let transport_options = Options { key, allowed, documents, limits };
    let service = Service::new(adapter, transport_options, feed)?;
    let (stop, stopped) = oneshot::channel();
    runtime.spawn(looker.keep_looking());
    let served = runtime.spawn(transport::serve(service, listener, async {
        // Whoever drops it wants an end too.
        let _ = stopped.await;
    }));
    Ok(Serving { runtime, address, stop, served, watch })
}

/// What tells us to end.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Serving {
    /// Signals do not end the process from now on, but wait to be looked at. To be called before anybody is told that
    /// we serve.
    pub(crate) fn signals(&self) -> io::Result<Signals> {
        let _inside = self.runtime.enter();
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Signals { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Goes on until a signal comes, and lets what is under way come to its end.
    pub(crate) fn until(self, mut signals: Signals) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = signals.terminate.recv() => {}
                _ = signals.interrupt.recv() => {}
            }
        });
        tracing::info!("a signal tells us to end");
        self.end();
    }

    pub(crate) fn end(self) {
        // It may have ended by itself.
        let _ = self.stop.send(());
        let _ = self.runtime.block_on(self.served);
        self.runtime.shutdown_background();
        if let Some(watch) = self.watch {
            watch.let_go();
        }
        tracing::info!("ended");
    }
}

fn bind(runtime: &Runtime, address: SocketAddr) -> Result<TcpListener, Refusal> {
    runtime.block_on(TcpListener::bind(address)).map_err(|error| Refusal::InvalidParams {
        details: format!("nobody can listen on `{address}`: {error}"),
        hint: Some("name another address or port for --http".to_owned()),
    })
}

/// Loads the catalogue, and keeps everybody informed of what changes.
fn load(host: &Arc<Host>, feed: &Feed) -> Option<catalog::Watch> {
    let (told, feed) = (Arc::clone(host), feed.clone());
    let loading = host.app().loading(report, move |change| {
        tracing::info!("workflows have changed");
        let changed = changed(change);
        told.tell(&changed);
        feed.tell(changed);
    });
    loading()
        .inspect_err(|error| tracing::warn!("edits of workflow files will not be seen: {error}"))
        .ok()
}

/// Tells what was written to sessions: by calls that we have carried out at once, by somebody else within [`LOOK`].
struct Looker {
    app: App,
    feed: Feed,
    touched: Notify,
    mark: Mutex<Option<Mark>>,
    /// Somebody has wanted to hear of changes.
    is_followed: AtomicBool,
}

impl Looker {
    fn look(&self) {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        // Another process may have begun the first session.
        let open = match self.is_followed.load(Ordering::Relaxed) {
            true => self.app.sessions().get_if_any().ok().flatten(),
            false => self.app.sessions().opened(),
        };
        if let Some(changed) = open.and_then(|open| live::since(&open, &mut mark)) {
            self.feed.tell(changed);
        }
    }

    async fn keep_looking(self: Arc<Self>) {
        loop {
            // Either is a reason to look.
            let _ = tokio::time::timeout(LOOK, self.touched.notified()).await;
            self.look();
        }
    }
}

/// Our host, as the transport wants it.
struct Adapter {
    host: Arc<Host>,
    looker: Arc<Looker>,
    authenticator: Option<Authenticator>,
    metadata_url: String,
    wire_log: Option<Mutex<WireLog>>,
}

impl Adapter {
    /// The store, if there is one and it can be used. Whoever needs it hears why it cannot.
    fn store(&self) -> Option<Store> {
        let open = self.host.app().sessions().get_if_any().ok()??;
        Some(open.sessions.store().clone())
    }

    fn record(&self, direction: Direction, message: &[u8]) {
        if let Some(log) = &self.wire_log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.record(direction, message);
            log.flush();
        }
    }
}

impl transport::Host for Adapter {
    fn server(&self) -> Arc<Server> {
        self.host.server()
    }

    fn carry_out(&self, call: Call, caller: Caller) -> Carried {
        self.host.carry_out(call, caller)
    }

    fn is_ready(&self) -> bool {
        self.authenticator.as_ref().is_none_or(|known| known.not_ready().is_none())
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Principal>, Denied> {
        let Some(authenticator) = &self.authenticator else {
            return Ok(None);
        };
        let values = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let known = authenticator.check(values).await.map_err(|denied| Denied {
            status: denied.status(),
            challenge: denied.challenge(&self.metadata_url),
            retry_after: denied.retry_after(),
            reason: denied.reason().to_owned(),
        })?;
        Ok(Some(Principal { name: known.name, until: known.until }))
    }

    fn touched(&self) {
        self.looker.touched.notify_one();
    }

    fn followed(&self) {
        // What is written from now on is news, once they are open.
        if let Err(refusal) = self.host.app().sessions().get_if_any() {
            tracing::warn!("changes of sessions cannot be seen now: {refusal}");
        }
        self.looker.is_followed.store(true, Ordering::Relaxed);
        // What was written before is told to the others first.
        self.looker.look();
    }

    /// Where there is no store there is nothing that processes share, and none is made for this.
    fn end_handshake(&self, id: [u8; 16], until: u64) {
        let ended = self.store().map(|store| store.end_handshake(id, until, now()));
        if let Some(Err(error)) = ended {
            tracing::warn!("other processes cannot be told that a client is gone: {error}");
        }
    }

    fn has_ended(&self, id: [u8; 16]) -> bool {
        let ended = self.store().map(|store| store.has_ended(&id));
        ended.is_some_and(|ended| {
            ended.unwrap_or_else(|error| {
                tracing::warn!("whether a client is gone cannot be seen now: {error}");
                false
            })
        })
    }

    fn heard(&self, message: &[u8]) {
        self.record(Direction::In, message);
    }

    fn said(&self, message: &str) {
        self.record(Direction::Out, message.as_bytes());
    }
}
