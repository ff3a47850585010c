//! The one HTTP client of all upstreams, made when the first of them is called: with the cryptography that is linked anyway,
//! trusting whom the machine trusts, and depending on nothing that the process has set up or not.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::redirect::{Attempt, Policy};
use rustls::RootCertStore;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections to one server that are kept for later.
const IDLE_MAX: usize = 16;
/// More redirections than this lead nowhere.
const REDIRECTIONS_MAX: usize = 5;

pub(crate) struct Client {
    plain: Made,
    encrypted: Made,
    redirections: fn() -> Policy,
}

type Made = OnceLock<Result<reqwest::Client, String>>;

/// Follows redirections where nothing can go wrong by it.
impl Default for Client {
    fn default() -> Self {
        Self::with(|| Policy::custom(redirected))
    }
}

impl Client {
    /// Goes where it is told, and nowhere else.
    pub(crate) fn staying() -> Self {
        Self::with(Policy::none)
    }

    fn with(redirections: fn() -> Policy) -> Self {
        Self { plain: Made::new(), encrypted: Made::new(), redirections }
    }

    /// The one for an address.
    pub(crate) fn get(&self, url: &str) -> Result<reqwest::Client, String> {
        let is_encrypted = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
        let made = if is_encrypted { &self.encrypted } else { &self.plain };
        let build =
            || build(is_encrypted, (self.redirections)()).map_err(|error| error.to_string());
        made.get_or_init(build).clone()
    }
}

/// Connections are used again where setting one up is dear. Where it is not, that would be slower: many servers send an
/// answer in several small pieces, and on a connection that is not new the kernel holds the second back for 40 ms.
fn build(
    is_encrypted: bool,
    redirections: Policy,
) -> Result<reqwest::Client, Box<dyn std::error::Error>> {
    let idle = if is_encrypted { IDLE_MAX } else { 0 };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(if is_encrypted { roots() } else { RootCertStore::empty() })
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(idle)
        .redirect(redirections)
        .build()?;
    Ok(client)
}

/// Whom the machine trusts. A container often trusts nobody, for want of a list; there the one of Mozilla's is taken.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Followed only where the message stays what it is, and tokens stay with whom they are for.
fn redirected(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_body =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let first = attempt.previous().first();
    let is_same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if !keeps_body || !is_same {
        attempt.stop()
    } else if attempt.previous().len() > REDIRECTIONS_MAX {
        attempt.error("too many redirections")
    } else {
        attempt.follow()
    }
}
