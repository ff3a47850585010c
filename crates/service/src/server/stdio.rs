//! The server on standard input and output: one thread, one poll. Calls that answer from memory are carried
//! out inline; replies are written together as long as a complete line is already here. A client that
//! does not read makes us wait, never grow.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use catalog::Watch;
use mcp::{Action, Call, Caller, Connection, Outcome, Reply, Server, Ticket, Transport};
use rustix::event::Timespec;
use transport::{Calls, Context, Event, News, OutcomeFuture};

use super::Host;
use super::live::{self, Looked};
use super::waiting;
use super::wake::{Wake, Waker, Woken};

mod lines;
pub(super) mod loading;
mod outbox;
mod ready;
#[cfg(test)]
mod tests;
pub(super) mod wire_log;
mod workers;
mod writing;

use lines::{LINE_MAX, Line, Lines};
use loading::{Loading, attach, load};
use outbox::Outbox;
use ready::Ready;
pub(super) use wire_log::Direction;
pub use wire_log::WireLog;
use workers::Workers;

/// Replies are written when this much has come together, whatever else is here.
const REPLIES_BYTES: usize = 256 * 1024;
/// How long a client that reads slowly can keep us once a signal has told us to go, in all.
const TOLD_PATIENCE: Duration = Duration::from_millis(400);
/// The catalogue is loaded once the first answer is out, or when nobody speaks for this long.
const SILENCE: Duration = Duration::from_millis(50);
/// How long the end of the input waits for work under way.
const GRACE: Duration = Duration::from_millis(500);
/// How often we look whether another process has changed a session that the client follows.
const LOOK: Duration = Duration::from_secs(1);
/// How many pieces of news may wait for us. Whoever has more waits.
const NEWS_MAX: usize = 16;
/// How many calls may be in flight.
const CALLS_MAX: usize = 256;

/// Who loads the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catalogue {
    /// We do, once there is time.
    Ours,
    /// Somebody else has, in this process.
    Loaded,
}

/// Serves until the input ends, the client shuts us down, it goes away, or a signal comes.
pub fn serve(host: &Host, catalogue: Catalogue, wire_log: Option<WireLog>) -> io::Result<()> {
    let (wake, waker) = Wake::new()?;
    waker.on_signals()?;
    let (news, inbox) = sync_channel(NEWS_MAX);
    let loader_waker = waker.clone();
    let ready = Ready::new(rustix::stdio::stdin(), take_stdout()?, wake);
    let host_side = HostSide {
        server: host.server(),
        carry_out: Box::new(|call, caller, context| {
            host.call(call, caller, Transport::Stdio, context)
        }),
        load: Some(Box::new(move || match catalogue {
            Catalogue::Ours => load(host, news, loader_waker),
            Catalogue::Loaded => {
                attach(news, loader_waker);
                Ok(())
            }
        })),
        look: looking(host),
    };
    let mut session = Session::new(ready, inbox, host_side, &waker, wire_log);
    let outbox = Arc::clone(&session.outbox);
    host.listen(move |changed| {
        outbox.add(changed);
        waker.wake();
    });
    let served = session.run();
    if let Err(error) = &served {
        tracing::error!("fatal: {error}");
        // The client may be gone too; the caller reports what went wrong.
        session.connection.fail(&mut session.actions);
        session.act();
        let _ = session.write();
    }
    tracing::info!("ended");
    if catalogue == Catalogue::Ours {
        host.upstreams().close();
    }
    // The process ends now, and nobody waits for a watcher that is in the middle of a reload.
    if let Some(watch) = session.watch.take() {
        watch.let_go();
    }
    served
}

/// Looks at sessions, and at what the client follows elsewhere.
fn looking(host: &Host) -> Look<'_> {
    let mut look = live::looking(host.app().clone());
    let (mut subscriptions, mut following) = (0, None);
    Box::new(move |connection| {
        if subscriptions != connection.subscriptions() {
            subscriptions = connection.subscriptions();
            // The new before the old, so that nothing is let go in between.
            let now = host.upstreams().follow(connection);
            drop(std::mem::replace(&mut following, now));
        }
        look(connection)
    })
}

/// Takes the real standard output for ourselves and points descriptor 1 at standard error, so that
/// nothing that a library prints can get into the protocol.
fn take_stdout() -> io::Result<OwnedFd> {
    let real = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(real)
}

/// What is served.
struct HostSide<'a> {
    server: Arc<Server>,
    carry_out: CarryOut<'a>,
    /// Begins to load what calls answer from. Taken once.
    load: Option<Load<'a>>,
    /// What has changed since the last look, besides what is told as news.
    look: Look<'a>,
}

type CarryOut<'a> = Box<dyn Fn(Call, Caller, Context) -> OutcomeFuture + 'a>;
type Load<'a> = Box<dyn FnOnce() -> io::Result<()> + 'a>;
type Look<'a> = Box<dyn FnMut(&Connection) -> Looked + 'a>;

struct Session<'a> {
    connection: Connection,
    carry_out: CarryOut<'a>,
    load: Option<Load<'a>>,
    look: Look<'a>,
    ready: Ready<'a>,
    inbox: Receiver<Loading>,
    /// What has changed elsewhere.
    outbox: Arc<Outbox>,
    watch: Option<Watch>,
    calls: Calls,
    workers: Workers,
    /// Wakes us when one of them goes on.
    waker: std::task::Waker,
    wire_log: Option<WireLog>,
    /// What is to be written.
    replies: Vec<u8>,
    actions: Vec<Action>,
    /// Calls that cannot begin before the catalogue is there.
    held: VecDeque<(Ticket, Call, Caller)>,
    /// The calls whose client was asked something, with when we give that up.
    asked: Vec<(Instant, Ticket)>,
    is_loaded: bool,
    has_news: bool,
    /// A call is done that took its time, and may have changed something.
    has_changed: bool,
    /// Calls in flight that change no session.
    unchanging: HashSet<Ticket>,
    /// Which subscriptions of the client we have looked for.
    subscriptions: u64,
    /// When to look whether somebody else has changed something, where that is to be seen.
    look_at: Option<Instant>,
    /// Nobody writes to the input any more; there may still be something in it.
    is_alone: bool,
    /// The input has been read to its end.
    has_ended: bool,
    is_over: bool,
    /// The client has shut us down, and nothing is waited for any more.
    is_closed: bool,
    /// A signal has told us to go, by this time.
    told: Option<Instant>,
}

impl<'a> Session<'a> {
    fn new(
        ready: Ready<'a>,
        inbox: Receiver<Loading>,
        host: HostSide<'a>,
        waker: &Waker,
        wire_log: Option<WireLog>,
    ) -> Self {
        let workers = Workers::default();
        Self {
            connection: Connection::new(host.server, Transport::Stdio),
            carry_out: host.carry_out,
            load: host.load,
            look: host.look,
            ready,
            inbox,
            outbox: Arc::default(),
            watch: None,
            calls: Calls::new(Arc::new(workers.clone())),
            workers,
            waker: waker.for_tasks(),
            wire_log,
            replies: Vec::new(),
            actions: Vec::new(),
            held: VecDeque::new(),
            asked: Vec::new(),
            is_loaded: false,
            has_news: false,
            has_changed: false,
            unchanging: HashSet::new(),
            subscriptions: 0,
            look_at: None,
            is_alone: false,
            has_ended: false,
            is_over: false,
            is_closed: false,
            told: None,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut lines = Lines::default();
        // Registers the waker of calls.
        self.hear_calls();
        loop {
            let mut has_spoken = false;
            while !self.is_over && self.may_go_on(&lines) {
                let Some(line) = lines.next(self.has_ended) else {
                    self.is_over = self.has_ended && self.held.is_empty();
                    break;
                };
                self.line(line);
                self.act();
                has_spoken = true;
                if self.replies.len() >= REPLIES_BYTES {
                    self.write()?;
                }
            }
            if self.is_over && !self.is_closed && self.told.is_none() {
                self.drain()?;
            }
            if self.is_over {
                self.connection.close(&mut self.actions);
                self.act();
                return self.write();
            }
            // Whoever reads that they follow something hears of all that happens from then on…
            if self.subscriptions != self.connection.subscriptions() {
                self.look();
            }
            // …and whoever waits for an answer has it before we look for what else there is to tell.
            self.write()?;
            self.look();
            self.write()?;
            if std::mem::take(&mut self.has_news) {
                self.news()?;
                continue;
            }
            if has_spoken {
                self.load()?;
            }
            let may_read = !self.has_ended && (self.held.is_empty() || !lines.has_next());
            let patience = self.patience();
            let awake = self.ready.wait(may_read, patience.as_ref())?;
            if awake.is_gone {
                tracing::info!("the client is gone");
                return Ok(());
            }
            if awake.is_silent {
                self.load()?;
            }
            if !self.asked.is_empty() {
                self.give_up();
            }
            if awake.woken {
                self.hear()?;
            }
            if awake.input && !self.is_over {
                self.has_ended = lines.read(self.ready.input)? == 0;
            }
        }
    }

    /// Whether the next line is looked at. While calls wait for the catalogue it waits with them, so that order
    /// stays; only what takes one of them back acts at once.
    fn may_go_on(&self, lines: &Lines) -> bool {
        self.held.is_empty() || lines.next_mentions(b"notifications/cancelled")
    }

    fn load(&mut self) -> io::Result<()> {
        self.load.take().map_or(Ok(()), |load| load())
    }

    /// Another thread has news, or a signal tells us to end.
    fn hear(&mut self) -> io::Result<()> {
        self.has_news = true;
        if self.ready.wake.read()? == Woken::Signal {
            tracing::info!("a signal tells us to end");
            self.told.get_or_insert_with(|| Instant::now() + TOLD_PATIENCE);
            self.is_over = true;
        }
        Ok(())
    }

    fn news(&mut self) -> io::Result<()> {
        // What does not fit is left where it is until the client has taken the rest.
        while self.replies.len() < REPLIES_BYTES {
            self.act();
            match self.inbox.try_recv() {
                Ok(Loading::Loaded) => self.loaded(),
                Ok(Loading::Watching(watch)) => self.watch = Some(watch),
                Ok(Loading::NotWatching(error)) if self.is_loaded => {
                    tracing::warn!("edits of workflow files will not be seen: {error}");
                }
                Ok(Loading::NotWatching(error)) => return Err(error),
                Ok(Loading::Changed(changed)) => {
                    tracing::info!("workflows have changed");
                    self.connection.changed(&changed, &mut self.actions);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                    if let Some(changed) = self.outbox.take() {
                        self.connection.changed(&changed, &mut self.actions);
                    }
                    self.hear_calls();
                    return Ok(());
                }
            }
        }
        self.has_news = true;
        Ok(())
    }

    /// Calls can begin, in the order in which they came.
    fn loaded(&mut self) {
        self.is_loaded = true;
        for (ticket, call, caller) in std::mem::take(&mut self.held) {
            self.call(ticket, call, caller);
        }
    }

    fn line(&mut self, line: Line<'_>) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                if let Some(log) = &mut self.wire_log {
                    log.record(Direction::In, b"[a line that is too long]");
                }
                let details = format!("a line may have {LINE_MAX} bytes");
                self.connection.refuse_line(&details, &mut self.actions);
                return;
            }
        };
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if let Some(log) = &mut self.wire_log {
            log.record(Direction::In, line);
        }
        if !line.is_empty() {
            self.connection.receive(line, &mut self.actions);
        }
    }

    /// Carries out what the connection asks for, and collects what is to be written.
    fn act(&mut self) {
        let mut now = Vec::new();
        while !self.actions.is_empty() {
            std::mem::swap(&mut now, &mut self.actions);
            for action in now.drain(..) {
                match action {
                    Action::Reply(Reply { text, .. }) | Action::Notify(text) => self.say(text),
                    Action::Ask { ticket, message, patience, .. } => {
                        // What it was asked before is answered by now.
                        self.asked.retain(|(_, asked)| *asked != ticket);
                        self.asked.push((Instant::now() + patience, ticket));
                        self.say(message);
                    }
                    Action::Call { ticket, call, caller } if self.is_loaded => {
                        self.call(ticket, call, caller);
                    }
                    Action::Call { ticket, call, caller } => {
                        self.held.push_back((ticket, call, caller));
                    }
                    Action::Cancel(ticket) => {
                        self.calls.cancel(ticket);
                        self.unchanging.remove(&ticket);
                        self.held.retain(|(held, ..)| *held != ticket);
                    }
                    Action::Warn(warning) => tracing::warn!("{warning}"),
                    Action::Drain => self.is_over = true,
                    Action::Close => (self.is_over, self.is_closed) = (true, true),
                }
            }
        }
        // Both are empty now; the room is used again.
        self.actions = now;
    }

    fn say(&mut self, message: String) {
        if let Some(log) = &mut self.wire_log {
            log.record(Direction::Out, message.as_bytes());
        }
        self.replies.extend_from_slice(message.as_bytes());
        self.replies.push(b'\n');
        self.connection.recycle(message);
    }

    /// How long to wait for something to happen; for ever, where there is nothing else to do.
    fn patience(&self) -> Option<Timespec> {
        let until = self.asked.iter().map(|(until, _)| until).chain(&self.look_at).min();
        let until = until.map(|until| until.saturating_duration_since(Instant::now()));
        let silence = self.load.as_ref().map(|_| SILENCE);
        let shortest = until.into_iter().chain(silence).min()?;
        // A little later is early enough, and never too early.
        Timespec::try_from(shortest + Duration::from_millis(1)).ok()
    }

    /// Tells the client what has changed: by its own calls at once, by somebody else within [`LOOK`]. Nobody looks
    /// for a client that does not want to hear of it. Who begins to follow something is answered behind the first
    /// look, catalogue or not, so that nothing falls between the two.
    fn look(&mut self) {
        let subscriptions = self.connection.subscriptions();
        let is_due = self.has_changed
            || self.subscriptions != subscriptions
            || self.look_at.is_some_and(|at| at <= Instant::now());
        if !is_due {
            return;
        }
        (self.has_changed, self.subscriptions) = (false, subscriptions);
        let looked = (self.look)(&self.connection);
        if let Some(changed) = looked.changed {
            self.connection.changed(&changed, &mut self.actions);
            self.act();
        }
        self.look_at = looked.may_change.then(|| Instant::now() + LOOK);
    }

    /// Gives up on clients that take too long to answer.
    fn give_up(&mut self) {
        let now = Instant::now();
        for (_, ticket) in self.asked.extract_if(.., |(until, _)| *until <= now) {
            self.connection.give_up(ticket, &mut self.actions);
        }
        self.act();
    }

    fn call(&mut self, ticket: Ticket, call: Call, caller: Caller) {
        let carry_out = &self.carry_out;
        let may_change_sessions = waiting::may_change_sessions(&call);
        // What is to be forgotten makes room.
        let has_room = self.calls.len() < CALLS_MAX || matches!(call, Call::Forget { .. });
        let ended = match has_room {
            true => self.calls.start(ticket, |context| carry_out(call, caller, context)),
            false => Some(Outcome::Busy),
        };
        let has_worked = self.workers.have_worked();
        match ended {
            Some(outcome) => {
                // A quick disk is done in the first poll.
                let is_done = has_worked || may_change_sessions;
                self.has_changed |= is_done && self.is_looked_for(may_change_sessions);
                self.connection.finish(ticket, outcome, &mut self.actions);
            }
            None if !may_change_sessions => drop(self.unchanging.insert(ticket)),
            None => {}
        }
    }

    /// Takes what calls under way have to say.
    fn hear_calls(&mut self) {
        let task = TaskContext::from_waker(&self.waker);
        while let Poll::Ready(event) = self.calls.poll_next(&task) {
            match event {
                Event::News(ticket, News::Progress(progress)) => {
                    self.connection.progress(ticket, &progress, &mut self.actions);
                }
                Event::News(ticket, News::Log(log)) => {
                    self.connection.log(ticket, &log, &mut self.actions);
                }
                // There is one line, and it stays.
                Event::News(_, News::HangUp) => {}
                Event::Done(ticket, outcome) => {
                    let may_change_sessions = !self.unchanging.remove(&ticket);
                    self.has_changed |= self.is_looked_for(may_change_sessions);
                    self.connection.finish(ticket, outcome, &mut self.actions);
                }
            }
        }
        self.act();
    }

    /// Whether what a call may have changed is looked for at once. What others have changed is seen by the next look, if one
    /// is due.
    fn is_looked_for(&self, may_change_sessions: bool) -> bool {
        may_change_sessions || self.look_at.is_none()
    }

    /// Work under way may end, within reason. What waits for longer is given up.
    fn drain(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + GRACE;
        self.hear_calls();
        while !self.calls.is_empty()
            && Instant::now() < deadline
            && self.ready.wait_to_be_woken(deadline)?
        {
            self.hear()?;
            self.hear_calls();
        }
        Ok(())
    }
}
