//! All upstreams. What is asked of one goes to it and never waits for another.

mod event;
mod options;
mod secrets;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use registry::entry::Entry;
use registry::{Registry, Watched};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

pub use event::{Event, Kind};
pub use options::{Boxed, NoToken, Options, Refusal, Tokens};

use crate::call::{Call, CallResult, Party};
use crate::error::Error;
use crate::kept::{Piece, Store};
use crate::upstream::checks::Checks;
use crate::upstream::http::Client;
use crate::upstream::info::Info;
use crate::upstream::list::{List, ToolList};
use crate::upstream::{Settings, Shared, Upstream};
use crate::wire::Secrets;

/// Events that a slow listener may be behind. It misses what is older.
const EVENTS_KEPT: usize = 1_024;
/// The longest time that closing takes, whatever happens.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// The way to all upstreams. Clones share everything; the last one to go ends all connections.
#[derive(Clone)]
pub struct Orchestrator(Arc<Inner>);

struct Inner {
    registry: Arc<Watched>,
    options: Options,
    runtime: Handle,
    upstreams: RwLock<HashMap<String, Arc<Upstream>>>,
    events: broadcast::Sender<Event>,
    http: Arc<Client>,
    secrets: Secrets,
    shared: Shared,
    is_closed: AtomicBool,
    /// The state of the registry that was looked at last.
    generation: AtomicU64,
}

impl Orchestrator {
    /// Connects to nobody yet. Must be called where there is a tokio runtime, which does the work from then on.
    pub fn new(registry: Arc<Watched>, options: Options) -> Self {
        let secrets = secrets::secrets(registry.clone(), options.tokens.clone());
        let shared = Shared {
            checks: Checks::default(),
            store: Store::new(options.kept_limit),
            result_limit: options.result_limit,
            total_limit: options.total_limit,
        };
        Self(Arc::new(Inner {
            registry,
            options,
            runtime: Handle::current(),
            upstreams: RwLock::default(),
            events: broadcast::Sender::new(EVENTS_KEPT),
            http: Arc::default(),
            secrets,
            shared,
            is_closed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        }))
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.current()
    }

    /// Calls the tool, once everything that can be checked before has been.
    pub async fn call(&self, call: Call) -> Result<CallResult, Error> {
        let server = call.server.clone();
        self.explained(&server, self.upstream(&server)?.call(call).await)
    }

    /// The tools that its entry lets through.
    pub async fn tools(&self, server: &str) -> Result<Arc<ToolList>, Error> {
        self.explained(server, self.upstream(server)?.tools().await)
    }

    /// The same as far as it is known already, outdated or not. Connects to nobody and waits for nothing.
    pub fn known_tools(&self, server: &str) -> Option<Arc<ToolList>> {
        self.known(server)?.known_tools()
    }

    /// What a server says about itself, where there is a connection at the moment.
    pub fn known_info(&self, server: &str) -> Option<Info> {
        self.known(server)?.known_info()
    }

    /// Whether there is a connection at the moment.
    pub fn is_connected(&self, server: &str) -> bool {
        self.known(server).is_some_and(|upstream| upstream.is_connected())
    }

    pub async fn resources(&self, server: &str) -> Result<Arc<List>, Error> {
        self.explained(server, self.upstream(server)?.resources().await)
    }

    pub async fn templates(&self, server: &str) -> Result<Arc<List>, Error> {
        self.explained(server, self.upstream(server)?.templates().await)
    }

    pub async fn prompts(&self, server: &str) -> Result<Arc<List>, Error> {
        self.explained(server, self.upstream(server)?.prompts().await)
    }

    /// The result of `resources/read`.
    pub async fn read(&self, server: &str, uri: &str) -> Result<Value, Error> {
        Ok(self.read_sent(server, uri).await?.0)
    }

    /// The same, and what the server sent to the letter.
    pub async fn read_sent(
        &self,
        server: &str,
        uri: &str,
    ) -> Result<(Value, Box<RawValue>), Error> {
        self.explained(server, self.upstream(server)?.read(uri, Party::alone()).await)
    }

    /// The same for somebody who is known.
    pub async fn read_for(&self, party: Party, server: &str, uri: &str) -> Result<Value, Error> {
        Ok(self.explained(server, self.upstream(server)?.read(uri, party).await)?.0)
    }

    /// From now on `Event::Updated` tells of changes. Counted: as many `unsubscribe` end it.
    pub async fn subscribe(&self, server: &str, uri: &str) -> Result<(), Error> {
        self.explained(server, self.upstream(server)?.subscribe(uri).await)
    }

    pub async fn unsubscribe(&self, server: &str, uri: &str) -> Result<(), Error> {
        self.explained(server, self.upstream(server)?.unsubscribe(uri).await)
    }

    /// Connects where needed, and waits for a sign of life; how long that took.
    pub async fn ping(&self, server: &str) -> Result<Duration, Error> {
        self.explained(server, self.upstream(server)?.ping().await)
    }

    /// Connects where needed; what the server says about itself.
    pub async fn info(&self, server: &str) -> Result<Info, Error> {
        self.explained(server, self.upstream(server)?.info().await)
    }

    /// The JSON of a result that was too large to hand over, or a part of it, by the address that its stand-in names. Only for
    /// whose call it was, where that has a name.
    pub async fn kept(&self, party: &Party, uri: &str) -> Result<Piece, Error> {
        let kept = self.0.shared.store.read(uri, party).await;
        kept.ok_or_else(|| Error::NotKept { uri: uri.to_owned() })
    }

    /// Hears of what upstreams tell on their own. Who is too slow misses some, and is told how many.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Ends all connections and children, politely, all at the same time and within a bound. Nothing can be called
    /// afterwards.
    pub async fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        let upstreams = {
            let mut upstreams = self.0.upstreams.write();
            std::mem::take(&mut *upstreams)
        };
        let mut closing = JoinSet::new();
        for upstream in upstreams.into_values() {
            closing.spawn_on(async move { upstream.close().await }, &self.0.runtime);
        }
        // Each has bounds of its own; this one is for a runtime that does not run any more.
        let _ = tokio::time::timeout(CLOSE_LIMIT, closing.join_all()).await;
    }

    /// The registry as it is now. What it does not have any more ends.
    pub fn look(&self) -> Arc<Registry> {
        let registry = self.0.registry.current();
        if self.0.generation.swap(registry.generation, Ordering::AcqRel) != registry.generation {
            self.retire(&registry);
        }
        registry
    }

    /// The upstream of an id, as the registry has it now.
    fn upstream(&self, id: &str) -> Result<Arc<Upstream>, Error> {
        if self.0.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let registry = self.look();
        let Some(entry) = registry.get(id) else {
            return Err(Error::no_server(id, &registry));
        };
        if let Some(upstream) = self.known(id)
            && upstream.update(entry)
        {
            return Ok(upstream);
        }
        let mut upstreams = self.0.upstreams.write();
        // Somebody may have been faster, and somebody may have closed everything.
        if self.0.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        if let Some(upstream) = upstreams.get(id)
            && upstream.update(entry)
        {
            return Ok(upstream.clone());
        }
        let settings = Settings {
            server: id.into(),
            connect: entry.connect.clone(),
            guard: self.0.options.guard.clone(),
            runtime: self.0.runtime.clone(),
            tasks: TaskTracker::new(),
            wire: self.0.options.wire.clone(),
            secrets: self.0.secrets.clone(),
            tokens: self.0.options.tokens.clone(),
            http: self.0.http.clone(),
            limit: self.0.options.connect_limit,
            is_current: self.is_current(entry),
        };
        let upstream =
            Upstream::new(entry.clone(), settings, self.0.shared.clone(), self.0.events.clone());
        let former = upstreams.insert(id.to_owned(), upstream.clone());
        drop(upstreams);
        if let Some(former) = former {
            self.0.runtime.spawn(async move { former.retire().await });
        }
        Ok(upstream)
    }

    /// Looks whether an entry is still in the registry, as whom to connect to.
    fn is_current(&self, entry: &Arc<Entry>) -> Box<dyn Fn() -> bool + Send + Sync> {
        let (registry, entry) = (self.0.registry.clone(), entry.clone());
        Box::new(move || {
            let now = registry.current();
            now.get(&entry.id).is_some_and(|now| now.connect == entry.connect)
        })
    }

    /// What there is no new connection for any more may be gone, or not trusted.
    fn explained<T>(&self, server: &str, result: Result<T, Error>) -> Result<T, Error> {
        let registry = match &result {
            Err(Error::Outdated { .. }) => self.look(),
            _ => return result,
        };
        match registry.get(server) {
            Some(_) => result,
            None => Err(Error::no_server(server, &registry)),
        }
    }

    /// One that somebody wanted something of before.
    fn known(&self, id: &str) -> Option<Arc<Upstream>> {
        self.0.upstreams.read().get(id).cloned()
    }

    /// Ends those that are not in the registry any more, or are others than they were.
    fn retire(&self, registry: &Registry) {
        let mut upstreams = self.0.upstreams.write();
        let is_former = |id: &String, upstream: &mut Arc<Upstream>| {
            registry.get(id).is_none_or(|entry| !upstream.update(entry))
        };
        for (_, former) in upstreams.extract_if(is_former) {
            self.0.runtime.spawn(async move { former.retire().await });
        }
    }
}
