//! Where a server may send us for a login. What it names is asked before anybody has said yes to anything, so a server out
//! there must not have us ask around in a network that it cannot see itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// How long a name may take to be found.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);
/// Where one of these is set, others look up names and see to it where they lead.
const PROXIES: &[&str] =
    &["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Host names of cloud metadata services.
const METADATA_HOSTS: &[&str] =
    &["metadata", "metadata.google.internal", "metadata.azure.internal"];

/// How far an address is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// This machine.
    Here,
    /// A network of a house or a company.
    Inside,
    Outside,
    /// Nobody gives tokens there: the machine's own link, where clouds have their secrets, and what is no address of one.
    Nowhere,
}

/// As far in as the upstream itself is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach(Place);

impl Reach {
    /// What is not known to be further in is outside.
    pub(super) async fn of(upstream: &str) -> Self {
        let places = places(upstream).await;
        Self(places.into_iter().min().unwrap_or(Place::Outside))
    }

    /// Whether all that its name stands for may be asked. What has no address is asked, and found not to be there.
    pub(super) async fn allows(self, url: &str) -> bool {
        if METADATA_HOSTS.contains(&host(url).as_str()) {
            return false;
        }
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if PROXIES.iter().any(is_set) && !is_known_here(url) {
            return true;
        }
        places(url).await.into_iter().all(|place| self.includes(place))
    }

    fn includes(self, place: Place) -> bool {
        match place {
            Place::Nowhere => false,
            Place::Outside => true,
            Place::Here | Place::Inside => self.0 <= place,
        }
    }
}

/// Whether the address is known without DNS.
fn is_known_here(url: &str) -> bool {
    let host = host(url);
    host.starts_with('[')
        || host.parse::<Ipv4Addr>().is_ok()
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// The host in lower case, without a trailing dot.
fn host(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

async fn places(url: &str) -> Vec<Place> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match timeout(LOOKUP_LIMIT, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.map(|address| place(address.ip())).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn place(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(address) => place_of_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => place_of_v4(address),
            None => place_of_v6(address),
        },
    }
}

/// The IPv4 address inside an IPv6 address: mapped, translated (NAT64) or tunneled (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, .., y, z] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(of(y, z)),
        _ if a == 0x2002 => Some(of(b, c)),
        _ => address.to_ipv4_mapped(),
    }
}

fn place_of_v4(address: Ipv4Addr) -> Place {
    // Shared by the customers of a provider, and used by private networks of their own.
    let is_shared = address.octets()[0] == 100 && address.octets()[1] & 0b1100_0000 == 64;
    if address.is_loopback() {
        Place::Here
    } else if address.is_private() || is_shared {
        Place::Inside
    } else if address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.octets()[0] == 0
    {
        Place::Nowhere
    } else {
        Place::Outside
    }
}

fn place_of_v6(address: Ipv6Addr) -> Place {
    if address.is_loopback() {
        Place::Here
    } else if address.is_unique_local() {
        Place::Inside
    } else if address.is_unicast_link_local() || address.is_multicast() || address.is_unspecified()
    {
        Place::Nowhere
    } else {
        Place::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_leads_no_further_in_than_it_is() {
        let (here, inside, outside) =
            ("http://127.0.0.1:1/mcp", "http://10.0.0.1/mcp", "https://192.0.2.1/mcp");
        for (upstream, url, expected) in [
            (here, "http://127.0.0.2/x", true),
            (here, "http://[::1]/x", true),
            (here, "http://192.168.0.1/x", true),
            (here, "https://192.0.2.9/x", true),
            (here, "http://169.254.169.254/x", false),
            (inside, "http://127.0.0.1/x", false),
            (inside, "https://172.16.3.4/x", true),
            (inside, "https://[fd00::1]/x", true),
            (inside, "https://192.0.2.9/x", true),
            (inside, "https://[fe80::1]/x", false),
            (outside, "https://192.0.2.9/x", true),
            (outside, "https://[2001:db8::1]/x", true),
            (outside, "http://127.0.0.1/x", false),
            (outside, "https://[::ffff:127.0.0.1]/x", false),
            (outside, "https://10.1.2.3/x", false),
            (outside, "https://[64:ff9b::a9fe:a9fe]/x", false),
            (outside, "https://[64:ff9b::c000:209]/x", true),
            (outside, "https://[2002:a00:1::]/x", false),
            (outside, "https://100.64.0.1/x", false),
            (outside, "http://localhost/x", false),
            (outside, "http://0.0.0.0/x", false),
        ] {
            let reach = Reach::of(upstream).await;
            assert_eq!(reach.allows(url).await, expected, "{upstream} -> {url}");
        }
    }
}
