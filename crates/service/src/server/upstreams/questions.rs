//! Asks our client's user on behalf of an upstream, in the middle of a call or of a program.

use std::pin::Pin;
use std::sync::Arc;

use mcp::Caller;
use orchestrator::{Answer, Asker, Form, Wanted};
use parking_lot::Mutex;
use serde_json::Map;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::call::{Consent, Said};
use super::shown;

/// Why nobody is asked to confirm a call.
const UNSHOWN: &str = "its arguments are too many to be shown to who would have to confirm it";
/// Why nobody is asked to open an address.
const CANNOT_VISIT: &str = "this client cannot ask its user to open an address";

/// Asks on behalf of an upstream, one question at a time.
pub(super) struct Questions {
    tell: Sender<Said>,
    consent: Consent,
    can_visit: bool,
    /// The confirmation that is missing.
    unconfirmed: Mutex<Option<Form>>,
    turn: tokio::sync::Mutex<()>,
}

impl Questions {
    /// None where our client cannot ask its user.
    pub(super) fn new(tell: &Sender<Said>, caller: &Caller, consent: Consent) -> Option<Arc<Self>> {
        caller.abilities.forms.then(|| {
            Arc::new(Self {
                tell: tell.clone(),
                consent,
                can_visit: caller.abilities.visits,
                unconfirmed: Mutex::default(),
                turn: tokio::sync::Mutex::default(),
            })
        })
    }

    pub(super) fn unconfirmed(&self) -> Option<Form> {
        self.unconfirmed.lock().take()
    }

    async fn answered(&self, form: Form) -> Answer {
        match (&form.wanted, self.consent) {
            (Wanted::Confirmation { .. }, Consent::Given) => Answer::Accepted(Map::new()),
            (Wanted::Confirmation { .. }, Consent::NotYet) => {
                // The call ends here, and begins anew when there is an answer.
                *self.unconfirmed.lock() = Some(form);
                Answer::Cancelled
            }
            (Wanted::Confirmation { arguments, .. }, Consent::OneByOne) => {
                match shown::confirmation(&form.message, arguments) {
                    Ok(message) => self.asked(Form { message, ..form }).await,
                    Err(_) => Answer::NotAsked(UNSHOWN.to_owned()),
                }
            }
            (Wanted::Visit { .. }, _) if !self.can_visit => {
                Answer::NotAsked(CANNOT_VISIT.to_owned())
            }
            (Wanted::Visit { .. } | Wanted::Values { .. }, _) => {
                let form = match shown::asked(form) {
                    Ok(form) => form,
                    Err(why) => return Answer::NotAsked(why.to_owned()),
                };
                self.asked(form).await
            }
        }
    }

    async fn asked(&self, form: Form) -> Answer {
        let _turn = self.turn.lock().await;
        let (answer, answered) = oneshot::channel();
        // Where nobody waits for the call any more, nobody answers.
        let _ = self.tell.send(Said::Question { form, answer }).await;
        answered.await.unwrap_or(Answer::Cancelled)
    }
}

impl Asker for Questions {
    fn ask(&self, form: Form) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(self.answered(form))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use mcp::Abilities;
    use serde_json::json;

    use super::super::call::queue;
    use super::*;

    fn form(message: &str) -> Form {
        let (server, message) = ("office".to_owned(), message.to_owned());
        Form { server, message, wanted: Wanted::Values { schema: json!({"type": "object"}) } }
    }

    /// Questions of an upstream that gives up on them again and again do not pile up, and leave room for the outcome.
    #[tokio::test]
    async fn outcome_arrives_when_questions_fill_queue() {
        let (tell, over, mut said) = queue().unwrap();
        let abilities = Abilities { forms: true, ..Abilities::default() };
        let caller = Caller { abilities, ..Caller::default() };
        let questions = Questions::new(&tell, &caller, Consent::Given).unwrap();
        drop(tell);
        for number in 0..20 {
            let asked = questions.ask(form(&format!("question {number}")));
            let within = std::time::Duration::from_millis(2);
            assert!(tokio::time::timeout(within, asked).await.is_err(), "nobody answers");
        }
        over.send(Said::Ended(Box::default()));
        assert_eq!(said.len(), 2, "a question and the outcome");
        let Some(Said::Question { form, .. }) = said.recv().await else { panic!("no question") };
        assert!(form.message.contains("question 0"), "{}", form.message);
        assert!(matches!(said.recv().await, Some(Said::Ended(_))));
    }

    #[tokio::test]
    async fn nobody_is_asked_once_call_is_abandoned() {
        let (tell, _over, said) = queue().unwrap();
        let abilities = Abilities { forms: true, ..Abilities::default() };
        let caller = Caller { abilities, ..Caller::default() };
        let questions = Questions::new(&tell, &caller, Consent::Given).unwrap();
        drop(said);
        assert_eq!(questions.ask(form("anybody?")).await, Answer::Cancelled);
    }
}
