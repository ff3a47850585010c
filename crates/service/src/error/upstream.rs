//! What an error of the orchestrator's is for a machine: a JSON-RPC code, its name, and the particulars. An upstream's own
//! error is not among them: its words stay its own, but for secrets that it repeats.

use orchestrator::Error;
use registry::Masks;
use serde_json::{Value, json};

pub const INVALID_PARAMS: (i32, &str) = (-32602, "Invalid params");
const VALIDATION: (i32, &str) = (-32004, "Validation error");
pub const SECURITY: (i32, &str) = (-32007, "Security error");
pub(crate) const UPSTREAM: (i32, &str) = (-32008, "Upstream error");
const TIMEOUT: (i32, &str) = (-32009, "Request timeout");

/// The code and its fixed name.
pub fn code(error: &Error) -> (i32, &'static str) {
    match error {
        Error::NoServer { .. }
        | Error::NoTool(_)
        | Error::TaskOnly { .. }
        | Error::Arguments { .. } => INVALID_PARAMS,
        Error::Denied(_)
        | Error::Untrusted { .. }
        | Error::NotConfirmed { .. }
        | Error::Unauthorized { .. } => SECURITY,
        Error::Uncheckable { .. } => VALIDATION,
        Error::Timeout { .. } => TIMEOUT,
        _ => UPSTREAM,
    }
}

/// What an upstream itself answered, whatever its codes mean: all of it, but for what it repeats that is secret.
pub fn said(error: &Error, masks: &Masks) -> Option<(i64, String, Option<Value>)> {
    let Error::Upstream { code, message, data, .. } = error else { return None };
    let data = data.as_ref().map(|data| {
        let text = data.to_string();
        let hidden = masks.hide(&text);
        // A number may have been secret; what is left of it is a text.
        serde_json::from_str(&hidden).unwrap_or_else(|_| Value::String(hidden.into_owned()))
    });
    Some((*code, masks.hide(message).into_owned(), data))
}

/// The particulars, around a text in which nothing is secret.
pub fn data(error: &Error, details: &str) -> Value {
    let mut data = json!({"details": details});
    match error {
        Error::NoServer { nearest, .. } => data["nearest"] = json!(nearest),
        Error::NoTool(missing) => data["nearest"] = json!(missing.nearest),
        Error::Arguments { problems, .. } => data["problems"] = json!(problems),
        _ => {}
    }
    if error.retryable() {
        data["retryable"] = json!(true);
    }
    if let Some(after) = error.retry_after() {
        data["retryAfterMs"] = json!(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_keeps_its_words_but_for_secrets() {
        let masks = Masks::new(["hunter-22", "4711"]);
        let data = Some(json!({"sent": "Bearer hunter-22", "port": 4711, "line": 3}));
        let (server, message) = ("x".to_owned(), "no `hunter-22` here".to_owned());
        let error = Error::Upstream { server, code: -5, message, data };
        let (code, message, data) = said(&error, &masks).unwrap();
        assert_eq!((code, message.as_str()), (-5, "no `***` here"));
        // Without the secret number it is no JSON any more.
        assert_eq!(data, Some(json!(r#"{"line":3,"port":***,"sent":"Bearer ***"}"#)));
        let (.., data) = said(&error, &Masks::new(["hunter-22"])).unwrap();
        assert_eq!(data, Some(json!({"sent": "Bearer ***", "port": 4711, "line": 3})));
        assert_eq!(said(&Error::Closed, &masks), None);
    }
}
