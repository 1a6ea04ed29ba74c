//! The socket, its peers, and the connections that are offered to them.

mod peer;
mod rate;

use crate::protocol::json;
use rate::Rate;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_device::serving::{UnixName, accept_next};
use transom_net::{Observable, Observer, ObserverOptions, TcpStream};

/// The most peers at a time; each has two threads.
const MOST_PEERS: usize = 256;
/// The most commands of all peers together in a second, and at once.
const RATE_OF_ALL: (u32, u32) = (2000, 200);

/// A peer that leaves wakes no thread that waits for an offer. So these threads check at this interval.
const LOOK: Duration = Duration::from_millis(200);

/// A Unix socket at which extensions of other processes are taken. Dropping it detaches them, and removes its path.
///
/// A user with write access to the path may slow down the offered connections, and see everything of them except their bytes. Put it where only
/// trusted users have access.
#[derive(Debug)]
pub struct ExtensionSocket {
    hub: Arc<Hub>,
    _name: UnixName,
}

/// A connection that is offered for as long as this value or the connection lives. Attached peers stay.
#[derive(Debug)]
pub struct Offer {
    hub: Arc<Hub>,
    number: u32,
    kept: bool,
}

#[derive(Debug)]
struct Offered {
    number: u32,
    observable: Observable,
    local: SocketAddr,
    remote: SocketAddr,
}

impl Offered {
    /// In the form for a peer.
    fn described(&self) -> serde_json::Value {
        json::connection(self.number, self.local, self.remote)
    }
}

#[derive(Debug, Default)]
struct State {
    offered: Vec<Offered>,
    /// How many offers there have been.
    offers: u32,
    /// The present peers, to disconnect them at the end.
    peers: Vec<(u64, UnixStream)>,
    visits: u64,
    closed: bool,
}

#[derive(Debug)]
struct Hub {
    state: Mutex<State>,
    /// Something is offered, or nothing will be any more.
    changed: Condvar,
    /// Of the commands of all peers.
    rate: Rate,
}

impl ExtensionSocket {
    /// Listens at `path`. A socket that a crashed process has left there is replaced, and nothing else.
    ///
    /// # Errors
    /// The operating system's: [`io::ErrorKind::AddrInUse`] if another process listens at the path, or the file is not a socket.
    pub fn listen(path: impl AsRef<Path>) -> io::Result<Self> {
        let name = UnixName::listen(path)?;
        let listener = name.listener().try_clone()?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let hub = Arc::new(Hub { state, changed, rate: Rate::new(RATE_OF_ALL.0, RATE_OF_ALL.1) });
        let socket = ExtensionSocket { hub: Arc::clone(&hub), _name: name };
        let work = move || hub.run(&listener);
        std::thread::Builder::new().name("transom-remote".into()).spawn(work)?;
        Ok(socket)
    }

    /// Offers a connection to peers.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if it is gone.
    pub fn offer(&self, stream: &TcpStream) -> io::Result<Offer> {
        let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
        let mut state = self.hub.lock();
        let number = state.offers;
        state.offers = state.offers.wrapping_add(1);
        // Now and then, so that a server does not remember every connection it ever had.
        if state.offered.len() == state.offered.capacity() {
            state.offered.retain(|offered| offered.observable.exists());
        }
        state.offered.push(Offered { number, observable: stream.observable(), local, remote });
        drop(state);
        self.hub.changed.notify_all();
        Ok(Offer { hub: Arc::clone(&self.hub), number, kept: false })
    }
}

impl Drop for ExtensionSocket {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.closed = true;
        // They find their sockets closed; whoever is gone already does not mind.
        state.peers.drain(..).for_each(|(_, peer)| drop(peer.shutdown(Shutdown::Both)));
        drop(state);
        self.hub.changed.notify_all();
        // The name is dropped next, which ends the thread that waits for somebody to come.
    }
}

impl Offer {
    /// Keeps the offer for as long as the connection lives.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.hub.lock().offered.retain(|offered| offered.number != self.number);
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: Arc<Self>, listener: &UnixListener) {
        loop {
            // A socket that was shut down takes nobody any more.
            let Ok((stream, _)) = accept_next(|| listener.accept()) else { return };
            let Some(visit) = self.admit(&stream) else {
                if self.lock().closed {
                    return;
                }
                peer::reject(stream, "there are too many extensions already");
                continue;
            };
            let hub = Arc::clone(&self);
            let attend = move || {
                peer::attend(&hub, stream);
                hub.lock().peers.retain(|(other, _)| *other != visit);
            };
            // Without a thread the stream is dropped, which the peer sees.
            if std::thread::Builder::new().name("transom-peer".into()).spawn(attend).is_err() {
                self.lock().peers.retain(|(other, _)| *other != visit);
            }
        }
    }

    /// The number of a new peer, if it is admitted.
    fn admit(&self, stream: &UnixStream) -> Option<u64> {
        let mut state = self.lock();
        if state.closed || state.peers.len() >= MOST_PEERS {
            return None;
        }
        let visit = state.visits;
        state.visits += 1;
        state.peers.push((visit, stream.try_clone().ok()?));
        Some(visit)
    }

    /// How many offers there have been, and the present ones in the form for a peer.
    fn offered(&self) -> (u32, Vec<serde_json::Value>) {
        let state = self.lock();
        (state.offers, state.offered.iter().map(Offered::described).collect())
    }

    /// The same for those that came after the first `offers`; waits for one. `present` returns whether the peer is still connected.
    fn offered_since(
        &self,
        offers: u32,
        present: impl Fn() -> bool,
    ) -> Result<(u32, Vec<serde_json::Value>), String> {
        self.wait_for(present, |state| {
            let fresh = state.offers.wrapping_sub(offers);
            let is_new = |offered: &&Offered| offered.number.wrapping_sub(offers) < fresh;
            let offered = state.offered.iter().filter(is_new).map(Offered::described);
            (fresh > 0).then(|| Ok((state.offers, offered.collect())))
        })
    }

    /// Looks at the state until `look` finds something. `present` returns whether the peer is still connected.
    fn wait_for<T>(
        &self,
        present: impl Fn() -> bool,
        mut look: impl FnMut(&mut State) -> Option<Result<T, String>>,
    ) -> Result<T, String> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err("no connection is offered any more".into());
            }
            if let Some(found) = look(&mut state) {
                return found;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !present() {
                return Err("gone".into());
            }
        }
    }

    /// Attaches a peer to a connection, or to the latest offer that accepts it; waits for one, if there is none. Gives the observer, and the connection in
    /// the form for a peer. `present` returns whether the peer is still connected.
    fn attach(
        &self,
        connection: Option<u32>,
        options: &ObserverOptions,
        present: impl Fn() -> bool,
    ) -> Result<(Observer, serde_json::Value), String> {
        self.wait_for(present, |state| {
            let mut refusal = None;
            let mut gone = Vec::new();
            let is_meant =
                |offered: &&Offered| connection.is_none_or(|number| number == offered.number);
            for offered in state.offered.iter().rev().filter(is_meant) {
                match offered.observable.observer(options.clone()) {
                    Ok(observer) => return Some(Ok((observer, offered.described()))),
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                        gone.push(offered.number);
                    }
                    Err(error) => refusal = Some(error.to_string()),
                }
            }
            state.offered.retain(|offered| !gone.contains(&offered.number));
            let missing = connection.map(|number| format!("there is no connection {number}"));
            refusal.or(missing).map(Err)
        })
    }
}
