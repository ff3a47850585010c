//! Where a PostgreSQL is and how it is reached: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE`, as its own
//! programs take it. What leaves the machine is encrypted and the server's name is checked, unless the address says
//! otherwise.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;
use crate::limits::CONNECT_MAX;

/// How it names itself to the server, where the address has no name for it.
const APPLICATION: &str = "workflowlookup";
/// A peer that is gone without a word is noticed after this time.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
    /// Who signs for the server; the system's authorities where nothing is said.
    authorities: Option<PathBuf>,
    shown: String,
}

impl Address {
    /// Reads it. An error says what is wrong with it, without repeating it: it may have a password in it.
    pub fn parse(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("it does not begin with `postgres://`".to_owned());
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut mode = None;
        let mut authorities = None;
        let mut rest = Vec::new();
        // These two mean more to us than to the library that makes connections.
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = Some(ssl_mode(value)?),
                Some(("sslrootcert", value)) => authorities = Some(PathBuf::from(value)),
                _ => rest.push(option),
            }
        }
        let rest = rest.join("&");
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
        // What the library says may repeat a part of the address.
        let parsed = url.parse::<Config>();
        let mut config = parsed.map_err(|error| match std::error::Error::source(&error) {
            Some(why) => why.to_string(),
            None => error.to_string(),
        })?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        if config.get_user().is_none() {
            return Err("it names no user: `postgres://USER@HOST/DATABASE`".to_owned());
        }
        let mode =
            mode.unwrap_or(if is_local(&config) { SslMode::Disable } else { SslMode::Require });
        config.ssl_mode(mode);
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION);
        }
        config
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(KEEPALIVE);
        Ok(Self { config, authorities, shown: without_password(base, query) })
    }

    /// The same with this password, where it has none.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    pub(super) fn config(&self) -> Config {
        self.config.clone()
    }

    /// What encrypted connections are made with; none where there are none.
    pub(super) fn tls(&self) -> Result<Option<MakeRustlsConnect>, Error> {
        if self.config.get_ssl_mode() == SslMode::Disable {
            return Ok(None);
        }
        let unusable = |why: String| Error::Denied(format!("no encrypted connection: {why}"));
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(path) => {
                let failed = |error: rustls::pki_types::pem::Error| {
                    unusable(format!("`{}`: {error}", path.display()))
                };
                for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
                    let added = roots.add(certificate.map_err(failed)?);
                    added.map_err(|error| unusable(format!("`{}`: {error}", path.display())))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            let why = "no authority is known that could sign for the server; name a file with `sslrootcert=`";
            return Err(unusable(why.to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(config)))
    }
}

fn ssl_mode(value: &str) -> Result<SslMode, String> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        // A name that is not checked would protect from nobody who can answer in its place.
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => {
            Err("sslmode is `disable`, `prefer`, `require`, `verify-ca` or `verify-full`"
                .to_owned())
        }
    }
}

/// Whether no host is elsewhere.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// The address as it was given, so that it can be used again, but for what is secret.
fn without_password(base: &str, query: &str) -> String {
    let (scheme, rest) = base.split_once("://").unwrap_or(("postgres", base));
    let shown = match rest.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}@{place}")
        }
        None => base.to_owned(),
    };
    let is_shown = |option: &&str| !option.is_empty() && !option.starts_with("password=");
    let options: Vec<&str> = query.split('&').filter(is_shown).collect();
    if options.is_empty() { shown } else { format!("{shown}?{}", options.join("&")) }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_without_its_password() {
        let address =
            Address::parse("postgres://ann:s3cret@db.example.com:6432/team?sslmode=require");
        let address = address.unwrap();
        assert_eq!(address.to_string(), "postgres://ann@db.example.com:6432/team?sslmode=require");
        assert!(!format!("{address:?}").contains("s3cret"));
        let two =
            Address::parse("postgresql://ann@one:1,two:2/team?target_session_attrs=read-write");
        assert_eq!(
            two.unwrap().to_string(),
            "postgresql://ann@one:1,two:2/team?target_session_attrs=read-write"
        );
        let odd = Address::parse("postgres://ann:s3@cret@host/team?password=s3cret&user=ann");
        assert!(odd.is_err() || !odd.unwrap().to_string().contains("cret"));
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted() {
        let mode = |url: &str| Address::parse(url).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://ann@db.example.com/team"), SslMode::Require);
        assert_eq!(mode("postgres://ann@127.0.0.1/team"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@localhost,db.example.com/team"), SslMode::Require);
        assert_eq!(mode("postgres://ann@db.example.com/team?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@127.0.0.1/team?sslmode=verify-full"), SslMode::Require);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_address() {
        for url in [
            "mysql://ann:s3cret@host/db",
            "postgres://ann:s3cret@host:port/db",
            "postgres://ann:s3cret@host/db?sslmode=maybe",
            "postgres://ann:s3cret@host/db?colour=blue",
            "postgres://host/db",
            "postgres:///db",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(!error.is_empty() && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
