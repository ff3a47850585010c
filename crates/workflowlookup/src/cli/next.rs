//! `next ID`: the step that comes next.

use std::collections::{BTreeMap, HashSet};

use clap::Args;
use engine::{Budget, Next, Progress};
use serde_json::{Value, json};
use workflow::Context;

use super::context::ContextOption;
use super::terminal::{DIM, GREEN, HEADING};
use super::{Ended, Outcome, SourceOptions, Terminal};
use service::app;
use service::error::Refusal;

/// Show the step that comes next
///
/// A running loop's progress is part of the answer: pass it back as the context variable `_loops`.
/// The last line is the command that goes on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup next investigate-bug
  workflowlookup next investigate-bug --completed reproduce --context severity=high
  workflowlookup next investigate-bug --context 'files=[\"a.rs\", \"b.rs\"]' --json")]
pub(crate) struct Arguments {
    /// The workflow's id, as `list` shows it
    id: String,
    /// The ids of the steps that are completed, separated by commas; may be given several times
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    completed: Vec<String>,
    /// The id of the step that is being worked on; only checked
    #[arg(long, value_name = "STEP")]
    current: Option<String>,
    #[command(flatten)]
    context: ContextOption,
    /// Print what the tool `workflow_next` returns
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
    let context = arguments.context.read()?;
    // An empty `--completed ''` means that nothing is.
    let completed: Vec<String> = arguments
        .completed
        .iter()
        .map(|step| step.trim().to_owned())
        .filter(|step| !step.is_empty())
        .collect();
    if let Some(step) = app::repeated_step(&completed) {
        let details = format!("`--completed` repeats `{step}`");
        let hint = Some("name each completed step once".to_owned());
        return Err(Refusal::InvalidParams { details, hint }.into());
    }
    let progress = Progress {
        completed: &completed,
        current: arguments.current.as_deref(),
        context: &context,
    };
    let budget = Budget::for_call();
    let answer = app.next(&snapshot, &arguments.id, progress, &budget)?;
    if arguments.json {
        terminal.json(&answer)?;
        return Ok(Outcome::Good);
    }
    let Some(step) = &answer.step else {
        terminal.styled(GREEN, &answer.guidance.prompt)?;
        return Ok(Outcome::Good);
    };
    terminal.styled(HEADING, &format!("{} ({})", step.title, step.id))?;
    terminal.line("")?;
    terminal.line(&answer.guidance.prompt)?;
    if let Some(hint) = answer.guidance.model_hint {
        terminal.line("")?;
        terminal.styled(DIM, &format!("suits: {hint}"))?;
    }
    terminal.line("")?;
    terminal.styled(DIM, "when it is done:")?;
    let mut words = vec!["next".to_owned()];
    let mut options = sources.words();
    options.extend(going_on(completed.clone(), context.clone(), &answer, step.id));
    if arguments.id.starts_with('-') {
        // An id that looks like an option comes last, behind the mark that ends them.
        words.extend(options);
        words.extend(["--".to_owned(), arguments.id.clone()]);
    } else {
        words.push(arguments.id.clone());
        words.extend(options);
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    terminal.line(&format!("  workflowlookup {}", words.join(" ")))?;
    Ok(Outcome::Good)
}

/// The options that ask for the step after this one.
fn going_on(
    mut completed: Vec<String>,
    mut context: Context,
    answer: &Next<'_>,
    step: &str,
) -> Vec<String> {
    let loops = answer.state.iter().flat_map(|state| &state.loops);
    let (ended, running): (Vec<_>, Vec<_>) = loops.partition(|(_, progress)| progress.ended);
    completed.extend(ended.into_iter().map(|(id, _)| id.clone()));
    let is_in_loop = running.iter().any(|(_, progress)| progress.done.iter().any(|id| id == step));
    if !is_in_loop {
        completed.push(step.to_owned());
    }
    let mut seen = HashSet::new();
    completed.retain(|step| seen.insert(step.clone()));
    context.remove("_loops");
    if !running.is_empty() {
        let running: BTreeMap<_, _> = running.into_iter().collect();
        context.insert("_loops".to_owned(), json!(running));
    }
    let mut words = Vec::new();
    if !completed.is_empty() {
        let steps = completed.join(",");
        if steps.starts_with('-') {
            words.push(format!("--completed={steps}"));
        } else {
            words.extend(["--completed".to_owned(), steps]);
        }
    }
    for (name, value) in &context {
        let value = match value {
            // Text that reads as JSON must be quoted to stay text.
            Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
            value => value.to_string(),
        };
        words.extend(["--context".to_owned(), format!("{name}={value}")]);
    }
    words
}

/// Quoted for a shell where it needs to be.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("a=b", "a=b"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("a\nb", "'a\nb'"),
            ("~", "'~'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
