//! What is kept of one login. It is bound to an upstream at its address: another address is another server, and must not see
//! the token of this one.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use oauth2::basic::BasicClient;
use oauth2::url::ParseError;
use oauth2::{
    AuthType, ClientId, ClientSecret, EndpointNotSet, EndpointSet, TokenResponse, TokenUrl,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The version of the format that is written.
pub(super) const VERSION: u32 = 1;

/// The whole file.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Records {
    pub(super) version: u32,
    #[serde(default)]
    pub(super) logins: Vec<Record>,
}

/// One upstream that somebody logged in to, or that wants it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) server: String,
    /// A hash, since addresses may have secrets in them.
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) login: Option<Login>,
    /// The next login asks for what the server wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<Refused>,
}

/// What a server said when it did not let us in.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) challenge: String,
}

/// What came of a login.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Login {
    /// Who gave the tokens. They are shown to nobody else but the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issuer: Option<String>,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    /// Only where the server gave it to us. What stands in the registry is not copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    #[serde(default)]
    pub(super) client_shows: Shows,
    /// Whom the tokens are for, as the server calls itself.
    pub(super) resource: String,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    pub(super) access_token: String,
    /// In seconds since 1970; nothing where the issuer does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// How many seconds that was away at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lifetime: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
}

/// How a client shows its secret, if it has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shows {
    #[default]
    InHeader,
    InBody,
}

/// An OAuth client with a token endpoint.
pub(super) type TokenClient =
    BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// An upstream at its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) server: String,
    pub(super) url: String,
}

impl Key {
    pub(super) fn new(server: &str, url: &str) -> Self {
        Self { server: server.to_owned(), url: hash(url) }
    }

    /// A name for files that are about it. It says nothing, and is safe whatever the id is.
    pub(super) fn file_name(&self) -> String {
        hash(&format!("{}\n{}", self.server, self.url))
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Record {
    pub(super) fn new(key: &Key) -> Self {
        Self { server: key.server.clone(), url: key.url.clone(), login: None, refused: None }
    }

    pub(super) fn is(&self, key: &Key) -> bool {
        self.server == key.server && self.url == key.url
    }
}

impl Records {
    pub(super) fn get(&self, key: &Key) -> Option<&Record> {
        self.logins.iter().find(|record| record.is(key))
    }

    pub(super) fn login(&self, key: &Key) -> Option<&Login> {
        self.get(key)?.login.as_ref()
    }

    /// The record of an upstream. Others of its name are left alone: another project's registry may mean them.
    pub(super) fn entry(&mut self, key: &Key) -> &mut Record {
        let at = self.logins.iter().position(|record| record.is(key)).unwrap_or_else(|| {
            self.logins.push(Record::new(key));
            self.logins.len() - 1
        });
        &mut self.logins[at]
    }

    /// The login that can be renewed with this token, if it is still there.
    pub(super) fn login_with(&mut self, key: &Key, refresh_token: &str) -> Option<&mut Login> {
        let record = self.logins.iter_mut().find(|record| record.is(key))?;
        record.login.as_mut().filter(|login| login.refresh_token.as_deref() == Some(refresh_token))
    }

    /// All that must not be seen.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let logins = self.logins.iter().filter_map(|record| record.login.as_ref());
        logins.flat_map(|login| {
            [Some(&login.access_token), login.refresh_token.as_ref(), login.client_secret.as_ref()]
                .into_iter()
                .flatten()
                .map(String::as_str)
        })
    }
}

/// A token that is good for less than this is renewed before it is used: it must arrive while it is good.
const MARGIN_SECONDS: u64 = 60;
/// Of one that lives shortly, the last part of so many is the margin.
const MARGIN_PART: u64 = 4;

impl Login {
    /// Takes over what an issuer gave.
    pub(super) fn take(&mut self, tokens: &impl TokenResponse) {
        self.access_token = tokens.access_token().secret().clone();
        self.lifetime = tokens.expires_in().map(|time| time.as_secs());
        self.expires_at = self.lifetime.map(|seconds| now().saturating_add(seconds));
        // Without a new one the old one stays good.
        if let Some(token) = tokens.refresh_token() {
            self.refresh_token = Some(token.secret().clone());
        }
        // Where nothing is said, it is what was asked for.
        if let Some(scopes) = tokens.scopes() {
            self.scopes = scopes.iter().map(|scope| scope.to_string()).collect();
        }
    }

    /// The client that requests tokens for this login.
    pub(super) fn client(&self, secret: Option<String>) -> Result<TokenClient, ParseError> {
        let endpoint = TokenUrl::new(self.token_endpoint.clone())?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()));
        let mut client = client.set_token_uri(endpoint);
        if let Some(secret) = secret {
            client = client.set_client_secret(ClientSecret::new(secret));
        }
        Ok(match self.client_shows {
            Shows::InBody => client.set_auth_type(AuthType::RequestBody),
            Shows::InHeader => client,
        })
    }

    /// Whether it is time for a new token.
    pub(super) fn is_ending(&self) -> bool {
        let margin = self
            .lifetime
            .map_or(MARGIN_SECONDS, |lifetime| MARGIN_SECONDS.min(lifetime / MARGIN_PART));
        self.seconds_left().is_some_and(|left| left <= margin)
    }

    /// How many seconds the token is good for; nothing where that is not known.
    pub(super) fn seconds_left(&self) -> Option<u64> {
        self.expires_at.map(|at| at.saturating_sub(now()))
    }
}

/// Who it is for, and nothing that would let anybody in.
impl fmt::Debug for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Record")
            .field("server", &self.server)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(&self.logins).finish()
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
