//! Titles as people read them: filled from what the session knows, and without the slots of what it does not know.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use engine::{
    Budget, Checker, Command, Event, LoopState, Rules, State, Submission, decide, finished_title,
    title,
};
use serde_json::{Value, json};
use workflow::{Context, Workflow};

fn workflow() -> Workflow {
    let definition = json!({
        "id": "mend-it", "name": "N", "description": "D", "version": "1.0.0",
        "steps": [
            {"id": "plan", "title": "Plan {{goal}}", "prompt": "P"},
            {
                "id": "each", "type": "loop", "title": "Round {{round}} with {{file}}",
                "loop": {"type": "forEach", "items": "files", "itemVar": "file", "iterationVar": "round", "maxIterations": 9},
                "body": [{"id": "try-it", "title": "Try {{file}} as {{steps.plan.output}}", "prompt": "P"}],
            },
            {"id": "end-it", "title": "End {{ }} with {{who}}", "prompt": "P"},
        ],
    });
    serde_json::from_value(definition).unwrap()
}

struct Walk {
    workflow: Workflow,
    state: State,
    /// Where the loops stood when each step was finished.
    finished: Vec<(String, LoopState)>,
}

impl Walk {
    fn start() -> Self {
        let workflow = workflow();
        let context: Value = json!({"files": ["a.rs", "b.rs"]});
        let (context, rules) = (context.as_object().unwrap().clone(), Rules::CURRENT);
        let command = Command::Start { goal: None, context, strict: false, rules };
        let checker = Checker::default();
        let event = decide(&workflow, &checker, None, command, &Budget::for_call());
        let state = State::of([&event.unwrap().unwrap()]).unwrap();
        Self { workflow, state, finished: Vec::new() }
    }

    fn advance(&mut self, output: &str, context: Value) {
        let step = self.state.step.clone().unwrap();
        let context: Context = context.as_object().unwrap().clone();
        let submission = Submission { step: step.clone(), output: output.to_owned(), context };
        let command = Command::Advance { revision: self.state.revision, submission };
        let (checker, budget) = (Checker::default(), Budget::for_call());
        let event = decide(&self.workflow, &checker, Some(&self.state), command, &budget);
        let event = event.unwrap().unwrap();
        let Event::Accepted { place, .. } = &event else { panic!("{event:?}") };
        self.finished.push((step, place.loops.clone()));
        self.state.apply(&event);
    }

    fn title(&self, step: &str) -> String {
        let outputs = |step: &str| (step == "plan").then(|| "a whole".to_owned());
        title(&self.workflow, &self.state, step, &outputs, &Budget::for_call()).into_owned()
    }

    fn finished_titles(&self, budget: &Budget) -> Vec<String> {
        let Self { workflow, state, .. } = self;
        let outputs = |step: &str| (step == "plan").then(|| "a whole".to_owned());
        let titles = self.finished.iter().map(|(step, loops)| {
            finished_title(workflow, state, step, loops, &outputs, budget).into_owned()
        });
        titles.collect()
    }
}

#[test]
fn title_is_filled_from_loops_and_outputs() {
    let mut walk = Walk::start();
    assert_eq!(walk.title("plan"), "Plan …");
    assert_eq!(walk.title("each"), "Round … with …");
    walk.advance("a whole", json!({"goal": "to mend it"}));
    assert_eq!(walk.title("plan"), "Plan to mend it");
    assert_eq!(walk.title("each"), "Round 1 with a.rs");
    assert_eq!(walk.title("try-it"), "Try a.rs as a whole");
    walk.advance("tried", json!({}));
    assert_eq!(walk.title("try-it"), "Try b.rs as a whole");
    walk.advance("tried", json!({}));
    assert_eq!(walk.title("try-it"), "Try … as a whole");
    assert_eq!(walk.title("end-it"), "End {{ }} with …");
    assert_eq!(walk.title("not-there"), "not-there");
}

#[test]
fn finished_title_names_its_own_iteration() {
    let mut walk = Walk::start();
    walk.advance("a whole", json!({}));
    walk.advance("tried", json!({}));
    walk.advance("tried", json!({"goal": "it"}));
    let titles = walk.finished_titles(&Budget::for_call());
    assert_eq!(titles, ["Plan it", "Try a.rs as a whole", "Try b.rs as a whole"]);
    let titles = walk.finished_titles(&Budget::with_steps(0));
    assert_eq!(titles, ["Plan …", "Try … as …", "Try … as …"]);
}
