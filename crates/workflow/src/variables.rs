//! What a condition or a template can see: the agent's context, and on top of it the variables that
//! running loops bind. Owns how a name finds its value and when two values are equal; holds nothing.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

/// A context as an agent sends it.
pub type Context = Map<String, Value>;

/// The context with the variables of the enclosing loops laid over it, innermost last.
#[derive(Debug, Clone)]
pub struct Variables<'a> {
    context: &'a Context,
    bound: Vec<(&'a str, Value)>,
}

impl<'a> Variables<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self { context, bound: Vec::new() }
    }

    /// Binds a loop's variable. A later binding hides an earlier one of the same name.
    pub fn bind(&mut self, name: &'a str, value: Value) {
        self.bound.push((name, value));
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
    pub fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        if let Some(value) = self.exact(name) {
            return Some(Cow::Borrowed(value));
        }
        let (head, path) = name.split_once('.')?;
        let mut value = self.exact(head)?;
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
                    return length(value).map(|length| Cow::Owned(length.into()));
                }
                None => return None,
            }
        }
        Some(Cow::Borrowed(value))
    }

    fn exact(&self, name: &str) -> Option<&Value> {
        let bound = self.bound.iter().rev().find(|(bound, _)| *bound == name);
        bound.map(|(_, value)| value).or_else(|| self.context.get(name))
    }
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// Typed, deep equality: `"5"` is not 5, 1 equals 1.0, case matters.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare(left, right).is_some_and(|o| o.is_eq())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, l)| right.get(key).is_some_and(|r| equal(l, r)))
        }
        _ => left == right,
    }
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
        let variables = Variables::new(&context);
        assert_eq!(variables.get("a.b").as_deref(), Some(&json!(1)));
        assert_eq!(variables.get("a.c.0").as_deref(), Some(&json!(3)));
        assert_eq!(variables.get("a.c.length").as_deref(), Some(&json!(2)));
        assert_eq!(variables.get("a.c.1.length").as_deref(), Some(&json!(4)));
        assert_eq!(variables.get("a.length"), None);
        assert_eq!(variables.get("a.c.2"), None);
        assert_eq!(variables.get("z.b"), None);
    }

    #[test]
    fn an_inner_binding_hides_an_outer_one() {
        let context = context(json!({"item": "from the context"}));
        let mut variables = Variables::new(&context);
        variables.bind("item", json!("outer"));
        let depth = variables.depth();
        variables.bind("item", json!({"name": "inner"}));
        assert_eq!(variables.get("item.name").as_deref(), Some(&json!("inner")));
        variables.unbind(depth);
        assert_eq!(variables.get("item").as_deref(), Some(&json!("outer")));
    }

    #[test]
    fn large_whole_numbers_stay_distinct() {
        assert!(!equal(&json!(9007199254740993_u64), &json!(9007199254740992_u64)));
        assert!(equal(&json!(1), &json!(1.0)));
        assert!(equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!equal(&json!("5"), &json!(5)));
    }
}
