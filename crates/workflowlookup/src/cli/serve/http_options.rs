//! How to serve over HTTP: where, for whom, and who has to say who they are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use clap::Args;
use jsonwebtoken::Algorithm;
use transport::Allowed;

use crate::auth::{self, ALGORITHMS_BY_DEFAULT, Authenticator, OAuth};
use crate::cli::token::TokensOption;
use crate::error::Refusal;

const HEADING: &str = "Over HTTP";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct HttpArguments {
    /// Speak over HTTP: a port of this machine, or an address and a port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// A name that clients may call it by, besides addresses and `localhost`; may be given several times
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// An origin whose pages may call it, as `https://example.com`; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// The address that clients use, where it is another one, as `https://mcp.example.com/mcp`
    #[arg(long, value_name = "URL", requires = "http", value_parser = parse_url)]
    public_url: Option<PublicUrl>,
    /// Let anybody in who can reach the address
    #[arg(long, requires = "http", conflicts_with_all = ["tokens", "oauth_issuer"])]
    insecure: bool,
    #[command(flatten)]
    tokens: TokensOption,
    /// Let in who has a token of this issuer, for this server; its keys are looked up there
    #[arg(long, value_name = "URL", requires = "http")]
    oauth_issuer: Option<String>,
    /// What its tokens have to be made for; otherwise the address that clients use
    #[arg(long, value_name = "AUDIENCE", requires = "oauth_issuer")]
    oauth_audience: Option<String>,
    /// Where its keys are, where it does not say so itself: an address or a file
    #[arg(long, value_name = "PLACE", requires = "oauth_issuer")]
    oauth_jwks: Option<String>,
    /// A scope that its tokens need; may be given several times
    #[arg(long, value_name = "SCOPE", requires = "oauth_issuer")]
    oauth_scope: Vec<String>,
    /// How its tokens may be signed; may be given several times. Otherwise ES256, RS256 or EdDSA
    #[arg(long, value_name = "NAME", requires = "oauth_issuer", value_parser = auth::algorithm)]
    oauth_algorithm: Vec<Algorithm>,
}

/// The address that clients use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PublicUrl {
    text: String,
    host: String,
    path: String,
}

/// What came of the options.
pub(super) struct Chosen {
    pub(super) address: SocketAddr,
    pub(super) allowed: Allowed,
    /// Absent where anybody is let in.
    pub(super) authenticator: Option<Authenticator>,
    /// Where clients learn how to be let in.
    pub(super) metadata_url: String,
    /// What they learn there, by the paths where they look for it.
    pub(super) documents: Vec<(String, String)>,
}

impl HttpArguments {
    /// None where it is not asked for.
    pub(super) fn choose(&self) -> Result<Option<Chosen>, Refusal> {
        let Some(address) = self.http else {
            return Ok(None);
        };
        let mut allowed =
            Allowed { hosts: self.allow_host.clone(), origins: self.allow_origin.clone() };
        allowed.hosts.extend(self.public_url.as_ref().map(|url| url.host.clone()));
        let resource = match &self.public_url {
            Some(url) => url.text.clone(),
            None => format!("http://{address}/mcp"),
        };
        let authenticator = self.authenticator(address, &resource)?;
        let document = authenticator.as_ref().and_then(|known| known.metadata(&resource));
        let documents = document.map(|document| {
            let text = document.to_string();
            let path = self.public_url.as_ref().map_or("/mcp", |url| &url.path);
            let mut paths = vec![
                auth::metadata_path(path),
                auth::metadata_path("/mcp"),
                auth::metadata_path("/"),
            ];
            paths.sort();
            paths.dedup();
            paths.into_iter().map(|path| (path, text.clone())).collect()
        });
        Ok(Some(Chosen {
            address,
            allowed,
            authenticator,
            metadata_url: auth::metadata_url(&resource),
            documents: documents.unwrap_or_default(),
        }))
    }

    /// Where there are tokens they are needed, on whatever address. Nobody is let in unasked from elsewhere, unless
    /// that is said to be meant.
    fn authenticator(
        &self,
        address: SocketAddr,
        resource: &str,
    ) -> Result<Option<Authenticator>, Refusal> {
        if self.insecure {
            return Ok(None);
        }
        let oauth = self.oauth_issuer.as_ref().map(|issuer| OAuth {
            issuer: issuer.clone(),
            audience: self.oauth_audience.clone().unwrap_or_else(|| resource.to_owned()),
            jwks: self.oauth_jwks.clone(),
            algorithms: match &*self.oauth_algorithm {
                [] => ALGORITHMS_BY_DEFAULT.to_vec(),
                named => named.to_vec(),
            },
            scopes: self.oauth_scope.clone(),
        });
        let tokens = self.tokens.path_if_any();
        if oauth.is_none() && tokens.is_none() {
            return if address.ip().to_canonical().is_loopback() {
                Ok(None)
            } else {
                Err(open_to_all(address))
            };
        }
        Authenticator::new(tokens, oauth).map(Some)
    }
}

/// A port alone is one of this machine's, for nobody else.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let mut addresses = text.to_socket_addrs().map_err(|_| {
        "neither a port, as in `8080`, nor an address and a port, as in `127.0.0.1:8080`".to_owned()
    })?;
    addresses.next().ok_or_else(|| "this name has no address".to_owned())
}

fn parse_url(text: &str) -> Result<PublicUrl, String> {
    let url: http::Uri = text.parse().map_err(|_| "no address of a web server".to_owned())?;
    let (Some("http" | "https"), Some(host)) = (url.scheme_str(), url.host()) else {
        return Err("an address begins with `https://` or `http://`".to_owned());
    };
    if url.query().is_some() || text.contains('#') {
        return Err("an address of ours has neither `?` nor `#`".to_owned());
    }
    Ok(PublicUrl { text: text.to_owned(), host: host.to_owned(), path: url.path().to_owned() })
}

fn open_to_all(address: SocketAddr) -> Refusal {
    Refusal::InvalidParams {
        details: format!(
            "`{address}` can be reached from other machines, and nobody would have to say who they are"
        ),
        hint: Some(
            "make a token with `workflowlookup token new NAME`, or say that it is meant with `--insecure`"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_for_this_machine() {
        for text in ["8080", ":8080", "127.0.0.1:8080"] {
            assert_eq!(parse_address(text).unwrap().to_string(), "127.0.0.1:8080");
        }
        assert_eq!(parse_address("[::]:0").unwrap().to_string(), "[::]:0");
        for odd in ["", "x", "127.0.0.1", "70000", "http://127.0.0.1:8080"] {
            assert!(parse_address(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_public_address_is_one_of_a_web_server() {
        let url = parse_url("https://mcp.example.com:8443/team/mcp").unwrap();
        assert_eq!((&*url.host, &*url.path), ("mcp.example.com", "/team/mcp"));
        for odd in ["", "mcp.example.com", "ftp://x/", "https://", "https://x/?y", "https://x/#y"] {
            assert!(parse_url(odd).is_err(), "{odd}");
        }
    }
}
