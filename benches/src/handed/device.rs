//! The device of a process that is handed its packets.

use super::ring::Ring;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use transom_device::{
    Capabilities, Device, Head, MAX_HEAD, Received, RxPacket, SendError, TxPacket,
};
use transom_tcp::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxOffload, VirtioNetHdr};

/// The longest packet with its virtio-net header.
const LONGEST: usize = VirtioNetHdr::LEN + 65_535;

/// Packets by way of another process.
#[derive(Debug)]
pub struct HandedDevice {
    capabilities: Capabilities,
    inward: Ring,
    outward: Ring,
    pool: BufferPool,
    last_header: VirtioNetHdr,
}

impl HandedDevice {
    /// With these two rings, behind an interface that can do this.
    pub(super) fn new(capabilities: Capabilities, inward: Ring, outward: Ring) -> Self {
        let pool = BufferPool::new(LONGEST, 256);
        let last_header = VirtioNetHdr::default();
        HandedDevice { capabilities, inward, outward, pool, last_header }
    }

    /// Whether the other process has sent all that it was given.
    pub fn is_sent(&self) -> bool {
        self.outward.is_empty()
    }

    /// The next packet and its virtio-net header; `Err` if there is none.
    fn front(&self) -> io::Result<(VirtioNetHdr, &[u8])> {
        let record = match self.inward.front() {
            Some(record) => record,
            None if self.inward.prepare_to_sleep() => return Err(io::ErrorKind::WouldBlock.into()),
            None => self.inward.front().ok_or(io::ErrorKind::WouldBlock)?,
        };
        let header = VirtioNetHdr::decode(record).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok((header, record.get(VirtioNetHdr::LEN..).unwrap_or_default()))
    }

    /// A packet that is held elsewhere already, in a buffer.
    fn whole(&mut self, header: VirtioNetHdr, parts: [&[u8]; 2]) -> Option<RxPacket> {
        let mut buffer = self.pool.take();
        let mut length = 0;
        for part in parts {
            buffer.get_mut(length..length + part.len())?.copy_from_slice(part);
            length += part.len();
        }
        let offload: RxOffload = header.rx_offload(buffer.get(..length)?).ok()?;
        Some(RxPacket { buffer, range: 0..length, offload })
    }
}

impl Device for HandedDevice {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let header = VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
            .map_err(SendError::Offload)?;
        let record = self.outward.reserve(VirtioNetHdr::LEN + packet.len());
        let record = record.ok_or(io::ErrorKind::WouldBlock)?;
        let (front, rest) = record.split_at_mut(VirtioNetHdr::LEN);
        front.copy_from_slice(&header.encode());
        packet.copy_to(rest).ok_or(io::ErrorKind::InvalidInput)?;
        self.outward.commit();
        Ok(())
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let mut buffer = self.pool.take();
        let (header, packet) = self.front()?;
        let length = packet.len();
        let place = buffer.get_mut(..length).ok_or(io::ErrorKind::InvalidData)?;
        place.copy_from_slice(packet);
        let offload = header.rx_offload(packet);
        self.inward.pop();
        let offload = offload.map_err(|_| io::ErrorKind::Interrupted)?;
        Ok(RxPacket { buffer, range: 0..length, offload })
    }

    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        let (header, packet) = self.front()?;
        let body_len = packet.len().saturating_sub(head_len);
        let claimed = header.claimed_offload(u16::try_from(head_len).unwrap_or(u16::MAX));
        let (true, Ok(offload)) = ((1..=body.len()).contains(&body_len), claimed) else {
            return self.recv().map(Received::Whole);
        };
        if head_len > MAX_HEAD {
            return self.recv().map(Received::Whole);
        }
        let (first, rest) = packet.split_at(head_len);
        let head = Head::new(first);
        body[..body_len].copy_from_slice(rest);
        self.last_header = header;
        self.inward.pop();
        Ok(Received::Split { head, body_len, offload })
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        self.whole(self.last_header, [head.bytes(), body])
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inward.as_fd())
    }
}
