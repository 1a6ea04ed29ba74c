//! TCP in UDP: a tunnel between Transoms that takes no privileges at all.
//!
//! One end listens, any number of others connect to it. Each is let in once it has shown that it
//! receives what is sent to its address, and gets an address of the inner network, in which the listener has the first. Whole IP packets cross,
//! one in a datagram. docs/devices.md has the format and the rules; no standard describes them.
//!
//! The device offers segmentation offload with the kernel's help. A super-segment is divided into datagrams that leave in one system call
//! (UDP_SEGMENT). Consecutive arrivals are joined again (UDP_GRO). The checksum of a packet is left to UDP's.
//!
//! Datagrams are never fragmented. When the path takes less than a packet has, the stack is told as by a router, so its discovery of the path MTU
//! works as on any path. Congestion is passed through: the ECN field is copied out and in (RFC 6040).
//!
//! There is no encryption and no authentication: it is as safe as TCP without TLS.

mod coalesce;
mod cookie;
mod datagram;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod joined;
mod peers;
mod pool;
mod socket;
#[cfg(test)]
mod tests;
mod too_big;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxChecksum, RxOffload, Segmenter, TxChecksum};
use transom_wire::{Ecn, ip};

use crate::interface::IpPrefix;
use crate::link::destination;
use crate::open::with_causes;
use crate::{Capabilities, Device, RxPacket, SendError, TxPacket};
use datagram::{Addresses, CHECKSUM_COVERED, HEADER_LEN, Header, Verdict, Welcome, kind};
use joined::Joined;
use peers::Peers;
use pool::Networks;
use socket::{Arrived, Socket, outer_headers, path_mtu};

pub(crate) use error::UdpError;

/// The longest UDP datagram over IPv4, in bytes of contents.
const LONGEST_DATAGRAM: usize = 65_507;
/// The longest super-segment: so many bytes of segments of an Ethernet, with their headers, go out at once.
const LONGEST_SUPER_SEGMENT: usize = 61_440;
/// The MTU that a listener assumes for its interface by default.
const USUAL_MTU: usize = 1500;
const LOOPBACK_MTU: usize = 65_536;
/// The lifetime of what is known about a path (RFC 1191 section 6.3).
const PATH_MEMORY: Duration = Duration::from_secs(600);
/// So long one who connects waits to be let in.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end of a tunnel in UDP.
#[derive(Debug)]
pub(crate) struct UdpTunnel {
    socket: Socket,
    side: Side,
    capabilities: Capabilities,
    pool: BufferPool,
    batch: Option<Batch>,
    /// Packets from the tunnel itself to the stack.
    own_words: VecDeque<RxPacket>,
    assembly: Vec<u8>,
    started: Instant,
    next_tick: Duration,
    discarded: u64,
}

#[derive(Debug)]
enum Side {
    Joined { joined: Joined, path: Path },
    Listening(Peers),
}

/// The path to a peer, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// The longest packet, and when that was found out.
    limit: Option<(usize, Duration)>,
}

impl Path {
    fn limit(&self, now: Duration) -> Option<usize> {
        let (limit, found) = self.limit?;
        (now.saturating_sub(found) < PATH_MEMORY).then_some(limit)
    }
}

/// Datagrams that arrived at once, and have not been handed out yet.
#[derive(Debug)]
struct Batch {
    buffer: PacketBuf,
    arrived: Arrived,
    at: usize,
}

/// The route of a packet.
#[derive(Clone, Copy)]
struct Route {
    to: SocketAddr,
    session: u32,
    limit: usize,
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
    }
    Ok(bytes)
}

/// A number for a session that nobody guesses. Without randomness there is none, and nobody is let in.
fn fresh() -> u32 {
    random().map_or(0, u32::from_be_bytes)
}

impl UdpTunnel {
    /// Connects to the end that listens at `remote`. Waits for admission for up to ten seconds.
    ///
    /// `wanted` are the addresses inside the tunnel to ask for, one of each IP version at most; without any, the other end
    /// assigns them. `mtu` is the longest IP packet inside; by default the longest that the path takes.
    pub(crate) fn connect(
        remote: SocketAddr,
        wanted: &[IpAddr],
        mtu: Option<usize>,
    ) -> Result<Self, UdpError> {
        let wanted = Addresses::of(wanted.iter().copied()).ok_or(UdpError::Addresses)?;
        let socket = Socket::connected(remote, joined::TICK)
            .map_err(|source| UdpError::Connect { remote, source })?;
        let failed = UdpError::System;
        let session = u32::from_be_bytes(random().map_err(failed)?);
        let joined = Joined::new(remote, session, random().map_err(failed)?, wanted);
        let overhead = outer_headers(remote.ip()) + HEADER_LEN;
        let path = path_mtu(remote).map_err(|source| UdpError::Connect { remote, source })?;
        let mtu = checked_mtu(path.saturating_sub(overhead), mtu)?;
        let side = Side::Joined { joined, path: Path::default() };
        let mut tunnel = Self::of(socket, side, mtu);
        tunnel.join(remote)?;
        Ok(tunnel)
    }

    /// Waits for others at `local`. `addresses` are the listener's own inside the tunnel, one of each IP version at most; the rest of their networks
    /// is for the others. `mtu` is the longest IP packet inside; by default what fits the packets of an Ethernet, or on a loopback address
    /// those of the loopback interface.
    pub(crate) fn listen(
        local: SocketAddr,
        addresses: &[IpPrefix],
        mtu: Option<usize>,
    ) -> Result<Self, UdpError> {
        let networks = Networks::of(addresses).ok_or(UdpError::Addresses)?;
        let socket =
            Socket::listening(local).map_err(|source| UdpError::Listen { local, source })?;
        let outer = if local.ip().is_loopback() { LOOPBACK_MTU } else { USUAL_MTU };
        // Its own interface may carry more than it seems.
        let fits = if mtu.is_some() { LOOPBACK_MTU } else { outer };
        let overhead = outer_headers(local.ip()) + HEADER_LEN;
        let mtu = checked_mtu(fits - overhead, mtu)?;
        let peers = Peers::new(networks, random().map_err(UdpError::System)?);
        Ok(Self::of(socket, Side::Listening(peers), mtu))
    }

    fn of(socket: Socket, side: Side, mtu: usize) -> Self {
        UdpTunnel {
            socket,
            side,
            capabilities: Capabilities {
                mtu,
                tx_checksum: true,
                segmentation: Some(LONGEST_SUPER_SEGMENT.max(mtu)),
                rx_coalesce: true,
            },
            pool: BufferPool::new(65_536, 256),
            batch: None,
            own_words: VecDeque::new(),
            assembly: Vec::new(),
            started: Instant::now(),
            next_tick: Duration::ZERO,
            discarded: 0,
        }
    }

    /// The local address of the socket.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_address()
    }

    /// The addresses inside the tunnel that the other end has given us; none on the end that listens.
    pub(crate) fn given(&self) -> Vec<IpPrefix> {
        let Side::Joined { joined, .. } = &self.side else { return Vec::new() };
        let Some(Welcome { given, lengths: [v4, v6], .. }) = joined.welcome else {
            return Vec::new();
        };
        let length = |address: &IpAddr| if address.is_ipv4() { v4 } else { v6 };
        given.each().filter_map(|address| IpPrefix::new(address, length(&address))).collect()
    }

    /// How many datagrams were thrown away: not understood, not from whom they should be, not for us.
    #[cfg(test)]
    fn discarded(&self) -> u64 {
        self.discarded
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Asks to be let in until the other end says yes or no.
    fn join(&mut self, remote: SocketAddr) -> Result<(), UdpError> {
        let (mut pause, mut silence) = (Duration::from_millis(50), None);
        let mut buffer = self.pool.take();
        loop {
            let now = self.now();
            let Side::Joined { joined, .. } = &mut self.side else { return Ok(()) };
            if now > PATIENCE {
                let source = silence.unwrap_or_else(|| io::ErrorKind::TimedOut.into());
                return Err(UdpError::Silent { remote, source });
            }
            let hello = joined.make_hello(now);
            // The kernel tells of what came of the one before.
            if let Err(error) = self.socket.send(remote, &hello, None, Ecn::NotEct) {
                silence = Some(error);
            }
            let end = now + pause;
            pause = (pause * 2).min(Duration::from_secs(1));
            while let Some(left) = end.checked_sub(self.started.elapsed()) {
                self.socket.wait(left).map_err(UdpError::System)?;
                let arrived = match self.socket.receive(&mut buffer) {
                    Ok(arrived) => arrived,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => {
                        silence = Some(error);
                        // Nobody is there yet: not every few microseconds.
                        std::thread::sleep(left.min(Duration::from_millis(50)));
                        continue;
                    }
                };
                let length = arrived.stride.min(arrived.len);
                let datagram = buffer.get(..length).unwrap_or_default();
                if let Verdict::Answer(answer) = joined.judge(self.started.elapsed(), datagram) {
                    let _ = self.socket.send(remote, &answer, None, Ecn::NotEct);
                }
                if let Some(refusal) = joined.refused {
                    return Err(UdpError::Refused { remote, source: Box::new(refusal) });
                }
                if joined.welcome.is_some() {
                    return Ok(());
                }
            }
        }
    }

    /// The route of packets for this address.
    fn route(&mut self, address: IpAddr) -> io::Result<Route> {
        let (now, mtu) = (self.now(), self.capabilities.mtu);
        let unreachable = || io::Error::from(io::ErrorKind::HostUnreachable);
        match &mut self.side {
            Side::Joined { joined, path } => {
                let session = joined.packet_session().ok_or_else(unreachable)?;
                joined.sent = now;
                let limit = path.limit(now).unwrap_or(mtu);
                Ok(Route { to: joined.remote, session, limit })
            }
            Side::Listening(peers) => {
                let peer = peers.at(address).ok_or_else(unreachable)?;
                let limit = peer.path.limit(now).unwrap_or(mtu);
                Ok(Route { to: peer.endpoint, session: peer.session, limit })
            }
        }
    }

    /// The path to `to` takes less than was believed. Finds out how much, and tells the stack, whose `packet` was too long.
    fn shorten(&mut self, address: IpAddr, to: SocketAddr, packet: &[u8]) {
        let overhead = outer_headers(to.ip()) + HEADER_LEN;
        let Ok(outer) = path_mtu(to) else { return };
        let limit = outer.saturating_sub(overhead);
        let found = Path { limit: Some((limit, self.now())) };
        match &mut self.side {
            Side::Joined { path, .. } => *path = found,
            Side::Listening(peers) => {
                if let Some(peer) = peers.at(address) {
                    peer.path = found;
                }
            }
        }
        if limit < packet.len() {
            self.tell_too_big(packet, limit);
        }
    }

    fn tell_too_big(&mut self, packet: &[u8], limit: usize) {
        // One is enough: what follows in a burst is about the same path.
        if self.own_words.len() < 16
            && let Some(error) = too_big::too_big(packet, limit)
        {
            self.own_words.push_back(error);
            self.socket.signal(true);
        }
    }

    /// Adds a datagram to those that leave together. If its packet is longer than `limit`, none of them leaves, and the stack is told.
    fn assemble(
        &mut self,
        header: Header,
        headers: &[u8],
        payload: &[&[u8]],
        limit: usize,
    ) -> bool {
        self.assembly.extend(header.bytes());
        let start = self.assembly.len();
        self.assembly.extend_from_slice(headers);
        payload.iter().for_each(|part| self.assembly.extend_from_slice(part));
        let fits = self.assembly.len() - start <= limit;
        if !fits {
            let whole = std::mem::take(&mut self.assembly);
            self.tell_too_big(&whole[start..], limit);
        }
        fits
    }

    /// Sends what has been assembled: datagrams of `stride` bytes.
    fn flush(&mut self, address: IpAddr, route: Route, stride: usize, ecn: Ecn) -> io::Result<()> {
        let assembly = std::mem::take(&mut self.assembly);
        let several = (assembly.len() > stride).then_some(stride);
        let mut outcome = self.socket.send(route.to, &assembly, several, ecn);
        let impossible = |error: &io::Error| {
            matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
        };
        if several.is_some() && outcome.as_ref().is_err_and(impossible) {
            // Some kernels and cards send one at a time only, and say of a path that takes less only then.
            for datagram in assembly.chunks(stride.max(1)) {
                outcome = self.socket.send(route.to, datagram, None, ecn);
                if outcome.is_err() {
                    break;
                }
            }
        }
        let too_long = |error: &io::Error| error.raw_os_error() == Some(libc::EMSGSIZE);
        let result = match outcome {
            Err(error) if too_long(&error) => {
                let first = assembly.get(HEADER_LEN..stride.min(assembly.len()));
                self.shorten(address, route.to, first.unwrap_or_default());
                Ok(())
            }
            outcome => outcome,
        };
        self.assembly = assembly;
        self.assembly.clear();
        result
    }

    /// Judges the datagram at the front of the batch, and hands out its packet.
    fn next_of_batch(&mut self) -> Option<RxPacket> {
        let mut batch = self.batch.take()?;
        let now = self.now();
        while batch.at < batch.arrived.len {
            let Arrived { from, len, stride, ecn } = batch.arrived;
            let rest = batch.buffer.get_mut(batch.at..len).unwrap_or_default();
            let first = rest.get(..stride.min(rest.len())).unwrap_or_default();
            if !judge(&mut self.side, &self.socket, now, from, first) {
                self.discarded += 1;
                batch.at += stride;
                continue;
            }
            let mut shared = [0; HEADER_LEN];
            shared.copy_from_slice(&first[..HEADER_LEN]);
            let covered = Header::read(&shared)
                .is_some_and(|(header, _)| header.flags & CHECKSUM_COVERED != 0);
            let (end, offload, count) = if covered {
                let same = |other: &[u8]| other.get(..HEADER_LEN) == Some(&shared[..]);
                let length = rest.len();
                coalesce::take_first(rest, HEADER_LEN, stride, length, same)
            } else {
                let plain = RxOffload { checksum: RxChecksum::Unverified, segmentation: None };
                (first.len(), plain, 1)
            };
            let start = batch.at + HEADER_LEN;
            let range = start..batch.at + end;
            batch.at += stride.saturating_mul(count);
            let packet = batch.buffer.get_mut(range.clone()).unwrap_or_default();
            if !decapsulate_ecn(packet, ecn) {
                self.discarded += 1;
                continue;
            }
            if batch.at >= len {
                return Some(RxPacket { buffer: batch.buffer, range, offload });
            }
            let buffer = PacketBuf::from(&*packet);
            let range = 0..packet.len();
            self.batch = Some(batch);
            return Some(RxPacket { buffer, range, offload });
        }
        self.pool.put(batch.buffer);
        None
    }

    /// Does what has to be done from time to time.
    fn look_at_the_clock(&mut self) {
        let now = self.now();
        let Side::Joined { joined, .. } = &mut self.side else { return };
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + joined::TICK / 2;
        self.socket.take_tick();
        if let Some(datagram) = joined.tick(now) {
            let _ = self.socket.send(joined.remote, &datagram, None, Ecn::NotEct);
        }
    }

    /// Why the tunnel is of no more use, if it is not.
    fn failure(&self) -> Option<io::Error> {
        let Side::Joined { joined, .. } = &self.side else { return None };
        let source = joined.refused?;
        let error = UdpError::Refused { remote: joined.remote, source: Box::new(source) };
        Some(io::Error::new(io::ErrorKind::NetworkDown, with_causes(&error)))
    }
}

/// Judges a datagram and sends what it asks for. Says whether its packet may be delivered.
fn judge(
    side: &mut Side,
    socket: &Socket,
    now: Duration,
    from: SocketAddr,
    datagram: &[u8],
) -> bool {
    let verdict = match side {
        Side::Joined { joined, .. } => joined.judge(now, datagram),
        Side::Listening(peers) => peers.judge(now, from, datagram, fresh),
    };
    if let Verdict::Answer(answer) = &verdict {
        // One that is lost is asked for again.
        let _ = socket.send(from, answer, None, Ecn::NotEct);
    }
    verdict == Verdict::Deliver
}

/// A packet leaves the tunnel: congestion that was met outside is marked inside (RFC 6040 section 4.2). Whether it may be delivered.
fn decapsulate_ecn(packet: &mut [u8], outer: Ecn) -> bool {
    if outer != Ecn::Ce {
        return true;
    }
    match ip::peek_ecn(packet) {
        // A router does not mark what cannot be marked, and who cannot hear of congestion sees a loss.
        Ecn::NotEct => false,
        Ecn::Ce => true,
        Ecn::Ect0 | Ecn::Ect1 => ip::set_ecn(packet, Ecn::Ce).is_ok(),
    }
}

fn checked_mtu(fits: usize, wanted: Option<usize>) -> Result<usize, UdpError> {
    let fits = fits.min(LONGEST_DATAGRAM - HEADER_LEN);
    match wanted {
        Some(wanted) if wanted > fits => Err(UdpError::Mtu { wanted, fits }),
        Some(wanted) => Ok(wanted),
        None if fits < 68 => Err(UdpError::Mtu { wanted: 68, fits }),
        None => Ok(fits),
    }
}

impl Device for UdpTunnel {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let address = destination(packet.headers).ok_or(io::ErrorKind::InvalidInput)?;
        let route = self.route(address)?;
        let ecn = ip::peek_ecn(packet.headers);
        let mut header = Header::new(kind::PACKET, route.session);
        self.assembly.clear();
        let Some(segmentation) = packet.offload.segmentation else {
            if matches!(packet.offload.checksum, TxChecksum::Partial { .. }) {
                header.flags |= CHECKSUM_COVERED;
            }
            if !self.assemble(header, packet.headers, &packet.payload, route.limit) {
                return Ok(());
            }
            return self.flush(address, route, self.assembly.len(), ecn);
        };
        header.flags |= CHECKSUM_COVERED;
        let segment = usize::from(segmentation.header_len) + usize::from(segmentation.segment_size);
        let stride = HEADER_LEN + segment;
        let most = self.socket.most_at_once().min(LONGEST_DATAGRAM / stride).max(1);
        let mut segmenter = Segmenter::new(packet.headers, packet.payload, &packet.offload)
            .map_err(SendError::Offload)?;
        let mut head = [0; crate::MAX_HEAD];
        let mut count = 0;
        while let Some(segment) = segmenter.next_segment(&mut head).map_err(SendError::Offload)? {
            let headers = &head[..segment.header_len];
            if !self.assemble(header, headers, &segment.payload, route.limit) {
                return Ok(());
            }
            count += 1;
            if count % most == 0 {
                self.flush(address, route, stride, ecn)?;
            }
        }
        if self.assembly.is_empty() { Ok(()) } else { self.flush(address, route, stride, ecn) }
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            if let Some(words) = self.own_words.pop_front() {
                return Ok(words);
            }
            if let Some(packet) = self.next_of_batch() {
                // What is left is nothing that the socket would be readable for.
                if self.batch.is_some() {
                    self.socket.signal(true);
                }
                return Ok(packet);
            }
            let mut buffer = self.pool.take();
            match self.socket.receive(&mut buffer) {
                Ok(arrived) => self.batch = Some(Batch { buffer, arrived, at: 0 }),
                Err(error) => {
                    self.pool.put(buffer);
                    self.look_at_the_clock();
                    if let Some(failure) = self.failure() {
                        return Err(failure);
                    }
                    if error.kind() == io::ErrorKind::WouldBlock {
                        self.socket.signal(false);
                        return Err(error);
                    }
                    // What ICMP said of a datagram before: anybody can say that, and the connections inside know how long to try.
                    self.discarded += 1;
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
        }
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.waiting())
    }
}

impl Drop for UdpTunnel {
    fn drop(&mut self) {
        // So that the address is free at once.
        if let Side::Joined { joined, .. } = &self.side
            && let Some(bye) = joined.bye()
        {
            let _ = self.socket.send(joined.remote, &bye, None, Ecn::NotEct);
        }
    }
}
