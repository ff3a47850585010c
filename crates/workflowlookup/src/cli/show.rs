//! `show ID`: a workflow, readable.

use std::io;

use clap::Args;
use workflow::Workflow;
use workflow::criteria::{Check, Composition, Criteria, RuleKind};
use workflow::definition::{Body, Confirmation, Count, LoopKind, LoopStep, PlainStep, Step};

use super::terminal::{DIM, HEADING};
use super::{Ended, Outcome, SourceOptions, Terminal};
use service::app;

/// Show a workflow
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup show investigate-bug
  workflowlookup show investigate-bug --json > my-copy.json")]
pub(crate) struct Arguments {
    /// The workflow's id, as `list` shows it
    id: String,
    /// Print what the tool `workflow_get` returns
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let app = sources.open(terminal)?;
    let snapshot = app.snapshot();
    let workflow = app::find(&snapshot, &arguments.id)?;
    if arguments.json {
        terminal.json(workflow)?;
    } else {
        print(workflow, terminal)?;
    }
    Ok(Outcome::Good)
}

fn print(workflow: &Workflow, terminal: &mut Terminal) -> io::Result<()> {
    terminal.styled(HEADING, &workflow.name)?;
    terminal
        .styled(DIM, &format!("{} {} · {}", workflow.id, workflow.version, workflow.category()))?;
    terminal.line("")?;
    terminal.line(&workflow.description)?;
    for (heading, list) in [
        ("Before you start", &workflow.preconditions),
        ("Questions to settle first", &workflow.clarification_prompts),
        ("All the way", &workflow.meta_guidance),
    ] {
        if !list.is_empty() {
            terminal.line("")?;
            terminal.styled(HEADING, heading)?;
            for entry in list {
                terminal.line(&format!("  - {entry}"))?;
            }
        }
    }
    if !workflow.variables.is_empty() {
        terminal.line("")?;
        terminal.styled(HEADING, "Variables")?;
    }
    for (name, declaration) in workflow.variables.iter() {
        let expected = match &declaration.schema {
            Some(_) => "a value that fits a schema".to_owned(),
            None => declaration.expected(),
        };
        let about = declaration.description.as_deref().map(|about| format!(" ({about})"));
        terminal.line(&format!("  - `{name}`: {expected}{}", about.unwrap_or_default()))?;
    }
    terminal.line("")?;
    terminal.styled(HEADING, "Steps")?;
    print_steps(&workflow.steps, "", 1, terminal)
}

fn print_steps(
    steps: &[Step],
    number: &str,
    depth: usize,
    terminal: &mut Terminal,
) -> io::Result<()> {
    for (index, step) in steps.iter().enumerate() {
        let number = format!("{number}{}.", index + 1);
        let indent = "  ".repeat(depth);
        terminal.styled(HEADING, &format!("{indent}{number} {} ({})", step.title(), step.id()))?;
        let mut notes = Vec::new();
        notes.extend(step.run_condition().map(|condition| format!("only where {condition}")));
        notes.extend(step.require_confirmation().and_then(confirmation));
        match step {
            Step::Plain(step) => {
                notes.extend(step.model_hint.iter().map(|hint| format!("suits: {hint}")));
                if step.ask_for_files == Some(true) {
                    notes.push("asks for the files it needs".to_owned());
                }
                if step.unusable_criteria.is_some() {
                    notes.push(
                        "its output cannot be checked; see `workflowlookup sources`".to_owned(),
                    );
                }
                for note in &notes {
                    terminal.styled(DIM, &format!("{indent}   {note}"))?;
                }
                print_plain(step, &format!("{indent}   "), terminal)?;
            }
            Step::Loop(step) => {
                notes.insert(0, loop_in_words(step));
                for note in &notes {
                    terminal.styled(DIM, &format!("{indent}   {note}"))?;
                }
                if let Body::Steps(steps) = &step.body {
                    print_steps(steps, &number, depth + 1, terminal)?;
                }
            }
        }
    }
    Ok(())
}

fn print_plain(step: &PlainStep, indent: &str, terminal: &mut Terminal) -> io::Result<()> {
    for text in step.agent_role.iter().chain([&step.prompt]) {
        for line in text.lines() {
            terminal.line(format!("{indent}{line}").trim_end())?;
        }
    }
    for advice in &step.guidance {
        terminal.line(&format!("{indent}- {advice}"))?;
    }
    if !step.reports.is_empty() {
        let names: Vec<String> = step.reports.iter().map(|entry| format!("`{entry}`")).collect();
        terminal.styled(DIM, &format!("{indent}reports: {}", names.join(", ")))?;
    }
    if let Some(criteria) = &step.validation_criteria {
        terminal.styled(DIM, &format!("{indent}checked:"))?;
        for check in Criteria::checks(criteria) {
            print_check(check, &format!("{indent}  "), terminal)?;
        }
    }
    Ok(())
}

fn print_check(check: &Check, indent: &str, terminal: &mut Terminal) -> io::Result<()> {
    let parts = match check {
        Check::Rule(rule) => {
            let test = match &rule.kind {
                RuleKind::Contains { value } => format!("contains \"{value}\""),
                RuleKind::Regex { pattern, flags } => format!("matches /{pattern}/{flags}"),
                RuleKind::Length { min, max } => match (min, max) {
                    (Some(min), Some(max)) => format!("{min} to {max} characters"),
                    (Some(min), None) => format!("at least {min} characters"),
                    (None, Some(max)) => format!("at most {max} characters"),
                    (None, None) => "any length".to_owned(),
                },
                RuleKind::Schema { .. } => "JSON that fits a schema".to_owned(),
            };
            let condition = rule.condition.as_ref().map(|condition| format!(", where {condition}"));
            let condition = condition.unwrap_or_default();
            terminal.line(&format!("{indent}- {}", rule.message))?;
            return terminal.styled(DIM, &format!("{indent}  ({test}{condition})"));
        }
        Check::Composition(parts) => parts,
    };
    for part in parts {
        let heading = match part {
            Composition::And(_) => "all of",
            Composition::Or(_) => "at least one of",
            Composition::Not(_) => "not",
        };
        terminal.styled(DIM, &format!("{indent}- {heading}:"))?;
        for member in part.members() {
            print_check(member, &format!("{indent}  "), terminal)?;
        }
    }
    Ok(())
}

fn confirmation(confirmation: &Confirmation) -> Option<String> {
    match confirmation {
        Confirmation::Always(true) => Some("a person confirms".to_owned()),
        Confirmation::Always(false) => None,
        Confirmation::Where(condition) => Some(format!("a person confirms where {condition}")),
    }
}

fn loop_in_words(step: &LoopStep) -> String {
    let settings = &step.r#loop;
    let how = match &settings.kind {
        LoopKind::While { condition } => format!("as long as {condition}"),
        LoopKind::Until { condition } => format!("until {condition}"),
        LoopKind::For { count: Count::Number(count) } => format!("{count} times"),
        LoopKind::For { count: Count::Variable(name) } => format!("`{name}` times"),
        LoopKind::ForEach { items, .. } => format!("for each item of `{items}`"),
    };
    let what = match &step.body {
        Body::Named(id) => format!("repeats `{id}` (which runs only here) "),
        Body::Steps(_) => "repeats ".to_owned(),
    };
    let names: Vec<String> = settings.variables().map(|name| format!("`{name}`")).collect();
    let most = settings.max_iterations;
    format!("{what}{how}, at most {most} times; sets {}", names.join(", "))
}
