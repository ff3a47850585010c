//! Discovers the authorization server of an upstream: protected resource metadata names it (RFC 9728), and authorization server
//! metadata describes it (RFC 8414, OpenID Connect). URLs that an upstream names are fetched only if the reach policy allows
//! it, and a document is accepted only if its issuer or resource matches where it came from.

use std::collections::HashSet;

use http::StatusCode;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::challenge::Challenge;
use super::http::{Http, HttpError, Response, metadata_request};

/// The most authorization servers that are tried.
const ISSUERS_MAX: usize = 8;
const REDIRECTIONS_MAX: usize = 10;
const RESOURCE: &str = ".well-known/oauth-protected-resource";
const OAUTH: &str = ".well-known/oauth-authorization-server";
const OPENID: &str = ".well-known/openid-configuration";

/// The result of discovery.
pub(super) struct Discovered {
    pub(super) metadata: Metadata,
    /// Nothing was discovered. These are the default endpoints of protocol revision 2025-03-26.
    pub(super) is_guess: bool,
    /// The resource identifier that tokens are requested for.
    pub(super) resource: String,
    /// The scopes for a first login.
    pub(super) scopes: Vec<String>,
}

/// Authorization server metadata.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Metadata {
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) response_types_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) revocation_endpoint: Value,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Value,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: Value,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: Value,
}

/// Protected resource metadata.
#[derive(Debug, Clone, Deserialize)]
struct Resource {
    resource: Option<String>,
    /// From drafts of RFC 9728.
    authorization_server: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Why discovery failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiscoveryError {
    #[error("`{expected}` says that it is `{received}`")]
    WrongIssuer { expected: String, received: String },
    #[error("`{expected}` does not say who it is")]
    NoIssuer { expected: String },
    #[error("`{url}` cannot be asked: {error}")]
    Unanswered { url: Url, error: HttpError },
    #[error("`{url}` answers HTTP {status}")]
    Failing { url: Url, status: StatusCode },
    #[error("`{url}` leads to another server, `{to}`")]
    LeadsAway { url: Url, to: String },
    #[error("`{url}`, which should describe the server, {why}")]
    WrongResource { url: Url, why: String },
    #[error("`{url}` names login servers, and none of them says how to log in: {issuers}")]
    NoIssuerAnswers { url: Url, issuers: String },
}

/// How the URL of resource metadata was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Named by a challenge of the upstream.
    Named,
    /// A well-known path, which may hold something else.
    WellKnown,
}

struct Discovery<'d> {
    http: &'d Http,
    upstream: &'d Url,
    /// The scopes of the first challenge.
    challenged: Option<Vec<String>>,
    described: Option<Resource>,
}

/// `challenge` is the `WWW-Authenticate` header of an unauthenticated request, if there was one.
pub(super) async fn discover(
    http: &Http,
    upstream: &Url,
    challenge: Option<&str>,
) -> Result<Discovered, DiscoveryError> {
    let challenge = challenge.map(Challenge::read);
    let challenged = challenge.as_ref().map(Challenge::scopes);
    let mut discovery = Discovery { http, upstream, challenged, described: None };
    let pointer = match &challenge {
        Some(challenge) => discovery.pointer(challenge).await,
        None => None,
    };
    if let Some(url) = pointer
        && let Some(resource) = discovery.describe(&url, Source::Named).await?
        && let Some(metadata) = discovery.issuer_of(&url, resource).await?
    {
        return Ok(discovery.found(metadata));
    }
    if let Some((url, resource)) = discovery.find_description().await?
        && let Some(metadata) = discovery.issuer_of(&url, resource).await?
    {
        return Ok(discovery.found(metadata));
    }
    if let Some(metadata) = discovery.issuer(upstream, None).await? {
        return Ok(discovery.found(metadata));
    }
    let endpoint = |path| at(upstream, path).to_string();
    let metadata = Metadata {
        authorization_endpoint: endpoint("authorize"),
        token_endpoint: endpoint("token"),
        registration_endpoint: Some(endpoint("register")),
        ..Metadata::default()
    };
    Ok(Discovered { is_guess: true, ..discovery.found(metadata) })
}

impl Discovery<'_> {
    fn found(self, metadata: Metadata) -> Discovered {
        let described = self.described.as_ref();
        let resource = described.and_then(|resource| resource.resource.clone());
        let resource = resource.unwrap_or_else(|| without_secrets(self.upstream));
        let challenged = self.challenged.filter(|scopes| !scopes.is_empty());
        let described = described.and_then(|resource| resource.scopes_supported.clone());
        let scopes = challenged.or(described).unwrap_or_default();
        Discovered { metadata, is_guess: false, resource, scopes }
    }

    /// The URL of the resource metadata in a challenge. Cross-origin URLs must be within reach and not downgrade to HTTP.
    async fn pointer(&self, challenge: &Challenge) -> Option<Url> {
        for pointer in challenge.resource_metadata() {
            let url = Url::parse(pointer.trim()).or_else(|_| self.upstream.join(pointer.trim()));
            let Ok(url) = url else { continue };
            let is_same = url.origin() == self.upstream.origin();
            let is_downgrade = self.upstream.scheme() == "https" && url.scheme() != "https";
            if is_same || (!is_downgrade && self.http.may_ask(&url).await) {
                return Some(url);
            }
        }
        None
    }

    /// Looks for resource metadata: by a challenge of the upstream, then at well-known paths.
    async fn find_description(&mut self) -> Result<Option<(Url, Resource)>, DiscoveryError> {
        let mut asked = HashSet::new();
        let response = self.get(self.upstream).await?;
        let challenge = challenge_of(&response);
        let scopes = challenge.as_ref().map(Challenge::scopes).unwrap_or_default();
        self.challenged.get_or_insert(scopes);
        if let Some(challenge) = challenge
            && let Some(url) = self.pointer(&challenge).await
        {
            if let Some(resource) = self.describe(&url, Source::Named).await? {
                return Ok(Some((url, resource)));
            }
            asked.insert(url);
        }
        for path in well_known_resources(self.upstream.path()) {
            let url = at(self.upstream, &path);
            if !asked.insert(url.clone()) {
                continue;
            }
            let response = self.get(&url).await?;
            if response.status() == StatusCode::OK {
                if let Some(resource) = self.read(&url, response.body(), Source::WellKnown)? {
                    return Ok(Some((url, resource)));
                }
            } else if let Some(challenge) = challenge_of(&response)
                && let Some(pointer) = self.pointer(&challenge).await
                && asked.insert(pointer.clone())
                && let Some(resource) = self.describe(&pointer, Source::WellKnown).await?
            {
                return Ok(Some((pointer, resource)));
            }
        }
        Ok(None)
    }

    async fn describe(
        &self,
        url: &Url,
        source: Source,
    ) -> Result<Option<Resource>, DiscoveryError> {
        let response = self.get(url).await?;
        match response.status() {
            StatusCode::OK => self.read(url, response.body(), source),
            _ => Ok(None),
        }
    }

    /// None if the document is not the metadata of this resource. An error if the upstream named it.
    fn read(
        &self,
        url: &Url,
        body: &[u8],
        source: Source,
    ) -> Result<Option<Resource>, DiscoveryError> {
        let Ok(resource) = serde_json::from_slice::<Resource>(body) else { return Ok(None) };
        let why = match resource.resource.as_deref().map(Url::parse) {
            Some(Ok(own)) if own.fragment().is_none() && is_about(self.upstream, &own) => {
                return Ok(Some(resource));
            }
            Some(Ok(own)) => format!("is about `{own}`"),
            Some(Err(_)) => "says what it is about in no address".to_owned(),
            None => "does not say what it is about".to_owned(),
        };
        match source {
            Source::Named => Err(DiscoveryError::WrongResource { url: url.clone(), why }),
            Source::WellKnown => Ok(None),
        }
    }

    /// Metadata of the first authorization server that has any. None if the document names no authorization server; an error
    /// if none of those that it names has metadata.
    async fn issuer_of(
        &mut self,
        url: &Url,
        resource: Resource,
    ) -> Result<Option<Metadata>, DiscoveryError> {
        let named = resource.authorization_server.iter();
        let named = named.chain(resource.authorization_servers.iter().flatten());
        let mut issuers: Vec<String> = Vec::new();
        for issuer in named.map(|issuer| issuer.trim()).filter(|issuer| !issuer.is_empty()) {
            if issuers.len() < ISSUERS_MAX && !issuers.iter().any(|known| known == issuer) {
                issuers.push(issuer.to_owned());
            }
        }
        self.described = Some(resource);
        for issuer in &issuers {
            let Ok(issuer) = Url::parse(issuer).or_else(|_| url.join(issuer)) else { continue };
            if !self.http.may_ask(&issuer).await {
                continue;
            }
            let metadata = match issuer.path().contains("/.well-known/") {
                true => self.metadata(&issuer, None).await?,
                false => self.issuer(&issuer, Some(issuer.as_str())).await?,
            };
            if metadata.is_some() {
                return Ok(metadata);
            }
        }
        if issuers.is_empty() {
            return Ok(None);
        }
        let (url, issuers) = (url.clone(), issuers.join(", "));
        Err(DiscoveryError::NoIssuerAnswers { url, issuers })
    }

    async fn issuer(
        &self,
        url: &Url,
        expected: Option<&str>,
    ) -> Result<Option<Metadata>, DiscoveryError> {
        for path in well_known_issuers(url.path()) {
            if let Some(metadata) = self.metadata(&at(url, &path), expected).await? {
                return Ok(Some(metadata));
            }
        }
        Ok(None)
    }

    /// None if there is no such document. Its issuer must match.
    async fn metadata(
        &self,
        url: &Url,
        expected: Option<&str>,
    ) -> Result<Option<Metadata>, DiscoveryError> {
        let response = self.get(url).await?;
        let metadata = match response.status() {
            StatusCode::OK => parse::<Metadata>(response.body()),
            _ => None,
        };
        let Some(metadata) = metadata else { return Ok(None) };
        // Metadata of which nothing says whose it is may name the login page of another.
        let Some(expected) = expected.map(str::to_owned).or_else(|| issuer_by(url)) else {
            return Ok(None);
        };
        match &metadata.issuer {
            Some(received) if is_same_issuer(received, &expected) => Ok(Some(metadata)),
            Some(received) => {
                Err(DiscoveryError::WrongIssuer { expected, received: received.clone() })
            }
            None => Err(DiscoveryError::NoIssuer { expected }),
        }
    }

    /// Follows redirects within the same origin.
    async fn get(&self, url: &Url) -> Result<Response, DiscoveryError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTIONS_MAX {
            let failed = |error| DiscoveryError::Unanswered { url: url.clone(), error };
            let request = metadata_request(&url).map_err(failed)?;
            let response = self.http.send(request).await.map_err(failed)?;
            let status = response.status();
            let is_passing = matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
            if status.is_server_error() || is_passing {
                return Err(DiscoveryError::Failing { url, status });
            }
            let to = response.headers().get(LOCATION).filter(|_| status.is_redirection());
            let Some(to) = to else { return Ok(response) };
            let to = String::from_utf8_lossy(to.as_bytes()).into_owned();
            match url.join(&to) {
                Ok(next) if next.origin() == url.origin() => url = next,
                _ => return Err(DiscoveryError::LeadsAway { url, to }),
            }
        }
        let to = "too many redirections".to_owned();
        Err(DiscoveryError::LeadsAway { url, to })
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// The first challenge of a 401 response with a metadata URL, or else the first with scopes.
fn challenge_of(response: &Response) -> Option<Challenge> {
    if response.status() != StatusCode::UNAUTHORIZED {
        return None;
    }
    let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges =
        headers.map(|header| Challenge::read(&String::from_utf8_lossy(header.as_bytes())));
    let challenges: Vec<Challenge> = challenges.collect();
    let points = |challenge: &Challenge| challenge.resource_metadata().next().is_some();
    let wants = |challenge: &Challenge| !challenge.scopes().is_empty();
    let at = challenges.iter().position(points).or_else(|| challenges.iter().position(wants))?;
    challenges.into_iter().nth(at)
}

/// A URL with the same origin.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

/// Paths of resource metadata: the path of RFC 9728, a common variant, and the root.
fn well_known_resources(path: &str) -> Vec<String> {
    match path.trim_matches('/') {
        "" => vec![format!("/{RESOURCE}")],
        path => vec![
            format!("/{RESOURCE}/{path}"),
            format!("/{path}/{RESOURCE}"),
            format!("/{RESOURCE}"),
        ],
    }
}

/// Paths of authorization server metadata.
fn well_known_issuers(path: &str) -> Vec<String> {
    match path.trim_matches('/') {
        "" => vec![format!("/{OAUTH}"), format!("/{OPENID}")],
        path => vec![
            format!("/{OAUTH}/{path}"),
            format!("/{OPENID}/{path}"),
            format!("/{path}/{OPENID}"),
            format!("/{OAUTH}"),
        ],
    }
}

/// The issuer whose metadata belongs at a well-known URL.
fn issuer_by(url: &Url) -> Option<String> {
    let path = url.path().strip_prefix('/')?;
    let own = [OAUTH, OPENID].into_iter().find_map(|known| path.strip_prefix(known));
    let own = match own {
        Some(own) if own.is_empty() || own.starts_with('/') => own,
        _ => path.strip_suffix(OPENID)?.trim_end_matches('/'),
    };
    Some(at(url, own).to_string())
}

/// An address without the parts that may be secret.
fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // An address with a host takes both.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Exact comparison, except for a slash after the host.
fn is_same_issuer(received: &str, expected: &str) -> bool {
    let is_host = |issuer: &str| Url::parse(issuer).is_ok_and(|url| url.path() == "/");
    let bare = |issuer: &str| match issuer.strip_suffix('/') {
        Some(bare) if is_host(issuer) => bare.to_owned(),
        _ => issuer.to_owned(),
    };
    bare(received) == bare(expected)
}

/// Whether a resource identifier covers the upstream: the same URL, or a parent path.
fn is_about(upstream: &Url, own: &Url) -> bool {
    if upstream.origin() != own.origin() {
        return false;
    }
    match upstream.path().strip_prefix(own.path()) {
        Some(rest) => rest.is_empty() || own.path().ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn well_known_paths_follow_the_standards() {
        let all = |paths: Vec<String>| paths.join(" ");
        assert_eq!(all(well_known_resources("/")), "/.well-known/oauth-protected-resource");
        assert_eq!(
            all(well_known_resources("/a/mcp/")),
            "/.well-known/oauth-protected-resource/a/mcp /a/mcp/.well-known/oauth-protected-resource \
             /.well-known/oauth-protected-resource"
        );
        assert_eq!(
            all(well_known_issuers("")),
            "/.well-known/oauth-authorization-server /.well-known/openid-configuration"
        );
        assert_eq!(
            all(well_known_issuers("/t")),
            "/.well-known/oauth-authorization-server/t /.well-known/openid-configuration/t \
             /t/.well-known/openid-configuration /.well-known/oauth-authorization-server"
        );
    }

    #[test]
    fn documents_must_match_their_origin() {
        for (place, issuer) in [
            (
                "https://a.example/.well-known/oauth-authorization-server",
                Some("https://a.example/"),
            ),
            ("https://a.example/.well-known/openid-configuration/t", Some("https://a.example/t")),
            ("https://a.example/t/.well-known/openid-configuration", Some("https://a.example/t")),
            ("https://a.example/.well-known/openid-configuration-2", None),
            ("https://a.example/elsewhere", None),
        ] {
            assert_eq!(issuer_by(&url(place)).as_deref(), issuer, "{place}");
        }
        for (received, expected, is_same) in [
            ("https://a.example", "https://a.example/", true),
            ("https://a.example/t", "https://a.example/t", true),
            ("https://a.example/t/", "https://a.example/t", false),
            ("https://b.example", "https://a.example", false),
            ("https://a.example.evil.example/", "https://a.example/", false),
        ] {
            assert_eq!(is_same_issuer(received, expected), is_same, "{received} {expected}");
        }
        for (own, is_it) in [
            ("https://a.example/team/mcp", true),
            ("https://a.example/team", true),
            ("https://a.example/team/", true),
            ("https://a.example", true),
            ("https://a.example/team/mcp?x=1", true),
            ("https://a.example/tea", false),
            ("https://a.example/other", false),
            ("http://a.example/team", false),
            ("https://a.example:444/team", false),
            ("https://b.example/team", false),
        ] {
            assert_eq!(is_about(&url("https://a.example/team/mcp"), &url(own)), is_it, "{own}");
        }
    }
}
