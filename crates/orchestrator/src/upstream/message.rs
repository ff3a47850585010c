//! Takes apart what an upstream says, as far as is needed to know whom it concerns. Results stay text.

use std::borrow::Cow;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use tool_schema::shallow;

/// So many messages of a batch are read.
const BATCH_MAX: usize = 1_000;

/// One message of an upstream.
#[derive(Debug)]
pub(crate) enum Message<'m> {
    Result {
        id: RequestId,
        result: &'m RawValue,
    },
    Error {
        id: Option<RequestId>,
        error: ErrorObject,
    },
    /// It wants something.
    Request {
        id: RequestId,
        method: Cow<'m, str>,
        params: Option<&'m RawValue>,
    },
    /// It tells something.
    Notification {
        method: Cow<'m, str>,
        params: Option<&'m RawValue>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ErrorObject {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is not JSON")]
    NotJson,
    #[error("it is no message of JSON-RPC")]
    NotAMessage,
    /// It answers something of ours, and that is all that can be told.
    #[error("it answers with neither a result nor an error")]
    NoAnswer { id: RequestId },
}

/// The messages in a line: one, or those of a batch.
pub(crate) fn read(text: &str) -> Vec<Result<Message<'_>, Unreadable>> {
    if !text.trim_start().starts_with('[') {
        return vec![one(text)];
    }
    match shallow::items(text, BATCH_MAX) {
        Some(messages) => messages.items.into_iter().map(|message| one(message.get())).collect(),
        None => vec![Err(Unreadable::NotJson)],
    }
}

#[derive(Deserialize)]
struct Envelope<'m> {
    #[serde(borrow, default)]
    id: Option<&'m RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    params: Option<&'m RawValue>,
    /// A result that is `null` is one.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'m RawValue>,
    #[serde(borrow, default)]
    error: Option<&'m RawValue>,
}

/// For a field that is there where it is `null`, too.
pub(super) fn present<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

fn one(text: &str) -> Result<Message<'_>, Unreadable> {
    let envelope = serde_json::from_str::<Envelope<'_>>(text).map_err(|error| {
        if error.is_data() { Unreadable::NotAMessage } else { Unreadable::NotJson }
    })?;
    let id = match envelope.id {
        Some(id) => Some(read_id(id.get()).ok_or(Unreadable::NotAMessage)?),
        None => None,
    };
    match (envelope.method, id) {
        (Some(method), Some(id)) => Ok(Message::Request { id, method, params: envelope.params }),
        (Some(method), None) => Ok(Message::Notification { method, params: envelope.params }),
        (None, id) => answer(id.map(ours), envelope.result, envelope.error),
    }
}

fn answer<'m>(
    id: Option<RequestId>,
    result: Option<&'m RawValue>,
    error: Option<&RawValue>,
) -> Result<Message<'m>, Unreadable> {
    if let Some(error) = error {
        return Ok(Message::Error { id, error: ErrorObject::read(error.get()) });
    }
    match (id, result) {
        (Some(id), Some(result)) => Ok(Message::Result { id, result }),
        (Some(id), None) => Err(Unreadable::NoAnswer { id }),
        (None, _) => Err(Unreadable::NotAMessage),
    }
}

/// A number with a fraction that is none is that number.
fn read_id(text: &str) -> Option<RequestId> {
    let id = serde_json::from_str(text).ok();
    id.or_else(|| text.strip_suffix(".0")?.parse().ok().map(RequestId::Number))
}

/// Our ids are numbers, and some servers write them as texts.
fn ours(id: RequestId) -> RequestId {
    match &id {
        RequestId::String(text) => text.parse().map_or(id, RequestId::Number),
        RequestId::Number(_) => id,
    }
}

impl ErrorObject {
    /// Whatever is odd about it, it says that there is no result.
    fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Fields<'e> {
            #[serde(borrow, default)]
            code: Option<&'e RawValue>,
            #[serde(borrow, default)]
            message: Option<&'e RawValue>,
            #[serde(borrow, default)]
            data: Option<&'e RawValue>,
        }
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else {
            return Self {
                code: 0,
                message: text.chars().take(MESSAGE_SHOWN).collect(),
                data: None,
            };
        };
        let code = fields.code.and_then(|code| {
            let whole = serde_json::from_str::<i64>(code.get()).ok();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a code with a fraction is cut to a whole one"
            )]
            let cut = || serde_json::from_str::<f64>(code.get()).ok().map(|code| code as i64);
            whole.or_else(cut)
        });
        let message = fields.message.map(|message| {
            let text = serde_json::from_str::<Cow<'_, str>>(message.get());
            untrusted_text::cut(&text.unwrap_or(Cow::Borrowed(message.get())), TEXT_BYTES_MAX)
        });
        let data = fields.data.map(|data| {
            let left_out = || Value::String(format!("[{} bytes, left out]", data.get().len()));
            if data.get().len() > DATA_BYTES_MAX {
                return left_out();
            }
            // What is nested too deeply cannot be taken apart.
            serde_json::from_str(data.get()).unwrap_or_else(|_| left_out())
        });
        Self { code: code.unwrap_or(0), message: message.unwrap_or_default(), data }
    }
}

/// So much of an error that makes no sense is shown.
const MESSAGE_SHOWN: usize = 200;
/// The longest text of an error, and the largest data beside it. Nobody has use for more.
const TEXT_BYTES_MAX: usize = 16 * 1024;
const DATA_BYTES_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":null}"#,
            r#"{"jsonrpc":"2.0","id":3.0,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":"x-1","error":{"code":-32000,"message":"no","data":{"b":2}}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":"x","message":5}}"#,
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1.5,"message":null,"data":null}}"#,
            r#"{"jsonrpc":"2.0","id":4,"error":"broken"}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
            r#"{"jsonrpc":"2.0","id":5}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}"#,
            "Server started on port 3000",
            "5",
            "null",
            "",
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}, 5, {"jsonrpc":"2.0","method":"x"}]"#,
            "[",
        ];
        let mut text = String::new();
        for line in lines {
            text += &format!("{line}\n");
            for message in read(line) {
                text += &match message {
                    Ok(message) => format!("    {message:?}\n"),
                    Err(unreadable) => format!("    {unreadable:?}: {unreadable}\n"),
                };
            }
        }
        insta::assert_snapshot!(text);
    }
}
