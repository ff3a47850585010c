//! What a request says about itself, for a host that writes traces or a log of calls. It is kept only where the server
//! wants it ([`crate::Server::traces`]).

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::Id;
use crate::revision::Revision;

/// The longest text that is kept of either. W3C Trace Context asks for as much of a `tracestate`.
const CONTEXT_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    pub id: Id,
    pub revision: Revision,
    /// The trace that the client is in, as `_meta` has it: nobody has looked whether it makes sense.
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    /// By what the host knows it. A call that is made again, because it asked, has the same.
    pub mark: OnceLock<Mark>,
}

/// A request in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub trace: u128,
    pub span: u64,
    /// When it was carried out first.
    pub begun: Instant,
}

impl Traced {
    pub(crate) fn new(id: Id, revision: Revision, params: Option<&RawValue>) -> Self {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Context<'a>,
        }
        #[derive(Default, Deserialize)]
        struct Context<'a> {
            #[serde(borrow, default)]
            traceparent: Option<&'a RawValue>,
            #[serde(borrow, default)]
            tracestate: Option<&'a RawValue>,
        }
        // Most requests have no such text at all.
        let text = params.map(RawValue::get).filter(|text| text.contains("traceparent"));
        let params: Option<Params<'_>> = text.and_then(|text| serde_json::from_str(text).ok());
        let Context { traceparent, tracestate } =
            params.map(|params| params.meta).unwrap_or_default();
        let (traceparent, tracestate) = (bounded(traceparent), bounded(tracestate));
        Self { id, revision, traceparent, tracestate, mark: OnceLock::new() }
    }
}

fn bounded(raw: Option<&RawValue>) -> Option<String> {
    let text: Cow<'_, str> = serde_json::from_str(raw?.get()).ok()?;
    (text.len() <= CONTEXT_BYTES_MAX).then(|| text.into_owned())
}
