//! Where sessions are over a network, calls about them wait, and so they do it on a thread that may.

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
