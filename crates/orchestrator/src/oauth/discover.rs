//! Finds out who gives tokens for an upstream: the server's own description names them (RFC 9728), and they describe
//! themselves (RFC 8414, OpenID Connect). What a server names is asked only within its reach, and what a document says is
//! believed only about whom it is from.

use std::collections::HashSet;

use http::StatusCode;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::challenge::Challenge;
use super::http::{Http, HttpError, Response, look};

/// The most login servers that a description may name.
const ISSUERS_MAX: usize = 8;
const REDIRECTIONS_MAX: usize = 10;
const RESOURCE: &str = ".well-known/oauth-protected-resource";
const OAUTH: &str = ".well-known/oauth-authorization-server";
const OPENID: &str = ".well-known/openid-configuration";

/// Who gives tokens.
pub(super) struct Found {
    pub(super) metadata: Metadata,
    /// Nobody has said so: these are the places where servers of 2025 may have a login.
    pub(super) is_guess: bool,
    /// Whom the tokens are for, as the server calls itself.
    pub(super) resource: String,
    /// The rights that the server wants for a start.
    pub(super) scopes: Vec<String>,
}

/// What a login server says about itself.
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

/// A server's own description.
#[derive(Debug, Clone, Deserialize)]
struct Resource {
    resource: Option<String>,
    /// As drafts had it.
    authorization_server: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Why it cannot be found out.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undiscovered {
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

/// Where a description was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The server itself has named the place.
    Named,
    /// One that servers have by convention. What is there may be something else.
    Guessed,
}

struct Discovery<'d> {
    http: &'d Http,
    upstream: &'d Url,
    /// The rights that the server's first challenge wants.
    challenged: Option<Vec<String>>,
    described: Option<Resource>,
}

/// `challenge` is what the server has said to a stranger, if it said something.
pub(super) async fn discover(
    http: &Http,
    upstream: &Url,
    challenge: Option<&str>,
) -> Result<Found, Undiscovered> {
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
    Ok(Found { is_guess: true, ..discovery.found(metadata) })
}

impl Discovery<'_> {
    fn found(self, metadata: Metadata) -> Found {
        let described = self.described.as_ref();
        let resource = described.and_then(|resource| resource.resource.clone());
        let resource = resource.unwrap_or_else(|| self.upstream.to_string());
        let challenged = self.challenged.filter(|scopes| !scopes.is_empty());
        let described = described.and_then(|resource| resource.scopes_supported.clone());
        let scopes = challenged.or(described).unwrap_or_default();
        Found { metadata, is_guess: false, resource, scopes }
    }

    /// Where a challenge says that the server is described. Not in a network that the server itself is not in, and not
    /// where others could listen if they cannot at the server.
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

    /// Asks the server itself for its description, and then looks in all places by convention.
    async fn find_description(&mut self) -> Result<Option<(Url, Resource)>, Undiscovered> {
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
                if let Some(resource) = self.read(&url, response.body(), Source::Guessed)? {
                    return Ok(Some((url, resource)));
                }
            } else if let Some(challenge) = challenge_of(&response)
                && let Some(pointer) = self.pointer(&challenge).await
                && asked.insert(pointer.clone())
                && let Some(resource) = self.describe(&pointer, Source::Guessed).await?
            {
                return Ok(Some((pointer, resource)));
            }
        }
        Ok(None)
    }

    async fn describe(&self, url: &Url, source: Source) -> Result<Option<Resource>, Undiscovered> {
        let response = self.get(url).await?;
        match response.status() {
            StatusCode::OK => self.read(url, response.body(), source),
            _ => Ok(None),
        }
    }

    /// None if it is not a description of this server. One that the server has named must be.
    fn read(
        &self,
        url: &Url,
        body: &[u8],
        source: Source,
    ) -> Result<Option<Resource>, Undiscovered> {
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
            Source::Named => Err(Undiscovered::WrongResource { url: url.clone(), why }),
            Source::Guessed => Ok(None),
        }
    }

    /// The first login server that a description names and that describes itself. None if it names none: one that names
    /// some means these, and nobody else is asked.
    async fn issuer_of(
        &mut self,
        url: &Url,
        resource: Resource,
    ) -> Result<Option<Metadata>, Undiscovered> {
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
        Err(Undiscovered::NoIssuerAnswers { url, issuers })
    }

    async fn issuer(
        &self,
        url: &Url,
        expected: Option<&str>,
    ) -> Result<Option<Metadata>, Undiscovered> {
        for path in well_known_issuers(url.path()) {
            if let Some(metadata) = self.metadata(&at(url, &path), expected).await? {
                return Ok(Some(metadata));
            }
        }
        Ok(None)
    }

    /// None if there is no such document. One that is must say that it is of who was asked.
    async fn metadata(
        &self,
        url: &Url,
        expected: Option<&str>,
    ) -> Result<Option<Metadata>, Undiscovered> {
        let response = self.get(url).await?;
        let metadata = match response.status() {
            StatusCode::OK => parse::<Metadata>(response.body()),
            _ => None,
        };
        let Some(metadata) = metadata else { return Ok(None) };
        let Some(expected) = expected.map(str::to_owned).or_else(|| issuer_by(url)) else {
            return Ok(Some(metadata));
        };
        match &metadata.issuer {
            Some(received) if is_same_issuer(received, &expected) => Ok(Some(metadata)),
            Some(received) => {
                Err(Undiscovered::WrongIssuer { expected, received: received.clone() })
            }
            None => Err(Undiscovered::NoIssuer { expected }),
        }
    }

    /// Follows redirections within the same server.
    async fn get(&self, url: &Url) -> Result<Response, Undiscovered> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTIONS_MAX {
            let failed = |error| Undiscovered::Unanswered { url: url.clone(), error };
            let request = look(&url).map_err(failed)?;
            let response = self.http.send(request).await.map_err(failed)?;
            let status = response.status();
            let is_passing = matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
            if status.is_server_error() || is_passing {
                return Err(Undiscovered::Failing { url, status });
            }
            let to = response.headers().get(LOCATION).filter(|_| status.is_redirection());
            let Some(to) = to else { return Ok(response) };
            let to = String::from_utf8_lossy(to.as_bytes()).into_owned();
            match url.join(&to) {
                Ok(next) if next.origin() == url.origin() => url = next,
                _ => return Err(Undiscovered::LeadsAway { url, to }),
            }
        }
        let to = "too many redirections".to_owned();
        Err(Undiscovered::LeadsAway { url, to })
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// The first challenge of a refusal that points to a description, or else the first that wants rights.
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

/// An address of the same server.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

/// Where a server with this path is described: the standard's place, one that some have, and the whole host's.
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

/// The same for a login server.
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

/// Whose description stands at a place, if it is one by convention.
fn issuer_by(url: &Url) -> Option<String> {
    let path = url.path().strip_prefix('/')?;
    let own = [OAUTH, OPENID].into_iter().find_map(|known| path.strip_prefix(known));
    let own = match own {
        Some(own) if own.is_empty() || own.starts_with('/') => own,
        _ => path.strip_suffix(OPENID)?.trim_end_matches('/'),
    };
    Some(at(url, own).to_string())
}

/// Letter by letter, but for the slash after a host.
fn is_same_issuer(received: &str, expected: &str) -> bool {
    let is_host = |issuer: &str| Url::parse(issuer).is_ok_and(|url| url.path() == "/");
    let bare = |issuer: &str| match issuer.strip_suffix('/') {
        Some(bare) if is_host(issuer) => bare.to_owned(),
        _ => issuer.to_owned(),
    };
    bare(received) == bare(expected)
}

/// Whether a description of `own` is one of the upstream too: its address, or what that stands below.
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
    fn documents_are_looked_for_where_standards_have_them() {
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
    fn document_is_believed_about_whom_it_is_from() {
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
