//! Everything that requests share, and the way of a request from its headers to its handler.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONNECTION, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::{any, get};
use fair_semaphore::{FairSemaphore, Permit};
use mcp::http::{METHOD, NAME, VERSION};
use mcp::{Connection, Peer, Revision};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::admission::{Admission, Place};
use crate::answer::{self, Refused};
use crate::body::{BodyBudget, BufferedBody};
use crate::budget::Budgets;
use crate::connections::{Connection as OpenConnection, Connections, Owner};
use crate::ended::Ended;
use crate::events::IsGood;
use crate::feed::Feed;
use crate::guard::Allowed;
use crate::handshake_token::{Had, Id, Signer};
use crate::host::{Host, Principal};
use crate::limits::{
    FOLLOWED_BYTES_MAX, FOLLOWED_BYTES_PER_PRINCIPAL_MAX, HEADERS_BYTES_MAX, Limits, PEERS_MAX,
    PEERS_PER_PRINCIPAL_MAX, PRINCIPAL_BYTES_MAX, REPLIES_MAX, REPLIES_PER_PRINCIPAL_MAX,
    THREAD_TIME,
};
use crate::metrics::{Metrics, Now};
use crate::peers::{NewPeer, Peers};
use crate::routes::Routes;
use crate::stream::Stream;
use crate::{endpoints, get as getting, post, probes};

pub(crate) const SESSION: &str = "mcp-session-id";
pub(crate) const LAST_EVENT: &str = "last-event-id";

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What handshakes are signed with. Processes that have the same serve one another's clients.
    pub key: [u8; 32],
    pub allowed: Allowed,
    /// Documents that anybody may read, by their paths.
    pub documents: Vec<(String, String)>,
    pub limits: Limits,
}

pub struct Service<H: Host> {
    pub(crate) host: H,
    pub(crate) options: Options,
    pub(crate) signer: Signer,
    pub(crate) feed: Feed,
    pub(crate) routes: Routes,
    pub(crate) peers: Peers,
    pub(crate) ended: Mutex<Ended>,
    pub(crate) requests: Arc<Admission>,
    pub(crate) streams: Arc<Admission>,
    /// Answers and notifications that are taken although no request is.
    pub(crate) replies: Arc<Admission>,
    /// Clients with a handshake that something is kept for.
    pub(crate) remembered: Arc<Admission>,
    /// Bytes of the names that clients follow.
    pub(crate) followed: Arc<Admission>,
    threads: FairSemaphore,
    pub(crate) budgets: Arc<Budgets>,
    bodies: BodyBudget,
    pub(crate) metrics: Metrics,
    pub(crate) connections: Arc<Connections>,
    draining: watch::Sender<bool>,
    /// Another for every process.
    salt: u64,
    counter: AtomicU64,
}

impl<H: Host> Service<H> {
    pub fn new(host: H, options: Options, feed: Feed) -> io::Result<Arc<Self>> {
        let mut salt = [0; 8];
        getrandom::fill(&mut salt).map_err(io::Error::other)?;
        let limits = &options.limits;
        let requests = Admission::new(limits.requests, limits.requests_per_principal);
        let streams = Admission::new(limits.streams, limits.streams_per_principal);
        let threads = FairSemaphore::new(limits.threads);
        let budgets = Budgets::new(limits.cpu_time_per_principal, limits.bytes_per_principal);
        let connections = Connections::new(limits.connections, limits.connections_per_address);
        let bodies = BodyBudget::new(limits.large_bodies_bytes);
        Ok(Arc::new(Self {
            host,
            signer: Signer::new(options.key),
            options,
            feed,
            routes: Routes::default(),
            peers: Peers::default(),
            ended: Mutex::default(),
            requests,
            streams,
            replies: Admission::new(REPLIES_MAX, REPLIES_PER_PRINCIPAL_MAX),
            remembered: Admission::new(PEERS_MAX, PEERS_PER_PRINCIPAL_MAX),
            followed: Admission::new(FOLLOWED_BYTES_MAX, FOLLOWED_BYTES_PER_PRINCIPAL_MAX),
            threads,
            budgets,
            bodies,
            metrics: Metrics::default(),
            connections,
            draining: watch::channel(false).0,
            salt: u64::from_be_bytes(salt),
            counter: AtomicU64::new(0),
        }))
    }

    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let documents =
            self.options.documents.iter().fold(Router::new(), |router, (path, text)| {
                let text = text.clone();
                router.route(path, any(|method: Method| probes::document(method, text)))
            });
        documents
            .route("/mcp", any(endpoint::<H>))
            .route("/metrics", get(probes::metrics::<H>))
            .route("/healthz", get(probes::healthz))
            .route("/readyz", get(probes::readyz::<H>))
            .fallback(endpoints::endpoint::<H>)
            .with_state(Arc::clone(self))
    }

    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Nothing new begins, and what only listens ends.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
        self.peers.end_all();
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.is_draining() && self.host.is_ready()
    }

    /// What every request has to pass: who asks for whom, and who it is.
    pub(crate) async fn admit(&self, parts: &Parts) -> Result<Option<Principal>, Refused> {
        let admitted = match self.options.allowed.check(&parts.uri, &parts.headers) {
            Err(foreign) => Err(Refused::Foreign(foreign)),
            Ok(()) => self.host.authenticate(&parts.headers).await.map_err(Refused::Denied),
        };
        if let (Ok(principal), Some(connection)) =
            (&admitted, parts.extensions.get::<Arc<OpenConnection>>())
        {
            self.connections.admit(connection, principal.as_ref());
        }
        admitted.inspect_err(|refused| {
            let (status, reason) = refused.words();
            let (method, path) = (parts.method.as_str(), parts.uri.path());
            self.host.turned_away(method, path, status.as_u16(), &reason, None);
        })
    }

    /// The handshake that a request belongs to.
    pub(crate) fn handshake(
        &self,
        headers: &HeaderMap,
        principal: Option<&Principal>,
    ) -> Result<Had, Refused> {
        let token = headers.get(SESSION).ok_or(Refused::NoSession)?;
        let had = self.signer.verify(token.as_bytes(), now()).ok_or(Refused::UnknownSession)?;
        let is_own = had.principal.as_deref() == principal.map(|principal| &*principal.name);
        if !is_own {
            return Err(Refused::ForeignSession);
        }
        if self.ended().has(&had.id) || self.host.has_ended(had.id) {
            return Err(Refused::UnknownSession);
        }
        Ok(had)
    }

    /// What a client carries from now on.
    pub(crate) fn new_handshake(
        &self,
        connection: &Connection,
        principal: Option<&Principal>,
    ) -> Option<HeaderValue> {
        let handshake = connection.handshake()?;
        let principal = principal.map(|principal| &*principal.name);
        if principal.is_some_and(|principal| principal.len() > PRINCIPAL_BYTES_MAX) {
            tracing::error!("the name of a principal is too long for a handshake");
            return None;
        }
        let mut id = Id::default();
        getrandom::fill(&mut id).ok()?;
        Metrics::add(&self.metrics.handshakes);
        HeaderValue::from_str(&self.signer.sign(id, handshake, principal, now())).ok()
    }

    /// Whoever is told that it has ended finds that every process knows, where they tell one another.
    async fn end_handshake(self: &Arc<Self>, had: &Had, principal: Option<&Principal>) {
        let (id, until) = (had.id, had.until);
        self.ended().add(id, until);
        self.peers.end(&id);
        Metrics::add(&self.metrics.ended);
        // It may have to wait for a disk. Where all others do too, it goes on without a place.
        let _place = self.thread(principal.map(|principal| Arc::clone(&principal.name))).await;
        let service = Arc::clone(self);
        let _ = tokio::task::spawn_blocking(move || service.host.end_handshake(id, until)).await;
    }

    /// Waits for the turn of a principal's blocking work. None if that takes too long.
    pub(crate) async fn thread(&self, principal: Option<Arc<str>>) -> Option<Permit> {
        let waiting_max = self.options.limits.requests_per_principal;
        timeout(THREAD_TIME, self.threads.acquire(principal, waiting_max)).await.ok()?.ok()
    }

    /// Counts a request of a principal as in flight, if its budget allows another one.
    pub(crate) fn enter(&self, principal: Option<&Principal>) -> Result<Place, Refused> {
        self.budgets.check(principal).map_err(Refused::OverBudget)?;
        self.requests.enter(principal).ok_or(Refused::Busy)
    }

    /// Reads a body, whose bytes count for a principal as they arrive.
    pub(crate) async fn read(
        &self,
        principal: Option<&Principal>,
        parts: &Parts,
        body: Body,
    ) -> Result<BufferedBody, Refused> {
        let owner = match parts.extensions.get::<Arc<OpenConnection>>() {
            Some(connection) => connection.request_owner(principal),
            None => Owner::Principal(principal.map(|principal| Arc::clone(&principal.name))),
        };
        let name = principal.map(|principal| &principal.name);
        let spend = |bytes| self.budgets.spend_bytes(name, bytes);
        let time = self.options.limits.body_time;
        self.bodies.read(owner, &parts.headers, body, time, spend).await
    }

    pub(crate) fn peer(&self, principal: Option<&Principal>, had: Option<&Had>) -> Peer {
        let logs = self.host.server().logs;
        let log_level = had.filter(|_| logs).and_then(|had| self.peers.log_level(&had.id));
        Peer { log_level, ..self.unknown_peer(principal, had) }
    }

    /// One that nothing is kept for yet. Whoever makes it holds all that is kept, so nothing is looked up here.
    fn unknown_peer(&self, principal: Option<&Principal>, had: Option<&Had>) -> Peer {
        Peer {
            principal: principal.map(|principal| Arc::clone(&principal.name)),
            scope: principal.map(|principal| Arc::clone(&principal.scope)),
            handshake: had.map(|had| had.handshake),
            salt: u128::from(self.salt) << 64 | u128::from(self.number()),
            log_level: None,
        }
    }

    pub(crate) fn new_stream(&self, request: Option<&mcp::Id>) -> Arc<Stream> {
        Stream::new(self.salt << 32 | self.number() & 0xffff_ffff, request)
    }

    /// What is kept for a client, to begin with.
    pub(crate) fn new_peer(&self, principal: Option<&Principal>, had: &Had) -> Option<NewPeer> {
        let peer = self.unknown_peer(principal, Some(had));
        Some(NewPeer {
            connection: Connection::over_http(self.host.server(), peer),
            stream: self.new_stream(None),
            place: self.remembered.enter(principal)?,
            share: self.followed.enter_with(principal, 0)?,
        })
    }

    /// For a stream of this principal's, or of somebody who has shown nothing.
    pub(crate) fn is_good(self: &Arc<Self>, principal: Option<&Principal>) -> Option<IsGood> {
        let (service, principal) = (Arc::clone(self), principal.cloned());
        Some(Box::new(move || match &principal {
            Some(principal) => service.host.is_still_good(principal),
            None => service.host.lets_anybody_in(),
        }))
    }

    /// Forgets what has become old.
    pub(crate) fn sweep(&self) {
        self.budgets.sweep();
        self.peers.sweep(now());
        self.ended().sweep(now());
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            is_ready: self.is_ready(),
            connections: self.connections.count(),
            requests: self.requests.under_way(),
            streams: self.streams.under_way(),
            peers: self.peers.count(),
        }
    }

    fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    fn ended(&self) -> parking_lot::MutexGuard<'_, Ended> {
        self.ended.lock()
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// For logs and metrics, where nothing stands that a client has made up.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::GET => "GET",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

async fn endpoint<H: Host>(State(service): State<Arc<Service<H>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let method = method_name(&parts.method);
    let begun = tracing::enabled!(tracing::Level::INFO).then(Instant::now);
    let mut principal = None;
    let served = match (check_headers(&parts.headers), method) {
        (Err(refused), _) => Err(refused),
        (Ok(()), "OPTIONS") => preflight(&service, &parts),
        (Ok(()), "other") => Err(Refused::MethodNotAllowed),
        (Ok(()), _) => match service.admit(&parts).await {
            Err(refused) => Err(refused),
            Ok(admitted) => {
                principal = admitted;
                let principal = principal.as_ref();
                match method {
                    "POST" => post::post(&service, &parts, principal, body).await,
                    "GET" => getting::get(&service, &parts, principal),
                    _ => delete(&service, &parts, principal).await,
                }
            }
        },
    };
    if let Err(refused) = &served {
        service.metrics.refused(refused.kind());
    }
    if matches!(served, Err(Refused::ForeignSession)) {
        let reason = "the `Mcp-Session-Id` is somebody else's";
        service.host.turned_away(method, parts.uri.path(), 404, reason, principal.as_ref());
    }
    let reason = served.as_ref().err().filter(|_| begun.is_some()).map(Refused::details);
    let mut response = served.unwrap_or_else(Refused::response);
    let status = response.status().as_u16();
    service.metrics.responded(method, status);
    if service.is_draining() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(begun) = begun {
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let principal = principal.as_ref().map_or("nobody", |principal| &*principal.name);
        match reason {
            None => tracing::info!(method, status, principal, micros, "answered"),
            Some(reason) => tracing::info!(method, status, principal, reason, micros, "refused"),
        }
    }
    allow_origin(&service, &parts.headers, &mut response);
    service.budgets.meter(principal.as_ref(), response)
}

/// A page that may call us may read what we say.
pub(crate) fn allow_origin<H: Host>(
    service: &Service<H>,
    asked: &HeaderMap,
    response: &mut Response,
) {
    if let Some(origin) = service.options.allowed.named(asked) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// What makes a request one that nobody should look at any further: headers beyond all measure, or one that stands twice
/// where two readers could take another one each.
pub(crate) fn check_headers(headers: &HeaderMap) -> Result<(), Refused> {
    let length = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    if headers.iter().map(length).sum::<usize>() > HEADERS_BYTES_MAX {
        return Err(Refused::HeadersTooLarge);
    }
    let once = [VERSION, METHOD, NAME, SESSION, LAST_EVENT];
    let twice = once.into_iter().find(|name| headers.get_all(*name).iter().nth(1).is_some());
    twice.map_or(Ok(()), |name| Err(Refused::Twice(name)))
}

/// A client with a handshake names one of its revisions, if any, also where it sends no message.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(version) = headers.get(VERSION) else {
        return Ok(());
    };
    let revision = version.to_str().ok().and_then(Revision::parse);
    match revision.is_some_and(|revision| !revision.traits().is_modern) {
        true => Ok(()),
        false => Err(Refused::UnsupportedVersion),
    }
}

/// A client says goodbye.
async fn delete<H: Host>(
    service: &Arc<Service<H>>,
    parts: &Parts,
    principal: Option<&Principal>,
) -> Result<Response, Refused> {
    check_version(&parts.headers)?;
    let had = service.handshake(&parts.headers, principal)?;
    let _place = service.enter(principal)?;
    service.end_handshake(&had, principal).await;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// A browser asks whether a page may call us.
pub(crate) fn preflight<H: Host>(service: &Service<H>, parts: &Parts) -> Result<Response, Refused> {
    service.options.allowed.check(&parts.uri, &parts.headers).map_err(Refused::Foreign)?;
    let mut response = answer::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id",
        ),
        (ACCESS_CONTROL_MAX_AGE, "3600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
