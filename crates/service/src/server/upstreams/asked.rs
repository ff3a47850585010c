//! What a client carries while its user is asked for the sake of a call to an upstream: sealed, for this call and this
//! principal, and not for ever. A confirmation is asked about before anything is under way, and any process that has the
//! key takes the answer. A question of an upstream belongs to a call that waits in one process.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::seal::{self, hex};

/// How long a confirmation is good for.
const CONFIRMATION_MS: u64 = 10 * 60 * 1000;
/// How long a question can be answered by the state that it carries; whether anybody still waits is another matter.
const QUESTION_MS: u64 = 60 * 60 * 1000;
/// So many confirmations that were used are remembered, all that are good at a time in any honest use.
const USED_MAX: usize = 10_000;
/// With this each of them begins, so that they are told from those of gates. Another form is another number.
const FORM: &str = "upstream1.";

/// Makes and reads what clients carry.
pub(super) struct Seal {
    /// None where the system gives no key: then nothing can be asked.
    seal: Option<seal::Seal>,
    /// Another for every process.
    process: String,
    /// Confirmations that were used, with when they end, the oldest first.
    used: Mutex<VecDeque<(u64, String)>>,
}

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// Whether the call may be made. Counts once.
    Confirmation { id: String },
    /// What the upstream wants to know, for the call that waits under this id.
    Question { id: String, is_ours: bool },
}

/// A call as somebody was asked about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) server: &'a str,
    /// None for a program.
    pub(super) tool: Option<&'a str>,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) principal: Option<&'a str>,
}

impl About<'_> {
    fn digest(&self) -> String {
        // Objects are sorted by name, so that the same arguments are always the same text.
        let whole = serde_json::json!([self.server, self.tool.unwrap_or_default(), self.arguments]);
        hex(&Sha256::digest(whole.to_string().as_bytes()))
    }
}

/// Whether a state is one of these.
pub(crate) fn is_ours(state: &str) -> bool {
    state.starts_with(FORM)
}

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let (seal, process) = (Some(seal::Seal::new(key)), new_id().unwrap_or_default());
        Self { seal, process, used: Mutex::default() }
    }

    /// With a key that nobody else has: over standard input and output, answers come back to who asked.
    pub(super) fn of_this_process() -> Self {
        let mut key = [0; 32];
        let filled = getrandom::fill(&mut key);
        let mut made = Self::new(key);
        if let Err(error) = filled {
            tracing::error!("the system gives no random numbers: {error}");
            made.seal = None;
        }
        made
    }

    /// For the client to carry.
    pub(super) fn close(&self, asked: &Asked, about: About<'_>, now: u64) -> Option<String> {
        let (kind, id, good_for) = match asked {
            Asked::Confirmation { id } => ("c", id, CONFIRMATION_MS),
            Asked::Question { id, .. } => ("q", id, QUESTION_MS),
        };
        let until = now.saturating_add(good_for);
        let said = format!("{kind}.{until}.{}.{id}.{}", self.process, about.digest());
        let sealed = self.seal.as_ref()?.close(&said, about.principal);
        Some(format!("{FORM}{sealed}"))
    }

    /// What was asked; none where it is not ours, about another call, somebody else's, or too old.
    pub(super) fn open(&self, state: &str, about: About<'_>, now: u64) -> Option<Asked> {
        let (asked, digest) = self.read(state, about.principal, now)?;
        (digest == about.digest()).then_some(asked)
    }

    /// The same without the call, for who only wants to know which question it was.
    pub(super) fn question(
        &self,
        state: &str,
        principal: Option<&str>,
        now: u64,
    ) -> Option<String> {
        match self.read(state, principal, now)? {
            (Asked::Question { id, is_ours: true }, _) => Some(id),
            _ => None,
        }
    }

    fn read<'s>(
        &self,
        state: &'s str,
        principal: Option<&str>,
        now: u64,
    ) -> Option<(Asked, &'s str)> {
        let said = self.seal.as_ref()?.open(state.strip_prefix(FORM)?, principal)?;
        let mut parts = said.splitn(5, '.');
        let mut part = || parts.next();
        let (kind, until) = (part()?, part()?.parse::<u64>().ok()?);
        let (process, id, digest) = (part()?, part()?.to_owned(), part()?);
        let asked = match kind {
            "c" => Asked::Confirmation { id },
            "q" => Asked::Question { id, is_ours: process == self.process },
            _ => return None,
        };
        (until >= now).then_some((asked, digest))
    }

    /// Takes a confirmation. None counts twice here, and none where too many are remembered already.
    pub(super) fn use_up(&self, id: &str, now: u64) -> bool {
        let mut used = self.used.lock();
        while used.front().is_some_and(|(until, _)| *until < now) {
            used.pop_front();
        }
        if used.len() >= USED_MAX || used.iter().any(|(_, own)| own == id) {
            return false;
        }
        used.push_back((now.saturating_add(CONFIRMATION_MS), id.to_owned()));
        true
    }
}

/// An id that nobody guesses.
pub(super) fn new_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_asked_is_taken_back() {
        let seal = Seal::new([1; 32]);
        let arguments = json!({"b": 1, "a": [true]}).as_object().unwrap().clone();
        let other = json!({"b": 2}).as_object().unwrap().clone();
        let about = About {
            server: "files",
            tool: Some("remove"),
            arguments: &arguments,
            principal: Some("ann"),
        };
        let asked = Asked::Confirmation { id: "x".to_owned() };
        let state = seal.close(&asked, about, 1_000).unwrap();
        assert!(is_ours(&state));
        assert_eq!(seal.open(&state, about, 1_001), Some(asked));
        assert_eq!(seal.open(&state, about, 1_001 + CONFIRMATION_MS), None, "too old");
        for about in [
            About { server: "file", ..about },
            About { tool: Some("removed"), ..about },
            About { arguments: &other, ..about },
            About { principal: Some("bob"), ..about },
            About { principal: None, ..about },
        ] {
            assert_eq!(seal.open(&state, about, 1_001), None, "{about:?}");
        }
        assert_eq!(Seal::new([2; 32]).open(&state, about, 1_001), None, "another key");
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.open(&changed, about, 1_001), None, "{changed}");
            assert_eq!(seal.open(&state[..at], about, 1_001), None);
        }
    }

    #[test]
    fn a_question_belongs_to_one_process() {
        let (seal, another) = (Seal::new([1; 32]), Seal::new([1; 32]));
        let arguments = Map::new();
        let about = About { server: "a", tool: Some("b"), arguments: &arguments, principal: None };
        let asked = Asked::Question { id: "x".to_owned(), is_ours: true };
        let state = seal.close(&asked, about, 0).unwrap();
        assert_eq!(seal.open(&state, about, 1), Some(asked));
        let elsewhere = Asked::Question { id: "x".to_owned(), is_ours: false };
        assert_eq!(another.open(&state, about, 1), Some(elsewhere));
        assert_eq!(seal.question(&state, None, 1), Some("x".to_owned()));
        assert_eq!(another.question(&state, None, 1), None);
        assert_eq!(seal.question(&state, Some("ann"), 1), None);
    }

    #[test]
    fn a_confirmation_counts_once() {
        let seal = Seal::new([1; 32]);
        assert!(seal.use_up("x", 0) && !seal.use_up("x", 1) && seal.use_up("y", 1));
        // What is too old needs no remembering.
        assert!(seal.use_up("z", 2 + CONFIRMATION_MS));
        assert_eq!(seal.used.lock().len(), 1);
    }
}
