//! A tool as one value, and a call of one. Each tool's file exports its value, and [`super::TOOLS`] lists them.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use engine::INPUT_BYTES_MAX;
use mcp::content::About;
use mcp::{Caller, Outcome};
use serde::Deserialize;
use serde_json::value::RawValue;
use transport::{Context, OutcomeFuture};

use super::{bad, cut, misfit, refused};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::server::upstreams::Upstreams;
use crate::server::waiting::INLINE_BYTES_MAX;

/// How many bytes of a parse error are repeated, which may quote a name that is not an argument.
const DETAILS_BYTES_MAX: usize = 1024;
/// Arguments up to this size are read inline if the call writes to a session: a worker would be blocked until the disk
/// is done, and there are few.
pub(super) const SUBMISSION_INLINE_BYTES_MAX: usize = 64 * 1024;
/// The largest arguments of a tool that looks at upstreams, and of one that calls them.
const LOOK_BYTES_MAX: usize = 64 * 1024;
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A tool, with everything that lists, dispatch, metrics and logs need to know about it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The name is also a method, in the product's first protocol.
    pub(crate) is_method: bool,
    pub(crate) role: Role,
    /// Offered only while a registry names other servers. Its calls go on elsewhere once they have begun.
    pub(crate) needs_upstreams: bool,
    /// Calls may wait for the store of sessions, so they begin on a worker if the store is remote.
    pub(crate) waits_for_store: bool,
    /// Larger arguments are refused before they are read. Without it, each argument has a limit of its own.
    pub(crate) arguments_bytes_max: Option<usize>,
    /// Larger arguments are read on a worker.
    pub(crate) inline_bytes_max: usize,
    /// What a client should call instead. Set for tools that keep no record, which `--tools sessions` hides.
    pub(crate) instead: Option<&'static str>,
    pub(crate) log_details: LogDetails,
    /// Title, description, schemas and annotations, made when they are needed.
    pub(crate) about: fn() -> About,
    pub(super) handler: Handler,
}

/// Carries a call out.
pub(super) type Handler = fn(ToolCall) -> OutcomeFuture;

/// The role that a tool requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The tool only reads. Programs can import it.
    Anyone,
    Use,
}

/// What the log and traces say about a call, besides the session that its arguments name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDetails {
    None,
    /// The session that the answer names.
    SessionInAnswer,
    /// The server that the arguments name, and its tool.
    UpstreamInArguments,
}

/// How a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// By `tools/call`: long lists come in pages.
    Call,
    /// By the tool's name as a method of its own: always whole.
    Method,
}

/// A call of a tool.
pub(crate) struct ToolCall {
    pub(crate) tool: &'static Tool,
    pub(crate) app: App,
    pub(crate) upstreams: Arc<Upstreams>,
    /// The arguments as they came: a JSON object.
    pub(crate) raw: Box<RawValue>,
    pub(crate) asker: Asker,
    pub(crate) caller: Caller,
    pub(crate) who: Who,
    pub(crate) context: Context,
}

impl Tool {
    /// A tool for the role `use` that is not a method. Its file overrides what is different.
    pub(super) const fn new(name: &'static str, about: fn() -> About, handler: Handler) -> Self {
        Self {
            name,
            is_method: false,
            role: Role::Use,
            needs_upstreams: false,
            waits_for_store: false,
            arguments_bytes_max: None,
            inline_bytes_max: INLINE_BYTES_MAX,
            instead: None,
            log_details: LogDetails::None,
            about,
            handler,
        }
    }

    /// The same for a tool that is about other servers.
    pub(super) const fn for_upstreams(
        name: &'static str,
        about: fn() -> About,
        handler: Handler,
    ) -> Self {
        let arguments_bytes_max = Some(LOOK_BYTES_MAX);
        Self { needs_upstreams: true, arguments_bytes_max, ..Self::new(name, about, handler) }
    }
}

impl From<&Tool> for mcp::content::Tool {
    fn from(tool: &Tool) -> Self {
        let Tool { name, is_method, about, .. } = *tool;
        Self { name, is_method, about }
    }
}

/// What a handler makes of a call, with a refusal as its outcome.
pub(super) fn handle(
    answer: impl Future<Output = Result<Outcome, Refusal>> + Send + 'static,
) -> OutcomeFuture {
    Box::pin(async { answer.await.unwrap_or_else(|refusal| refused(&refusal)) })
}

impl ToolCall {
    /// Checks the caller's role, and runs the handler.
    pub(crate) fn run(self) -> OutcomeFuture {
        match self.check_role() {
            Ok(()) => (self.tool.handler)(self),
            Err(refusal) => Box::pin(ready(refused(&refusal))),
        }
    }

    fn check_role(&self) -> Result<(), Refusal> {
        #[derive(Default, Deserialize)]
        struct Subject<'a> {
            #[serde(rename = "sessionId", borrow)]
            session_id: Option<Cow<'a, str>>,
        }
        let Self { tool, who, .. } = self;
        if tool.role == Role::Anyone || who.right().is_none_or(|right| right == Right::Use) {
            return Ok(());
        }
        let subject: Subject<'_> = serde_json::from_str(self.raw.get()).unwrap_or_default();
        let audit = self.app.sessions().audit();
        who.needs_about(subject.session_id.as_deref(), Right::Use, tool.name, audit)
    }

    /// Reads the arguments. A refusal says which one is wrong, in the words of the tool's schema.
    pub(super) fn arguments<'a, A: Deserialize<'a>>(&'a self) -> Result<A, Refusal> {
        mcp::params(Some(&self.raw)).map_err(|error| {
            let details = error.data.and_then(|data| data["details"].as_str().map(str::to_owned));
            let details = self.misfit().or(details).unwrap_or_default();
            bad(cut(&details, DETAILS_BYTES_MAX).into_owned())
        })
    }

    fn misfit(&self) -> Option<String> {
        // What is too large is not looked at any further.
        if self.raw.get().len() > INPUT_BYTES_MAX {
            return None;
        }
        let schema = (self.tool.about)().input_schema;
        let encoded = misfit::encoded_argument(&schema, &self.raw);
        // The tools for upstreams have words of their own for what is often wrong.
        let is_checked = self.tool.needs_upstreams;
        encoded.or_else(|| misfit::misfit(&schema, &self.raw).filter(|_| is_checked))
    }
}
