//! An `input_required` result: the server needs input first, and the client repeats the request with the responses.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Request;

/// The most input requests in one result.
const REQUESTS_MAX: usize = 16;
const REQUESTS_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    pub requests: BTreeMap<String, InputRequest>,
    /// Returned to the server unchanged.
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputRequest {
    pub method: String,
    #[serde(default)]
    pub params: Value,
}

impl InputRequired {
    /// None if the result is complete.
    pub fn read(result: &RawValue) -> Result<Option<Self>, String> {
        // Most results are not parsed here.
        if !result.get().contains("input_required") {
            return Ok(None);
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'r> {
            #[serde(default, borrow)]
            result_type: Option<Cow<'r, str>>,
            #[serde(default, borrow)]
            input_requests: Option<&'r RawValue>,
            request_state: Option<String>,
        }
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(result.get()) else { return Ok(None) };
        if fields.result_type.as_deref() != Some("input_required") {
            return Ok(None);
        }
        let size = fields.input_requests.map_or(0, |requests| requests.get().len());
        if size > REQUESTS_BYTES_MAX {
            return Err(format!("its questions are {size} bytes long"));
        }
        let requests = fields.input_requests.map(|requests| serde_json::from_str(requests.get()));
        let requests: Option<BTreeMap<String, InputRequest>> = requests
            .transpose()
            .map_err(|error| format!("its questions cannot be read: {error}"))?;
        let requests = requests.unwrap_or_default();
        if requests.len() > REQUESTS_MAX {
            return Err(format!("it has {} questions at a time", requests.len()));
        }
        Ok(Some(Self { requests, state: fields.request_state }))
    }
}

impl Request {
    /// Repeats the request with input responses and the state of the server.
    #[must_use]
    pub fn with_answers(self, answers: Map<String, Value>, state: Option<String>) -> Self {
        let request = self.with("inputResponses", answers);
        match state {
            Some(state) => request.with("requestState", state),
            None => request,
        }
    }
}
