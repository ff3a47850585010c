//! One call of an upstream's tool for a client of ours, from its request to its answer. Whoever must be asked on the way is
//! asked by our client: the call then ends with what is to be asked, and is made again with the answers. A confirmation
//! comes before anything is under way, and the call begins anew. A question of the upstream's own comes in the middle, and
//! the call goes on where it waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Channel;
use mcp::{Ask, Caller, Outcome, Question};
use orchestrator::{Answer, Asker, CallResult, Error, Form, Wanted};
use registry::policy::Denied;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{OwnedPermit, Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tool_schema::arguments::Verdict;
use transport::{Context, OutcomeFuture};
use untrusted_text::sanitize;

use super::asked::{About, Asked, new_id};
use super::code::{self, Ready};
use super::parked::{Asking, Waiting};
use super::questions::Questions;
use super::refused::{
    NOT_OURS, answered_already, elsewhere, not_confirmed, not_shown, refused, too_late,
};
use super::tally::Ended;
use super::{Upstreams, result, shown};
use crate::access::Who;
use crate::app::App;
use crate::audit::Line;
use crate::sessions::now;

/// The tool that makes such calls.
pub(crate) const NAME: &str = "call_mcp_tool";
/// The name of what is asked, by which its answer is found.
const QUESTION: &str = "answer";
/// How long a call stays open for its user: clients give up after 60 s.
const PATIENCE: Duration = Duration::from_secs(45);
/// So many answers that do not fit are sent back to who gave them.
const MISFITS_MAX: usize = 3;
/// How many steps of a call may wait to be told; who is slower misses some.
pub(super) const STEPS_MAX: usize = 64;
/// How many questions of a call may wait to be heard, besides what the call comes to. More of them wait at the upstream.
const QUESTIONS_MAX: usize = 1;

/// A call as our client has made it.
pub(crate) struct Request {
    pub(crate) app: App,
    /// The tool of ours that it is.
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    /// The whole of it, to be made again.
    pub(crate) raw: Box<RawValue>,
    pub(crate) caller: Caller,
    pub(crate) who: Who,
}

/// What a request runs.
pub(crate) enum Work {
    /// One call of an upstream's tool.
    Call(Target),
    /// A program. A question of it belongs to all of the request's arguments.
    Program { ready: Box<Ready>, arguments: Map<String, Value> },
}

/// An upstream's tool, and the arguments for it.
pub(crate) struct Target {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

impl Request {
    fn about(&self) -> About<'_> {
        let (tool, arguments) = match &self.work {
            Work::Call(target) => (Some(target.tool.as_str()), &target.arguments),
            Work::Program { arguments, .. } => (None, arguments),
        };
        let principal = self.caller.principal.as_deref();
        About { server: self.server(), tool, arguments, principal }
    }

    /// What messages name: the server, or the tool of ours that runs a program.
    fn server(&self) -> &str {
        match &self.work {
            Work::Call(target) => &target.server,
            Work::Program { .. } => self.name,
        }
    }

    /// The upstream's tool; empty for a program, which is not confirmed as a whole.
    fn tool(&self) -> &str {
        self.target().map_or("", |target| &target.tool)
    }

    fn target(&self) -> Option<&Target> {
        match &self.work {
            Work::Call(target) => Some(target),
            Work::Program { .. } => None,
        }
    }

    /// For the audit log: never with arguments.
    fn line(&self) -> Line<'_> {
        let target = self.target();
        Line {
            wanted: Some(self.name),
            right: self.who.right(),
            server: target.map(|target| target.server.as_str()),
            tool: target.map(|target| target.tool.as_str()),
            ..Line::default()
        }
    }

    fn note_refused(&self, reason: &str) {
        let line = Line { reason: Some(reason), ..self.line() };
        self.app
            .sessions()
            .audit()
            .refused(&Line { principal: Some(&self.who.known_as()), ..line });
    }

    /// A person has decided, where our client asked them.
    fn note_decided(&self, is_confirmed: bool) {
        let ruling = if is_confirmed { "approved" } else { "rejected" };
        self.app.sessions().audit().write(&Line {
            event: "decided",
            principal: Some(&self.who.known_as()),
            channel: Some(Channel::Client),
            ruling: Some(ruling),
            ..self.line()
        });
    }

    /// The same call once more, when this is answered.
    fn ask(&self, question: Question, state: String) -> Outcome {
        let arguments = self.raw.clone();
        Outcome::Ask(Box::new(Ask {
            call: mcp::Call::Tool { name: self.name, arguments, is_method: false },
            questions: vec![(QUESTION.to_owned(), question)],
            patience: PATIENCE,
            about: None,
            state: Some(state),
        }))
    }
}

/// Whether a person has said yes to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    NotYet,
    /// A program is under way, and each of its calls is asked about when it comes to it.
    OneByOne,
}

/// A call under way at an upstream, and all that comes of it.
pub(super) struct Conversation {
    pub(super) said: Receiver<Said>,
    pub(super) steps: Receiver<mcp::Progress>,
    pub(super) cancelled: CancellationToken,
}

/// What a call under way has to say.
pub(super) enum Said {
    /// A person has to confirm it first; nothing was called.
    Unconfirmed(Form),
    /// The upstream wants to know something.
    Question {
        form: Form,
        answer: oneshot::Sender<Answer>,
    },
    Over(Box<Result<CallResult, Error>>),
    Ended(Box<sandbox::Outcome>),
}

/// A queue for what a call has to say, and a place in it for what the call comes to.
pub(super) fn queue() -> Option<(Sender<Said>, OwnedPermit<Said>, Receiver<Said>)> {
    let (tell, said) = channel(QUESTIONS_MAX + 1);
    // A new queue has room.
    let over = tell.clone().try_reserve_owned().ok()?;
    Some((tell, over, said))
}

impl Upstreams {
    /// Makes a call, or goes on with one.
    pub(crate) async fn call(self: &Arc<Self>, request: Request, context: &Context) -> Outcome {
        if request.caller.answers.is_none() {
            return self.call_here(request, context.clone()).await;
        }
        // What was answered is held against a form that an upstream has made.
        let own = Arc::clone(self);
        let call = move |context| -> OutcomeFuture {
            Box::pin(async move { own.call_here(request, context).await })
        };
        context.begin_call(call).await
    }

    async fn call_here(self: &Arc<Self>, request: Request, context: Context) -> Outcome {
        let begun = {
            let runtime = match self.runtime() {
                Ok(runtime) => runtime,
                Err(error) => {
                    tracing::error!("nothing can speak with upstreams: {error}");
                    return Outcome::Fault;
                }
            };
            let _inside = runtime.enter();
            self.conversation(&request)
        };
        match begun {
            Ok(conversation) => {
                // Whoever drops us takes the upstream's call back.
                let cancelling = conversation.cancelled.clone().drop_guard();
                let go_on = |own| conversation.go_on(own, request, context);
                let outcome = self.later(go_on).await;
                cancelling.disarm();
                outcome
            }
            Err(outcome) => *outcome,
        }
    }

    /// Nobody answers a question any more, because the call that asked was taken back: so is the upstream's.
    pub(crate) fn forget(&self, state: &str, principal: Option<&str>) {
        let Some(seal) = self.seal.get() else { return };
        let waiting = seal.question(state, principal, now()).and_then(|id| self.parked.take(&id));
        if let Some(waiting) = waiting {
            waiting.conversation.cancelled.cancel();
        }
    }

    /// How many calls wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.parked.count()
    }

    fn conversation(self: &Arc<Self>, request: &Request) -> Result<Conversation, Box<Outcome>> {
        let Some(answers) = &request.caller.answers else {
            return self.start(request, Consent::NotYet);
        };
        let state = answers.state.as_deref();
        let asked = state.and_then(|state| self.seal().open(state, request.about(), now()));
        let given = answers.given.get(QUESTION);
        match asked {
            None => {
                request.note_refused("it answers no question that they were asked");
                Err(Box::new(Outcome::BadParams(NOT_OURS.to_owned())))
            }
            Some(Asked::Confirmation { id }) => {
                let is_confirmed = matches!(given, Some(mcp::Answer::Accepted(_)));
                if is_confirmed && !self.seal().use_up(&id, now()) {
                    request.note_refused("a confirmation counts once");
                    return Err(Box::new(Outcome::BadParams(NOT_OURS.to_owned())));
                }
                match is_confirmed || given == Some(&mcp::Answer::Declined) {
                    true => request.note_decided(is_confirmed),
                    false => request.note_refused("nobody answered whether it may be called"),
                }
                match is_confirmed {
                    true => self.start(request, Consent::Given),
                    false => Err(Box::new(not_confirmed(request.server(), request.tool(), given))),
                }
            }
            Some(Asked::Question { id, is_ours: true }) => {
                self.answered(request, &id, answer(given), answers.can_be_repeated)
            }
            Some(Asked::Question { is_ours: false, .. }) => {
                Err(Box::new(elsewhere(request.server())))
            }
        }
    }

    /// Goes on with the call that waits for this, unless it is no answer to what was asked.
    fn answered(
        self: &Arc<Self>,
        request: &Request,
        id: &str,
        answer: Answer,
        can_be_repeated: bool,
    ) -> Result<Conversation, Box<Outcome>> {
        let form = self.parked.form(id);
        let server = form.as_ref().map_or(request.server(), |form| form.server.as_str());
        let misfit = form.as_ref().and_then(|form| self.misfit(form, &answer));
        if let Some(misfit) = misfit.as_ref().filter(|_| can_be_repeated) {
            let why = format!(
                "the answer is not what `{server}` asks for, and can be given again: {misfit}"
            );
            return Err(Box::new(Outcome::BadParams(why)));
        }
        let Some(Waiting { conversation, mut question, .. }) = self.parked.answer(id) else {
            let outcome = match self.parked.was_answered(id) {
                true => answered_already(server),
                false => too_late(server),
            };
            return Err(Box::new(outcome));
        };
        let answer = match misfit {
            None => answer,
            Some(_) if question.misfits >= MISFITS_MAX => {
                Answer::NotAsked("the answers did not fit its form".to_owned())
            }
            Some(misfit) => {
                question.misfits += 1;
                return Err(Box::new(conversation.ask(self, request, question, Some(&misfit))));
            }
        };
        // Where the upstream has given up, there is something else to hear now.
        let _ = question.answer.send(answer);
        Ok(conversation)
    }

    /// What is wrong with an answer, by the form that it answers.
    fn misfit(&self, form: &Form, answer: &Answer) -> Option<String> {
        let (Wanted::Values { schema }, Answer::Accepted(given)) = (&form.wanted, answer) else {
            return None;
        };
        match self.checker.answer(schema, &Value::Object(given.clone())) {
            Verdict::Wrong(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Some(problems.join("; "))
            }
            Verdict::Fits | Verdict::Unchecked(_) => None,
        }
    }

    fn start(
        self: &Arc<Self>,
        request: &Request,
        consent: Consent,
    ) -> Result<Conversation, Box<Outcome>> {
        let Target { server, tool, arguments } = match &request.work {
            Work::Call(target) => target,
            Work::Program { ready, .. } => return self.start_program(request, ready),
        };
        let orchestrator = self.orchestrator().map_err(|error| {
            tracing::error!("nothing can speak with upstreams: {error}");
            Outcome::Fault
        })?;
        let orchestrator = orchestrator.clone();
        let caller = &request.caller;
        let (tell, over, said) = queue().ok_or(Outcome::Fault)?;
        let (step, steps) = channel(STEPS_MAX);
        let cancelled = CancellationToken::new();
        let mut call = orchestrator::Call::new(server, tool, arguments.clone());
        call.cancelled = cancelled.clone();
        call.party = self.party(&request.who);
        if caller.wants_progress {
            call.progress = Some(Arc::new(move |progress| {
                let orchestrator::Progress { done, total, message } = progress;
                // Clients show it to their users.
                let message = message.map(|message| sanitize(&message).into_owned());
                // Who reads too slowly hears of the next one.
                let _ = step.try_send(mcp::Progress { done, total, message });
            }));
        }
        let questions = Questions::new(&tell, caller, consent);
        call.asker = questions.clone().map(|questions| questions as Arc<dyn Asker>);
        let upstreams = Arc::clone(self);
        tokio::spawn(async move {
            let (server, began) = (call.server.clone(), Instant::now());
            let called = orchestrator.call(call).await;
            let form = questions.and_then(|questions| questions.unconfirmed());
            let ended = match &form {
                Some(_) => Ended::Asked,
                None => Ended::of(&called),
            };
            if upstreams.registry().get(&server).is_some() {
                upstreams.tally.count(&server, ended, began.elapsed());
            }
            // Nobody listens any more where nobody wants to know.
            over.send(match form {
                Some(form) => Said::Unconfirmed(form),
                None => Said::Over(Box::new(called)),
            });
        });
        Ok(Conversation { said, steps, cancelled })
    }
}

impl Conversation {
    /// Until it is over, or somebody must be asked.
    async fn go_on(
        mut self,
        upstreams: Arc<Upstreams>,
        request: Request,
        context: Context,
    ) -> Outcome {
        let said = self.listen(&context).await;
        self.heard(said, &upstreams, &request)
    }

    async fn listen(&mut self, context: &Context) -> Option<Said> {
        loop {
            tokio::select! {
                biased;
                Some(step) = self.steps.recv() => context.progress(step),
                said = self.said.recv() => return said,
            }
        }
    }

    fn heard(self, said: Option<Said>, upstreams: &Arc<Upstreams>, request: &Request) -> Outcome {
        match said {
            Some(Said::Over(called)) => over(upstreams, request, *called),
            Some(Said::Ended(outcome)) => code::outcome(&outcome),
            Some(Said::Unconfirmed(form)) => confirm(upstreams, request, form),
            Some(Said::Question { form, answer }) => {
                let question = Asking { form, answer, misfits: 0 };
                self.ask(upstreams, request, question, None)
            }
            // A panic, which the log has.
            None => Outcome::Fault,
        }
    }

    /// Waits here until our client brings the answer; once more where the last one did not fit.
    fn ask(
        self,
        upstreams: &Arc<Upstreams>,
        request: &Request,
        asking: Asking,
        misfit: Option<&str>,
    ) -> Outcome {
        let mut form = asking.form.clone();
        if let Some(misfit) = misfit {
            form.message = format!("The last answer did not fit: {misfit}\n\n{}", form.message);
        }
        let Some(id) = new_id() else { return Outcome::Fault };
        let asked = Asked::Question { id: id.clone(), is_ours: true };
        let Some(state) = upstreams.seal().close(&asked, request.about(), now()) else {
            return Outcome::Fault;
        };
        if upstreams.parked.park(id.clone(), self, asking).is_err() {
            tracing::warn!("too many calls wait for an answer already");
            return Outcome::Busy;
        }
        request.ask(question(form, id), state)
    }
}

fn over(
    upstreams: &Arc<Upstreams>,
    request: &Request,
    called: Result<CallResult, Error>,
) -> Outcome {
    match called {
        Ok(called) => result::outcome(request.server(), called),
        Err(error) => {
            if let Some(reason) = why_refused(&error) {
                request.note_refused(reason);
            }
            refused(&error, upstreams.registry().masks())
        }
    }
}

/// Why a call was refused, for the audit log. Other errors are none of its business.
pub(super) fn why_refused(error: &Error) -> Option<&'static str> {
    match error {
        Error::Denied(Denied::NobodyToAsk(_)) => {
            Some("its client cannot ask who would have to confirm it")
        }
        Error::Denied(Denied::Deny { .. } | Denied::NotAllowed { .. }) => {
            Some("the registry does not allow it")
        }
        Error::NotConfirmed { .. } => Some("it was not confirmed"),
        _ => None,
    }
}

/// Has our client ask its user whether the call may be made. Nothing is under way meanwhile.
fn confirm(upstreams: &Arc<Upstreams>, request: &Request, form: Form) -> Outcome {
    let Some(id) = new_id() else { return Outcome::Fault };
    let asked = Asked::Confirmation { id };
    let Some(state) = upstreams.seal().close(&asked, request.about(), now()) else {
        return Outcome::Fault;
    };
    let message = match shown::confirmation(&form.message, request.about().arguments) {
        Ok(message) => message,
        Err(count) => {
            request.note_refused("too much to be shown to who would have to confirm it");
            return not_shown(request.server(), request.tool(), count);
        }
    };
    let schema = json!({"type": "object", "properties": {}});
    request.ask(mcp::Form { message, schema }.into(), state)
}

fn question(form: Form, id: String) -> Question {
    let message = form.message;
    match form.wanted {
        Wanted::Visit { url, id: own } => mcp::Visit { message, url, id: own.unwrap_or(id) }.into(),
        Wanted::Values { schema: schema @ Value::Object(_) } => {
            mcp::Form { message, schema }.into()
        }
        Wanted::Values { .. } | Wanted::Confirmation { .. } => {
            let schema = json!({"type": "object", "properties": {}});
            mcp::Form { message, schema }.into()
        }
    }
}

/// What is missing was not answered.
fn answer(given: Option<&mcp::Answer>) -> Answer {
    match given {
        Some(mcp::Answer::Accepted(fields)) => Answer::Accepted(fields.clone()),
        Some(mcp::Answer::Declined) => Answer::Declined,
        _ => Answer::Cancelled,
    }
}
