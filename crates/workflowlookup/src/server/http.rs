//! The server over HTTP: the same calls as over stdio, carried out by the same host, for many clients at once.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use mcp::{Call, Caller, Carried, Connection, Server, Transport};
use store::{Mark, Store};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use transport::{
    Allowed, Denied, EndpointAnswer, EndpointRequest, Feed, Following, Limits, Options, Page,
    Principal, Service,
};

use super::Host;
use super::endpoints;
use super::host::changed;
use super::live::{self, Hearers};
use super::metrics::Metrics;
use super::stdio::loading::report;
use super::stdio::{Direction, WireLog};
use super::upstreams::Upstreams;
use crate::access::Who;
use crate::app::App;
use crate::auth::Authenticator;
use crate::error::Refusal;
use crate::sessions::now;

mod open_files;

/// Who decides at a gate, where nobody is asked who they are.
const ANYBODY: &str = "somebody over HTTP";
/// How often we look whether another process has changed a session.
const LOOK: Duration = Duration::from_secs(1);
/// How long we leave a server alone between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// How many calls may wait for a server at once: each of them needs a thread for that.
const REMOTE_THREADS: usize = 128;

/// How to serve.
#[derive(Debug)]
pub(crate) struct HttpOptions {
    pub(crate) address: SocketAddr,
    pub(crate) allowed: Allowed,
    pub(crate) door: Door,
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
    upstreams: Arc<Upstreams>,
}

/// Begins to serve.
pub(crate) fn begin(
    host: &Arc<Host>,
    options: HttpOptions,
    wire_log: Option<WireLog>,
) -> Result<Serving, crate::cli::Failure> {
    let sessions = host.app().sessions();
    let (key, question_key) = (sessions.handshake_key()?, sessions.question_key()?);
    let connections = open_files::connections(Limits::default().connections);
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
    let mut limits = Limits { connections, ..Limits::default() };
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
pub(crate) struct Signals {
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
pub(crate) enum Door {
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
pub(crate) struct Looked {
    at: Option<Instant>,
    are_there: bool,
}

impl Door {
    pub(crate) fn open_until(authenticator: Authenticator) -> Self {
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
    pub(crate) fn authenticator(&self) -> Option<&Authenticator> {
        match self {
            Self::Open => None,
            Self::Asks(authenticator) => Some(authenticator),
            Self::OpenUntil { authenticator, looked } => {
                let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) fn signals(&self) -> io::Result<Signals> {
        let _inside = self.runtime.enter();
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Signals { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Goes on until a signal comes, and lets what is under way come to its end; or not, at the second.
    pub(crate) fn until(self, mut signals: Signals) {
        self.runtime.block_on(signals.next());
        tracing::info!("a signal tells us to end");
        self.end_before(async move { signals.next().await });
    }

    pub(crate) fn end(self) {
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
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
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
            let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Our host, as the transport wants it.
struct Adapter {
    host: Arc<Host>,
    looker: Arc<Looker>,
    door: Arc<Door>,
    metadata_url: String,
    wire_log: Option<Mutex<WireLog>>,
    metrics: Metrics,
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

/// Whoever asks for something else than a call.
fn caller(principal: Option<&Principal>) -> Caller {
    Caller {
        principal: Some(principal.map_or(ANYBODY.into(), |it| Arc::clone(&it.name))),
        scope: principal.map(|it| Arc::clone(&it.scope)),
        ..Caller::default()
    }
}

impl transport::Host for Adapter {
    fn server(&self) -> Arc<Server> {
        self.host.server()
    }

    fn carry_out(&self, call: Call, mut caller: Caller) -> Carried {
        // Whoever is not asked who they are is not the one who runs the server either.
        caller.principal.get_or_insert_with(|| ANYBODY.into());
        self.host.carry_out(call, caller, Transport::Http)
    }

    fn metrics(&self, page: &mut Page) {
        self.metrics.print(page);
    }

    fn is_still_good(&self, principal: &Principal) -> bool {
        self.door
            .authenticator()
            .is_none_or(|known| known.is_still_good(&principal.name, &principal.scope))
    }

    fn is_ready(&self) -> bool {
        let is_away = self.host.app().sessions().opened().is_some_and(|open| open.is_away());
        // Whoever follows something is to hear of everything from then on.
        let can_tell = !self.looker.is_patient() || self.looker.has_looked.load(Ordering::Relaxed);
        !is_away
            && can_tell
            && self.door.authenticator().is_none_or(|known| known.not_ready().is_none())
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Principal>, Denied> {
        let Some(authenticator) = self.door.authenticator() else {
            return Ok(None);
        };
        let values = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let known = authenticator.check(values).await.map_err(|denied| Denied {
            status: denied.status(),
            challenge: denied.challenge(&self.metadata_url),
            retry_after: denied.retry_after(),
            reason: denied.reason().to_owned(),
        })?;
        let scope = known.right.name().into();
        Ok(Some(Principal { name: known.name, scope, until: known.until }))
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
        // What was written before is told to the others first. Over a network we were here a moment ago, and whoever
        // hears of something that they know already is none the worse.
        if !self.looker.is_patient() {
            self.looker.look();
        }
    }

    fn follow(&self, connection: &Connection) -> Option<Following> {
        let following = self.host.upstreams().follow(connection)?;
        Some(Box::new(following))
    }

    fn lets_anybody_in(&self) -> bool {
        self.door.authenticator().is_none()
    }

    fn has_endpoint(&self, path: &str) -> bool {
        endpoints::is_there(path)
    }

    fn answer(&self, request: EndpointRequest) -> EndpointAnswer {
        let tokens = self.door.authenticator().and_then(Authenticator::token_list);
        match Who::of(&caller(request.principal.as_ref())) {
            Some(who) => endpoints::answer(self.host.app(), &request, &who, tokens),
            None => EndpointAnswer { status: 500, body: None, allow: None },
        }
    }

    fn turned_away(
        &self,
        method: &str,
        path: &str,
        status: u16,
        reason: &str,
        principal: Option<&Principal>,
    ) {
        let audit = self.host.app().sessions().audit();
        let wanted = format!("{method} {path}");
        match principal.and_then(|principal| Who::of(&caller(Some(principal)))) {
            Some(who) => who.refused(&wanted, None, reason, audit),
            None => audit.turned_away(&wanted, status, reason),
        }
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
