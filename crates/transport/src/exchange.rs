//! One POST and what comes of it. Most are answered at once, on the thread that read them; the others go on beside it
//! and say what they have to say on a stream.

#[cfg(target_os = "linux")]
use std::cell::Cell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use mcp::{Action, Body, Call, Caller, Changed, Connection, Outcome, Peer, Reply, Ticket};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::calls::{Calls, Event, News, OutcomeFuture, Threads, Work, guarded};
use crate::handshake_token;
use crate::host::{Following, Host};
#[cfg(target_os = "linux")]
use crate::limits::BLOCKING_NICENESS;
use crate::limits::{INLINE_TIME_MAX, MAIL_MAX, STREAM_TIME};
use crate::routes::Request;
use crate::service::Service;
use crate::stream::Stream;

pub(crate) struct Exchange<H: Host> {
    service: Arc<Service<H>>,
    principal: Option<Arc<str>>,
    connection: Connection,
    actions: Vec<Action>,
    said: Vec<Said>,
    calls: Calls,
    feed: Option<broadcast::Receiver<Arc<Changed>>>,
    /// Held while its client follows something.
    following: Option<Following>,
    /// What was asked, with when we give it up, and under which ids.
    asked: Vec<(Instant, Ticket)>,
    asked_ids: Vec<String>,
    /// The client may go for now, if it can come back.
    hangs_up: bool,
    /// It brought an answer to a question of another process, which counts.
    has_settled: bool,
    /// What its calls have taken of the threads that read requests.
    inline_time: Duration,
}

#[derive(Debug)]
enum Said {
    Message(String),
    Answer(Reply),
}

/// The threads for the blocking work of a principal, in its turn.
struct Turns<H: Host> {
    service: Arc<Service<H>>,
    principal: Option<Arc<str>>,
}

impl<H: Host> Threads for Turns<H> {
    fn run(&self, work: Work) -> OutcomeFuture {
        let (service, principal) = (Arc::clone(&self.service), self.principal.clone());
        Box::pin(async move {
            let Some(permit) = service.thread(principal.clone()).await else {
                return Outcome::Busy;
            };
            let work = move || {
                // Also if nobody waits for it any more.
                let _permit = permit;
                give_way();
                service.budgets.measure(principal.as_ref(), || guarded(work))
            };
            tokio::task::spawn_blocking(work).await.unwrap_or(Outcome::Fault)
        })
    }
}

/// What came of a message at once.
#[derive(Debug)]
pub(crate) enum AtOnce {
    /// The answer, and nothing else.
    Answer(Reply),
    /// There is none.
    Nothing,
    /// It goes on.
    GoesOn,
}

impl<H: Host> Exchange<H> {
    pub(crate) fn new(service: Arc<Service<H>>, peer: Peer) -> Self {
        let principal = peer.principal.clone();
        let connection = Connection::over_http(service.host.server(), peer);
        let turns = Turns { service: Arc::clone(&service), principal: principal.clone() };
        Self {
            service,
            principal,
            connection,
            actions: Vec::new(),
            said: Vec::new(),
            calls: Calls::new(Arc::new(turns)),
            feed: None,
            following: None,
            asked: Vec::new(),
            asked_ids: Vec::new(),
            hangs_up: false,
            has_settled: false,
            inline_time: Duration::ZERO,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn take(&mut self, body: Body<'_>) -> AtOnce {
        self.connection.take(body, &mut self.actions);
        if self.connection.subscriptions() > 0 {
            self.service.host.followed();
            // From here on, before anybody reads that they follow something.
            self.feed = Some(self.service.feed.listen());
            self.following = self.service.host.follow(&self.connection);
        }
        self.act();
        if !self.is_over() {
            return AtOnce::GoesOn;
        }
        match self.said.pop() {
            Some(Said::Answer(reply)) if self.said.is_empty() => {
                self.service.host.said(&reply.text);
                AtOnce::Answer(reply)
            }
            None => AtOnce::Nothing,
            Some(said) => {
                self.said.push(said);
                AtOnce::GoesOn
            }
        }
    }

    /// Whether it brought an answer to a question of another process, which counts.
    pub(crate) fn has_settled(&self) -> bool {
        self.has_settled
    }

    /// Nothing is carried out and nothing was asked: it only tells what changes.
    pub(crate) fn only_listens(&self) -> bool {
        self.calls.is_empty() && self.asked.is_empty()
    }

    fn is_over(&self) -> bool {
        self.calls.is_empty() && self.connection.is_idle()
    }

    /// Carries out what the connection asks for.
    fn act(&mut self) {
        let mut now = Vec::new();
        while !self.actions.is_empty() {
            std::mem::swap(&mut now, &mut self.actions);
            for action in now.drain(..) {
                match action {
                    Action::Reply(reply) => self.said.push(Said::Answer(reply)),
                    Action::Notify(text) => self.said.push(Said::Message(text)),
                    Action::Ask { ticket, id, message, patience } => {
                        // Somebody may decide elsewhere.
                        self.service.host.followed();
                        // What it was asked before is answered by now.
                        self.asked.retain(|(_, asked)| *asked != ticket);
                        self.asked.push((Instant::now() + patience, ticket));
                        self.asked_ids.push(id);
                        self.said.push(Said::Message(message));
                    }
                    Action::Call { ticket, call, caller } => self.call(ticket, call, caller),
                    Action::Cancel(ticket) => self.calls.cancel(ticket),
                    Action::Warn(warning) => tracing::warn!("{warning}"),
                    // No client can shut down a server that others use.
                    Action::Drain | Action::Close => {}
                }
            }
        }
        self.actions = now;
    }

    fn call(&mut self, ticket: Ticket, call: Call, caller: Caller) {
        let service = Arc::clone(&self.service);
        if self.has_spent_inline_time() {
            let call = move |context| service.host.call(call, caller, context);
            return self.calls.start_on_thread(ticket, call);
        }
        let is_settling = matches!(call, Call::Settle { .. });
        let ended = self.measure_inline(|calls| {
            calls.start(ticket, |context| service.host.call(call, caller, context))
        });
        if let Some(outcome) = ended {
            self.has_settled |= is_settling && !matches!(outcome, Outcome::BadParams(_));
            self.connection.finish(ticket, outcome, &mut self.actions);
        }
    }

    /// Whether this body, or its principal, is to leave the threads that read requests to others for now.
    fn has_spent_inline_time(&self) -> bool {
        self.inline_time >= INLINE_TIME_MAX
            || self.service.budgets.has_spent_inline_time(self.principal.as_ref())
    }

    fn measure_inline<T>(&mut self, work: impl FnOnce(&mut Calls) -> T) -> T {
        let (budgets, calls) = (&self.service.budgets, &mut self.calls);
        let (done, time) = budgets.measure_inline(self.principal.as_ref(), || work(calls));
        self.inline_time += time;
        done
    }

    fn poll_calls(&mut self, task: &TaskContext<'_>) -> Poll<Event> {
        self.measure_inline(|calls| calls.poll_next(task))
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::News(ticket, News::Progress(progress)) => {
                self.connection.progress(ticket, &progress, &mut self.actions);
            }
            Event::News(ticket, News::Log(log)) => {
                self.connection.log(ticket, &log, &mut self.actions);
            }
            Event::News(_, News::HangUp) => self.hangs_up = true,
            Event::Done(ticket, outcome) => {
                self.connection.finish(ticket, outcome, &mut self.actions);
                self.service.host.touched();
            }
        }
    }

    fn flush(&mut self, stream: &Stream) {
        for said in self.said.drain(..) {
            match said {
                Said::Message(text) => {
                    self.service.host.said(&text);
                    stream.push(text);
                }
                Said::Answer(reply) => {
                    self.service.host.said(&reply.text);
                    stream.answer(reply);
                }
            }
        }
    }

    /// A client with a handshake has a stream for what it did not ask for, and is told there and nowhere else.
    fn changed(&mut self, changed: &Changed, client: &Client) {
        match client {
            Client::Modern => self.connection.changed(changed, &mut self.actions),
            Client::Handshaken { .. } => self.connection.settled(changed, &mut self.actions),
        }
    }

    /// Gives up on a client that takes too long to answer.
    fn give_up(&mut self) {
        let now = Instant::now();
        for (_, ticket) in self.asked.extract_if(.., |(until, _)| *until <= now) {
            self.connection.give_up(ticket, &mut self.actions);
        }
    }

    /// We are about to end. Nobody waits for a person until then: the call says where it stands, and is made again
    /// elsewhere.
    fn end(&mut self) {
        if self.only_listens() {
            self.connection.close(&mut self.actions);
        }
        for (_, ticket) in self.asked.drain(..) {
            self.connection.give_up(ticket, &mut self.actions);
        }
    }

    /// Goes on until everything is said.
    pub(crate) async fn run(mut self, stream: Arc<Stream>, client: Client) {
        let service = Arc::clone(&self.service);
        let (mailbox, mut mail) = mpsc::channel(MAIL_MAX);
        let request = client.request();
        if let Some(request) = &request {
            service.routes.expect_cancel(request.clone(), mailbox.clone());
        }
        let mut feed = self.feed.take().unwrap_or_else(|| service.feed.listen());
        let mut draining = service.draining();
        let ends_at = Instant::now() + STREAM_TIME;
        let mut routed = Vec::new();
        // Only the first event of such a stream tells how to come back, whatever has been said.
        let handshake = self.connection.handshake();
        let resumes = handshake.is_some_and(|had| had.revision.traits().sse_priming);
        loop {
            self.act();
            for id in self.asked_ids.drain(..) {
                // Only a client with a handshake is asked this way.
                if let Client::Handshaken { client, .. } = &client {
                    service.routes.expect_answer(*client, id.clone(), mailbox.clone());
                    routed.push(id);
                }
            }
            self.flush(&stream);
            if std::mem::take(&mut self.hangs_up) && resumes {
                stream.hang_up();
            }
            if self.is_over() {
                break;
            }
            let give_up_at = self.asked.iter().map(|(until, _)| *until).min();
            let listens = self.only_listens();
            let waits = listens || !self.asked.is_empty();
            tokio::select! {
                biased;
                event = poll_fn(|task| self.poll_calls(task)) => self.hear(event),
                Some(body) = mail.recv() => self.connection.receive(&body, &mut self.actions),
                // Who was too slow for some of them goes on with the next.
                changed = feed.recv() => if let Ok(changed) = changed {
                    self.changed(&changed, &client);
                },
                () = until(give_up_at) => self.give_up(),
                () = stream.abandoned(), if client == Client::Modern => {
                    self.connection.close(&mut self.actions);
                    self.act();
                    break;
                }
                () = told(&mut draining), if waits => self.end(),
                () = sleep_until(ends_at), if listens => self.connection.close(&mut self.actions),
            }
        }
        if let Client::Handshaken { client, .. } = client {
            service.routes.forget_answers(client, routed);
        }
        if let Some(request) = &request {
            service.routes.forget_request(request, &mailbox);
        }
        stream.end();
    }
}

/// Whose exchange it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Client {
    /// Who goes away takes the request back.
    Modern,
    /// Who goes away may come back, and takes a request back by its id.
    Handshaken { client: handshake_token::Id, request: Option<mcp::Id> },
}

impl Client {
    fn request(&self) -> Option<Request> {
        match self {
            Self::Handshaken { client, request: Some(id) } => Some((*client, id.clone())),
            Self::Handshaken { request: None, .. } | Self::Modern => None,
        }
    }
}

/// Lowers the priority of a thread that does blocking work, once: when processors are short, it gives way to the threads
/// that read and answer requests.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        thread_local!(static GIVES_WAY: Cell<bool> = const { Cell::new(false) });
        if !GIVES_WAY.replace(true) {
            // For the calling thread, although it is called a process. A system that refuses loses nothing but that.
            let _ = rustix::process::setpriority_process(None, BLOCKING_NICENESS);
        }
    }
}

/// For ever, where there is no time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until we are told to end.
pub(crate) async fn told(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|told| *told).await.is_err() {
        std::future::pending().await
    }
}
