//! Logging in to upstreams. A person does it once (`begin`, and `finish` of what that gives); from then on connections get
//! their tokens here, which are renewed before they expire and once when one is refused. Whatever is kept is in one file,
//! and whoever renews does it alone: a token to renew with is often good for one time only.

mod begin;
mod callback;
mod challenge;
mod discover;
mod error;
mod finish;
mod http;
mod keep;
mod lock;
mod probe;
mod reach;
mod record;
mod renew;
mod revoke;
mod scopes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use registry::entry::{Auth, Connect};
use serde::Serialize;

pub use begin::Begun;
pub use error::Error;
pub use finish::LoggedIn;
pub use keep::Unkept;

use crate::pool::{Boxed, NoToken, Refusal, Tokens};
use http::Http;
use keep::Keep;
use record::{Key, Login, Record, Refused};
use renew::{Lane, Reason, Unrenewed};

/// So much of what a server says when it refuses us is kept.
const CHALLENGE_BYTES_MAX: usize = 4 * 1024;

/// All logins of one person on this machine. Clones share everything.
#[derive(Clone)]
pub struct Logins(Arc<Inner>);

struct Inner {
    keep: Keep,
    http: Http,
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
}

/// What is known of a login, without anything secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// How long its token is good for; nothing where the issuer does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Whether it goes on by itself.
    pub is_renewable: bool,
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedOut {
    /// There was no login.
    Nothing,
    /// The login server knows that the token must not be used any more.
    Revoked,
    /// The login server was not told, for it cannot be, or could not be reached. The token ends by itself.
    Forgotten,
}

impl Logins {
    /// Nothing is read yet. The folder of the file is made when something is kept first.
    pub fn new(file: PathBuf) -> Self {
        Self(Arc::new(Inner {
            keep: Keep::new(file),
            http: Http::default(),
            lanes: Mutex::default(),
        }))
    }

    /// Where they are kept.
    pub fn file(&self) -> &std::path::Path {
        self.0.keep.path()
    }

    /// Whether somebody is logged in to this upstream.
    pub fn state(&self, server: &str, connect: &Connect) -> Result<Option<State>, Error> {
        let Some(key) = key(server, connect) else { return Ok(None) };
        let records = self.0.keep.read()?;
        Ok(records.login(&key).map(|login| State {
            issuer: login.issuer.clone(),
            scopes: login.scopes.clone(),
            seconds_left: login.seconds_left(),
            is_renewable: login.refresh_token.is_some(),
        }))
    }

    /// Forgets the login to this upstream, and tells who gave the token. Without an address it is all of its name.
    pub async fn logout(
        &self,
        server: &str,
        connect: Option<&Connect>,
    ) -> Result<LoggedOut, Error> {
        let key = connect.and_then(|connect| key(server, connect));
        let gone = self.0.keep.change(|records| {
            let is_meant = |record: &mut Record| match &key {
                Some(key) => record.is(key),
                None => record.server == server,
            };
            let gone = records.logins.extract_if(.., is_meant);
            gone.filter_map(|record| record.login).collect::<Vec<Login>>()
        });
        let mut result = LoggedOut::Nothing;
        for login in gone.await? {
            let secret = client_secret(&login, connect);
            result = match revoke::revoke(&self.0.http, &login, secret.as_deref()).await {
                true if result != LoggedOut::Forgotten => LoggedOut::Revoked,
                _ => LoggedOut::Forgotten,
            };
        }
        Ok(result)
    }

    async fn token(&self, server: &str, connect: &Connect) -> Result<Option<String>, NoToken> {
        let Some(key) = key(server, connect) else { return Ok(None) };
        let records = self.0.keep.read().map_err(no_token)?;
        let Some(login) = records.login(&key) else { return Ok(None) };
        if !login.is_ending() {
            return Ok(Some(login.access_token.clone()));
        }
        let current = || (login.seconds_left() != Some(0)).then(|| login.access_token.clone());
        if login.refresh_token.is_none() {
            return Ok(current());
        }
        match renew::renew(self, &key, connect, Reason::Expires).await {
            Ok(token) => Ok(Some(token)),
            // It is good for a moment still.
            Err(_) if current().is_some() => Ok(current()),
            Err(Unrenewed::Rejected) => Ok(None),
            Err(Unrenewed::Failed(why)) => Err(NoToken::Unavailable(why)),
            Err(Unrenewed::Unkept(why)) => Err(NoToken::Unusable(why)),
        }
    }

    async fn refused(&self, refusal: Refusal<'_>) -> Result<bool, NoToken> {
        let Refusal { server, connect, token, status, challenge } = refusal;
        let Some(key) = key(server, connect) else { return Ok(false) };
        let records = self.0.keep.read_anew().map_err(no_token)?;
        let login = records.login(&key);
        // Somebody else has renewed it meanwhile, or logged in.
        if let Some(login) = login
            && token != Some(&login.access_token)
        {
            return Ok(true);
        }
        if let (401, Some(token), Some(Login { refresh_token: Some(_), .. })) =
            (status, token, login)
        {
            match renew::renew(self, &key, connect, Reason::Refused { token: token.to_owned() })
                .await
            {
                Ok(_) => return Ok(true),
                Err(Unrenewed::Rejected) => {}
                Err(Unrenewed::Failed(why)) => return Err(NoToken::Unavailable(why)),
                Err(Unrenewed::Unkept(why)) => return Err(NoToken::Unusable(why)),
            }
        }
        self.note(&key, status, challenge).await;
        Ok(false)
    }

    /// Remembers what a server wanted, for the next login. That it cannot be remembered is no reason to fail.
    async fn note(&self, key: &Key, status: u16, challenge: Option<&str>) {
        let Some(challenge) = challenge.filter(|text| text.len() <= CHALLENGE_BYTES_MAX) else {
            return;
        };
        let refused = Refused { status, challenge: challenge.to_owned() };
        let noted = self.0.keep.read().map(|records| {
            records.get(key).and_then(|record| record.refused.as_ref()) == Some(&refused)
        });
        if matches!(noted, Ok(true)) {
            return;
        }
        let changed =
            self.0.keep.change(|records| records.entry(key).refused = Some(refused)).await;
        if let Err(error) = changed {
            tracing::debug!(server = key.server, "what it wants cannot be noted: {error}");
        }
    }

    /// Whoever renews the token of an upstream in this process.
    fn lane(&self, key: &Key) -> Arc<Lane> {
        self.0.lanes.lock().entry(key.clone()).or_default().clone()
    }
}

impl Tokens for Logins {
    fn token<'f>(
        &'f self,
        server: &'f str,
        connect: &'f Connect,
    ) -> Boxed<'f, Result<Option<String>, NoToken>> {
        Box::pin(self.token(server, connect))
    }

    fn refused<'f>(&'f self, refusal: Refusal<'f>) -> Boxed<'f, Result<bool, NoToken>> {
        Box::pin(self.refused(refusal))
    }

    fn secrets(&self) -> Arc<[String]> {
        self.0.keep.secrets()
    }
}

/// Where it is kept, and nothing of what.
impl std::fmt::Debug for Logins {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Logins").field(&self.file()).finish()
    }
}

fn key(server: &str, connect: &Connect) -> Option<Key> {
    match connect {
        Connect::Http { url, .. } => Some(Key::new(server, url.reveal())),
        Connect::Stdio { .. } => None,
    }
}

/// The secret of the client that logged in: from the server that registered it, or from the entry, if it is still the same
/// client there.
fn client_secret(login: &Login, connect: Option<&Connect>) -> Option<String> {
    let own = || match connect? {
        Connect::Http { auth: Some(Auth::OAuth { client_id, client_secret, .. }), .. } => {
            let is_same = client_id.as_deref() == Some(&login.client_id);
            client_secret.as_ref().filter(|_| is_same).map(|secret| secret.reveal().to_owned())
        }
        _ => None,
    };
    login.client_secret.clone().or_else(own)
}

fn no_token(unkept: Unkept) -> NoToken {
    match unkept.is_passing() {
        true => NoToken::Unavailable(unkept.to_string()),
        false => NoToken::Unusable(unkept.to_string()),
    }
}
