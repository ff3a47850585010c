//! Resources of upstreams that clients of ours follow. How many do is counted here; an upstream is asked once for each, and
//! told when nobody does any more. What is asked of it is asked in order, one thing at a time for each resource, so that
//! the last wish counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp::Connection;
use orchestrator::Error;
use orchestrator::upstream::info::Era;
use parking_lot::{Mutex, MutexGuard};

use super::{SCHEME, Upstreams, split_uri};
use crate::access::Right;

#[derive(Default)]
pub(super) struct Followed(Mutex<BTreeMap<String, Wish>>);

/// What is wanted of one resource, and what the upstream knows of it.
#[derive(Default)]
struct Wish {
    clients: usize,
    is_asked: bool,
    /// Somebody is asking the upstream, and looks again afterwards.
    is_under_way: bool,
}

/// What a server knows of what is followed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    WhatItWasAsked,
    Nothing,
}

impl Wish {
    /// Whether somebody must see to it, who is then under way.
    fn must_ask(&mut self) -> bool {
        let is_new = !self.is_under_way && (self.clients > 0) != self.is_asked;
        self.is_under_way |= is_new;
        is_new
    }
}

/// Held for as long as a client follows these.
pub(crate) struct Following {
    upstreams: Arc<Upstreams>,
    uris: Vec<String>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.upstreams.count(&self.uris, |clients| clients.saturating_sub(1));
    }
}

impl Followed {
    fn wishes(&self) -> MutexGuard<'_, BTreeMap<String, Wish>> {
        self.0.lock()
    }

    /// Everything that somebody follows.
    pub(super) fn all(&self) -> Vec<String> {
        let wishes = self.wishes();
        let followed = wishes.iter().filter(|(_, wish)| wish.clients > 0);
        followed.map(|(uri, _)| uri.clone()).collect()
    }

    /// Tried again when the server is there, or when somebody else begins to follow it.
    fn failed(&self, uri: &str) {
        let mut wishes = self.wishes();
        let Some(wish) = wishes.get_mut(uri) else { return };
        (wish.is_asked, wish.is_under_way) = (false, false);
        if wish.clients == 0 {
            wishes.remove(uri);
        }
    }

    /// What is to be asked now, if anything: whether to tell of it.
    fn next(&self, uri: &str) -> Option<bool> {
        let mut wishes = self.wishes();
        let wish = wishes.get_mut(uri)?;
        let is_wanted = wish.clients > 0;
        wish.is_under_way = is_wanted != wish.is_asked;
        if wish.is_under_way {
            wish.is_asked = is_wanted;
            return Some(is_wanted);
        }
        if !is_wanted {
            wishes.remove(uri);
        }
        None
    }
}

impl Upstreams {
    /// What this client follows from now on; nothing where it follows none of ours, or may not.
    pub(crate) fn follow(self: &Arc<Self>, connection: &Connection) -> Option<Following> {
        if connection.scope().is_some_and(|scope| scope != Right::Use.name()) {
            return None;
        }
        let uris = connection.followed(SCHEME).filter(|uri| split_uri(uri).is_some());
        let uris: Vec<String> = uris.map(str::to_owned).collect();
        // Who follows nothing needs no file to be read.
        if uris.is_empty() || !self.are_there() {
            return None;
        }
        self.count(&uris, |clients| clients + 1);
        Some(Following { upstreams: Arc::clone(self), uris })
    }

    /// Why a resource of an upstream cannot be followed, as far as that is known without asking it.
    pub(crate) fn why_not_follow(&self, uri: &str) -> Option<String> {
        if !uri.starts_with(SCHEME) {
            return None;
        }
        let Some((server, _)) = split_uri(uri) else {
            return Some(format!("`{uri}` can be no resource: they are `{SCHEME}SERVER:URI`"));
        };
        let registry = self.registry();
        if registry.get(server).is_none() {
            let why = Error::no_server(server, &registry).to_string();
            return Some(registry.masks().hide(&why).into_owned());
        }
        let info = self.info(server)?;
        let what = match info.era {
            Era::Legacy if !info.offers("resources/subscribe") => "subscriptions to resources",
            Era::Modern if !info.offers("resources") => "resources",
            Era::Legacy | Era::Modern => return None,
        };
        Some(Error::NotOffered { server: server.to_owned(), what }.to_string())
    }

    fn count(self: &Arc<Self>, uris: &[String], change: impl Fn(usize) -> usize) {
        for uri in uris {
            let mut wishes = self.followed.wishes();
            let wish = wishes.entry(uri.clone()).or_default();
            wish.clients = change(wish.clients);
            let must_ask = wish.must_ask();
            drop(wishes);
            if must_ask {
                self.see_to(uri.clone());
            }
        }
    }

    /// A server is there, or another one goes by its name, which knows nothing of what was asked.
    pub(super) fn follow_again(self: &Arc<Self>, server: &str, knows: Knows) {
        let mut to_ask = Vec::new();
        for (uri, wish) in self.followed.wishes().iter_mut() {
            if split_uri(uri).is_some_and(|(own, _)| own == server) {
                wish.is_asked &= knows == Knows::WhatItWasAsked;
                if wish.must_ask() {
                    to_ask.push(uri.clone());
                }
            }
        }
        to_ask.into_iter().for_each(|uri| self.see_to(uri));
    }

    /// Asks the upstream for what is wanted, until that is what it knows.
    fn see_to(self: &Arc<Self>, uri: String) {
        let (Ok(runtime), Ok(orchestrator)) = (self.runtime(), self.orchestrator()) else { return };
        let (own, orchestrator) = (Arc::clone(self), orchestrator.clone());
        runtime.spawn(async move {
            let Some((server, theirs)) = split_uri(&uri) else { return };
            while let Some(is_wanted) = own.followed.next(&uri) {
                let asked = match is_wanted {
                    true => orchestrator.subscribe(server, theirs).await,
                    false => orchestrator.unsubscribe(server, theirs).await,
                };
                if let Err(error) = asked {
                    tracing::warn!(server, "a resource cannot be followed: {error}");
                    return own.followed.failed(&uri);
                }
            }
        });
    }
}
