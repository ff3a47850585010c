//! What the agent should read before it works: who it is, where it stands, what to do, and what its
//! output will be checked for.

use budget::Exhausted;
use serde::Serialize;
use workflow::criteria::{Check, Composition, Criteria, Rule};
use workflow::definition::LoopStep;
use workflow::template::fill;
use workflow::{Variables, Workflow};

use crate::distinct::Distinct;
use crate::next::{End, Found, Keeper, Note, Running, What, is_confirmed};
use crate::refusal::Refusal;
use crate::reports::report_lines;

/// The room that a prompt begins with.
const PROMPT_BYTES: usize = 2048;
/// The words that may stand between a number and the characters that it counts.
const BETWEEN_COUNT_AND_UNIT: [&str; 11] =
    ["and", "or", "to", "at", "more", "fewer", "less", "least", "most", "than", "unicode"];

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guidance<'a> {
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_hint: Option<&'a str>,
    pub requires_confirmation: bool,
    /// The messages of the rules that apply in this context.
    pub validation_criteria: Vec<&'a str>,
}

/// How much of a workflow's own guidance an answer carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Preconditions, questions for the user and advice: at the beginning, and for an agent that has lost it.
    Full,
    /// One line that says where it is.
    Reminder,
    /// All of it, for a person who walks the workflow at a terminal.
    Terminal,
}

/// What a workflow says before its first step; empty if it says nothing.
pub(crate) fn opening(workflow: &Workflow, detail: Opening) -> String {
    let questions = match detail {
        Opening::Full | Opening::Reminder => "Ask your user, unless settled:",
        Opening::Terminal => "Settle first:",
    };
    let mut prompt = Prompt::default();
    for (heading, texts) in [
        ("First make sure that:", &workflow.preconditions),
        (questions, &workflow.clarification_prompts),
        ("Throughout:", &workflow.meta_guidance),
    ] {
        if !texts.is_empty() {
            prompt.paragraph(heading);
            texts.iter().for_each(|text| prompt.item(0, text));
        }
    }
    prompt.text
}

pub(crate) fn compose<'a>(
    workflow: &'a Workflow,
    found: &Found<'a, '_>,
    detail: Opening,
) -> Result<Guidance<'a>, Refusal> {
    // Few prompts are longer, and growing costs more than a little too much room.
    let mut prompt =
        Prompt { text: String::with_capacity(PROMPT_BYTES), listed: Distinct::default() };
    if found.keeper == Keeper::Agent && detail == Opening::Full {
        let opening = opening(workflow, detail);
        if !opening.is_empty() {
            prompt.paragraph(&opening);
        }
    }
    for note in &found.notes {
        prompt.paragraph(&describe(note, found.keeper));
    }
    let Some(step) = found.step else {
        prompt.paragraph("The workflow is complete: every step is done or does not apply.");
        return Ok(Guidance {
            prompt: prompt.text,
            model_hint: None,
            requires_confirmation: false,
            validation_criteria: Vec::new(),
        });
    };
    let variables = &found.variables;
    let in_prompt = || Refusal::exhausted(&step.id, "the prompt");
    let in_rules = || Refusal::exhausted(&step.id, "a condition of the rules");
    for running in &found.running {
        let title = fill(&running.step.title, variables).map_err(in_prompt())?;
        prompt.paragraph(&iteration(running, &title, found.keeper));
    }
    if let Some(role) = &step.agent_role {
        prompt.paragraph(&fill(role, variables).map_err(in_prompt())?);
    }
    prompt.paragraph(&fill(&step.prompt, variables).map_err(in_prompt())?);
    if !step.guidance.is_empty() {
        prompt.paragraph("Guidance:");
        for line in &step.guidance {
            prompt.item(0, &fill(line, variables).map_err(in_prompt())?);
        }
    }
    if step.ask_for_files == Some(true) {
        prompt.paragraph(match detail {
            Opening::Full | Opening::Reminder => {
                "Ask for the files that you need before you begin."
            }
            Opening::Terminal => "Have the files ready that you need.",
        });
    }
    if step.unusable_criteria.is_some() {
        prompt.paragraph(
            "Your output cannot be checked: the criteria of this step are broken. Tell the user.",
        );
    }
    let is_usable = |_: &&Criteria| step.unusable_criteria.is_none();
    let criteria = step.validation_criteria.as_ref().filter(is_usable);
    let messages = match criteria {
        Some(criteria) => applicable_messages(criteria, variables).map_err(in_rules())?,
        None => Vec::new(),
    };
    if let Some(criteria) = criteria.filter(|_| !messages.is_empty()) {
        prompt.paragraph("Checked for:");
        for check in criteria.checks() {
            prompt.check(check, variables, Sense::Wanted, 0).map_err(in_rules())?;
        }
    }
    let reports = report_lines(workflow, step);
    if !reports.is_empty() {
        let is_derived = workflow.variables.is_empty();
        prompt.paragraph(match (detail, is_derived) {
            (Opening::Full | Opening::Reminder, true) => {
                "Report in `context` what later steps use:"
            }
            (Opening::Full | Opening::Reminder, false) => "Report in `context`:",
            (Opening::Terminal, true) => "Report what later steps use, by `:set NAME=VALUE`:",
            (Opening::Terminal, false) => "Report by `:set NAME=VALUE`:",
        });
        reports.iter().for_each(|line| prompt.item(0, line));
    }
    let mut requires_confirmation = false;
    for running in found.running.iter().filter(|running| running.confirms) {
        let id = &running.step.id;
        prompt.paragraph(&match found.keeper {
            Keeper::Agent => {
                format!("Before you begin, have a person confirm that loop `{id}` shall run.")
            }
            keeper if keeper.decides_loop_gate_late() => {
                format!("After this step, a person confirms that loop `{id}` shall run.")
            }
            // It was approved before this step was handed out.
            Keeper::Session(_) => continue,
        });
        requires_confirmation = true;
    }
    if is_confirmed(&step.id, step.require_confirmation.as_ref(), variables)? {
        requires_confirmation = true;
        prompt.paragraph(match (found.keeper, detail) {
            (Keeper::Agent, _) => "Have a person confirm the result before you go on.",
            (Keeper::Session(_), Opening::Full | Opening::Reminder) => {
                "A person confirms the result."
            }
            (Keeper::Session(_), Opening::Terminal) => "Then you are asked to confirm the result.",
        });
    }
    if !found.running.is_empty() && found.keeper == Keeper::Agent {
        prompt.paragraph(&format!(
            "When this step is done, ask for the next one with the `state` of this answer merged into \
             `context`, and leave `{}` out of `completedSteps`.",
            step.id
        ));
    }
    if detail == Opening::Reminder && !workflow.meta_guidance.is_empty() {
        prompt.paragraph(match found.keeper {
            Keeper::Agent => "The advice given with the first step still holds.",
            Keeper::Session(_) => "The advice still holds (workflow_status).",
        });
    }
    Ok(Guidance {
        prompt: prompt.text,
        model_hint: step.model_hint.as_deref(),
        requires_confirmation,
        validation_criteria: messages,
    })
}

fn iteration(running: &Running<'_>, title: &str, keeper: Keeper) -> String {
    let LoopStep { id, r#loop, .. } = running.step;
    let bound = r#loop.max_iterations;
    let of = match running.total {
        Some(total) if total <= bound => format!("of {total}"),
        _ => format!("of at most {bound}"),
    };
    let iteration = running.iteration;
    match keeper {
        // It names the loop when it is done.
        Keeper::Agent => format!("Loop `{id}` ({title}): iteration {iteration} {of}."),
        Keeper::Session(_) => format!("Iteration {iteration} {of}: {title}"),
    }
}

fn describe(note: &Note<'_>, keeper: Keeper) -> String {
    let id = &note.step.id;
    let (iterations, end, unseen, inner) = match &note.what {
        What::Lacking(lacking) => {
            let how = match keeper {
                Keeper::Agent => "set the variable and ask again",
                Keeper::Session(_) => "report the variable with your next output",
            };
            return format!(
                "Loop `{id}` did not run: it needs the {} `{}` in the context. To run it, {how}.",
                lacking.wanted, lacking.variable
            );
        }
        What::Ended { iterations, end, unseen, inner } => (*iterations, *end, *unseen, *inner),
    };
    let plural = if iterations == 1 { "" } else { "s" };
    let idly = if unseen { ", in which no step applied" } else { "" };
    let mut text = match end {
        End::Finished => format!("Loop `{id}` ended after {iterations} iteration{plural}{idly}."),
        End::Bound => format!(
            "Loop `{id}` was stopped by its bound after {iterations} iteration{plural}{idly}; by its own measure it \
             was not finished. Say so in what you report."
        ),
        End::Idle => format!(
            "Loop `{id}` was given up after {iterations} iteration{plural}, because no step of it applied any more. \
             Say so in what you report."
        ),
    };
    if !inner && keeper == Keeper::Agent {
        text += &format!(" Add `{id}` to `completedSteps`.");
    }
    text
}

/// The messages of the rules that apply, each once, in file order.
fn applicable_messages<'a>(
    criteria: &'a Criteria,
    variables: &Variables<'_, '_>,
) -> Result<Vec<&'a str>, Exhausted> {
    let mut rules = Vec::new();
    criteria.each_rule(&mut |rule| rules.push(rule));
    let mut messages: Vec<&str> = Vec::new();
    let mut seen = Distinct::default();
    for rule in rules {
        if applies(rule, variables)? && seen.insert(&rule.message) {
            messages.push(&rule.message);
        }
    }
    Ok(messages)
}

pub(crate) fn applies(rule: &Rule, variables: &Variables<'_, '_>) -> Result<bool, Exhausted> {
    match &rule.condition {
        Some(condition) => condition.holds(variables),
        None => Ok(true),
    }
}

/// Whether a check shall pass, or stands under a `not`, where all and any change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    Wanted,
    Unwanted,
}

#[derive(Default)]
struct Prompt<'a> {
    text: String,
    /// The messages that stand in the innermost list already.
    listed: Distinct<'a>,
}

impl<'a> Prompt<'a> {
    fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    fn item(&mut self, depth: usize, text: &str) {
        self.text.push('\n');
        (0..depth).for_each(|_| self.text.push_str("  "));
        self.text.push_str("- ");
        self.text.push_str(text);
    }

    /// A check as a list, with the logic of its compositions in words. Rules inside a `not` say what
    /// is wanted in their messages, so they stand like any other.
    fn check(
        &mut self,
        check: &'a Check,
        variables: &Variables<'_, '_>,
        sense: Sense,
        depth: usize,
    ) -> Result<(), Exhausted> {
        let parts = match check {
            Check::Rule(rule) => return self.rule(rule, variables, sense, depth),
            Check::Composition(parts) => parts,
        };
        for part in parts {
            let mut members: Vec<&Check> = Vec::new();
            for member in part.members() {
                if has_applicable(member, variables)? {
                    members.push(member);
                }
            }
            let heading = match (part, sense) {
                (Composition::Not(member), Sense::Wanted) => {
                    self.check(member, variables, Sense::Unwanted, depth)?;
                    continue;
                }
                (Composition::Not(member), Sense::Unwanted) => {
                    self.check(member, variables, Sense::Wanted, depth)?;
                    continue;
                }
                _ if members.len() < 2 => None,
                (Composition::And(_), Sense::Wanted) | (Composition::Or(_), Sense::Unwanted) => {
                    (depth > 0).then_some("all of these:")
                }
                (Composition::Or(_), Sense::Wanted) | (Composition::And(_), Sense::Unwanted) => {
                    Some("at least one of these:")
                }
            };
            let Some(heading) = heading else {
                for member in members {
                    self.check(member, variables, sense, depth)?;
                }
                continue;
            };
            self.item(depth, heading);
            let around = std::mem::take(&mut self.listed);
            for member in members {
                self.check(member, variables, sense, depth + 1)?;
            }
            self.listed = around;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &'a Rule,
        variables: &Variables<'_, '_>,
        sense: Sense,
        depth: usize,
    ) -> Result<(), Exhausted> {
        if !applies(rule, variables)? || !self.listed.insert(&rule.message) {
            return Ok(());
        }
        match rule.limit().filter(|_| sense == Sense::Wanted) {
            Some(limit) if !names_limit(&rule.message, &limit) => {
                self.item(depth, &format!("{} ({limit})", rule.message));
            }
            _ => self.item(depth, &rule.message),
        }
        Ok(())
    }
}

/// Whether a message says a limit itself: it has every number of the limit as a number of characters. "Write 40 lines"
/// says nothing about 40 characters.
fn names_limit(message: &str, limit: &str) -> bool {
    // As people write them: 1,000.
    let message = message.replace([',', '_', '\u{202f}'], "").to_lowercase();
    let named = character_counts(&message);
    character_counts(limit).iter().all(|count| named.contains(count))
}

/// The numbers in a text that count characters: the word follows, perhaps behind another number ("between 10 and 20
/// characters").
fn character_counts(text: &str) -> Vec<&str> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut counts = Vec::new();
    let mut pending = Vec::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        if is_number(word) {
            pending.push(word);
        } else if word.starts_with("char") {
            counts.append(&mut pending);
        } else if !BETWEEN_COUNT_AND_UNIT.contains(&word) {
            pending.clear();
        }
    }
    counts
}

fn has_applicable(check: &Check, variables: &Variables<'_, '_>) -> Result<bool, Exhausted> {
    let mut rules = Vec::new();
    check.each_rule(&mut |rule| rules.push(rule));
    for rule in rules {
        if applies(rule, variables)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_named_only_as_characters() {
        for (message, limit, is_named) in [
            ("Write at least 40 characters", "at least 40 characters", true),
            ("Write 40 lines", "at least 40 characters", false),
            ("Write 40 lines of 80 characters", "at least 40 characters", false),
            ("Write 40 lines of 80 characters", "at most 80 characters", true),
            ("Between 10 and 2,000 characters.", "between 10 and 2000 characters", true),
            ("10-20 chars", "between 10 and 20 characters", true),
            ("40 or more characters", "at least 40 characters", true),
            ("At most 140 characters, for 40 people", "at least 40 characters", false),
            ("At least one character", "at least 1 character", false),
            ("40 Characters or more", "at least 40 characters", true),
            ("Be short", "at most 40 characters", false),
        ] {
            assert_eq!(names_limit(message, limit), is_named, "{message}");
        }
    }
}
