//! Reported variables: a submission carries what its step must report, and a declared variable has a value that
//! its declaration accepts. Near misses get the exact correction.

use std::collections::HashSet;

use budget::Budget;
use serde_json::{Value, json};
use workflow::definition::{Declaration, PlainStep, ReportedVariable, Step, ValueType};
use workflow::derived::{DerivedKind, DerivedVariable};
use workflow::nearest::nearest;
use workflow::{Context, Workflow};

use crate::check::Checker;
use crate::criteria::{self, Unusable};
use crate::refusal::Refusal;

/// A wrong value is quoted up to this many bytes of JSON.
const QUOTED_BYTES_MAX: usize = 200;
/// A JSON Schema is shown to an agent up to this many bytes.
const SCHEMA_BYTES_MAX: usize = 400;
/// How many issues one context gets.
const ISSUES_MAX: usize = 20;
/// How many unknown names are compared with known ones.
const UNKNOWN_MAX: usize = 100;
/// The names that a session with references to outputs keeps for itself.
const SESSION_NAMES: [&str; 3] = ["steps", "children", "wr"];

impl Checker {
    /// Refuses a context that sets a declared variable to a value that its declaration does not accept.
    pub fn check_context(
        &self,
        workflow: &Workflow,
        context: &Context,
        budget: &Budget,
    ) -> Result<(), Refusal> {
        let issues = self.check_variables(workflow, context, budget)?;
        if issues.is_empty() { Ok(()) } else { Err(Refusal::BadVariables { issues }) }
    }

    /// Issues of the declared variables that a context sets.
    fn check_variables(
        &self,
        workflow: &Workflow,
        context: &Context,
        budget: &Budget,
    ) -> Result<Vec<String>, Refusal> {
        let mut issues = Vec::new();
        for (name, declaration) in workflow.variables.iter() {
            if issues.len() == ISSUES_MAX {
                break;
            }
            if let Some(value) = context.get(name) {
                issues.extend(self.value_issue(name, declaration, value, budget)?);
            }
        }
        if !workflow.variables.is_empty() {
            let dotted: Vec<(&String, &str)> = context
                .keys()
                .filter_map(|key| key.split_once('.').map(|(head, _)| (key, head)))
                .collect();
            let bound = if dotted.is_empty() { HashSet::new() } else { bound_names(workflow) };
            let inside = dotted.into_iter().filter_map(|(key, head)| {
                let is_declared = workflow.variables.get(head).is_some();
                if is_declared {
                    Some(format!("`{key}` cannot be set by itself: set all of `{head}`"))
                } else {
                    bound.contains(head).then(|| {
                        format!("`{key}` cannot be set: `{head}` is the variable of a loop")
                    })
                }
            });
            let room = ISSUES_MAX - issues.len();
            issues.extend(inside.take(room));
        }
        Ok(issues)
    }

    /// The same for what is reported with a step's output, which has to be complete.
    pub(crate) fn check_reports(
        &self,
        workflow: &Workflow,
        step: &PlainStep,
        context: &Context,
        budget: &Budget,
    ) -> Result<Vec<String>, Refusal> {
        let mut issues = self.check_variables(workflow, context, budget)?;
        let unknown: Vec<&str> = context
            .keys()
            .map(String::as_str)
            .filter(|key| !key.contains('.') && workflow.variables.get(key).is_none())
            .take(UNKNOWN_MAX)
            .collect();
        for ReportedVariable { name, is_optional } in &step.reports {
            let Some(declaration) = workflow.variables.get(name) else { continue };
            if context.contains_key(&**name) || issues.len() == ISSUES_MAX {
                continue;
            }
            let compared = unknown.iter().map(|key| key.len() * name.len()).sum();
            budget.spend_scan(compared).map_err(Refusal::exhausted_variable(name))?;
            // A name that only begins with this one, such as `sizeReason`, is another variable.
            let is_other = |key: &str| key.starts_with(&**name) && key.len() > name.len() + 2;
            let others = unknown.iter().copied().filter(|key| !is_other(key));
            let written = nearest(name, others);
            match (is_optional, written) {
                (false, written) => {
                    let expected = described(declaration);
                    let hint = written
                        .map(|written| format!(" (context has `{written}`)"))
                        .unwrap_or_default();
                    issues.push(format!(
                        "`{name}` is missing from context: report {expected}; later steps depend on it{hint}"
                    ));
                }
                (true, Some(written)) => {
                    issues.push(format!("context has `{written}`: the variable is `{name}`"));
                }
                (true, None) => {}
            }
        }
        Ok(issues)
    }

    fn value_issue(
        &self,
        name: &str,
        declaration: &Declaration,
        value: &Value,
        budget: &Budget,
    ) -> Result<Option<String>, Refusal> {
        let exhausted = || Refusal::exhausted_variable(name);
        budget.spend_value(value).map_err(exhausted())?;
        let fits = |value: &Value| -> Result<Result<(), String>, Refusal> {
            if !declaration.accepts(value) {
                return Ok(Err(format!("`{name}` must be {}", declaration.expected())));
            }
            let Some(schema) = &declaration.schema else { return Ok(Ok(())) };
            match criteria::schema_errors(schema, value, budget, self.compiled()) {
                Ok(errors) if errors.is_empty() => Ok(Ok(())),
                Ok(errors) => {
                    Ok(Err(format!("`{name}` does not fit its schema: {}", errors.join(" "))))
                }
                Err(Unusable::Exhausted(why)) => Err(exhausted()(why)),
                Err(Unusable::Rule(details) | Unusable::Schema(details)) => {
                    let step = format!("variables.{name}");
                    Err(Refusal::MalformedSchema { step, details: vec![details] })
                }
            }
        };
        let Err(issue) = fits(value)? else { return Ok(None) };
        for candidate in corrections(declaration, value) {
            if fits(&candidate)?.is_ok() {
                let (value, candidate) = (quoted(value), quoted(&candidate));
                let issue = issue.trim_end_matches('.');
                return Ok(Some(format!("{issue}: write {candidate} instead of {value}")));
            }
        }
        Ok(Some(match declaration.schema {
            Some(_) => issue,
            None => format!("{issue}, not {}", quoted(value)),
        }))
    }
}

/// The names that loops bind.
fn bound_names(workflow: &Workflow) -> HashSet<&str> {
    let mut names = HashSet::new();
    workflow.each_step(&mut |step| {
        if let Step::Loop(step) = step {
            names.extend(step.r#loop.variables());
        }
    });
    names
}

/// Values that may be meant by one that does not fit.
fn corrections(declaration: &Declaration, value: &Value) -> Vec<Value> {
    let options = || declaration.values.iter().flatten();
    let mut found = Vec::new();
    if let Value::String(text) = value {
        let text = text.trim();
        let word = text.to_lowercase();
        found.extend(match (declaration.r#type, &*word) {
            (Some(ValueType::Boolean), "true" | "yes" | "y") => Some(json!(true)),
            (Some(ValueType::Boolean), "false" | "no" | "n") => Some(json!(false)),
            _ => None,
        });
        // A number in quotes, or JSON that was encoded twice.
        found.extend(serde_json::from_str::<Value>(text).ok());
        let words = || options().filter_map(Value::as_str);
        found.extend(words().find(|option| option.to_lowercase() == word).map(Value::from));
        found.extend(nearest(text, words()).map(Value::from));
        if declaration.r#type == Some(ValueType::List) && !text.is_empty() {
            let items = text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty());
            found.push(items.collect());
        }
    } else if declaration.r#type == Some(ValueType::String)
        && (value.is_number() || value.is_boolean())
    {
        found.push(json!(value.to_string()));
    }
    if declaration.r#type == Some(ValueType::Boolean) {
        found.extend(match value.as_f64() {
            Some(0.0) => Some(json!(false)),
            Some(1.0) => Some(json!(true)),
            _ => None,
        });
    }
    found
}

fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.len() <= QUOTED_BYTES_MAX {
        true => text,
        false => format!("{}…", &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]),
    }
}

/// The expected value with what it says: `true or false (whether the fault showed itself)`.
fn described(declaration: &Declaration) -> String {
    let expected = match &declaration.schema {
        Some(schema) if schema.text().len() > SCHEMA_BYTES_MAX => {
            "a value that fits its schema (workflow_get returns it)".to_owned()
        }
        _ => declaration.expected(),
    };
    match &declaration.description {
        Some(description) => format!("{expected} ({description})"),
        None => expected,
    }
}

/// The variables that an agent should report with a step, one line each.
pub(crate) fn report_lines(workflow: &Workflow, step: &PlainStep) -> Vec<String> {
    if workflow.variables.is_empty() {
        return workflow.derived_reports().for_step(&step.id).iter().map(derived_line).collect();
    }
    let lines = step.reports.iter().filter_map(|ReportedVariable { name, is_optional }| {
        let optional = if *is_optional { " (optional)" } else { "" };
        let expected = described(workflow.variables.get(name)?);
        Some(format!("`{name}`{optional}: {expected}"))
    });
    lines.collect()
}

/// Whether a step asks for variables.
pub(crate) fn has_reports(workflow: &Workflow, step: &PlainStep) -> bool {
    let derives = || !workflow.derived_reports().for_step(&step.id).is_empty();
    if workflow.variables.is_empty() { derives() } else { !step.reports.is_empty() }
}

fn derived_line(variable: &DerivedVariable) -> String {
    let DerivedVariable { name, values, kind } = variable;
    match kind {
        _ if !values.is_empty() && !values.iter().all(Value::is_boolean) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("`{name}` (compared with {})", values.join(", "))
        }
        DerivedKind::Flag => format!("`{name}`: true or false"),
        DerivedKind::Number => format!("`{name}`: a number"),
        DerivedKind::List => format!("`{name}`: a list"),
        DerivedKind::Any => format!("`{name}`"),
    }
}

/// Notes about likely mistakes in a context that nothing declares. It was accepted, and may change the path.
pub fn near_misses(workflow: &Workflow, context: &Context) -> Vec<String> {
    if !workflow.variables.is_empty() || context.is_empty() {
        return Vec::new();
    }
    let derived = workflow.derived_reports();
    let missing: Vec<&str> = derived.names().filter(|name| !context.contains_key(*name)).collect();
    let mut notes = Vec::new();
    for (name, value) in context.iter().take(UNKNOWN_MAX) {
        if notes.len() == ISSUES_MAX {
            break;
        }
        match derived.get(name) {
            None => {
                let meant = nearest(name, missing.iter().copied().take(UNKNOWN_MAX));
                notes.extend(
                    meant.map(|meant| {
                        format!("later steps use `{meant}`, and context has `{name}`")
                    }),
                );
            }
            Some(variable) => notes.extend(near_miss(variable, value)),
        }
    }
    notes
}

fn near_miss(variable: &DerivedVariable, value: &Value) -> Option<String> {
    let DerivedVariable { name, values, kind } = variable;
    let has_words = !values.is_empty() && values.iter().all(Value::is_string);
    let expected = Declaration {
        r#type: Some(match kind {
            DerivedKind::Flag => ValueType::Boolean,
            DerivedKind::Number => ValueType::Number,
            DerivedKind::List => ValueType::List,
            DerivedKind::Any if has_words => ValueType::String,
            DerivedKind::Any => return None,
        }),
        // Other numbers than the compared ones are good too.
        values: has_words.then(|| values.clone()),
        ..Declaration::default()
    };
    if expected.accepts(value) || value.to_string().len() > QUOTED_BYTES_MAX {
        return None;
    }
    let meant = corrections(&expected, value).into_iter().find(|meant| expected.accepts(meant))?;
    Some(format!("`{name}` should be {meant}, and context has {value}"))
}

/// Refuses a context that sets a name by which a workflow refers to earlier outputs.
pub(crate) fn check_session_names(context: &Context) -> Result<(), Refusal> {
    let head = |key: &String| key.split('.').next().map(str::to_owned);
    let taken = SESSION_NAMES
        .iter()
        .find(|name| context.keys().any(|key| head(key).as_deref() == Some(**name)));
    taken.map_or(Ok(()), |variable| Err(Refusal::Reserved { variable }))
}
