//! The supervisor's end of a private network.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use transom_base::packet::PacketBuf;

use super::PrivateError;
use super::wire::Wire;
use crate::device::{Head, Received};
use crate::tun::Tun;
use crate::{Capabilities, Device, RxPacket, TxPacket};

/// After so many packets of the device in a row, one from `lo` has its turn.
const TURN: u32 = 64;

/// How the packets leave the private network.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A TUN interface.
    Tun(Box<Tun>),
    /// The far end of a veth pair.
    Veth(Wire),
}

impl Carrier {
    fn device(&self) -> &dyn Device {
        match self {
            Carrier::Tun(tun) => tun.as_ref(),
            Carrier::Veth(wire) => wire,
        }
    }

    fn device_mut(&mut self) -> &mut dyn Device {
        match self {
            Carrier::Tun(tun) => tun.as_mut(),
            Carrier::Veth(wire) => wire,
        }
    }
}

/// What a device is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) carrier: Carrier,
    /// The packet socket on `lo`, for `::1`.
    pub(super) loopback: Option<Wire>,
}

impl Parts {
    pub(super) fn assemble(self) -> Result<PrivateDevice, PrivateError> {
        PrivateDevice::new(self.carrier, self.loopback).map_err(PrivateError::Veth)
    }
}

/// Every packet that a socket of the private network sends, and the way of packets to it.
#[derive(Debug)]
pub struct PrivateDevice {
    carrier: Carrier,
    /// The packets to `::1`, and what both descriptors are waited for with.
    loopback: Option<(Wire, OwnedFd)>,
    /// Whether to look for packets to `::1`.
    looks_aside: bool,
    in_a_row: u32,
}

impl PrivateDevice {
    fn new(carrier: Carrier, loopback: Option<Wire>) -> io::Result<Self> {
        let mut device = PrivateDevice { carrier, loopback: None, looks_aside: true, in_a_row: 0 };
        if let Some(wire) = loopback {
            let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let readable = epoll::EventFlags::IN;
            epoll::add(&both, &wire, epoll::EventData::new_u64(1), readable)?;
            if let Some(descriptor) = device.carrier.device().poll_fd() {
                epoll::add(&both, descriptor, epoll::EventData::new_u64(0), readable)?;
            }
            device.loopback = Some((wire, both));
        }
        Ok(device)
    }

    /// How many packets from the kernel were thrown away, because they were cut off or made no sense.
    pub fn discarded(&self) -> u64 {
        let carrier = match &self.carrier {
            Carrier::Tun(tun) => tun.discarded(),
            Carrier::Veth(wire) => wire.discarded,
        };
        carrier + self.loopback.as_ref().map_or(0, |(wire, _)| wire.discarded)
    }

    /// Notes the outcome of a look at the carrier. The next packet may be one of `lo`'s.
    fn or_loopback<T>(
        &mut self,
        outcome: io::Result<T>,
        wrap: impl FnOnce(RxPacket) -> T,
    ) -> io::Result<T> {
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.in_a_row = 0;
                match &mut self.loopback {
                    Some((wire, _)) if self.looks_aside => wire.recv().map(wrap),
                    _ => Err(error),
                }
            }
            outcome => {
                self.in_a_row += 1;
                outcome
            }
        }
    }

    /// A packet of `lo`'s, when it is its turn.
    fn turn_of_loopback(&mut self) -> Option<RxPacket> {
        if self.in_a_row < TURN || !self.looks_aside {
            return None;
        }
        self.in_a_row = 0;
        self.loopback.as_mut()?.0.recv().ok()
    }
}

/// Whether a packet is to or from `::1`, so that the kernel takes it in by `lo` only.
fn is_loopback_v6(packet: &TxPacket<'_>) -> bool {
    let has = |range| packet.headers.get(range) == Some(&Ipv6Addr::LOCALHOST.octets()[..]);
    packet.headers.first().is_some_and(|first| first >> 4 == 6) && (has(8..24) || has(24..40))
}

impl Device for PrivateDevice {
    fn capabilities(&self) -> Capabilities {
        self.carrier.device().capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        match &mut self.loopback {
            Some((wire, _)) if is_loopback_v6(packet) => wire.send(packet),
            _ => self.carrier.device_mut().send(packet),
        }
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        if let Some(packet) = self.turn_of_loopback() {
            return Ok(packet);
        }
        let outcome = self.carrier.device_mut().recv();
        self.or_loopback(outcome, |packet| packet)
    }

    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        if let Some(packet) = self.turn_of_loopback() {
            return Ok(Received::Whole(packet));
        }
        let outcome = self.carrier.device_mut().recv_scattered(head_len, body);
        self.or_loopback(outcome, Received::Whole)
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        self.carrier.device_mut().gather(head, body)
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Device>> {
        self.carrier.device_mut().take_queues()
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        match (&mut self.loopback, &mut self.carrier) {
            (Some((wire, _)), Carrier::Tun(_)) if wire.owns(&buffer) => wire.recycle(buffer),
            (_, carrier) => carrier.device_mut().recycle(buffer),
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.loopback {
            Some((_, both)) => Some(both.as_fd()),
            None => self.carrier.device().poll_fd(),
        }
    }

    fn poll_parts(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let (wire, _) = self.loopback.as_ref()?;
        Some([self.carrier.device().poll_fd()?, wire.as_fd()])
    }

    fn look_aside(&mut self, aside: bool) {
        self.looks_aside = aside;
    }
}
