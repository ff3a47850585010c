//! What a client carries for us and may read and change on the way, made so that we know it again: a text and its mark,
//! which only our key makes, for one principal alone.

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;

/// The mark, as text.
const MARK_LENGTH: usize = 64;

#[derive(Clone)]
pub(crate) struct Seal([u8; 32]);

impl Seal {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// For the client of this principal to carry. What is said has no line end.
    pub(crate) fn close(&self, said: &str, principal: Option<&str>) -> String {
        let mark = hex(&self.mac(said, principal).finalize().into_bytes());
        format!("{mark}.{said}")
    }

    /// What was said; none where it is not ours, or somebody else's.
    pub(crate) fn open<'s>(&self, sealed: &'s str, principal: Option<&str>) -> Option<&'s str> {
        let (mark, said) = sealed.split_once('.')?;
        if mark.len() != MARK_LENGTH {
            return None;
        }
        let bytes = (0..MARK_LENGTH / 2)
            .map(|at| u8::from_str_radix(mark.get(2 * at..2 * at + 2)?, 16).ok());
        let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
        self.mac(said, principal).verify_slice(&bytes).ok()?;
        Some(said)
    }

    fn mac(&self, said: &str, principal: Option<&str>) -> Hmac<Sha256> {
        let mut mac = hmac(&self.0);
        // What is said has no line end, so that no two pairs look alike.
        mac.update(said.as_bytes());
        if let Some(principal) = principal {
            mac.update(b"\n");
            mac.update(principal.as_bytes());
        }
        mac
    }
}

pub(crate) fn hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    // A short key is filled up with zeros: that is how it is defined.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    KeyInit::new(&block.into())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Seal")
    }
}
