//! The kernel's sockets, for the applications of the simulator.
//!
//! Theory of operation. A kernel host's thread is inside the host's network namespace, so every socket that it opens is of that host. All sockets
//! are non-blocking and watched, edge-triggered, by one epoll descriptor: an application reads and writes until there is nothing more,
//! and is called when there is more again. That is what a Transom stack's events mean, so the same applications run on both.
//!
//! An application that closes a connection releases it, but the kernel still has to deliver the data in its buffers. To observe that (windows,
//! round-trip times, retransmissions), the descriptor is kept until the kernel's connection has ended. Both directions are shut down, which to
//! the other end is the same as a close.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt,
};
use transom_device::{KernelTcpState, tcp_info};
use transom_sim::network::NodeId;
use transom_sim::traffic::{FlowId, Io, Ledger, ReadResult, Sends};
use transom_sim::{Rng, Streams};
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::{Duration, Instant};

use super::followed::{Followed, state_of};
use super::timers::Timers;
use super::wait::Waiter;

/// Bytes read or written with one system call at most.
const CHUNK: usize = 256 * 1024;
/// The zeros that applications send.
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// The buffer of a socket for datagrams: some hundred milliseconds of a fast stream.
const DATAGRAM_BUFFER: usize = 32 << 20;

/// A connection of the kernel's.
struct Connection {
    socket: Arc<OwnedFd>,
    application: usize,
    local: SocketAddr,
    remote: SocketAddr,
    connected: bool,
    /// The application has let go of it.
    released: bool,
    /// The flow that it sends for.
    flow: Option<FlowId>,
}

/// The kind of a watched descriptor.
enum Entry {
    Connection(Connection),
    Listener {
        socket: OwnedFd,
        application: usize,
    },
    Datagrams {
        socket: OwnedFd,
        port: u16,
        application: Option<usize>,
    },
    /// Readable when another thread needs this one.
    Waker(OwnedFd),
}

/// The event for an application.
#[derive(Clone, Copy, Debug)]
pub(super) enum AppEvent {
    Signal(ConnectionId, Signal),
    Accepted(ConnectionId),
    Datagram(usize),
}

/// A host's sockets.
pub(super) struct KernelSockets {
    node: NodeId,
    address: Ipv4Addr,
    waiter: Waiter,
    /// By the number under which epoll knows them.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    pub(super) timers: Timers,
    /// Connections that send for flows, and the counters of those that have ended.
    pub(super) followed: Followed,
    /// A separate random stream for each application.
    streams: Vec<Rng>,
    scratch: Vec<u8>,
}

impl KernelSockets {
    /// Sockets of the network namespace that the calling thread is in. `waker` wakes the thread up.
    pub(super) fn new(
        node: NodeId,
        address: Ipv4Addr,
        mut streams: Vec<Rng>,
        waker: OwnedFd,
    ) -> io::Result<Self> {
        streams.push(Streams::new(0).rng(0, 0));
        let mut sockets = KernelSockets {
            node,
            address,
            waiter: Waiter::new()?,
            entries: BTreeMap::new(),
            next: 0,
            timers: Timers::default(),
            followed: Followed::default(),
            streams,
            scratch: Vec::with_capacity(CHUNK),
        };
        sockets.watch(Entry::Waker(waker))?;
        Ok(sockets)
    }

    fn watch(&mut self, entry: Entry) -> io::Result<u64> {
        let fd = match &entry {
            Entry::Connection(connection) => connection.socket.as_fd(),
            Entry::Listener { socket, .. }
            | Entry::Datagrams { socket, .. }
            | Entry::Waker(socket) => socket.as_fd(),
        };
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        self.waiter.watch(fd, self.next, flags)?;
        self.entries.insert(self.next, entry);
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Waits until something happens, at most so long.
    pub(super) fn wait(
        &self,
        patience: Duration,
        ready: &mut Vec<(u64, epoll::EventFlags)>,
    ) -> io::Result<()> {
        self.waiter.wait(patience, ready)
    }

    /// Translates an event of a descriptor into events for applications. An application may release a connection in its first call, so
    /// [`KernelSockets::is_held`] must be checked before the next.
    pub(super) fn interpret(
        &mut self,
        number: u64,
        flags: epoll::EventFlags,
    ) -> Vec<(usize, AppEvent)> {
        let mut events = Vec::new();
        match self.entries.get_mut(&number) {
            None | Some(Entry::Waker(_)) => {}
            Some(Entry::Connection(connection)) if connection.released => {
                self.reap(number);
            }
            Some(Entry::Connection(connection)) => {
                let id = ConnectionId::from_u64(number);
                let application = connection.application;
                let mut tell = |signal| events.push((application, AppEvent::Signal(id, signal)));
                let over = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
                if !connection.connected {
                    connection.connected = !over && flags.contains(epoll::EventFlags::OUT);
                    if connection.connected {
                        tell(Signal::Connected);
                    }
                } else if flags.contains(epoll::EventFlags::OUT) && !over {
                    tell(Signal::Writable);
                }
                if connection.connected
                    && flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP)
                {
                    tell(Signal::Readable);
                }
                if over {
                    tell(Signal::Closed);
                }
            }
            Some(Entry::Listener { application, .. }) => {
                let application = *application;
                for id in self.accept(number, application) {
                    events.push((application, AppEvent::Accepted(id)));
                }
            }
            Some(Entry::Datagrams { socket, application, .. }) => {
                // Of what is longer than the buffer the length is told all the same.
                let mut buffer = [0u8; 1];
                while let Ok((_, length)) =
                    rustix::net::recv(&*socket, &mut buffer[..], RecvFlags::TRUNC)
                {
                    if let Some(application) = *application {
                        events.push((application, AppEvent::Datagram(length)));
                    }
                }
            }
        }
        events
    }

    /// Whether an application still has this connection.
    pub(super) fn is_held(&self, id: ConnectionId) -> bool {
        self.connection(id).is_some_and(|one| !one.released)
    }

    fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        match self.entries.get(&id.as_u64()) {
            Some(Entry::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    fn accept(&mut self, number: u64, application: usize) -> Vec<ConnectionId> {
        let mut accepted = Vec::new();
        while let Some(Entry::Listener { socket, .. }) = self.entries.get(&number) {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match rustix::net::accept_with(socket, flags) {
                Ok(socket) => socket,
                // One that was reset before it was accepted; there may be more.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(_) => break,
            };
            let Some((local, remote)) = ends(&socket) else { continue };
            let connection = Connection {
                socket: Arc::new(socket),
                application,
                local,
                remote,
                connected: true,
                released: false,
                flow: None,
            };
            if let Ok(number) = self.watch(Entry::Connection(connection)) {
                accepted.push(ConnectionId::from_u64(number));
            }
        }
        accepted
    }

    /// Closes a released connection once the kernel has finished it.
    fn reap(&mut self, number: u64) {
        let Some(Entry::Connection(connection)) = self.entries.get(&number) else { return };
        if tcp_info(&connection.socket).is_ok_and(|info| info.state() != KernelTcpState::Close) {
            return;
        }
        self.forget(number);
    }

    /// Closes a connection.
    fn forget(&mut self, number: u64) {
        if let Some(Entry::Connection(connection)) = self.entries.remove(&number)
            && let Some(flow) = connection.flow
        {
            self.followed.ends(flow, number, state_of(&connection.socket));
        }
    }

    fn open(&self, kind: SocketType) -> io::Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        Ok(rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?)
    }

    fn begin(&mut self, application: usize, remote: SocketAddr) -> io::Result<u64> {
        let socket = self.open(SocketType::STREAM)?;
        match rustix::net::connect(&socket, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let local = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
        self.watch(Entry::Connection(Connection {
            socket: Arc::new(socket),
            application,
            local,
            remote,
            connected: false,
            released: false,
            flow: None,
        }))
    }

    fn start_listening(&mut self, application: usize, port: u16) -> io::Result<u64> {
        let socket = self.open(SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(self.address, port))?;
        rustix::net::listen(&socket, BACKLOG)?;
        self.watch(Entry::Listener { socket, application })
    }

    /// The socket for datagrams of a port, which is opened when it is needed first.
    fn datagrams(&mut self, port: u16) -> io::Result<&mut Entry> {
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Datagrams { port: one, .. } if *one == port);
        let known = self.entries.iter().find(|(_, entry)| is_it(entry)).map(|(number, _)| *number);
        let number = match known {
            Some(number) => number,
            None => {
                let socket = self.open(SocketType::DGRAM)?;
                // More than the system's limit takes a capability that we have in a namespace of our own; with less, a busy
                // host may lose datagrams.
                if sockopt::set_socket_recv_buffer_size_force(&socket, DATAGRAM_BUFFER).is_err() {
                    let _ = sockopt::set_socket_recv_buffer_size(&socket, DATAGRAM_BUFFER);
                }
                rustix::net::bind(&socket, &SocketAddrV4::new(self.address, port))?;
                self.watch(Entry::Datagrams { socket, port, application: None })?
            }
        };
        self.entries.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Both ends of a connection.
fn ends(socket: &OwnedFd) -> Option<(SocketAddr, SocketAddr)> {
    let local = rustix::net::getsockname(socket).ok()?;
    let remote = rustix::net::getpeername(socket).ok()??;
    Some((local.try_into().ok()?, remote.try_into().ok()?))
}

/// The sockets of a host, for one of its applications.
pub(super) struct KernelIo<'a> {
    pub(super) now: Instant,
    pub(super) sockets: &'a mut KernelSockets,
    pub(super) ledger: &'a mut Ledger,
    pub(super) application: usize,
}

impl Io for KernelIo<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn node(&self) -> NodeId {
        self.sockets.node
    }

    fn rng(&mut self) -> &mut Rng {
        // The last is nobody's, so that there always is one.
        let last = self.sockets.streams.len() - 1;
        &mut self.sockets.streams[self.application.min(last)]
    }

    fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    fn call_at(&mut self, at: Instant) {
        self.sockets.timers.call_at(at, self.application);
    }

    fn connect(&mut self, remote: SocketAddr) -> Option<ConnectionId> {
        self.sockets.begin(self.application, remote).ok().map(ConnectionId::from_u64)
    }

    fn listen(&mut self, port: u16) -> bool {
        self.sockets.start_listening(self.application, port).is_ok()
    }

    fn local_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.sockets.connection(id).map(|one| one.local)
    }

    fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.sockets.connection(id).map(|one| one.remote)
    }

    fn write(&mut self, id: ConnectionId, count: u64) -> u64 {
        let Some(connection) = self.sockets.connection(id) else { return 0 };
        let mut written = 0;
        while written < count {
            let left = usize::try_from(count - written).unwrap_or(usize::MAX).min(CHUNK);
            match rustix::net::send(&connection.socket, &ZEROS[..left], SendFlags::NOSIGNAL) {
                Ok(sent) => written += sent as u64,
                Err(Errno::INTR) => {}
                // No room; or the connection has ended, which is told by itself.
                Err(_) => break,
            }
        }
        written
    }

    fn read(&mut self, id: ConnectionId) -> ReadResult {
        let mut taken = ReadResult::default();
        let KernelSockets { entries, scratch, .. } = &mut *self.sockets;
        let Some(Entry::Connection(connection)) = entries.get(&id.as_u64()) else {
            return ReadResult { over: true, ..taken };
        };
        loop {
            scratch.clear();
            let room = spare_capacity(scratch);
            match rustix::net::recv(&connection.socket, room, RecvFlags::empty()) {
                Ok((0, _)) => return ReadResult { over: true, ..taken },
                Ok((some, _)) => taken.bytes += some as u64,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return taken,
                Err(_) => return ReadResult { over: true, ..taken },
            }
        }
    }

    fn shutdown(&mut self, id: ConnectionId) {
        if let Some(connection) = self.sockets.connection(id) {
            let _ = rustix::net::shutdown(&connection.socket, Shutdown::Write);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        let number = id.as_u64();
        let Some(Entry::Connection(connection)) = self.sockets.entries.get_mut(&number) else {
            return;
        };
        connection.released = true;
        if rustix::net::shutdown(&connection.socket, Shutdown::Both).is_err() {
            // It was not connected, or not any more.
            self.sockets.forget(number);
        } else {
            self.sockets.reap(number);
        }
    }

    fn follow(&mut self, id: ConnectionId, flow: FlowId) {
        let KernelSockets { entries, followed, .. } = &mut *self.sockets;
        if let Some(Entry::Connection(connection)) = entries.get_mut(&id.as_u64()) {
            connection.flow = Some(flow);
            followed.begins(flow, id.as_u64(), Arc::downgrade(&connection.socket));
        }
    }

    // The packets of flows are counted where they enter the network; which they are was said when it was built.

    fn sends(&mut self, _: FlowId, _: Sends) {}

    fn bind(&mut self, port: u16) -> bool {
        let application = self.application;
        match self.sockets.datagrams(port) {
            Ok(Entry::Datagrams { application: owner, .. }) => {
                *owner.get_or_insert(application) == application
            }
            _ => false,
        }
    }

    fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16) {
        if let Ok(Entry::Datagrams { socket, .. }) = self.sockets.datagrams(port) {
            let bytes = ZEROS.get(..payload.into()).unwrap_or_default();
            // Datagrams that the kernel does not take are lost.
            let _ = rustix::net::sendto(socket, bytes, SendFlags::empty(), &remote);
        }
    }
}
