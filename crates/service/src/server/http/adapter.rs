//! What the transport asks of us: who is let in, what their calls come to, and what other processes must know.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use mcp::{Call, Caller, Connection, Server, Transport};
use parking_lot::Mutex;
use store::Store;
use transport::{
    Context, Denied, EndpointAnswer, EndpointRequest, Following, OutcomeFuture, Page, Principal,
};

use super::super::metrics::Metrics;
use super::super::stdio::{Direction, WireLog};
use super::super::{Host, endpoints};
use super::{Door, Looker};
use crate::access::Who;
use crate::auth::Authenticator;
use crate::sessions::now;

/// Who decides at a gate, where nobody is asked who they are.
const ANYBODY: &str = "somebody over HTTP";

/// Our host, as the transport wants it.
pub(super) struct Adapter {
    pub(super) host: Arc<Host>,
    pub(super) looker: Arc<Looker>,
    pub(super) door: Arc<Door>,
    pub(super) metadata_url: String,
    pub(super) wire_log: Option<Mutex<WireLog>>,
    pub(super) metrics: Metrics,
}

impl Adapter {
    /// The store, if there is one and it can be used. Whoever needs it hears why it cannot.
    fn store(&self) -> Option<Store> {
        let open = self.host.app().sessions().get_if_any().ok()??;
        Some(open.sessions.store().clone())
    }

    fn record(&self, direction: Direction, message: &[u8]) {
        if let Some(log) = &self.wire_log {
            let mut log = log.lock();
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

    fn call(&self, call: Call, mut caller: Caller, context: Context) -> OutcomeFuture {
        // Whoever is not asked who they are is not the one who runs the server either.
        caller.principal.get_or_insert_with(|| ANYBODY.into());
        self.host.call(call, caller, Transport::Http, context)
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
