//! How to serve over HTTP: where, for whom, and who has to say who they are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use clap::Args;
use jsonwebtoken::Algorithm;
use transport::Allowed;

use super::limit_option::LimitOption;
use crate::cli::token::TokensOption;
use service::app::App;
use service::auth::{self, ALGORITHMS_BY_DEFAULT, Authenticator, OAuth, TokenPlace};
use service::error::Refusal;
use service::server::http::{Door, HostLimits};
use service::sessions::Gates;

const HEADING: &str = "Over HTTP";
/// How long a server waits for its store before it begins to listen.
const START_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct HttpArguments {
    /// Speak over HTTP: a port of this machine, or an address and a port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// A name that clients may call it by, besides addresses and `localhost`; may be given several times
    #[arg(long, value_name = "NAME", requires = "http", value_parser = parse_host)]
    allow_host: Vec<String>,
    /// An origin whose pages may call it, as `https://example.com`; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = parse_origin)]
    allow_origin: Vec<String>,
    /// The address that clients use, where it is another one, as `https://mcp.example.com/mcp`
    #[arg(long, value_name = "URL", requires = "http", value_parser = parse_url)]
    public_url: Option<PublicUrl>,
    /// Let anybody in who can reach the address
    #[arg(long, requires = "http", conflicts_with_all = ["tokens", "oauth_issuer"])]
    insecure: bool,
    #[command(flatten)]
    tokens: TokensOption,
    /// Whose word counts where a step waits for a person
    #[arg(long, value_name = "MODE", value_enum, default_value_t, requires = "http")]
    pub(super) gates: Gates,
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
    /// A limit of one principal or address that is not the default, as `cpu-time=60s` (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "http")]
    limit: Vec<LimitOption>,
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
    pub(super) door: Door,
    /// Where clients learn how to be let in.
    pub(super) metadata_url: String,
    /// What they learn there, by the paths where they look for it.
    pub(super) documents: Vec<(String, String)>,
    pub(super) limits: HostLimits,
}

impl HttpArguments {
    /// None where it is not asked for.
    pub(super) fn choose(&self, app: &App, aside: App) -> Result<Option<Chosen>, Refusal> {
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
        let door = self.door(address, &resource, app, aside)?;
        if self.gates == Gates::Strict && !matches!(door, Door::Asks(_)) {
            return Err(nobody_decides());
        }
        let document = door.authenticator().and_then(|known| known.metadata(&resource));
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
        let mut limits = HostLimits::default();
        self.limit.iter().for_each(|limit| limit.apply(&mut limits));
        Ok(Some(Chosen {
            address,
            allowed,
            door,
            metadata_url: auth::metadata_url(&resource),
            documents: documents.unwrap_or_default(),
            limits,
        }))
    }

    /// Where there are tokens they are needed, on whatever address. Nobody is let in unasked from elsewhere, unless
    /// that is said to be meant.
    fn door(
        &self,
        address: SocketAddr,
        resource: &str,
        app: &App,
        aside: App,
    ) -> Result<Door, Refusal> {
        if self.insecure {
            return Ok(Door::Open);
        }
        let is_nowhere = address.ip().is_unspecified() || address.port() == 0;
        if self.oauth_issuer.is_some() && self.public_url.is_none() && is_nowhere {
            return Err(nowhere(address));
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
        let place = self.tokens.place(|| app.clone());
        // Looked at from aside: what serves opens the store where it works.
        let are_wanted = match self.tokens.place(|| aside) {
            Ok(place) => within(START_MAX, self.tokens.clone(), place),
            Err(_) => Ok(false),
        };
        if let Err(refusal) = &are_wanted {
            tracing::warn!("nobody is let in until the tokens can be read: {refusal}");
        }
        let is_local = address.ip().to_canonical().is_loopback();
        // What cannot be read yet may turn out not to be there.
        let is_open = oauth.is_none() && !are_wanted.as_ref().copied().unwrap_or(!is_local);
        if is_open && !is_local {
            return Err(open_to_all(address));
        }
        // Somebody has made them to be asked for.
        if is_open && let Some(unused) = self.tokens.unused(place.as_ref().ok()) {
            return Err(Refusal::InvalidParams {
                details: format!("there are tokens in `{}`, and none in the store", unused.display()),
                hint: Some(
                    "use them with `--tokens FILE`, make new ones with `workflowlookup token new NAME --store …`, or say \
                     that anybody may come in with `--insecure`"
                        .to_owned(),
                ),
            });
        }
        // One that is not there yet may come.
        match (is_open, place) {
            (true, Err(_)) => Ok(Door::Open),
            (true, Ok(place)) => {
                let authenticator = Authenticator::new(Some(place), None)?;
                if are_wanted.is_ok() {
                    authenticator.found_none();
                }
                Ok(Door::open_until(authenticator))
            }
            (false, place) => Ok(Door::Asks(Authenticator::new(place.ok(), oauth)?)),
        }
    }
}

/// Whether tokens are wanted. Whoever waits for a server to start wants to hear of it.
fn within(patience: Duration, tokens: TokensOption, place: TokenPlace) -> Result<bool, Refusal> {
    if let TokenPlace::File(_) = place {
        return tokens.are_wanted(place);
    }
    let (sender, looked) = sync_channel(1);
    std::thread::spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(tokens.are_wanted(place));
    });
    looked.recv_timeout(patience).unwrap_or_else(|_| {
        let details = "the store does not answer".to_owned();
        Err(Refusal::Store { details, hint: None })
    })
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

/// A name as it stands in `Host`, without a port.
fn parse_host(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_name) {
        return Err("a name alone, as in `mcp.example.com`; every port is good".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

/// An origin as browsers write it.
fn parse_origin(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']) => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err("an origin is as `https://example.com`, with a port where it is not the usual one, and \
                  nothing behind it"
            .to_owned()),
    }
}

fn nobody_decides() -> Refusal {
    Refusal::InvalidParams {
        details: "with strict gates only a token that may approve decides, and nobody has to show a token here"
            .to_owned(),
        hint: Some(
            "make one with `workflowlookup token new NAME --right approve`, or name an issuer with `--oauth-issuer`"
                .to_owned(),
        ),
    }
}

fn nowhere(address: SocketAddr) -> Refusal {
    Refusal::InvalidParams {
        details: format!(
            "clients cannot be told to get tokens for `{address}`, which is no address that they use"
        ),
        hint: Some("say which they use with `--public-url https://mcp.example.com/mcp`".to_owned()),
    }
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
    fn names_and_origins_are_what_requests_say() {
        assert_eq!(parse_host("MCP.example.com").unwrap(), "mcp.example.com");
        for odd in ["", "mcp.example.com:8080", "https://a.example.com", "a/b", "a b"] {
            assert!(parse_host(odd).is_err(), "{odd}");
        }
        assert!(parse_origin("https://app.example.com:8443").is_ok());
        for odd in ["", "app.example.com", "https://", "https://a.example/", "null", "*"] {
            assert!(parse_origin(odd).is_err(), "{odd}");
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
