//! A program for a client of ours: where it runs, what it can call, and what comes back.

use std::sync::Arc;

use code_mode::{Listener, Over, Own, Tools};
use mcp::content::Block;
use mcp::{Caller, Outcome};
use orchestrator::{AskedBy, Asker};
use sandbox::host::Boxed;
use sandbox::{Called, Failure, Kind, Limits, Program, Sandbox, Thrown};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{Sender, channel};
use tokio_util::sync::CancellationToken;
use transport::{Context, block_on};

use super::call::{Consent, Conversation, Request, STEPS_MAX, Said, queue, why_refused};
use super::questions::Questions;
use super::tally::Ended;
use super::{Upstreams, resource_uri};
use crate::access::Who;
use crate::app::App;
use crate::audit::Line;
use crate::server::Toolset;
use crate::server::tools::{Asker as ToolAsker, Role, TOOLS, Tool, ToolCall};

/// How many programs of one principal may wait for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramsWaiting(pub usize);

impl Default for ProgramsWaiting {
    fn default() -> Self {
        Self(64)
    }
}

/// Where programs run, and within what.
#[derive(Clone)]
pub struct Code {
    pub sandbox: Sandbox,
    pub limits: Limits,
}

/// A program that can be run.
pub(crate) struct Ready {
    pub(crate) program: Program,
    pub(crate) limits: Limits,
    pub(crate) allowed: Vec<String>,
}

impl Upstreams {
    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    /// Bounds how many programs of one principal may wait.
    pub(crate) fn limit_programs(&self, waiting: ProgramsWaiting) {
        // The first one counts; a server has one.
        let _ = self.programs_waiting.set(waiting);
    }

    /// Restricts which of our own tools programs can import.
    pub(crate) fn set_toolset(&self, toolset: Toolset) {
        // A server has one host, which calls this once.
        let _ = self.toolset.set(toolset);
    }

    /// The tools that programs can import from [`OWN`].
    pub(crate) fn importable_tools(&self) -> impl Iterator<Item = &'static Tool> {
        let toolset = self.toolset.get().copied().unwrap_or_default();
        TOOLS.iter().filter(move |tool| tool.role == Role::Anyone && toolset.has(tool))
    }

    /// What a program can import of ours.
    pub fn own_tools(self: &Arc<Self>, app: &App, caller: &Caller, who: &Who) -> Arc<dyn Own> {
        let (app, caller, who) = (app.clone(), caller.clone(), who.clone());
        Arc::new(OwnTools { app, upstreams: Arc::clone(self), who, caller })
    }

    /// Begins to run a program. It ends when nobody wants to know any more what comes of it.
    pub(super) fn start_program(
        self: &Arc<Self>,
        request: &Request,
        ready: &Ready,
    ) -> Result<Conversation, Box<Outcome>> {
        let orchestrator = self.orchestrator().map_err(|error| {
            tracing::error!("nothing can speak with upstreams: {error}");
            Outcome::Fault
        })?;
        let (tell, over, said) = queue().ok_or(Outcome::Fault)?;
        let (step, steps) = channel(STEPS_MAX);
        let cancelled = CancellationToken::new();
        let questions = Questions::new(&tell, &request.caller, Consent::OneByOne);
        let listening = Listening {
            upstreams: Arc::clone(self),
            app: request.app.clone(),
            name: request.name,
            who: request.who.clone(),
            step: request.caller.wants_progress.then_some(step),
        };
        let tools = Tools {
            orchestrator: orchestrator.clone(),
            allowed: ready.allowed.clone(),
            asked_by: AskedBy::Agent,
            party: self.party(&request.who),
            asker: questions.map(|questions| questions as Arc<dyn Asker>),
            own: Some(self.own_tools(&request.app, &request.caller, &request.who)),
            renamed: Some(resource_uri),
            listener: Some(Arc::new(listening)),
        };
        let owner = request.who.principal().cloned();
        let ProgramsWaiting(waiting_max) = self.programs_waiting.get().copied().unwrap_or_default();
        let sandbox = self.code.sandbox.with_owner(owner, waiting_max);
        let limits = ready.limits;
        let (program, ending) = (ready.program.clone(), cancelled.clone());
        tokio::spawn(async move {
            let running = sandbox.run(program, limits, Arc::new(tools), ending.clone());
            tokio::pin!(running);
            let outcome = tokio::select! {
                outcome = &mut running => outcome,
                () = tell.closed() => {
                    ending.cancel();
                    running.await
                }
            };
            // Nobody listens any more where nobody wants to know.
            over.send(Said::Ended(Box::new(outcome)));
        });
        Ok(Conversation { said, steps, cancelled })
    }
}

fn progress(begun: usize, over: usize) -> mcp::Progress {
    let steps = u32::try_from(begun + over).unwrap_or(u32::MAX);
    let message = Some(format!("{over} of {begun} calls are done"));
    mcp::Progress { done: f64::from(steps), total: None, message }
}

/// More calls than this are not told one by one.
const CALLS_SHOWN_MAX: usize = 10;

/// What an agent reads.
#[derive(Serialize)]
struct Answer<'a> {
    result: Option<&'a RawValue>,
    logs: &'a [String],
    calls: Vec<Counted<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

/// A call, or many of one kind, for an agent whose context is dear: their time is that of all of them together.
#[derive(Serialize)]
struct Counted<'a> {
    server: &'a str,
    tool: &'a str,
    ms: u64,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

fn counted(calls: &[Called]) -> Vec<Counted<'_>> {
    let mut counted: Vec<Counted<'_>> = Vec::new();
    for Called { server, tool, ms, ok } in calls {
        let is_same = |own: &&mut Counted<'_>| {
            (own.server, own.tool, own.ok) == (server.as_str(), tool.as_str(), *ok)
        };
        match counted.iter_mut().find(is_same).filter(|_| calls.len() > CALLS_SHOWN_MAX) {
            Some(own) => {
                own.ms = own.ms.saturating_add(*ms);
                own.count = Some(own.count.unwrap_or(1) + 1);
            }
            None => counted.push(Counted { server, tool, ms: *ms, ok: *ok, count: None }),
        }
    }
    counted
}

pub fn written(outcome: &sandbox::Outcome) -> String {
    let sandbox::Outcome { result, logs, calls, error } = outcome;
    let calls = counted(calls);
    let answer = Answer { result: result.as_deref(), logs, calls, error: error.as_ref() };
    serde_json::to_string(&answer).unwrap_or_default()
}

/// A program that failed is a result like others: its agent reads why. One that never began is none.
pub(super) fn outcome(outcome: &sandbox::Outcome) -> Outcome {
    if outcome.error.as_ref().is_some_and(|failure| failure.kind == Kind::Busy) {
        return Outcome::Busy;
    }
    let blocks = vec![Block::text(written(outcome))];
    Outcome::Blocks { blocks, structured: None, is_error: false }
}

/// Counts a program's calls and writes down what it was refused, as it is for other calls.
struct Listening {
    upstreams: Arc<Upstreams>,
    app: App,
    name: &'static str,
    who: Who,
    /// Where the client wants to hear how far it is.
    step: Option<Sender<mcp::Progress>>,
}

impl Listener for Listening {
    fn progress(&self, begun: usize, over: usize) {
        if let Some(step) = &self.step {
            // Who reads too slowly hears of the next one.
            let _ = step.try_send(progress(begun, over));
        }
    }

    fn over(&self, over: Over<'_>) {
        self.upstreams.tally.count(over.server, Ended::of(over.called), over.took);
        let ms = u64::try_from(over.took.as_millis()).unwrap_or(u64::MAX);
        let is_ok = over.called.as_ref().is_ok_and(|result| !result.is_error);
        tracing::info!(
            server = over.server,
            tool = over.tool,
            ms,
            ok = is_ok,
            "a program has called"
        );
        let Some(reason) = over.called.as_ref().err().and_then(why_refused) else { return };
        self.app.sessions().audit().refused(&Line {
            wanted: Some(self.name),
            right: self.who.right(),
            server: Some(over.server),
            tool: Some(over.tool),
            reason: Some(reason),
            principal: Some(&self.who.known_as()),
            ..Line::default()
        });
    }
}

/// What a program finds under this name.
pub const OWN: &str = "workflowlookup";

/// The tools of ours that only look.
struct OwnTools {
    app: App,
    upstreams: Arc<Upstreams>,
    who: Who,
    caller: Caller,
}

impl Own for OwnTools {
    fn specifier(&self) -> &str {
        OWN
    }

    fn functions(&self) -> Vec<String> {
        self.upstreams.importable_tools().map(|tool| tool.name.to_owned()).collect()
    }

    fn call<'a>(
        &'a self,
        function: &'a str,
        arguments: Box<RawValue>,
    ) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        let known = self.upstreams.importable_tools().find(|tool| tool.name == function);
        let (app, upstreams) = (self.app.clone(), Arc::clone(&self.upstreams));
        let (who, mut caller) = (self.who.clone(), self.caller.clone());
        caller.answers = None;
        Box::pin(async move {
            let Some(tool) = known else {
                return Err(failed(Kind::Tool, format!("there is no `{function}`")));
            };
            // Some of them take a thread for a while.
            let called = tokio::task::spawn_blocking(move || {
                let (raw, asker, context) = (arguments, ToolAsker::Call, Context::default());
                block_on(ToolCall { tool, app, upstreams, raw, asker, caller, who, context }.run())
            });
            match called.await {
                Ok(outcome) => value(outcome),
                Err(error) => Err(failed(Kind::Tool, error.to_string())),
            }
        })
    }
}

/// What one of our tools says, for a program.
fn value(outcome: Outcome) -> Result<Box<RawValue>, Thrown> {
    let raw = |json: String| {
        RawValue::from_string(json).map_err(|error| failed(Kind::Tool, error.to_string()))
    };
    match outcome {
        Outcome::Tool { structured, .. } => raw(structured),
        Outcome::Blocks { structured: Some(structured), .. } => raw(structured.to_string()),
        Outcome::BadArguments(why) | Outcome::BadParams(why) => Err(failed(Kind::Arguments, why)),
        Outcome::Refused { advice, .. } => Err(failed(Kind::Tool, advice)),
        Outcome::Busy => {
            Err(failed(Kind::Tool, "too much is under way; try again later".to_owned()))
        }
        _ => Err(failed(Kind::Tool, "it failed; the log of the server says more".to_owned())),
    }
}

fn failed(kind: Kind, message: String) -> Thrown {
    Thrown { kind, message, data: None }
}
