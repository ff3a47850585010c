//! Tokens of our own: `wfl_ID_SECRET`. Whoever has made one has seen it once; what is kept is a hash of it. The id
//! finds the hash, so that the secret is compared once and in constant time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::access::Right;
use crate::error::Refusal;

mod file;
mod list;
mod watched;

pub use list::{TokenList, TokenPlace};
pub(super) use watched::Tokens;

/// By this a token is known as ours, also by those who look for secrets in places where there should be none.
const PREFIX: &str = "wfl_";
/// How many tokens there may be.
const TOKENS_MAX: usize = 1000;
const NAME_CHARS_MAX: usize = 64;
/// Enough that no two of so many are the same.
const ID_LENGTH: usize = 10;
/// Five bits each: 260 that nobody guesses.
const SECRET_LENGTH: usize = 52;
/// Nothing in it that is mistaken for something else.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// What is kept of a token. A field that this version does not know may say what the token is not good for, so a file
/// with one cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub id: String,
    pub name: Arc<str>,
    hash: Hash,
    /// Milliseconds since 1970.
    pub made: u64,
    /// None: it never expires.
    pub until: Option<u64>,
    /// Left out where it is the first one that there was, so that earlier versions can read the file as long as they
    /// understand all of it.
    #[serde(default, skip_serializing_if = "Right::is_use")]
    pub right: Right,
}

impl Record {
    pub fn is_expired(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// SHA-256 of a whole token, in hexadecimal digits where it is written down. A slow hash would gain nothing: what is
/// hashed is random, and nobody tries 2²⁵⁶ of them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Hash([u8; 32]);

impl Hash {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Takes as long whatever the two have in common.
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "a hash is 64 hexadecimal digits";
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong)?;
        }
        Ok(Self(hash))
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hash")
    }
}

pub(super) fn is_ours(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// The public part of a token, if it looks like one at all.
fn id_of(token: &str) -> Option<&str> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (is_id(id) && is_written(secret, SECRET_LENGTH)).then_some(id)
}

fn is_id(text: &str) -> bool {
    is_written(text, ID_LENGTH)
}

fn is_written(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| LETTERS.contains(&byte))
}

/// A name is a word in a log and in lists: nothing in it that needs quoting, or looks like an option.
fn is_name(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.bytes().all(is_inside)
}

/// A token that nobody has yet, and what is kept of it.
fn make(
    name: &str,
    right: Right,
    now: u64,
    until: Option<u64>,
) -> Result<(String, Record), Refusal> {
    let id = random(ID_LENGTH)?;
    let token = format!("{PREFIX}{id}_{}", random(SECRET_LENGTH)?);
    let (name, hash) = (name.into(), Hash::of(&token));
    let record = Record { id, name, hash, made: now, until, right };
    Ok((token, record))
}

fn random(length: usize) -> Result<String, Refusal> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|error| Refusal::Store {
        details: format!("the system gives no random numbers: {error}"),
        hint: None,
    })?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_form_and_kept_as_a_hash() {
        let (token, record) = make("ci", Right::Use, 1, None).unwrap();
        assert!(is_ours(&token));
        assert_eq!(id_of(&token), Some(&*record.id));
        assert!(record.hash.is(&Hash::of(&token)));
        assert!(!record.hash.is(&Hash::of(&token[..token.len() - 1])));
        let kept = serde_json::to_string(&record).unwrap();
        assert!(!kept.contains(&token[token.len() - 52..]), "{kept}");
        assert!(!format!("{record:?}").contains(&String::from(record.hash.clone())));
        assert_eq!(serde_json::from_str::<Record>(&kept).unwrap(), record);
        assert_ne!(make("ci", Right::Use, 1, None).unwrap().0, token);
        for odd in ["", "wfl_", "wfl_a_b", &token[4..], &token.to_uppercase(), &format!("{token}0")]
        {
            assert_eq!(id_of(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_right_is_kept_where_it_is_not_the_first_one() {
        let kept = |right| serde_json::to_string(&make("ci", right, 1, None).unwrap().1).unwrap();
        assert!(!kept(Right::Use).contains("right"));
        for right in Right::ALL {
            assert_eq!(serde_json::from_str::<Record>(&kept(right)).unwrap().right, right);
        }
        let odd = kept(Right::Admin).replace("admin", "everything");
        assert!(serde_json::from_str::<Record>(&odd).is_err(), "a right that is not known");
    }

    #[test]
    fn names_are_words() {
        for name in ["a", "7", "ci", "build.agent-7_x", "anna@example.com", &"a".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", ".a", "@", "a b", "a#b", "a:b", "ä", "a\n", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
