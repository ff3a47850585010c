//! Resources of upstreams as resources of ours: `mcp+{server}:{uri}`. Listed are those of servers that we are connected to
//! anyway, or that may be looked into; who takes too long is left out for now, and comes when it is there.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use mcp::Outcome;
use mcp::content::{ForeignResource, Listed, Page, ResourceTemplate};
use orchestrator::kept::{self, Address, Piece};
use orchestrator::upstream::list::List;
use orchestrator::{Error, Party};
use registry::Entry;
use registry::entry::Visibility;
use serde_json::{Map, Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::refused::as_error;
use super::{SCHEME, Upstreams, resource_uri, split_uri};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::upstream::INVALID_PARAMS;

/// How long a list waits for servers that are not there yet.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many resources of one server are listed.
const LISTED_MAX: usize = 1_000;
/// How many entries one page holds.
const PAGE: usize = 100;
/// What servers of the handshake's era say of a resource that they do not have.
const NOT_FOUND: i64 = -32002;
/// What a cursor into this part of the list looks like: a server, and how many of its resources came before.
const CURSOR: &str = "upstream:";

/// Whether a URI is one of these.
pub(crate) fn is_one(uri: &str) -> bool {
    uri.starts_with(SCHEME) || uri.starts_with(kept::SCHEME)
}

pub(crate) fn is_cursor(cursor: &str) -> bool {
    cursor.starts_with(CURSOR)
}

pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate {
        uri_template: format!("{SCHEME}{{server}}:{{+uri}}"),
        name: "upstream".to_owned(),
        title: "Resource of another server".to_owned(),
        description: "A resource of a server in the registry, by the server's id and its own URI"
            .to_owned(),
        mime_type: "",
    }
}

/// Where a page begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    server: String,
    skip: usize,
}

impl Place {
    fn read(cursor: &str) -> Option<Self> {
        let (server, skip) = cursor.strip_prefix(CURSOR)?.rsplit_once(':')?;
        Some(Self { server: server.to_owned(), skip: skip.parse().ok()? })
    }

    fn cursor(&self) -> String {
        format!("{CURSOR}{}:{}", self.server, self.skip)
    }
}

impl Upstreams {
    /// Fills a page that has room, or makes one of its own where a cursor leads here.
    pub(crate) async fn list_resources(
        self: &Arc<Self>,
        page: Option<Page<Listed>>,
        cursor: Option<&str>,
    ) -> Outcome {
        let place = match cursor.filter(|cursor| is_cursor(cursor)).map(|it| (it, Place::read(it)))
        {
            Some((cursor, None)) => {
                return Outcome::BadParams(format!("unknown cursor `{cursor}`"));
            }
            Some((_, Some(place))) => place,
            None => Place::default(),
        };
        let page = page.unwrap_or(Page { items: Vec::new(), next: None, is_live: true });
        let fill = async move |upstreams: Arc<Self>| {
            Outcome::Resources(upstreams.filled(page, place).await)
        };
        self.later(fill).await
    }

    async fn filled(self: &Arc<Self>, mut page: Page<Listed>, place: Place) -> Page<Listed> {
        page.is_live = true;
        let lists = self.lists(&place.server).await;
        {
            let mut listed = self.listed.lock();
            listed.get_or_insert_default().extend(lists.keys().cloned());
        }
        for (server, list) in lists {
            let skip = if server == place.server { place.skip } else { 0 };
            for (at, item) in list.items.iter().take(LISTED_MAX).enumerate().skip(skip) {
                if page.items.len() >= PAGE {
                    page.next = Some(Place { server, skip: at }.cursor());
                    return page;
                }
                let item = item.value().ok().and_then(|item| renamed(&server, item));
                page.items.extend(item.map(|item| Listed::Foreign(ForeignResource(item))));
            }
        }
        page
    }

    /// Of each server from this one on, in the order of ids.
    async fn lists(self: &Arc<Self>, from: &str) -> BTreeMap<String, Arc<List>> {
        let Ok(orchestrator) = self.orchestrator() else { return BTreeMap::new() };
        let until = Instant::now() + PATIENCE;
        let mut looking = JoinSet::new();
        for entry in self.registry().entries.iter().filter(|entry| self.is_listed(entry)) {
            let (id, orchestrator) = (entry.id.clone(), orchestrator.clone());
            if id.as_str() >= from {
                looking.spawn(async move {
                    let list = timeout_at(until, orchestrator.resources(&id)).await;
                    // It may have none, or not answer: the others are still good.
                    list.ok()?.ok().map(|list| (id, list))
                });
            }
        }
        looking.join_all().await.into_iter().flatten().collect()
    }

    /// Those that are not shown to everybody can be read by who names them.
    pub(super) fn is_listed(&self, entry: &Entry) -> bool {
        let may_look = entry.auto_discover_tools || self.is_connected(&entry.id);
        may_look && entry.visibility == Visibility::Default
    }

    /// Reads one, for somebody who may.
    pub(crate) async fn read_resource(
        self: &Arc<Self>,
        app: &App,
        who: &Who,
        uri: String,
    ) -> Outcome {
        let audit = app.sessions().audit();
        if let Err(refusal) = who.needs(Right::Use, "resources/read", audit) {
            return crate::server::tools::refused(&refusal);
        }
        let party = self.party(who);
        self.later(async move |upstreams: Arc<Self>| upstreams.read(party, uri).await).await
    }

    async fn read(self: &Arc<Self>, party: Party, uri: String) -> Outcome {
        let Ok(orchestrator) = self.orchestrator() else { return Outcome::Fault };
        if uri.starts_with(kept::SCHEME) {
            return match orchestrator.kept(&party, &uri).await {
                Ok(piece) => kept_contents(&uri, piece),
                Err(_) => Outcome::NoResource { uri },
            };
        }
        let Some((server, theirs)) = split_uri(&uri) else { return Outcome::NoResource { uri } };
        match orchestrator.read_for(party, server, theirs).await {
            Ok(mut result) => {
                let contents = match result.get_mut("contents").map(Value::take) {
                    Some(Value::Array(contents)) => contents,
                    _ => Vec::new(),
                };
                let contents = contents.into_iter().filter_map(|item| renamed(server, item));
                Outcome::ForeignContents(contents.collect())
            }
            Err(Error::NoServer { .. }) => Outcome::NoResource { uri },
            Err(error) if is_missing(&error, theirs) => Outcome::NoResource { uri },
            Err(error) => as_error(&named_here(error), self.registry().masks()),
        }
    }

    /// Carries something out that waits for upstreams, until nobody wants it any more.
    pub(crate) async fn later<F: Future<Output = Outcome> + Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(Arc<Self>) -> F,
    ) -> Outcome {
        match self.runtime() {
            Ok(runtime) => Task(runtime.spawn(act(Arc::clone(self)))).await,
            Err(error) => {
                tracing::error!("nothing can speak with upstreams: {error}");
                Outcome::Fault
            }
        }
    }
}

/// What goes on on the runtime of the upstreams, and ends there if nobody waits for it any more.
struct Task(JoinHandle<Outcome>);

impl Future for Task {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Outcome> {
        // A panic, which the log has.
        Pin::new(&mut self.0).poll(task).map(|ended| ended.unwrap_or(Outcome::Fault))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is kept, or a part of it: that says where the next one is, and is no JSON by itself.
fn kept_contents(uri: &str, piece: Piece) -> Outcome {
    let is_part = Address::read(uri).is_some_and(|address| address.part.is_some());
    let mime_type = if is_part { "text/plain" } else { "application/json" };
    let mut contents = Map::new();
    contents.insert("uri".to_owned(), json!(uri));
    contents.insert("mimeType".to_owned(), json!(mime_type));
    contents.insert("text".to_owned(), json!(piece.text));
    if let Some(next) = piece.next {
        contents.insert("_meta".to_owned(), json!({"workflowlookup/next": next}));
    }
    Outcome::ForeignContents(vec![contents])
}

/// Whether an upstream says that it has no such resource, in the words of either era. Our client hears it in the words of
/// its own.
fn is_missing(error: &Error, theirs: &str) -> bool {
    let Error::Upstream { code, data, .. } = error else { return false };
    let named = data.as_ref().and_then(|data| data.get("uri")).and_then(Value::as_str);
    *code == NOT_FOUND || (*code == i64::from(INVALID_PARAMS.0) && named == Some(theirs))
}

/// An upstream's error, with the resource that it names by the name that it has here.
fn named_here(mut error: Error) -> Error {
    if let Error::Upstream { server, data: Some(data), .. } = &mut error
        && let Some(place) = data.get_mut("uri")
        && let Some(theirs) = place.as_str()
    {
        *place = json!(resource_uri(server, theirs));
    }
    error
}

/// A resource, or what one holds, by the name that it has here. What has none cannot be read.
fn renamed(server: &str, item: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut item) = item else { return None };
    let uri = resource_uri(server, item.get("uri")?.as_str()?);
    item.insert("uri".to_owned(), json!(uri));
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_lead_back_to_their_place() {
        for server in ["files", "a-b", "", "odd:one"] {
            let place = Place { server: server.to_owned(), skip: 100 };
            assert_eq!(Place::read(&place.cursor()), Some(place));
        }
        for odd in ["", "after:a", "upstream:", "upstream:a", "upstream:a:", "upstream:a:-1"] {
            assert_eq!(Place::read(odd), None, "{odd}");
        }
    }
}
