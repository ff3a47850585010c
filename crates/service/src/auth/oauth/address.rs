//! Addresses that may be asked: https, and plain http on this machine only, where nobody can listen or answer in
//! between.

use std::net::IpAddr;

use http::Uri;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    text: String,
    uri: Uri,
}

impl Address {
    /// An error says why not, as the rest of a sentence about it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "it is no address".to_owned())?;
        let host = uri.host().unwrap_or_default();
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => is_loopback(host),
            _ => return Err("it does not begin with `https://`".to_owned()),
        };
        if !is_secure {
            return Err("plain http is only for this machine".to_owned());
        }
        if host.is_empty()
            || uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err("it names no host, or somebody at it".to_owned());
        }
        if text.contains(['#', '?']) {
            return Err("it has a query or a fragment".to_owned());
        }
        Ok(Self { text: text.to_owned(), uri })
    }

    /// One that another one has named. What is fetched from afar must not send us to this machine.
    pub(super) fn named_by(text: &str, other: &Self) -> Result<Self, String> {
        let address = Self::read(text)?;
        if address.is_plain() && !other.is_plain() {
            return Err("it has plain http, unlike its issuer".to_owned());
        }
        Ok(address)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn is_plain(&self) -> bool {
        self.uri.scheme_str() == Some("http")
    }

    /// Where an issuer may describe itself, in the order in which MCP has clients look: RFC 8414, then OpenID Connect
    /// with the path behind the well-known one, then with the path in front of it.
    pub(super) fn descriptions(&self) -> Vec<Self> {
        let path = self.uri.path().trim_end_matches('/');
        let mut paths = vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
        ];
        if !path.is_empty() {
            paths.push(format!("{path}/.well-known/openid-configuration"));
        }
        let at = |path: String| {
            let scheme = self.uri.scheme_str().unwrap_or("https");
            let authority = self.uri.authority().map_or("", |authority| authority.as_str());
            Self::read(&format!("{scheme}://{authority}{path}")).ok()
        };
        paths.into_iter().filter_map(at).collect()
    }
}

fn is_loopback(host: &str) -> bool {
    let number = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || number.parse::<IpAddr>().is_ok_and(|number| number.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secure_addresses_are_asked() {
        for good in [
            "https://login.example",
            "https://login.example:8443/tenant/",
            "http://127.0.0.1:8080",
            "http://127.9.9.9/a",
            "http://[::1]:8080/realm",
            "http://localhost:1",
        ] {
            assert!(Address::read(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "login.example",
            "/path",
            "ftp://login.example",
            "file:///etc/passwd",
            "http://login.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://127.0.0.1@login.example",
            "https://user:word@login.example",
            "https://login.example?a=b",
            "https://login.example#a",
            "https://",
            "https://login example",
        ] {
            assert!(Address::read(bad).is_err(), "{bad}");
        }
        let (far, near) = ("https://login.example", "http://127.0.0.1:1");
        let (far, near) = (Address::read(far).unwrap(), Address::read(near).unwrap());
        assert!(Address::named_by("http://127.0.0.1:2/keys", &far).is_err());
        assert!(Address::named_by("http://127.0.0.1:2/keys", &near).is_ok());
        assert!(Address::named_by("https://keys.example/keys", &far).is_ok());
    }

    #[test]
    fn an_issuer_describes_itself_at_well_known_places() {
        let places = |issuer: &str| {
            let issuer = Address::read(issuer).unwrap();
            let places: Vec<_> =
                issuer.descriptions().into_iter().map(|place| place.text).collect();
            places.join("\n")
        };
        insta::assert_snapshot!(places("https://a.example/"), @"
        https://a.example/.well-known/oauth-authorization-server
        https://a.example/.well-known/openid-configuration
        ");
        insta::assert_snapshot!(places("https://a.example:1/realms/b"), @"
        https://a.example:1/.well-known/oauth-authorization-server/realms/b
        https://a.example:1/.well-known/openid-configuration/realms/b
        https://a.example:1/realms/b/.well-known/openid-configuration
        ");
    }
}
