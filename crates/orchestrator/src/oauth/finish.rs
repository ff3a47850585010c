//! The second half of a login: a person has said yes or no, and a token is fetched and kept.

use std::time::Duration;

use oauth2::TokenResponse as _;
use tokio::time::timeout;

use super::begin::{Begun, quietly};
use super::callback::{Answer, Foreign};
use super::error::Error;

/// A login that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// How long the token is good for; nothing where the issuer does not say.
    pub good_for: Option<Duration>,
    /// Whether it goes on by itself afterwards.
    pub is_renewable: bool,
}

impl Begun {
    /// Waits for the person, gets the token and keeps it.
    pub async fn finish(self, limit: Duration) -> Result<LoggedIn, Error> {
        let Self { logins, key, manager, callback, state, mut login, masks, .. } = self;
        let foreign = Foreign::default();
        let answer = timeout(limit, callback.answer(&state, &foreign)).await;
        let answer =
            answer.map_err(|_| Error::Unfinished { after: limit, foreign: foreign.has_come() })?;
        let (code, issuer) = match answer {
            Answer::Code { code, issuer } => (code, issuer),
            Answer::Refused { code, description } => {
                return Err(Error::Refused { code, description });
            }
        };
        let masks = masks.and([code.clone()]);
        let exchanged =
            manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        let tokens = quietly(exchanged).await.map_err(|error| Error::of_exchange(error, &masks))?;
        login.take(&tokens);
        let done = LoggedIn {
            issuer: login.issuer.clone(),
            scopes: login.scopes.clone(),
            good_for: tokens.expires_in(),
            is_renewable: login.refresh_token.is_some(),
        };
        // Whoever is renewing the former login must not write over this one.
        let _alone = logins.0.keep.hold_renewal(&key, super::renew::RENEWAL_LIMIT).await?;
        let kept = logins.0.keep.change(|records| {
            let record = records.entry(&key);
            record.login = Some(login);
            record.refused = None;
        });
        kept.await?;
        Ok(done)
    }
}
