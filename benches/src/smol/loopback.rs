//! smoltcp's loopback benchmark: one interface that talks to itself, within one thread.
//!
//! It differs from the example that comes with smoltcp in what the comparison needs. The MTU is Ethernet's, both ends
//! compute and verify checksums, and packets' buffers are reused.

use anyhow::{Context, anyhow};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The port that is listened at.
const PORT: u16 = 1234;

/// A buffer of one MTU with a packet in it.
#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    len: usize,
}

/// A device that receives what it sends.
#[derive(Debug, Default)]
struct Loopback {
    mtu: usize,
    queue: VecDeque<Packet>,
    /// Buffers not in use. A received packet and the answer to it hold on to them at the same time.
    spare: RefCell<Vec<Packet>>,
}

impl Device for Loopback {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut checksum = ChecksumCapabilities::default();
        checksum.ipv4 = Checksum::Both;
        checksum.tcp = Checksum::Both;
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum = checksum;
        capabilities
    }

    fn receive(&mut self, _timestamp: Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        let packet = self.queue.pop_front()?;
        let Loopback { mtu, queue, spare } = self;
        Some((RxToken { packet, spare }, TxToken { mtu: *mtu, queue, spare }))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<TxToken<'_>> {
        let Loopback { mtu, queue, spare } = self;
        Some(TxToken { mtu: *mtu, queue, spare })
    }
}

struct RxToken<'a> {
    packet: Packet,
    spare: &'a RefCell<Vec<Packet>>,
}

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(&self.packet.bytes[..self.packet.len]);
        self.spare.borrow_mut().push(self.packet);
        result
    }
}

struct TxToken<'a> {
    mtu: usize,
    queue: &'a mut VecDeque<Packet>,
    spare: &'a RefCell<Vec<Packet>>,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let spare = self.spare.borrow_mut().pop();
        let mut packet = spare.unwrap_or_else(|| Packet { bytes: vec![0; self.mtu], len: 0 });
        packet.len = len;
        // smoltcp never asks for more than the MTU.
        let result = write(&mut packet.bytes[..len]);
        self.queue.push_back(packet);
        result
    }
}

/// An interface with a connection from itself to itself.
pub struct LoopbackPair {
    device: Loopback,
    interface: Interface,
    sockets: SocketSet<'static>,
    client: SocketHandle,
    server: SocketHandle,
}

impl std::fmt::Debug for LoopbackPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopbackPair").field("device", &self.device).finish_non_exhaustive()
    }
}

impl LoopbackPair {
    /// Connects over a loopback with packets of at most `mtu` bytes; each socket buffer has `buffer` bytes.
    ///
    /// # Errors
    /// When smoltcp refuses a socket call or the handshake does not complete.
    pub fn connect(mtu: usize, buffer: usize) -> anyhow::Result<Self> {
        let mut device = Loopback { mtu, ..Loopback::default() };
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::now());
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::v4(127, 0, 0, 1), 8));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let socket = || {
            let ring = || tcp::SocketBuffer::new(vec![0; buffer]);
            tcp::Socket::new(ring(), ring())
        };
        let (server, client) = (sockets.add(socket()), sockets.add(socket()));
        sockets
            .get_mut::<tcp::Socket<'_>>(server)
            .listen(PORT)
            .map_err(|error| anyhow!("listening: {error}"))?;
        sockets
            .get_mut::<tcp::Socket<'_>>(client)
            .connect(interface.context(), (IpAddress::v4(127, 0, 0, 1), PORT), 65_000)
            .map_err(|error| anyhow!("connecting: {error}"))?;
        let mut pair = LoopbackPair { device, interface, sockets, client, server };
        for _ in 0..16 {
            pair.poll();
            if pair.client().may_send() && pair.server().may_recv() {
                return Ok(pair);
            }
        }
        None.context("the handshake did not complete")
    }

    /// Lets the interface do its work.
    pub fn poll(&mut self) {
        self.interface.poll(Instant::now(), &mut self.device, &mut self.sockets);
    }

    /// The end that connected.
    pub fn client(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.client)
    }

    /// The end that accepted.
    pub fn server(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.server)
    }
}
