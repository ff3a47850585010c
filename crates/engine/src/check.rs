//! Whether an output is good. Every rule that applies is tried; where the whole fails, exactly the
//! rules that made it fail are named, through every composition, with what to change.

use std::collections::HashSet;

use serde::Serialize;
use workflow::criteria::{Check, Composition, Criteria, Rule};
use workflow::definition::{PlainStep, Step};
use workflow::{Context, Variables, Workflow};

use crate::compiled::Compiled;
use crate::criteria::{self, Unusable};
use crate::guidance::applies;
use crate::loops::{LoopState, body};
use crate::refusal::Refusal;

const FIRST_SUGGESTION: &str = "Review validation criteria and adjust output accordingly.";

/// The answer: exactly what the `workflow_validate` tool returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub valid: bool,
    /// The messages of the rules that made the output fail.
    pub issues: Vec<String>,
    /// What to change.
    pub suggestions: Vec<String>,
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
        context: &Context,
    ) -> Result<Verdict, Refusal> {
        let found = workflow.step(step).ok_or_else(|| Refusal::step_not_found(workflow, step))?;
        let state = LoopState::of(workflow, context)?;
        let mut variables = Variables::new(context);
        let mut tried = HashSet::new();
        bind_loops_around(workflow, &workflow.steps, step, &state, &mut variables, &mut tried);
        let Step::Plain(found) = found else {
            // A loop has no output of its own, and so nothing to check it for.
            return Ok(not_blank(output));
        };
        if let Some(unusable) = &found.unusable_criteria {
            let (step, details) = (step.to_owned(), unusable.details.clone());
            return Err(if unusable.only_schemas {
                Refusal::MalformedSchema { step, details }
            } else {
                Refusal::UnusableCriteria { step, details }
            });
        }
        self.judge(found, output, &variables)
    }

    fn judge(
        &self,
        step: &PlainStep,
        output: &str,
        variables: &Variables<'_>,
    ) -> Result<Verdict, Refusal> {
        let checks = step.validation_criteria.as_ref().map(Criteria::checks).unwrap_or_default();
        let mut tried = Vec::new();
        for check in checks {
            let outcome = self.attempt(check, output, variables);
            let outcome = outcome.map_err(|unusable| match unusable {
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
            return Ok(not_blank(output));
        }
        let whole = Tried::group(Logic::All, tried);
        if whole.passed() {
            return Ok(Verdict { valid: true, issues: Vec::new(), suggestions: Vec::new() });
        }
        let mut culprits = Vec::new();
        whole.blame(true, Way::Only, &mut culprits);
        let mut issues = Vec::new();
        let mut suggestions = vec![FIRST_SUGGESTION.to_owned()];
        for Culprit { rule, wanted, way } in culprits {
            add_once(&mut issues, rule.message.to_string());
            for advice in criteria::advice(&rule.kind, wanted, output, &self.compiled) {
                add_once(
                    &mut suggestions,
                    match way {
                        Way::Only => advice,
                        Way::OneOfSeveral => format!("One way: {advice}"),
                    },
                );
            }
        }
        Ok(Verdict { valid: false, issues, suggestions })
    }

    /// Tries a check. What does not apply drops out: `None`.
    fn attempt<'w>(
        &self,
        check: &'w Check,
        output: &str,
        variables: &Variables<'_>,
    ) -> Result<Option<Tried<'w>>, Unusable> {
        let parts = match check {
            Check::Rule(rule) if !applies(rule, variables) => return Ok(None),
            Check::Rule(rule) => {
                let passed = criteria::passes(&rule.kind, output, &self.compiled)?;
                return Ok(Some(Tried::Rule { rule, passed }));
            }
            Check::Composition(parts) => parts,
        };
        let mut tried = Vec::new();
        for part in parts {
            let mut members = Vec::new();
            for member in part.members() {
                members.extend(self.attempt(member, output, variables)?);
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
    fn blame(&self, wanted: bool, way: Way, culprits: &mut Vec<Culprit<'w>>) {
        if self.passed() == wanted {
            return;
        }
        match self {
            Self::Rule { rule, .. } => culprits.push(Culprit { rule, wanted, way }),
            Self::Group { logic, members, .. } => {
                let is_choice = match logic {
                    Logic::All => !wanted,
                    Logic::Any => wanted,
                    Logic::None => false,
                };
                let way = if is_choice && members.len() > 1 { Way::OneOfSeveral } else { way };
                let wanted = wanted == (*logic != Logic::None);
                for member in members {
                    member.blame(wanted, way, culprits);
                }
            }
        }
    }
}

/// A rule that made the whole fail.
struct Culprit<'w> {
    rule: &'w Rule,
    /// How it should have come out.
    wanted: bool,
    way: Way,
}

/// Whether a culprit must change, or is one of several of which one suffices.
#[derive(Debug, Clone, Copy)]
enum Way {
    Only,
    OneOfSeveral,
}

fn not_blank(output: &str) -> Verdict {
    if !output.trim().is_empty() {
        return Verdict { valid: true, issues: Vec::new(), suggestions: Vec::new() };
    }
    Verdict {
        valid: false,
        issues: vec!["The output is empty".to_owned()],
        suggestions: vec![
            FIRST_SUGGESTION.to_owned(),
            "Say what was done and what came of it.".to_owned(),
        ],
    }
}

fn add_once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// Binds the variables of the running loops around a step; says whether the step was found there.
fn bind_loops_around<'a>(
    workflow: &'a Workflow,
    steps: &'a [Step],
    wanted: &str,
    state: &LoopState,
    variables: &mut Variables<'a>,
    tried: &mut HashSet<&'a str>,
) -> bool {
    for step in steps {
        let Step::Loop(outer) = step else {
            continue;
        };
        let Some(progress) = state.loops.get(&*outer.id).filter(|progress| !progress.ended) else {
            continue;
        };
        // Loops can share a body: where it was not found in one once, it is not there.
        if !tried.insert(&outer.id) {
            continue;
        }
        let depth = variables.depth();
        progress.bind(&outer.r#loop, variables);
        let inner = body(workflow, outer);
        let is_here = inner.iter().any(|step| step.id() == wanted);
        if is_here || bind_loops_around(workflow, inner, wanted, state, variables, tried) {
            return true;
        }
        variables.unbind(depth);
    }
    false
}
