//! Calls of web servers from threads that may wait: with the cryptography that is linked anyway, trusting whom the machine
//! trusts. Redirections are not followed: a server's address is where it is.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Runtime};

/// What kind of address is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) is_secure: bool,
    /// On this machine, whatever the environment says about the way to others.
    pub(crate) is_local: bool,
}

/// Keeps its connections between calls.
pub(crate) struct WebClient {
    client: Client,
    /// None once it is dropped.
    runtime: Option<Runtime>,
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Empty unless the status is one of success.
    pub(crate) body: Result<Vec<u8>, Unread>,
}

/// Why a body was not read to its end.
pub(crate) enum Unread {
    TooLarge,
    Broken(String),
}

impl WebClient {
    pub(crate) fn new(address: Address) -> Result<Self, String> {
        let Address { is_secure, is_local } = address;
        let client = Client::builder()
            .tls_backend_preconfigured(tls(is_secure).map_err(|error| error.to_string())?)
            .https_only(is_secure)
            .redirect(Policy::none())
            .user_agent(concat!("workflowlookup/", env!("CARGO_PKG_VERSION")));
        let client = if is_local { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| described(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime could be started: {error}"))?;
        Ok(Self { client, runtime: Some(runtime) })
    }

    /// Makes a call and waits for the whole answer, within a time. An error says why there is none.
    pub(crate) fn call(
        &self,
        request: impl FnOnce(&Client) -> RequestBuilder,
        time: Duration,
        bytes_max: usize,
    ) -> Result<Answer, String> {
        let Some(runtime) = &self.runtime else { return Err("it is closed".to_owned()) };
        runtime.block_on(async {
            let sent = request(&self.client).timeout(time).send().await;
            let response = sent.map_err(|error| described(&error.without_url()))?;
            let status = response.status();
            let body =
                if status.is_success() { read(response, bytes_max).await } else { Ok(vec![]) };
            Ok(Answer { status: status.as_u16(), body })
        })
    }
}

impl Drop for WebClient {
    /// Does not wait for a name that is still being looked up.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn read(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    let broken = |error: reqwest::Error| Unread::Broken(described(&error.without_url()));
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Unread::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An error with its causes, of which the last says the most.
fn described(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn tls(is_secure: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(if is_secure { roots() } else { RootCertStore::empty() })
        .with_no_client_auth();
    Ok(tls)
}

/// Whom the machine trusts, so that a server of a company's own works as it does for other programs. A container often
/// trusts nobody, for want of a list; there the one of Mozilla's is taken that comes with us.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    /// What goes wrong when this address is called.
    fn why(is_secure: bool, url: &str) -> String {
        let client = WebClient::new(Address { is_secure, is_local: true }).unwrap();
        client.call(|client| client.get(url), TIME, 1_000).map(|_| ()).unwrap_err()
    }

    #[test]
    fn error_names_its_last_cause_and_no_address() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for (is_secure, scheme) in [(false, "http"), (true, "https")] {
            let why = why(is_secure, &format!("{scheme}://{closed}/secret"));
            assert!(why.contains("Connection refused"), "{why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn secure_client_calls_no_plain_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let why = why(true, &format!("http://{}", listener.local_addr().unwrap()));
        assert!(why.contains("scheme"), "{why}");
        assert!(listener.accept().is_err(), "nobody has come");
    }
}
