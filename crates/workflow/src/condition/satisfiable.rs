//! Finds conditions that can never hold. A condition is expanded into alternatives, each a list of
//! comparisons that must all hold; an alternative is possible when every variable in it has a value
//! that its comparisons accept. The values to try are finite: what the comparisons mention, one
//! value between every two bounds, and one of each other kind.

use serde_json::{Number, Value, json};

use super::{Clause, Condition};
use crate::variables::is_truthy;

/// Expansions beyond this many comparisons are not looked through, and taken as possible.
const MAX_EXPANSION: usize = 4_096;

/// One comparison on one variable, or its opposite.
#[derive(Clone, Copy)]
struct Literal<'a> {
    var: &'a str,
    /// `None` is the truth test of a bare `var`.
    clause: Option<&'a Clause>,
    wanted: bool,
}

impl Literal<'_> {
    fn accepts(&self, value: Option<&Value>) -> bool {
        let outcome = match self.clause {
            Some(clause) => clause.accepts(value),
            None => is_truthy(value),
        };
        outcome == self.wanted
    }
}

type Alternatives<'a> = Vec<Vec<Literal<'a>>>;

pub(super) fn can_be(condition: &Condition, wanted: bool) -> bool {
    // One plain comparison, as nearly every condition is, can go either way.
    if let (Some(_), [only]) = (&condition.var, &*condition.clauses)
        && only.is_comparison()
        && !matches!(only, Clause::In(_))
    {
        return true;
    }
    match expand(condition, wanted) {
        Some(alternatives) => alternatives.iter().any(|literals| is_possible(literals)),
        None => true,
    }
}

pub(super) fn telling_values(condition: &Condition) -> Vec<(&str, Vec<Option<Value>>)> {
    let mut literals = Vec::new();
    collect(condition, &mut literals);
    let mut told: Vec<(&str, Vec<Option<Value>>)> = Vec::new();
    for literal in &literals {
        if told.iter().any(|(var, _)| *var == literal.var) {
            continue;
        }
        let same: Vec<Literal<'_>> = on_variable(&literals, literal.var);
        let mut seen: Vec<Vec<bool>> = Vec::new();
        let mut values = Vec::new();
        for candidate in candidates(&same) {
            let outcome: Vec<bool> = same.iter().map(|l| l.accepts(candidate.as_ref())).collect();
            if !seen.contains(&outcome) {
                seen.push(outcome);
                values.push(candidate);
            }
        }
        told.push((literal.var, values));
    }
    told
}

fn collect<'a>(condition: &'a Condition, literals: &mut Vec<Literal<'a>>) {
    literals.extend(own_literals(condition));
    for clause in &condition.clauses {
        for member in clause.members() {
            collect(member, literals);
        }
    }
}

/// The comparisons of a condition itself, without those of its compositions.
fn own_literals(condition: &Condition) -> impl Iterator<Item = Literal<'_>> {
    let var = condition.var.as_deref().unwrap_or_default();
    let truth = condition.tests_truth().then_some(None);
    let comparisons = condition.clauses.iter().filter(|clause| clause.is_comparison());
    truth.into_iter().chain(comparisons.map(Some)).map(move |clause| Literal {
        var,
        clause,
        wanted: true,
    })
}

/// The alternatives that make the condition come out as wanted, or nothing where there are too many.
fn expand(condition: &Condition, wanted: bool) -> Option<Alternatives<'_>> {
    let own =
        own_literals(condition).map(|literal| Some(vec![vec![Literal { wanted, ..literal }]]));
    let composed = condition.clauses.iter().filter_map(|clause| match clause {
        Clause::And(members) => Some(combine(members.iter().map(|m| expand(m, wanted)), wanted)),
        Clause::Or(members) => Some(combine(members.iter().map(|m| expand(m, wanted)), !wanted)),
        Clause::Not(member) => Some(expand(member, !wanted)),
        _ => None,
    });
    combine(own.chain(composed), wanted)
}

/// Joins parts that must all hold (every pairing of their alternatives), or any one of which may.
fn combine<'a>(
    parts: impl Iterator<Item = Option<Alternatives<'a>>>,
    all: bool,
) -> Option<Alternatives<'a>> {
    let mut joined: Alternatives<'a> = if all { vec![Vec::new()] } else { Vec::new() };
    for part in parts {
        let part = part?;
        if all {
            let pairs = joined.iter().flat_map(|left| {
                part.iter().map(move |right| [left.as_slice(), right.as_slice()].concat())
            });
            joined = pairs.take(MAX_EXPANSION + 1).collect();
        } else {
            joined.extend(part);
        }
        if joined.iter().map(Vec::len).sum::<usize>().max(joined.len()) > MAX_EXPANSION {
            return None;
        }
    }
    Some(joined)
}

fn is_possible(literals: &[Literal<'_>]) -> bool {
    literals.iter().all(|literal| {
        let same = on_variable(literals, literal.var);
        candidates(&same)
            .iter()
            .any(|candidate| same.iter().all(|other| other.accepts(candidate.as_ref())))
    })
}

fn on_variable<'a>(literals: &[Literal<'a>], var: &str) -> Vec<Literal<'a>> {
    literals.iter().copied().filter(|other| other.var == var).collect()
}

/// Values that between them stand for everything the comparisons can tell apart.
fn candidates(literals: &[Literal<'_>]) -> Vec<Option<Value>> {
    let mut values: Vec<Value> = Vec::new();
    let mut bounds: Vec<f64> = vec![0.0];
    let mut parts: Vec<Value> = Vec::new();
    for literal in literals {
        match literal.clause {
            Some(Clause::Equals(operand) | Clause::NotEquals(operand)) => {
                values.push(operand.clone())
            }
            Some(Clause::In(options)) => values.extend(options.iter().cloned()),
            Some(
                Clause::Gt(bound) | Clause::Gte(bound) | Clause::Lt(bound) | Clause::Lte(bound),
            ) => {
                values.push(Value::Number(bound.clone()));
            }
            Some(Clause::Contains(part)) if literal.wanted => parts.push(part.clone()),
            _ => {}
        }
    }
    bounds.extend(values.iter().filter_map(Value::as_f64));
    bounds.sort_by(f64::total_cmp);
    let between = bounds.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let outside = [bounds[0] - 1.0, bounds[bounds.len() - 1] + 1.0];
    let numbers: Vec<f64> = between.chain(outside).collect();
    values.extend(numbers.into_iter().filter_map(Number::from_f64).map(Value::Number));

    // A list of exactly the wanted parts contains as little else as any value can.
    let text: Option<String> = parts.iter().map(Value::as_str).collect();
    values.extend(text.map(Value::String));
    values.push(Value::Array(parts));
    values.extend([
        json!(true),
        json!("\u{1}another text"),
        json!({}),
        json!(false),
        json!(""),
        json!(null),
    ]);
    values.into_iter().map(Some).chain([None]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(value: Value) -> Condition {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn contradictions_are_found() {
        for impossible in [
            json!({"or": []}),
            json!({"not": {}}),
            json!({"var": "a", "in": []}),
            json!({"var": "a", "gt": 5, "lt": 3}),
            json!({"var": "a", "gt": 5, "lt": 5}),
            json!({"var": "a", "gte": 5, "lt": 5}),
            json!({"var": "a", "equals": "x", "gt": 1}),
            json!({"var": "a", "equals": 1, "not_equals": 1.0}),
            json!({"and": [{"var": "a", "equals": 1}, {"var": "a", "equals": 2}]}),
            json!({"and": [{"var": "a"}, {"not": {"var": "a"}}, {"var": "b"}]}),
            json!({"and": [{"var": "a", "equals": "x"}, {"not": {"var": "a", "in": ["x", "y"]}}]}),
            json!({"var": "a", "equals": "x", "or": [{"var": "a", "equals": "y"}, {"or": []}]}),
            json!({"var": "a", "contains": "x", "equals": "abc"}),
            json!({"not": {"or": [{"var": "a", "gt": 1}, {"not": {"var": "a", "gt": 1}}]}}),
        ] {
            assert!(!condition(impossible.clone()).can_hold(), "{impossible}");
        }
    }

    #[test]
    fn what_can_hold_is_left_alone() {
        for possible in [
            json!({}),
            json!({"and": []}),
            json!({"var": "a", "gte": 5, "lte": 5}),
            json!({"var": "a", "gt": 5, "lt": 5.1}),
            json!({"var": "a", "gt": 1, "not_equals": 2}),
            json!({"var": "a", "contains": "x", "not": {"var": "a", "contains": "xy"}}),
            json!({"and": [{"var": "a", "contains": "x"}, {"var": "a", "contains": "y"}]}),
            json!({"and": [{"not": {"var": "a"}}, {"var": "a", "not_equals": null}]}),
            json!({"not": {"var": "a", "equals": 1, "gt": 0}}),
        ] {
            assert!(condition(possible.clone()).can_hold(), "{possible}");
        }
    }

    #[test]
    fn tautologies_cannot_fail() {
        assert!(!condition(json!({})).can_fail());
        assert!(!condition(json!({"or": [{"var": "a"}, {"not": {"var": "a"}}]})).can_fail());
        assert!(condition(json!({"var": "a"})).can_fail());
    }

    #[test]
    fn a_huge_expression_is_taken_as_possible() {
        let pair = json!({"or": [{"var": "a", "equals": 1}, {"var": "b", "equals": 2}]});
        let all: Vec<Value> = std::iter::repeat_n(pair, 40).collect();
        assert!(condition(json!({"and": all})).can_hold());
    }
}
