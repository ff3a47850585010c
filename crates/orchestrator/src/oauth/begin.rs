//! The first half of a login: who gives tokens for this upstream, as whom we ask there, for which rights, and at which
//! address a person says yes.

use std::future::Future;
use std::sync::Arc;

use registry::Masks;
use registry::entry::{Auth, Connect};
use registry::http::is_here;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
    WWWAuthenticateParams,
};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::callback::Callback;
use super::error::Error;
use super::probe::{Heard, probe};
use super::reach::Reach;
use super::record::{Key, Login, Refused, Shows};
use super::{Logins, key, scopes};

/// Under this name we are registered.
const CLIENT_NAME: &str = "workflowlookup";

/// A login that waits for a person.
pub struct Begun {
    pub(super) logins: Logins,
    pub(super) key: Key,
    pub(super) manager: AuthorizationManager,
    pub(super) callback: Callback,
    pub(super) url: String,
    pub(super) state: String,
    /// What will be kept, but for the tokens.
    pub(super) login: Login,
    pub(super) masks: Masks,
}

impl Begun {
    /// Where a person has to go.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Who will ask them.
    pub fn issuer(&self) -> Option<&str> {
        self.login.issuer.as_deref()
    }
}

impl Logins {
    /// Finds out all that is needed, and waits at a port of this machine from then on. Where the login server takes an
    /// address instead of a registration, `client_metadata` is the one that tells it who we are.
    pub async fn begin(
        &self,
        server: &str,
        connect: &Connect,
        client_metadata: Option<&str>,
    ) -> Result<Begun, Error> {
        let not_http = || Error::NotHttp { server: server.to_owned() };
        let key = key(server, connect).ok_or_else(not_http)?;
        let Connect::Http { url, headers, auth } = connect else { return Err(not_http()) };
        let has_header = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_header || matches!(auth, Some(Auth::Bearer(_))) {
            return Err(Error::HasToken { server: server.to_owned() });
        }
        // What cannot be kept later is better known now.
        let records = self.0.keep.read()?;
        let record = records.get(&key);
        let refused = record.and_then(|record| record.refused.clone());
        let held = record.and_then(|record| record.login.clone());

        let masks = Masks::new(connect.secrets());
        let discovery = |error| Error::of_discovery(error, server, &masks);
        let heard = probe(&self.0.http, server, connect).await?;
        let challenge = match (&heard, &refused) {
            (Heard::Asked(Some(challenge)), _) => Some(challenge.clone()),
            (_, Some(refused)) => Some(refused.challenge.clone()),
            (_, None) => None,
        };
        let http = Arc::new(self.0.http.within(Reach::of(url.reveal()).await));
        let manager = AuthorizationManager::new_with_oauth_http_client(url.reveal(), http);
        let mut manager = manager.await.map_err(discovery)?;
        let resolved = quietly(manager.resolve_metadata_from_challenge(challenge.as_deref())).await;
        let resolved = resolved.map_err(discovery)?;
        // Servers of 2025 may have a login at fixed places and say so nowhere, but they ask for it.
        let is_guess = resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback;
        if is_guess && matches!(heard, Heard::Nothing) && refused.is_none() {
            return Err(Error::NotAsked { server: server.to_owned() });
        }
        let metadata = resolved.metadata;
        check_endpoints(server, &metadata)?;
        manager.set_metadata(metadata.clone());

        let entry = OfEntry::of(auth.as_ref());
        let callback = Callback::bind(entry.callback_port).await?;
        let held = held.filter(|held| held.issuer == metadata.issuer).map(|held| held.scopes);
        let wanted = wanted(refused.as_ref(), url.reveal());
        let scopes =
            scopes::choose(&manager, &metadata, entry.scopes, &held.unwrap_or_default(), &wanted)
                .await;
        let client =
            Client { entry: &entry, client_metadata, callback: &callback, scopes: &scopes };
        let (config, is_registered) = client
            .config(server, &mut manager, &metadata, &masks)
            .await
            .map_err(|error| match error {
                // Nobody has said that there is such a thing.
                Error::Registration { .. } if is_guess => {
                    Error::NowhereToLogIn { server: server.to_owned() }
                }
                error => error,
            })?;
        let scopes_wanted: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let address =
            quietly(manager.get_authorization_url(&scopes_wanted)).await.map_err(discovery)?;
        let (state, resource) = parts(&address, url.reveal());
        let own = [config.client_secret.clone(), Some(state.clone())];
        let masks = masks.and(own.into_iter().flatten());
        let login = Login {
            issuer: metadata.issuer.clone(),
            token_endpoint: metadata.token_endpoint.clone(),
            revocation_endpoint: revocation_endpoint(&metadata),
            client_id: config.client_id,
            client_secret: config.client_secret.filter(|_| is_registered),
            client_shows: shows(&metadata),
            resource,
            scopes,
            access_token: String::new(),
            expires_at: None,
            lifetime: None,
            refresh_token: None,
        };
        Ok(Begun {
            logins: self.clone(),
            key,
            manager,
            callback,
            url: address,
            state,
            login,
            masks,
        })
    }
}

/// What the entry says about logging in.
struct OfEntry<'e> {
    client_id: Option<&'e str>,
    client_secret: Option<&'e str>,
    scopes: &'e [String],
    callback_port: Option<u16>,
}

impl<'e> OfEntry<'e> {
    fn of(auth: Option<&'e Auth>) -> Self {
        match auth {
            Some(Auth::OAuth { client_id, client_secret, scopes, callback_port }) => Self {
                client_id: client_id.as_deref(),
                client_secret: client_secret.as_ref().map(|secret| secret.reveal()),
                scopes,
                callback_port: *callback_port,
            },
            Some(Auth::Bearer(_)) | None => {
                Self { client_id: None, client_secret: None, scopes: &[], callback_port: None }
            }
        }
    }
}

/// As whom we ask.
struct Client<'c> {
    entry: &'c OfEntry<'c>,
    client_metadata: Option<&'c str>,
    callback: &'c Callback,
    scopes: &'c [String],
}

impl Client<'_> {
    /// By hand, by an address, or by registering now: in this order. Says whether we were registered.
    async fn config(
        &self,
        server: &str,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        masks: &Masks,
    ) -> Result<(OAuthClientConfig, bool), Error> {
        let redirect_uri = self.callback.redirect_uri();
        let failed = |error| Error::of_discovery(error, server, masks);
        let takes_addresses = flag(metadata, "client_id_metadata_document_supported");
        let known = match (self.entry.client_id, self.client_metadata.filter(|_| takes_addresses)) {
            (Some(id), _) => Some((id, self.entry.client_secret)),
            (None, Some(address)) => Some((address, None)),
            (None, None) => None,
        };
        if let Some((id, secret)) = known {
            let mut config =
                OAuthClientConfig::new(id, redirect_uri).with_scopes(self.scopes.to_vec());
            config.client_secret = secret.map(str::to_owned);
            manager.configure_client(config.clone()).map_err(failed)?;
            return Ok((config, false));
        }
        if metadata.registration_endpoint.is_none() {
            let issuer =
                metadata.issuer.clone().unwrap_or_else(|| metadata.authorization_endpoint.clone());
            return Err(Error::NoRegistration { server: server.to_owned(), issuer });
        }
        let scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let registered = quietly(manager.register_client(CLIENT_NAME, redirect_uri, &scopes)).await;
        Ok((registered.map_err(failed)?, true))
    }
}

/// What the server wanted when a token was good and not good enough.
fn wanted(refused: Option<&Refused>, url: &str) -> Vec<String> {
    let Some(refused) = refused.filter(|refused| refused.status == 403) else { return Vec::new() };
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let params = WWWAuthenticateParams::parse(&refused.challenge, &url);
    params.scope.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned).collect()
}

/// The library logs codes, and more than we would.
pub(super) fn quietly<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.with_subscriber(NoSubscriber::default())
}

/// Codes and secrets go only where nobody can listen.
fn check_endpoints(server: &str, metadata: &AuthorizationMetadata) -> Result<(), Error> {
    let endpoints = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint)];
    let endpoints =
        endpoints.into_iter().chain([metadata.registration_endpoint.as_ref()]).flatten();
    for endpoint in endpoints {
        if !is_safe(endpoint) {
            return Err(Error::Insecure { server: server.to_owned(), url: endpoint.clone() });
        }
    }
    Ok(())
}

fn is_safe(endpoint: &str) -> bool {
    let Ok(url) = Url::parse(endpoint) else { return false };
    match url.scheme() {
        "https" => url.host_str().is_some_and(|host| !host.is_empty()),
        "http" => is_here(&url),
        _ => false,
    }
}

fn flag(metadata: &AuthorizationMetadata, name: &str) -> bool {
    metadata.additional_fields.get(name).and_then(serde_json::Value::as_bool).unwrap_or(false)
}

fn revocation_endpoint(metadata: &AuthorizationMetadata) -> Option<String> {
    let endpoint = metadata.additional_fields.get("revocation_endpoint")?.as_str()?;
    is_safe(endpoint).then(|| endpoint.to_owned())
}

/// As the library does it when it asks for the first token.
fn shows(metadata: &AuthorizationMetadata) -> Shows {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(serde_json::Value::as_array);
    let has =
        |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    match has("client_secret_post") && !has("client_secret_basic") {
        true => Shows::InBody,
        false => Shows::InHeader,
    }
}

/// What the library put into the address: the `state`, and whom the token is for.
fn parts(address: &str, url: &str) -> (String, String) {
    let address = Url::parse(address).ok();
    let value = |name: &str| {
        let mut pairs = address.as_ref()?.query_pairs();
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    (value("state").unwrap_or_default(), value("resource").unwrap_or_else(|| url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_only_where_nobody_listens() {
        for (endpoint, expected) in [
            ("https://login.example/token", true),
            ("http://127.0.0.1:8080/token", true),
            ("http://[::1]:8080/token", true),
            ("http://localhost/token", true),
            ("http://login.example/token", false),
            ("http://10.0.0.1/token", false),
            ("http://localhost.example/token", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("/token", false),
        ] {
            assert_eq!(is_safe(endpoint), expected, "{endpoint}");
        }
    }
}
