//! What a client carries for us while its user is asked, signed: which gate is asked about, for which arguments, and
//! until when. A decision names the version that it is about, so that it counts once.

use sha2::{Digest as _, Sha256};
use store::Version;

use crate::seal::{Seal, hex};

/// How long an answer is good for: somebody may have to be found first.
const GOOD_FOR_MS: u64 = 24 * 60 * 60 * 1000;
/// The form of what is signed. Another form is another number.
const FORM: &str = "2";

#[derive(Debug, Clone)]
pub(crate) struct Signer(Seal);

/// A gate that somebody is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'a> {
    pub(crate) session: &'a str,
    pub(crate) revision: u64,
    /// The call that led to it: what an agent hands in, or the arguments of a start.
    pub(crate) call: &'a str,
}

/// What was signed: enough to decide without the call that asked, in any process that has the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) session: String,
    pub(crate) version: Version,
    revision: u64,
    digest: String,
}

impl Asked {
    /// Whether it was asked about this.
    pub(crate) fn is_about(&self, gate: Gate<'_>) -> bool {
        self.session == gate.session
            && self.revision == gate.revision
            && self.digest == gate.digest()
    }
}

impl Gate<'_> {
    fn digest(&self) -> String {
        hex(&Sha256::digest(self.call.as_bytes()))
    }
}

impl Signer {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(Seal::new(key))
    }

    /// For the client of this principal to carry.
    pub(crate) fn sign(
        &self,
        gate: Gate<'_>,
        version: Version,
        principal: Option<&str>,
        now: u64,
    ) -> String {
        let until = now.saturating_add(GOOD_FOR_MS);
        let Gate { session, revision, .. } = gate;
        let said = format!("{FORM}.{until}.{version}.{revision}.{}.{session}", gate.digest());
        self.0.close(&said, principal)
    }

    /// What its user was asked; none where it is not ours, somebody else's, or too old.
    pub(crate) fn verify(&self, state: &str, principal: Option<&str>, now: u64) -> Option<Asked> {
        let said = self.0.open(state, principal)?;
        let mut parts = said.splitn(6, '.');
        let mut part = || parts.next();
        let (form, until) = (part()?, part()?.parse::<u64>().ok()?);
        let (version, revision) = (part()?.parse().ok()?, part()?.parse().ok()?);
        let (digest, session) = (part()?.to_owned(), part()?.to_owned());
        (form == FORM && until >= now).then_some(Asked { session, version, revision, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_is_good() {
        let signer = Signer::new([1; 32]);
        let gate = Gate { session: "s", revision: 3, call: "sent" };
        let state = signer.sign(gate, 7, Some("ann"), 1_000);
        let verify = |state: &str, now| signer.verify(state, Some("ann"), now);
        let asked = verify(&state, 1_001).unwrap();
        assert_eq!((&*asked.session, asked.version), ("s", 7));
        assert!(asked.is_about(gate));
        assert_eq!(verify(&state, 1_000 + GOOD_FOR_MS + 1), None, "too old");
        for gate in [
            Gate { session: "t", ..gate },
            Gate { revision: 4, ..gate },
            Gate { call: "other", ..gate },
        ] {
            assert!(!asked.is_about(gate), "{gate:?}");
        }
        let another = Signer::new([2; 32]);
        assert_eq!(another.verify(&state, Some("ann"), 1_001), None, "another key");
        for somebody in [None, Some("bob"), Some("")] {
            assert_eq!(signer.verify(&state, somebody, 1_001), None, "{somebody:?}");
        }
        // No byte can be changed, left out or added.
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(verify(&changed, 1_001), None, "{changed}");
            assert_eq!(verify(&state[..at], 1_001), None);
        }
        for odd in [format!("{state}."), format!("{state}0"), "...".to_owned(), String::new()] {
            assert_eq!(verify(&odd, 1_001), None, "{odd}");
        }
    }
}
