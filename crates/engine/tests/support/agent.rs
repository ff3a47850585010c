//! Sessions on the bundled workflows, and an honest agent that works in them.

use std::collections::HashMap;

use engine::{
    Budget, Channel, Checker, Command, Decision, Event, Refusal, Rules, State, Submission, decide,
};
use serde_json::Value;
use workflow::definition::PlainStep;
use workflow::{Context, Step, Workflow};

/// No walk takes this many steps: beyond, it does not end.
pub(crate) const STEPS_MAX: usize = 200;

/// An agent that does the work and reports everything.
pub(crate) struct Agent<'a> {
    samples: &'a Value,
    /// For each variable its values, in the order in which it is reported; the last one repeats, and
    /// null leaves it out. The samples have the others.
    values: &'a Context,
    /// How often it has reported each variable.
    reported: HashMap<String, usize>,
}

impl<'a> Agent<'a> {
    /// `samples` are those of one workflow.
    pub(crate) fn new(samples: &'a Value, values: &'a Context) -> Self {
        Self { samples, values, reported: HashMap::new() }
    }

    /// A sample that the session accepts here, with what it reports.
    pub(crate) fn plan(&self, session: &Session<'_>) -> (String, Context) {
        let step = session.step().unwrap();
        let samples = self.samples[&*step.id].as_array().unwrap();
        let mut rejected = Vec::new();
        for sample in samples {
            let output = sample["output"].as_str().unwrap();
            let names = step.reports.iter().map(|report| &*report.name);
            let known = names.map(|name| (name.to_owned(), self.value(name, &sample["context"])));
            let context: Context = known.filter(|(_, value)| !value.is_null()).collect();
            match session.decide(session.advance(output, context.clone())) {
                Event::Returned { issues, .. } => rejected.push(issues),
                _ => return (output.to_owned(), context),
            }
        }
        panic!("{}/{}: {rejected:#?}", session.workflow.id, step.id);
    }

    fn value(&self, name: &str, sample: &Value) -> Value {
        let Some(values) = self.values.get(name) else { return sample[name].clone() };
        let values = values.as_array().unwrap();
        let count = self.reported.get(name).copied().unwrap_or_default();
        values[count.min(values.len() - 1)].clone()
    }

    /// Does the current step. Returns whether a person was asked.
    pub(crate) fn work(&mut self, session: &mut Session<'_>) -> bool {
        self.work_beside(session, &Context::new())
    }

    /// The same, and reports more than its step asks for.
    pub(crate) fn work_beside(&mut self, session: &mut Session<'_>, more: &Context) -> bool {
        let (output, reported) = self.plan(session);
        let mut context = more.clone();
        context.extend(reported);
        for report in &session.step().unwrap().reports {
            *self.reported.entry(report.name.to_string()).or_default() += 1;
        }
        let step = session.state.step.clone();
        match session.submit(&output, context) {
            Event::Accepted { .. } => false,
            Event::Submitted { .. } => {
                assert_eq!(session.state.step, step, "the gate holds");
                assert!(session.state.pending().is_some());
                session.approve();
                true
            }
            event => panic!("{event:?}"),
        }
    }
}

pub(crate) struct Session<'w> {
    pub(crate) workflow: &'w Workflow,
    checker: &'w Checker,
    pub(crate) state: State,
    /// How many steps are done.
    pub(crate) passed: usize,
}

pub(crate) fn start(
    workflow: &Workflow,
    checker: &Checker,
    context: Context,
) -> Result<State, Refusal> {
    let command = Command::Start { goal: None, context, strict: false, rules: Rules::CURRENT };
    let event = decide(workflow, checker, None, command, &Budget::for_call())?;
    Ok(State::of([&event.unwrap()]).unwrap())
}

impl<'w> Session<'w> {
    pub(crate) fn start(workflow: &'w Workflow, checker: &'w Checker) -> Self {
        Self::start_with(workflow, checker, Context::new())
    }

    pub(crate) fn start_with(
        workflow: &'w Workflow,
        checker: &'w Checker,
        context: Context,
    ) -> Self {
        let state = start(workflow, checker, context).unwrap();
        Self { workflow, checker, state, passed: 0 }
    }

    pub(crate) fn step(&self) -> Option<&'w PlainStep> {
        match self.workflow.step(self.state.step.as_deref()?)? {
            Step::Plain(step) => Some(step),
            Step::Loop(_) => None,
        }
    }

    fn advance(&self, output: &str, context: Context) -> Command<'static> {
        let step = self.state.step.clone().unwrap();
        let submission = Submission { step, output: output.to_owned(), context };
        Command::Advance { revision: self.state.revision, submission }
    }

    fn decide(&self, command: Command<'_>) -> Event {
        decide(self.workflow, self.checker, Some(&self.state), command, &Budget::for_call())
            .unwrap()
            .unwrap()
    }

    pub(crate) fn submit(&mut self, output: &str, context: Context) -> Event {
        let event = self.decide(self.advance(output, context));
        self.apply(&event);
        event
    }

    fn approve(&mut self) {
        let decision = Decision { who: "ada".to_owned(), channel: Channel::Cli, reason: None };
        let event = self.decide(Command::Approve(decision));
        self.apply(&event);
    }

    fn apply(&mut self, event: &Event) {
        self.state.apply(event);
        self.passed +=
            usize::from(matches!(event, Event::Accepted { .. } | Event::Approved { .. }));
        assert!(self.passed <= STEPS_MAX, "{} does not end", self.workflow.id);
    }

    /// Submits what must be returned because of a variable.
    pub(crate) fn refuse(&mut self, output: &str, context: Context, variable: &str) {
        let before = self.state.clone();
        let step = before.step.as_deref().unwrap();
        let event = self.submit(output, context.clone());
        let Event::Returned { issues, .. } = event else {
            panic!("{}/{step} accepts {context:?}", self.workflow.id);
        };
        let name = format!("`{variable}`");
        assert!(issues.iter().any(|issue| issue.contains(&name)), "{step}: {issues:?}");
        let now = &self.state;
        assert_eq!(now.step, before.step);
        assert_eq!(now.completed, before.completed);
        assert_eq!(now.loops, before.loops);
        assert_eq!(now.context, before.context);
        assert_eq!(now.pending(), None);
    }
}
