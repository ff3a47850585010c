//! One span, and many of them as OTLP has them in JSON: ids in hexadecimal digits, times as texts, kinds as numbers.

use std::borrow::Cow;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mcp::Mark;
use serde_json::{Value, json};

use super::Context;

/// A call that was carried out for somebody else.
const KIND_SERVER: u8 = 2;
const STATUS_ERROR: u8 = 2;
/// It is said whether the parent is elsewhere; and it is.
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const SAMPLED: u32 = 0x01;

#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: Cow<'static, str>,
    pub(crate) mark: Mark,
    pub(crate) context: Option<Context>,
    pub(crate) ended: Instant,
    pub(crate) attributes: Vec<(&'static str, Cow<'static, str>)>,
    /// What went wrong on our side, in a word.
    pub(crate) error: Option<&'static str>,
}

/// What all spans of this process have in common.
#[derive(Debug)]
pub(super) struct Resource {
    /// Another for every process.
    pub(super) instance: String,
}

impl Resource {
    /// The body of a request.
    pub(super) fn body(&self, spans: &[Span]) -> String {
        let clock = Clock { instant: Instant::now(), time: SystemTime::now() };
        let spans: Vec<Value> = spans.iter().map(|span| span.to_json(&clock)).collect();
        let resource = [
            ("service.name", "workflowlookup"),
            ("service.version", workflow::VERSION),
            ("service.instance.id", &self.instance),
        ];
        let resource = json!({"attributes": resource.map(|(key, value)| attribute(key, value))});
        let scope = json!({"name": "workflowlookup", "version": workflow::VERSION});
        let scope_spans = json!([{"scope": scope, "spans": spans}]);
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}).to_string()
    }
}

impl Span {
    fn to_json(&self, clock: &Clock) -> Value {
        let attributes = self.attributes.iter().map(|(key, value)| attribute(key, value));
        let attributes: Vec<Value> = attributes.collect();
        let mut span = json!({
            "traceId": format!("{:032x}", self.mark.trace),
            "spanId": format!("{:016x}", self.mark.span),
            "flags": KNOWS_REMOTE | SAMPLED,
            "name": self.name,
            "kind": KIND_SERVER,
            "startTimeUnixNano": clock.nanos(self.mark.begun),
            "endTimeUnixNano": clock.nanos(self.ended),
            "attributes": attributes,
            "status": {},
        });
        if let Some(Context { parent, flags, state, .. }) = &self.context {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
            span["flags"] = json!(KNOWS_REMOTE | IS_REMOTE | u32::from(*flags));
            if let Some(state) = state {
                span["traceState"] = json!(state);
            }
        }
        if let Some(error) = self.error {
            span["status"] = json!({"code": STATUS_ERROR, "message": error});
        }
        span
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// One moment by both clocks. Spans know the one that never jumps; what is sent is the other's.
struct Clock {
    instant: Instant,
    time: SystemTime,
}

impl Clock {
    /// Nanoseconds since 1970, as a text.
    fn nanos(&self, instant: Instant) -> String {
        let ago = self.instant.saturating_duration_since(instant);
        let time = self.time.checked_sub(ago).unwrap_or(UNIX_EPOCH);
        time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
    }
}
