//! Whether an output is good. Every rule that applies is tried; where the whole fails, exactly the
//! rules that made it fail are named, through every composition, with what to change.

use std::collections::HashSet;

use budget::{Budget, Exhausted, INPUT_BYTES_MAX};
use serde::Serialize;
use workflow::criteria::{Check, Composition, Criteria, Rule};
use workflow::definition::{LoopStep, PlainStep, Step};
use workflow::{Context, Variables, Workflow};

use crate::compiled::Compiled;
use crate::criteria::{self, Output, Unusable};
use crate::decide::check_bytes;
use crate::guidance::applies;
use crate::loops::LoopState;
use crate::refusal::Refusal;
use crate::reports::check_session_names;

/// Whether an output is accepted, and if not, why and what to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub valid: bool,
    /// The messages of the rules that made the output fail.
    pub issues: Vec<String>,
    /// What to change.
    pub suggestions: Vec<String>,
}

/// What a step sees: the context, and the variables of the loops around it.
pub(crate) fn variables_at<'a, 'b>(
    workflow: &'a Workflow,
    step: &str,
    loops: &LoopState,
    context: &'a Context,
    budget: &'b Budget,
) -> Result<Variables<'a, 'b>, Refusal> {
    let mut variables = Variables::for_workflow(workflow, context, budget);
    // Most steps are in no loop, and a workflow may have thousands to look through.
    if loops.loops.is_empty() {
        return Ok(variables);
    }
    let mut way = Vec::new();
    way_down(workflow, &workflow.steps, step, loops, &mut way, &mut HashSet::new());
    for outer in way {
        if let Some(progress) = loops.loops.get(&*outer.id) {
            let progress = progress.clone().resume(outer, &variables)?;
            progress.bind(outer, &mut variables)?;
        }
    }
    Ok(variables)
}

/// Checks outputs, and keeps the patterns and schemas that it has compiled for it.
#[derive(Debug, Default)]
pub struct Checker {
    compiled: Compiled,
}

impl Checker {
    pub fn check(
        &self,
        workflow: &Workflow,
        step: &str,
        output: &str,
        context: Option<&Context>,
        budget: &Budget,
    ) -> Result<Verdict, Refusal> {
        if output.len() > INPUT_BYTES_MAX {
            return Err(Refusal::TooLarge { what: "an output", limit: INPUT_BYTES_MAX });
        }
        let none = Context::new();
        let (reported, context) = (context, context.unwrap_or(&none));
        check_bytes(context, INPUT_BYTES_MAX)?;
        if workflow.uses_reserved_names() {
            check_session_names(context)?;
        }
        let state = LoopState::of(workflow, context, budget)?;
        let found = workflow.step(step).ok_or_else(|| Refusal::step_not_found(workflow, step))?;
        let variables = variables_at(workflow, step, &state, context, budget)?;
        match found {
            Step::Plain(found) => self.judge(workflow, found, output, reported, &variables),
            // A loop has no output of its own, and so nothing to check it for.
            Step::Loop(_) => Ok(not_blank(output)),
        }
    }

    /// Judges an output, and what is reported with it if anything is.
    pub(crate) fn judge(
        &self,
        workflow: &Workflow,
        step: &PlainStep,
        output: &str,
        reported: Option<&Context>,
        variables: &Variables<'_, '_>,
    ) -> Result<Verdict, Refusal> {
        let mut verdict = self.judge_output(step, output, variables)?;
        if let Some(reported) = reported.filter(|_| !workflow.variables.is_empty()) {
            let issues = self.check_reports(workflow, step, reported, variables.budget())?;
            verdict.valid &= issues.is_empty();
            verdict.issues.extend(issues);
        }
        Ok(verdict)
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    fn judge_output(
        &self,
        step: &PlainStep,
        output: &str,
        variables: &Variables<'_, '_>,
    ) -> Result<Verdict, Refusal> {
        if let Some(unusable) = &step.unusable_criteria {
            let (step, details) = (step.id.to_string(), unusable.details.clone());
            return Err(if unusable.only_schemas {
                Refusal::MalformedSchema { step, details }
            } else {
                Refusal::UnusableCriteria { step, details }
            });
        }
        let checks = step.validation_criteria.as_ref().map(Criteria::checks).unwrap_or_default();
        let text = output;
        let output = Output { text, budget: variables.budget() };
        let mut tried = Vec::new();
        let mut number = 0;
        for check in checks {
            let outcome = self.attempt(check, output, variables, &mut number);
            let outcome = outcome.map_err(|(rule, unusable)| match unusable {
                Unusable::Exhausted(why) => Refusal::exhausted(&step.id, named(number, rule))(why),
                Unusable::Rule(details) => {
                    Refusal::UnusableCriteria { step: step.id.to_string(), details: vec![details] }
                }
                Unusable::Schema(details) => {
                    Refusal::MalformedSchema { step: step.id.to_string(), details: vec![details] }
                }
            })?;
            tried.extend(outcome);
        }
        if tried.is_empty() {
            return Ok(not_blank(text));
        }
        let whole = Tried::group(Logic::All, tried);
        if whole.passed() {
            return Ok(Verdict { valid: true, issues: Vec::new(), suggestions: Vec::new() });
        }
        let mut culprits = Vec::new();
        whole.blame(true, &mut culprits);
        let mut issues = Vec::new();
        for rule in culprits {
            add_once(&mut issues, rule.message.to_string());
        }
        let mut suggestions = Vec::new();
        let way = self
            .way(&whole, true, output)
            .map_err(Refusal::exhausted(&step.id, "saying what to change under the rules"))?;
        for suggestion in way.suggestions() {
            add_once(&mut suggestions, suggestion);
        }
        Ok(Verdict { valid: false, issues, suggestions })
    }

    /// What to change, so that this comes out as wanted.
    fn way(&self, tried: &Tried<'_>, wanted: bool, output: Output<'_>) -> Result<Way, Exhausted> {
        if tried.passed() == wanted {
            return Ok(Way::All(Vec::new()));
        }
        match tried {
            Tried::Rule { rule, .. } => {
                let advice = criteria::advice(&rule.kind, wanted, output, &self.compiled)?;
                Ok(Way::all(advice.into_iter().map(Way::Do)))
            }
            Tried::Group { logic, members, .. } => {
                let inside = logic.inside(wanted);
                let ways = members.iter().map(|member| self.way(member, inside, output));
                let ways = ways.collect::<Result<Vec<_>, _>>()?.into_iter();
                Ok(if logic.is_choice(wanted) { Way::any(ways) } else { Way::all(ways) })
            }
        }
    }

    /// Tries a check, and counts its rules. What does not apply drops out: `None`. Where a rule cannot be used, it says
    /// which.
    fn attempt<'w>(
        &self,
        check: &'w Check,
        output: Output<'_>,
        variables: &Variables<'_, '_>,
        number: &mut usize,
    ) -> Result<Option<Tried<'w>>, (&'w Rule, Unusable)> {
        let parts = match check {
            Check::Rule(rule) => {
                *number += 1;
                if !applies(rule, variables).map_err(|why| (&**rule, why.into()))? {
                    return Ok(None);
                }
                let passed = criteria::passes(&rule.kind, output, &self.compiled);
                let passed = passed.map_err(|unusable| (&**rule, unusable))?;
                return Ok(Some(Tried::Rule { rule, passed }));
            }
            Check::Composition(parts) => parts,
        };
        let mut tried = Vec::new();
        for part in parts {
            let mut members = Vec::new();
            for member in part.members() {
                members.extend(self.attempt(member, output, variables, number)?);
            }
            let logic = match part {
                Composition::And(_) => Logic::All,
                Composition::Or(_) => Logic::Any,
                Composition::Not(_) => Logic::None,
            };
            if !members.is_empty() {
                tried.push(Tried::group(logic, members));
            }
        }
        Ok((!tried.is_empty()).then(|| Tried::group(Logic::All, tried)))
    }
}

/// A check that was tried, with what was tried inside it.
enum Tried<'w> {
    Rule { rule: &'w Rule, passed: bool },
    Group { logic: Logic, members: Vec<Tried<'w>>, passed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logic {
    All,
    Any,
    None,
}

impl<'w> Tried<'w> {
    fn group(logic: Logic, members: Vec<Self>) -> Self {
        let passed = match logic {
            Logic::All => members.iter().all(Self::passed),
            Logic::Any => members.iter().any(Self::passed),
            Logic::None => !members.iter().any(Self::passed),
        };
        Self::Group { logic, members, passed }
    }

    fn passed(&self) -> bool {
        match self {
            Self::Rule { passed, .. } | Self::Group { passed, .. } => *passed,
        }
    }

    /// Collects the rules because of which this did not come out as wanted. Under a `not` the wish
    /// turns around.
    fn blame(&self, wanted: bool, culprits: &mut Vec<&'w Rule>) {
        if self.passed() == wanted {
            return;
        }
        match self {
            Self::Rule { rule, .. } => culprits.push(rule),
            Self::Group { logic, members, .. } => {
                for member in members {
                    member.blame(logic.inside(wanted), culprits);
                }
            }
        }
    }
}

impl Logic {
    /// How a member should come out, where the group should come out as wanted.
    fn inside(self, wanted: bool) -> bool {
        wanted == (self != Self::None)
    }

    /// Whether one member that comes out right suffices.
    fn is_choice(self, wanted: bool) -> bool {
        match self {
            Self::All => !wanted,
            Self::Any => wanted,
            Self::None => !wanted,
        }
    }
}

/// What to change: one thing, all of several, or one of several. None stands directly in its like.
enum Way {
    Do(String),
    All(Vec<Way>),
    Any(Vec<Way>),
}

impl Way {
    fn all(ways: impl Iterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for way in ways {
            match way {
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::All(flat) }
    }

    fn any(ways: impl Iterator<Item = Self>) -> Self {
        let mut flat = Vec::new();
        for way in ways {
            match way {
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Self::Any(flat) }
    }

    /// The way as suggestions: all must be followed, but of those that begin with "One way" one
    /// suffices, and it says everything that this way takes.
    fn suggestions(self) -> Vec<String> {
        let ways = match self {
            Self::All(ways) => ways,
            only => vec![only],
        };
        let choices = ways.iter().filter(|way| matches!(way, Self::Any(_))).count();
        let mut suggestions = Vec::new();
        for way in ways {
            match way {
                // Of two choices nobody could tell which way belongs to which.
                Self::Any(ways) if choices == 1 => {
                    suggestions.extend(ways.iter().map(|way| format!("One way: {}", way.inline())));
                }
                Self::Any(_) => suggestions.push(format!("Do one of these: {}", way.inline())),
                way => suggestions.push(way.inline()),
            }
        }
        suggestions
    }

    fn inline(&self) -> String {
        match self {
            Self::Do(advice) => advice.clone(),
            Self::All(ways) => {
                let mut parts = Vec::new();
                for way in ways {
                    let one_of = if matches!(way, Self::Any(_)) { "one of these: " } else { "" };
                    add_once(&mut parts, format!("{one_of}{}", way.inline()));
                }
                parts.join(" And: ")
            }
            Self::Any(ways) => {
                let ways: Vec<String> =
                    ways.iter().map(|way| format!("({})", way.inline())).collect();
                ways.join(" or ")
            }
        }
    }
}

/// A rule by its number in the file, and what it is.
fn named(number: usize, rule: &Rule) -> String {
    format!("rule {number} ({})", criteria::name(&rule.kind))
}

fn not_blank(output: &str) -> Verdict {
    if !output.trim().is_empty() {
        return Verdict { valid: true, issues: Vec::new(), suggestions: Vec::new() };
    }
    Verdict {
        valid: false,
        issues: vec!["The output is empty".to_owned()],
        suggestions: vec!["Say what was done and what came of it.".to_owned()],
    }
}

fn add_once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// The running loops around a step, outermost first; says whether the step was found in one.
fn way_down<'a>(
    workflow: &'a Workflow,
    steps: &'a [Step],
    wanted: &str,
    state: &LoopState,
    way: &mut Vec<&'a LoopStep>,
    tried: &mut HashSet<&'a str>,
) -> bool {
    for step in steps {
        let Step::Loop(outer) = step else {
            continue;
        };
        let is_running = state.loops.get(&*outer.id).is_some_and(|progress| !progress.ended);
        // Loops can share a body: where it was not found in one once, it is not there.
        if !is_running || !tried.insert(&outer.id) {
            continue;
        }
        way.push(outer);
        let inner = workflow.body(outer);
        let is_here = inner.iter().any(|step| step.id() == wanted);
        if is_here || way_down(workflow, inner, wanted, state, way, tried) {
            return true;
        }
        way.pop();
    }
    false
}
