//! The way to one server and back: requests go out over a wire and wait for their responses, from the handshake on.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp::client::{
    ErrorObject, Filter, Handshake, HandshakeError, Request, RequestId, ServerInfo, Step, Us,
    cancelled, initialized, version_header,
};
use mcp::{Era, Revision};
use tokio::process::ChildStdin;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::connection::late;
use super::course::Course;
use super::deadline::Deadline;
use super::failure::{Failure, incident};
use super::in_flight::{Begun, InFlight, Outcome, Sent};
use super::lines::Lines;
use super::web::{Exchanged, Posted, Web};
use crate::lock;

/// Who we are.
pub(super) const US: Us = Us { name: "workflowlookup", version: env!("CARGO_PKG_VERSION") };
/// After this a server that does not answer `server/discover` is spoken to in the old way: a child, and one over HTTP.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(3);
const WEB_DISCOVERY_PATIENCE: Duration = Duration::from_secs(10);
/// How long telling the server about a call that was given up may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the reason of a break may take to be known.
const REASON: Duration = Duration::from_secs(3);
/// How long a new handshake may take, after the server has forgotten its session.
const RENEWAL: Duration = Duration::from_secs(5);
/// For what ends with its connection.
const FOREVER: Duration = Duration::MAX;

pub(super) struct Channel {
    pub(super) serial: u64,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) wire: Wire,
    pub(super) runtime: Handle,
    /// As of the last handshake.
    pub(super) revision: Mutex<Option<Revision>>,
}

/// What carries messages.
pub(super) enum Wire {
    Child(Lines<ChildStdin>),
    Web(Web),
}

impl Channel {
    pub(super) fn revision(&self) -> Option<Revision> {
        *lock(&self.revision)
    }

    /// Whether there is a process, whose end says more than any error on the way.
    pub(super) fn has_process(&self) -> bool {
        matches!(self.wire, Wire::Child(_))
    }

    /// Asks, and waits as long as the course allows.
    pub(super) async fn ask(self: &Arc<Self>, request: Request, course: &Arc<Course>) -> Outcome {
        let begun = self.in_flight.begin(course)?;
        Asked::new(self, request, begun).outcome(course).await
    }

    /// Asks for notifications, until what is returned is dropped or the server ends it. `patience` is for the server's
    /// agreement.
    pub(super) async fn listen(
        self: &Arc<Self>,
        filter: &Filter,
        patience: Duration,
    ) -> Result<Subscription, Failure> {
        let course = Course::quiet(Deadline::new(FOREVER, FOREVER));
        let (begun, acknowledged) = self.in_flight.subscribe(&course)?;
        let mut asked = Asked::new(self, filter.request(), begun);
        let asking = self.runtime.spawn(async move { asked.outcome(&course).await });
        let mut subscription = Subscription {
            acknowledged: Filter::default(),
            asking: AbortOnDropHandle::new(asking),
        };
        match timeout(patience, subscription.begin(acknowledged, filter)).await {
            Ok(begun) => begun.map(|()| subscription),
            Err(_) => {
                let why = "it does not agree to `subscriptions/listen`".to_owned();
                Err(Failure::Protocol { why })
            }
        }
    }

    /// Sends what is no request.
    pub(super) async fn send(&self, text: String) -> Result<(), Failure> {
        match &self.wire {
            Wire::Child(lines) => {
                lines.send(text, None).await.map_err(|error| self.broken(error.to_string(), true))
            }
            Wire::Web(web) => web.send(text, &version_header(self.revision())).await,
        }
    }

    /// Closes what we write to, and ends a session, politely. Requests are not answered any more.
    pub(super) async fn close(&self) {
        match &self.wire {
            Wire::Child(lines) => lines.close().await,
            Wire::Web(web) => web.close(&version_header(self.revision())).await,
        }
    }

    pub(super) fn broken(&self, why: String, sent: bool) -> Failure {
        // Over HTTP one request breaks, and not the connection.
        let incident = if self.has_process() { self.serial } else { incident() };
        Failure::Broken { why, sent, incident }
    }

    /// Begins with the server. `era` is how it was spoken to last time, if that is known.
    pub(super) async fn shake_hands(
        self: &Arc<Self>,
        era: Option<Era>,
        limit: Duration,
    ) -> Result<ServerInfo, Failure> {
        let course = Course::quiet(Deadline::new(limit, limit));
        let (mut handshake, mut request) = Handshake::begin(&US, era);
        // What was given up may be answered still.
        let mut discovering: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>> = None;
        let info = loop {
            let mut asking = Box::pin({
                let (channel, course) = (self.clone(), course.clone());
                async move { channel.ask(request, &course).await }
            });
            let outcome = if handshake.may_give_up() {
                let patience =
                    if self.has_process() { DISCOVERY_PATIENCE } else { WEB_DISCOVERY_PATIENCE };
                timeout(patience, &mut asking).await.ok()
            } else {
                Some(asking.as_mut().await)
            };
            if let (Some(Err(Failure::Upstream { .. })), Some(discovering)) =
                (&outcome, discovering.take())
                && let Ok(Ok(discovered)) = timeout(Duration::ZERO, discovering).await
            {
                handshake.hear_late(&discovered);
            }
            let step = match outcome {
                None => {
                    discovering = Some(asking);
                    handshake.give_up()
                }
                Some(Ok(result)) => handshake.hear(Ok(&result)),
                Some(Err(Failure::Upstream { code, message, data })) => {
                    handshake.hear(Err(ErrorObject { code, message, data }))
                }
                Some(Err(failure)) => return Err(failure),
            };
            match step {
                Step::Ask(next) => request = next,
                Step::Done(info) => break info,
                Step::Failed(error) => return Err(refused(error)),
            }
        };
        *lock(&self.revision) = Some(info.revision);
        if info.revision.era() == Era::Legacy {
            self.send(initialized()).await?;
            if let Wire::Web(web) = &self.wire {
                web.listen(&version_header(self.revision()));
            }
        }
        Ok(info)
    }

    /// A new handshake: the server has forgotten the session of this number. Boxed, for a handshake is made of requests, and
    /// these may need one.
    fn renew(
        self: &Arc<Self>,
        lost: u64,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + '_>> {
        Box::pin(async move {
            let Wire::Web(web) = &self.wire else { return Ok(()) };
            let _turn = web.renewing().await;
            if web.session_number() != lost {
                return Ok(());
            }
            let renewed = timeout(RENEWAL, self.shake_hands(Some(Era::Legacy), RENEWAL)).await;
            match renewed {
                Ok(renewed) => renewed.map(drop),
                Err(_) => {
                    let why = "it forgot its session, and begins no new one".to_owned();
                    Err(self.broken(why, true))
                }
            }
        })
    }
}

/// Why there is no handshake.
pub(super) fn refused(error: HandshakeError) -> Failure {
    match error {
        HandshakeError::Refused(ErrorObject { code, message, .. }) => {
            let why = format!("it refuses the handshake: {code} {message}");
            Failure::Connect { why, incident: incident() }
        }
        HandshakeError::NoCommonRevision(theirs) => {
            let theirs = theirs.join(", ");
            let why = format!("it speaks only revisions that we do not know: {theirs}");
            Failure::Unusable { why }
        }
        HandshakeError::Unusable(why) => Failure::Unusable { why },
    }
}

/// A request that is under way. Whoever drops it before its end gives it up, and the server hears of that.
struct Asked {
    channel: Arc<Channel>,
    request: Request,
    begun: Begun,
    is_open: bool,
}

impl Asked {
    fn new(channel: &Arc<Channel>, request: Request, begun: Begun) -> Self {
        Self { channel: channel.clone(), request, begun, is_open: true }
    }

    async fn outcome(&mut self, course: &Course) -> Outcome {
        let Self { channel, request, begun, is_open } = self;
        let Begun { id, sent, response } = begun;
        let exchange = channel.exchange(request, *id, sent);
        let exchanged = tokio::select! {
            biased;
            outcome = &mut *response => {
                *is_open = false;
                return outcome.unwrap_or_else(|_| Err(channel.broken("it is closed".to_owned(), sent.get())));
            }
            () = course.cancelled.cancelled() => return Err(Failure::Cancelled),
            exchanged = exchange => exchanged,
            () = course.deadline.passed() => return Err(late(course)),
        };
        // What has come is there. Where a process has ended, it is known in a moment how.
        let patience = if channel.has_process() { REASON } else { Duration::ZERO };
        let outcome = timeout(patience, &mut *response).await;
        *is_open = false;
        match (outcome, exchanged) {
            (Ok(Ok(outcome)), _) => outcome,
            (_, Ok(())) => Err(channel.broken("it is closed".to_owned(), sent.get())),
            (_, Err(failure)) => {
                match &failure {
                    Failure::Broken { sent: true, .. } => channel.in_flight.give_up(*id),
                    _ => channel.in_flight.forget(*id),
                }
                Err(failure)
            }
        }
    }
}

impl Channel {
    /// Sends a request, and stays with it as long as its response may come this way.
    async fn exchange(
        self: &Arc<Self>,
        request: &Request,
        id: RequestId,
        sent: &Sent,
    ) -> Result<(), Failure> {
        let revision = self.revision().filter(|_| !request.is_handshake());
        let text = request.encode(id, &US, revision);
        let web = match &self.wire {
            Wire::Child(lines) => {
                return match lines.send(text, Some(sent)).await {
                    Ok(()) => std::future::pending().await,
                    Err(error) => Err(self.broken(error.to_string(), sent.get())),
                };
            }
            Wire::Web(web) => web,
        };
        let posted = Posted { id, request, headers: request.headers(revision), text, sent };
        let mut is_renewed = false;
        loop {
            match web.exchange(&posted).await? {
                Exchanged::Answered => return Ok(()),
                Exchanged::SessionLost { number, .. } if !is_renewed => {
                    self.renew(number).await?;
                    is_renewed = true;
                }
                Exchanged::SessionLost { status, .. } => {
                    let why =
                        format!("it forgets its sessions at once, also a new one (HTTP {status})");
                    return Err(Failure::Protocol { why });
                }
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let id = self.begun.id;
        self.channel.in_flight.give_up(id);
        let revision = self.channel.revision().filter(|_| !self.request.is_handshake());
        let Some(revision) = revision.filter(|_| self.begun.sent.get()) else { return };
        // In the modern way its stream is closed, which says enough.
        if !self.channel.has_process() && revision.era() == Era::Modern {
            return;
        }
        let channel = self.channel.clone();
        self.channel.runtime.spawn(async move {
            let _ = timeout(FAREWELL, channel.send(cancelled(id))).await;
        });
    }
}

/// Notifications that the server has agreed to send, as long as this is there. They are heard elsewhere.
pub(super) struct Subscription {
    pub(super) acknowledged: Filter,
    asking: AbortOnDropHandle<Outcome>,
}

impl Subscription {
    async fn begin(
        &mut self,
        acknowledged: oneshot::Receiver<Filter>,
        asked: &Filter,
    ) -> Result<(), Failure> {
        let failure = tokio::select! {
            biased;
            Ok(filter) = acknowledged => {
                if filter.is_within(asked) {
                    self.acknowledged = filter;
                    return Ok(());
                }
                let why = "it agrees to send notifications that nobody asked for".to_owned();
                Failure::Protocol { why }
            }
            outcome = &mut self.asking => match outcome {
                Ok(Err(failure)) => failure,
                Ok(Ok(_)) | Err(_) => {
                    let why = "it ends `subscriptions/listen` without agreeing to it".to_owned();
                    Failure::Protocol { why }
                }
            },
        };
        Err(failure)
    }

    /// Returns when the server tells nothing any more.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.asking).await;
    }
}
