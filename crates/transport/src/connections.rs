//! Open connections and their owners: a network address until a request passes authentication, a principal from then
//! on. When connections run short, the owner that holds most of them loses its oldest idle one. Addresses lose theirs
//! before principals do, so that clients without a token cannot lock out clients with one; a principal that holds more
//! than its share is treated like an address, so that it cannot lock out new clients either.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::host::Principal;
use crate::limits::{CONNECTIONS_PRINCIPAL_SHARE, CONNECTIONS_RESERVED_MAX, FIRST_REQUEST_TIME};

/// All open connections of a service.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    per_address_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: usize,
    /// Connections that can be evicted, by owner and in the order in which they were accepted.
    owners: HashMap<Owner, BTreeMap<u64, Arc<Connection>>>,
}

/// Whom connections and the memory of bodies are counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The network that a client controls.
    Address(IpAddr),
    /// No name with anonymous access.
    Principal(Option<Arc<str>>),
}

/// How readily idle connections are evicted: the greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionRank {
    /// Its first request may be on its way.
    Fresh,
    Admitted,
    /// Of an address, or of a principal above its share.
    Expendable,
}

/// One open connection. Requests carry it in their extensions.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    address: IpAddr,
    accepted: Instant,
    /// Set when the first request passes authentication. The connection stays with that principal.
    principal: OnceLock<Option<Arc<str>>>,
    in_flight: AtomicUsize,
    has_responded: AtomicBool,
    evicted: Notify,
}

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenGuard {
    connections: Arc<Connections>,
    pub(crate) connection: Arc<Connection>,
}

/// Marks a connection as busy from one of its requests until the end of the response.
#[derive(Debug)]
pub(crate) struct InFlightGuard(Arc<Connection>);

impl Connections {
    pub(crate) fn new(max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_address_max, inner: Mutex::default() })
    }

    pub(crate) fn count(&self) -> usize {
        self.inner().open
    }

    /// Registers an accepted connection.
    pub(crate) fn open(self: &Arc<Self>, address: IpAddr) -> OpenGuard {
        let mut inner = self.inner();
        inner.next += 1;
        inner.open += 1;
        let connection = Arc::new(Connection {
            number: inner.next,
            address: network(address),
            accepted: Instant::now(),
            principal: OnceLock::new(),
            in_flight: AtomicUsize::new(0),
            has_responded: AtomicBool::new(false),
            evicted: Notify::new(),
        });
        inner.insert(&connection);
        drop(inner);
        OpenGuard { connections: Arc::clone(self), connection }
    }

    /// Moves a connection to the principal whose request passed authentication on it.
    pub(crate) fn admit(&self, connection: &Arc<Connection>, principal: Option<&Principal>) {
        if connection.is_admitted() {
            return;
        }
        let mut inner = self.inner();
        let was_candidate = inner.remove(connection);
        let name = principal.map(|principal| Arc::clone(&principal.name));
        let is_first = connection.principal.set(name).is_ok();
        if was_candidate && is_first {
            inner.insert(connection);
        }
    }

    /// Whether so few connections are left that one should be evicted for the next.
    pub(crate) fn is_short(&self) -> bool {
        let reserved = (self.max / 16).clamp(1, CONNECTIONS_RESERVED_MAX);
        self.count() >= self.max.saturating_sub(reserved)
    }

    /// Evicts the oldest idle connection of the owner with the most connections. False if all are busy.
    pub(crate) fn evict(&self) -> bool {
        let mut inner = self.inner();
        let candidates = inner.owners.iter().filter_map(|(owner, own)| {
            let (rank, oldest) = self.oldest_idle(owner, own)?;
            Some(((rank, own.len()), oldest))
        });
        let oldest = candidates.max_by_key(|(rank, _)| *rank).map(|(_, oldest)| Arc::clone(oldest));
        oldest.is_some_and(|oldest| inner.evict(&oldest))
    }

    /// The connection of an owner that would be evicted first.
    fn oldest_idle<'a>(
        &self,
        owner: &Owner,
        own: &'a BTreeMap<u64, Arc<Connection>>,
    ) -> Option<(EvictionRank, &'a Arc<Connection>)> {
        let is_crowd = match owner {
            Owner::Address(_) => own.len() > self.per_address_max,
            Owner::Principal(_) => own.len() > self.max / CONNECTIONS_PRINCIPAL_SHARE,
        };
        let oldest = own.values().find(|connection| !connection.is_busy())?;
        Some(match owner {
            _ if is_crowd => (EvictionRank::Expendable, oldest),
            Owner::Principal(_) => (EvictionRank::Admitted, oldest),
            Owner::Address(_) => match own.values().find(|own| own.had_its_chance()) {
                Some(oldest) => (EvictionRank::Expendable, oldest),
                None => (EvictionRank::Fresh, oldest),
            },
        })
    }

    /// Evicts a connection of an address that holds too many without authentication. Ones whose first request may
    /// still be on its way are spared: a proxy opens many at once.
    pub(crate) fn evict_from(&self, address: IpAddr) -> bool {
        let mut inner = self.inner();
        let oldest = inner.owners.get(&Owner::Address(network(address))).and_then(|own| {
            let is_over = own.len() >= self.per_address_max;
            let mut own = own.values().filter(|_| is_over);
            own.find(|connection| connection.had_its_chance()).cloned()
        });
        oldest.is_some_and(|oldest| inner.evict(&oldest))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn insert(&mut self, connection: &Arc<Connection>) {
        let own = self.owners.entry(connection.owner()).or_default();
        own.insert(connection.number, Arc::clone(connection));
    }

    /// Removes a connection from the candidates for eviction. False if it was none.
    fn remove(&mut self, connection: &Connection) -> bool {
        let owner = connection.owner();
        let Some(own) = self.owners.get_mut(&owner) else { return false };
        let was_candidate = own.remove(&connection.number).is_some();
        if own.is_empty() {
            self.owners.remove(&owner);
        }
        was_candidate
    }

    fn evict(&mut self, connection: &Connection) -> bool {
        connection.evicted.notify_one();
        self.remove(connection)
    }
}

impl Connection {
    pub(crate) fn is_admitted(&self) -> bool {
        self.principal.get().is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// Waits until this connection has to give way to others.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    pub(crate) fn begin_request(self: &Arc<Self>) -> InFlightGuard {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(Arc::clone(self))
    }

    fn had_its_chance(&self) -> bool {
        let has_responded = self.has_responded.load(Ordering::Relaxed);
        !self.is_busy() && (has_responded || self.accepted.elapsed() >= FIRST_REQUEST_TIME)
    }

    /// The owner of one of its requests. Clients without a principal are told apart by their addresses.
    pub(crate) fn request_owner(&self, principal: Option<&Principal>) -> Owner {
        match principal {
            None => Owner::Address(self.address),
            Some(principal) => Owner::Principal(Some(Arc::clone(&principal.name))),
        }
    }

    fn owner(&self) -> Owner {
        match self.principal.get() {
            None => Owner::Address(self.address),
            Some(name) => Owner::Principal(name.clone()),
        }
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        let mut inner = self.connections.inner();
        inner.open -= 1;
        inner.remove(&self.connection);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.has_responded.store(true, Ordering::Relaxed);
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The network that one client controls: its IPv4 address, or the /64 of its IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 4;

    fn principal(name: &str) -> Principal {
        Principal { name: name.into(), scope: "".into(), until: None }
    }

    fn is_evicted(open: &OpenGuard) -> bool {
        let mut evicted = std::pin::pin!(open.connection.evicted());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        evicted.as_mut().poll(&mut context).is_ready()
    }

    #[test]
    fn crowded_address_loses_its_oldest_idle_connection() {
        let connections = Connections::new(LIMIT, LIMIT);
        let [crowd, other] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let single = connections.open(other);
        let busy = connections.open(crowd);
        let request = busy.connection.begin_request();
        let [first, second] = [crowd, crowd].map(|address| connections.open(address));
        assert!(connections.is_short());
        assert!(connections.evict());
        let evicted = [&single, &busy, &first, &second].map(is_evicted);
        assert_eq!(evicted, [false, false, true, false]);
        drop((request, single, busy, first, second));
        assert_eq!(connections.count(), 0);
        assert!(connections.inner().owners.is_empty());
    }

    #[test]
    fn principals_keep_connections_while_addresses_have_idle_ones() {
        let connections = Connections::new(2 * CONNECTIONS_PRINCIPAL_SHARE, LIMIT);
        let address = "10.0.0.1".parse().unwrap();
        let [ann, second, stranger] = [(); 3].map(|()| connections.open(address));
        drop(stranger.connection.begin_request());
        for own in [&ann, &second] {
            connections.admit(&own.connection, Some(&principal("ann")));
        }
        assert!(connections.evict());
        assert!(is_evicted(&stranger));
        assert!(connections.evict(), "then a principal's");
        assert_eq!([&ann, &second].map(is_evicted), [true, false]);
    }

    #[test]
    fn crowded_principal_loses_connections_before_fresh_ones() {
        let connections = Connections::new(2 * CONNECTIONS_PRINCIPAL_SHARE, LIMIT);
        let address = "10.0.0.1".parse().unwrap();
        let [ann, second, third, fresh, used] = [(); 5].map(|()| connections.open(address));
        for own in [&ann, &second, &third] {
            connections.admit(&own.connection, Some(&principal("ann")));
        }
        drop(used.connection.begin_request());
        let evicted = || [&ann, &second, &third, &fresh, &used].map(is_evicted);
        assert!(connections.evict());
        assert_eq!(evicted(), [true, false, false, false, false], "she holds more than her share");
        assert!(connections.evict());
        assert_eq!(evicted(), [false, false, false, false, true], "now she does not");
        assert!(connections.evict());
        assert_eq!(evicted(), [false, true, false, false, false], "a request may be on its way");
    }

    #[test]
    fn requests_without_principal_belong_to_their_address() {
        let connections = Connections::new(LIMIT, LIMIT);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| {
            let open = connections.open(text.parse().unwrap());
            connections.admit(&open.connection, None);
            open
        });
        let owner = |open: &OpenGuard, name: Option<&str>| {
            open.connection.request_owner(name.map(principal).as_ref())
        };
        assert_ne!(owner(&one, None), owner(&other, None));
        assert_eq!(owner(&one, Some("ann")), owner(&other, Some("ann")));
    }

    #[test]
    fn address_limit_spares_connections_before_their_first_request() {
        let connections = Connections::new(LIMIT, 2);
        let [one, other] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap());
        let [first, second] = [one, other].map(|address| connections.open(address));
        assert!(!connections.evict_from(one), "their requests may be on their way");
        drop(second.connection.begin_request());
        assert!(connections.evict_from(one), "both are of one network");
        assert_eq!([&first, &second].map(is_evicted), [false, true]);
    }
}
