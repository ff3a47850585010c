//! The index over upstreams and their tools, as far as these are known. Cards come from the registry. Lists of tools come
//! when somebody searches, in the background and a few at a time. Whoever searches waits a little for those that are just
//! starting, and never for who failed: that is tried again beside, and why it failed is told. A list that is outdated is
//! fetched again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use discovery::{Card, Filter, Found, Index, Said};
use orchestrator::Error;
use orchestrator::upstream::info::Info;
use orchestrator::upstream::list::ToolList;
use parking_lot::{Mutex, MutexGuard};
use registry::policy::{Wish, is_shown};
use registry::{Entry, Registry};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Upstreams;

/// How long answers wait for a server that is being looked into, from when that began.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// How many servers are looked into at a time.
const LOOKING_MAX: usize = 16;

pub(super) struct Search {
    state: Mutex<State>,
    /// Told whenever a look is over.
    over: Notify,
    turns: Semaphore,
}

#[derive(Default)]
struct State {
    index: Index,
    /// Whose cards are in the index.
    registry: Option<Arc<Registry>>,
    /// What is in the index of each server's tools.
    lists: HashMap<String, Arc<ToolList>>,
    /// What servers have said about themselves.
    infos: HashMap<String, Info>,
    /// Who is being looked into, and until when that is waited for.
    looking: HashMap<String, Instant>,
    /// Why there was nothing to see last time. Nobody waits for these until they answer.
    failed: HashMap<String, Error>,
}

/// What a search came to.
pub(crate) struct Searched {
    pub(crate) found: Found,
    /// The servers that are shown and whose tools are not known.
    pub(crate) unknown: Vec<(String, Unknown)>,
}

/// Why the tools of a server are not known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unknown {
    /// It has not answered yet.
    Starting,
    Failed(Error),
    /// Its entry says that looking is no reason to start it.
    OnlyWhenCalled,
}

impl Default for Search {
    fn default() -> Self {
        Self { state: Mutex::default(), over: Notify::new(), turns: Semaphore::new(LOOKING_MAX) }
    }
}

impl Search {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The tools of a server, if they are known, as of the last look.
    pub(super) fn known(&self, server: &str) -> Option<Arc<ToolList>> {
        self.state().lists.get(server).cloned()
    }

    /// A list of tools has come to be known.
    pub(super) fn put(&self, server: &str, list: &Arc<ToolList>) {
        let mut state = self.state();
        state.failed.remove(server);
        let is_same = state.lists.get(server).is_some_and(|known| Arc::ptr_eq(known, list));
        // Whoever is not in the registry any more is not searched.
        let is_there = state.registry.as_ref().is_none_or(|known| known.get(server).is_some());
        if !is_same && is_there {
            state.index.put_tools(server, &list.tools);
            state.lists.insert(server.to_owned(), Arc::clone(list));
        }
    }

    /// A server says something about itself.
    pub(super) fn met(&self, server: &str, info: &Info) {
        let mut state = self.state();
        if state.infos.get(server) == Some(info) {
            return;
        }
        state.infos.insert(server.to_owned(), info.clone());
        let entry = state.registry.as_ref().and_then(|registry| registry.get(server)).cloned();
        if let Some(entry) = entry {
            state.put_card(&entry);
        }
    }

    /// There is nothing to see at the moment.
    fn failed(&self, server: &str, error: Error) {
        let mut state = self.state();
        // That it is left alone for a while is because of what was wrong before, which says more.
        if !matches!(error, Error::Open { .. }) || !state.failed.contains_key(server) {
            state.failed.insert(server.to_owned(), error);
        }
    }
}

impl State {
    fn put_card(&mut self, entry: &Entry) {
        let said = self.infos.get(&entry.id).map(said_by).unwrap_or_default();
        self.index.put_server(Card { said, ..Card::from(entry) });
    }

    /// Takes over what the registry says now.
    fn follow(&mut self, registry: &Arc<Registry>) {
        let before = self.registry.replace(Arc::clone(registry));
        if before.as_ref().is_some_and(|before| before.generation == registry.generation) {
            return;
        }
        let changed = match &before {
            Some(before) => registry.changed_since(before),
            None => registry.entries.iter().map(|entry| entry.id.clone()).collect(),
        };
        for id in changed {
            // Whatever was wrong may be mended, and it may be another server.
            self.failed.remove(&id);
            if before.is_some() {
                self.infos.remove(&id);
            }
            match registry.get(&id) {
                Some(entry) => self.put_card(entry),
                None => {
                    self.index.remove(&id);
                    self.lists.remove(&id);
                }
            }
        }
        self.infos.retain(|id, _| registry.get(id).is_some());
        // What was known before its card was is searched from now on.
        for (id, list) in &self.lists {
            if before.is_none() {
                self.index.put_tools(id, &list.tools);
            }
        }
    }
}

/// What a server says of itself, as its card has it.
fn said_by(info: &Info) -> Said<'_> {
    Said {
        name: Some(&info.name),
        title: info.title.as_deref(),
        description: info.description.as_deref(),
        instructions: info.instructions.as_deref(),
    }
}

impl Upstreams {
    /// The servers by priority, as many as are shown. Nothing is connected to.
    pub(crate) fn cards(&self, filter: &Filter<'_>) -> Vec<Arc<Entry>> {
        let registry = self.registry();
        let wish = |id: &String| Wish {
            named: filter.named.contains(id),
            experimental: filter.experimental,
        };
        let shown = registry.entries.iter();
        let shown = shown.filter(|entry| is_shown(entry.visibility, wish(&entry.id)));
        let mut shown: Vec<Arc<Entry>> = shown.cloned().collect();
        shown.sort_by(|one, other| {
            other.priority.cmp(&one.priority).then_with(|| one.id.cmp(&other.id))
        });
        shown
    }

    /// The best servers and tools for a query. Waits a little for lists of tools that nobody has fetched yet.
    pub(crate) async fn find(
        self: &Arc<Self>,
        query: &str,
        filter: &Filter<'_>,
        limit: usize,
    ) -> Searched {
        let registry = self.registry();
        let mut shown = self.cards(filter);
        {
            let mut state = self.search.state();
            state.follow(&registry);
            // Who is shown only when it is named may be named in the query.
            for hit in state.index.search(query, filter, limit).servers {
                let entry = registry.get(&hit.id);
                let entry = entry.filter(|_| shown.iter().all(|shown| shown.id != hit.id));
                shown.extend(entry.cloned());
            }
        }
        let wanted =
            shown.iter().filter(|entry| entry.auto_discover_tools || self.is_connected(&entry.id));
        let mut awaited: HashSet<String> = HashSet::new();
        for entry in wanted {
            let has_failed = self.search.state().failed.contains_key(&entry.id);
            self.look_into(&entry.id);
            if !has_failed {
                awaited.insert(entry.id.clone());
            }
        }
        self.wait_for(awaited).await;
        let state = self.search.state();
        let found = state.index.search(query, filter, limit);
        let unknown = shown.iter().filter(|entry| !state.lists.contains_key(&entry.id));
        let unknown = unknown.map(|entry| {
            let why = match state.failed.get(&entry.id) {
                Some(error) => Unknown::Failed(error.clone()),
                None if state.looking.contains_key(&entry.id) || entry.auto_discover_tools => {
                    Unknown::Starting
                }
                None => Unknown::OnlyWhenCalled,
            };
            (entry.id.clone(), why)
        });
        let unknown = unknown.collect();
        Searched { found, unknown }
    }

    /// Until all of them have been looked into, or it has taken too long.
    async fn wait_for(&self, mut awaited: HashSet<String>) {
        loop {
            let over = self.search.over.notified();
            let until = {
                let state = self.search.state();
                let now = Instant::now();
                let until = |id: &String| state.looking.get(id).copied().filter(|it| *it > now);
                awaited.retain(|id| until(id).is_some());
                awaited.iter().filter_map(until).max()
            };
            let Some(until) = until else { return };
            // Whoever is not there then is not awaited any more.
            let _ = timeout_at(until, over).await;
        }
    }

    /// Fetches the tools of a server beside everything else, unless somebody does already.
    pub(super) fn look_into(self: &Arc<Self>, server: &str) {
        {
            let mut state = self.search.state();
            if state.looking.contains_key(server) {
                return;
            }
            state.looking.insert(server.to_owned(), Instant::now() + PATIENCE);
        }
        let (own, server) = (Arc::clone(self), server.to_owned());
        let (Ok(runtime), Ok(orchestrator)) = (self.runtime(), self.orchestrator()) else {
            self.search.state().looking.remove(&server);
            return;
        };
        let orchestrator = orchestrator.clone();
        runtime.spawn(async move {
            let turn = own.search.turns.acquire().await;
            let listed = orchestrator.tools(&server).await;
            drop(turn);
            if let Some(info) = orchestrator.known_info(&server) {
                own.search.met(&server, &info);
            }
            match listed {
                Ok(list) => own.search.put(&server, &list),
                Err(error) => {
                    tracing::debug!(server, "its tools cannot be listed: {error}");
                    own.search.failed(&server, error);
                }
            }
            own.search.state().looking.remove(&server);
            own.search.over.notify_waiters();
        });
    }
}
