//! Arguments of the tools: what each is called, and the most that it may have. Each is measured before anything is made
//! of it, so that neither memory nor an answer grows with what is refused.

use engine::{INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, REASON_BYTES_MAX};
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use store::limits::{
    GOAL_BYTES_MAX, ID_BYTES_MAX, NAME_BYTES_MAX, PRINCIPAL_BYTES_MAX, SHARES_MAX,
};
use workflow::Context;
use workflow::limits::ID_MAX;

use super::session_answer::read_revision;

/// The longest query or category: each word is looked for in every workflow or session.
const FILTER_BYTES_MAX: usize = 1024;
/// The longest cursor, which is an id and a few letters.
const CURSOR_BYTES_MAX: usize = 2 * ID_MAX;
/// The longest number, as JSON.
const NUMBER_BYTES_MAX: usize = 64;
/// How many bytes of JSON one byte of a text takes at most: `\u001f`.
const ESCAPED_BYTES_MAX: usize = 6;

/// The type of a field that an argument is read into: an option if it may be left out or null.
pub(super) trait Field<V>: Sized {
    fn from_argument(value: Option<V>) -> Option<Self>;
}

impl<V> Field<V> for V {
    fn from_argument(value: Option<V>) -> Option<Self> {
        value
    }
}

impl<V> Field<V> for Option<V> {
    fn from_argument(value: Self) -> Option<Self> {
        Some(value)
    }
}

/// Declares functions for `deserialize_with`: the argument's name, its type, and how its JSON is read.
macro_rules! readers {
    ($($reader:ident($name:literal): $value:ty = $read:expr;)*) => {$(
        pub(super) fn $reader<'de, D: Deserializer<'de>, F: Field<$value>>(
            given: D,
        ) -> Result<F, D::Error> {
            read(given, $name, $read)
        }
    )*};
}

readers! {
    id("id"): String = text(ID_MAX);
    workflow_id("workflowId"): String = text(ID_MAX);
    step_id("stepId"): String = text(ID_MAX);
    to_step("toStep"): String = text(ID_MAX);
    current_step("currentStep"): String = text(ID_MAX);
    completed_steps("completedSteps"): Vec<String> = texts(usize::MAX, ID_MAX);
    // An imported session keeps its id, which may be longer than ours.
    session_id("sessionId"): String = text(ID_BYTES_MAX);
    query("query"): String = text(FILTER_BYTES_MAX);
    category("category"): String = text(FILTER_BYTES_MAX);
    cursor("cursor"): String = text(CURSOR_BYTES_MAX);
    goal("goal"): String = text(GOAL_BYTES_MAX);
    key("key"): String = text(NAME_BYTES_MAX);
    shared_with("sharedWith"): Vec<String> = texts(SHARES_MAX, PRINCIPAL_BYTES_MAX);
    reason("reason"): String = text(REASON_BYTES_MAX);
    context("context"): Context = object;
    submitted_output("output"): String = text(OUTPUT_BYTES_MAX);
    checked_output("output"): String = text(INPUT_BYTES_MAX);
    iteration("iteration"): u32 = whole_number;
    attempt("attempt"): u32 = whole_number;
    offset("offset"): usize = whole_number;
    fork("fork"): bool = flag;
}

/// A revision, see [`read_revision`].
pub(super) fn revision<'de, D: Deserializer<'de>>(given: D) -> Result<u64, D::Error> {
    let json = <&RawValue>::deserialize(given)?.get();
    let json = if json.len() > NUMBER_BYTES_MAX { "null" } else { json };
    read_revision(&mut serde_json::Deserializer::from_str(json)).map_err(D::Error::custom)
}

fn read<'de, D: Deserializer<'de>, V, F: Field<V>>(
    given: D,
    name: &str,
    read: impl FnOnce(&str) -> Result<V, String>,
) -> Result<F, D::Error> {
    let bad = |why: &str| D::Error::custom(format!("{name} {why}"));
    let value = match <&RawValue>::deserialize(given)?.get() {
        "null" => None,
        json => Some(read(json).map_err(|why| bad(&why))?),
    };
    F::from_argument(value).ok_or_else(|| bad("must not be null"))
}

/// A text of at most this many bytes.
fn text(bytes_max: usize) -> impl Fn(&str) -> Result<String, String> {
    move |json| {
        if !json.starts_with('"') {
            return Err("must be a text".to_owned());
        }
        let too_long = || format!("may have at most {bytes_max} bytes");
        if json.len() > ESCAPED_BYTES_MAX * bytes_max + "\"\"".len() {
            return Err(too_long());
        }
        let text: String = serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        if text.len() > bytes_max { Err(too_long()) } else { Ok(text) }
    }
}

/// At most this many texts, each of at most this many bytes.
fn texts(max: usize, bytes_max: usize) -> impl Fn(&str) -> Result<Vec<String>, String> {
    move |json| {
        if !json.starts_with('[') {
            return Err("must be an array of texts".to_owned());
        }
        check_size(json)?;
        let items: Vec<&RawValue> =
            serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        if items.len() > max {
            return Err(format!("may have at most {max} items"));
        }
        let read = text(bytes_max);
        let items = items.iter().enumerate();
        let items = items.map(|(at, item)| {
            read(item.get()).map_err(|why| format!("has a wrong item: item {} {why}", at + 1))
        });
        items.collect()
    }
}

fn object(json: &str) -> Result<Context, String> {
    if !json.starts_with('{') {
        return Err("must be an object".to_owned());
    }
    check_size(json)?;
    serde_json::from_str(json).map_err(|error| unreadable(&error))
}

/// JSON has one kind of number: 1.0 is 1.
fn whole_number<N: TryFrom<u64>>(json: &str) -> Result<N, String> {
    let value = (json.len() <= NUMBER_BYTES_MAX).then(|| serde_json::from_str::<Value>(json));
    let number = value.and_then(Result::ok).and_then(|value| {
        let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
        value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64))
    });
    let number = number.ok_or("must be a whole number, not less than 0")?;
    N::try_from(number).map_err(|_| format!("is too large: {number}"))
}

fn flag(json: &str) -> Result<bool, String> {
    serde_json::from_str(json).map_err(|_| "must be true or false".to_owned())
}

fn check_size(json: &str) -> Result<(), String> {
    if json.len() > INPUT_BYTES_MAX {
        return Err(format!("may have at most {INPUT_BYTES_MAX} bytes as JSON"));
    }
    Ok(())
}

/// Places in a text that nobody sees are left out.
fn unreadable(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    format!("cannot be read: {text}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Arguments {
        #[serde(deserialize_with = "workflow_id")]
        workflow_id: String,
        #[serde(default, deserialize_with = "attempt")]
        attempt: Option<u32>,
        #[serde(default, deserialize_with = "shared_with")]
        shared_with: Vec<String>,
        #[serde(default, deserialize_with = "context")]
        context: Option<Context>,
        #[serde(default, deserialize_with = "super::fork")]
        fork: Option<bool>,
        #[serde(default, deserialize_with = "some_revision")]
        revision: Option<u64>,
    }

    fn some_revision<'de, D: Deserializer<'de>>(given: D) -> Result<Option<u64>, D::Error> {
        revision(given).map(Some)
    }

    fn read(name: &str, value: &Value) -> Result<Arguments, String> {
        let mut arguments = json!({"workflowId": "letter"});
        arguments[name] = value.clone();
        let read = serde_json::from_str(&arguments.to_string());
        read.map_err(|error: serde_json::Error| {
            let text = error.to_string();
            text.rsplit_once(" at line ").map_or(text.clone(), |(text, _)| text.to_owned())
        })
    }

    #[test]
    fn arguments_up_to_their_limits_are_read() {
        let longest = "ä".repeat(ID_MAX / 2);
        // Escaped, it is six times as long.
        let escaped = format!("{{\"workflowId\": \"{}\"}}", "\\u0061".repeat(ID_MAX));
        let read_escaped: Arguments = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read_escaped.workflow_id, "a".repeat(ID_MAX));
        assert_eq!(read("workflowId", &json!(longest)).unwrap().workflow_id, longest);
        assert_eq!(read("attempt", &json!(2)).unwrap().attempt, Some(2));
        assert_eq!(read("attempt", &json!(2.0)).unwrap().attempt, Some(2));
        assert_eq!(read("attempt", &json!(null)).unwrap().attempt, None);
        let names = vec!["ann"; SHARES_MAX];
        assert_eq!(read("sharedWith", &json!(names)).unwrap().shared_with, names);
        assert_eq!(read("context", &json!({"a": 1})).unwrap().context.unwrap()["a"], 1);
        assert_eq!(read("fork", &json!(true)).unwrap().fork, Some(true));
        assert_eq!(read("revision", &json!(7.0)).unwrap().revision, Some(7));
    }

    #[test]
    fn refused_arguments_are_named() {
        let said = |name: &str, value: Value| read(name, &value).unwrap_err();
        let over = "x".repeat(ID_MAX + 1);
        insta::assert_snapshot!(said("workflowId", json!(over)), @"workflowId may have at most 64 bytes");
        insta::assert_snapshot!(said("workflowId", json!({"a": 1})), @"workflowId must be a text");
        insta::assert_snapshot!(said("workflowId", json!(null)), @"workflowId must not be null");
        insta::assert_snapshot!(said("attempt", json!("1")), @"attempt must be a whole number, not less than 0");
        insta::assert_snapshot!(said("attempt", json!(-1)), @"attempt must be a whole number, not less than 0");
        insta::assert_snapshot!(said("attempt", json!(1.5)), @"attempt must be a whole number, not less than 0");
        insta::assert_snapshot!(said("attempt", json!(5_000_000_000_u64)), @"attempt is too large: 5000000000");
        insta::assert_snapshot!(said("sharedWith", json!("ann")), @"sharedWith must be an array of texts");
        insta::assert_snapshot!(said("sharedWith", json!(["ann", 5])), @"sharedWith has a wrong item: item 2 must be a text");
        insta::assert_snapshot!(said("sharedWith", json!(vec![""; SHARES_MAX + 1])), @"sharedWith may have at most 100 items");
        insta::assert_snapshot!(said("context", json!([])), @"context must be an object");
        insta::assert_snapshot!(said("fork", json!("yes")), @"fork must be true or false");
        insta::assert_snapshot!(said("revision", json!(vec![0; 100])), @"revision must be a whole number, as the last answer had it");
        let large = json!({"a": "x".repeat(INPUT_BYTES_MAX)});
        insta::assert_snapshot!(said("context", large), @"context may have at most 1048576 bytes as JSON");
        let deep = (0..200).fold(json!(1), |inner, _| json!({"a": inner}));
        insta::assert_snapshot!(said("context", deep), @"context cannot be read: recursion limit exceeded");
    }
}
