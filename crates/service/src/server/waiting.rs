//! Calls that are carried out on a thread of their own from the beginning: about sessions that are over a network, which
//! wait, and with much to check, which works.

use mcp::{Call, Outcome, Reference};

use super::session_resources::SCHEME;
use super::tools::{Role, called};
use super::upstreams::resources;

/// Whether a call may have to wait for where sessions are. Handing in a step does not, where we know the session: it sees
/// to that itself.
pub(super) fn may_wait(call: &Call) -> bool {
    match call {
        Call::Tool { .. } => called(call).is_some_and(|tool| tool.waits_for_store),
        Call::ListResources { .. } | Call::Settle { .. } => true,
        Call::ReadResource { uri } => uri.starts_with(SCHEME),
        Call::Complete { reference: Reference::Resource(template), .. } => {
            template.starts_with(SCHEME)
        }
        _ => false,
    }
}

/// Whether a call can change a session, or decide what one waits for.
pub(super) fn may_change_sessions(call: &Call) -> bool {
    match call {
        Call::Tool { .. } => {
            called(call).is_none_or(|tool| tool.role == Role::Use && !tool.needs_upstreams)
        }
        Call::Settle { .. } | Call::Forget { .. } => true,
        _ => false,
    }
}

/// Larger arguments than this are not even read on a thread that others wait for.
pub(super) const INLINE_BYTES_MAX: usize = 16 * 1024;

/// Whether a call brings more than is looked at while others wait.
pub(super) fn is_large(call: &Call) -> bool {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.len()).sum::<usize>();
    let (bytes, limit) = match call {
        Call::Tool { arguments, .. } => {
            let limit = called(call).map_or(INLINE_BYTES_MAX, |tool| tool.inline_bytes_max);
            (arguments.get().len(), limit)
        }
        Call::GetPrompt { name, arguments } => {
            let all = arguments.iter().map(|(name, value)| texts(&[name, value]));
            (name.len() + all.sum::<usize>(), INLINE_BYTES_MAX)
        }
        Call::ReadResource { uri } => (uri.len(), INLINE_BYTES_MAX),
        Call::ListResources { cursor } | Call::ListPrompts { cursor } => {
            (cursor.as_ref().map_or(0, String::len), INLINE_BYTES_MAX)
        }
        Call::Complete { argument, typed, .. } => (texts(&[argument, typed]), INLINE_BYTES_MAX),
        Call::ListTemplates | Call::Settle { .. } | Call::Forget { .. } => return false,
    };
    bytes > limit
}

/// Whether a call goes on elsewhere once it has begun: a thread that waited for its end would wait for others.
pub(super) fn is_for_upstreams(call: &Call) -> bool {
    match call {
        Call::Tool { .. } => called(call).is_some_and(|tool| tool.needs_upstreams),
        Call::ReadResource { uri } => resources::is_one(uri),
        _ => false,
    }
}

/// Why the arguments of a tool are not even read.
pub(super) fn too_large(call: &Call) -> Option<Outcome> {
    let Call::Tool { arguments, .. } = call else { return None };
    let limit = called(call)?.arguments_bytes_max?;
    let is_too_large = arguments.get().len() > limit;
    is_too_large.then(|| Outcome::BadArguments(format!("they may have {limit} bytes together")))
}
