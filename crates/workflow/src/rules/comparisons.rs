//! Comparisons with a variable that can have only a few values, by `values` or by an `enum` in its schema: at least one of
//! them fits. Values of another type than the declared one are reported with the uses of variables.

use std::cmp::Ordering;
use std::collections::HashMap;

use budget::Budget;
use serde_json::{Number, Value};

use super::variables::{Use, each_use};
use super::{Report, scope};
use crate::condition::Clause;
use crate::definition::{Declaration, ValueType, Workflow};
use crate::finding::Code;
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::tree::At;
use crate::variables::{compare, equal};

/// Comparisons with a variable of more values are not looked at: each is compared with each.
const VALUES_MAX: usize = 1_000;
/// What comparing two of them may take.
const EQUAL_STEPS_MAX: u64 = 10_000;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let domains = workflow.variables.iter();
    let domains = domains.filter_map(|(name, declaration)| Some((name, Domain::of(declaration)?)));
    let domains: HashMap<&str, Domain> = domains.collect();
    if domains.is_empty() {
        return;
    }
    scope::each_step(workflow, &mut |step, pointer, scope| {
        each_use(step, pointer, &mut |used_as, at| {
            let Use::Condition(condition, name) = used_as else { return };
            // The variable of a loop has values of its own.
            let Some(domain) = domains.get(name).filter(|_| !scope.binds(name)) else { return };
            for clause in &condition.clauses {
                domain.check(name, clause, &at.key(clause.name()), report);
            }
        });
    });
}

/// The values that a variable can have.
struct Domain {
    values: Declaration,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `values` of strings.
    Words,
    /// `values` of numbers.
    Numbers,
    /// The `enum` of a schema.
    Schema,
    /// The `enum` of the items of a list, in a schema.
    Items,
}

impl Domain {
    fn of(declaration: &Declaration) -> Option<Self> {
        let (values, kind) = match (&declaration.values, declaration.r#type) {
            (Some(values), Some(ValueType::String)) => (values.clone(), Kind::Words),
            (Some(values), Some(ValueType::Number | ValueType::Integer)) => {
                (values.clone(), Kind::Numbers)
            }
            _ => {
                let schema = declaration.schema.as_ref()?.value();
                match enumerated(&schema) {
                    Some(values) => (values, Kind::Schema),
                    None if schema.get("type")? == "array"
                        && schema.get("prefixItems").is_none() =>
                    {
                        (enumerated(schema.get("items")?)?, Kind::Items)
                    }
                    None => return None,
                }
            }
        };
        let is_checked = (1..=VALUES_MAX).contains(&values.len());
        let values = Declaration { values: Some(values), ..Declaration::default() };
        is_checked.then_some(Self { values, kind })
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.values.values.iter().flatten()
    }

    fn check(&self, name: &str, clause: &Clause, at: &Pointer<'_>, report: &mut Report) {
        let Some((what, near)) = self.impossible(clause) else { return };
        let items = if self.kind == Kind::Items { "a list of " } else { "" };
        let message = format!("`{name}` cannot {what}: it is {items}{}", self.values.expected());
        let hint =
            near.unwrap_or_else(|| format!("correct the value, or the declaration of `{name}`"));
        report.add(Code::ImpossibleValue, at, At::Value, message, Some(hint));
    }

    /// What the variable cannot be or do, and the value that may be meant.
    fn impossible(&self, clause: &Clause) -> Option<(String, Option<String>)> {
        let compared = match clause {
            Clause::Equals(value) | Clause::NotEquals(value) => std::slice::from_ref(value),
            Clause::In(options) => options,
            Clause::Contains(part) => {
                let is_known = !self.can_contain(part)?;
                return is_known.then(|| (format!("contain {part}"), self.nearest(part)));
            }
            Clause::Gt(bound) => return self.beyond("greater than", bound, Ordering::is_gt),
            Clause::Gte(bound) => return self.beyond("at least", bound, Ordering::is_ge),
            Clause::Lt(bound) => return self.beyond("less than", bound, Ordering::is_lt),
            Clause::Lte(bound) => return self.beyond("at most", bound, Ordering::is_le),
            Clause::And(_) | Clause::Or(_) | Clause::Not(_) => return None,
        };
        if self.kind != Kind::Schema {
            return None;
        }
        let strange = compared.iter().find(|value| !self.values.accepts(value))?;
        Some((format!("be {strange}"), self.nearest(strange)))
    }

    /// Whether a value has this part; none if that is not a matter of the values.
    fn can_contain(&self, part: &Value) -> Option<bool> {
        let has = |value: &Value| match (value, part) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(items), part) => items.iter().any(|item| is_same(item, part)),
            _ => false,
        };
        match self.kind {
            Kind::Words if !part.is_string() => None,
            Kind::Numbers => None,
            Kind::Words | Kind::Schema => Some(self.values().any(has)),
            Kind::Items => Some(self.values.accepts(part)),
        }
    }

    /// A bound that no value is beyond.
    fn beyond(
        &self,
        how: &str,
        bound: &Number,
        is_beyond: fn(Ordering) -> bool,
    ) -> Option<(String, Option<String>)> {
        let fits = |value: &Value| match value {
            Value::Number(number) => compare(number, bound).is_some_and(is_beyond),
            _ => false,
        };
        let is_known = matches!(self.kind, Kind::Numbers | Kind::Schema);
        let near = || self.nearest(&Value::Number(bound.clone()));
        (is_known && !self.values().any(fits)).then(|| (format!("be {how} {bound}"), near()))
    }

    /// The nearest of the values, as a hint.
    fn nearest(&self, value: &Value) -> Option<String> {
        if let Some(text) = value.as_str() {
            let near = nearest(text, self.values().filter_map(Value::as_str))?;
            return Some(format!("did you mean `{near}`?"));
        }
        let wanted = value.as_f64()?;
        let distance = |value: &Value| value.as_f64().map(|number| (number - wanted).abs());
        let distances = self.values().filter_map(|value| Some((distance(value)?, value)));
        let (_, near) = distances.min_by(|(left, _), (right, _)| left.total_cmp(right))?;
        Some(format!("the nearest value is {near}"))
    }
}

/// Whether two values are equal to a condition: 1 is 1.0. Where that takes too long to tell, they may be.
fn is_same(left: &Value, right: &Value) -> bool {
    equal(left, right, &Budget::with_steps(EQUAL_STEPS_MAX)).unwrap_or(true)
}

/// The values that a schema lists. Beside a reference, old drafts do not look at them.
fn enumerated(schema: &Value) -> Option<Vec<Value>> {
    let values = schema.get("enum")?.as_array()?;
    schema.get("$ref").is_none().then(|| values.clone())
}
