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
use transom_device::serving::{AfterAccept, UnixName, after_accept};
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
    name: UnixName,
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
        let socket = ExtensionSocket { hub: Arc::clone(&hub), name };
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

    /// The path of its socket.
    pub fn path(&self) -> &Path {
        self.name.path()
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

/// A connection with a peer.
struct Attached {
    observer: Observer,
    number: u32,
    local: SocketAddr,
    remote: SocketAddr,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: Arc<Self>, listener: &UnixListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(_) if self.lock().closed => return,
                Err(error) => match after_accept(&error) {
                    AfterAccept::Next => continue,
                    AfterAccept::Wait(pause) => {
                        std::thread::sleep(pause);
                        continue;
                    }
                    AfterAccept::End => return,
                },
            };
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
    ) -> Result<(u32, Vec<serde_json::Value>), &'static str> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err("no connection is offered any more");
            }
            if state.offers != offers {
                let fresh = state.offers.wrapping_sub(offers);
                let is_new = |offered: &&Offered| offered.number.wrapping_sub(offers) < fresh;
                let offered = state.offered.iter().filter(is_new).map(Offered::described);
                return Ok((state.offers, offered.collect()));
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !present() {
                return Err("gone");
            }
        }
    }

    /// Attaches a peer to a connection, or to the latest offer that accepts it; waits for one, if there is none. `present` returns whether the
    /// peer is still connected.
    fn attach(
        &self,
        connection: Option<u32>,
        options: &ObserverOptions,
        present: impl Fn() -> bool,
    ) -> Result<Attached, String> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err("no connection is offered any more".into());
            }
            let mut refusal = None;
            let mut gone = Vec::new();
            for offered in state.offered.iter().rev() {
                if connection.is_some_and(|number| number != offered.number) {
                    continue;
                }
                let &Offered { number, local, remote, .. } = offered;
                match offered.observable.observer(options.clone()) {
                    Ok(observer) => return Ok(Attached { observer, number, local, remote }),
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => gone.push(number),
                    Err(error) => refusal = Some(error.to_string()),
                }
            }
            state.offered.retain(|offered| !gone.contains(&offered.number));
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            if let Some(number) = connection {
                return Err(format!("there is no connection {number}"));
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !present() {
                return Err("gone".into());
            }
        }
    }
}
