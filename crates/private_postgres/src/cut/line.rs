//! One direction of one connection: reads, waits for as long as the flow says, and writes.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Flow, Shared, State, Towards};

/// What is taken at once.
const CHUNK: usize = 16 * 1024;
/// How long the server may take to let us in.
const CONNECTING: Duration = Duration::from_secs(10);

/// Begins a thread that carries what comes from `source`. `state` is the one of `shared`, held.
pub(super) fn carry(
    shared: &Arc<Shared>,
    state: &mut State,
    number: u64,
    towards: Towards,
    source: TcpStream,
) {
    let ours = Arc::clone(shared);
    let begun = std::thread::Builder::new().name("cut".to_owned()).spawn(move || {
        // One that was closed meanwhile, or whose server is not there, has nowhere to go.
        if let Some(target) = ours.target(number, towards) {
            ours.pump(number, towards, source, target.as_ref());
        }
        ours.end(number);
    });
    match begun {
        Ok(_) => state.threads += 1,
        Err(_) => drop(state.connections.remove(&number)),
    }
}

enum Passage {
    Free,
    /// The bytes are lost.
    Lost,
    Closed,
}

impl Shared {
    /// Where bytes go, which is nowhere on a line that was dead from the start. The first to ask reaches the server and
    /// begins the way back. Nothing where it was closed or the server cannot be reached.
    fn target(self: &Arc<Self>, number: u64, towards: Towards) -> Option<Option<TcpStream>> {
        if towards == Towards::Client {
            return Some(Some(self.lock().connections.get(&number)?.client.try_clone().ok()?));
        }
        if self.lock().connections.get(&number)?.is_lost == [true; 2] {
            return Some(None);
        }
        // Not under the lock: it may take its time.
        let server = TcpStream::connect_timeout(&self.target, CONNECTING);
        let mut state = self.lock();
        let connection = state.connections.get_mut(&number)?;
        let (Ok(server), Ok(client)) = (server, connection.client.try_clone()) else {
            let _ = connection.client.shutdown(Shutdown::Both);
            return None;
        };
        // What is small goes out at once; we are not there to be noticed.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        let (target, source) = (server.try_clone().ok()?, server.try_clone().ok()?);
        connection.server = Some(server);
        connection.running += 1;
        carry(self, &mut state, number, Towards::Client, source);
        Some(Some(target))
    }

    /// Until one side has ended and the other was told, or may never know.
    fn pump(
        &self,
        number: u64,
        towards: Towards,
        mut source: TcpStream,
        target: Option<&TcpStream>,
    ) {
        let mut buffer = [0; CHUNK];
        loop {
            let read = loop {
                match source.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            match (self.passage(number, towards), target) {
                (Passage::Closed, _) => return,
                (Passage::Lost, _) | (Passage::Free, None) if matches!(read, Ok(1..)) => {}
                (Passage::Lost, _) | (Passage::Free, None) => return,
                (Passage::Free, Some(mut target)) => match read {
                    Ok(0) => {
                        let _ = target.shutdown(Shutdown::Write);
                        return;
                    }
                    Ok(count) if target.write_all(&buffer[..count]).is_ok() => {}
                    // A side that was torn down is no half of anything.
                    Ok(_) | Err(_) => {
                        let _ = source.shutdown(Shutdown::Both);
                        let _ = target.shutdown(Shutdown::Both);
                        return;
                    }
                },
            }
        }
    }

    /// Waits until what has just arrived may go on.
    fn passage(&self, number: u64, towards: Towards) -> Passage {
        let arrived = Instant::now();
        let mut state = self.lock();
        loop {
            let Some(connection) = state.connections.get(&number) else { return Passage::Closed };
            if connection.is_lost[towards as usize] {
                return Passage::Lost;
            }
            let rest = match state.flows[towards as usize] {
                // Under the last one every connection is lost, and was looked at above.
                Flow::Pass | Flow::Swallow => return Passage::Free,
                Flow::Delay(delay) => match delay.checked_sub(arrived.elapsed()) {
                    None | Some(Duration::ZERO) => return Passage::Free,
                    rest => rest,
                },
                Flow::Hold => None,
            };
            match rest {
                None => self.changed.wait(&mut state),
                Some(rest) => drop(self.changed.wait_for(&mut state, rest)),
            }
        }
    }

    /// A connection that lost something stays: for the side that has not ended it is still there.
    fn end(&self, number: u64) {
        let mut state = self.lock();
        if let Some(connection) = state.connections.get_mut(&number) {
            connection.running -= 1;
            if connection.running == 0 && connection.is_lost == [false; 2] {
                state.connections.remove(&number);
            }
        }
        state.threads -= 1;
        self.changed.notify_all();
    }
}
