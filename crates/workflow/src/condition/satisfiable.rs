//! Finds conditions that can never hold. A condition is expanded into alternatives, each a list of
//! comparisons that must all hold; an alternative is possible when every variable in it has a value
//! that its comparisons accept. The values to try are finite: what the comparisons mention, one
//! value between every two bounds, and one of each other kind.

use std::collections::HashMap;

use budget::Budget;
use serde_json::{Number, Value, json};

use super::{Clause, Condition};
use crate::variables::is_truthy;

/// Expansions beyond this many comparisons are not looked through, and taken as possible.
const MAX_EXPANSION: usize = 4_096;
/// Nor are more than this many pairs of values looked at: those to try, and those to compare with.
const MAX_TRIALS: usize = 1_000_000;

/// How many ways to contain some parts and not others a test is given.
const CHOICES_MAX: usize = 16;

/// One comparison on one variable, or its opposite.
#[derive(Clone, Copy)]
struct Literal<'a> {
    /// `None` where a comparison names no variable: it looks at nothing.
    var: Option<&'a str>,
    /// `None` is the truth test of a bare `var`.
    clause: Option<&'a Clause>,
    wanted: bool,
}

impl Literal<'_> {
    fn accepts(&self, value: Option<&Value>) -> bool {
        let outcome = match self.clause {
            // The number of trials is bounded, and both values are the definition's own.
            Some(clause) => {
                clause.accepts(value, &Budget::with_steps(u64::MAX)).unwrap_or(self.wanted)
            }
            None => is_truthy(value),
        };
        outcome == self.wanted
    }

    /// How many values the comparison mentions.
    fn mentioned(&self) -> usize {
        match self.clause {
            Some(Clause::In(options)) => options.len().max(1),
            _ => 1,
        }
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
        Some(alternatives) => {
            let mut trials = MAX_TRIALS;
            alternatives.iter().any(|literals| is_possible(literals, &mut trials))
        }
        None => true,
    }
}

pub(super) fn telling_values(condition: &Condition) -> Vec<(&str, Vec<Option<Value>>)> {
    let mut literals = Vec::new();
    collect(condition, &mut literals);
    let mut told: Vec<(&str, Vec<Option<Value>>)> = Vec::new();
    for (var, same) in by_variable(&literals) {
        let Some(var) = var else {
            continue;
        };
        let mut seen: Vec<Vec<bool>> = Vec::new();
        let mut values = Vec::new();
        for candidate in containing(&same).iter().flat_map(|wanted| candidates(wanted)) {
            let outcome: Vec<bool> = same.iter().map(|l| l.accepts(candidate.as_ref())).collect();
            if !seen.contains(&outcome) {
                seen.push(outcome);
                values.push(candidate);
            }
        }
        told.push((var, values));
    }
    told
}

/// The comparisons with every choice of parts that a value shall contain, as far as they are few.
fn containing<'a>(literals: &[Literal<'a>]) -> Vec<Vec<Literal<'a>>> {
    let mut choices = vec![literals.to_vec()];
    for (at, literal) in literals.iter().enumerate() {
        if matches!(literal.clause, Some(Clause::Contains(_))) && choices.len() < CHOICES_MAX {
            let mut without = choices.clone();
            without.iter_mut().for_each(|choice| choice[at].wanted = false);
            choices.extend(without);
        }
    }
    choices
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
    let var = condition.var.as_deref();
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
            // Reckoned before it is built: two small lists make a large product.
            let size = size(&joined) * part.len() + size(&part) * joined.len();
            if size.max(joined.len() * part.len()) > MAX_EXPANSION {
                return None;
            }
            let pairs = joined.iter().flat_map(|left| {
                part.iter().map(move |right| [left.as_slice(), right.as_slice()].concat())
            });
            joined = pairs.collect();
        } else {
            joined.extend(part);
            if size(&joined).max(joined.len()) > MAX_EXPANSION {
                return None;
            }
        }
    }
    Some(joined)
}

fn size(alternatives: &Alternatives<'_>) -> usize {
    alternatives.iter().map(Vec::len).sum()
}

/// Whether some context makes all of these come true, as far as the trials suffice to tell.
fn is_possible(literals: &[Literal<'_>], trials: &mut usize) -> bool {
    by_variable(literals).iter().all(|(var, same)| {
        let mentioned: usize = same.iter().map(Literal::mentioned).sum();
        *trials = trials.saturating_sub(mentioned * mentioned);
        // A comparison without a variable is a mistake of its own: nothing follows from it.
        if *trials == 0 || var.is_none() {
            return true;
        }
        let candidates = candidates(same);
        let accepted = |value: Option<&Value>| same.iter().all(|literal| literal.accepts(value));
        candidates.iter().any(|candidate| accepted(candidate.as_ref()))
    })
}

/// The comparisons on each variable, in the order in which the variables come first.
fn by_variable<'a>(literals: &[Literal<'a>]) -> Vec<(Option<&'a str>, Vec<Literal<'a>>)> {
    let mut places: HashMap<Option<&str>, usize> = HashMap::new();
    let mut grouped: Vec<(Option<&str>, Vec<Literal<'a>>)> = Vec::new();
    for literal in literals {
        let place = *places.entry(literal.var).or_insert(grouped.len());
        if place == grouped.len() {
            grouped.push((literal.var, Vec::new()));
        }
        grouped[place].1.push(*literal);
    }
    grouped
}

/// Values that between them stand for everything the comparisons can tell apart.
fn candidates(literals: &[Literal<'_>]) -> Vec<Option<Value>> {
    let mut values: Vec<Value> = Vec::new();
    let mut parts: Vec<Value> = Vec::new();
    let mut longest = 0;
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
            Some(Clause::Contains(part)) => {
                longest = longest.max(part.as_str().map_or(0, str::len))
            }
            _ => {}
        }
    }
    values.push(json!(0));
    let numbers: Vec<Number> = values.iter().filter_map(Value::as_number).cloned().collect();
    values.extend(numbers_around(&numbers).into_iter().map(Value::Number));

    // The shortest text with the wanted parts, a list of just them, and a list with one item more,
    // which no comparison mentions: longer than every text that one does.
    let text: Option<String> = parts.iter().map(Value::as_str).collect();
    let texts = values.iter().chain(&parts).filter_map(Value::as_str).map(str::len);
    let longest = texts.max().unwrap_or(0).max(longest);
    let fresh = json!("*".repeat(longest + 1));
    values.extend(text.map(Value::String));
    values.push(Value::Array(parts.clone()));
    values.push(Value::Array(parts.into_iter().chain([fresh]).collect()));
    values.extend([
        json!(true),
        json!("another text"),
        json!({}),
        json!(false),
        json!(""),
        json!(null),
    ]);
    values.into_iter().map(Some).chain([None]).collect()
}

/// Numbers between and beside those given: next to each, half way to the next, and beyond all.
fn numbers_around(numbers: &[Number]) -> Vec<Number> {
    let mut floats: Vec<f64> = numbers.iter().filter_map(Number::as_f64).collect();
    floats.sort_by(f64::total_cmp);
    let between = floats.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let beside = floats.iter().flat_map(|float| [float.next_down(), float.next_up()]);
    let beyond = [floats[0] - 1.0, floats[floats.len() - 1] + 1.0, f64::MIN, f64::MAX];
    let floats: Vec<f64> = between.chain(beside).chain(beyond).collect();
    // Large whole numbers are finer than floats.
    let whole = numbers.iter().filter_map(|number| {
        let number = number.as_i128()?;
        Some([number - 1, number + 1])
    });
    let whole = whole.flatten().filter_map(Number::from_i128);
    floats.into_iter().filter_map(Number::from_f64).chain(whole).collect()
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
            json!({"var": "a", "gte": -1, "not": {"var": "a"}}),
            json!({"var": "a", "lt": -1e300, "not_equals": 5}),
            json!({"var": "a", "gt": 9007199254740992_u64, "lt": 9007199254740994_u64}),
            json!({"var": "a", "contains": "x", "and": [
                {"var": "a", "not_equals": "x"}, {"var": "a", "not_equals": ["x"]},
            ]}),
            json!({"and": [{"not_equals": 1}, {"var": "", "equals": 1}]}),
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
