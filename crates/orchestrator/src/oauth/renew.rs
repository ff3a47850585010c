//! Renewing a token. One at a time does it, of all tasks and all processes, and whoever waited takes what the other brought:
//! a token to renew with is good for one time only where issuers are careful, and a second use ends the login.

use std::time::{Duration, Instant};

use oauth2::basic::BasicErrorResponseType;
use oauth2::{RefreshToken, RequestTokenError, Scope};
use parking_lot::Mutex;
use registry::Masks;
use registry::entry::Connect;
use tokio::sync::oneshot;

use super::http::{ANSWER_LIMIT, Http, Request};
use super::keep::Unkept;
use super::record::{Key, Login};
use super::{Logins, client_secret};

/// How long somebody else may take to renew a token that we want too.
pub(super) const RENEWAL_LIMIT: Duration = Duration::from_secs(ANSWER_LIMIT.as_secs() + 10);
/// An issuer that did not answer is left alone for a moment.
const PAUSE: Duration = Duration::from_secs(10);
/// A server that refuses what was just renewed for it would have us renew for ever.
const REFUSALS_APART: Duration = Duration::from_secs(10);

/// Why it is to be renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Expires,
    /// The server does not take this one.
    Refused {
        token: String,
    },
}

/// Why there is no new token.
#[derive(Debug, Clone)]
pub(super) enum Unrenewed {
    /// The issuer says no, for good. Somebody has to log in.
    Rejected,
    /// The issuer did not answer.
    Failed(String),
    Unkept(String),
}

impl From<Unkept> for Unrenewed {
    fn from(unkept: Unkept) -> Self {
        match unkept.is_passing() {
            true => Self::Failed(unkept.to_string()),
            false => Self::Unkept(unkept.to_string()),
        }
    }
}

/// All in this process who want the same token renewed.
#[derive(Default)]
pub(super) struct Lane {
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    failed: Option<(Instant, String)>,
    /// When a token was renewed because it was refused.
    refused: Option<Instant>,
}

/// The new token. It goes on when nobody waits any more: an answer of the issuer must not be lost.
pub(super) async fn renew(
    logins: &Logins,
    key: &Key,
    connect: &Connect,
    reason: Reason,
) -> Result<String, Unrenewed> {
    let (sender, receiver) = oneshot::channel();
    let (logins, key, connect) = (logins.clone(), key.clone(), connect.clone());
    tokio::spawn(async move {
        let renewed = alone(&logins, &key, &connect, &reason).await;
        if let Err(Unrenewed::Failed(why)) = &renewed {
            tracing::warn!(server = key.server, "its token cannot be renewed now: {why}");
        }
        let _ = sender.send(renewed);
    });
    receiver.await.unwrap_or_else(|_| Err(Unrenewed::Failed("we are ending".to_owned())))
}

async fn alone(
    logins: &Logins,
    key: &Key,
    connect: &Connect,
    reason: &Reason,
) -> Result<String, Unrenewed> {
    let lane = logins.lane(key);
    let _turn = lane.turn.lock().await;
    lane.may_try(reason)?;
    let _alone = logins.0.keep.hold_renewal(key, RENEWAL_LIMIT).await?;
    // Somebody else may have done it while we waited.
    let records = logins.0.keep.read_anew()?;
    let login = records.login(key).ok_or(Unrenewed::Rejected)?;
    if !is_due(login, reason) {
        return Ok(login.access_token.clone());
    }
    let refresh_token = login.refresh_token.clone().ok_or(Unrenewed::Rejected)?;
    let secret = client_secret(login, Some(connect));
    let renewed = exchange(&logins.0.http, login, &refresh_token, secret).await;
    lane.came_to(reason, renewed.as_ref().err());
    match renewed {
        Ok(new) => {
            let token = new.access_token.clone();
            logins.0.keep.hide(&token);
            let kept = logins.0.keep.change(|records| {
                // Whoever logged out meanwhile wants it to stay so.
                if let Some(login) = records.login_with(key, &refresh_token) {
                    *login = new;
                }
            });
            match kept.await {
                Ok(()) => tracing::debug!(server = key.server, "its token was renewed"),
                // It can be used once, at least.
                Err(unkept) => {
                    tracing::warn!(server = key.server, "its new token cannot be kept: {unkept}")
                }
            }
            Ok(token)
        }
        Err(Unrenewed::Rejected) => {
            tracing::info!(server = key.server, "its login has ended");
            // What is no good any more is not tried again.
            let forgotten = logins.0.keep.change(|records| {
                if let Some(login) = records.login_with(key, &refresh_token) {
                    login.refresh_token = None;
                }
            });
            forgotten.await?;
            Err(Unrenewed::Rejected)
        }
        Err(other) => Err(other),
    }
}

fn is_due(login: &Login, reason: &Reason) -> bool {
    match reason {
        Reason::Expires => login.is_ending(),
        Reason::Refused { token } => login.access_token == *token,
    }
}

impl Lane {
    fn may_try(&self, reason: &Reason) -> Result<(), Unrenewed> {
        let last = self.last.lock();
        let is_recent = |at: &Instant, pause| at.elapsed() < pause;
        if let Some((at, why)) = &last.failed
            && is_recent(at, PAUSE)
        {
            return Err(Unrenewed::Failed(why.clone()));
        }
        match (reason, &last.refused) {
            (Reason::Refused { .. }, Some(at)) if is_recent(at, REFUSALS_APART) => {
                Err(Unrenewed::Rejected)
            }
            _ => Ok(()),
        }
    }

    fn came_to(&self, reason: &Reason, failure: Option<&Unrenewed>) {
        let mut last = self.last.lock();
        last.failed = match failure {
            Some(Unrenewed::Failed(why)) => Some((Instant::now(), why.clone())),
            _ => None,
        };
        if matches!(reason, Reason::Refused { .. }) && failure.is_none() {
            last.refused = Some(Instant::now());
        }
    }
}

/// Asks the issuer.
async fn exchange(
    http: &Http,
    login: &Login,
    refresh_token: &str,
    secret: Option<String>,
) -> Result<Login, Unrenewed> {
    let masks =
        Masks::new(secret.iter().map(String::as_str).chain([refresh_token, &login.access_token]));
    let failed = |text: &str| {
        let issuer = login.issuer.as_deref().unwrap_or(&login.token_endpoint);
        Unrenewed::Failed(format!("`{issuer}` gives no new token: {}", masks.hide(text)))
    };
    let client = login.client(secret).map_err(|error| failed(&error.to_string()))?;
    let refresh_token = RefreshToken::new(refresh_token.to_owned());
    let mut request =
        client.exchange_refresh_token(&refresh_token).add_extra_param("resource", &login.resource);
    for scope in &login.scopes {
        request = request.add_scope(Scope::new(scope.clone()));
    }
    let send = |request: Request| {
        let http = http.clone();
        async move { http.send(request).await }
    };
    match request.request_async(&send).await {
        Ok(tokens) => {
            let mut new = login.clone();
            new.take(&tokens);
            Ok(new)
        }
        Err(RequestTokenError::ServerResponse(response)) => match response.error() {
            // The token or the client is not known there any more.
            BasicErrorResponseType::InvalidGrant
            | BasicErrorResponseType::InvalidClient
            | BasicErrorResponseType::UnauthorizedClient => Err(Unrenewed::Rejected),
            _ => Err(failed(&response.to_string())),
        },
        Err(RequestTokenError::Request(error)) => Err(failed(&error.to_string())),
        // The text may be a token.
        Err(RequestTokenError::Parse(..)) => Err(failed("its answer cannot be read")),
        Err(RequestTokenError::Other(why)) => Err(failed(&why)),
    }
}
