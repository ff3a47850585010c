//! A run from the outside: it answers what the program asks for, and ends it where it does not end by itself. Nothing that a
//! program's process says is believed: what is not as it must be ends it.

mod doing;

use std::collections::HashMap;
use std::future::ready;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::border::{Ended, IMPORTS_MAX, In, Out, SPECIFIER_BYTES_MAX, Thrown};
use crate::host::{Boxed, Call, Clock, Host, Module, Notes};
use crate::limits::Limits;
use crate::outcome::{Called, Failure, Kind, Outcome};
use crate::program::Program;
use crate::sandbox::{Running, Sandbox};
use crate::{size, stack};
use doing::{Doing, Done};

/// How long a program may take to notice that its time is up, before it is ended from outside.
const GRACE: Duration = Duration::from_millis(500);
/// Longer than anybody is asked for.
const LONG: Duration = Duration::from_secs(3_600);
/// So many notes about calls are kept, beside the program's own lines.
const NOTES_MAX: usize = 20;
/// How many of them may wait to be looked at. More are dropped.
const NOTES_WAITING_MAX: usize = 64;
/// So many answers do not wait for others, nor does one for longer than this.
const ANSWERS_AT_ONCE: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_millis(1);
/// What stands for the time of a call under way.
const UNDER_WAY: u64 = u64::MAX;

impl Sandbox {
    /// Runs a program to its end, and always within its bounds.
    pub async fn run(
        &self,
        program: Program,
        limits: Limits,
        host: Arc<dyn Host>,
        cancelled: CancellationToken,
    ) -> Outcome {
        if let Err(why) = program.check() {
            return Outcome::failed(Failure::new(Kind::Import, why));
        }
        let limits = limits.within_reason();
        let files = program.files.iter().map(|file| file.name.clone()).collect();
        let room = match stack::bytes(&program, &limits) {
            Ok(stack) => self.room(limits, stack),
            Err(failure) => return Outcome::failed(failure),
        };
        let running = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Outcome::failed(Failure::cancelled()),
            started = self.start(room, program) => match started {
                Ok(running) => running,
                Err(failure) => return Outcome::failed(failure),
            },
        };
        Run::new(running, limits, files, host, cancelled).go().await
    }
}

impl Sandbox {
    /// Runs an empty program, to learn whether programs can run here.
    pub async fn probe(&self) -> Result<(), Failure> {
        let (limits, host) = (Limits::default(), Arc::new(NoHost));
        let outcome = self.run(Program::of(""), limits, host, CancellationToken::new()).await;
        outcome.error.map_or(Ok(()), Err)
    }
}

/// The host of a program that imports nothing.
struct NoHost;

impl Host for NoHost {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        Box::pin(ready(Err("there are no modules".to_owned())))
    }

    fn call<'a>(&'a self, _: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        let message = "there are no functions".to_owned();
        Box::pin(ready(Err(Thrown { kind: Kind::Import, message, data: None })))
    }
}

/// The way from a call back to its program, beside its answer.
#[derive(Clone)]
struct Way {
    clock: Clock,
    notes: Notes,
}

struct Run {
    running: Running,
    limits: Limits,
    /// The names of the program's files.
    files: Vec<String>,
    host: Arc<dyn Host>,
    cancelled: CancellationToken,
    outcome: Outcome,
    /// Whether it has reported missing protections, which it may do once.
    has_reported_gaps: bool,
    /// What it has imported, and how often it has asked. It waits for one before it asks for another.
    modules: HashMap<String, Module>,
    imports: usize,
    is_importing: bool,
    doing: Doing,
    /// When the calls began, and the bytes of what each was called with.
    starts: Vec<(Instant, usize)>,
    /// How many of the lines are the program's own; the others are about calls.
    lines: usize,
    /// It has said that it has ended, and with what.
    ended: Option<Ended>,
    /// Of what calls were called with that are under way.
    bytes: usize,
    /// What the program has not been told yet, and since when.
    answers: Vec<In>,
    answered: Instant,
    over: usize,
    deadline: Instant,
    /// How many people are asked.
    holds: usize,
    /// Since when its time stands still.
    held_since: Option<Instant>,
}

impl Run {
    fn new(
        running: Running,
        limits: Limits,
        files: Vec<String>,
        host: Arc<dyn Host>,
        cancelled: CancellationToken,
    ) -> Self {
        let doing = Doing::new(Arc::clone(&host), limits.calls_at_once, &cancelled);
        Self {
            running,
            limits,
            files,
            host,
            cancelled,
            outcome: Outcome::default(),
            has_reported_gaps: false,
            modules: HashMap::new(),
            imports: 0,
            is_importing: false,
            doing,
            starts: Vec::new(),
            lines: 0,
            ended: None,
            bytes: 0,
            answers: Vec::new(),
            answered: Instant::now(),
            over: 0,
            deadline: Instant::now() + limits.time + GRACE,
            holds: 0,
            held_since: None,
        }
    }

    async fn go(mut self) -> Outcome {
        // Holds that come and go between two looks at them have taken no time.
        let (clock, mut holds) = watch::channel(0);
        let (notes, mut noted) = mpsc::channel(NOTES_WAITING_MAX);
        let way = Way { clock: Clock(clock), notes: Notes(notes) };
        // All are made once, and not for every message: each takes its place among those that wait.
        let mut cancelled = pin!(self.cancelled.clone().cancelled_owned());
        let mut late = pin!(tokio::time::sleep_until(self.late().into()));
        let mut long = pin!(tokio::time::sleep_until(self.answered.into()));
        let ended = 'run: loop {
            if late.deadline() != self.late().into() {
                late.as_mut().reset(self.late().into());
            }
            // While calls wait for others to end, most programs have nothing to do with one answer, and none waits long for it.
            let may_wait = self.doing.is_full();
            let answer_at = self.answered + ANSWER_WITHIN;
            if may_wait && !self.answers.is_empty() && long.deadline() != answer_at.into() {
                long.as_mut().reset(answer_at.into());
            }
            // What the program says comes last: it may never stop to say something.
            tokio::select! {
                biased;
                () = &mut cancelled => break Some(Err(Failure::cancelled())),
                () = &mut late => {
                    let seconds = self.limits.time.as_secs_f64();
                    let message = format!("the program did not end within {seconds} s");
                    break Some(Err(Failure::new(Kind::Timeout, message)));
                }
                Ok(()) = holds.changed() => {
                    self.holds = *holds.borrow_and_update();
                    self.stop_or_start_time();
                }
                Some(note) = noted.recv() => self.note(&note),
                done = self.doing.next() => self.done(done),
                // Answers that come close together go together: each wakes the program, which costs as much as a call.
                () = tokio::task::yield_now(), if !self.answers.is_empty() && !may_wait => self.answer(),
                () = &mut long, if !self.answers.is_empty() && may_wait => self.answer(),
                // What it has called before it ended has been begun by now.
                () = ready(()), if self.ended.is_some() => break self.ended.take(),
                mut out = self.running.next() => loop {
                    let Some(heard) = out else { break 'run None };
                    if let ControlFlow::Break(ended) = self.heard(heard, &way) {
                        break 'run Some(ended);
                    }
                    // Calls that were made together go out together.
                    if self.ended.is_some() || !self.running.has_next() {
                        break;
                    }
                    out = self.running.next().await;
                },
            }
        };
        // Others never had their turn.
        self.outcome.calls.truncate(self.doing.made());
        // What is under way hears of it before anything else is waited for.
        drop(self.doing);
        let ended = match ended {
            Some(ended) => ended,
            None => Err(self.running.lost().await),
        };
        self.running.end();
        for (called, (start, _)) in self.outcome.calls.iter_mut().zip(&self.starts) {
            if called.ms == UNDER_WAY {
                called.ms = millis(start.elapsed());
            }
        }
        match ended {
            Ok(result) => self.outcome.result = result,
            Err(failure) => self.outcome.error = Some(failure),
        }
        self.outcome
    }

    /// When it is ended from outside.
    fn late(&self) -> Instant {
        self.held_since.map_or(self.deadline, |since| since + LONG)
    }

    /// Its time stands still while people are asked. A server that has to be started for an import takes none of it either:
    /// the program does nothing meanwhile.
    fn stop_or_start_time(&mut self) {
        let is_held = self.is_importing || self.holds > 0;
        match self.held_since {
            None if is_held => {
                self.held_since = Some(Instant::now());
                self.running.send(In::Hold);
            }
            Some(since) if !is_held => {
                self.deadline += since.elapsed();
                self.held_since = None;
                self.running.send(In::GoOn);
            }
            _ => {}
        }
    }

    /// A line about a call, once.
    fn note(&mut self, note: &str) {
        let line = size::line(&format!("note: {note}"));
        let noted = self.outcome.logs.len() - self.lines;
        if noted < NOTES_MAX && !self.outcome.logs.contains(&line) {
            self.host.line(&line);
            self.outcome.logs.push(line);
        }
    }

    fn heard(&mut self, out: Out, way: &Way) -> ControlFlow<Ended> {
        let is_right = match out {
            Out::Done(ended) => {
                self.ended = Some(self.checked(ended));
                true
            }
            Out::Line(line) => {
                let is_right = self.lines < self.limits.lines;
                if is_right {
                    self.lines += 1;
                    let line = size::line(&line);
                    self.host.line(&line);
                    self.outcome.logs.push(line);
                }
                is_right
            }
            Out::Unprotected(what) => {
                self.running.note_unprotected(&what);
                !std::mem::replace(&mut self.has_reported_gaps, true)
            }
            Out::Import { specifier } => self.import(specifier),
            Out::Call { id, module, function, arguments } => {
                self.call(id, &module, &function, arguments, way)
            }
        };
        match is_right {
            true => ControlFlow::Continue(()),
            false => {
                tracing::warn!("a program's engine does not keep to its limits, and was ended");
                let failure = Failure::new(Kind::Exception, "the program broke its engine");
                ControlFlow::Break(Err(failure))
            }
        }
    }

    fn checked(&self, ended: Ended) -> Ended {
        match ended {
            Ok(Some(json)) => size::check_result(&json, &self.limits).map(|()| Some(json)),
            Ok(None) => Ok(None),
            Err(failure) => Err(size::failure(failure, &self.files)),
        }
    }

    /// Whether it may.
    fn import(&mut self, specifier: String) -> bool {
        let may = !self.is_importing
            && self.imports < IMPORTS_MAX
            && specifier.len() <= SPECIFIER_BYTES_MAX;
        if may {
            (self.is_importing, self.imports) = (true, self.imports + 1);
            self.stop_or_start_time();
            self.doing.import(specifier);
        }
        may
    }

    /// Whether it may.
    fn call(
        &mut self,
        id: u64,
        module: &str,
        function: &str,
        arguments: Box<RawValue>,
        way: &Way,
    ) -> bool {
        let begun = self.outcome.calls.len();
        let bytes = arguments.get().len();
        let may = usize::try_from(id) == Ok(begun)
            && begun < self.limits.calls
            && self.bytes.saturating_add(bytes) <= self.limits.memory
            && arguments.get().starts_with('{')
            && size::is_readable(&arguments);
        let known = self.modules.get(module).filter(|_| may).and_then(|module| {
            let found = module.functions.iter().find(|own| own.name == function);
            found.map(|function| (module.server.clone(), function.tool.clone()))
        });
        let Some((server, tool)) = known else { return false };
        self.outcome.calls.push(Called {
            server: server.clone(),
            tool: tool.clone(),
            ms: UNDER_WAY,
            ok: false,
        });
        self.starts.push((Instant::now(), bytes));
        self.bytes += bytes;
        self.host.progress(self.outcome.calls.len(), self.over);
        let (module, cancelled) = (module.to_owned(), self.doing.cancelled());
        let Way { clock, notes } = way.clone();
        self.doing.call(begun, Call { module, server, tool, arguments, cancelled, clock, notes });
        true
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Import { specifier, module } => {
                self.is_importing = false;
                self.stop_or_start_time();
                let names = module.as_ref().map_err(Clone::clone).map(|module| {
                    module.functions.iter().map(|function| function.name.clone()).collect()
                });
                if let Ok(module) = module {
                    self.modules.insert(specifier, module);
                }
                self.running.send(In::Module(names));
            }
            Done::Call { at, answer, took } => {
                self.over += 1;
                if let Some(called) = self.outcome.calls.get_mut(at) {
                    (called.ms, called.ok) = (millis(took), answer.is_ok());
                }
                self.bytes -= self.starts.get(at).map_or(0, |(_, bytes)| *bytes);
                self.host.progress(self.outcome.calls.len(), self.over);
                let id = u64::try_from(at).unwrap_or(u64::MAX);
                if self.answers.is_empty() {
                    self.answered = Instant::now();
                }
                self.answers.push(In::Answer { id, answer });
                if self.answers.len() >= ANSWERS_AT_ONCE {
                    self.answer();
                }
            }
        }
    }

    fn answer(&mut self) {
        for answer in self.answers.drain(..) {
            self.running.send(answer);
        }
        // More answers may be there already, and it can begin with these.
        self.running.flush();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1)
}

impl Outcome {
    fn failed(failure: Failure) -> Self {
        Self { error: Some(failure), ..Self::default() }
    }
}

impl Failure {
    fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "the program was cancelled")
    }
}
