//! Getting the keys of an issuer: from a file, from an address, or from where the issuer says that they are. It waits, so
//! it runs on a thread of its own.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use reqwest::Client;
use serde::Deserialize;

use super::address::Address;
use super::key_set::KeySet;
use crate::web_client::{self, Answer, Unread, WebClient};

/// Everything that is fetched for one set of keys, together.
const FETCH_TIME_MAX: Duration = Duration::from_secs(5);
/// A key with its certificates has a few kilobytes.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

#[derive(Debug, Clone)]
pub(super) enum Source {
    File(PathBuf),
    Url(Address),
    /// By asking the issuer.
    Discovered(Address),
}

/// What an issuer says about itself, of which there is much more.
#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: Option<String>,
}

enum Failure {
    /// It answered, but not with what was wanted: another place may have it.
    Answer(String),
    /// It did not answer, and will not elsewhere either.
    Silence(String),
}

impl Source {
    /// An error says what went wrong, and where.
    pub(super) fn fetch(&self) -> Result<KeySet, String> {
        let deadline = Instant::now() + FETCH_TIME_MAX;
        match self {
            Self::File(path) => from_file(path),
            Self::Url(address) => from_url(address, deadline),
            Self::Discovered(issuer) => from_url(&discover(issuer, deadline)?, deadline),
        }
    }
}

fn from_file(path: &Path) -> Result<KeySet, String> {
    let failed = |why: String| format!("`{}`: {why}", path.display());
    let mut text = Vec::new();
    let file = regular_file::open(path)
        .and_then(|file| file.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut text));
    match file {
        Err(error) => Err(failed(error.to_string())),
        Ok(count) if count > ANSWER_BYTES_MAX => {
            Err(failed(format!("it is larger than {ANSWER_BYTES_MAX} bytes")))
        }
        Ok(_) => KeySet::read(&text).map_err(failed),
    }
}

fn from_url(address: &Address, deadline: Instant) -> Result<KeySet, String> {
    let text = get(address, deadline).map_err(Failure::text)?;
    KeySet::read(&text).map_err(|why| format!("`{}`: {why}", address.as_str()))
}

/// Where an issuer says that its keys are.
fn discover(issuer: &Address, deadline: Instant) -> Result<Address, String> {
    let mut failures = Vec::new();
    for place in issuer.descriptions() {
        let described = get(&place, deadline).and_then(|text| {
            keys_in(&text, issuer)
                .map_err(|why| Failure::Answer(format!("`{}`: {why}", place.as_str())))
        });
        match described {
            Ok(address) => return Ok(address),
            Err(Failure::Answer(why)) => failures.push(why),
            Err(Failure::Silence(why)) => return Err(why),
        }
    }
    Err(failures.join("; "))
}

fn keys_in(text: &[u8], issuer: &Address) -> Result<Address, String> {
    let description: Description = serde_json::from_slice(text)
        .map_err(|error| format!("it does not describe an issuer: {error}"))?;
    // RFC 8414: otherwise somebody could pass for somebody else.
    if description.issuer != issuer.as_str() {
        return Err(format!("it describes the issuer `{}`", description.issuer));
    }
    let keys = description.jwks_uri.ok_or("it does not say where the keys are")?;
    Address::named_by(&keys, issuer).map_err(|why| format!("the keys are at `{keys}`, but {why}"))
}

fn get(address: &Address, deadline: Instant) -> Result<Vec<u8>, Failure> {
    let at = |why: &dyn std::fmt::Display| format!("`{}`: {why}", address.as_str());
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Failure::Silence(at(&"there was no time left to ask")));
    }
    // Made for one request: they are minutes apart, and whoever trusts another certificate since is heeded.
    let kind = web_client::Address {
        is_secure: !address.is_plain(),
        // One without TLS is on this machine.
        is_local: address.is_plain(),
    };
    let get = |client: &Client| client.get(address.as_str()).header(ACCEPT, "application/json");
    let answer = WebClient::new(kind).and_then(|client| client.call(get, left, ANSWER_BYTES_MAX));
    let Answer { status, body } = answer.map_err(|error| Failure::Silence(at(&error)))?;
    if status != 200 {
        return Err(Failure::Answer(at(&format!("it answered with the status {status}"))));
    }
    body.map_err(|unread| match unread {
        Unread::TooLarge => {
            Failure::Answer(at(&format!("the answer is larger than {ANSWER_BYTES_MAX} bytes")))
        }
        Unread::Broken(why) => Failure::Silence(at(&why)),
    })
}

impl Failure {
    fn text(self) -> String {
        match self {
            Self::Answer(why) | Self::Silence(why) => why,
        }
    }
}
