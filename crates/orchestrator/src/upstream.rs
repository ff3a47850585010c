//! One upstream: its connection, and what is asked over it. Every way of asking passes here, and with it every rule: who may
//! call what, how often, how long, and what is tried again.

mod asking;
mod call_context;
mod calls;
mod channel;
pub(crate) mod checks;
mod child;
mod client_handler;
mod connect;
mod connection;
mod deadline;
mod failure;
mod gate;
pub(crate) mod http;
pub mod info;
mod keeper;
mod link;
pub mod list;
mod notices;
mod result;
mod router;
mod shelf;
mod stdio;
mod subscriptions;
mod tries;
mod whom;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::client::Request;
use parking_lot::{Mutex, MutexGuard};
use registry::entry::Entry;
use registry::policy::Policy;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

pub(crate) use connect::Settings;

use crate::breaker::What;
use crate::call::Party;
use crate::error::Error;
use crate::kept::Store;
use crate::pool::{Event, Kind};
use call_context::CallContext;
use checks::Checks;
use connection::Connection;
use deadline::Deadline;
use failure::{Failure, Repeat};
use gate::Gate;
use info::{Era, Info};
use link::Link;
use list::{Collect, CollectItems, CollectTools, List, ToolList};
use notices::Notices;
use shelf::{Freshness, Shelf};
use subscriptions::{Subscriptions, Way, Wish};
use tries::Tries;

/// So many requests may wait for one upstream at a time.
const IN_FLIGHT_MAX: usize = 256;
/// How long things may take that nobody waits for.
const ROUTINE: Duration = Duration::from_secs(10);
/// Between two looks at whether something is under way.
const RETIRING_LOOK: Duration = Duration::from_millis(20);

pub(crate) struct Upstream {
    id: Arc<str>,
    terms: Mutex<Terms>,
    gate: Gate,
    link: Link,
    subscriptions: Subscriptions,
    tools: Shelf<ToolList>,
    resources: Shelf<List>,
    templates: Shelf<List>,
    prompts: Shelf<List>,
    shared: Shared,
    is_closed: AtomicBool,
}

/// What all upstreams have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) checks: Checks,
    pub(crate) store: Store,
    pub(crate) result_limit: usize,
    pub(crate) total_limit: Duration,
}

/// What the entry says at the moment.
#[derive(Clone)]
struct Terms {
    entry: Arc<Entry>,
    policy: Arc<Policy>,
    /// The tools that the policy lets through, of the list that was looked at last.
    offered: Option<(Arc<ToolList>, Arc<ToolList>)>,
}

impl Terms {
    fn new(entry: Arc<Entry>) -> Self {
        let policy = Arc::new(Policy::new(&entry));
        Self { entry, policy, offered: None }
    }
}

impl Upstream {
    pub(crate) fn new(
        entry: Arc<Entry>,
        settings: Settings,
        shared: Shared,
        events: broadcast::Sender<Event>,
    ) -> Arc<Self> {
        let notices = Arc::new(Notices::new(&entry.id, events));
        Arc::new_cyclic(|upstream| {
            let (upstream, runtime) = (upstream.clone(), settings.runtime.clone());
            let on_connected = move |connection: &Arc<Connection>| {
                let (weak, over) = (Arc::downgrade(connection), connection.over().clone());
                runtime.spawn(subscriptions::follow(upstream.clone(), weak, over));
            };
            Self {
                id: settings.server.clone(),
                gate: Gate::new(&entry.id, entry.calls_per_minute()),
                terms: Mutex::new(Terms::new(entry)),
                link: Link::new(settings, notices.clone(), Box::new(on_connected)),
                subscriptions: Subscriptions::default(),
                tools: Shelf::new(Kind::Tools, notices.clone()),
                resources: Shelf::new(Kind::Resources, notices.clone()),
                templates: Shelf::new(Kind::Templates, notices.clone()),
                prompts: Shelf::new(Kind::Prompts, notices),
                shared,
                is_closed: AtomicBool::new(false),
            }
        })
    }

    /// Takes over what an entry says now. Not where it is another server than before.
    pub(crate) fn update(&self, entry: &Arc<Entry>) -> bool {
        let mut terms = self.terms();
        if Arc::ptr_eq(&terms.entry, entry) {
            return true;
        }
        if terms.entry.connect != entry.connect {
            return false;
        }
        self.gate.set_calls_per_minute(entry.calls_per_minute());
        *terms = Terms::new(entry.clone());
        true
    }

    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock()
    }

    fn context(&self, timeout: Option<Duration>) -> Arc<CallContext> {
        let patience = timeout.unwrap_or_else(|| self.terms().entry.timeout());
        CallContext::background(Deadline::new(patience, self.shared.total_limit))
    }

    /// The tools that the entry lets through.
    pub(crate) async fn tools(&self) -> Result<Arc<ToolList>, Error> {
        let context = self.context(None);
        let list = self.list::<CollectTools>(&self.tools, &context).await?;
        Ok(self.offered(list))
    }

    /// The same as far as it is known already, outdated or not.
    pub(crate) fn known_tools(&self) -> Option<Arc<ToolList>> {
        self.tools.last().map(|list| self.offered(list))
    }

    pub(crate) fn known_info(&self) -> Option<Info> {
        self.link.current().map(|connection| connection.info().clone())
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link.current().is_some()
    }

    fn offered(&self, list: Arc<ToolList>) -> Arc<ToolList> {
        let mut terms = self.terms();
        if let Some((whole, offered)) = &terms.offered
            && Arc::ptr_eq(whole, &list)
        {
            return offered.clone();
        }
        let offered = list.offered_by(&terms.policy).map_or_else(|| list.clone(), Arc::new);
        terms.offered = Some((list, offered.clone()));
        offered
    }

    pub(crate) async fn resources(&self) -> Result<Arc<List>, Error> {
        self.list::<CollectItems>(&self.resources, &self.context(None)).await
    }

    pub(crate) async fn templates(&self) -> Result<Arc<List>, Error> {
        self.list::<CollectItems>(&self.templates, &self.context(None)).await
    }

    pub(crate) async fn prompts(&self) -> Result<Arc<List>, Error> {
        self.list::<CollectItems>(&self.prompts, &self.context(None)).await
    }

    async fn list<C: Collect>(
        &self,
        shelf: &Shelf<C::List>,
        context: &Arc<CallContext>,
    ) -> Result<Arc<C::List>, Error> {
        if let Some(list) = shelf.get(Freshness::AsTold) {
            return Ok(list);
        }
        let entered = self.gate.enter(What::Reaching)?;
        let result = self.fetch::<C>(shelf, Freshness::AsTold, context).await;
        entered.came_to(&result);
        result
            .map_err(|failure| failure.into_error(&self.id))?
            .ok_or_else(|| self.not_offered(shelf.kind()))
    }

    fn not_offered(&self, kind: Kind) -> Error {
        Error::NotOffered { server: self.id.to_string(), what: capability(kind) }
    }

    /// One at a time: the others find what it brings. Nothing where the server has no such list.
    async fn fetch<C: Collect>(
        &self,
        shelf: &Shelf<C::List>,
        freshness: Freshness,
        context: &Arc<CallContext>,
    ) -> Result<Option<Arc<C::List>>, Failure> {
        let _fetching = tokio::select! {
            fetching = shelf.fetching.lock() => fetching,
            () = context.cancelled.cancelled() => return Err(Failure::Cancelled),
            () = context.deadline.passed() => return Err(connection::late(context)),
        };
        if let Some(list) = shelf.get(freshness) {
            return Ok(Some(list));
        }
        let kind = shelf.kind();
        let mut tries = Tries::new(Repeat::Harmless);
        loop {
            let fetched = async {
                let connection = self.link.connection(context).await?;
                if !connection.info().may_offer(capability(kind)) {
                    return Ok(None);
                }
                let begun = shelf.begin();
                let fetched = list::fetch::<C>(kind, &connection, context).await?;
                let tells = connection.info().offers(&format!("{}/listChanged", capability(kind)));
                Ok(Some(shelf.put(begun, fetched.list, fetched.time_to_live, tells)))
            };
            match fetched.await {
                Ok(list) => return Ok(list),
                Err(failure) => tries.again(failure, context).await?,
            }
        }
    }

    /// The result of `resources/read`, and the same in the server's own letters.
    pub(crate) async fn read(
        &self,
        uri: &str,
        party: Party,
    ) -> Result<(Value, Box<RawValue>), Error> {
        let deadline = Deadline::new(self.terms().entry.timeout(), self.shared.total_limit);
        let context = &Arc::new(CallContext { party: Some(party), ..CallContext::new(deadline) });
        self.harmless(What::Calling, context, |connection| async move {
            let request = || Request::new("resources/read").with("uri", uri);
            let raw = asking::ask(&connection, request, context).await?;
            Ok((result::read(&raw)?, raw))
        })
        .await
    }

    /// Connects where needed, and waits for a sign of life.
    pub(crate) async fn ping(&self) -> Result<Duration, Error> {
        let context = self.context(None);
        let context = &context;
        self.harmless(What::Reaching, context, |connection| async move {
            let began = tokio::time::Instant::now();
            connection.ping(context).await?;
            Ok(began.elapsed())
        })
        .await
    }

    pub(crate) async fn info(&self) -> Result<Info, Error> {
        let context = self.context(None);
        self.harmless(What::Reaching, &context, |connection| async move {
            Ok(connection.info().clone())
        })
        .await
    }

    /// Something that may be done twice.
    async fn harmless<T, F>(
        &self,
        what: What,
        context: &Arc<CallContext>,
        act: impl Fn(Arc<Connection>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let entered = self.gate.enter(what)?;
        let mut tries = Tries::new(Repeat::Harmless);
        let result = loop {
            let result = match self.link.connection(context).await {
                Ok(connection) => act(connection).await,
                Err(failure) => Err(failure),
            };
            let failure = match result {
                Ok(value) => break Ok(value),
                Err(failure) => failure,
            };
            if let Err(failure) = tries.again(failure, context).await {
                break Err(failure);
            }
        };
        entered.came_to(&result);
        result.map_err(|failure| failure.into_error(&self.id))
    }

    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        let change = match self.subscriptions.add(uri) {
            Wish::OneMore => return Ok(()),
            Wish::TooMany => {
                let what = "more subscriptions than there are";
                return Err(Error::NotOffered { server: self.id.to_string(), what });
            }
            Wish::First(change) => change,
        };
        // Whoever gives up half-way wants it no more.
        let mut wish = Undo { upstream: self, uri: Some(uri) };
        let context = &self.context(None);
        let result = self.harmless(What::Reaching, context, |connection| async move {
            match connection.info().era {
                Era::Legacy if !connection.info().offers("resources/subscribe") => Ok(None),
                Era::Legacy => {
                    subscriptions::ask(&connection, uri, Way::Subscribe, Some(context)).await?;
                    Ok(Some(connection.serial()))
                }
                Era::Modern => {
                    let agreed = self.subscriptions.agreed(uri, change, &connection, context);
                    Ok(agreed.await?.then(|| connection.serial()))
                }
            }
        });
        match result.await? {
            Some(connection) => {
                self.subscriptions.agree(uri, connection);
                wish.uri = None;
                Ok(())
            }
            None => Err(Error::NotOffered {
                server: self.id.to_string(),
                what: "subscriptions to this resource",
            }),
        }
    }

    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        if !self.subscriptions.remove(uri) {
            return Ok(());
        }
        // What is not there any more tells nothing.
        let Some(connection) = self.link.current() else { return Ok(()) };
        if connection.info().era == Era::Legacy {
            let context = self.context(None);
            let asked =
                subscriptions::ask(&connection, uri, Way::Unsubscribe, Some(&context)).await;
            asked.map_err(|failure| failure.into_error(&self.id))?;
        }
        Ok(())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Ends it when what is under way is done, within a bound: nobody comes any more.
    pub(crate) async fn retire(&self) {
        let idle = async {
            loop {
                // First for whoever was on the way here.
                tokio::time::sleep(RETIRING_LOOK).await;
                if self.gate.is_idle() {
                    return;
                }
            }
        };
        // Whoever takes longer is told that the connection broke.
        let _ = tokio::time::timeout(ROUTINE, idle).await;
        self.close().await;
    }

    /// Ends its connection, politely.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.link.close().await;
    }
}

struct Undo<'u> {
    upstream: &'u Upstream,
    uri: Option<&'u str>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(uri) = self.uri {
            self.upstream.subscriptions.remove(uri);
        }
    }
}

/// Under which a server says that it has such things.
fn capability(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools => "tools",
        Kind::Resources | Kind::Templates => "resources",
        Kind::Prompts => "prompts",
    }
}

/// A context for a call.
fn context_of(
    call: &mut crate::call::Call,
    patience: Duration,
    total: Duration,
) -> Arc<CallContext> {
    Arc::new(CallContext {
        cancelled: std::mem::replace(&mut call.cancelled, CancellationToken::new()),
        progress: call.progress.take(),
        asker: call.asker.take(),
        party: Some(call.party.clone()),
        ..CallContext::new(Deadline::new(patience, total))
    })
}
