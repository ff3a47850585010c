//! What a call is about, for the log and for traces: names, ids and how it ended. Never what it hands in or gets back:
//! outputs, goals and tokens have no place here.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp::{Call, Caller, Mark, Outcome, Traced, Transport};
use serde::Deserialize;
use store::limits::ID_BYTES_MAX;

use super::calls::{CALL_TOOL, Ended, code};
use crate::server::session_resources;
use crate::server::tools::{LogDetails, Tool, called};
use crate::server::traces::{Context, Span, Tracer};

/// Longer ids and names of clients are left out, or cut.
const TEXT_BYTES_MAX: usize = 256;

pub(super) struct About {
    method: &'static str,
    tool: Option<&'static Tool>,
    /// What a resource or a prompt is called.
    target: Option<(&'static str, String)>,
    session: Option<String>,
    upstream: Option<Upstream>,
    principal: Option<Arc<str>>,
    via: Transport,
    traced: Option<Arc<Traced>>,
    context: Option<Context>,
    /// Where it is to be a span.
    mark: Option<Mark>,
    was_asked: bool,
}

impl About {
    pub(super) fn new(
        call: &Call,
        caller: &Caller,
        via: Transport,
        begun: Instant,
        tracer: Option<&Tracer>,
    ) -> Self {
        let tool = called(call);
        let method = match call {
            Call::Tool { is_method: false, .. } => CALL_TOOL,
            call => call.name(),
        };
        let target = match call {
            Call::ReadResource { uri } => Some(("mcp.resource.uri", uri)),
            Call::GetPrompt { name, .. } => Some(("gen_ai.prompt.name", name)),
            _ => None,
        };
        let target = target.filter(|(_, text)| text.len() <= TEXT_BYTES_MAX);
        let session = match call {
            Call::Tool { arguments, .. } => session_in(arguments.get()),
            Call::ReadResource { uri } => {
                uri.strip_prefix(session_resources::SCHEME).and_then(session_id)
            }
            _ => None,
        };
        let upstream = match call {
            Call::Tool { arguments, .. } if has(tool, LogDetails::UpstreamInArguments) => {
                Upstream::named_by(arguments.get())
            }
            _ => None,
        };
        let traced = caller.traced.clone();
        let context = traced.as_ref().and_then(|traced| {
            Context::read(traced.traceparent.as_deref()?, traced.tracestate.as_deref())
        });
        // Whoever began the trace has decided whether it is recorded.
        let is_wanted = context.as_ref().is_none_or(Context::is_sampled);
        let mark = traced.as_ref().zip(tracer).filter(|_| is_wanted).map(|(traced, tracer)| {
            *traced.mark.get_or_init(|| Mark {
                trace: context.as_ref().map_or_else(|| tracer.new_trace(), |known| known.trace),
                span: tracer.new_span(),
                begun,
            })
        });
        Self {
            method,
            tool,
            target: target.map(|(key, text)| (key, text.clone())),
            session,
            upstream,
            principal: caller.principal.clone(),
            via,
            was_asked: caller.answers.is_some(),
            traced,
            context,
            mark,
        }
    }

    /// It is over.
    pub(super) fn tell(
        mut self,
        tracer: Option<&Tracer>,
        ended: Ended,
        outcome: Option<&Outcome>,
        now: Instant,
        time: Duration,
    ) {
        if let Some(Outcome::Tool { structured, .. }) = outcome
            && has(self.tool, LogDetails::SessionInAnswer)
        {
            self.session = session_in(structured);
        }
        let revision = self.traced.as_ref().map(|traced| traced.revision);
        let code = outcome.and_then(|outcome| code(outcome, revision));
        self.log(ended, code, time);
        let is_modern = revision.is_some_and(|revision| revision.traits().is_modern);
        // A client with a handshake is asked while its request is under way: the span ends with the answer.
        let goes_on = ended == Ended::Asked && !is_modern;
        if let (Some(tracer), Some(mark), false) = (tracer, self.mark, goes_on) {
            let is_result = self.is_result(outcome);
            tracer.send(self.span(mark, ended, code, is_result, now));
        }
    }

    fn log(&self, ended: Ended, code: Option<i32>, time: Duration) {
        let Self { method, tool, session, principal, .. } = self;
        let trace = self.context.as_ref().map(|context| context.trace);
        let trace = self.mark.map(|mark| mark.trace).or(trace);
        let upstream = self.upstream.as_ref();
        tracing::info!(
            method,
            tool = tool.map(|tool| tool.name),
            server = upstream.map(|upstream| &*upstream.server),
            server_tool = upstream.and_then(|upstream| upstream.tool.as_deref()),
            session,
            principal = principal.as_deref(),
            outcome = ended.name(),
            code,
            micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            trace = trace.map(|trace| format!("{trace:032x}")),
            "carried out"
        );
    }

    /// Whether what went wrong is a tool's result, and not an error of the protocol.
    fn is_result(&self, outcome: Option<&Outcome>) -> bool {
        let revision = self.traced.as_ref().map(|traced| traced.revision);
        self.method == CALL_TOOL
            && match outcome {
                Some(Outcome::Refused { .. } | Outcome::Blocks { is_error: true, .. }) => true,
                Some(Outcome::Foreign(result)) => result.is_error,
                Some(Outcome::BadArguments(_)) => {
                    revision.is_some_and(|known| known.traits().bad_arguments_are_results)
                }
                _ => false,
            }
    }

    /// After OpenTelemetry's conventions for MCP, where they have a name for it.
    fn span(
        self,
        mark: Mark,
        ended: Ended,
        code: Option<i32>,
        is_result: bool,
        now: Instant,
    ) -> Span {
        let mut attributes: Vec<(&'static str, Cow<'static, str>)> = Vec::with_capacity(16);
        let mut add = |key, value: Cow<'static, str>| attributes.push((key, value));
        add("mcp.method.name", self.method.into());
        if let Some(tool) = self.tool {
            add("gen_ai.operation.name", "execute_tool".into());
            add("gen_ai.tool.name", tool.name.into());
        }
        if let Some((key, text)) = self.target {
            add(key, text.into());
        }
        if let Some(traced) = &self.traced {
            add("jsonrpc.request.id", request_id(traced.id.as_json()).into());
            add("mcp.protocol.version", traced.revision.name().into());
        }
        match self.via {
            Transport::Stdio => add("network.transport", "pipe".into()),
            Transport::Http => {
                add("network.transport", "tcp".into());
                add("network.protocol.name", "http".into());
            }
        }
        if let Some(code) = code {
            let text = code.to_string();
            if is_result {
                add("error.type", "tool_error".into());
                add("workflowlookup.code", text.into());
            } else {
                add("error.type", text.clone().into());
                add("rpc.response.status_code", text.into());
            }
        }
        add("workflowlookup.outcome", ended.name().into());
        if let Some(session) = self.session {
            add("workflowlookup.session", session.into());
        }
        if let Some(Upstream { server, tool }) = self.upstream {
            add("workflowlookup.upstream", server.into());
            if let Some(tool) = tool {
                add("workflowlookup.upstream_tool", tool.into());
            }
        }
        if let Some(principal) = &self.principal {
            add("workflowlookup.principal", cut(principal).into());
        }
        if self.was_asked {
            add("workflowlookup.asked", "true".into());
        }
        // What is refused is no error of ours, unless we could not.
        let error = match (ended, code) {
            (_, Some(-32000)) => Some("Server busy"),
            (_, Some(-32006)) => Some("Storage error"),
            (Ended::Fault, _) => Some("Internal error"),
            _ => None,
        };
        // A tool as a method of its own says everything in one word.
        let name = match self.tool {
            Some(tool) if tool.name != self.method => {
                format!("{} {}", self.method, tool.name).into()
            }
            _ => self.method.into(),
        };
        Span { name, mark, context: self.context, ended: now, attributes, error }
    }
}

fn has(tool: Option<&Tool>, details: LogDetails) -> bool {
    tool.is_some_and(|tool| tool.log_details == details)
}

/// Whom a call is passed on to.
struct Upstream {
    server: String,
    tool: Option<String>,
}

impl Upstream {
    fn named_by(arguments: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow, alias = "id")]
            server: Cow<'a, str>,
            #[serde(borrow, default)]
            tool: Option<Cow<'a, str>>,
        }
        let Named { server, tool } = serde_json::from_str(arguments).ok()?;
        let tool = tool.and_then(|tool| session_id(&tool));
        session_id(&server).map(|server| Self { server, tool })
    }
}

/// The session that an object names.
fn session_in(object: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named<'a> {
        #[serde(borrow)]
        session_id: Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_str(object).ok()?;
    session_id(&named.session_id)
}

/// What a client says, if it looks like the id of a session.
fn session_id(text: &str) -> Option<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_id = !text.is_empty() && text.len() <= ID_BYTES_MAX && text.bytes().all(good);
    is_id.then(|| text.to_owned())
}

/// A request's id in letters, as it is written in JSON where it is a number.
fn request_id(json: &str) -> String {
    let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    cut(&text)
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_an_id_is_told() {
        let long = "a".repeat(ID_BYTES_MAX + 1);
        for odd in ["", "a b", "a\nb", "ü", "a\"b", "\u{1b}[0m", &long] {
            assert_eq!(session_id(odd), None, "{odd}");
            let arguments = serde_json::json!({"sessionId": odd}).to_string();
            assert_eq!(session_in(&arguments), None, "{odd}");
        }
        assert_eq!(session_in(r#"{"output":"x","sessionId":"7k\u0061"}"#), Some("7ka".to_owned()));
        for odd in ["{}", "[]", r#"{"sessionId":7}"#, r#"{"sessionId":null}"#] {
            assert_eq!(session_in(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_requests_id_is_its_text() {
        assert_eq!(request_id("7"), "7");
        assert_eq!(request_id(r#""r-\u0031""#), "r-1");
        assert_eq!(request_id(&format!("\"{}\"", "ü".repeat(200))).len(), TEXT_BYTES_MAX);
    }
}
