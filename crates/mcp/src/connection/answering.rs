//! The client's answers to what it was asked, and questions that are taken back.

use serde_json::json;
use serde_json::value::RawValue;

use super::{Connection, Pending};
use crate::action::{Action, Call, Caller, Ticket};
use crate::asking::{Answer, Answers, Asking};
use crate::jsonrpc::{self, Id};

impl Connection {
    /// The client has answered something. Once nothing is open any more, the call that asked is made again.
    pub(super) fn answered(
        &mut self,
        id: &Id,
        result: Option<&RawValue>,
        actions: &mut Vec<Action>,
    ) {
        let Ok(id) = serde_json::from_str::<String>(id.as_json()) else {
            return;
        };
        let caller = self.caller();
        let mut waiting = self.pending.iter_mut();
        let Some((ticket, pending)) = waiting.find(|(_, pending)| {
            pending.asking.as_ref().is_some_and(|asking| asking.has_asked(&id))
        }) else {
            return self.answered_for_another(&id, result, actions);
        };
        if let Some(asking) = &mut pending.asking
            && !asking.answer(&id, result)
        {
            let warning = "the client gave no answer that can be read; this counts as no choice";
            actions.push(Action::Warn(warning.to_owned()));
        }
        if let Some(asking) = pending.asking.take_if(|asking| asking.is_answered()) {
            actions.push(pending.call_again(*ticket, asking, caller));
        }
    }

    /// Another process may have asked: what its host wrote into the question says what it was about.
    fn answered_for_another(
        &mut self,
        id: &str,
        result: Option<&RawValue>,
        actions: &mut Vec<Action>,
    ) {
        let Some((name, state)) = read_ask_id(id).filter(|_| self.salt.is_some()) else {
            return;
        };
        let answer = result.and_then(|result| Answer::read(result).ok());
        let given = [(name.to_owned(), answer.unwrap_or(Answer::Cancelled))].into();
        let answers = Answers { given, state: Some(state.to_owned()), can_be_repeated: false };
        self.counter += 1;
        let caller = Caller { abilities: self.abilities, ..self.caller() };
        let call = Call::Settle { answers };
        actions.push(Action::Call { ticket: Ticket(self.counter), call, caller });
    }

    /// Nobody waits for an answer any more. Whoever asked may keep something for it.
    pub(super) fn forget(&mut self, state: String) -> Action {
        self.counter += 1;
        let caller = Caller { abilities: self.abilities, ..self.caller() };
        Action::Call { ticket: Ticket(self.counter), call: Call::Forget { state }, caller }
    }

    /// Whoever was asked for this call has taken too long: the questions are taken back, and the call is made
    /// again with the answers that there are.
    pub fn give_up(&mut self, ticket: Ticket, actions: &mut Vec<Action>) {
        let caller = self.caller();
        let Some(pending) = self.pending.get_mut(&ticket) else {
            return;
        };
        if let Some(asking) = pending.asking.take() {
            actions.extend(taken_back(&asking));
            actions.push(pending.call_again(ticket, asking, caller));
        }
    }

    /// Who makes calls here.
    pub(super) fn caller(&self) -> Caller {
        let (principal, scope) = (self.principal.clone(), self.scope.clone());
        Caller { principal, scope, ..Caller::default() }
    }

    /// The calls whose client is being asked about a resource.
    pub(crate) fn asked_about(&self) -> impl Iterator<Item = (Ticket, &str)> {
        self.pending.iter().filter_map(|(ticket, pending)| {
            Some((*ticket, pending.asking.as_ref()?.about.as_deref()?))
        })
    }
}

/// The id of a request of ours. Where the answer may reach another process, it carries what the host wrote into the
/// question, and the question's name.
pub(super) fn ask_id(salt: Option<u128>, counter: u64, state: Option<&str>, name: &str) -> String {
    match (salt, state) {
        (None, _) => format!("ask-{counter}"),
        (Some(salt), None) => format!("ask-{salt:x}-{counter}"),
        (Some(salt), Some(state)) => format!("ask-{salt:x}-{counter}/{name}/{state}"),
    }
}

/// The name and the state in such an id.
fn read_ask_id(id: &str) -> Option<(&str, &str)> {
    let (_, rest) = id.strip_prefix("ask-")?.split_once('/')?;
    rest.split_once('/')
}

pub(super) fn taken_back(asking: &Asking) -> impl Iterator<Item = Action> {
    asking.open_ids().map(|id| {
        let params = json!({"requestId": id, "reason": "no longer needed"});
        Action::Notify(jsonrpc::notification("notifications/cancelled", &params))
    })
}

impl Pending {
    fn call_again(&self, ticket: Ticket, asking: Asking, caller: Caller) -> Action {
        let (call, answers) = asking.finish();
        let (abilities, wants_progress) = (self.abilities, self.telling.is_some());
        let (answers, traced) = (Some(answers), self.traced.clone());
        let caller = Caller { abilities, wants_progress, answers, traced, ..caller };
        Action::Call { ticket, call, caller }
    }
}
