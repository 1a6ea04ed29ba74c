//! Allocation of ports: by the stack from its own range, or by the kernel, whose address the stack shares.
//!
//! On a shared address the kernel says which ports are free. To reserve one, a program binds an ordinary kernel socket to it and never listens on it.
//! As long as that socket is open, the kernel gives the port to no other socket, and its rules hold: `EADDRINUSE`, `EACCES` for privileged ports,
//! `SO_REUSEPORT`, and the range of ephemeral ports. The socket stays open until the last connection at the port has gone, TIME-WAIT included.
//!
//! The socket does not have `SO_REUSEADDR`: since it never listens, another program with that option could listen at the same port. So a port at which
//! the kernel's own TCP still has connections in TIME-WAIT cannot be had.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, ipproto, sockopt};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_stack::BoundPortChange;
use transom_stack::mapped::Bound;

/// The source of free ports.
#[derive(Clone, Debug, Default)]
pub enum PortSource {
    /// The stack: its addresses are nobody else's.
    #[default]
    Own,
    /// The kernel, which has the same addresses.
    Kernel(KernelPorts),
}

/// Ports reserved by sockets of the kernel's that are bound and never listen.
///
/// Each takes a descriptor of the process. They are opened in the network namespace of the thread that connects or listens.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KernelPorts {
    /// They are bound with `SO_REUSEPORT`: other sockets of the same user that have the option too may be bound to the same port.
    pub reuse_port: bool,
    /// Is told of each port, and sees to it that its packets come to this stack.
    pub registrar: Option<Arc<dyn PortRegistrar>>,
}

transom_tcp::setters! {
    KernelPorts:
    with_reuse_port = reuse_port: bool,
    with_registrar = registrar: Option<Arc<dyn PortRegistrar>>,
}

/// Directs packets to the stack that owns their port.
pub trait PortRegistrar: std::fmt::Debug + Send + Sync {
    /// Directs packets for a port to the stack. `socket` is bound to `address`, which may be the unspecified one. The caller waits for the answer.
    ///
    /// # Errors
    /// Any error. The caller that asked for the port gets it.
    fn add(&self, socket: &OwnedFd, address: SocketAddr) -> io::Result<()>;

    /// The stack has no connections at `address` any more. Called while the stack is locked: it must not wait.
    fn remove(&self, address: SocketAddr);

    /// Waits until ports that were removed are free, if that takes a while. Called before a port that is in use is tried once more.
    fn settle(&self) {}
}

/// A socket of the kernel's that keeps a port.
#[derive(Debug)]
struct Held {
    /// Closing it frees the port.
    _socket: OwnedFd,
    address: SocketAddr,
    /// Whether the kernel chose the port.
    ephemeral: bool,
    /// Listeners and places of connections that need it, and those who are about to.
    users: usize,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<u64, Held>,
    next: u64,
    /// The addresses with connections, with the key of the port's reservation, and the number of shards.
    places: HashMap<SocketAddr, (u64, usize)>,
}

/// The ports that a host has from the kernel.
#[derive(Debug)]
pub(crate) struct Ports {
    source: KernelPorts,
    state: Mutex<State>,
}

/// The promise that a port stays ours while this exists.
#[derive(Debug)]
pub(crate) struct Reservation {
    ports: Arc<Ports>,
    key: u64,
    address: SocketAddr,
}

impl Reservation {
    /// The address and the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ports.let_go(self.key);
    }
}

impl Ports {
    pub(crate) fn new(source: KernelPorts) -> Arc<Self> {
        Arc::new(Ports { source, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the port at `bound`, or any if it is 0. A port that this host keeps already, for connections that are left of a listener, is shared.
    pub(crate) fn reserve(self: &Arc<Self>, bound: &Bound) -> io::Result<Reservation> {
        if bound.address.port() != 0
            && let Some(reservation) = self.again(|held| held.address == bound.address)
        {
            return Ok(reservation);
        }
        // Not under the lock: this may take a while.
        let bind = || bound_socket(bound, self.source.reuse_port);
        let (socket, address) = match (bind(), &self.source.registrar) {
            (Err(error), Some(registrar)) if error.kind() == io::ErrorKind::AddrInUse => {
                registrar.settle();
                bind()?
            }
            (outcome, _) => outcome?,
        };
        if let Some(registrar) = &self.source.registrar {
            registrar.add(&socket, address)?;
        }
        let mut state = self.state();
        let key = state.next;
        state.next += 1;
        let ephemeral = bound.address.port() == 0;
        state.held.insert(key, Held { _socket: socket, address, ephemeral, users: 1 });
        drop(state);
        Ok(Reservation { ports: Arc::clone(self), key, address })
    }

    /// Ports of `place`'s address that the kernel chose for connections elsewhere. One of them may serve another connection, to another place: what
    /// connect(2) does when no port is free.
    pub(crate) fn ephemeral(&self, bound: &Bound) -> Vec<SocketAddr> {
        let ip = bound.address.ip();
        let state = self.state();
        let ours = state.held.values().filter(|held| held.ephemeral && held.address.ip() == ip);
        ours.map(|held| held.address).collect()
    }

    /// One more user for a port that is held.
    fn again(self: &Arc<Self>, is_it: impl Fn(&Held) -> bool) -> Option<Reservation> {
        let mut state = self.state();
        let (&key, held) = state.held.iter_mut().find(|(_, held)| is_it(held))?;
        held.users += 1;
        Some(Reservation { ports: Arc::clone(self), key, address: held.address })
    }

    /// A shard has its first connection at a place, or has had its last.
    pub(crate) fn on_change(&self, change: BoundPortChange) {
        let mut state = self.state();
        match change {
            BoundPortChange::Taken(place) => {
                if let Some((_, shards)) = state.places.get_mut(&place) {
                    *shards += 1;
                } else if let Some(key) = state.keeper(place) {
                    state.places.insert(place, (key, 1));
                    if let Some(held) = state.held.get_mut(&key) {
                        held.users += 1;
                    }
                }
            }
            BoundPortChange::Freed(place) => {
                let Some((key, shards)) = state.places.get_mut(&place) else { return };
                *shards -= 1;
                if *shards == 0 {
                    let key = *key;
                    state.places.remove(&place);
                    drop(state);
                    self.let_go(key);
                }
            }
        }
    }

    /// One user less; after the last the port is free.
    fn let_go(&self, key: u64) {
        let mut state = self.state();
        let Some(held) = state.held.get_mut(&key) else { return };
        held.users -= 1;
        if held.users > 0 {
            return;
        }
        let Some(held) = state.held.remove(&key) else { return };
        // Nobody is to be sent packets for a port that may be another's at once.
        if let Some(registrar) = &self.source.registrar {
            registrar.remove(held.address);
        }
        // The socket closes under the lock, so a thread that asks for the port finds it held or free.
        drop(held);
        drop(state);
    }
}

impl State {
    /// The reservation that covers a connection at `place`: an exact address before an unspecified one.
    fn keeper(&self, place: SocketAddr) -> Option<u64> {
        let keeps = |held: &Held| {
            let ip = held.address.ip();
            let same = ip == place.ip();
            // [::] may keep IPv4 connections too.
            let any = ip.is_unspecified() && (ip.is_ipv6() || place.is_ipv4());
            (held.address.port() == place.port() && (same || any)).then_some(same)
        };
        let keepers = self.held.iter().filter_map(|(&key, held)| Some((keeps(held)?, key)));
        keepers.max().map(|(_, key)| key)
    }
}

/// A socket of the kernel's at `bound`, and where it came to be.
fn bound_socket(bound: &Bound, reuse_port: bool) -> io::Result<(OwnedFd, SocketAddr)> {
    let address = bound.address;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(ipproto::TCP);
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, protocol)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, !bound.is_dual)?;
    }
    sockopt::set_socket_reuseport(&socket, reuse_port)?;
    bind(&socket, &address)?;
    let got = SocketAddr::try_from(getsockname(&socket)?).map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((socket, got))
}
