//! A request that only the host can answer: what is remembered of it until its outcome is here, and what the host is
//! told about who makes it.

use std::sync::Arc;

use super::{Connection, Pending, Telling};
use crate::action::{Action, Call, Caller, Ticket};
use crate::dispatch::Shape;
use crate::era::Origin;
use crate::jsonrpc::{Id, Request};
use crate::traced::Traced;

impl Connection {
    pub(super) fn call(
        &mut self,
        request: &Request<'_>,
        call: Call,
        shape: Shape,
        origin: Origin,
        batch: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        let id = request.id.clone();
        self.warn_if_in_flight(&id, actions);
        self.counter += 1;
        let ticket = Ticket(self.counter);
        let Origin { revision, abilities, progress_token, log_level, answers } = origin;
        let token = progress_token.filter(|_| revision.traits().progress);
        let telling = token.map(|token| Telling { token, done: f64::NEG_INFINITY });
        let traced = || Arc::new(Traced::new(id.clone(), revision, request.params));
        let traced = self.server.traces.then(traced);
        let caller = Caller {
            abilities,
            wants_progress: telling.is_some(),
            answers,
            traced: traced.clone(),
            ..self.caller()
        };
        let asking = None;
        let pending =
            Pending { id, revision, shape, batch, abilities, telling, log_level, asking, traced };
        self.pending.insert(ticket, pending);
        actions.push(Action::Call { ticket, call, caller });
    }

    /// Both will be answered, but the client cannot tell the answers apart.
    pub(super) fn warn_if_in_flight(&self, id: &Id, actions: &mut Vec<Action>) {
        let mut waiting = self.pending.values().map(|pending| &pending.id);
        let mut open = self.listeners.iter().map(|listener| &listener.id);
        if waiting.any(|waiting| waiting == id) || open.any(|open| open == id) {
            let id = id.as_json();
            actions.push(Action::Warn(format!("two requests are in flight with the id {id}")));
        }
    }
}
