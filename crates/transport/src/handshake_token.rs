//! What a client with a handshake carries as its `Mcp-Session-Id`: what the handshake came to and whose it is, signed
//! and with an end. Nothing is kept for it here, so that nothing leaks and any process that has the key serves it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac as _};
use mcp::{Abilities, Handshake, Revision};
use sha2::Sha256;

use crate::limits::{HANDSHAKE_TIME, PRINCIPAL_BYTES_MAX};

/// The form of what is signed. Another form is another number.
const FORM: u8 = 1;
const ID_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// Form, revision, abilities, end.
const FIXED_BYTES: usize = 1 + 1 + 1 + 8;

pub(crate) type Id = [u8; ID_BYTES];

/// A handshake that was had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Had {
    pub(crate) id: Id,
    pub(crate) handshake: Handshake,
    pub(crate) principal: Option<Arc<str>>,
    /// In milliseconds since 1970.
    pub(crate) until: u64,
}

#[derive(Clone)]
pub(crate) struct Signer([u8; 32]);

impl Signer {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    pub(crate) fn sign(
        &self,
        id: Id,
        handshake: Handshake,
        principal: Option<&str>,
        now: u64,
    ) -> String {
        let until = now + u64::try_from(HANDSHAKE_TIME.as_millis()).unwrap_or(u64::MAX);
        let Abilities { forms, visits, sampling, roots } = handshake.abilities;
        let bits = u8::from(forms) | u8::from(sampling) << 1 | u8::from(roots) << 2;
        let bits = bits | u8::from(principal.is_some()) << 3 | u8::from(visits) << 4;
        let mut bytes = vec![FORM, handshake.revision as u8, bits];
        bytes.extend(until.to_be_bytes());
        bytes.extend(id);
        bytes.extend(principal.unwrap_or_default().as_bytes());
        let mac = self.mac(&bytes).finalize().into_bytes();
        bytes.extend(mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// None where it is not ours, or too old.
    pub(crate) fn verify(&self, token: &[u8], now: u64) -> Option<Had> {
        let length_max = FIXED_BYTES + ID_BYTES + PRINCIPAL_BYTES_MAX + MAC_BYTES;
        if token.len() > length_max.div_ceil(3) * 4 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (said, mac) = bytes.split_last_chunk::<MAC_BYTES>()?;
        self.mac(said).verify_slice(mac).ok()?;
        let (&[form, revision, bits], rest) = said.split_first_chunk()?;
        let (until, rest) = rest.split_first_chunk()?;
        let (id, name) = rest.split_first_chunk()?;
        let until = u64::from_be_bytes(*until);
        if form != FORM || until < now {
            return None;
        }
        let abilities = Abilities {
            forms: bits & 1 != 0,
            visits: bits & 16 != 0,
            sampling: bits & 2 != 0,
            roots: bits & 4 != 0,
        };
        let revision = *Revision::LEGACY.get(usize::from(revision))?;
        let name = str::from_utf8(name).ok()?;
        let principal = (bits & 8 != 0).then(|| name.into());
        Some(Had { id: *id, handshake: Handshake { revision, abilities }, principal, until })
    }

    fn mac(&self, said: &[u8]) -> Hmac<Sha256> {
        // A short key is filled up with zeros: that is how it is defined.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        let mut mac: Hmac<Sha256> = KeyInit::new(&block.into());
        mac.update(said);
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
    use super::*;

    #[test]
    fn only_what_was_signed_is_good_and_not_for_ever() {
        let signer = Signer::new([1; 32]);
        let time = u64::try_from(HANDSHAKE_TIME.as_millis()).unwrap();
        for revision in Revision::LEGACY {
            for principal in [None, Some(""), Some("ann"), Some("sub@https://issuer.example")] {
                let abilities =
                    Abilities { forms: true, visits: true, sampling: false, roots: true };
                let handshake = Handshake { revision, abilities };
                let token = signer.sign([7; 16], handshake, principal, 1_000);
                assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
                let had = signer.verify(token.as_bytes(), 1_001).unwrap();
                let expected = Had {
                    id: [7; 16],
                    handshake,
                    principal: principal.map(Into::into),
                    until: 1_000 + time,
                };
                assert_eq!(had, expected);
                assert_eq!(signer.verify(token.as_bytes(), 1_000 + time + 1), None, "too old");
                assert_eq!(Signer::new([2; 32]).verify(token.as_bytes(), 1_001), None);
                let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
                for bit in 0..8 * bytes.len() {
                    let mut bytes = bytes.clone();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    let flipped = URL_SAFE_NO_PAD.encode(bytes);
                    assert_eq!(signer.verify(flipped.as_bytes(), 1_001), None, "bit {bit}");
                }
                for length in 0..token.len() {
                    assert_eq!(signer.verify(&token.as_bytes()[..length], 1_001), None);
                }
            }
        }
        for odd in [&b""[..], b"x", b"\xff\xff", &[b'A'; 10_000]] {
            assert_eq!(signer.verify(odd, 0), None);
        }
    }
}
