//! Declared variables: each declaration is usable, steps report declared variables, and conditions
//! and loops use declared variables, with values that the declarations allow.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::scope::{self, Scope};
use super::{Report, limits};
use crate::condition::{Clause, Condition};
use crate::criteria::Check;
use crate::definition::{
    Confirmation, Count, Declaration, LoopKind, RESERVED_NAMES, ReportedVariable, Step, ValueType,
    Workflow,
};
use crate::finding::Code;
use crate::limits::is_variable_name;
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::schema;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let list = Pointer::Root.key("variables");
    for (name, declaration) in workflow.variables.iter() {
        check_name(name, &list.key(name), report);
        check_declaration(name, declaration, &list.key(name), report);
    }
    let mut used = BTreeSet::new();
    let mut reported = HashSet::new();
    scope::each_step(workflow, &mut |step, pointer, scope| {
        if let Step::Plain(plain) = step {
            let list = pointer.key("reports");
            for (index, entry) in plain.reports.iter().enumerate() {
                reported.insert(&*entry.name);
                let earlier = plain.reports[..index].iter().find(|it| it.name == entry.name);
                check_report(workflow, entry, earlier, &list.index(index), scope, report);
            }
        }
        if !workflow.variables.is_empty() {
            each_use(step, pointer, &mut |used_as, at| {
                let name = used_as.name();
                used.insert(name.split('.').next().unwrap_or(name));
                check_use(workflow, step, used_as, at, scope, report);
            });
        }
    });
    // In a mended definition, what reports the variable may have been mended away.
    if report.is_mended() {
        return;
    }
    for name in used.into_iter().filter(|name| !reported.contains(name)) {
        if workflow.variables.get(name).is_some() {
            let message = format!("`{name}` is used, and no step reports it");
            let hint = format!("list `{name}` in the `reports` of the step that finds it out");
            let at = list.key(name);
            report.add(Code::UnreportedVariable, &at, At::Key, message, Some(hint));
        }
    }
}

/// Message and hint for a name that is not among the declared ones.
pub(super) fn undeclared<'w>(
    workflow: &'w Workflow,
    name: &str,
    scope: &Scope<'w, '_>,
) -> (String, String) {
    let names = scope.names().chain(workflow.variables.names());
    let meant = if RESERVED_NAMES.contains(&name) { None } else { nearest(name, names) };
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if RESERVED_NAMES.contains(&name) => {
            format!("choose another name: `{name}` belongs to the session")
        }
        None => format!("declare `{name}` in `variables`"),
    };
    (format!("the variable `{name}` is not declared"), hint)
}

fn check_name(name: &str, at: &Pointer<'_>, report: &mut Report) {
    if !is_variable_name(name) {
        let message = format!("`{name}` cannot be the name of a variable");
        let hint = Some("use letters, digits and `_`, and begin with a letter".to_owned());
        report.add(Code::BadId, at, At::Key, message, hint);
    } else if RESERVED_NAMES.contains(&name) {
        let message = format!("`{name}` is a reserved name: it belongs to the session");
        let hint = Some("choose another name".to_owned());
        report.add(Code::BadDeclaration, at, At::Key, message, hint);
    }
}

fn check_declaration(name: &str, declaration: &Declaration, at: &Pointer<'_>, report: &mut Report) {
    let Declaration { description, r#type, values, items, schema } = declaration;
    if let Some(description) = description {
        limits::text(description, usize::MAX, &at.key("description"), report);
    }
    let mut refuse = |field: &str, message: String, hint: &str| {
        let hint = Some(hint.to_owned());
        report.add(Code::BadDeclaration, &at.key(field), At::Value, message, hint);
    };
    match (r#type, schema) {
        (None, None) => {
            let message = format!("`{name}` needs a `type` or a `schema`");
            let hint = Some("write what it holds, such as `type: boolean`".to_owned());
            return report.add(Code::Missing, &at.key("type"), At::Value, message, hint);
        }
        (Some(_), Some(_)) => {
            let message = format!("`{name}` has a `type` and a `schema`");
            refuse("schema", message, "keep one of them");
        }
        (None, Some(schema)) => {
            if let Err(error) = schema::check(&schema.value()) {
                refuse(
                    "schema",
                    format!("the schema cannot be used: {error}"),
                    "correct the schema",
                );
            }
        }
        (Some(_), None) => {}
    }
    if items.is_some() && *r#type != Some(ValueType::List) {
        let message = format!("only a `list` has `items`, and `{name}` is not a list");
        refuse("items", message, "write `type: list`, or remove `items`");
    }
    let Some(values) = values else { return };
    if values.is_empty() {
        let message = format!("`{name}` can have no value");
        let hint = Some("list the values, or remove the field".to_owned());
        return report.add(Code::Empty, &at.key("values"), At::Value, message, hint);
    }
    match r#type {
        Some(of) if of.has_values() => {
            for value in values.iter().filter(|value| !of.accepts(value)) {
                let message = format!("{value} is not {}, as `{name}` is", of.name());
                refuse("values", message, "correct the value or the `type`");
            }
        }
        _ => refuse(
            "values",
            "only a `string`, `number` or `integer` has `values`".to_owned(),
            "use a `schema` for the others",
        ),
    }
}

fn check_report<'w>(
    workflow: &'w Workflow,
    entry: &ReportedVariable,
    earlier: Option<&ReportedVariable>,
    at: &Pointer<'_>,
    scope: &Scope<'w, '_>,
    report: &mut Report,
) {
    let name = &*entry.name;
    if !is_variable_name(name) {
        check_name(name, at, report);
    } else if let Some(earlier) = earlier {
        let is_same = earlier == entry;
        let code = if is_same { Code::Repeated } else { Code::BadDeclaration };
        let message = format!("`{name}` stands earlier in this list");
        let hint = Some("remove one of them".to_owned());
        report.add(code, at, At::Value, message, hint);
    } else if workflow.variables.get(name).is_none() {
        let (message, hint) = undeclared(workflow, name, scope);
        report.add(Code::UndeclaredVariable, at, At::Value, message, Some(hint));
    }
}

/// How a step, a loop or a rule uses a variable.
#[derive(Clone, Copy)]
pub(super) enum Use<'w> {
    /// The comparisons of one condition.
    Condition(&'w Condition, &'w str),
    /// `items` of a `forEach` loop.
    Items(&'w str),
    /// `count` of a `for` loop.
    Count(&'w str),
}

impl<'w> Use<'w> {
    pub(super) fn name(self) -> &'w str {
        match self {
            Self::Condition(_, name) | Self::Items(name) | Self::Count(name) => name,
        }
    }
}

/// Calls `visit` with every use of a variable at a step, except in templates.
pub(super) fn each_use<'w>(
    step: &'w Step,
    pointer: &Pointer<'_>,
    visit: &mut dyn FnMut(Use<'w>, &Pointer<'_>),
) {
    if let Some(condition) = step.run_condition() {
        in_condition(condition, &pointer.key("runCondition"), visit);
    }
    if let Some(Confirmation::Where(condition)) = step.require_confirmation() {
        in_condition(condition, &pointer.key("requireConfirmation"), visit);
    }
    match step {
        Step::Loop(step) => {
            let settings = pointer.key("loop");
            match &step.r#loop.kind {
                LoopKind::While { condition } | LoopKind::Until { condition } => {
                    in_condition(condition, &settings.key("condition"), visit);
                }
                LoopKind::For { count: Count::Variable(name) } => {
                    visit(Use::Count(name), &settings.key("count"));
                }
                LoopKind::ForEach { items, .. } => {
                    visit(Use::Items(items), &settings.key("items"));
                }
                LoopKind::For { .. } => {}
            }
        }
        Step::Plain(step) => {
            let Some(criteria) = &step.validation_criteria else { return };
            let at = pointer.key("validationCriteria");
            super::criteria::each_check(criteria, &at, &mut |check, at| {
                if let Check::Rule(rule) = check
                    && let Some(condition) = &rule.condition
                {
                    in_condition(condition, &at.key("condition"), visit);
                }
            });
        }
    }
}

fn in_condition<'w>(
    condition: &'w Condition,
    pointer: &Pointer<'_>,
    visit: &mut dyn FnMut(Use<'w>, &Pointer<'_>),
) {
    if let Some(name) = condition.var.as_deref().filter(|name| !name.is_empty()) {
        visit(Use::Condition(condition, name), pointer);
    }
    for clause in &condition.clauses {
        let at = pointer.key(clause.name());
        match clause {
            Clause::And(members) | Clause::Or(members) => {
                for (index, member) in members.iter().enumerate() {
                    in_condition(member, &at.index(index), visit);
                }
            }
            Clause::Not(member) => in_condition(member, &at, visit),
            _ => {}
        }
    }
}

fn check_use<'w>(
    workflow: &'w Workflow,
    step: &Step,
    used_as: Use<'_>,
    at: &Pointer<'_>,
    scope: &Scope<'w, '_>,
    report: &mut Report,
) {
    let name = used_as.name();
    let head = name.split('.').next().unwrap_or(name);
    // A loop looks at its own condition with its own variables bound.
    let binds_itself = || match step {
        Step::Loop(step) => step.r#loop.variables().any(|bound| bound == head),
        Step::Plain(_) => false,
    };
    let Some(declaration) = workflow.variables.get(head) else {
        if !scope.binds(head) && !binds_itself() {
            let (message, hint) = undeclared(workflow, head, scope);
            let at = match used_as {
                Use::Condition(..) => at.key("var"),
                Use::Items(_) | Use::Count(_) => return add_undeclared(at, message, hint, report),
            };
            add_undeclared(&at, message, hint, report);
        }
        return;
    };
    // Nothing is declared about the inside of a value.
    if name != head || scope.binds(head) {
        return;
    }
    match used_as {
        Use::Condition(condition, _) => {
            for clause in &condition.clauses {
                check_comparison(name, declaration, clause, at, report);
            }
        }
        Use::Items(_) => {
            let is_list = declaration.r#type.is_none_or(|of| of == ValueType::List);
            check_loop(name, declaration, is_list, "a list", at, report);
        }
        Use::Count(_) => {
            let is_number = declaration
                .r#type
                .is_none_or(|of| matches!(of, ValueType::Number | ValueType::Integer));
            check_loop(name, declaration, is_number, "a number", at, report);
        }
    }
}

fn add_undeclared(at: &Pointer<'_>, message: String, hint: String, report: &mut Report) {
    report.add(Code::UndeclaredVariable, at, At::Value, message, Some(hint));
}

fn check_loop(
    name: &str,
    declaration: &Declaration,
    is_good: bool,
    wanted: &str,
    at: &Pointer<'_>,
    report: &mut Report,
) {
    if !is_good {
        let expected = declaration.expected();
        let message = format!("the loop needs {wanted}, and `{name}` is {expected}");
        let hint = Some("correct the declaration, or use another variable".to_owned());
        report.add(Code::ImpossibleValue, at, At::Value, message, hint);
    }
}

/// A comparison that no value of the declaration can decide.
fn check_comparison(
    name: &str,
    declaration: &Declaration,
    clause: &Clause,
    at: &Pointer<'_>,
    report: &mut Report,
) {
    let Some(of) = declaration.r#type else { return };
    let is_number = matches!(of, ValueType::Number | ValueType::Integer);
    let impossible = match clause {
        Clause::Equals(value) | Clause::NotEquals(value) => {
            (!declaration.accepts(value)).then_some(value)
        }
        Clause::In(options) => options.iter().find(|value| !declaration.accepts(value)),
        Clause::Contains(part) => {
            let can_be = match of {
                ValueType::String => part.is_string(),
                ValueType::List => declaration.items.is_none_or(|items| items.accepts(part)),
                _ => false,
            };
            (!can_be).then_some(part)
        }
        Clause::Gt(_) | Clause::Gte(_) | Clause::Lt(_) | Clause::Lte(_) if !is_number => {
            let message = format!("`{name}` is {}, not a number", declaration.expected());
            let hint = Some("compare with `equals` or `in`, or correct the declaration".to_owned());
            let at = at.key(clause.name());
            return report.add(Code::ImpossibleValue, &at, At::Value, message, hint);
        }
        _ => None,
    };
    let Some(value) = impossible else { return };
    let expected = declaration.expected();
    let message = format!("`{name}` cannot be {value}: it is {expected}");
    let near = value.as_str().and_then(|value| {
        let options = declaration.values.iter().flatten().filter_map(Value::as_str);
        nearest(value, options)
    });
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("correct the value, or the declaration of `{name}`"),
    };
    report.add(Code::ImpossibleValue, &at.key(clause.name()), At::Value, message, Some(hint));
}
