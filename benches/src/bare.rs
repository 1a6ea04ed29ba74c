//! The device alone: as much of TCP as a request and its response need on a path that loses nothing.
//!
//! It keeps two sequence numbers and fills in headers; no timers, no buffers, no checks. So what it takes for a round trip is
//! what the system calls and the kernel at the other end take, and no TCP on this device can take less.

use crate::network::{KERNEL, KernelEnd, OTHER, PATIENCE, tun};
use anyhow::{Context, ensure};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, TxPacket};
use transom_wire::ipv4::Ipv4Header;
use transom_wire::{Flags, IpPacket, Options, Protocol, Seq, TcpHeader, TcpPacket, checksum, tcp};

/// The window that is offered, in bytes, unscaled.
const WINDOW: u16 = 65_535;
/// Longer than any packet made here.
const LONGEST: usize = 128;

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
        let mut connection =
            BareConnection { ports: (self.next_port, port), seq: Seq::new(1), ack: Seq::new(0) };
        self.send(&mut connection, Flags::SYN, &[])?;
        self.receive(&mut connection, |flags, _| flags.contains(Flags::SYN).then_some(()))?;
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

    /// Closes in order.
    ///
    /// # Errors
    /// When the kernel does not close its side.
    pub fn close(&mut self, mut connection: BareConnection) -> anyhow::Result<()> {
        self.send(&mut connection, Flags::ACK | Flags::FIN, &[])?;
        self.receive(&mut connection, |flags, _| flags.contains(Flags::FIN).then_some(()))?;
        self.send(&mut connection, Flags::ACK, &[])
    }

    fn send(
        &mut self,
        connection: &mut BareConnection,
        flags: Flags,
        payload: &[u8],
    ) -> anyhow::Result<()> {
        let (src, dst) = (Ipv4Addr::from(OTHER), Ipv4Addr::from(KERNEL));
        let mss = flags.contains(Flags::SYN).then_some(1460);
        let header = TcpHeader {
            src_port: connection.ports.0,
            dst_port: connection.ports.1,
            seq: connection.seq,
            ack: connection.ack,
            flags,
            window: WINDOW,
            options: Options { mss, ..Options::default() },
            ..TcpHeader::default()
        };
        let mut packet = [0; LONGEST];
        let tcp_len = header.header_len() + payload.len();
        let ip_len = Ipv4Header::new(src, dst, Protocol::TCP).emit(tcp_len, &mut packet)?;
        let segment = &mut packet[ip_len..][..tcp_len];
        let header_len = header.emit(segment)?;
        segment[header_len..].copy_from_slice(payload);
        checksum::fill(src.into(), dst.into(), Protocol::TCP, segment, tcp::CHECKSUM_OFFSET)?;
        self.tun.send(&TxPacket::whole(&packet[..ip_len + tcp_len])).context("sending")?;
        connection.seq += header.segment_len(payload.len() as u32);
        Ok(())
    }

    /// Takes packets until one of the connection has what is `wanted`.
    fn receive<T>(
        &mut self,
        connection: &mut BareConnection,
        wanted: impl Fn(Flags, &[u8]) -> Option<T>,
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
                let header = segment.header();
                if (header.dst_port, header.src_port) != connection.ports {
                    return None;
                }
                let found = wanted(header.flags, segment.payload())?;
                connection.ack = header.seq + segment.segment_len();
                Some(found)
            })();
            self.tun.recycle(packet.buffer);
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }
}
