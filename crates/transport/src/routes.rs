//! Which exchange in this process waits for a message that comes by another request: an answer to a question of ours,
//! or the client's word that it takes a request back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;

use crate::handshake_token;

/// Where messages for an exchange go. What is routed is bounded by what is let in, and read at once.
pub(crate) type Mailbox = UnboundedSender<Bytes>;

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
        let mailbox = self.inner().asked.remove(&(client, id));
        mailbox.is_some_and(|mailbox| mailbox.send(body).is_ok())
    }

    pub(crate) fn cancel(&self, request: &Request, body: Bytes) {
        if let Some(mailbox) = self.inner().under_way.get(request) {
            // It may be over by now.
            let _ = mailbox.send(body);
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
