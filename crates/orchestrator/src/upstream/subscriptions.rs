//! What we want to hear from an upstream: changes of its lists always, changes of resources where somebody wants to know.
//! Outlives connections: each new one is told again, and where somebody waits for news, a lost one is made anew.
//!
//! In the old way each resource is one request, and lists need none. In the modern way there is one long request with
//! everything in it, which is made anew when the wishes change.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp::client::{Filter, METHOD_NOT_FOUND, Request};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::call_context::CallContext;
use super::channel::Subscription;
use super::connection::Connection;
use super::deadline::Deadline;
use super::failure::Failure;
use super::info::{Era, Info};
use super::{ROUTINE, Upstream};

/// So many resources of one server can be subscribed to.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1_000;
/// The pauses between attempts to hear again, at first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Subscriptions {
    wanted: Mutex<Wanted>,
    /// Told of every change of what is wanted.
    changes: watch::Sender<u64>,
    heard: watch::Sender<Heard>,
}

#[derive(Default)]
struct Wanted {
    resources: BTreeMap<String, Interest>,
    change: u64,
}

#[derive(Default)]
struct Interest {
    /// How many want to hear of it.
    count: usize,
    /// The last connection whose server has agreed to tell.
    agreed_with: Option<u64>,
}

/// What the server has agreed to tell, in the modern way.
#[derive(Clone, Default)]
struct Heard {
    /// As of which change of the wishes.
    change: u64,
    connection: u64,
    agreed: Vec<String>,
    failure: Option<Failure>,
}

/// Whether a wish is a new one.
pub(super) enum Wish {
    First(u64),
    OneMore,
    TooMany,
}

impl Subscriptions {
    pub(super) fn add(&self, uri: &str) -> Wish {
        let mut wanted = self.wanted.lock();
        if let Some(interest) = wanted.resources.get_mut(uri) {
            interest.count += 1;
            return Wish::OneMore;
        }
        if wanted.resources.len() >= SUBSCRIPTIONS_MAX {
            return Wish::TooMany;
        }
        wanted.resources.insert(uri.to_owned(), Interest { count: 1, agreed_with: None });
        Wish::First(self.change(&mut wanted))
    }

    /// Whether nobody wants to hear of it any more.
    pub(super) fn remove(&self, uri: &str) -> bool {
        let mut wanted = self.wanted.lock();
        let Some(interest) = wanted.resources.get_mut(uri) else { return false };
        interest.count -= 1;
        if interest.count > 0 {
            return false;
        }
        wanted.resources.remove(uri);
        self.change(&mut wanted);
        true
    }

    /// Records that the server of a connection agreed to send updates. Later connections subscribe again.
    pub(super) fn agree(&self, uri: &str, connection: u64) {
        if let Some(interest) = self.wanted.lock().resources.get_mut(uri) {
            interest.agreed_with = Some(connection);
        }
    }

    /// The resources that an earlier connection subscribed to. The call that opened this one may have subscribed already.
    fn agreed_before(&self, connection: u64) -> Vec<String> {
        let wanted = self.wanted.lock();
        let is_told_before =
            |interest: &Interest| interest.agreed_with.is_some_and(|earlier| earlier != connection);
        let agreed = wanted.resources.iter().filter(|(_, interest)| is_told_before(interest));
        agreed.map(|(uri, _)| uri.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted.lock().resources.is_empty()
    }

    fn change(&self, wanted: &mut Wanted) -> u64 {
        wanted.change += 1;
        self.changes.send_replace(wanted.change);
        wanted.change
    }

    fn resources(&self) -> (Vec<String>, u64) {
        let wanted = self.wanted.lock();
        (wanted.resources.keys().cloned().collect(), wanted.change)
    }

    /// Waits until the server has agreed to tell of a resource, or has not.
    pub(super) async fn agreed(
        &self,
        uri: &str,
        change: u64,
        connection: &Connection,
        context: &CallContext,
    ) -> Result<bool, Failure> {
        let mut heard = self.heard.subscribe();
        let is_told =
            |heard: &Heard| heard.connection == connection.serial() && heard.change >= change;
        tokio::select! {
            heard = heard.wait_for(is_told) => {
                let Ok(heard) = heard else { return Err(Failure::Cancelled) };
                match &heard.failure {
                    Some(failure) => Err(failure.clone()),
                    None => Ok(heard.agreed.iter().any(|agreed| agreed == uri)),
                }
            }
            () = connection.over().cancelled() => {
                let why = "it hung up before it agreed".to_owned();
                Err(Failure::Broken { why, sent: true, incident: connection.serial() })
            }
            () = context.cancelled.cancelled() => Err(Failure::Cancelled),
            () = context.deadline.passed() => Err(super::connection::late(context)),
        }
    }
}

/// Tells the server of one connection what we want to hear, for as long as the connection lasts; then, where somebody still
/// wants to hear something, sees to it that there is another one. Keeps neither the connection nor the upstream alive.
pub(super) async fn follow(
    upstream: Weak<Upstream>,
    connection: Weak<Connection>,
    over: CancellationToken,
) {
    tokio::select! {
        () = speak(&upstream, &connection) => {}
        () = over.cancelled() => {}
    }
    over.cancelled().await;
    let mut pause = PAUSE;
    loop {
        sleep(pause).await;
        pause = PAUSE_MAX.min(pause * 2);
        let Some(upstream) = upstream.upgrade() else { return };
        if upstream.subscriptions.is_empty() || upstream.is_closed() {
            return;
        }
        // Whoever connects follows on.
        let context = CallContext::background(Deadline::new(ROUTINE, ROUTINE));
        if upstream.link.connection(&context).await.is_ok() {
            return;
        }
    }
}

async fn speak(upstream: &Weak<Upstream>, connection: &Weak<Connection>) {
    let (Some(strong), Some(shared)) = (connection.upgrade(), upstream.upgrade()) else { return };
    if strong.info().era == Era::Modern {
        drop((strong, shared));
        return listen(upstream, connection).await;
    }
    for uri in shared.subscriptions.agreed_before(strong.serial()) {
        match ask(&strong, &uri, Way::Subscribe, None).await {
            Ok(()) => shared.subscriptions.agree(&uri, strong.serial()),
            Err(failure) => {
                let error = failure.into_error(&shared.id);
                tracing::warn!(server = &*shared.id, uri, "cannot subscribe again: {error}");
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    Subscribe,
    Unsubscribe,
}

/// One request of the old way.
pub(super) async fn ask(
    connection: &Arc<Connection>,
    uri: &str,
    way: Way,
    context: Option<&Arc<CallContext>>,
) -> Result<(), Failure> {
    let method = match way {
        Way::Subscribe => "resources/subscribe",
        Way::Unsubscribe => "resources/unsubscribe",
    };
    let request = Request::new(method).with("uri", uri);
    let routine = || CallContext::background(Deadline::new(ROUTINE, ROUTINE));
    let context = context.cloned().unwrap_or_else(routine);
    connection.request(request, &context).await.map(|_| ())
}

/// The one long request of the modern way.
async fn listen(upstream: &Weak<Upstream>, connection: &Weak<Connection>) {
    let mut current: Option<Subscription> = None;
    let mut pause = PAUSE;
    loop {
        let (Some(strong), Some(shared)) = (connection.upgrade(), upstream.upgrade()) else {
            return;
        };
        let mut changes = shared.subscriptions.changes.subscribe();
        let (resources, change) = shared.subscriptions.resources();
        let mut heard = Heard { change, connection: strong.serial(), ..Heard::default() };
        let filter = filter(strong.info(), resources);
        let is_needless = filter.is_empty();
        let mut is_deaf = false;
        if is_needless {
            current = None;
        } else {
            match strong.channel().listen(&filter, ROUTINE).await {
                Ok(subscription) => {
                    heard.agreed.clone_from(&subscription.acknowledged.resource_subscriptions);
                    // The former one goes when the new one is there, so that nothing is missed.
                    current = Some(subscription);
                    pause = PAUSE;
                }
                // It knows no such thing, and so it tells of nothing.
                Err(Failure::Upstream { code, .. }) if code == i64::from(METHOD_NOT_FOUND) => {
                    is_deaf = true;
                }
                Err(failure) => {
                    let error = failure.clone().into_error(&shared.id);
                    tracing::debug!(server = &*shared.id, "it tells no changes: {error}");
                    heard.failure = Some(failure);
                }
            }
        }
        let has_failed = heard.failure.is_some();
        shared.subscriptions.heard.send_replace(heard);
        drop((strong, shared));
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = ended(current.as_mut()), if !has_failed && !is_deaf && !is_needless => {
                current = None;
                sleep(pause).await;
                pause = PAUSE_MAX.min(pause * 2);
            }
            () = sleep(pause), if has_failed => pause = PAUSE_MAX.min(pause * 2),
        }
    }
}

/// Returns when the server tells nothing any more. What it tells is heard elsewhere.
async fn ended(subscription: Option<&mut Subscription>) {
    if let Some(subscription) = subscription {
        subscription.ended().await;
    }
}

fn filter(info: &Info, resource_subscriptions: Vec<String>) -> Filter {
    let tells = |list: &str| info.offers(&format!("{list}/listChanged"));
    Filter {
        tools_list_changed: tells("tools"),
        prompts_list_changed: tells("prompts"),
        resources_list_changed: tells("resources"),
        resource_subscriptions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_that_was_told_is_not_told_again() {
        let subscriptions = Subscriptions::default();
        for uri in ["test://a", "test://b", "test://c"] {
            subscriptions.add(uri);
        }
        subscriptions.agree("test://a", 1);
        subscriptions.agree("test://b", 2);
        assert_eq!(subscriptions.agreed_before(2), ["test://a"]);
        assert_eq!(subscriptions.agreed_before(3), ["test://a", "test://b"]);
    }
}
