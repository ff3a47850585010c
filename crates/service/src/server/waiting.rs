//! Calls that are carried out on a thread of their own from the beginning: about sessions that are over a network, which
//! wait, and with much to check, which works.

use std::sync::mpsc::sync_channel;

use mcp::{Call, Carried, Finish, News, Outcome, Reference};

use super::session_resources::SCHEME;

/// Whether a call may have to wait for where sessions are. Handing in a step does not, where we know the session: it sees
/// to that itself.
pub(super) fn may_wait(call: &Call) -> bool {
    match call {
        Call::Tool { name, .. } => {
            ["workflow_start", "workflow_status", "workflow_rewind"].contains(name)
        }
        Call::ListResources { .. } | Call::Settle { .. } => true,
        Call::ReadResource { uri } => uri.starts_with(SCHEME),
        Call::Complete { reference: Reference::Resource(template), .. } => {
            template.starts_with(SCHEME)
        }
        _ => false,
    }
}

/// Larger arguments than this are not even read on a thread that others wait for.
const INLINE_BYTES_MAX: usize = 16 * 1024;
/// The same for what is written to a session: on a thread of its own it would hold that until the disk is done, and
/// there are few.
const INLINE_SUBMISSION_BYTES_MAX: usize = 64 * 1024;

/// Whether a call brings more than is looked at while others wait. Those of upstreams are tasks of their own.
pub(super) fn is_large(call: &Call) -> bool {
    match call {
        Call::Tool { name, arguments, .. } => {
            let limit = match *name {
                "workflow_start" | "workflow_advance" => INLINE_SUBMISSION_BYTES_MAX,
                _ => INLINE_BYTES_MAX,
            };
            name.starts_with("workflow_") && arguments.get().len() > limit
        }
        _ => false,
    }
}

/// What comes of a call in the end.
pub(super) fn ended(mut carried: Carried) -> Outcome {
    loop {
        carried = match carried {
            Carried::Now(outcome) => return outcome,
            Carried::Later(work) => return work(),
            Carried::Told(begin) => {
                let (sender, receiver) = sync_channel(1);
                begin(Finish::new(move |news| {
                    if let News::Done(carried) = news {
                        // We wait for it.
                        let _ = sender.send(carried);
                    }
                }));
                receiver.recv().unwrap_or(Carried::Now(Outcome::Fault))
            }
        }
    }
}
