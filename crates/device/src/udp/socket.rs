//! The UDP socket below a tunnel, and what makes its user look at it.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::epoll;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use transom_wire::Ecn;

use crate::{EventFd, socket_option};

/// The receive buffer that we ask for; the kernel may give less.
const BUFFER: usize = 4 << 20;

/// A socket that never fragments, sends and receives many datagrams at once, and can be waited for together with a clock.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Readable when the socket is, when the clock has ticked, and when [`Socket::signal`] says so.
    waiting: OwnedFd,
    signal: EventFd,
    signalled: bool,
    clock: Option<OwnedFd>,
}

/// Datagrams that were received at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) from: SocketAddr,
    /// The bytes of all of them.
    pub(super) len: usize,
    /// The bytes of each but the last.
    pub(super) stride: usize,
    pub(super) ecn: Ecn,
}

fn unbound(address: IpAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

impl Socket {
    /// A socket at `local`, which hears everybody.
    pub(super) fn listening(local: SocketAddr) -> io::Result<Self> {
        let socket = unbound(local.ip())?;
        rustix::net::bind(&socket, &local)?;
        Self::of(socket.into(), None)
    }

    /// A socket that hears nobody but `remote`, and ticks.
    pub(super) fn connected(remote: SocketAddr, tick: Duration) -> io::Result<Self> {
        let socket = unbound(remote.ip())?;
        rustix::net::connect(&socket, &remote)?;
        Self::of(socket.into(), Some(tick))
    }

    fn of(socket: UdpSocket, tick: Option<Duration>) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The crate would have the kernel forget what it knows of the path; we have no other source.
        if socket.local_addr()?.is_ipv4() {
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?;
        } else {
            sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO)?;
        }
        socket_option::set_receive_buffer(&socket, BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        let signal = EventFd::new()?;
        let clock = tick.map(ticking).transpose()?;
        let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for fd in [Some(socket.as_fd()), Some(signal.as_fd()), clock.as_ref().map(AsFd::as_fd)] {
            let Some(fd) = fd else { continue };
            epoll::add(&waiting, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Socket { socket, state, waiting, signal, signalled: false, clock })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends datagrams of `segment` bytes each (the last may be shorter), or one.
    pub(super) fn send(
        &self,
        to: SocketAddr,
        contents: &[u8],
        segment: Option<usize>,
        ecn: Ecn,
    ) -> io::Result<()> {
        let ecn = EcnCodepoint::from_bits(ecn.bits());
        let transmit =
            Transmit { destination: to, ecn, contents, segment_size: segment, src_ip: None };
        self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// How many datagrams may be sent at once.
    pub(super) fn most_at_once(&self) -> usize {
        self.state.max_gso_segments().clamp(1, 64)
    }

    /// Receives into `buffer`.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Arrived> {
        let mut meta = [RecvMeta::default()];
        let socket = UdpSockRef::from(&self.socket);
        self.state.recv(socket, &mut [IoSliceMut::new(buffer)], &mut meta)?;
        let [RecvMeta { addr, len, stride, ecn, .. }] = meta;
        let ecn = ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_traffic_class(ecn as u8));
        Ok(Arrived { from: addr, len, stride: stride.max(1), ecn })
    }

    /// Whether there is something besides datagrams that its user should look at.
    pub(super) fn signal(&mut self, there_is: bool) {
        if self.signalled == there_is {
            return;
        }
        self.signalled = there_is;
        if there_is {
            self.signal.signal();
        } else {
            self.signal.reset();
        }
    }

    /// Takes the ticks of the clock, so that it is waited for again.
    pub(super) fn take_tick(&self) {
        if let Some(clock) = &self.clock {
            let _ = rustix::io::read(clock, &mut [0; 8]);
        }
    }

    /// Waits for datagrams for so long.
    pub(super) fn wait(&self, patience: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        let patience = Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The descriptor to wait on.
    pub(super) fn waiting(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

fn ticking(tick: Duration) -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let clock = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let tick = Timespec::try_from(tick).map_err(|_| io::ErrorKind::InvalidInput)?;
    let timer = Itimerspec { it_interval: tick, it_value: tick };
    timerfd_settime(&clock, TimerfdTimerFlags::empty(), &timer)?;
    Ok(clock)
}

/// The longest IP packet that the kernel believes the path to `remote` takes: the MTU of the route's interface, or what routers have said since.
pub(super) fn path_mtu(remote: SocketAddr) -> io::Result<usize> {
    // A socket of its own, since the kernel tells it of connected sockets only. Nothing is sent.
    let socket = unbound(remote.ip())?;
    rustix::net::connect(&socket, &remote)?;
    let mtu = match remote {
        SocketAddr::V4(_) => sockopt::ip_mtu(&socket)?,
        SocketAddr::V6(_) => sockopt::ipv6_mtu(&socket)?,
    };
    Ok(usize::try_from(mtu).unwrap_or(usize::MAX))
}

/// Bytes of IP and UDP header in front of a datagram's contents.
pub(super) fn outer_headers(remote: IpAddr) -> usize {
    if remote.is_ipv4() { 20 + 8 } else { 40 + 8 }
}
