//! What a client carries from one round to the next, signed for the tool that it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac as _};
use serde_json::Value;
use sha2::Sha256;

const MAC_BYTES: usize = 32;

pub(crate) struct Signer([u8; 32]);

impl Signer {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    pub(crate) fn sign(&self, tool: &str, value: &Value) -> String {
        let mut bytes = value.to_string().into_bytes();
        if let Some(mac) = self.mac(tool, &bytes) {
            bytes.extend(mac.finalize().into_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// None where it was not signed by us, for this tool, as it stands.
    pub(crate) fn read(&self, tool: &str, state: &str) -> Option<Value> {
        let bytes = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (said, mac) = bytes.split_last_chunk::<MAC_BYTES>()?;
        self.mac(tool, said)?.verify_slice(mac).ok()?;
        serde_json::from_slice(said).ok()
    }

    fn mac(&self, tool: &str, said: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(tool.as_bytes());
        mac.update(b"\n");
        mac.update(said);
        Some(mac)
    }
}
