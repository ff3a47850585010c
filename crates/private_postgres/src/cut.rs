//! A line to a server that can be slowed down, held up and cut while connections are on it. It listens on the loopback
//! and passes on to one address; each direction of each connection has a thread (`cut/line.rs`).

mod line;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// More than any server of ours opens. Those beyond are closed at once.
const CONNECTIONS: usize = 1024;
/// After an accept that failed, which is so for want of descriptors, and lasts.
const RECOVERY: Duration = Duration::from_millis(10);
const WAKING: Duration = Duration::from_secs(5);

/// What happens to bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Pass,
    /// They arrive that much later.
    Delay(Duration),
    /// They wait, and the end of a stream with them, until the flow is another one. A network that heals.
    Hold,
    /// They are lost, and the ends of streams with them, so that nobody hears anything, and the other side stays open.
    /// A connection that was or is opened under this stays dead for ever: no network delivers a stream with a hole.
    Swallow,
}

/// Where bytes are going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    Server,
    Client,
}

/// Connections end when this is dropped, and so do the threads.
pub struct Cut {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Cut {
    /// A line to `target`, on which everything passes for now.
    pub fn before(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = State {
            flows: [Flow::Pass; 2],
            refuses: false,
            has_ended: false,
            connections: HashMap::new(),
            accepted: 0,
            threads: 0,
        };
        let shared = Arc::new(Shared { target, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new().name("cut".to_owned());
        let acceptor = acceptor.spawn(move || accept(&listener, &accepting))?;
        Ok(Self { shared, address, acceptor: Some(acceptor) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, in both directions; new connections are let in.
    pub fn set(&self, flow: Flow) {
        let mut state = self.shared.lock();
        state.refuses = false;
        state.set(Towards::Server, flow);
        state.set(Towards::Client, flow);
        self.shared.changed.notify_all();
    }

    /// From now on, in one direction.
    pub fn set_towards(&self, towards: Towards, flow: Flow) {
        self.shared.lock().set(towards, flow);
        self.shared.changed.notify_all();
    }

    /// Closes every connection at once, on both sides, and each new one as it comes, until [`Self::set`].
    pub fn refuse(&self) {
        let mut state = self.shared.lock();
        state.refuses = true;
        state.close();
        self.shared.changed.notify_all();
    }

    /// Ends one direction of every connection that is there: nothing more goes there, and that side is told so. What was
    /// taken in before is passed on first.
    pub fn half_close(&self, towards: Towards) {
        let state = self.shared.lock();
        for connection in state.connections.values() {
            // The thread that reads there sees the end, and passes it on.
            let source = match towards {
                Towards::Server => Some(&connection.client),
                Towards::Client => connection.server.as_ref(),
            };
            let _ = source.map(|source| source.shutdown(Shutdown::Read));
        }
    }

    /// How many connections have come so far, with those that were closed at once.
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.has_ended = true;
            state.close();
            self.shared.changed.notify_all();
        }
        // Somebody who comes is what the acceptor waits for.
        let _ = TcpStream::connect_timeout(&self.address, WAKING);
        let _ = self.acceptor.take().map(JoinHandle::join);
        let mut state = self.shared.lock();
        while state.threads > 0 {
            self.shared.changed.wait(&mut state);
        }
    }
}

struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
    /// The flow is another one, a connection was closed, or a thread has ended.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

struct State {
    /// By where the bytes go.
    flows: [Flow; 2],
    refuses: bool,
    has_ended: bool,
    /// By the number that it came as.
    connections: HashMap<u64, Connection>,
    accepted: u64,
    threads: usize,
}

struct Connection {
    client: TcpStream,
    /// Once it is reached, which is never tried where nothing would be said to it.
    server: Option<TcpStream>,
    /// By where the bytes go.
    is_lost: [bool; 2],
    /// Directions that have not ended.
    running: usize,
}

impl State {
    fn set(&mut self, towards: Towards, flow: Flow) {
        self.flows[towards as usize] = flow;
        if flow == Flow::Swallow {
            for connection in self.connections.values_mut() {
                connection.is_lost[towards as usize] = true;
            }
        }
    }

    fn close(&mut self) {
        for (_, connection) in self.connections.drain() {
            let _ = connection.client.shutdown(Shutdown::Both);
            let _ = connection.server.map(|server| server.shutdown(Shutdown::Both));
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let mut state = shared.lock();
        if state.has_ended {
            return;
        }
        let Ok(client) = client else {
            drop(state);
            std::thread::sleep(RECOVERY);
            continue;
        };
        state.accepted += 1;
        // One that is let go of is closed.
        if state.refuses || state.connections.len() >= CONNECTIONS {
            continue;
        }
        let Ok(ours) = client.try_clone() else { continue };
        let number = state.accepted;
        let is_lost = state.flows.map(|flow| flow == Flow::Swallow);
        let connection = Connection { client, server: None, is_lost, running: 1 };
        state.connections.insert(number, connection);
        line::carry(shared, &mut state, number, Towards::Server, ours);
    }
}
