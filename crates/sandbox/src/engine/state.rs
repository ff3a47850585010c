//! What the parts of a run share, while it runs. Values of the program that are kept here must go before its runtime does: who
//! takes an engine down clears it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rquickjs::{Persistent, Value};

use super::calls::Pending;
use super::failure::Made;
use super::prelude::Language;
use super::rejections::Rejections;
use super::scripts::Scripts;
use super::timers::Timers;
use crate::border::{IMPORTS_MAX, In, Out};
use crate::limits::Limits;
use crate::size;

/// So much is said to the other side in one go: as many calls as are under way at a time, as a rule.
const OUT_AT_ONCE: usize = 16;

/// The other side.
pub(crate) trait Wire {
    /// Takes all of them.
    fn send(&mut self, out: &mut Vec<Out>) -> Result<(), Gone>;
    /// The next message, or nothing when this time has come.
    fn receive(&mut self, until: Option<Instant>) -> Result<Option<In>, Gone>;
}

/// Nobody is there any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone;

/// Why a program does not go on, whatever it catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Time,
    Cancelled,
    Calls,
    Lines,
    /// By what is outside of the engine.
    Memory,
}

pub(super) struct State {
    pub(super) limits: Limits,
    pub(super) scripts: Scripts,
    pub(super) pending: RefCell<HashMap<u64, Pending>>,
    pub(super) timers: RefCell<Timers>,
    pub(super) rejections: RefCell<Rejections>,
    pub(super) language: Language,
    /// The functions of each module that was imported.
    pub(super) modules: RefCell<HashMap<String, Vec<String>>>,
    /// The module that is waited for.
    pub(super) importing: RefCell<Option<String>>,
    /// What the program is given.
    pub(super) input: RefCell<Option<Persistent<Value<'static>>>>,
    /// Whether it was stopped in the middle of something, and not while it waited.
    pub(super) was_busy: Cell<bool>,
    /// Whether its memory was full when it ended.
    pub(super) is_full: Cell<bool>,
    /// Files that the engine has read.
    pub(super) declared: RefCell<HashSet<String>>,
    /// Errors that we have made for the program.
    pub(super) made: RefCell<Vec<Made>>,
    pub(super) clock: Rc<Clock>,
    wire: RefCell<Box<dyn Wire>>,
    /// What the other side has not been told yet: each time that it is told something wakes it, which costs as much as a
    /// call. It is told before the program waits, and now and then while it is busy.
    outbox: RefCell<Vec<Out>>,
    /// What came while something else was waited for.
    inbox: RefCell<VecDeque<In>>,
    calls: Cell<u64>,
    /// Bytes of what the calls were called with that are under way.
    waiting: Cell<usize>,
    lines: Cell<usize>,
    imports: Cell<usize>,
}

/// How long it may still go on.
pub(super) struct Clock {
    stop: Cell<Option<Stop>>,
    deadline: Cell<Instant>,
    is_held: Cell<bool>,
    cancelled: Arc<AtomicBool>,
}

impl Clock {
    fn new(time: Duration, cancelled: Arc<AtomicBool>) -> Self {
        let deadline = Cell::new(Instant::now() + time);
        Self { stop: Cell::new(None), deadline, is_held: Cell::new(false), cancelled }
    }

    pub(super) fn stop(&self, why: Stop) {
        if self.stop.get().is_none() {
            self.stop.set(Some(why));
        }
    }

    /// Why it stops, if it does.
    pub(super) fn stopped(&self) -> Option<Stop> {
        if self.stop.get().is_none() {
            if self.cancelled.load(Ordering::Relaxed) {
                self.stop.set(Some(Stop::Cancelled));
            } else if Instant::now() >= self.deadline.get() {
                self.stop.set(Some(Stop::Time));
            }
        }
        self.stop.get()
    }

    /// Until when it may wait.
    fn deadline(&self) -> Option<Instant> {
        (!self.is_held.get()).then(|| self.deadline.get())
    }

    /// It has waited. While a person is asked, that takes none of its time; what it does itself meanwhile does.
    fn waited(&self, since: Instant) {
        if self.is_held.get() {
            self.deadline.set(self.deadline.get() + since.elapsed());
        }
    }
}

impl State {
    pub(super) fn new(
        limits: Limits,
        scripts: Scripts,
        wire: Box<dyn Wire>,
        cancelled: Arc<AtomicBool>,
        language: Language,
    ) -> Self {
        Self {
            limits,
            scripts,
            pending: RefCell::default(),
            timers: RefCell::default(),
            rejections: RefCell::default(),
            language,
            modules: RefCell::default(),
            importing: RefCell::default(),
            input: RefCell::default(),
            was_busy: Cell::new(false),
            is_full: Cell::new(false),
            declared: RefCell::default(),
            made: RefCell::default(),
            clock: Rc::new(Clock::new(limits.time, cancelled)),
            wire: RefCell::new(wire),
            outbox: RefCell::default(),
            inbox: RefCell::default(),
            calls: Cell::new(0),
            waiting: Cell::new(0),
            lines: Cell::new(0),
            imports: Cell::new(0),
        }
    }

    pub(super) fn send(&self, out: Out) {
        self.outbox.borrow_mut().push(out);
        if self.outbox.borrow().len() >= OUT_AT_ONCE {
            self.flush();
        }
    }

    /// Tells the other side what it has not been told yet.
    pub(super) fn flush(&self) {
        let mut outbox = self.outbox.borrow_mut();
        if !outbox.is_empty() && self.wire.borrow_mut().send(&mut outbox).is_err() {
            self.clock.stop(Stop::Cancelled);
        }
    }

    /// The next message; nothing when this time or the deadline has come.
    pub(super) fn receive(&self, until: Option<Instant>) -> Option<In> {
        let kept = self.inbox.borrow_mut().pop_front();
        kept.or_else(|| self.receive_new(until))
    }

    fn receive_new(&self, until: Option<Instant>) -> Option<In> {
        self.flush();
        loop {
            let until = [until, self.clock.deadline()].into_iter().flatten().min();
            let since = Instant::now();
            let received = self.wire.borrow_mut().receive(until);
            self.clock.waited(since);
            match received {
                Ok(Some(In::Hold)) => self.clock.is_held.set(true),
                Ok(Some(In::GoOn)) => self.clock.is_held.set(false),
                Ok(received) => return received,
                Err(Gone) => {
                    self.clock.stop(Stop::Cancelled);
                    return None;
                }
            }
        }
    }

    /// Asks for a module, and waits for it. What else comes meanwhile is kept.
    pub(super) fn import(&self, specifier: &str) -> Option<crate::border::Module> {
        self.importing.replace(Some(specifier.to_owned()));
        self.send(Out::Import { specifier: specifier.to_owned() });
        let module = loop {
            match self.receive_new(None)? {
                In::Module(module) => break module,
                other => self.inbox.borrow_mut().push_back(other),
            }
        };
        self.importing.take();
        if let Ok(functions) = &module {
            self.modules.borrow_mut().insert(specifier.to_owned(), functions.clone());
        }
        Some(module)
    }

    /// Whether the other side may be asked for another module.
    pub(super) fn may_import(&self) -> bool {
        let made = self.imports.get();
        self.imports.set(made + 1);
        made < IMPORTS_MAX
    }

    /// The number of another call, if there may be one. So much is what it is called with, which waits with it.
    pub(super) fn next_call(&self, bytes: usize) -> Option<u64> {
        let id = self.calls.get();
        if usize::try_from(id).is_ok_and(|made| made >= self.limits.calls) {
            self.clock.stop(Stop::Calls);
            return None;
        }
        let waiting = self.waiting.get().saturating_add(bytes);
        if waiting > self.limits.memory {
            self.clock.stop(Stop::Memory);
            return None;
        }
        self.waiting.set(waiting);
        self.calls.set(id + 1);
        Some(id)
    }

    /// The call of this number, which is under way no more.
    pub(super) fn answered(&self, id: u64) -> Option<Pending> {
        let pending = self.pending.borrow_mut().remove(&id)?;
        self.waiting.set(self.waiting.get().saturating_sub(pending.bytes));
        Some(pending)
    }

    /// Whether there may be another line of the console. If not, the program ends.
    pub(super) fn may_write(&self) -> bool {
        let may = self.lines.get() < self.limits.lines;
        if !may {
            self.clock.stop(Stop::Lines);
        }
        may
    }

    /// Another line of the console, if there may be one.
    pub(super) fn line(&self, text: String) {
        if self.may_write() {
            self.lines.set(self.lines.get() + 1);
            self.send(Out::Line(size::line(&text)));
            // Whatever happens to the program, it has been said.
            self.flush();
        }
    }

    /// A line of ours about the program, where there is room for it.
    pub(super) fn note(&self, text: &str) {
        if self.lines.get() < self.limits.lines {
            self.line(format!("note: {text}"));
        }
    }

    /// Lets go of all values of the program.
    pub(super) fn clear(&self) {
        self.pending.take();
        self.timers.take();
        self.rejections.take();
        self.made.take();
        self.input.take();
        self.language.clear();
    }
}
