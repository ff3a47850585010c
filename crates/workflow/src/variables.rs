//! What a condition or a template can see: the agent's context, and on top of it the variables that
//! running loops bind. Owns how a name finds its value and when two values are equal; looking costs the call's budget.

use std::borrow::Cow;

use budget::{Budget, Exhausted};
use serde_json::{Map, Number, Value};

use crate::definition::Workflow;
use crate::template::{OutputSource, Outputs};

/// A context as an agent sends it.
pub type Context = Map<String, Value>;

/// The context with the variables of the enclosing loops laid over it, innermost last.
#[derive(Debug, Clone)]
pub struct Variables<'a, 'b> {
    context: &'a Context,
    /// Names with their values, innermost last; none for a hidden variable.
    bound: Vec<(&'a str, Option<Value>)>,
    dotted_keys: DottedKeys,
    outputs: Option<OutputSource<'b>>,
    budget: &'b Budget,
}

/// Whether a key of the context with a dot, such as `file.name`, hides the variable of a loop, such as `file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum DottedKeys {
    #[default]
    HideBindings,
    /// In workflows that declare their variables.
    Outside,
}

impl<'a, 'b> Variables<'a, 'b> {
    pub fn new(context: &'a Context, budget: &'b Budget) -> Self {
        let dotted_keys = DottedKeys::default();
        Self { context, bound: Vec::new(), dotted_keys, outputs: None, budget }
    }

    /// The variables of a workflow. If it declares them, no dotted key of the context hides what a loop binds.
    pub fn for_workflow(workflow: &Workflow, context: &'a Context, budget: &'b Budget) -> Self {
        let dotted_keys = match workflow.variables.is_empty() {
            true => DottedKeys::HideBindings,
            false => DottedKeys::Outside,
        };
        Self { dotted_keys, ..Self::new(context, budget) }
    }

    /// Adds the outputs of earlier steps, which templates can refer to.
    pub fn with_outputs(mut self, workflow: &'b Workflow, outputs: &'b dyn Outputs) -> Self {
        self.outputs = Some(OutputSource { workflow, outputs });
        self
    }

    pub(crate) fn outputs(&self) -> Option<OutputSource<'b>> {
        self.outputs
    }

    /// The budget of the call that looks at them.
    pub fn budget(&self) -> &'b Budget {
        self.budget
    }

    /// Binds a loop's variable. A later binding hides an earlier one of the same name.
    pub fn bind(&mut self, name: &'a str, value: Value) {
        self.bound.push((name, Some(value)));
    }

    /// Makes a variable absent, whatever the context has.
    pub fn hide(&mut self, name: &'a str) {
        self.bound.push((name, None));
    }

    /// Whether a loop has bound this name.
    pub fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|(bound, _)| *bound == name)
    }

    /// How many names are bound, to be handed to [`Variables::unbind`] when a loop's body is left.
    pub fn depth(&self) -> usize {
        self.bound.len()
    }

    pub fn unbind(&mut self, depth: usize) {
        self.bound.truncate(depth);
    }

    /// The value of `name`: the exact key first, then a dotted path. A path goes through objects by
    /// key and lists by index, and may end in `length` for a list or a text.
    pub fn get(&self, name: &str) -> Result<Option<Cow<'_, Value>>, Exhausted> {
        self.budget.spend_scan(name.len() + self.bound.len())?;
        let path = name.split_once('.');
        let is_inside_binding = self.dotted_keys == DottedKeys::Outside
            && path.is_some_and(|(head, _)| self.is_bound(head));
        if !is_inside_binding && let Some(value) = self.exact(name) {
            return Ok(Some(Cow::Borrowed(value)));
        }
        let Some((head, path)) = path else { return Ok(None) };
        match self.exact(head) {
            Some(value) => follow(value, path, self.budget),
            None => Ok(None),
        }
    }

    fn exact(&self, name: &str) -> Option<&Value> {
        match self.bound.iter().rev().find(|(bound, _)| *bound == name) {
            Some((_, value)) => value.as_ref(),
            None => self.context.get(name),
        }
    }
}

/// The value at a path: through objects by key and through lists by index, at the end perhaps
/// `length`.
pub(crate) fn follow<'v>(
    mut value: &'v Value,
    path: &str,
    budget: &Budget,
) -> Result<Option<Cow<'v, Value>>, Exhausted> {
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let inner = match value {
            Value::Object(fields) => fields.get(segment),
            Value::Array(items) => segment.parse().ok().and_then(|at: usize| items.get(at)),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None if segment == "length" && segments.peek().is_none() => {
                if let Value::String(text) = value {
                    budget.spend_scan(text.len())?;
                }
                return Ok(length(value).map(|length| Cow::Owned(length.into())));
            }
            None => return Ok(None),
        }
    }
    Ok(Some(Cow::Borrowed(value)))
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// Typed, deep equality: `"5"` is not 5, 1 equals 1.0, case matters.
pub fn equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool, Exhausted> {
    budget.spend(1)?;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            Ok(compare(left, right).is_some_and(|o| o.is_eq()))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (left, right) in left.iter().zip(right) {
                if !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            for (key, left) in left {
                budget.spend_scan(key.len())?;
                let Some(right) = right.get(key) else { return Ok(false) };
                if !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::String(left), Value::String(right)) if left.len() == right.len() => {
            budget.spend_scan(left.len())?;
            Ok(left == right)
        }
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Null, Value::Null) => Ok(true),
        _ => Ok(false),
    }
}

/// Whether a value equals one of these.
pub fn is_among(value: &Value, options: &[Value], budget: &Budget) -> Result<bool, Exhausted> {
    for option in options {
        if equal(value, option, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Orders two JSON numbers. Whole numbers are compared as such, so that large ids stay distinct.
pub fn compare(left: &Number, right: &Number) -> Option<std::cmp::Ordering> {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Absent, null, false, 0 and "" are false; everything else is true.
pub fn is_truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn context(value: Value) -> Context {
        match value {
            Value::Object(fields) => fields,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn the_exact_key_comes_before_the_path() {
        let context = context(json!({"a.b": 1, "a": {"b": 2, "c": [3, "four"]}}));
        let budget = Budget::for_call();
        let variables = Variables::new(&context, &budget);
        assert_eq!(variables.get("a.b").unwrap().as_deref(), Some(&json!(1)));
        assert_eq!(variables.get("a.c.0").unwrap().as_deref(), Some(&json!(3)));
        assert_eq!(variables.get("a.c.length").unwrap().as_deref(), Some(&json!(2)));
        assert_eq!(variables.get("a.c.1.length").unwrap().as_deref(), Some(&json!(4)));
        assert_eq!(variables.get("a.length"), Ok(None));
        assert_eq!(variables.get("a.c.2"), Ok(None));
        assert_eq!(variables.get("z.b"), Ok(None));
    }

    #[test]
    fn an_inner_binding_hides_an_outer_one() {
        let context = context(json!({"item": "from the context"}));
        let budget = Budget::for_call();
        let mut variables = Variables::new(&context, &budget);
        variables.bind("item", json!("outer"));
        let depth = variables.depth();
        variables.bind("item", json!({"name": "inner"}));
        assert_eq!(variables.get("item.name").unwrap().as_deref(), Some(&json!("inner")));
        variables.unbind(depth);
        assert_eq!(variables.get("item").unwrap().as_deref(), Some(&json!("outer")));
    }

    #[test]
    fn dotted_key_hides_a_binding_only_without_declarations() {
        let context = context(json!({"file.risky": false, "file": {"risky": false}, "a.b": 1}));
        let budget = Budget::for_call();
        let workflow = |variables: Value| -> Workflow {
            let steps = json!([{"id": "one", "title": "One", "prompt": "One"}]);
            let definition = json!({
                "id": "one.two", "name": "N", "description": "D", "version": "1.0.0",
                "variables": variables, "steps": steps,
            });
            serde_json::from_value(definition).unwrap()
        };
        let risky = |workflow: &Workflow| {
            let mut variables = Variables::for_workflow(workflow, &context, &budget);
            assert_eq!(variables.get("file.risky").unwrap().as_deref(), Some(&json!(false)));
            variables.bind("file", json!({"risky": true}));
            assert_eq!(variables.get("a.b").unwrap().as_deref(), Some(&json!(1)));
            variables.get("file.risky").unwrap().map(Cow::into_owned)
        };
        assert_eq!(risky(&workflow(json!({}))), Some(json!(false)));
        assert_eq!(risky(&workflow(json!({"ok": {"type": "boolean"}}))), Some(json!(true)));
    }

    #[test]
    fn hidden_variable_is_absent() {
        let context = context(json!({"ok": true}));
        let budget = Budget::for_call();
        let mut variables = Variables::new(&context, &budget);
        let depth = variables.depth();
        variables.hide("ok");
        assert_eq!(variables.get("ok"), Ok(None));
        variables.unbind(depth);
        assert_eq!(variables.get("ok").unwrap().as_deref(), Some(&json!(true)));
    }

    #[test]
    fn large_whole_numbers_stay_distinct() {
        let equal = |left: &Value, right: &Value| equal(left, right, &Budget::for_call()).unwrap();
        assert!(!equal(&json!(9007199254740993_u64), &json!(9007199254740992_u64)));
        assert!(equal(&json!(1), &json!(1.0)));
        assert!(equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!equal(&json!("5"), &json!(5)));
    }
}
