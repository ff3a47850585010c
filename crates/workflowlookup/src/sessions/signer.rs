//! What a client carries for us while its user is asked, signed: which gate is asked about, for which arguments, and
//! until when. A decision names the version that it is about, so that it counts once.

use hmac::Mac as _;
use sha2::{Digest as _, Sha256};
use store::Version;

use engine::Submission;

use super::key_file::hmac;

/// How long an answer is good for: somebody may have to be found first.
const GOOD_FOR_MS: u64 = 24 * 60 * 60 * 1000;
/// The form of what is signed. Another form is another number.
const FORM: &str = "1";

#[derive(Clone)]
pub(crate) struct Signer([u8; 32]);

/// A gate that somebody is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'a> {
    pub(crate) session: &'a str,
    pub(crate) revision: u64,
    /// The output that waits, and its step.
    pub(crate) submission: &'a Submission,
}

impl Signer {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// For the client to carry.
    pub(crate) fn sign(&self, gate: Gate<'_>, version: Version, now: u64) -> String {
        let until = now.saturating_add(GOOD_FOR_MS);
        let mac = self.mac(gate, version, until).finalize().into_bytes();
        let mac: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{FORM}.{until}.{version}.{mac}")
    }

    /// The version that the user was asked about; none where it is not ours, for something else, or too old.
    pub(crate) fn verify(&self, state: &str, gate: Gate<'_>, now: u64) -> Option<Version> {
        let mut parts = state.split('.');
        let (form, until) = (parts.next()?, parts.next()?.parse().ok()?);
        let (version, mac) = (parts.next()?.parse().ok()?, parts.next()?);
        if form != FORM || parts.next().is_some() || until < now || mac.len() != 64 {
            return None;
        }
        let bytes = (0..32).map(|at| u8::from_str_radix(mac.get(2 * at..2 * at + 2)?, 16).ok());
        let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
        self.mac(gate, version, until).verify_slice(&bytes).ok()?;
        Some(version)
    }

    /// Fields go in with their lengths, so that no two lists of them look alike.
    fn mac(&self, gate: Gate<'_>, version: Version, until: u64) -> hmac::Hmac<Sha256> {
        // The context is sorted by name, so that the same one is always the same text.
        let arguments = serde_json::to_string(gate.submission).unwrap_or_default();
        let digest = Sha256::digest(arguments.as_bytes());
        let numbers = [gate.revision, version, until].map(u64::to_be_bytes);
        let mut mac = hmac(&self.0);
        for field in [FORM.as_bytes(), gate.session.as_bytes(), gate.submission.step.as_bytes()] {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.update(&digest);
        numbers.iter().for_each(|number| mac.update(number));
        mac
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Signer")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_signed_is_good() {
        let signer = Signer::new([1; 32]);
        let submission = |output: &str| Submission {
            step: "send".to_owned(),
            output: output.to_owned(),
            context: json!({"a": 1}).as_object().unwrap().clone(),
        };
        let (sent, other) = (submission("sent"), submission("other"));
        let gate = Gate { session: "s", revision: 3, submission: &sent };
        let state = signer.sign(gate, 7, 1_000);
        assert_eq!(signer.verify(&state, gate, 1_001), Some(7));
        assert_eq!(signer.verify(&state, gate, 1_000 + GOOD_FOR_MS + 1), None, "too old");
        for gate in [
            Gate { session: "t", ..gate },
            Gate { revision: 4, ..gate },
            Gate { submission: &other, ..gate },
        ] {
            assert_eq!(signer.verify(&state, gate, 1_001), None, "{gate:?}");
        }
        assert_eq!(Signer::new([2; 32]).verify(&state, gate, 1_001), None, "another key");
        // No byte can be changed, left out or added.
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(signer.verify(&changed, gate, 1_001), None, "{changed}");
            assert_eq!(signer.verify(&state[..at], gate, 1_001), None);
        }
        for odd in [format!("{state}."), format!("{state}0"), "...".to_owned(), String::new()] {
            assert_eq!(signer.verify(&odd, gate, 1_001), None, "{odd}");
        }
    }
}
