//! `uniqueItems`. The library's own hashes numbers as floats and compares them exactly, so that whoever writes the value
//! can make its items collide, and the work quadratic. Here every item is written in one canonical form, and those are
//! compared by a hash whose keys nobody knows.

use std::collections::HashSet;

use jsonschema::{Keyword, ValidationError};
use serde_json::{Number, Value};

use super::QUOTED_BYTES_MAX;

/// Floats below this are integers exactly when they have no fraction.
const INTEGER_MAX: f64 = 1e30;

struct UniqueItems {
    is_wanted: bool,
}

pub(super) fn keyword(wanted: &Value) -> Box<dyn for<'i> Keyword<'i>> {
    Box::new(UniqueItems { is_wanted: wanted == &Value::Bool(true) })
}

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let text = instance.to_string();
        let shown = if text.len() <= QUOTED_BYTES_MAX { &text } else { "this" };
        Err(ValidationError::custom(format!("{shown} has non-unique elements")))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Value::Array(items) = instance else { return true };
        let mut seen = HashSet::new();
        !self.is_wanted
            || items.iter().all(|item| {
                let mut form = Vec::new();
                write(item, &mut form);
                seen.insert(form)
            })
    }
}

/// Writes a value so that equal values, and no others, have equal bytes.
fn write(value: &Value, form: &mut Vec<u8>) {
    match value {
        Value::Null => form.push(b'n'),
        Value::Bool(is) => form.push(if *is { b't' } else { b'f' }),
        Value::Number(number) => write_number(number, form),
        Value::String(text) => write_text(text, form),
        Value::Array(items) => {
            form.push(b'[');
            items.iter().for_each(|item| write(item, form));
            form.push(b']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            form.push(b'{');
            for (key, inner) in fields {
                write_text(key, form);
                write(inner, form);
            }
            form.push(b'}');
        }
    }
}

fn write_text(text: &str, form: &mut Vec<u8>) {
    form.push(b's');
    form.extend(text.len().to_le_bytes());
    form.extend(text.as_bytes());
}

/// `1` and `1.0` are one number.
fn write_number(number: &Number, form: &mut Vec<u8>) {
    let float = number.as_f64().unwrap_or(f64::NAN);
    let integer = if float.fract() == 0.0 && float.abs() < INTEGER_MAX {
        let own = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        Some(own.unwrap_or(float as i128))
    } else {
        None
    };
    match integer {
        Some(integer) => {
            form.push(b'i');
            form.extend(integer.to_le_bytes());
        }
        None => {
            form.push(b'd');
            form.extend(float.to_bits().to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_unique_as_values() {
        let is_unique = |items: Value| keyword(&json!(true)).is_valid(&items);
        for same in [
            json!([1, 1.0]),
            json!([0, -0.0]),
            json!([1.5, 1.5]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]),
            json!([18_446_744_073_709_551_615_u64, 18_446_744_073_709_551_615_u64]),
        ] {
            assert!(!is_unique(same.clone()), "{same}");
        }
        for different in [
            json!([18_446_744_073_709_551_615_u64, 18_446_744_073_709_551_614_u64]),
            json!([[[1], 2], [1, [2]], [[1, 2]], [1, 2]]),
            json!([1, "1", true, null, [], {}, "", [null]]),
            json!([["a", "b"], ["ab"], ["a\u{0}b"]]),
            json!([1e300, 1e301, 0.1, 0.2]),
        ] {
            assert!(is_unique(different.clone()), "{different}");
        }
        assert!(keyword(&json!(false)).is_valid(&json!([1, 1])));
    }
}
