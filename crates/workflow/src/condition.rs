//! Conditions: what must hold in a context for a step to run, a rule to apply or a loop to go on.
//! Whatever the context holds, the answer is true or false, unless the call's budget is exhausted before.

use std::fmt;

use budget::{Budget, Exhausted};
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Number, Value, json};

use crate::serial::{Distinct, Fields, present};
use crate::variables::{Variables, compare, equal, is_among, is_truthy};

mod satisfiable;

/// One condition. Everything in it must hold; an empty one always does.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(from = "Fields<ConditionFields>")]
pub struct Condition {
    /// The variable that the comparisons look at.
    pub var: Option<Box<str>>,
    pub clauses: Box<[Clause]>,
}

/// One operator of a condition with its operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    Equals(Value),
    NotEquals(Value),
    Gt(Number),
    Gte(Number),
    Lt(Number),
    Lte(Number),
    In(Vec<Value>),
    Contains(Value),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

// A condition as it is written; `Condition` keeps only the operators that are there. The comments
// below are what an editor shows.
/// An expression over the context. Everything in one object must hold; an empty object is true.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Condition", extend("dependentRequired" = comparisons_need_var()))]
struct ConditionFields {
    /// The context variable to look at: an exact key, or a dotted path. Alone it tests for truth:
    /// absent, null, false, 0 and "" are false.
    #[serde(default, deserialize_with = "present")]
    #[schemars(length(min = 1))]
    var: Option<Box<str>>,
    /// The variable equals this value. Typed and deep: "5" is not 5.
    #[serde(default, deserialize_with = "Distinct::present")]
    equals: Option<Value>,
    /// The variable is absent or differs from this value.
    #[serde(default, deserialize_with = "Distinct::present")]
    not_equals: Option<Value>,
    /// The variable is a number greater than this one.
    #[serde(default, deserialize_with = "present")]
    gt: Option<Number>,
    /// The variable is a number greater than or equal to this one.
    #[serde(default, deserialize_with = "present")]
    gte: Option<Number>,
    /// The variable is a number less than this one.
    #[serde(default, deserialize_with = "present")]
    lt: Option<Number>,
    /// The variable is a number less than or equal to this one.
    #[serde(default, deserialize_with = "present")]
    lte: Option<Number>,
    /// The variable equals one of these values.
    #[serde(default, deserialize_with = "Distinct::present_list")]
    r#in: Option<Vec<Value>>,
    /// The variable is a text with this part, or a list with this item.
    #[serde(default, deserialize_with = "Distinct::present")]
    contains: Option<Value>,
    /// All of these hold. An empty list is true.
    #[serde(default, deserialize_with = "present")]
    and: Option<Vec<Condition>>,
    /// At least one of these holds. An empty list is false.
    #[serde(default, deserialize_with = "present")]
    or: Option<Vec<Condition>>,
    /// This does not hold.
    #[serde(default, deserialize_with = "present")]
    not: Option<Box<Condition>>,
}

impl From<Fields<ConditionFields>> for Condition {
    fn from(Fields(fields): Fields<ConditionFields>) -> Self {
        let clauses = [
            fields.equals.map(Clause::Equals),
            fields.not_equals.map(Clause::NotEquals),
            fields.gt.map(Clause::Gt),
            fields.gte.map(Clause::Gte),
            fields.lt.map(Clause::Lt),
            fields.lte.map(Clause::Lte),
            fields.r#in.map(Clause::In),
            fields.contains.map(Clause::Contains),
            fields.and.map(Clause::And),
            fields.or.map(Clause::Or),
            fields.not.map(Clause::Not),
        ];
        Self { var: fields.var, clauses: clauses.into_iter().flatten().collect() }
    }
}

fn comparisons_need_var() -> Value {
    let comparisons = ["equals", "not_equals", "gt", "gte", "lt", "lte", "in", "contains"];
    comparisons.into_iter().map(|name| (name.to_owned(), json!(["var"]))).collect()
}

impl JsonSchema for Condition {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        ConditionFields::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ConditionFields::json_schema(generator)
    }
}

impl Condition {
    pub fn holds(&self, variables: &Variables<'_, '_>) -> Result<bool, Exhausted> {
        variables.budget().spend(1)?;
        let value = match self.var.as_deref() {
            Some(name) => variables.get(name)?,
            None => None,
        };
        if self.tests_truth() && !is_truthy(value.as_deref()) {
            return Ok(false);
        }
        for clause in &self.clauses {
            let holds = match clause {
                Clause::And(members) => !has_one(members, false, variables)?,
                Clause::Or(members) => has_one(members, true, variables)?,
                Clause::Not(member) => !member.holds(variables)?,
                comparison => comparison.accepts(value.as_deref(), variables.budget())?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A `var` with no comparison of its own tests for truth.
    pub fn tests_truth(&self) -> bool {
        self.var.is_some() && !self.clauses.iter().any(Clause::is_comparison)
    }

    /// Whether some context makes this true. Never wrong when it says no; may say yes for an
    /// expression too large to look through.
    pub fn can_hold(&self) -> bool {
        satisfiable::can_be(self, true)
    }

    /// Whether some context makes this false, with the same promise.
    pub fn can_fail(&self) -> bool {
        satisfiable::can_be(self, false)
    }

    /// For every variable named here, values that together bring about every outcome of the
    /// comparisons on it, "absent" among them. Lets a test walk all paths of a workflow.
    pub fn telling_values(&self) -> Vec<(&str, Vec<Option<Value>>)> {
        satisfiable::telling_values(self)
    }

    /// Calls `visit` with every variable that is named here or further in.
    pub fn each_variable<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        if let Some(var) = &self.var {
            visit(var);
        }
        for clause in &self.clauses {
            for member in clause.members() {
                member.each_variable(visit);
            }
        }
    }
}

impl Clause {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Equals(_) => "equals",
            Self::NotEquals(_) => "not_equals",
            Self::Gt(_) => "gt",
            Self::Gte(_) => "gte",
            Self::Lt(_) => "lt",
            Self::Lte(_) => "lte",
            Self::In(_) => "in",
            Self::Contains(_) => "contains",
            Self::And(_) => "and",
            Self::Or(_) => "or",
            Self::Not(_) => "not",
        }
    }

    pub fn is_comparison(&self) -> bool {
        !matches!(self, Self::And(_) | Self::Or(_) | Self::Not(_))
    }

    /// The conditions inside a composition; none for a comparison.
    pub fn members(&self) -> &[Condition] {
        match self {
            Self::And(members) | Self::Or(members) => members,
            Self::Not(member) => std::slice::from_ref(member),
            _ => &[],
        }
    }

    /// Whether a comparison accepts the variable's value. A composition has no variable: true.
    fn accepts(&self, value: Option<&Value>, budget: &Budget) -> Result<bool, Exhausted> {
        let Some(value) = value else {
            return Ok(matches!(self, Self::NotEquals(_)) || !self.is_comparison());
        };
        Ok(match self {
            Self::Equals(operand) => equal(value, operand, budget)?,
            Self::NotEquals(operand) => !equal(value, operand, budget)?,
            Self::Gt(bound) => ordered(value, bound, |order| order.is_gt()),
            Self::Gte(bound) => ordered(value, bound, |order| order.is_ge()),
            Self::Lt(bound) => ordered(value, bound, |order| order.is_lt()),
            Self::Lte(bound) => ordered(value, bound, |order| order.is_le()),
            Self::In(options) => is_among(value, options, budget)?,
            Self::Contains(part) => match (value, part) {
                (Value::String(text), Value::String(part)) => {
                    budget.spend_scan(text.len() + part.len())?;
                    text.contains(part.as_str())
                }
                (Value::Array(items), part) => is_among(part, items, budget)?,
                _ => false,
            },
            Self::And(_) | Self::Or(_) | Self::Not(_) => true,
        })
    }
}

/// Whether a condition among these comes out so.
fn has_one(
    members: &[Condition],
    holds: bool,
    variables: &Variables<'_, '_>,
) -> Result<bool, Exhausted> {
    for member in members {
        if member.holds(variables)? == holds {
            return Ok(true);
        }
    }
    Ok(false)
}

fn ordered(value: &Value, bound: &Number, accepts: impl Fn(std::cmp::Ordering) -> bool) -> bool {
    match value {
        Value::Number(number) => compare(number, bound).is_some_and(accepts),
        _ => false,
    }
}

/// Written back as it was read: `var` first, then the operators.
impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(var) = &self.var {
            map.serialize_entry("var", var)?;
        }
        for clause in &self.clauses {
            let name = clause.name();
            match clause {
                Clause::Equals(operand)
                | Clause::NotEquals(operand)
                | Clause::Contains(operand) => {
                    map.serialize_entry(name, operand)?;
                }
                Clause::Gt(bound) | Clause::Gte(bound) | Clause::Lt(bound) | Clause::Lte(bound) => {
                    map.serialize_entry(name, bound)?;
                }
                Clause::In(options) => map.serialize_entry(name, options)?,
                Clause::And(members) | Clause::Or(members) => map.serialize_entry(name, members)?,
                Clause::Not(member) => map.serialize_entry(name, member)?,
            }
        }
        map.end()
    }
}

/// For people: `size = "large" and (risk > 3 or not reviewed)`.
impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let var = self.var.as_deref().unwrap_or("?");
        let mut parts: Vec<String> = Vec::new();
        if self.tests_truth() {
            parts.push(var.to_owned());
        }
        for clause in &self.clauses {
            parts.push(match clause {
                Clause::Equals(operand) => format!("{var} = {operand}"),
                Clause::NotEquals(operand) => format!("{var} ≠ {operand}"),
                Clause::Gt(bound) => format!("{var} > {bound}"),
                Clause::Gte(bound) => format!("{var} ≥ {bound}"),
                Clause::Lt(bound) => format!("{var} < {bound}"),
                Clause::Lte(bound) => format!("{var} ≤ {bound}"),
                Clause::In(options) => format!("{var} in {}", Value::Array(options.clone())),
                Clause::Contains(part) => format!("{var} contains {part}"),
                Clause::And(members) => joined(members, " and ", "always"),
                Clause::Or(members) => joined(members, " or ", "never"),
                Clause::Not(member) => format!("not ({member})"),
            });
        }
        match parts.as_slice() {
            [] => out.write_str("always"),
            parts => out.write_str(&parts.join(" and ")),
        }
    }
}

fn joined(members: &[Condition], word: &str, empty: &str) -> String {
    match members {
        [] => empty.to_owned(),
        [only] => only.to_string(),
        members => {
            let members: Vec<String> = members.iter().map(Condition::to_string).collect();
            format!("({})", members.join(word))
        }
    }
}
