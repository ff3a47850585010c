//! Clients with a handshake that this process keeps something for: a stream that they listen to, what they have
//! subscribed to, answers that they may come back for. All of it is bounded, and forgotten some time after nobody
//! reads it. Other processes know nothing of it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use mcp::{Action, Body, Changed, Connection, Reply};
use parking_lot::{Mutex, MutexGuard};

use crate::admission::Place;
use crate::handshake_token::{Had, Id};
use crate::host::Following;
use crate::limits::{ANSWERED_BYTES_MAX, ANSWERED_MAX, NAME_BYTES_MAX, RESUME_TIME};
use crate::stream::Stream;

#[derive(Default)]
pub(crate) struct Peers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    peers: HashMap<Id, Peer>,
    /// Streams that answer a request, by their number.
    answering: HashMap<u64, (Id, Arc<Stream>)>,
    /// Those of them that are over, the oldest first.
    answered: VecDeque<Answered>,
    /// What these have together.
    answered_bytes: usize,
}

#[derive(Debug)]
struct Answered {
    at: Instant,
    number: u64,
    bytes: usize,
}

struct Peer {
    connection: Connection,
    /// Held while it follows something.
    following: Option<Following>,
    /// What it is told without having asked for it.
    stream: Arc<Stream>,
    /// How many responses read it now.
    reading: usize,
    /// Since when nobody does.
    left_at: Instant,
    until: u64,
    /// That it is remembered at all.
    _place: Place,
    /// What the names of the resources that it has subscribed to have together.
    share: Place,
}

/// What is kept for a client, to begin with.
pub(crate) struct NewPeer {
    pub(crate) connection: Connection,
    pub(crate) stream: Arc<Stream>,
    pub(crate) place: Place,
    pub(crate) share: Place,
}

/// Whether a message has more kept than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    More,
    NoMore,
}

impl Peers {
    /// The stream of a client, which is remembered from now on; none where there are too many. To be given back with
    /// [`Self::leave`].
    pub(crate) fn enter(
        &self,
        id: Id,
        until: u64,
        scope: Option<&str>,
        make: impl FnOnce() -> Option<NewPeer>,
    ) -> Option<Arc<Stream>> {
        let mut inner = self.inner();
        let peer = inner.peer(id, until, scope, make)?;
        peer.reading += 1;
        Some(Arc::clone(&peer.stream))
    }

    pub(crate) fn leave(&self, id: &Id) {
        if let Some(peer) = self.inner().peers.get_mut(id) {
            // It may have said goodbye meanwhile, and come again.
            peer.reading = peer.reading.saturating_sub(1);
            peer.left_at = Instant::now();
        }
    }

    /// Hands a message to what is kept for its client. None where there are too many. What it follows then is looked at
    /// by `follow`.
    pub(crate) fn take(
        &self,
        had: &Had,
        scope: Option<&str>,
        body: Body<'_>,
        keeping: Keeping,
        make: impl FnOnce() -> Option<NewPeer>,
        follow: impl FnOnce(&Connection) -> Option<Following>,
    ) -> Option<Reply> {
        let mut inner = self.inner();
        let peer = inner.peer(had.id, had.until, scope, make)?;
        let most = peer.connection.followed_bytes() + NAME_BYTES_MAX;
        if keeping == Keeping::More && !peer.share.resize(most) {
            return None;
        }
        let mut actions = Vec::new();
        peer.connection.take(body, &mut actions);
        peer.share.resize(peer.connection.followed_bytes());
        // The new before the old, so that nothing is let go in between.
        let following = follow(&peer.connection);
        peer.following = following;
        actions.into_iter().find_map(|action| match action {
            Action::Reply(reply) => Some(reply),
            _ => None,
        })
    }

    pub(crate) fn log_level(&self, id: &Id) -> Option<mcp::Level> {
        self.inner().peers.get(id)?.connection.log_level()
    }

    /// Tells everybody who wants to know.
    pub(crate) fn changed(&self, changed: &Changed, said: impl Fn(&str)) {
        let mut actions = Vec::new();
        for peer in self.inner().peers.values_mut() {
            peer.connection.changed(changed, &mut actions);
            for action in actions.drain(..) {
                if let Action::Notify(text) = action {
                    said(&text);
                    peer.stream.push(text);
                }
            }
        }
    }

    /// Keeps a stream for a client that loses its connection.
    pub(crate) fn keep(&self, id: Id, stream: &Arc<Stream>) {
        self.inner().answering.insert(stream.number(), (id, Arc::clone(stream)));
        if stream.is_over() {
            self.answered(stream);
        }
    }

    /// A stream has been said to its end. It is kept for a while, if it is kept at all.
    pub(crate) fn answered(&self, stream: &Stream) {
        let mut inner = self.inner();
        if !inner.answering.contains_key(&stream.number()) {
            return;
        }
        let (at, number, bytes) = (Instant::now(), stream.number(), stream.bytes());
        inner.answered.push_back(Answered { at, number, bytes });
        inner.answered_bytes += bytes;
        while inner.answered.len() > ANSWERED_MAX || inner.answered_bytes > ANSWERED_BYTES_MAX {
            inner.forget_answered();
        }
    }

    /// The stream with this number, if it is this client's.
    pub(crate) fn answering(&self, id: &Id, number: u64) -> Option<Arc<Stream>> {
        let inner = self.inner();
        let (own, stream) = inner.answering.get(&number)?;
        (own == id).then(|| Arc::clone(stream))
    }

    /// Forgets everything about a client that has said goodbye.
    pub(crate) fn end(&self, id: &Id) {
        let mut inner = self.inner();
        if let Some(peer) = inner.peers.remove(id) {
            peer.stream.end();
        }
        inner.answering.retain(|_, (own, _)| own != id);
    }

    /// Ends all streams that nobody has asked for: their clients come back, to another process.
    pub(crate) fn end_all(&self) {
        for peer in self.inner().peers.values() {
            peer.stream.end();
        }
    }

    pub(crate) fn sweep(&self, now: u64) {
        let mut inner = self.inner();
        inner.peers.retain(|_, peer| {
            let is_needed = peer.reading > 0 || peer.left_at.elapsed() < RESUME_TIME;
            let is_kept = is_needed && peer.until >= now;
            if !is_kept {
                peer.stream.end();
            }
            is_kept
        });
        while inner.answered.front().is_some_and(|answered| answered.at.elapsed() >= RESUME_TIME) {
            inner.forget_answered();
        }
        if inner.peers.capacity() > 4 * inner.peers.len() + 64 {
            inner.peers.shrink_to_fit();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.inner().peers.len()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}

impl Inner {
    /// Who may do something else than before begins anew: what waits was meant for what they were then.
    fn peer(
        &mut self,
        id: Id,
        until: u64,
        scope: Option<&str>,
        make: impl FnOnce() -> Option<NewPeer>,
    ) -> Option<&mut Peer> {
        if self.peers.get(&id).is_some_and(|peer| peer.connection.scope() != scope)
            && let Some(peer) = self.peers.remove(&id)
        {
            peer.stream.end();
        }
        match self.peers.entry(id) {
            Entry::Occupied(peer) => Some(peer.into_mut()),
            Entry::Vacant(vacant) => {
                let NewPeer { connection, stream, place: _place, share } = make()?;
                let left_at = Instant::now();
                let following = None;
                let peer = Peer {
                    connection,
                    following,
                    stream,
                    reading: 0,
                    left_at,
                    until,
                    _place,
                    share,
                };
                Some(vacant.insert(peer))
            }
        }
    }

    fn forget_answered(&mut self) {
        if let Some(Answered { number, bytes, .. }) = self.answered.pop_front() {
            self.answered_bytes -= bytes;
            self.answering.remove(&number);
        }
    }
}
