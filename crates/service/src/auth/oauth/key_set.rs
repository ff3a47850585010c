//! The keys that an issuer signs with (RFC 7517). A key that cannot be used here is left out, so that it hides no other.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Issuers have two or three.
const KEYS_MAX: usize = 100;
/// A token that does not name its key is tried with so many of those that fit.
const TRIES_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// What it may check, by what it is and by what the issuer says.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Written {
    keys: Vec<Value>,
}

impl KeySet {
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let written: Written = serde_json::from_slice(text)
            .map_err(|error| format!("they are no set of keys: {error}"))?;
        if written.keys.len() > KEYS_MAX {
            return Err(format!("there are more than {KEYS_MAX} of them"));
        }
        Ok(Self { keys: written.keys.into_iter().filter_map(Key::read).collect() })
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// The keys that may have made a token: the one that it names, or where it or a key has no name, those that could.
    pub(super) fn fitting(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &DecodingKey> {
        let may_be = move |key: &&Key| {
            let is_named = match (id, key.id.as_deref()) {
                (Some(id), Some(key)) => id == key,
                _ => true,
            };
            is_named && key.algorithms.contains(&algorithm)
        };
        self.keys.iter().filter(may_be).map(|key| &key.key).take(TRIES_MAX)
    }
}

impl Key {
    fn read(written: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(written).ok()?;
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature)
        {
            return None;
        }
        let uses = common.key_operations.as_ref();
        if uses.is_some_and(|uses| !uses.contains(&KeyOperations::Verify)) {
            return None;
        }
        let mut algorithms = possible(&jwk.algorithm);
        if let Some(said) = common.key_algorithm {
            let said = Algorithm::try_from(said).ok()?;
            algorithms.retain(|algorithm| *algorithm == said);
        }
        if algorithms.is_empty() {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, algorithms, key })
    }
}

/// What a key of this kind can check. Secrets can check nothing: a public key would pass for one.
fn possible(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![EdDSA]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ids(set: &KeySet) -> Vec<&str> {
        set.keys.iter().map(|key| key.id.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn only_keys_that_check_signatures_are_taken() {
        let set = json!({"keys": [
            {"kid": "rsa", "kty": "RSA", "n": "AQAB", "e": "AQAB"},
            {"kid": "ps", "kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "PS256", "use": "sig"},
            {"kid": "ec", "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB", "key_ops": ["verify"]},
            {"kid": "ed", "kty": "OKP", "crv": "Ed25519", "x": "AQAB", "unknown": {"a": 1}},
            {"kid": "secret", "kty": "oct", "k": "AQAB", "alg": "HS256"},
            {"kid": "encryption", "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc"},
            {"kid": "wrapping", "kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "RSA-OAEP"},
            {"kid": "signing", "kty": "RSA", "n": "AQAB", "e": "AQAB", "key_ops": ["sign"]},
            {"kid": "other alg", "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB", "alg": "RS256"},
            {"kid": "p521", "kty": "EC", "crv": "P-521", "x": "AQAB", "y": "AQAB"},
            {"kid": "x25519", "kty": "OKP", "crv": "X25519", "x": "AQAB"},
            {"kid": "lattice", "kty": "AKP", "alg": "ML-DSA-44", "pub": "AQAB"},
            {"kid": "no base64", "kty": "OKP", "crv": "Ed25519", "x": "!"},
            {"kid": 7, "kty": "OKP", "crv": "Ed25519", "x": "AQAB"},
            {"kty": "OKP", "crv": "Ed25519", "x": "AQAB"},
            "no key at all",
        ]});
        let set = KeySet::read(set.to_string().as_bytes()).unwrap();
        assert_eq!(ids(&set), ["rsa", "ps", "ec", "ed", "-"]);
        let count = |id: Option<&str>, algorithm| set.fitting(id, algorithm).count();
        assert_eq!(count(Some("rsa"), Algorithm::RS256), 1);
        assert_eq!(count(Some("ps"), Algorithm::RS256), 0);
        assert_eq!(count(Some("ec"), Algorithm::ES384), 0);
        assert_eq!(count(Some("ec"), Algorithm::EdDSA), 1, "the one without a name");
        assert_eq!(count(None, Algorithm::PS256), 2);
        assert_eq!(count(None, Algorithm::HS256), 0);
    }

    #[test]
    fn what_is_no_set_is_said_so() {
        for text in ["", "[]", "{}", "{\"keys\": {}}", "<html>", "{\"keys\": [}"] {
            assert!(KeySet::read(text.as_bytes()).is_err(), "{text}");
        }
        let many = json!({"keys": vec![json!({}); KEYS_MAX + 1]}).to_string();
        assert!(KeySet::read(many.as_bytes()).is_err());
        assert_eq!(KeySet::read(b"{\"keys\": []}").unwrap().len(), 0);
    }
}
