//! The device of a process behind a demultiplexing process.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use transom_base::packet::PacketBuf;
use transom_wire::offload::RxOffload;

use super::{LONGEST, hello, welcomed};
use crate::interface::IpPrefix;
use crate::passing;
use crate::{Capabilities, Device, RxPacket, TxPacket};

/// So long the answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Packets by way of a [`Demultiplexer`](super::Demultiplexer).
#[derive(Debug)]
pub(crate) struct DemuxDevice {
    socket: OwnedFd,
    addresses: Vec<IpPrefix>,
    mtu: usize,
    packet: Vec<u8>,
}

impl DemuxDevice {
    /// Connects to the process that listens at `path`. `ports` are those that the stack will listen at; it can connect from any other.
    pub(crate) fn connect(path: &Path, ports: &[RangeInclusive<u16>]) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        passing::send(&stream, hello(ports).as_bytes(), &[])?;
        let mut descriptors = Vec::new();
        let answer = passing::receive(&stream, LONGEST, 1, &mut descriptors)?;
        let answer = answer.ok_or(io::ErrorKind::UnexpectedEof)?;
        let text = String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData)?;
        let (mtu, addresses) = welcomed(&text)?;
        let socket = descriptors.pop().ok_or(io::ErrorKind::InvalidData)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(DemuxDevice { socket, addresses, mtu, packet: Vec::new() })
    }

    /// The addresses of the device that the process owns.
    pub(crate) fn addresses(&self) -> &[IpPrefix] {
        &self.addresses
    }
}

impl Device for DemuxDevice {
    fn capabilities(&self) -> Capabilities {
        Capabilities { mtu: self.mtu, tx_checksum: false, segmentation: None, rx_coalesce: false }
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities().admit(packet)?;
        self.packet.resize(packet.len(), 0);
        packet.copy_to(&mut self.packet).ok_or(io::ErrorKind::InvalidInput)?;
        passing::send(&self.socket, &self.packet, &[])
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let packet = passing::receive(&self.socket, self.mtu, 0, &mut Vec::new())?;
        let packet = packet.ok_or_else(|| {
            io::Error::new(io::ErrorKind::ConnectionAborted, "the demultiplexing process has ended")
        })?;
        let (range, offload) = (0..packet.len(), RxOffload::default());
        Ok(RxPacket { buffer: packet.into(), range, offload })
    }

    fn recycle(&mut self, _buffer: PacketBuf) {}

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
