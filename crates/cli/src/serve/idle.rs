//! The connections with threads of their own that can be ended for another, when there is no place: who waits for a request, and who does not take a
//! response.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::pace::STALLED;
use crate::socket::Socket;
use crate::thread::lock;

/// Those that wait, in the order in which they began to.
#[derive(Default)]
pub(super) struct Idle(Mutex<State>);

#[derive(Default)]
struct State {
    serial: u64,
    reading: BTreeMap<u64, Arc<Socket>>,
    writing: BTreeMap<u64, (Arc<Socket>, Instant)>,
}

/// A connection that waits, until this is dropped.
pub(super) struct Waiting<'a> {
    idle: &'a Idle,
    number: u64,
}

impl Idle {
    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut lock(&self.0))
    }

    fn begin(&self, insert: impl FnOnce(&mut State, u64)) -> Waiting<'_> {
        let number = self.with(|state| {
            state.serial += 1;
            let number = state.serial;
            insert(state, number);
            number
        });
        Waiting { idle: self, number }
    }

    /// A connection waits for a request from now on.
    pub(super) fn begin_to_read(&self, socket: &Arc<Socket>) -> Waiting<'_> {
        self.begin(|state, number| drop(state.reading.insert(number, Arc::clone(socket))))
    }

    /// A connection has a piece for its client from `now` on.
    pub(super) fn begin_to_write(&self, socket: &Arc<Socket>, now: Instant) -> Waiting<'_> {
        self.begin(|state, number| drop(state.writing.insert(number, (Arc::clone(socket), now))))
    }

    /// Ends the connection that has waited longest for a request, as it loses nothing; or else the one that has stalled for longest.
    pub(super) fn end_oldest(&self, now: Instant) {
        let oldest = self.with(|state| {
            let reading = state.reading.pop_first().map(|(_, socket)| socket);
            let has_stalled = |began: Instant| now.saturating_duration_since(began) >= STALLED;
            reading.or_else(|| {
                let writing = state.writing.first_entry().filter(|one| has_stalled(one.get().1))?;
                Some(writing.remove().0)
            })
        });
        if let Some(socket) = oldest {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.idle.with(|state| {
            state.reading.remove(&self.number);
            state.writing.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    /// Connections, and their clients, which see the end.
    fn connections<const N: usize>() -> ([Arc<Socket>; N], [TcpStream; N]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let clients = [(); N].map(|()| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.set_nonblocking(true).unwrap();
            client
        });
        let sockets = [(); N].map(|()| Arc::new(Socket::Kernel(listener.accept().unwrap().0)));
        (sockets, clients)
    }

    fn have_ended<const N: usize>(clients: &mut [TcpStream; N]) -> [bool; N] {
        // Over the loopback interface the end is there when shutdown(2) returns.
        clients.each_mut().map(|client| matches!(client.read(&mut [0]), Ok(0)))
    }

    #[test]
    fn waiting_clients_go_first_and_stalled_ones_next() {
        let (sockets, mut clients) = connections::<4>();
        let (idle, now) = (Idle::default(), Instant::now());
        let _stalled = idle.begin_to_write(&sockets[0], now);
        let _slow = idle.begin_to_write(&sockets[1], now + Duration::from_secs(1));
        let _first = idle.begin_to_read(&sockets[2]);
        drop(idle.begin_to_read(&sockets[3]));
        let mut ended_at = |after: Duration| {
            idle.end_oldest(now + after);
            have_ended(&mut clients)
        };
        assert_eq!(ended_at(Duration::ZERO), [false, false, true, false]);
        let nearly = STALLED - Duration::from_nanos(1);
        assert_eq!(ended_at(nearly), [false, false, true, false], "nobody has stalled yet");
        assert_eq!(ended_at(STALLED), [true, false, true, false]);
        assert_eq!(ended_at(STALLED), [true, false, true, false], "the next is not late yet");
        assert_eq!(ended_at(2 * STALLED), [true, true, true, false]);
        // Who has had its answer since cannot be ended.
        assert_eq!(ended_at(3 * STALLED), [true, true, true, false]);
    }
}
