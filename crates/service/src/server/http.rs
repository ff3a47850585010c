//! The server over HTTP: the same calls as over stdio, carried out by the same host, for many clients at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::Mark;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use transport::{Allowed, Feed, Limits, Options, Service};

use super::Host;
use super::host::changed;
use super::live::{self, Hearers};
use super::metrics::Metrics;
use super::stdio::WireLog;
use super::stdio::loading::report;
use super::upstreams::{ProgramsWaiting, Upstreams};
use crate::app::App;
use crate::auth::Authenticator;
use crate::error::Refusal;
use crate::failure::Failure;
use crate::sessions::Quota;

mod adapter;
mod open_files;

use adapter::Adapter;

/// How often we look whether another process has changed a session.
const LOOK: Duration = Duration::from_secs(1);
/// How long we leave a server alone between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How many calls may wait for a server at once: each of them needs a thread for that.
const REMOTE_THREADS: usize = 128;

/// How to serve.
#[derive(Debug)]
pub struct HttpOptions {
    pub address: SocketAddr,
    pub allowed: Allowed,
    pub door: Door,
    /// Where clients learn how to be let in.
    pub metadata_url: String,
    /// What anybody may read, by its path.
    pub documents: Vec<(String, String)>,
    pub limits: HostLimits,
}

/// What an operator may set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLimits {
    pub requests: Limits,
    /// What one principal may keep in the store.
    pub quota: Quota,
    /// How many programs of one principal may wait for a slot.
    pub programs_waiting: ProgramsWaiting,
}

/// A server that accepts connections.
pub struct Serving {
    runtime: Runtime,
    /// Where it is reached.
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    watch: Option<catalog::Watch>,
    upstreams: Arc<Upstreams>,
}

/// Begins to serve.
pub fn begin(
    host: &Arc<Host>,
    options: HttpOptions,
    wire_log: Option<WireLog>,
) -> Result<Serving, Failure> {
    let sessions = host.app().sessions();
    let (key, question_key) = (sessions.handshake_key()?, sessions.question_key()?);
    let HostLimits { requests: limits, quota, programs_waiting } = options.limits;
    sessions.quotas().set(quota);
    host.upstreams().limit_programs(programs_waiting);
    let connections = open_files::connections(limits.connections);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let listener = bind(&runtime, options.address)?;
    let address = listener.local_addr()?;
    host.upstreams().serve_on(runtime.handle(), question_key);
    let feed = Feed::default();
    let told = feed.clone();
    host.listen(move |changed| told.tell(changed));
    let watch = load(host);
    let looker = Arc::new(Looker {
        app: host.app().clone(),
        feed: feed.clone(),
        touched: Notify::new(),
        mark: Mutex::default(),
        is_followed: AtomicBool::new(false),
        has_looked: AtomicBool::new(false),
    });
    let adapter = Adapter {
        host: Arc::clone(host),
        looker: Arc::clone(&looker),
        door: Arc::new(options.door),
        metadata_url: options.metadata_url,
        wire_log: wire_log.map(Mutex::new),
        metrics: Metrics::new(Arc::clone(host)),
    };
    if let Some(authenticator) = adapter.door.authenticator() {
        authenticator.warm();
    }
    // One principal leaves connections to others, also where there are few.
    let mut limits = Limits {
        connections,
        streams_per_principal: limits.streams_per_principal.min(connections / 2),
        requests_per_principal: limits.requests_per_principal.min(connections / 4).max(1),
        ..limits
    };
    if host.app().sessions().are_remote() {
        limits.threads = REMOTE_THREADS;
        // Looked after from the beginning: whoever asks whether we are ready wants to know.
        let _inside = runtime.enter();
        host.app().sessions().get()?.sessions.store().keep_watch();
    }
    let HttpOptions { allowed, documents, .. } = options;
    let transport_options = Options { key, allowed, documents, limits };
    let door = Arc::clone(&adapter.door);
    let service = Service::new(adapter, transport_options, feed)?;
    if host.app().sessions().are_remote() {
        runtime.spawn(keep_refreshing(door));
    }
    let (stop, stopped) = oneshot::channel();
    runtime.spawn(looker.keep_looking());
    let served = runtime.spawn(transport::serve(service, listener, async {
        // Whoever drops it wants an end too.
        let _ = stopped.await;
    }));
    let upstreams = Arc::clone(host.upstreams());
    Ok(Serving { runtime, address, stop, served, watch, upstreams })
}

/// What tells us to end.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Who is let in.
#[derive(Debug)]
pub enum Door {
    /// Anybody.
    Open,
    /// Anybody, until there are tokens.
    OpenUntil {
        authenticator: Authenticator,
        looked: Mutex<Looked>,
    },
    Asks(Authenticator),
}

/// What a look for tokens has shown.
#[derive(Debug)]
pub struct Looked {
    at: Option<Instant>,
    are_there: bool,
}

impl Door {
    pub fn open_until(authenticator: Authenticator) -> Self {
        let looked = Mutex::new(Looked { at: None, are_there: false });
        Self::OpenUntil { authenticator, looked }
    }

    /// Looks at what has to be waited for.
    fn refresh(&self) {
        match self {
            Self::Open => {}
            Self::OpenUntil { authenticator, .. } | Self::Asks(authenticator) => {
                authenticator.refresh();
            }
        }
    }

    /// Whom to ask; nobody, where anybody is let in.
    pub fn authenticator(&self) -> Option<&Authenticator> {
        match self {
            Self::Open => None,
            Self::Asks(authenticator) => Some(authenticator),
            Self::OpenUntil { authenticator, looked } => {
                let mut looked = looked.lock();
                if !looked.are_there && looked.at.is_none_or(|at| at.elapsed() >= LOOK) {
                    // Until that can be said, nobody is let in unasked.
                    let Some(are_there) = authenticator.has_tokens() else {
                        return Some(authenticator);
                    };
                    *looked = Looked { at: Some(Instant::now()), are_there };
                    if are_there {
                        tracing::warn!(
                            "there are tokens now: from here on every request needs one"
                        );
                    }
                }
                looked.are_there.then_some(authenticator)
            }
        }
    }
}

impl Serving {
    /// Signals do not end the process from now on, but wait to be looked at. To be called before anybody is told that
    /// we serve.
    pub fn signals(&self) -> io::Result<Signals> {
        let _inside = self.runtime.enter();
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Signals { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Goes on until a signal comes, and lets what is under way come to its end; or not, at the second.
    pub fn until(self, mut signals: Signals) {
        self.runtime.block_on(signals.next());
        tracing::info!("a signal tells us to end");
        self.end_before(async move { signals.next().await });
    }

    pub fn end(self) {
        self.end_before(std::future::pending());
    }

    fn end_before(self, impatience: impl Future<Output = ()>) {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.served => {}
                () = impatience => tracing::warn!("a second signal: what is under way is cut short"),
            }
        });
        self.upstreams.close();
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
fn load(host: &Arc<Host>) -> Option<catalog::Watch> {
    let told = Arc::clone(host);
    let tell = move |change: &catalog::Change| {
        tracing::info!("workflows have changed");
        told.tell(&changed(change));
    };
    let loading = host.app().loading(report, tell, host.upstreams().beside());
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
    /// Where sessions are over a network: it is known what is news from now on.
    has_looked: AtomicBool,
}

impl Looker {
    /// Where sessions are over a network, everybody looks at their own pace.
    fn is_patient(&self) -> bool {
        self.app.sessions().are_remote()
    }

    fn look(&self) {
        let mut mark = self.mark.lock();
        // Another process may have begun the first session.
        let open = match self.is_followed.load(Ordering::Relaxed) {
            true => self.app.sessions().get_if_any().ok().flatten(),
            false => self.app.sessions().opened(),
        };
        if open.is_none() && self.is_followed.load(Ordering::Relaxed) {
            // Whatever comes is news to whoever follows.
            *mark = Some(Mark::BEGINNING);
        }
        // Who may hear of what is only looked up where somebody listens.
        let hearers = match self.is_followed.load(Ordering::Relaxed) {
            true => Hearers::Principals,
            false => Hearers::Local,
        };
        if let Some(changed) = open.and_then(|open| live::since(&open, &mut mark, hearers)) {
            self.feed.tell(changed);
        }
    }

    async fn keep_looking(self: Arc<Self>) {
        loop {
            if self.is_patient() {
                let looker = Arc::clone(&self);
                let _ = tokio::task::spawn_blocking(move || looker.look_or_mark()).await;
                tokio::time::sleep(PAUSE).await;
            } else {
                self.look();
            }
            // Either is a reason to look.
            let _ = tokio::time::timeout(LOOK, self.touched.notified()).await;
        }
    }

    /// Until somebody wants to hear of changes it is enough to know where we are.
    fn look_or_mark(&self) {
        if self.is_followed.load(Ordering::Relaxed) && self.has_looked.load(Ordering::Relaxed) {
            return self.look();
        }
        let Some(open) = self.app.sessions().opened() else { return };
        if let Ok(now) = open.sessions.store().mark() {
            let mut mark = self.mark.lock();
            // What was written since somebody has begun to follow is news, also if that was a moment ago.
            if mark.is_none() || !self.is_followed.load(Ordering::Relaxed) {
                *mark = Some(now);
            }
            self.has_looked.store(true, Ordering::Relaxed);
        }
    }
}

/// Tokens that are in a store over a network are looked at beside the requests.
async fn keep_refreshing(door: Arc<Door>) {
    loop {
        let door = Arc::clone(&door);
        let _ = tokio::task::spawn_blocking(move || door.refresh()).await;
        tokio::time::sleep(LOOK).await;
    }
}
