//! The second half of a login: a person has said yes or no, and a token is fetched and kept.

use std::time::Duration;

use oauth2::{AuthorizationCode, RedirectUrl, RequestTokenError, TokenResponse as _};
use tokio::time::timeout;

use super::begin::Begun;
use super::callback::{Answer, Foreign};
use super::error::Error;
use super::http::Request;

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
        let Self { logins, key, http, callback, state, verifier, secret, must_name_issuer, .. } =
            self;
        let (mut login, masks) = (self.login, self.masks);
        let redirect_uri = callback.redirect_uri().to_owned();
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
        let checked = check_issuer(login.issuer.as_deref(), issuer.as_deref(), must_name_issuer);
        checked.map_err(|error| match error {
            Error::WrongIssuer { expected, received } => {
                let received = masks.hide(&received).into_owned();
                Error::WrongIssuer { expected, received }
            }
            other => other,
        })?;
        let failed = |why: &str| Error::Exchange { why: masks.hide(why).into_owned() };
        let client = login.client(secret).map_err(|error| failed(&error.to_string()))?;
        let redirect =
            RedirectUrl::new(redirect_uri).map_err(|error| failed(&error.to_string()))?;
        let client = client.set_redirect_uri(redirect);
        let send = |request: Request| {
            let http = http.clone();
            async move { http.send(request).await }
        };
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(verifier)
            .add_extra_param("resource", &login.resource);
        let tokens = request.request_async(&send).await.map_err(|error| match error {
            RequestTokenError::ServerResponse(response) => failed(&response.to_string()),
            RequestTokenError::Request(error) => failed(&error.to_string()),
            // The body may contain a token.
            RequestTokenError::Parse(..) => failed("its answer cannot be read"),
            RequestTokenError::Other(why) => failed(&why),
        })?;
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

/// Checks the issuer of the callback (RFC 9207), so that a code of another server is not exchanged.
fn check_issuer(
    expected: Option<&str>,
    received: Option<&str>,
    must_name_issuer: bool,
) -> Result<(), Error> {
    match (expected, received) {
        (Some(expected), Some(received)) if expected == received => Ok(()),
        (Some(expected), Some(received)) => {
            let (expected, received) = (expected.to_owned(), received.to_owned());
            Err(Error::WrongIssuer { expected, received })
        }
        (Some(expected), None) if must_name_issuer => {
            Err(Error::NoIssuer { expected: expected.to_owned() })
        }
        // Older servers do not name themselves.
        (_, None) if !must_name_issuer => Ok(()),
        (None, _) | (_, None) => {
            let why = "it cannot be told whether the answer to the login comes from who was asked";
            Err(Error::Exchange { why: why.to_owned() })
        }
    }
}
