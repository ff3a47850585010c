//! Logins, with a server that wants them and one that gives tokens.

mod files;
mod issuer;
mod log;
mod login;
mod processes;
mod renewal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orchestrator::oauth::{Begun, Error as LoginError, LoggedIn, Logins};
use orchestrator::{CallResult, Error};
use registry::entry::Connect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{FOR_EVER, World, call};
use issuer::Issuer;

/// One upstream with a login, and the person who logs in.
struct Guarded {
    issuer: Issuer,
    world: World,
    logins: Logins,
    folder: TempDir,
}

impl Guarded {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let issuer = Issuer::start().await;
        let folder = TempDir::new().unwrap();
        let logins = Logins::new(folder.path().join("state/logins.json"));
        let mut entry = entry(&issuer.url());
        change(&mut entry);
        let tokens = Arc::new(logins.clone());
        let world = World::with(&[("test", entry)], |options| options.tokens = Some(tokens));
        Self { issuer, world, logins, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("state/logins.json")
    }

    fn kept(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.file()).unwrap()).unwrap()
    }

    /// Changes what is kept, as its owner can.
    fn tamper(&self, change: impl FnOnce(&mut Value)) {
        let mut kept = self.kept();
        change(&mut kept["logins"][0]["login"]);
        std::fs::write(self.file(), kept.to_string()).unwrap();
    }

    /// The token is good no longer, as far as we know.
    fn expire(&self) {
        self.tamper(|login| login["expiresAt"] = 1.into());
    }

    fn connect(&self) -> Connect {
        self.world.watched.current().get("test").unwrap().connect.clone()
    }

    async fn begin(&self) -> Result<Begun, LoginError> {
        self.logins.begin("test", &self.connect(), None).await
    }

    async fn login(&self) -> Result<LoggedIn, LoginError> {
        let begun = self.begin().await?;
        let browser = tokio::spawn(browse(begun.url().to_owned()));
        let done = begun.finish(FOR_EVER).await;
        browser.await.unwrap();
        done
    }

    async fn call(&self, tool: &str) -> Result<CallResult, Error> {
        self.world.orchestrator.call(call("test", tool, json!({}))).await
    }

    /// What the server says about the token that it was shown.
    async fn said(&self) -> String {
        let result = self.call("read").await.unwrap();
        result.raw["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn entry(url: &str) -> Value {
    json!({
        "mcp": {"transport": "http", "url": url, "auth": {"type": "oauth"}},
        "sensitivity": "low",
        "timeoutMs": 30_000,
        "maxCallsPerMinute": 100_000,
    })
}

/// Opens an address and goes wherever it is sent, as a browser does. What comes in the end, and how.
async fn browse(url: String) -> (u16, String) {
    // It makes no difference whether somebody else has done it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let response = reqwest::get(url).await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Nobody who is not let in should wait for long.
const A_MOMENT: Duration = Duration::from_millis(200);
