//! A person who logs in whenever a server wants it: opens the address, is sent back with an answer at once. The login is the
//! product's own.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use orchestrator::oauth::Logins;
use orchestrator::pool::{Boxed, NoToken, Refusal, Tokens};
use registry::entry::Connect;
use tokio::sync::Mutex;

/// What the suite takes for the address of a document about us.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// Nobody logs in more often than this.
const LOGINS_MAX: u32 = 3;
const LOGIN_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Headless {
    logins: Logins,
    /// How often there was a login. One at a time.
    count: Mutex<u32>,
}

impl Headless {
    pub(crate) fn new(logins: Logins) -> Self {
        Self { logins, count: Mutex::default() }
    }

    async fn login(
        &self,
        server: &str,
        connect: &Connect,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let begun = self.logins.begin(server, connect, Some(CLIENT_METADATA)).await?;
        let browser = tokio::spawn(browse(begun.url().to_owned()));
        let finished = begun.finish(LOGIN_LIMIT).await;
        browser.abort();
        finished?;
        Ok(())
    }

    #[expect(clippy::print_stderr, reason = "the suite shows what we say when something fails")]
    async fn asked(&self, refusal: Refusal<'_>) -> Result<bool, NoToken> {
        let mut count = self.count.lock().await;
        if self.logins.refused(refusal).await? {
            return Ok(true);
        }
        if *count == LOGINS_MAX {
            return Ok(false);
        }
        *count += 1;
        match self.login(refusal.server, refusal.connect).await {
            Ok(()) => Ok(true),
            Err(error) => {
                eprintln!("{error}");
                Ok(false)
            }
        }
    }
}

/// Goes where it is sent, until it is sent nowhere.
async fn browse(url: String) -> Result<(), reqwest::Error> {
    // It makes no difference whether somebody else has done it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    reqwest::Client::builder().build()?.get(url).send().await?;
    Ok(())
}

impl Tokens for Headless {
    fn token<'f>(
        &'f self,
        server: &'f str,
        connect: &'f Connect,
    ) -> Boxed<'f, Result<Option<String>, NoToken>> {
        self.logins.token(server, connect)
    }

    fn refused<'f>(&'f self, refusal: Refusal<'f>) -> Boxed<'f, Result<bool, NoToken>> {
        Box::pin(self.asked(refusal))
    }

    fn secrets(&self) -> Arc<[String]> {
        self.logins.secrets()
    }
}
