//! Why a login comes to nothing.

use std::time::Duration;

use registry::Masks;

use super::discover::DiscoveryError;
use super::keep::Unkept;

/// Each message says what happened and what to try; whoever must tell cases apart looks at the variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{server}` is a program on this machine, and nobody logs in to it")]
    NotHttp { server: String },

    #[error(
        "the entry of `{server}` sends a token of its own; take it out of `mcp.auth` or `mcp.headers`, and log in again"
    )]
    HasToken { server: String },

    #[error(
        "`{server}` does not say how to log in to it, and did not ask for it; it can be called as it is"
    )]
    NotAsked { server: String },

    #[error(
        "`{server}` wants a token, and does not say where one logs in; put a token into `mcp.auth`: \
         `{{\"type\": \"bearer\", \"token\": \"${{NAME}}\"}}`"
    )]
    NowhereToLogIn { server: String },

    #[error("cannot find out how to log in to `{server}`: {why}")]
    Discovery { server: String, why: String },

    #[error(
        "`{server}` wants a login at `{url}`, which is neither HTTPS nor on this machine: nothing secret is sent there"
    )]
    Insecure { server: String, url: String },

    #[error(
        "`{issuer}` registers no clients by itself; register one there with the redirect address \
         `http://localhost:PORT/callback`, and put its id and the port into `mcp.auth` of `{server}`: \
         `{{\"type\": \"oauth\", \"clientId\": \"…\", \"callbackPort\": PORT}}`"
    )]
    NoRegistration { server: String, issuer: String },

    #[error("the login server of `{server}` does not register us: {why}")]
    Registration { server: String, why: String },

    #[error("cannot wait for the answer of a login on port {port} of this machine: {source}")]
    Listen { port: u16, source: std::io::Error },

    #[error("the login was refused: {code}{}", .description.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused { code: String, description: Option<String> },

    #[error(
        "nobody completed the login within {}{}; try again", humantime::format_duration(*.after),
        if *.foreign { ", though something that was no answer to it came, and was turned away" } else { "" }
    )]
    Unfinished { after: Duration, foreign: bool },

    #[error(
        "the answer to the login comes from `{received}` and not from `{expected}`, which was asked; \
         somebody may be trying to get at the token, so nothing was sent"
    )]
    WrongIssuer { expected: String, received: String },

    #[error(
        "the answer to the login does not say that it comes from `{expected}`, though all its answers should; \
         nothing was sent"
    )]
    NoIssuer { expected: String },

    #[error("no token was given for the login: {why}")]
    Exchange { why: String },

    #[error(transparent)]
    Unkept(#[from] Unkept),
}

impl Error {
    /// Nothing in `masks` is repeated.
    pub(super) fn of_discovery(error: &DiscoveryError, server: &str, masks: &Masks) -> Self {
        let why = masks.hide(&error.to_string()).into_owned();
        Self::Discovery { server: server.to_owned(), why }
    }
}
