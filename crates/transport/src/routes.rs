//! Which exchange in this process waits for a message that comes by another request: an answer to a question of ours,
//! or the client's word that it takes a request back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::handshake_token;

/// Where messages for an exchange go, which reads them at once. While too many wait, an answer is refused, so that it can
/// be given again, and a cancellation is dropped, as if it had come too late.
pub(crate) type Mailbox = Sender<Bytes>;

#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By the client, and the id of our own request to it.
    asked: HashMap<(handshake_token::Id, String), Mailbox>,
    under_way: HashMap<Request, Mailbox>,
}

/// A request of a client's.
pub(crate) type Request = (handshake_token::Id, mcp::Id);

impl Routes {
    pub(crate) fn expect_answer(&self, client: handshake_token::Id, id: String, mailbox: Mailbox) {
        self.inner().asked.insert((client, id), mailbox);
    }

    pub(crate) fn expect_cancel(&self, request: Request, mailbox: Mailbox) {
        self.inner().under_way.insert(request, mailbox);
    }

    /// Whether somebody here has asked.
    pub(crate) fn answer(&self, client: handshake_token::Id, id: &mcp::Id, body: Bytes) -> bool {
        let Ok(id) = serde_json::from_str::<String>(id.as_json()) else {
            return false;
        };
        let mut inner = self.inner();
        let Entry::Occupied(asked) = inner.asked.entry((client, id)) else { return false };
        match asked.get().try_send(body) {
            Err(TrySendError::Full(_)) => false,
            sent => {
                asked.remove();
                sent.is_ok()
            }
        }
    }

    pub(crate) fn cancel(&self, request: &Request, body: Bytes) {
        if let Some(mailbox) = self.inner().under_way.get(request) {
            // It may be over by now.
            let _ = mailbox.try_send(body);
        }
    }

    pub(crate) fn forget_answers(&self, client: handshake_token::Id, ids: Vec<String>) {
        let mut inner = self.inner();
        for id in ids {
            inner.asked.remove(&(client, id));
        }
    }

    pub(crate) fn forget_request(&self, request: &Request, mailbox: &Mailbox) {
        let mut inner = self.inner();
        // Another with the same id may have come meanwhile.
        if inner.under_way.get(request).is_some_and(|own| own.same_channel(mailbox)) {
            inner.under_way.remove(request);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::*;

    fn body() -> Bytes {
        Bytes::from_static(b"{}")
    }

    #[test]
    fn answer_that_finds_mailbox_full_can_be_given_again() {
        let routes = Routes::default();
        let client = handshake_token::Id::default();
        let id = mcp::Id::parse("\"q-1\"").unwrap();
        let (mailbox, mut mail) = channel(2);
        routes.expect_answer(client, "q-1".to_owned(), mailbox.clone());
        routes.expect_cancel((client, id.clone()), mailbox);
        for _ in 0..5 {
            routes.cancel(&(client, id.clone()), body());
        }
        assert_eq!(mail.len(), 2);
        assert!(!routes.answer(client, &id, body()), "there is no room");
        mail.try_recv().unwrap();
        assert!(routes.answer(client, &id, body()), "there is room again");
        assert!(!routes.answer(client, &id, body()), "an answer counts once");
        assert_eq!(mail.len(), 2);
    }
}
