//! Other MCP servers, for the clients of ours: which there are, and the way to them. Nothing is read before somebody
//! connects, nothing is started before a server is needed, and what was started ends with us.

mod asked;
mod call;
pub mod code;
mod following;
mod hearing;
mod parked;
mod questions;
mod refused;
pub(crate) mod resources;
mod result;
mod search;
mod shown;
mod tally;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::Beside;
use orchestrator::upstream::info::Info;
use orchestrator::upstream::list::ToolList;
use orchestrator::wire::WireLog;
use orchestrator::{Error, Options, Orchestrator, Party};
use parking_lot::{Mutex, MutexGuard};
use registry::{Places, Registry, Watched, is_id};
use tokio::runtime::{Builder, Handle, Runtime};
use tool_schema::arguments::Checker;

use asked::Seal;
pub(crate) use asked::is_ours as is_question;
pub(crate) use call::{NAME as CALL, Request, Target, Work};
pub use code::{Code, ProgramsWaiting};
use following::{Followed, Knows};
use parked::Parked;
pub(crate) use refused::refused;
use search::Search;
pub(crate) use search::{Searched, Unknown};
pub(crate) use tally::Tally;

use crate::access::Who;
use crate::logins::tokens;
use crate::server::Toolset;

/// How many threads speak with upstreams, where the server has none of its own for such things.
const THREADS: usize = 2;
/// How long upstreams have to end with us. Whoever is slower is killed by its guard.
const CLOSING: Duration = Duration::from_secs(5);

/// What begins with this is a resource of an upstream: `mcp+{server}:{uri}`.
pub(crate) const SCHEME: &str = "mcp+";

pub struct Upstreams {
    places: Places,
    registry: OnceLock<Arc<Watched>>,
    wire: Option<WireLog>,
    code: Code,
    programs_waiting: OnceLock<ProgramsWaiting>,
    /// Which of our own tools programs can import; all if it is not set.
    toolset: OnceLock<Toolset>,
    /// Where work is done: the server's runtime, or one of our own that begins when it is needed.
    runtime: OnceLock<Handle>,
    own_runtime: Mutex<Option<Runtime>>,
    /// Set where more than one client is served.
    is_shared: OnceLock<()>,
    orchestrator: OnceLock<Orchestrator>,
    seal: OnceLock<Seal>,
    parked: Parked,
    /// For what clients answer.
    checker: Checker,
    followed: Followed,
    search: Search,
    /// Who is there, and what each says about itself once it is known.
    connected: Mutex<HashMap<String, Option<Info>>>,
    /// Whose resources clients were shown, since they heard last that the list is another one.
    listed: Mutex<Option<BTreeSet<String>>>,
    tally: Tally,
    /// Which state of the registry clients were told of.
    told: Mutex<Option<Told>>,
    /// Who is told of changes.
    tell: OnceLock<Box<dyn Fn(mcp::Changed) + Send + Sync>>,
}

/// What clients know of the registry.
struct Told(Arc<Registry>);

impl Upstreams {
    pub fn new(places: Places, wire: Option<WireLog>, code: Code) -> Arc<Self> {
        Arc::new(Self {
            places,
            registry: OnceLock::new(),
            wire,
            code,
            programs_waiting: OnceLock::new(),
            toolset: OnceLock::new(),
            runtime: OnceLock::new(),
            own_runtime: Mutex::default(),
            is_shared: OnceLock::new(),
            orchestrator: OnceLock::new(),
            seal: OnceLock::new(),
            parked: Parked::default(),
            checker: Checker::default(),
            followed: Followed::default(),
            search: Search::default(),
            connected: Mutex::default(),
            listed: Mutex::default(),
            tally: Tally::default(),
            told: Mutex::default(),
            tell: OnceLock::new(),
        })
    }

    /// Serves many clients, on this runtime, and signs with this key, so that other processes that have it understand what clients
    /// bring back. To be said before anybody calls.
    pub(crate) fn serve_on(&self, runtime: &Handle, key: [u8; 32]) {
        // Whoever was first has said the same.
        let _ = self.is_shared.set(());
        let _ = self.runtime.set(runtime.clone());
        let _ = self.seal.set(Seal::new(key));
    }

    /// Who is to hear of changes: tools that come and go, resources that are others than they were.
    pub(crate) fn tell_to(&self, tell: impl Fn(mcp::Changed) + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    fn tell(&self, changed: mcp::Changed) {
        if let Some(tell) = self.tell.get() {
            tell(changed);
        }
    }

    /// For who watches files anyway: those that name upstreams, whether they are there or not.
    pub(crate) fn beside(self: &Arc<Self>) -> Beside {
        let files = self.places.files().into_iter().map(|(_, path)| path);
        // What is trusted meanwhile counts at once.
        let record = self.places.trust.as_ref().and_then(|trust| trust.record());
        let files = files.chain(record).collect();
        let own = Arc::clone(self);
        Beside { files, touched: Some(Box::new(move || own.look())) }
    }

    /// The upstreams as their files have them now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        let registry = self.watched().current();
        let mut told = self.told.lock();
        // From here on, changes are news.
        told.get_or_insert_with(|| Told(Arc::clone(&registry)));
        registry
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        !self.registry().is_empty()
    }

    fn watched(&self) -> &Arc<Watched> {
        self.registry.get_or_init(|| {
            let watched = Watched::new(self.places.clone());
            let registry = watched.current();
            for finding in &registry.findings {
                tracing::warn!("{finding}");
            }
            if !registry.is_empty() {
                let untrusted = registry.untrusted().count();
                tracing::info!(servers = registry.entries.len(), untrusted, "the registry is read");
            }
            Arc::new(watched)
        })
    }

    /// Somebody may have edited a file of the registry. Clients are told what that means for them, if they have seen
    /// anything of it yet.
    pub(crate) fn look(self: &Arc<Self>) {
        // The folder of the record may have to be made only now.
        self.places.trust.iter().for_each(|trust| drop(trust.record()));
        let Some(watched) = self.registry.get() else { return };
        watched.look();
        let now = watched.current();
        let mut told = self.told.lock();
        let Some(Told(before)) = told.replace(Told(Arc::clone(&now))) else { return };
        drop(told);
        if before.generation == now.generation {
            return;
        }
        if let Some(orchestrator) = self.orchestrator.get() {
            orchestrator.look();
        }
        for server in now.changed_since(&before) {
            self.follow_again(&server, Knows::Nothing);
        }
        let tools = before.is_empty() != now.is_empty();
        let resources = self.is_news_of_resources(None);
        self.tell(mcp::Changed { tools, resources, ..mcp::Changed::default() });
    }

    /// Whether somebody has seen a list of resources that is not what it was, because of this server or of many. Whoever
    /// has not looked since they were told knows already.
    fn is_news_of_resources(&self, new: Option<&str>) -> bool {
        let mut listed = self.listed.lock();
        let is_news = match (&*listed, new) {
            (None, _) => false,
            (Some(listed), Some(server)) => !listed.contains(server),
            (Some(_), None) => true,
        };
        if is_news {
            *listed = None;
        }
        is_news
    }

    fn connected(&self) -> MutexGuard<'_, HashMap<String, Option<Info>>> {
        self.connected.lock()
    }

    fn is_connected(&self, server: &str) -> bool {
        self.orchestrator.get().is_some_and(|known| known.is_connected(server))
    }

    /// What a server says about itself, if it is there.
    pub(crate) fn info(&self, server: &str) -> Option<Info> {
        self.connected().get(server).cloned().flatten()
    }

    /// The tools of a server, if they are known already.
    pub(crate) fn known_tools(&self, server: &str) -> Option<Arc<ToolList>> {
        self.search.known(server)
    }

    /// The tools of a server, which is connected to where it has to be.
    pub(crate) async fn tools(self: &Arc<Self>, server: &str) -> Result<Arc<ToolList>, Error> {
        let orchestrator = self.orchestrator().map_err(|error| {
            tracing::error!("nothing can speak with upstreams: {error}");
            Error::Closed
        })?;
        let list = orchestrator.tools(server).await?;
        self.search.put(server, &list);
        Ok(list)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The way to upstreams, which begins here.
    fn orchestrator(self: &Arc<Self>) -> std::io::Result<&Orchestrator> {
        if let Some(orchestrator) = self.orchestrator.get() {
            return Ok(orchestrator);
        }
        let runtime = self.runtime()?;
        Ok(self.orchestrator.get_or_init(|| {
            let _inside = runtime.enter();
            let options =
                Options { wire: self.wire.clone(), tokens: tokens(), ..Options::default() };
            let orchestrator = Orchestrator::new(Arc::clone(self.watched()), options);
            runtime.spawn(hearing::hear(Arc::downgrade(self), orchestrator.events()));
            orchestrator
        }))
    }

    fn runtime(&self) -> std::io::Result<&Handle> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let mut own = self.own_runtime.lock();
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(THREADS).thread_name("upstreams").enable_all().build()?;
        let handle = self.runtime.get_or_init(|| runtime.handle().clone());
        *own = Some(runtime);
        Ok(handle)
    }

    /// Whose call it is. Over standard input and output there is one client; over HTTP who has no name is a stranger to
    /// everybody, and to the own call before.
    fn party(&self, who: &Who) -> Party {
        match who {
            Who::Principal { name, .. } => Party::named(Arc::clone(name)),
            Who::Local(_) if self.is_shared.get().is_none() => Party::named(""),
            Who::Local(_) => Party::alone(),
        }
    }

    fn seal(&self) -> &Seal {
        self.seal.get_or_init(Seal::of_this_process)
    }

    /// Ends all connections and all that was started, politely but not for long.
    pub(crate) fn close(&self) {
        let Some(orchestrator) = self.orchestrator.get() else { return };
        let Some(runtime) = self.runtime.get() else { return };
        let closing = async {
            if tokio::time::timeout(CLOSING, orchestrator.close()).await.is_err() {
                tracing::warn!("some upstreams do not end; their guards see to it");
            }
        };
        runtime.block_on(closing);
        let own = self.own_runtime.lock().take();
        if let Some(own) = own {
            own.shutdown_background();
        }
    }
}

/// What a resource of an upstream is called here.
fn resource_uri(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}:{uri}")
}

/// Whose it is, and what it is called there.
fn split_uri(uri: &str) -> Option<(&str, &str)> {
    let (server, theirs) = uri.strip_prefix(SCHEME)?.split_once(':')?;
    (is_id(server) && !theirs.is_empty()).then_some((server, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_leads_back_to_its_server() {
        for (server, uri) in [("files", "file:///a:b"), ("a-b", "x"), ("t", "mcp+u:mcp+v:w")] {
            assert_eq!(split_uri(&resource_uri(server, uri)), Some((server, uri)));
        }
        for odd in ["", "mcp+", "mcp+a", "mcp+a:", "mcp+:x", "mcp+A b:x", "file:///a"] {
            assert_eq!(split_uri(odd), None, "{odd}");
        }
    }
}
