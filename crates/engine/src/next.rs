//! The stateless answer: given what is completed and the context, the step that comes next. It is the
//! first step in file order that is not completed and whose condition holds now; a running loop is
//! finished before what follows it.

use std::borrow::Cow;
use std::cell::OnceCell;

use budget::{Budget, INPUT_BYTES_MAX};
use serde::Serialize;
use workflow::definition::{Confirmation, LoopStep, PlainStep, Step};
use workflow::limits::LOOP_LEVELS_MAX;
use workflow::template::fill;
use workflow::{Condition, Context, Variables, Workflow};

use crate::completed::{Completed, SearchStart};
use crate::decide::check_bytes;
use crate::guidance::{Guidance, Opening, compose};
use crate::loops::{Lacking, LoopProgress, LoopState, in_progress};
use crate::refusal::Refusal;
use crate::reports::check_session_names;
use crate::rules::Rules;

/// How many iterations without an eligible step one answer looks through, over all loops.
const IDLE_ITERATIONS_MAX: usize = 10_000;
/// What it may take to find the step of a session. Less than a whole call: where a session stands is found again
/// whenever somebody looks at it.
pub const SESSION_STEPS_MAX: u64 = 2_000_000;

/// What an agent says about where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a, Id = String> {
    pub completed: &'a [Id],
    pub current: Option<&'a str>,
    pub context: &'a Context,
}

/// The answer: exactly what the `workflow_next` tool returns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Next<'a> {
    /// Absent when the workflow is complete.
    pub step: Option<StepView<'a>>,
    pub guidance: Guidance<'a>,
    pub is_complete: bool,
    /// What the agent passes back in the context, where a loop is running or has just ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<LoopState>,
}

/// A step as the agent sees it; what it should read is in the guidance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepView<'a> {
    pub id: &'a str,
    pub title: Cow<'a, str>,
    pub prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_for_files: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_confirmation: Option<&'a Confirmation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_condition: Option<&'a Condition>,
}

pub fn next<'a, Id: AsRef<str>>(
    workflow: &'a Workflow,
    progress: Progress<'a, Id>,
    budget: &Budget,
) -> Result<Next<'a>, Refusal> {
    let Progress { completed, current, context } = progress;
    check_bytes(context, INPUT_BYTES_MAX)?;
    let completed = Ids::new(completed);
    check_ids(workflow, &completed, current)?;
    let state = LoopState::of(workflow, context, budget)?;
    if workflow.uses_reserved_names() {
        check_session_names(context)?;
    }
    let is_beginning = completed.given.is_empty() && state.loops.is_empty();
    let detail = if is_beginning { Opening::Full } else { Opening::Reminder };
    find(workflow, &completed, state, context, Keeper::Agent, budget)?.next(workflow, detail)
}

/// Who keeps track of what is done, and so who has to be told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    Agent,
    Session(Rules),
}

impl Keeper {
    /// Whether the gate of a loop is decided with the output of its first step.
    pub(crate) fn decides_loop_gate_late(self) -> bool {
        matches!(self, Self::Session(rules) if !rules.decides_loop_gate_first())
    }
}

/// The step that comes next, from where the loops stand.
pub(crate) fn find<'a, 'b>(
    workflow: &'a Workflow,
    completed: &Ids<'_>,
    state: LoopState,
    context: &'a Context,
    keeper: Keeper,
    budget: &'b Budget,
) -> Result<Found<'a, 'b>, Refusal> {
    let before = budget.steps();
    let mut search = Search {
        workflow,
        completed,
        state,
        variables: Variables::for_workflow(workflow, context, budget),
        running: Vec::new(),
        notes: Vec::new(),
        idle: 0,
    };
    let named = workflow.named_bodies();
    let is_top = |step: &&Step| !named.contains(step.id());
    // Only a loop that stands here can be reported: one inside another is that one's business.
    if !search.state.loops.is_empty() {
        let loops = workflow.steps.iter().filter(|step| matches!(step, Step::Loop(_)));
        for step in loops.filter(is_top).filter(|step| completed.contains(step.id())) {
            search.state.drop_reported(workflow, step);
        }
    }
    let SearchStart { step, met } = completed.search_start();
    // Steps that were passed before are paid for again, so that a call costs the same whatever is remembered.
    budget.spend(step.into()).map_err(Refusal::exhausted("", "finding the way"))?;
    let rest = workflow.steps.iter().skip(step as usize).filter(is_top);
    let mut done = Done::Reported { ids: completed, met: met as usize, first_open: None };
    let step = search.first(rest, &mut done)?;
    if let Done::Reported { first_open: Some((id, met)), .. } = done {
        completed.set_search_start(workflow, id, met);
    }
    let Search { state, variables, running, notes, .. } = search;
    if keeper != Keeper::Agent && budget.steps() - before > SESSION_STEPS_MAX {
        let why = budget::Exhausted::Steps { limit: SESSION_STEPS_MAX };
        let step = step.map_or("", |step| &*step.id);
        return Err(Refusal::exhausted(step, "finding the way")(why));
    }
    Ok(Found { step, state, variables, running, notes, keeper })
}

/// What a search came to. What an agent reads about it is only made for an agent.
pub(crate) struct Found<'a, 'b> {
    /// None where the workflow is complete.
    pub(crate) step: Option<&'a PlainStep>,
    /// Where the loops stand then.
    pub(crate) state: LoopState,
    pub(crate) variables: Variables<'a, 'b>,
    /// The loops around the step, outermost first.
    pub(crate) running: Vec<Running<'a>>,
    pub(crate) notes: Vec<Note<'a>>,
    pub(crate) keeper: Keeper,
}

impl<'a> Found<'a, '_> {
    pub(crate) fn next(self, workflow: &'a Workflow, detail: Opening) -> Result<Next<'a>, Refusal> {
        let guidance = compose(workflow, &self, detail)?;
        let view = self.step.map(|step| StepView::of(step, &self.variables)).transpose()?;
        let Self { step, state, .. } = self;
        Ok(Next {
            step: view,
            guidance,
            is_complete: step.is_none(),
            state: Some(state).filter(|state| !state.loops.is_empty()),
        })
    }

    /// A person has to confirm its output.
    pub(crate) fn requires_confirmation(&self) -> Result<bool, Refusal> {
        let Some(step) = self.step else { return Ok(false) };
        let is_late = self.keeper.decides_loop_gate_late();
        if is_late && self.running.iter().any(|running| running.confirms) {
            return Ok(true);
        }
        is_confirmed(&step.id, step.require_confirmation.as_ref(), &self.variables)
    }
}

impl<'a> StepView<'a> {
    fn of(step: &'a PlainStep, variables: &Variables<'_, '_>) -> Result<Self, Refusal> {
        let title = fill(&step.title, variables);
        Ok(Self {
            id: &step.id,
            title: title.map_err(Refusal::exhausted(&step.id, "the title"))?,
            prompt: &step.prompt,
            ask_for_files: step.ask_for_files,
            require_confirmation: step.require_confirmation.as_ref(),
            run_condition: step.run_condition.as_ref(),
        })
    }
}

/// A search for the next step, and what it comes by on the way.
pub(crate) struct Search<'a, 'b, 's> {
    pub(crate) workflow: &'a Workflow,
    completed: &'s Ids<'s>,
    state: LoopState,
    pub(crate) variables: Variables<'a, 'b>,
    /// The loops around the step that was found, outermost first.
    pub(crate) running: Vec<Running<'a>>,
    /// At most one for each loop, the latest.
    pub(crate) notes: Vec<Note<'a>>,
    idle: usize,
}

/// A loop around the step found.
pub(crate) struct Running<'a> {
    pub(crate) step: &'a LoopStep,
    pub(crate) iteration: u32,
    pub(crate) total: Option<u32>,
    /// It starts with the step found.
    pub(crate) begins: bool,
    /// It starts with the step found, and wants a person to confirm before.
    pub(crate) confirms: bool,
}

/// Something about a loop that the agent should know before it goes on.
pub(crate) struct Note<'a> {
    pub(crate) step: &'a LoopStep,
    pub(crate) what: What,
}

pub(crate) enum What {
    Ended {
        iterations: u32,
        end: End,
        /// It has also begun since the last answer: the agent has not seen a step of it.
        unseen: bool,
        /// It stands inside a running loop, which remembers that it is done.
        inner: bool,
    },
    /// The loop did not start: its variable is missing.
    Lacking(Lacking),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its own condition, count or items.
    Finished,
    /// By its bound, although it wanted to go on.
    Bound,
    /// No step of its body applied, too often.
    Idle,
}

/// The ids that are completed, in the order in which they were reported.
pub(crate) struct Ids<'a> {
    given: Vec<&'a str>,
    /// Their places, in the order of the ids; made when it is needed. Mostly there are a few, for which hashing costs
    /// more than it saves.
    sorted: OnceCell<Vec<usize>>,
    /// Those of a session know where a search can start. Beside them, how many are not of the session yet.
    session: Option<(&'a Completed, usize)>,
}

impl<'a> Ids<'a> {
    pub(crate) fn new<Id: AsRef<str>>(ids: &'a [Id]) -> Self {
        let given = ids.iter().map(AsRef::as_ref).collect();
        Self { given, sorted: OnceCell::new(), session: None }
    }

    /// What a session has completed.
    pub(crate) fn of_session(completed: &'a Completed) -> Self {
        Self::with_more(completed, &[])
    }

    /// What a session has completed, and what it completes next.
    pub(crate) fn with_more(completed: &'a Completed, more: &'a [String]) -> Self {
        let given = completed.iter().chain(more.iter().map(String::as_str)).collect();
        Self { given, sorted: OnceCell::new(), session: Some((completed, more.len())) }
    }

    fn search_start(&self) -> SearchStart {
        self.session.map(|(completed, _)| completed.search_start()).unwrap_or_default()
    }

    /// Remembers the first step that is not completed, and how many ids were met before it.
    fn set_search_start(&self, workflow: &Workflow, step: &str, met: usize) {
        // What is completed next may be refused by the store.
        let Some((completed, 0)) = self.session else { return };
        let step = workflow.top_level(step).and_then(|step| u32::try_from(step).ok());
        if let (Some(step), Ok(met)) = (step, u32::try_from(met)) {
            completed.set_search_start(SearchStart { step, met });
        }
    }

    /// Each id once.
    fn sorted(&self) -> impl ExactSizeIterator<Item = &'a str> {
        self.places().iter().map(|place| self.given[*place])
    }

    fn contains(&self, id: &str) -> bool {
        self.places().binary_search_by(|place| self.given[*place].cmp(id)).is_ok()
    }

    fn places(&self) -> &[usize] {
        self.sorted.get_or_init(|| {
            let mut places: Vec<usize> = (0..self.given.len()).collect();
            places.sort_unstable_by_key(|place| self.given[*place]);
            places.dedup_by_key(|place| self.given[*place]);
            places
        })
    }
}

/// What counts as done where the search is.
enum Done<'d> {
    /// Asked once for each step, in the order of the steps. That is mostly the order in which they were
    /// completed too, so that the next one is known without looking for it.
    Reported {
        ids: &'d Ids<'d>,
        met: usize,
        /// The first step that is not completed, and how many were met before it.
        first_open: Option<(&'d str, usize)>,
    },
    InIteration(&'d [String]),
}

impl<'d> Done<'d> {
    /// What it takes to look for one.
    fn steps(&self) -> u64 {
        match self {
            Self::Reported { .. } => 1,
            Self::InIteration(ids) => 1 + ids.len() as u64 / 4,
        }
    }

    fn contains(&mut self, id: &'d str) -> bool {
        match self {
            Self::Reported { ids, met, first_open } => {
                let is_done = match ids.given.get(*met) {
                    Some(next) if *next == id => {
                        *met += 1;
                        true
                    }
                    Some(_) => ids.contains(id),
                    // Each of them was some step before this one.
                    None => false,
                };
                if !is_done && first_open.is_none() {
                    *first_open = Some((id, *met));
                }
                is_done
            }
            Self::InIteration(ids) => ids.iter().any(|done| done == id),
        }
    }
}

impl<'a> Search<'a, '_, '_> {
    fn first<'d>(
        &mut self,
        steps: impl Iterator<Item = &'a Step>,
        done: &mut Done<'d>,
    ) -> Result<Option<&'a PlainStep>, Refusal>
    where
        'a: 'd,
    {
        let budget = self.variables.budget();
        for step in steps {
            let out_of_budget = || Refusal::exhausted(step.id(), "the condition");
            budget.spend(done.steps()).map_err(out_of_budget())?;
            if done.contains(step.id()) {
                continue;
            }
            let is_running = self.state.loops.contains_key(step.id());
            if let Some(condition) = step.run_condition().filter(|_| !is_running)
                && !condition.holds(&self.variables).map_err(out_of_budget())?
            {
                continue;
            }
            let found = match step {
                Step::Plain(step) => Some(&**step),
                Step::Loop(step) => self.enter(step)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Goes on with a loop, or starts it; `None` where it has nothing (more) to do.
    fn enter(&mut self, step: &'a LoopStep) -> Result<Option<&'a PlainStep>, Refusal> {
        // Every definition that passed its rules stays within it; one that did not may lead back to itself.
        if self.running.len() > LOOP_LEVELS_MAX {
            let details = format!("loops are nested more than {LOOP_LEVELS_MAX} levels deep");
            return Err(Refusal::BadState { details });
        }
        let settings = &step.r#loop;
        let body = self.workflow.body(step);
        let (mut begins, mut confirms) = (false, false);
        let progress = match self.state.loops.remove(&*step.id) {
            Some(progress) if progress.ended => {
                self.state.loops.insert(step.id.to_string(), progress);
                return Ok(None);
            }
            Some(progress) => Ok(progress.resume(step, &self.variables)?),
            None => {
                self.refuse_lost_state(step, body)?;
                LoopProgress::start(step, &self.variables)?
            }
        };
        let mut progress = match progress {
            Ok(progress) => progress,
            Err(lacking) => {
                self.note(step, What::Lacking(lacking));
                return Ok(None);
            }
        };
        let unseen = progress.iteration == 0;
        // An iteration that begins and ends within this answer is an idle one.
        let mut is_new = false;
        let end = loop {
            if progress.iteration > 0 {
                let depth = self.variables.depth();
                progress.bind(step, &mut self.variables)?;
                let total = progress.total(settings);
                let iteration = progress.iteration;
                self.running.push(Running { step, iteration, total, begins, confirms });
                let found = self.first(body.iter(), &mut Done::InIteration(&progress.done))?;
                progress.done.extend(self.state.take_ended(body));
                if let Some(found) = found {
                    // The innermost loop counts the step that is handed out as done.
                    if body.iter().any(|step| step.id() == &*found.id) {
                        progress.done.push(found.id.to_string());
                    }
                    self.state.loops.insert(step.id.to_string(), progress);
                    return Ok(Some(found));
                }
                self.running.pop();
                self.variables.unbind(depth);
                self.idle += usize::from(is_new);
            }
            // Where they are used up, no inner loop begins either: it would not end the search.
            let is_inner_start = progress.iteration == 0 && !self.running.is_empty();
            if self.idle > IDLE_ITERATIONS_MAX && (is_new || is_inner_start) {
                break End::Idle;
            }
            let enclosing = self.running.last().map(|running| running.step);
            if !progress.wants_more(self.workflow, step, enclosing, &mut self.variables)? {
                break End::Finished;
            }
            if progress.iteration >= settings.max_iterations {
                break End::Bound;
            }
            if progress.iteration == 0 {
                begins = true;
                let confirmation = step.require_confirmation.as_ref();
                confirms = is_confirmed(&step.id, confirmation, &self.variables)?;
            }
            progress.iteration += 1;
            is_new = true;
            progress.done.clear();
            let looked_at = self.state.forget(self.workflow, body) + body.len();
            let spent = self.variables.budget().spend(looked_at as u64);
            spent.map_err(in_progress(&step.id))?;
        };
        // A loop that never began is like a step that does not apply: it may still come.
        if progress.iteration > 0 {
            let iterations = progress.iteration;
            let inner = !self.running.is_empty();
            self.note(step, What::Ended { iterations, end, unseen, inner });
            let ended = LoopProgress { iteration: iterations, ended: true, ..Default::default() };
            self.state.loops.insert(step.id.to_string(), ended);
        }
        Ok(None)
    }

    fn note(&mut self, step: &'a LoopStep, what: What) {
        self.notes.retain(|note| note.step.id != step.id);
        self.notes.push(Note { step, what });
    }

    /// An agent that reports a loop's steps as completed but has dropped the loop's progress would walk
    /// the first iteration for ever. Tell it.
    fn refuse_lost_state(&self, step: &LoopStep, body: &'a [Step]) -> Result<(), Refusal> {
        if !self.running.is_empty() {
            return Ok(());
        }
        let mut reported = Vec::new();
        self.workflow.each_inside(body, &mut |inner| {
            reported.extend(Some(inner.id()).filter(|id| self.completed.contains(id)));
        });
        if reported.is_empty() {
            return Ok(());
        }
        let mut all = 0_u64;
        self.workflow.each_step(&mut |_| all += 1);
        let compared = all.saturating_mul(reported.len() as u64);
        self.variables.budget().spend(compared).map_err(in_progress(&step.id))?;
        let Some(lost) = reported.into_iter().find(|id| !self.ran_elsewhere(id)) else {
            return Ok(());
        };
        let details = format!(
            "`{lost}` is reported as completed, but the progress of its loop `{}` is missing",
            step.id
        );
        Err(Refusal::BadState { details })
    }

    /// Whether a loop that has begun may have run this step: loops can share a body.
    fn ran_elsewhere(&self, id: &str) -> bool {
        let mut ran = false;
        self.workflow.each_step(&mut |step| {
            let Step::Loop(other) = step else {
                return;
            };
            if self.completed.contains(&other.id) || self.state.loops.contains_key(&*other.id) {
                let body = self.workflow.body(other);
                self.workflow.each_inside(body, &mut |inner| ran |= inner.id() == id);
            }
        });
        ran
    }
}

/// Whether a person is asked to confirm.
pub(crate) fn is_confirmed(
    step: &str,
    confirmation: Option<&Confirmation>,
    variables: &Variables<'_, '_>,
) -> Result<bool, Refusal> {
    match confirmation {
        None => Ok(false),
        Some(Confirmation::Always(flag)) => Ok(*flag),
        Some(Confirmation::Where(condition)) => condition
            .holds(variables)
            .map_err(Refusal::exhausted(step, "the condition of `requireConfirmation`")),
    }
}

fn check_ids(
    workflow: &Workflow,
    completed: &Ids<'_>,
    current: Option<&str>,
) -> Result<(), Refusal> {
    let mut known = 0;
    let mut is_current_known = current.is_none();
    workflow.each_step(&mut |step| {
        known += usize::from(completed.contains(step.id()));
        is_current_known |= current == Some(step.id());
    });
    if known < completed.sorted().len() {
        let unknown = completed.sorted().filter(|id| workflow.step(id).is_none());
        let unknown = unknown.map(str::to_owned).collect();
        return Err(Refusal::unknown_completed(workflow, unknown));
    }
    match current {
        Some(current) if !is_current_known => Err(Refusal::step_not_found(workflow, current)),
        _ => Ok(()),
    }
}
