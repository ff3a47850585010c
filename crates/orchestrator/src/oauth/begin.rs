//! The first half of a login: who gives tokens for this upstream, as whom we ask there, for which rights, and at which
//! address a person says yes.

use oauth2::basic::BasicClient;
use oauth2::{
    AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
};
use registry::Masks;
use registry::entry::{Auth, Connect};
use registry::http::is_here;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use untrusted_text::cut;

use super::callback::Callback;
use super::challenge::Challenge;
use super::discover::{Discovered, Metadata, discover};
use super::error::Error;
use super::http::{Http, Request, Response};
use super::probe::{Heard, probe};
use super::reach::Reach;
use super::record::{Key, Login, Refused, Shows};
use super::{Logins, key, scopes};

/// Under this name we are registered.
const CLIENT_NAME: &str = "workflowlookup";
/// How much of a registration error is shown.
const SAID_BYTES_MAX: usize = 1000;

/// A login that waits for a person.
pub struct Begun {
    pub(super) logins: Logins,
    pub(super) key: Key,
    pub(super) http: Http,
    pub(super) callback: Callback,
    pub(super) url: String,
    pub(super) state: String,
    /// The PKCE verifier.
    pub(super) verifier: PkceCodeVerifier,
    /// The client secret, registered or from the entry.
    pub(super) secret: Option<String>,
    /// Whether the callback must name its issuer (RFC 9207).
    pub(super) must_name_issuer: bool,
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
        let heard = probe(&self.0.http, server, connect).await?;
        let challenge = match (&heard, &refused) {
            (Heard::Asked(Some(challenge)), _) => Some(challenge.clone()),
            (_, Some(refused)) => Some(refused.challenge.clone()),
            (_, None) => None,
        };
        let upstream = Url::parse(url.reveal()).map_err(|error| {
            let why = format!("its address cannot be read: {error}");
            Error::Discovery { server: server.to_owned(), why }
        })?;
        let http = self.0.http.within(Reach::of(url.reveal()).await);
        let found = discover(&http, &upstream, challenge.as_deref()).await;
        let Discovered { metadata, is_guess, resource, scopes: initial } =
            found.map_err(|error| Error::of_discovery(&error, server, &masks))?;
        // Servers of 2025 may have a login at fixed places and say so nowhere, but they ask for it.
        if is_guess && matches!(heard, Heard::Nothing) && refused.is_none() {
            return Err(Error::NotAsked { server: server.to_owned() });
        }
        check_endpoints(server, &metadata)?;
        check_flow(server, &metadata)?;

        let entry = OfEntry::of(auth.as_ref());
        let callback = Callback::bind(entry.callback_port).await?;
        let held = held.filter(|held| held.issuer == metadata.issuer).map(|held| held.scopes);
        let (held, known) = (held.unwrap_or_default(), metadata.scopes_supported.as_deref());
        let wanted = wanted(refused.as_ref());
        let scopes = scopes::choose(initial, known, entry.scopes, &held, &wanted);
        let source =
            ClientSource { entry: &entry, client_metadata, callback: &callback, scopes: &scopes };
        let client = source.client(server, &http, &metadata, &masks).await;
        let RegisteredClient { id, secret, is_registered } =
            client.map_err(|error| match error {
                // Nobody has said that there is such a thing.
                Error::Registration { .. } if is_guess => {
                    Error::NowhereToLogIn { server: server.to_owned() }
                }
                error => error,
            })?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (address, state) = address(&metadata, &id, callback.redirect_uri())
            .map_err(|error| Error::Discovery { server: server.to_owned(), why: error })?
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", resource.clone())
            .url();
        let state = state.into_secret();
        let own = [secret.clone(), Some(state.clone()), Some(verifier.secret().clone())];
        let masks = masks.and(own.into_iter().flatten());
        let login = Login {
            revocation_endpoint: revocation_endpoint(&metadata),
            client_shows: shows(&metadata),
            issuer: metadata.issuer,
            token_endpoint: metadata.token_endpoint,
            client_id: id,
            client_secret: secret.clone().filter(|_| is_registered),
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
            http,
            callback,
            url: address.into(),
            state,
            verifier,
            secret,
            must_name_issuer: metadata.authorization_response_iss_parameter_supported == true,
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

/// The registered OAuth client.
struct RegisteredClient {
    id: String,
    secret: Option<String>,
    is_registered: bool,
}

/// What determines the client of a login.
struct ClientSource<'a> {
    entry: &'a OfEntry<'a>,
    client_metadata: Option<&'a str>,
    callback: &'a Callback,
    scopes: &'a [String],
}

impl ClientSource<'_> {
    /// Uses the client of the entry, a client metadata document, or dynamic registration, in this order.
    async fn client(
        &self,
        server: &str,
        http: &Http,
        metadata: &Metadata,
        masks: &Masks,
    ) -> Result<RegisteredClient, Error> {
        let takes_addresses = metadata.client_id_metadata_document_supported == true;
        let known = match (self.entry.client_id, self.client_metadata.filter(|_| takes_addresses)) {
            (Some(id), _) => Some((id, self.entry.client_secret)),
            (None, Some(address)) => Some((address, None)),
            (None, None) => None,
        };
        if let Some((id, secret)) = known {
            let (id, secret) = (id.to_owned(), secret.map(str::to_owned));
            return Ok(RegisteredClient { id, secret, is_registered: false });
        }
        let Some(endpoint) = &metadata.registration_endpoint else {
            let issuer =
                metadata.issuer.clone().unwrap_or_else(|| metadata.authorization_endpoint.clone());
            return Err(Error::NoRegistration { server: server.to_owned(), issuer });
        };
        let failed = |why: &str| {
            let why = masks.hide(why).into_owned();
            Error::Registration { server: server.to_owned(), why }
        };
        let request = self.registration(endpoint).map_err(|error| failed(&error.to_string()))?;
        let response =
            http.send_following(request).await.map_err(|error| failed(&error.to_string()))?;
        registered(&response).map_err(|why| failed(&why))
    }

    /// A dynamic registration (RFC 7591) as a native, public client.
    fn registration(&self, endpoint: &str) -> Result<Request, http::Error> {
        let mut client = json!({
            "client_name": CLIENT_NAME,
            "redirect_uris": [self.callback.redirect_uri()],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        });
        if !self.scopes.is_empty() {
            client["scope"] = self.scopes.join(" ").into();
        }
        let request = http::Request::post(endpoint).header("content-type", "application/json");
        request.body(client.to_string().into_bytes())
    }
}

fn registered(response: &Response) -> Result<RegisteredClient, String> {
    #[derive(Deserialize)]
    struct Fields {
        client_id: String,
        client_secret: Option<String>,
    }
    let status = response.status();
    if !status.is_success() {
        let said = String::from_utf8_lossy(response.body());
        return Err(format!("HTTP {status}: {}", cut(&said, SAID_BYTES_MAX)));
    }
    // The body may contain a secret.
    let fields: Fields = serde_json::from_slice(response.body())
        .map_err(|_| "its answer cannot be read".to_owned())?;
    // Some servers send an empty secret for public clients.
    let secret = fields.client_secret.filter(|secret| !secret.is_empty());
    Ok(RegisteredClient { id: fields.client_id, secret, is_registered: true })
}

/// The client for the authorization URL.
fn address(
    metadata: &Metadata,
    client: &str,
    redirect_uri: &str,
) -> Result<BasicClient<oauth2::EndpointSet>, String> {
    let address = AuthUrl::new(metadata.authorization_endpoint.clone());
    let redirect = RedirectUrl::new(redirect_uri.to_owned()).map_err(|error| error.to_string())?;
    let address = address.map_err(|error| error.to_string())?;
    let client = BasicClient::new(ClientId::new(client.to_owned()));
    Ok(client.set_auth_uri(address).set_redirect_uri(redirect))
}

/// What the server wanted when a token was good and not good enough.
fn wanted(refused: Option<&Refused>) -> Vec<String> {
    let refused = refused.filter(|refused| refused.status == 403);
    refused.map(|refused| Challenge::read(&refused.challenge).scopes()).unwrap_or_default()
}

/// The server must support authorization codes and PKCE with S256.
fn check_flow(server: &str, metadata: &Metadata) -> Result<(), Error> {
    let lacks = |known: &Option<Vec<String>>, one: &str| {
        known.as_ref().is_some_and(|known| !known.iter().any(|own| own == one))
    };
    let why = if lacks(&metadata.response_types_supported, "code") {
        "its login server gives no codes (`response_types_supported`)"
    } else if lacks(&metadata.code_challenge_methods_supported, "S256") {
        "its login server knows no proof that is good enough (`S256`)"
    } else {
        return Ok(());
    };
    Err(Error::Discovery { server: server.to_owned(), why: why.to_owned() })
}

/// Codes and secrets go only where nobody can listen.
fn check_endpoints(server: &str, metadata: &Metadata) -> Result<(), Error> {
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

fn revocation_endpoint(metadata: &Metadata) -> Option<String> {
    let endpoint = metadata.revocation_endpoint.as_str()?;
    is_safe(endpoint).then(|| endpoint.to_owned())
}

/// In the header, unless the server accepts the secret in the body only.
fn shows(metadata: &Metadata) -> Shows {
    let methods = metadata.token_endpoint_auth_methods_supported.as_array();
    let has =
        |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    match has("client_secret_post") && !has("client_secret_basic") {
        true => Shows::InBody,
        false => Shows::InHeader,
    }
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
