//! Which names we answer to, and which pages may call us. A browser that is tricked into calling us by a name of its
//! attacker's says so in `Host`, and a foreign page in `Origin`: both are turned away.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};

/// Whom to answer, besides those who call us by an address or as `localhost`.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Names, in small letters, without a port.
    pub hosts: Vec<String>,
    /// Origins as browsers write them: `https://example.com`, with a port where it is not the usual one.
    pub origins: Vec<String>,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// No `Host`, or several: 400.
    Malformed,
    Host,
    Origin,
}

impl Allowed {
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let host = only(headers, &HOST)?.ok_or(Foreign::Malformed)?;
        let host = host.to_str().map_err(|_| Foreign::Malformed)?;
        if !self.has_host(host) {
            return Err(Foreign::Host);
        }
        // A request line may name a host too, and it must not be another.
        if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
            return Err(Foreign::Malformed);
        }
        match only(headers, &ORIGIN)? {
            None => Ok(()),
            Some(origin) if self.has_origin(origin, host) => Ok(()),
            Some(_) => Err(Foreign::Origin),
        }
    }

    /// An address cannot be a name that somebody else has pointed at us.
    fn has_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else {
            return false;
        };
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|own| name.eq_ignore_ascii_case(own))
    }

    /// A page of our own, or one that was named.
    fn has_origin(&self, origin: &HeaderValue, host: &str) -> bool {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        own.is_some_and(|own| own.eq_ignore_ascii_case(host)) || self.names(origin)
    }

    /// The origin, if it is a foreign one that was named and has to be told so.
    pub(crate) fn named<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        origin.to_str().is_ok_and(|origin| self.names(origin)).then_some(origin)
    }

    fn names(&self, origin: &str) -> bool {
        self.origins.iter().any(|own| own.eq_ignore_ascii_case(origin))
    }
}

fn only<'a>(
    headers: &'a HeaderMap,
    name: &axum::http::HeaderName,
) -> Result<Option<&'a HeaderValue>, Foreign> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(Foreign::Malformed),
    }
}

/// The name or the address in `Host`; none where it is neither.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rsplit_once(':') {
        // An IPv6 address has colons of its own, between brackets.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_pages() {
        let allowed = Allowed {
            hosts: vec!["mcp.example.com".to_owned()],
            origins: vec!["https://app.example.com".to_owned()],
        };
        let check = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            allowed.check(&Uri::from_static("/mcp"), &headers)
        };
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9",
            "[::1]:9",
            "[::1]",
            "10.0.0.5",
            "mcp.example.com",
            "MCP.example.com:443",
        ] {
            assert_eq!(check(host, None), Ok(()), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example", "localhost:x", ":80", "[::1", "a b"]
        {
            assert_eq!(check(host, None), Err(Foreign::Host), "{host}");
        }
        for origin in ["http://localhost:80", "https://localhost:80", "https://app.example.com"] {
            assert_eq!(check("localhost:80", Some(origin)), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:81",
            "http://evil.example",
            "file://",
        ] {
            assert_eq!(check("localhost:80", Some(origin)), Err(Foreign::Origin), "{origin}");
        }
        assert_eq!(
            allowed.check(&Uri::from_static("/mcp"), &HeaderMap::new()),
            Err(Foreign::Malformed)
        );
        let mut twice = HeaderMap::new();
        twice.append(HOST, HeaderValue::from_static("localhost"));
        twice.append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(allowed.check(&Uri::from_static("/mcp"), &twice), Err(Foreign::Malformed));
        let mut one = HeaderMap::new();
        one.insert(HOST, HeaderValue::from_static("localhost"));
        let other = Uri::from_static("http://evil.example/mcp");
        assert_eq!(allowed.check(&other, &one), Err(Foreign::Malformed));
    }
}
