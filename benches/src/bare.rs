//! The device alone: as much of TCP as a request and its response need on a path that loses nothing.
//!
//! It keeps two sequence numbers and fills in headers; no timers, no buffers, no checks. So what it takes for a round trip, or
//! to send in bulk from memory that stays as it is, is what the system calls and the kernel at the other end take, and no TCP
//! on this device can take less.

use crate::network::{KERNEL, KernelEnd, OTHER, PATIENCE, tun};
use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, TxPacket};
use transom_wire::offload::{SegmentKind, Segmentation, TxChecksum, TxOffload};
use transom_wire::{
    Flags, IpPacket, Ipv4Header, Options, Protocol, Seq, TcpHeader, TcpPacket, checksum, tcp,
};

const MSS: u16 = 1460;
/// As many whole segments as an IPv4 packet can have.
const LARGEST_PAYLOAD: usize = 44 * MSS as usize;
/// The window that is offered, in bytes, unscaled.
const WINDOW: u16 = 65_535;
/// What the window is to be shifted by on the kernel's side.
const WINDOW_SCALE: u8 = 7;
/// Room for the headers made here.
const HEADERS: usize = 80;

/// A bare end on a TUN, and the kernel it talks to.
#[derive(Debug)]
pub struct BarePath {
    /// The kernel's end, which other threads use meanwhile.
    pub kernel: Arc<KernelEnd>,
    tun: Tun,
    next_port: u16,
}

/// A connection of a [`BarePath`].
#[derive(Clone, Copy, Debug)]
pub struct BareConnection {
    ports: (u16, u16),
    seq: Seq,
    ack: Seq,
    /// What the kernel has acknowledged, how much more it takes, and by how much its window is shifted.
    una: Seq,
    window: u32,
    scale: u8,
}

impl BareConnection {
    /// How much the kernel takes now.
    fn room(&self) -> u32 {
        let flight = self.seq.distance_from(self.una);
        self.window.saturating_sub(flight.unsigned_abs())
    }

    fn look_at(&mut self, header: &TcpHeader) {
        if header.flags.contains(Flags::SYN) {
            self.scale = header.options.window_scale.unwrap_or(0).min(14);
        }
        self.una = header.ack;
        let scale = if header.flags.contains(Flags::SYN) { 0 } else { self.scale };
        self.window = u32::from(header.window) << scale;
    }
}

impl BarePath {
    /// Opens a TUN of its own.
    ///
    /// # Errors
    /// As [`tun`].
    pub fn new() -> anyhow::Result<Self> {
        let (kernel, tun) = tun(TunOffload::Segmentation, 1500)?;
        Ok(BarePath { kernel: Arc::new(kernel), tun, next_port: 1024 })
    }

    /// Connects to a port of the kernel.
    ///
    /// # Errors
    /// When the kernel does not answer as expected.
    pub fn connect(&mut self, port: u16) -> anyhow::Result<BareConnection> {
        self.next_port = self.next_port.checked_add(1).unwrap_or(1024);
        let mut connection = BareConnection {
            ports: (self.next_port, port),
            seq: Seq::new(1),
            ack: Seq::new(0),
            una: Seq::new(1),
            window: 0,
            scale: 0,
        };
        self.send(&mut connection, Flags::SYN, &[])?;
        self.receive(&mut connection, |header, _| header.flags.contains(Flags::SYN).then_some(()))?;
        self.send(&mut connection, Flags::ACK, &[])?;
        Ok(connection)
    }

    /// Sends a byte and spins until one comes back.
    ///
    /// # Errors
    /// When none does.
    pub fn trip(&mut self, connection: &mut BareConnection, byte: u8) -> anyhow::Result<u8> {
        self.send(connection, Flags::ACK | Flags::PSH, &[byte])?;
        self.receive(connection, |_, payload| payload.first().copied())
    }

    /// Sends all of `bytes`, in pieces as large as a packet may be, and waits only for the kernel's window.
    ///
    /// # Errors
    /// When the window does not open.
    pub fn send_all(
        &mut self,
        connection: &mut BareConnection,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        for piece in bytes.chunks(LARGEST_PAYLOAD) {
            let needed = piece.len() as u32;
            while connection.room() < needed {
                self.wait()?;
                self.receive(connection, |_, _| Some(()))?;
            }
            self.send(connection, Flags::ACK | Flags::PSH, piece)?;
        }
        Ok(())
    }

    /// Sleeps until a packet arrives.
    fn wait(&mut self) -> anyhow::Result<()> {
        let fd = self.tun.poll_fd().context("a TUN that cannot be waited for")?;
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let timeout = Timespec::try_from(PATIENCE).context("a timeout out of range")?;
        let ready = poll(&mut fds, Some(&timeout)).context("waiting for the TUN")?;
        ensure!(ready > 0, "the kernel's window did not open");
        Ok(())
    }

    /// Closes in order.
    ///
    /// # Errors
    /// When the kernel does not close its side.
    pub fn close(&mut self, mut connection: BareConnection) -> anyhow::Result<()> {
        self.send(&mut connection, Flags::ACK | Flags::FIN, &[])?;
        self.receive(&mut connection, |header, _| header.flags.contains(Flags::FIN).then_some(()))?;
        self.send(&mut connection, Flags::ACK, &[])
    }

    fn send(
        &mut self,
        connection: &mut BareConnection,
        flags: Flags,
        payload: &[u8],
    ) -> anyhow::Result<()> {
        let (src, dst) = (Ipv4Addr::from(OTHER), Ipv4Addr::from(KERNEL));
        let syn = flags.contains(Flags::SYN);
        let header = TcpHeader {
            src_port: connection.ports.0,
            dst_port: connection.ports.1,
            seq: connection.seq,
            ack: connection.ack,
            flags,
            window: WINDOW,
            options: Options {
                mss: syn.then_some(MSS),
                window_scale: syn.then_some(WINDOW_SCALE),
                ..Options::default()
            },
            ..TcpHeader::default()
        };
        let mut headers = [0; HEADERS];
        let tcp_len = header.header_len() + payload.len();
        let ip_len = Ipv4Header::new(src, dst, Protocol::TCP).emit(tcp_len, &mut headers)?;
        let header_len = header.emit(&mut headers[ip_len..])?;
        let sum = checksum::pseudo_header(src.into(), dst.into(), Protocol::TCP, tcp_len as u32);
        headers[ip_len + tcp::CHECKSUM_OFFSET..][..2].copy_from_slice(&sum.0.to_be_bytes());
        let header_len = ip_len + header_len;
        let offload = TxOffload {
            checksum: TxChecksum::Partial {
                start: ip_len as u16,
                offset: tcp::CHECKSUM_OFFSET as u16,
            },
            segmentation: (payload.len() > usize::from(MSS)).then_some(Segmentation {
                kind: SegmentKind::Tcp4,
                segment_size: MSS,
                header_len: header_len as u16,
            }),
        };
        let packet = TxPacket { headers: &headers[..header_len], payload: [payload, &[]], offload };
        self.tun.send(&packet).context("sending")?;
        connection.seq += header.segment_len(payload.len() as u32);
        Ok(())
    }

    /// Takes packets until one of the connection has what is `wanted`.
    fn receive<T>(
        &mut self,
        connection: &mut BareConnection,
        wanted: impl Fn(&TcpHeader, &[u8]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let (mut tries, mut since) = (0u32, None);
        loop {
            let packet = match self.tun.recv() {
                Ok(packet) => packet,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::hint::spin_loop();
                    tries = tries.wrapping_add(1);
                    // A clock that is read each time would be part of what is measured.
                    ensure!(
                        !tries.is_multiple_of(65_536)
                            || since.get_or_insert_with(Instant::now).elapsed() < PATIENCE,
                        "the kernel did not answer"
                    );
                    continue;
                }
                Err(error) => return Err(error).context("receiving"),
            };
            let found = (|| {
                let segment =
                    TcpPacket::parse(IpPacket::parse(packet.bytes()).ok()?.payload()).ok()?;
                let header = &segment.header;
                if (header.dst_port, header.src_port) != connection.ports {
                    return None;
                }
                connection.look_at(header);
                let found = wanted(header, segment.payload)?;
                connection.ack = header.seq + header.segment_len(segment.payload.len() as u32);
                Some(found)
            })();
            self.tun.recycle(packet.buffer);
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }
}
