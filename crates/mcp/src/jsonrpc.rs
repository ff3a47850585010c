//! JSON-RPC 2.0: from bytes to messages, and back. Every line gets exactly one verdict here: a message,
//! or the error that answers it, with its id wherever one can be read.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::action::OK;

/// How deep a message may nest, itself included: what every reader of JSON further down can bear.
const NESTING_MAX: usize = 128;

/// The longest id of a request. It is repeated in every answer.
const ID_BYTES_MAX: usize = 4 * 1024;

/// The longest method. One that is not known is repeated too.
const METHOD_BYTES_MAX: usize = 1024;

/// When a client that finds us busy may try again.
const BUSY_RETRY_MS: u64 = 1_000;

/// A request's id as it was written: a string or a number. It goes back letter by letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Id {
    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.len() > ID_BYTES_MAX {
            return None;
        }
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        // A string must also be one that can be read: half a surrogate pair is none.
        let is_text = text.starts_with('"') && serde_json::from_str::<Cow<'_, str>>(text).is_ok();
        (is_number || is_text).then(|| Self(text.into()))
    }

    /// An id that was written down as JSON.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().and_then(Self::read)
    }

    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Error {
    pub code: i32,
    pub message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What it is over HTTP, where that is not a matter of the method.
    #[serde(skip)]
    pub(crate) status: u16,
}

const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;

impl Error {
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>, data: Value) -> Self {
        Self { code, message: message.into(), data: Some(data), status: OK }
    }

    /// An error as somebody else has said it.
    pub fn said(code: i32, message: String, data: Option<Value>) -> Self {
        Self { code, message: message.into(), data, status: OK }
    }

    /// Something is wrong before anybody looks at what is asked for.
    pub(crate) fn bad_request(self) -> Self {
        Self { status: BAD_REQUEST, ..self }
    }

    pub fn parse(details: impl fmt::Display) -> Self {
        Self::new(-32700, "Parse error", json!({"details": details.to_string()})).bad_request()
    }

    pub fn invalid_request(details: impl fmt::Display) -> Self {
        Self::new(-32600, "Invalid Request", json!({"details": details.to_string()})).bad_request()
    }

    pub fn method_not_found(method: &str) -> Self {
        let error = Self::new(-32601, "Method not found", json!({"method": method}));
        Self { status: NOT_FOUND, ..error }
    }

    pub fn invalid_params(details: impl fmt::Display) -> Self {
        Self::new(-32602, "Invalid params", json!({"details": details.to_string()}))
    }

    /// The client cannot do what is needed.
    pub(crate) fn missing_capability(required: Value) -> Self {
        let data = json!({"requiredCapabilities": required});
        Self::new(-32021, "Missing required client capability", data).bad_request()
    }

    pub(crate) fn busy() -> Self {
        let details = "too many calls are waiting already; try again when one has been answered";
        let data = json!({"details": details, "retryAfterMs": BUSY_RETRY_MS});
        Self::new(-32000, "Server busy", data)
    }

    /// Ours. The particulars are in the log alone.
    pub fn internal() -> Self {
        Self::new(-32603, "Internal error", json!({"details": "see the server's log"}))
    }
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request(Request<'a>),
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// An answer to something that was asked of the client; an error is no more than none.
    Response {
        id: Option<Id>,
        result: Option<&'a RawValue>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub id: Id,
    pub method: Cow<'a, str>,
    /// An object, if anything: null and absent are the same.
    pub params: Option<&'a RawValue>,
    /// What the modern era says beside the parameters, once somebody has looked; an error where that is too much.
    pub meta: OnceCell<Result<Option<Value>, Error>>,
}

/// Something that is no message, and what to say about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rejected {
    pub id: Option<Id>,
    pub error: Error,
}

/// What a line or a body holds.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    One(Result<Message<'a>, Rejected>),
    Batch(Vec<Result<Message<'a>, Rejected>>),
}

/// What a line or a body holds, for whoever wants to look before it is dealt with.
#[derive(Debug)]
pub struct Body<'a>(pub(crate) Received<'a>);

impl<'a> Body<'a> {
    pub fn read(bytes: &'a [u8]) -> Self {
        Self(receive(bytes))
    }
}

fn receive(bytes: &[u8]) -> Received<'_> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Received::One(Err(Rejected { id: None, error: Error::parse("not UTF-8") }));
    };
    if text.trim_start().starts_with('[') {
        return batch(text);
    }
    // Nearly every line is an object, and is read once. Why another is none, the long way tells.
    if text.starts_with('{')
        && let Ok(envelope) = serde_json::from_str(text)
    {
        return Received::One(message_of(text, &envelope));
    }
    let raw: &RawValue = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) => return Received::One(Err(Rejected { id: None, error: Error::parse(error) })),
    };
    Received::One(message(raw))
}

fn batch(text: &str) -> Received<'_> {
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(members) if members.is_empty() => {
            let error = Error::invalid_request("an empty batch");
            Received::One(Err(Rejected { id: None, error }))
        }
        Ok(members) => Received::Batch(members.into_iter().map(message).collect()),
        Err(error) => Received::One(Err(Rejected { id: None, error: Error::parse(error) })),
    }
}

/// The fields of a message, whatever else it has. Of a field that stands twice the last one counts.
#[derive(Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) jsonrpc: Option<&'a RawValue>,
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<&'a RawValue>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Envelope<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(key) = map.next_key::<Key>()? {
                    let value: &'de RawValue = map.next_value()?;
                    match key {
                        Key::Jsonrpc => envelope.jsonrpc = Some(value),
                        Key::Id => envelope.id = Some(value),
                        Key::Method => envelope.method = Some(value),
                        Key::Params => envelope.params = Some(value),
                        Key::Result => envelope.result = Some(value),
                        Key::Error => envelope.error = Some(value),
                        Key::Other => {}
                    }
                }
                Ok(envelope)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Other,
}

fn message(raw: &RawValue) -> Result<Message<'_>, Rejected> {
    if !raw.get().starts_with('{') {
        let error = Error::invalid_request("a message is an object");
        return Err(Rejected { id: None, error });
    }
    let envelope: Envelope<'_> = match serde_json::from_str(raw.get()) {
        Ok(envelope) => envelope,
        Err(error) => return Err(Rejected { id: None, error: Error::parse(error) }),
    };
    message_of(raw.get(), &envelope)
}

fn message_of<'a>(text: &'a str, envelope: &Envelope<'a>) -> Result<Message<'a>, Rejected> {
    let id = envelope.id.and_then(Id::read);
    let reject =
        |details: &str| Rejected { id: id.clone(), error: Error::invalid_request(details) };
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return Err(reject("`jsonrpc` must be \"2.0\""));
    }
    if let Err(details) = sound(text) {
        return Err(reject(details));
    }
    let is_null = envelope.id.is_some_and(|id| id.get() == "null");
    if envelope.method.is_none() && envelope.error.is_some() && (envelope.id.is_none() || is_null) {
        // A client's complaint about a line of ours that it could not read. To answer it with a
        // complaint of ours could go on for ever.
        return Ok(Message::Response { id: None, result: None });
    }
    if let Some(raw) = envelope.id.filter(|_| id.is_none()) {
        return Err(match raw.get().len() > ID_BYTES_MAX {
            true => reject(&format!("`id` may have {ID_BYTES_MAX} bytes")),
            false => reject("`id` must be a string or a number"),
        });
    }
    let Some(method) = envelope.method else {
        let is_answer = envelope.result.is_some() != envelope.error.is_some();
        return if is_answer && id.is_some() {
            Ok(Message::Response { id, result: envelope.result })
        } else {
            Err(reject("`method` is missing"))
        };
    };
    if method.get().len() > METHOD_BYTES_MAX {
        return Err(reject(&format!("`method` may have {METHOD_BYTES_MAX} bytes")));
    }
    let Ok(method) = serde_json::from_str::<Cow<'_, str>>(method.get()) else {
        return Err(reject("`method` must be a string"));
    };
    let params = match envelope.params {
        None => None,
        Some(params) => match params.get().as_bytes()[0] {
            b'n' => None,
            // An array is well-formed JSON-RPC, but no method of ours takes one.
            b'{' | b'[' => Some(params),
            _ => return Err(reject("`params` must be an object")),
        },
    };
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params, meta: OnceCell::new() }),
        None => Message::Notification { method, params },
    })
}

/// Whether the readers of single fields will be able to read everything in a text that is JSON on the
/// surface. Looked at once and here, so that a broken part is the same error wherever it stands, and
/// whether anybody asks for it or not.
fn sound(text: &str) -> Result<(), &'static str> {
    let bytes = text.as_bytes();
    let is_opening = |byte: &u8| usize::from((*byte == b'{') | (*byte == b'['));
    let opening: usize = bytes.iter().map(is_opening).sum();
    if opening <= NESTING_MAX && !text.contains("\\u") {
        // Nothing here can go wrong.
        return Ok(());
    }
    let (mut depth, mut at, mut is_text) = (0_usize, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => is_text = !is_text,
            b'\\' if bytes.get(at + 1) == Some(&b'u') => {
                at += match (code_unit(bytes, at), code_unit(bytes, at + 6)) {
                    (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 11,
                    (Some(0xd800..=0xdfff), _) => return Err("half a surrogate pair"),
                    _ => 5,
                };
            }
            b'\\' => at += 1,
            b'{' | b'[' if !is_text => {
                depth += 1;
                if depth > NESTING_MAX {
                    return Err("nested too deep");
                }
            }
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The escape `\uXXXX` that stands at this place, if one does.
fn code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
}

/// Reads parameters. What is no object, or lacks a field, is -32602; what is not even good JSON inside
/// (nested beyond all measure, or half a surrogate pair) is -32600.
pub fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    if text.starts_with('[') {
        return Err(Error::invalid_params("params must be an object"));
    }
    read(text)
}

/// Reads a part of the parameters; null where it is missing.
pub(crate) fn value<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Error> {
    read(raw.map_or("null", RawValue::get))
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Error::invalid_params(plain(&error)),
        _ => Error::invalid_request(plain(&error)),
    })
}

/// The same for parameters that are bounded.
pub(crate) fn params_within<'a, T: Deserialize<'a>>(
    max: usize,
    raw: Option<&'a RawValue>,
) -> Result<T, Error> {
    check_size("the parameters", max, raw)?;
    params(raw)
}

/// Whether a part of a request is so large at most. Looked at before anything is made of it.
pub(crate) fn check_size(what: &str, max: usize, raw: Option<&RawValue>) -> Result<(), Error> {
    if raw.is_some_and(|raw| raw.get().len() > max) {
        return Err(Error::invalid_params(format!("{what} may have {max} bytes")));
    }
    Ok(())
}

/// serde's words for a missing field are turned into the ones that the product promises, and places in
/// a text that nobody sees are left out.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    match text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(field) => format!("{field} is required"),
        None => text.to_owned(),
    }
}

pub(crate) fn result(id: &Id, result: &str) -> String {
    let mut reply = String::with_capacity(result.len() + id.as_json().len() + 40);
    begin_result(id, &mut reply);
    reply.push_str(result);
    reply.push('}');
    reply
}

/// A reply up to its result. A brace ends it.
pub(crate) fn begin_result(id: &Id, out: &mut String) {
    for part in [r#"{"jsonrpc":"2.0","id":"#, id.as_json(), r#","result":"#] {
        out.push_str(part);
    }
}

pub(crate) fn error(id: Option<&Id>, error: &Error) -> String {
    let id = id.map_or("null", Id::as_json);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, json!(error))
}

/// The same where no id is said by leaving it out.
pub(crate) fn error_over_http(id: Option<&Id>, failed: &Error) -> String {
    match id {
        Some(_) => error(id, failed),
        None => format!(r#"{{"jsonrpc":"2.0","error":{}}}"#, json!(failed)),
    }
}

pub(crate) fn request(id: &str, method: &str, params: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":{params}}}"#,
        json!(id),
        json!(method)
    )
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, json!(method))
}

#[cfg(test)]
mod tests;
