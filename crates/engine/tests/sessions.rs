//! Sessions against a naive model: an agent that never lies and keeps everything itself, by the stateless
//! answer. Whatever else is tried on the way (skipping, lying about revisions, bad outputs, going back), a
//! session is where that agent would be, and its log says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "the environment says how long to try")]

use engine::{
    Budget, Channel, Checker, Command, Decision, Event, Opening, Progress, Refusal, Rules, State,
    Submission, check_state, decide, next, view,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use workflow::{Context, Workflow};

#[path = "support/workflows.rs"]
mod workflows;

use workflows::{changes, config, context, gated_workflow, steps_at_most};

/// What somebody does next.
#[derive(Debug, Clone)]
enum Act {
    /// The current step, done well, with something learned.
    Good(Option<(&'static str, Value)>),
    /// The current step, done badly.
    Bad,
    /// Another step.
    Skip(prop::sample::Index),
    /// A revision that is not the current one.
    Stale(u64),
    /// Where loops stand is not the agent's business.
    Forge,
    Approve,
    Decline,
    /// Back to where it stood after one of its events.
    Rewind(prop::sample::Index),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let learned = changes().prop_map(|changes| {
        changes.into_iter().next().map(|(_, variable, value)| (variable, value))
    });
    let act = prop_oneof![
        10 => learned.prop_map(Act::Good),
        2 => Just(Act::Bad),
        1 => any::<prop::sample::Index>().prop_map(Act::Skip),
        1 => (0..9_u64).prop_map(Act::Stale),
        1 => Just(Act::Forge),
        6 => Just(Act::Approve),
        1 => Just(Act::Decline),
        1 => any::<prop::sample::Index>().prop_map(Act::Rewind),
    ];
    prop::collection::vec(act, 0..40)
}

/// What the honest agent keeps.
#[derive(Debug, Clone)]
struct Model {
    completed: Vec<String>,
    context: Context,
    /// The last answer's state, to be merged once the step is done.
    state: Value,
    step: Option<String>,
    is_inside: bool,
}

impl Model {
    fn new(workflow: &Workflow, context: &Context) -> Self {
        let mut model = Self {
            completed: Vec::new(),
            context: context.clone(),
            state: Value::Null,
            step: None,
            is_inside: false,
        };
        model.ask(workflow);
        model
    }

    fn ask(&mut self, workflow: &Workflow) {
        let progress =
            Progress { completed: &self.completed, current: None, context: &self.context };
        let answer = next(workflow, progress, &Budget::for_call()).unwrap();
        self.step = answer.step.map(|step| step.id.to_owned());
        let state = answer.state.unwrap_or_default();
        self.is_inside = state.loops.values().any(|loops| loops.done.last() == self.step.as_ref());
        self.state = json!(state);
    }

    fn done(&mut self, workflow: &Workflow, learned: &Context) {
        let step = self.step.take().unwrap();
        if !self.is_inside {
            self.completed.push(step);
        }
        let loops = self.state["_loops"].as_object().cloned().unwrap_or_default();
        let ended = loops.iter().filter(|(_, progress)| progress["ended"] == true);
        self.completed.extend(ended.map(|(id, _)| id.clone()));
        self.context.insert("_loops".to_owned(), json!(loops));
        self.context.extend(learned.clone());
        self.ask(workflow);
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    prop_oneof![Just(Rules::FIRST), Just(Rules::CURRENT)]
}

fn decision() -> Decision {
    Decision { who: "ada".to_owned(), channel: Channel::Cli, reason: None }
}

fn submission(step: &str, output: &str, context: Context) -> Submission {
    Submission { step: step.to_owned(), output: output.to_owned(), context }
}

/// A session, its log, and the model after each of its events.
struct World<'w> {
    workflow: &'w Workflow,
    checker: Checker,
    state: State,
    log: Vec<Event>,
    models: Vec<Model>,
}

impl<'w> World<'w> {
    fn start(workflow: &'w Workflow, context: &Context, rules: Rules) -> Self {
        let checker = Checker::default();
        let command = Command::Start { goal: None, context: context.clone(), strict: false, rules };
        let event =
            decide(workflow, &checker, None, command, &Budget::for_call()).unwrap().unwrap();
        let state = State::of([&event]).unwrap();
        let models = vec![Model::new(workflow, context)];
        Self { workflow, checker, state, log: vec![event], models }
    }

    fn ask(&mut self, command: Command<'_>) -> Result<Option<Event>, Refusal> {
        let event =
            decide(self.workflow, &self.checker, Some(&self.state), command, &Budget::for_call())?;
        if let Some(event) = &event {
            self.state.apply(event);
            self.log.push(event.clone());
            self.models.push(self.models.last().unwrap().clone());
        }
        Ok(event)
    }

    fn model(&mut self) -> &mut Model {
        self.models.last_mut().unwrap()
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let before = self.state.clone();
        let revision = before.revision;
        let step = before.step.clone();
        match (act, step) {
            (Act::Good(_) | Act::Bad | Act::Skip(_) | Act::Forge, Some(step))
                if before.loop_gate.is_some() =>
            {
                let submission = submission(&step, "good", Context::new());
                let refused = self.ask(Command::Advance { revision, submission });
                prop_assert!(matches!(refused, Err(Refusal::LoopGate { .. })), "{:?}", refused);
            }
            (Act::Good(learned), Some(step)) => {
                let learned =
                    learned.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                let learned: Context = learned.collect();
                let submission = submission(&step, "good", learned.clone());
                let command = Command::Advance { revision, submission: submission.clone() };
                match self.ask(command.clone()).unwrap() {
                    Some(Event::Accepted { .. }) => {
                        let workflow = self.workflow;
                        self.model().done(workflow, &learned);
                        prop_assert_eq!(self.state.revision, revision + 1);
                    }
                    Some(Event::Submitted { .. }) => {
                        prop_assert_eq!(self.state.revision, revision, "not answered yet");
                        prop_assert_eq!(self.state.waiting.as_ref(), Some(&submission));
                        prop_assert_eq!(self.ask(command).unwrap(), None, "once is enough");
                    }
                    None => prop_assert_eq!(before.waiting.as_ref(), Some(&submission)),
                    event => prop_assert!(false, "{:?}", event),
                }
            }
            (Act::Bad, Some(step)) => {
                let submission = submission(&step, "bad", Context::new());
                let event = self.ask(Command::Advance { revision, submission }).unwrap();
                prop_assert!(matches!(event, Some(Event::Returned { .. })), "{:?}", event);
                prop_assert_eq!(self.state.revision, revision + 1);
                prop_assert_eq!(self.state.attempts, before.attempts + 1);
                prop_assert_eq!(&self.state.step, &before.step);
            }
            (Act::Skip(which), step) => {
                let mut ids = Vec::new();
                self.workflow.each_step(&mut |step| ids.push(step.id().to_owned()));
                let other = &ids[which.index(ids.len())];
                if Some(other) != step.as_ref() {
                    let submission = submission(other, "good", Context::new());
                    let refused = self.ask(Command::Advance { revision, submission });
                    prop_assert!(
                        matches!(refused, Err(Refusal::NotCurrent { .. })),
                        "{:?}",
                        refused
                    );
                }
            }
            (Act::Stale(given), Some(step)) if *given != revision => {
                let submission = submission(&step, "good", Context::new());
                let refused = self.ask(Command::Advance { revision: *given, submission });
                prop_assert!(
                    matches!(refused, Err(Refusal::WrongRevision { .. })),
                    "{:?}",
                    refused
                );
            }
            (Act::Forge, Some(step)) => {
                let forged = json!({"_loops": {}}).as_object().unwrap().clone();
                let submission = submission(&step, "good", forged);
                let refused = self.ask(Command::Advance { revision, submission });
                prop_assert!(matches!(refused, Err(Refusal::Reserved { .. })), "{:?}", refused);
            }
            (Act::Approve | Act::Decline, _) => {
                let is_approval = matches!(act, Act::Approve);
                let command = if is_approval {
                    Command::Approve(decision())
                } else {
                    Command::Decline(decision())
                };
                let answer = self.ask(command);
                if before.loop_gate.is_some() {
                    prop_assert_eq!(self.state.loop_gate.is_some(), !is_approval);
                    prop_assert_eq!(&self.state.step, &before.step);
                    prop_assert_eq!(self.state.revision, revision + 1);
                    return Ok(());
                }
                let Some(submitted) = &before.waiting else {
                    prop_assert_eq!(answer, Err(Refusal::NotWaiting));
                    return Ok(());
                };
                prop_assert_eq!(self.state.revision, revision + 1);
                if is_approval {
                    let workflow = self.workflow;
                    self.model().done(workflow, &submitted.context);
                } else {
                    prop_assert_eq!(&self.state.step, &before.step);
                }
            }
            (Act::Rewind(which), _) => {
                let version = which.index(self.log.len());
                let then = State::of(&self.log[..=version]).unwrap();
                let reason = "again".to_owned();
                let command =
                    Command::Rewind { revision, version: version as u64, then: &then, reason };
                self.ask(command).unwrap();
                *self.model() = self.models[version].clone();
                prop_assert_eq!(self.state.revision, revision + 1);
            }
            (Act::Good(_) | Act::Bad | Act::Stale(_) | Act::Forge, _) => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let model = self.models.last().unwrap();
        prop_assert_eq!(&self.state.step, &model.step, "where the honest agent is");
        let budget = Budget::for_call();
        let view =
            view(self.workflow, &self.state, Opening::Reminder, &|_: &str| None, &budget).unwrap();
        let handed_out = self.state.step.clone().filter(|_| self.state.loop_gate.is_none());
        prop_assert_eq!(view.step.map(|step| step.id.to_owned()), handed_out);
        check_state(self.workflow, &self.state, &Budget::for_call()).unwrap();
        prop_assert!(!view.guidance.prompt.contains("completedSteps"), "{}", view.guidance.prompt);
        prop_assert_eq!(view.is_complete, self.state.is_complete());
        prop_assert_eq!(view.waiting.is_some(), self.state.pending().is_some());
        prop_assert_eq!(State::of(&self.log).unwrap(), self.state.clone(), "the fold is the state");
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_session_is_where_an_honest_agent_would_be(
        workflow in gated_workflow(),
        context in context(),
        acts in acts(),
        rules in rules(),
    ) {
        let mut world = World::start(&workflow, &context, rules);
        world.check()?;
        for act in &acts {
            world.act(act)?;
            world.check()?;
        }
        // Every prefix of the log, as it is stored and read again, means what it meant.
        let stored: Vec<Value> = world.log.iter().map(|event| json!(event)).collect();
        let read: Vec<Event> =
            stored.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
        prop_assert_eq!(&read, &world.log);
        let state: State = serde_json::from_value(json!(world.state)).unwrap();
        prop_assert_eq!(state, world.state);
    }

    /// Good work leads to the end, however many people are asked on the way.
    #[test]
    fn good_work_ends(workflow in gated_workflow(), context in context(), rules in rules()) {
        let mut world = World::start(&workflow, &context, rules);
        let bound = steps_at_most(&workflow, &workflow.steps);
        for _ in 0..=bound {
            // Where loops begin.
            world.act(&Act::Approve)?;
            world.act(&Act::Good(None))?;
            world.act(&Act::Approve)?;
        }
        prop_assert!(world.state.is_complete(), "{:?}", world.state);
    }
}
