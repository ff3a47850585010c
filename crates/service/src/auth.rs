//! Who makes a request over HTTP: the `Authorization` header in, a principal or a denial out. Two kinds of credentials
//! are known, tokens of our own (`tokens`) and those of an issuer (`oauth`). Nothing here knows HTTP's messages, and no
//! token is ever logged or put into a reason.

use std::sync::Arc;

use serde_json::Value;

use crate::access::Right;
use crate::error::Refusal;

mod credentials;
mod denied;
mod metadata;
mod oauth;
mod tokens;

pub(crate) use denied::Denied;
pub use metadata::{metadata_path, metadata_url};
pub use oauth::{ALGORITHMS_BY_DEFAULT, OAuth, algorithm};
pub use tokens::{Record, TokenList, TokenPlace};

use denied::Why;
use oauth::ResourceServer;
use tokens::Tokens;

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    /// A token's name, or `ISSUER#SUBJECT`. An issuer has a colon, which no name has, and no `#`, so that no two
    /// principals are ever called the same.
    pub(crate) name: Arc<str>,
    pub(crate) right: Right,
    /// When the credentials end, in milliseconds since 1970: no stream should live longer. None where they never do.
    pub(crate) until: Option<u64>,
}

/// What requests are held against.
#[derive(Debug)]
pub struct Authenticator {
    tokens: Option<Tokens>,
    oauth: Option<ResourceServer>,
}

impl Authenticator {
    /// With tokens of our own, with an issuer, or with both. With neither, nobody is let in.
    pub fn new(tokens: Option<TokenPlace>, oauth: Option<OAuth>) -> Result<Self, Refusal> {
        let oauth = oauth.map(ResourceServer::new).transpose()?;
        Ok(Self { tokens: tokens.map(Tokens::new), oauth })
    }

    /// Begins to fetch the issuer's keys, so that the first request does not wait for them.
    pub(crate) fn warm(&self) {
        if let Some(oauth) = &self.oauth {
            oauth.warm();
        }
    }

    /// Whether somebody would be let in now. None where they would, otherwise why not, for `/readyz`. Where there are two
    /// ways in, one of them is enough.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let tokens = self.tokens.as_ref().map(Tokens::not_ready);
        let oauth = self.oauth.as_ref().map(ResourceServer::not_ready);
        let mut ways = tokens.into_iter().chain(oauth);
        match ways.next() {
            None => Some("nobody is let in".to_owned()),
            Some(first) => first.filter(|_| ways.all(|way| way.is_some())),
        }
    }

    /// Whether a token that was good has not been revoked since, or made anew for something else. An issuer's are good
    /// until they end.
    pub(crate) fn is_still_good(&self, name: &str, scope: &str) -> bool {
        let is_issued = name.contains('#');
        is_issued || self.tokens.as_ref().is_none_or(|tokens| tokens.has(name, scope))
    }

    /// Our own tokens, where there are some.
    pub(crate) fn token_list(&self) -> Option<TokenList> {
        self.tokens.as_ref().map(Tokens::list)
    }

    /// Whether anybody has made a token; none where that cannot be said.
    pub(crate) fn has_tokens(&self) -> Option<bool> {
        self.tokens.as_ref().map_or(Some(false), Tokens::are_there)
    }

    /// Somebody has looked a moment ago, and there were no tokens.
    pub fn found_none(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.found_none();
        }
    }

    /// Looks at what has to be waited for; to be called again and again by who may wait.
    pub(crate) fn refresh(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.refresh();
        }
    }

    /// Takes every `Authorization` header of a request, so that two of them are seen as two. Nothing else of a
    /// request is looked at, least of all its query.
    pub(crate) fn check<'a>(
        &'a self,
        authorization: impl IntoIterator<Item = &'a [u8]>,
    ) -> impl Future<Output = Result<Principal, Denied>> + Send + 'a {
        let presented = credentials::presented(authorization);
        async move {
            let checked = match presented {
                Ok(token) => self.check_token(token).await,
                // Whether they needed one cannot be said.
                Err(_) if self.oauth.is_none() && self.has_tokens().is_none() => {
                    let reason = "the server cannot read its tokens; its log says why";
                    Err(Denied::new(Why::Unavailable, reason))
                }
                Err(denied) => Err(denied),
            };
            checked.map_err(|denied| match &self.oauth {
                Some(oauth) => denied.with_scope(oauth.scope()),
                None => denied,
            })
        }
    }

    async fn check_token(&self, token: &str) -> Result<Principal, Denied> {
        match (&self.tokens, &self.oauth) {
            (Some(tokens), _) if tokens::is_ours(token) => tokens.check(token),
            (_, Some(oauth)) => oauth.check(token).await,
            _ => Err(Denied::new(Why::Invalid, "the token is not known")),
        }
    }

    /// What RFC 9728 has a client find out about this address. None where there is no issuer: a client that found a
    /// document would begin something that leads nowhere.
    pub fn metadata(&self, resource: &str) -> Option<Value> {
        self.oauth.as_ref().map(|oauth| metadata::document(resource, oauth))
    }
}

#[cfg(test)]
mod tests;
