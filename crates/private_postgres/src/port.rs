//! A port that stays ours while nobody listens on it, so that a server can come back to it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;

/// Below those that the system hands out to whoever asks for any.
const PORTS: Range<u16> = 10_000..32_000;

pub(crate) struct Port {
    pub(crate) number: u16,
    /// The same number of another protocol. Other tests of ours hold theirs in the same way.
    _held: UdpSocket,
}

impl Port {
    pub(crate) fn reserve() -> Result<Self, String> {
        let first = PORTS.start + (random() % PORTS.len() as u64) as u16;
        let found = (first..PORTS.end).chain(PORTS.start..first).find_map(|number| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
            let held = UdpSocket::bind(address).ok()?;
            TcpListener::bind(address).ok()?;
            Some(Self { number, _held: held })
        });
        found.ok_or_else(|| format!("no port of {PORTS:?} is free on the loopback"))
    }
}

/// The standard library's only source of chance is where it gets the keys of its tables from.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
