//! The interface between a kernel and the network.
//!
//! In: super-segments of the kernel are segmented and partial checksums completed, like in a network card, before they reach the first link.
//! Out: packets that have left the network are handed over one by one, as on a wire, so that the kernel sees the exact spacing of the links
//! and detects damage itself.

use std::io;
use std::os::fd::BorrowedFd;

use transom_device::tun::Tun;
use transom_device::{Device, SendError, TxPacket};
use transom_sim::network::{Network, NodeId};
use transom_tcp::time::Instant;
use transom_wire::offload::Segmenter;

use super::clock::Clock;
use super::fidelity::Lags;

/// A host's interface.
pub(super) struct HostInterface {
    /// The host in the network.
    pub(super) node: NodeId,
    tun: Tun,
    headers: Vec<u8>,
    /// The last known time at which the kernel had no packets for us: its present ones came later.
    pub(super) empty: Instant,
    /// Packets for which the kernel had no memory.
    pub(super) lost: u64,
    /// Packets that the kernel does not take for packets, or that are too long for it.
    pub(super) refused: u64,
}

impl HostInterface {
    pub(super) fn new(node: NodeId, tun: Tun) -> Self {
        HostInterface { node, tun, headers: Vec::new(), empty: Instant::ZERO, lost: 0, refused: 0 }
    }

    /// A descriptor that is readable when the kernel has packets.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.tun.poll_fd()
    }

    /// Takes the next packet or super-segment from the kernel; `None` if there is none. The segments are appended to `out`.
    pub(super) fn take_in(&mut self, out: &mut Vec<Vec<u8>>) -> io::Result<Option<()>> {
        let packet = match self.tun.recv() {
            Ok(packet) => packet,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Some(())),
            Err(error) => return Err(error),
        };
        let mut segments = Segmenter::for_received(packet.bytes(), &packet.offload);
        self.headers.resize(segments.headers_len(), 0);
        while let Ok(Some(segment)) = segments.next_segment(&mut self.headers) {
            let mut bytes = Vec::with_capacity(segment.total_len());
            bytes.extend_from_slice(self.headers.get(..segment.header_len).unwrap_or_default());
            segment.payload.iter().for_each(|part| bytes.extend_from_slice(part));
            out.push(bytes);
        }
        self.tun.recycle(packet.buffer);
        Ok(Some(()))
    }

    /// The kernel had nothing for us then.
    pub(super) fn empty_at(&mut self, at: Instant) {
        self.empty = self.empty.max(at);
    }

    /// Packets that came from the kernel and made no sense.
    pub(super) fn discarded(&self) -> u64 {
        self.tun.discarded()
    }

    /// Hands the kernel what has left the network.
    pub(super) fn deliver(
        &mut self,
        network: &mut Network,
        clock: Clock,
        lags: &mut Lags,
    ) -> io::Result<()> {
        while let Some((at, packet)) = network.take_departure(self.node) {
            lags.record(at, clock.now());
            match self.tun.send(&TxPacket::whole(&packet)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.lost += 1,
                Err(error) if is_refusal(&error) => self.refused += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether it is the packet's fault.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
        || error.get_ref().is_some_and(|inner| inner.is::<SendError>())
}
