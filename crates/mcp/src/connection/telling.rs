//! What a client hears of a call under way: how far it has come, and lines for its log.

use serde_json::json;

use super::Connection;
use crate::action::{Action, Log, Progress, Ticket};
use crate::jsonrpc;

impl Connection {
    /// Tells how far a call has come, if its client wants to hear it. What does not grow is not told.
    pub fn progress(&mut self, ticket: Ticket, progress: &Progress, actions: &mut Vec<Action>) {
        let telling = self.pending.get_mut(&ticket).and_then(|pending| pending.telling.as_mut());
        let Some(telling) = telling.filter(|telling| progress.done > telling.done) else {
            return;
        };
        telling.done = progress.done;
        let mut params = json!({"progressToken": telling.token, "progress": progress.done});
        if let Some(total) = progress.total {
            params["total"] = json!(total);
        }
        if let Some(message) = &progress.message {
            params["message"] = json!(message);
        }
        actions.push(Action::Notify(jsonrpc::notification("notifications/progress", &params)));
    }

    /// A line for the log of the client whose call this is, if it wants to read such lines.
    pub fn log(&mut self, ticket: Ticket, log: &Log, actions: &mut Vec<Action>) {
        let Some(wanted) = self.pending.get(&ticket).and_then(|pending| pending.log_level) else {
            return;
        };
        if log.level < wanted {
            return;
        }
        let mut params = json!({"level": log.level.name(), "data": log.data});
        if let Some(logger) = &log.logger {
            params["logger"] = json!(logger);
        }
        actions.push(Action::Notify(jsonrpc::notification("notifications/message", &params)));
    }
}
