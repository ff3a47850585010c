//! Parses messages of a server as far as needed to route them. Results stay raw JSON. Parsing is lenient: a response that
//! can be matched to its request is used, even if it is sloppy.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::RequestId;
use crate::jsonrpc::{Envelope, Id};

/// The most messages of a batch that are read.
const BATCH_MAX: usize = 1_000;
/// How much of an error that is not an object is shown.
const ODD_ERROR_CHARS: usize = 200;
/// The longest message of an error, and the largest data beside it.
const ERROR_MESSAGE_BYTES_MAX: usize = 16 * 1024;
const ERROR_DATA_BYTES_MAX: usize = 256 * 1024;
/// How much of the beginning or the end of a message is searched for an id.
const GUESSED_BYTES: usize = 4 * 1024;

/// One message of a server.
#[derive(Debug)]
pub enum Message<'m> {
    Result { id: ResponseId, result: &'m RawValue },
    Error { id: Option<ResponseId>, error: ErrorObject },
    Request { id: Id, method: Cow<'m, str>, params: Option<&'m RawValue> },
    Notification { method: Cow<'m, str>, params: Option<&'m RawValue> },
}

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseId {
    /// An id that this client may have used. Some servers return it as a string.
    Ours(RequestId),
    Foreign(Id),
}

/// An error of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

/// Why a text is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    NotJson,
    NotAMessage,
    /// A response that has neither a result nor an error.
    NoOutcome {
        id: ResponseId,
    },
}

impl fmt::Display for MessageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotJson => "it is not JSON",
            Self::NotAMessage => "it is no message of JSON-RPC",
            Self::NoOutcome { .. } => "it answers with neither a result nor an error",
        })
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(id) => id.fmt(out),
            Self::Foreign(id) => out.write_str(id.as_json().trim_matches('"')),
        }
    }
}

/// Parses the messages of a line, a body or an event: one, or those of a batch.
pub fn read(text: &str) -> Vec<Result<Message<'_>, MessageError>> {
    if !text.trim_start().starts_with('[') {
        return vec![read_one(text)];
    }
    match batch(text) {
        Ok(messages) => messages.into_iter().map(|message| read_one(message.get())).collect(),
        Err(_) => vec![Err(MessageError::NotJson)],
    }
}

/// The first members of an array. The rest is parsed too, so that malformed JSON is an error.
fn batch(text: &str) -> serde_json::Result<Vec<&RawValue>> {
    struct First;

    impl<'m> Visitor<'m> for First {
        type Value = Vec<&'m RawValue>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'m>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while members.len() < BATCH_MAX {
                let Some(member) = seq.next_element()? else { return Ok(members) };
                members.push(member);
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(members)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = (&mut deserializer).deserialize_seq(First)?;
    deserializer.end()?;
    Ok(members)
}

fn read_one(text: &str) -> Result<Message<'_>, MessageError> {
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() { MessageError::NotAMessage } else { MessageError::NotJson }
    })?;
    let method = present(envelope.method).map(|method| serde_json::from_str(method.get()));
    let method = method.transpose().map_err(|_| MessageError::NotAMessage)?;
    let id = present(envelope.id).map(|id| Id::read(id).ok_or(MessageError::NotAMessage));
    let id = id.transpose()?;
    match (method, id) {
        (Some(method), Some(id)) => {
            Ok(Message::Request { id, method, params: present(envelope.params) })
        }
        (Some(method), None) => {
            Ok(Message::Notification { method, params: present(envelope.params) })
        }
        (None, id) => response(id.map(ResponseId::new), envelope.result, present(envelope.error)),
    }
}

/// Treats null as absent.
fn present(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// A result may be null.
fn response<'m>(
    id: Option<ResponseId>,
    result: Option<&'m RawValue>,
    error: Option<&RawValue>,
) -> Result<Message<'m>, MessageError> {
    if let Some(error) = error {
        return Ok(Message::Error { id, error: ErrorObject::read(error.get()) });
    }
    match (id, result) {
        (Some(id), Some(result)) => Ok(Message::Result { id, result }),
        (Some(id), None) => Err(MessageError::NoOutcome { id }),
        (None, _) => Err(MessageError::NotAMessage),
    }
}

impl ResponseId {
    /// A number with a fraction of zero is that number.
    pub(super) fn new(id: Id) -> Self {
        let text = id.as_json().trim_matches('"');
        let text = text.strip_suffix(".0").unwrap_or(text);
        text.parse().map_or_else(|_| Self::Foreign(id), Self::Ours)
    }
}

/// The first id in a fragment of a message that is too long to be parsed.
pub fn guess_id(part: &[u8]) -> Option<RequestId> {
    const KEY: &[u8] = b"\"id\"";
    let part = &part[..part.len().min(GUESSED_BYTES)];
    let at = part.windows(KEY.len()).position(|window| window == KEY)?;
    let rest = part[at + KEY.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let digits = rest.split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl ErrorObject {
    /// Never fails: however malformed the error is, there is no result.
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
            let message = text.chars().take(ODD_ERROR_CHARS).collect();
            return Self { code: 0, message, data: None };
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
            let text = text.unwrap_or(Cow::Borrowed(message.get()));
            untrusted_text::cut(&text, ERROR_MESSAGE_BYTES_MAX)
        });
        let data = fields.data.map(|data| {
            let left_out = || Value::String(format!("[{} bytes, left out]", data.get().len()));
            if data.get().len() > ERROR_DATA_BYTES_MAX {
                return left_out();
            }
            // What is nested too deeply cannot be read.
            serde_json::from_str(data.get()).unwrap_or_else(|_| left_out())
        });
        Self { code: code.unwrap_or(0), message: message.unwrap_or_default(), data }
    }
}
