//! The chain that makes a log tamper-evident: the session's own row has a root hash, each event hashes the one
//! before it, and a seal over the last one and the head ends it. With a key all of them are HMAC-SHA256.
//!
//! Whom it stops: with a key, everybody who can write the file but does not have the key; they can neither
//! change, insert, reorder nor cut events, nor change the head, the goal or the definition unseen. The counter
//! (`sqlite/counter.rs`) binds the seals of all sessions, so that none is removed or put back as it once was. Whom it does
//! not stop: who has the key; who puts the whole file back as it once was, unless the count was written down elsewhere.
//! Without a key it finds accidents only: anybody can compute a plain hash anew.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::model::{Event, Head, NewSession, Version};

pub(crate) type Hash = [u8; 32];

/// A secret of the caller's, kept outside the store.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(…)")
    }
}

/// Computes the hashes of one store.
#[derive(Clone)]
pub(crate) struct Chain {
    /// A hash that has taken in the key, where there is one: each begins as a copy of it.
    begun: Sum,
}

impl fmt::Debug for Chain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Chain(…)")
    }
}

/// What the root binds: everything about a session that never changes.
pub(crate) struct Root<'a> {
    pub(crate) id: &'a str,
    pub(crate) key: Option<&'a str>,
    pub(crate) owner: &'a str,
    pub(crate) workflow: &'a str,
    pub(crate) goal: &'a str,
    pub(crate) definition_hash: &'a str,
    pub(crate) definition_text: &'a [u8],
    pub(crate) created: u64,
}

impl<'a> Root<'a> {
    pub(crate) fn of(session: &'a NewSession) -> Self {
        Self {
            id: &session.id,
            key: session.key.as_deref(),
            owner: &session.owner,
            workflow: &session.workflow,
            goal: &session.goal,
            definition_hash: &session.definition.hash,
            definition_text: session.definition.text.as_bytes(),
            created: session.time,
        }
    }
}

/// What the hash of an event binds.
pub(crate) struct Link<'a> {
    pub(crate) session: &'a str,
    pub(crate) version: Version,
    pub(crate) time: u64,
    pub(crate) kind: &'a [u8],
    pub(crate) revision: Option<u64>,
    pub(crate) digest: Option<&'a [u8]>,
    pub(crate) body: &'a [u8],
}

impl Chain {
    pub(crate) fn new(key: Option<Key>) -> Self {
        let begun = key.map_or_else(
            || Sum::Plain(Sha256::new()),
            |Key(key)| {
                // HMAC itself fills a key up with zeros to the length of a block.
                let mut block = [0; 64];
                block[..key.len()].copy_from_slice(&key);
                Sum::Keyed(Hmac::new(&block.into()))
            },
        );
        Self { begun }
    }

    /// The chain that everybody can compute, for exported logs.
    pub(crate) fn plain() -> Self {
        Self::new(None)
    }

    /// Tells the key without telling it.
    pub(crate) fn key_check(&self) -> Hash {
        self.sum("key").end()
    }

    pub(crate) fn root(&self, root: &Root<'_>) -> Hash {
        let mut sum = self.sum("root");
        sum.bytes(root.id.as_bytes());
        sum.optional(root.key.map(str::as_bytes));
        sum.bytes(root.owner.as_bytes());
        sum.bytes(root.workflow.as_bytes());
        sum.bytes(root.goal.as_bytes());
        sum.bytes(root.definition_hash.as_bytes());
        sum.bytes(root.definition_text);
        sum.number(root.created);
        sum.end()
    }

    pub(crate) fn link(&self, previous: &Hash, link: &Link<'_>) -> Hash {
        let mut sum = self.sum("event");
        sum.bytes(previous);
        sum.bytes(link.session.as_bytes());
        sum.number(link.version);
        sum.number(link.time);
        sum.bytes(link.kind);
        sum.optional(link.revision.map(u64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice));
        sum.optional(link.digest);
        sum.bytes(link.body);
        sum.end()
    }

    pub(crate) fn seal(
        &self,
        last: &Hash,
        session: &str,
        version: Version,
        head: &Head,
        touched: u64,
    ) -> Hash {
        let mut sum = self.sum("head");
        sum.bytes(last);
        sum.bytes(session.as_bytes());
        sum.number(version);
        sum.number(head.status.number().unsigned_abs());
        sum.optional(head.step.as_deref().map(str::as_bytes));
        sum.number(head.revision);
        sum.number(touched);
        sum.end()
    }

    /// A snapshot belongs to one event of one session. It is what a load believes, so it must not be forged.
    pub(crate) fn snapshot(&self, last: &Hash, session: &str, text: &[u8]) -> Hash {
        let mut sum = self.sum("snapshot");
        sum.bytes(last);
        sum.bytes(session.as_bytes());
        sum.bytes(text);
        sum.end()
    }

    /// The counter of a store, over the seals of all its sessions.
    pub(crate) fn counter(&self, store: &[u8], writes: u64, sessions: u64, sum: &Hash) -> Hash {
        let mut seal = self.sum("counter");
        seal.bytes(store);
        seal.number(writes);
        seal.number(sessions);
        seal.bytes(sum);
        seal.end()
    }

    /// A checkpoint of a store that is a server: its number, and the last event before it.
    pub(crate) fn checkpoint(&self, store: &[u8], number: u64, position: u64) -> Hash {
        let mut seal = self.sum("checkpoint");
        seal.bytes(store);
        seal.number(number);
        seal.number(position);
        seal.end()
    }

    fn sum(&self, domain: &str) -> Sum {
        let mut sum = self.begun.clone();
        sum.bytes(b"workflowlookup log 1");
        sum.bytes(domain.as_bytes());
        sum
    }
}

impl Event {
    /// What its hash binds.
    pub(crate) fn link<'a>(&'a self, session: &'a str) -> Link<'a> {
        Link {
            session,
            version: self.version,
            time: self.time,
            kind: self.kind.as_bytes(),
            revision: self.revision,
            digest: self.digest.as_ref().map(<[u8; 32]>::as_slice),
            body: self.body.as_bytes(),
        }
    }
}

/// Fields go in with their lengths, so that no two lists of fields look alike.
#[derive(Clone)]
enum Sum {
    Keyed(Hmac<Sha256>),
    Plain(Sha256),
}

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    fn number(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.number(u64::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        match self {
            Self::Keyed(sum) => Mac::update(sum, bytes),
            Self::Plain(sum) => Digest::update(sum, bytes),
        }
    }

    fn end(self) -> Hash {
        match self {
            Self::Keyed(sum) => sum.finalize().into_bytes().into(),
            Self::Plain(sum) => sum.finalize().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::hex;
    use crate::model::Status;

    /// Stored logs were hashed like this, so it never changes.
    #[test]
    fn hashes_are_computed_as_ever() {
        let chain = Chain::new(Some(Key::new([7; 32])));
        let root = chain.root(&Root {
            id: "a",
            key: Some("k"),
            owner: "ann",
            workflow: "tidy-up",
            goal: "tidy the cellar",
            definition_hash: "d1",
            definition_text: b"{}",
            created: 1_000,
        });
        let link = Link {
            session: "a",
            version: 1,
            time: 1_000,
            kind: b"started",
            revision: Some(0),
            digest: None,
            body: b"{}",
        };
        let last = chain.link(&root, &link);
        let head = Head { status: Status::Running, step: Some("only".to_owned()), revision: 0 };
        let seal = chain.seal(&last, "a", 1, &head, 1_000);
        let snapshot = chain.snapshot(&last, "a", b"state");
        let hashes = [chain.key_check(), root, last, seal, snapshot].map(|hash| hex(&hash));
        assert_eq!(
            hashes,
            [
                "671c6c971ec3f068d126808884875565dfd5071d00ccaf82d9e13c5dfaa6af29",
                "d0e8da2fbcfc4b62aeaccfd81b8d2b7cb2a6fd397babde553512409ce1befbfb",
                "7aeafb37e3148ce478d4131d025c5641c0d2694bd63d8fb9cceafb3d2e3b9394",
                "4bc7a9cd98c0b630f28bf1eb8f2912240ed8f9b5b17be56e5b9c26a1c975b1f3",
                "5f7622f193d6372f14d540abc138d17c725be5a9463da6b7a556779bf8b20847"
            ]
        );
    }

    #[test]
    fn neighbouring_fields_do_not_run_together() {
        let hash = |kind: &[u8], body: &[u8], digest: Option<&[u8]>| {
            let link =
                Link { session: "a", version: 1, time: 1, kind, revision: None, digest, body };
            Chain::plain().link(&[0; 32], &link)
        };
        assert_ne!(hash(b"ab", b"c", None), hash(b"a", b"bc", None));
        assert_ne!(hash(b"a", b"b", None), hash(b"a", b"b", Some(b"")));
    }
}
