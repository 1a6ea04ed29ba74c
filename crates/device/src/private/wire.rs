//! An interface with nobody else on it, by a packet socket: the far end of a veth pair, or `lo`.
//!
//! Other than on an [Ethernet](crate::packet) there are no neighbours to find: all frames go to one station and come from one. A virtio-net header
//! stands before each frame, so checksums stay open and super-segments whole, both ways (packet(7), `PACKET_VNET_HDR`).
//!
//! The kernel copies what arrives into the socket's buffer and drops what has no room. Without rights over the whole machine, `net.core.rmem_max` bounds that
//! buffer: 208 KB on most systems. A sender's window should not be larger.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::sock_filter;
use rustix::io::{Errno, retry_on_intr};
use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxOffload, VirtioNetHdr};

use crate::link::{ETHERNET_LEN, Mac};
use crate::packet::{front, inner};
use crate::{Capabilities, Device, RxPacket, SendError, TxPacket, af_packet, socket_option};

/// Bytes before an IP packet.
const FRONT: usize = VirtioNetHdr::LEN + ETHERNET_LEN;
/// The longest super-segment: what an IPv4 header can say.
const LONGEST: usize = 65_535;
const BUFFER: usize = 32 << 20;
/// Idle receive buffers, of 64 KB each.
const KEEP: usize = 64;

/// A packet socket on an interface.
#[derive(Debug)]
pub(super) struct Wire {
    socket: OwnedFd,
    name: String,
    station: Mac,
    capabilities: Capabilities,
    pool: BufferPool,
    spare: Option<PacketBuf>,
    pub(super) discarded: u64,
}

/// Takes no frame with this mark: `lo` brings back what we have sent ourselves. `SKF_AD_MARK` of linux/filter.h.
fn unmarked(mark: u32) -> [sock_filter; 4] {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let give = libc::BPF_RET | libc::BPF_K;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let instruction = |code: u32, jt, k| sock_filter { code: code as u16, jt, jf: 0, k };
    [
        instruction(load, 0, (libc::SKF_AD_OFF + libc::SKF_AD_MARK) as u32),
        instruction(equal, 1, mark),
        instruction(give, 0, 0x4_0000),
        instruction(give, 0, 0),
    ]
}

impl Wire {
    /// Opens a socket on the interface with this number, in the calling thread's namespace. Frames go to `station`. With a `mark`, packets that are sent have it, and
    /// those that have it are not received.
    pub(super) fn open(
        name: &str,
        index: u32,
        station: Mac,
        mtu: usize,
        mark: Option<u32>,
    ) -> io::Result<Self> {
        let socket = af_packet::open(BUFFER)?;
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        if let Some(mark) = mark {
            af_packet::attach_filter(&socket, &unmarked(mark))?;
            socket_option::set(&socket, libc::SOL_SOCKET, libc::SO_MARK, &mark)?;
        }
        af_packet::bind(&socket, index)?;
        Ok(Self::on(socket, name, station, mtu))
    }

    /// With a socket that [`Wire::open`] has opened, perhaps in another process.
    pub(super) fn on(socket: OwnedFd, name: &str, station: Mac, mtu: usize) -> Self {
        let capabilities =
            Capabilities { mtu, tx_checksum: true, segmentation: Some(LONGEST), rx_coalesce: true };
        let pool = BufferPool::new(FRONT + LONGEST + 40 + 1, KEEP);
        let name = name.to_owned();
        Wire { socket, name, station, capabilities, pool, spare: None, discarded: 0 }
    }

    /// For [`Wire::on`] in another process.
    pub(super) fn into_socket(self) -> (OwnedFd, Mac) {
        (self.socket, self.station)
    }

    /// Whether a buffer is of the size that is kept here.
    pub(super) fn owns(&self, buffer: &PacketBuf) -> bool {
        buffer.len() == FRONT + LONGEST + 40 + 1
    }

    fn failed(&self, errno: Errno) -> io::Error {
        match errno {
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV => {
                let why = format!("the interface {} has been removed", self.name);
                io::Error::new(io::ErrorKind::NetworkDown, why)
            }
            _ => errno.into(),
        }
    }
}

impl Device for Wire {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let header = VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
            .map_err(SendError::Offload)?;
        let front = front(header, self.station, self.station, packet.headers);
        let parts = [
            IoSlice::new(&front),
            IoSlice::new(packet.headers),
            IoSlice::new(packet.payload[0]),
            IoSlice::new(packet.payload[1]),
        ];
        match retry_on_intr(|| rustix::io::writev(&self.socket, &parts)) {
            Ok(_) => Ok(()),
            // The queue is full, or memory short; both pass.
            Err(Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let length = match retry_on_intr(|| rustix::io::readv(&self.socket, &mut parts)) {
                Ok(length) => length,
                Err(errno) => {
                    self.spare = Some(buffer);
                    return Err(self.failed(errno));
                }
            };
            let whole = length < buffer.len();
            match parse(buffer.get(..length).unwrap_or_default()) {
                Frame::Packet(offload) if whole => {
                    return Ok(RxPacket { buffer, range: FRONT..length, offload });
                }
                Frame::Other => {}
                _ => self.discarded += 1,
            }
            self.spare = Some(buffer);
        }
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

enum Frame {
    Packet(RxOffload),
    /// Of the kernel's own, such as neighbour discovery of other protocols.
    Other,
    /// It makes no sense.
    Bad,
}

fn parse(bytes: &[u8]) -> Frame {
    let kind = bytes
        .get(FRONT - 2..FRONT)
        .and_then(|kind| Some(u16::from_be_bytes(kind.try_into().ok()?)));
    match kind.map(i32::from) {
        Some(libc::ETH_P_IP | libc::ETH_P_IPV6) => {}
        Some(_) => return Frame::Other,
        None => return Frame::Bad,
    }
    let packet = bytes.get(FRONT..).filter(|packet| !packet.is_empty());
    let header = VirtioNetHdr::decode(bytes).ok().and_then(inner);
    let offload = packet.zip(header).and_then(|(packet, header)| header.rx_offload(packet).ok());
    offload.map_or(Frame::Bad, Frame::Packet)
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_make_no_sense_are_no_packets() {
        for length in 0..FRONT + 2 {
            for byte in [0, 1, 0x45, 255] {
                assert!(!matches!(parse(&vec![byte; length]), Frame::Packet(_)));
            }
        }
        let mut frame = vec![0; FRONT];
        frame[FRONT - 2..].copy_from_slice(&[0x08, 0x00]);
        // A header and nothing behind it, and one that asks for a checksum before the packet.
        assert!(matches!(parse(&frame), Frame::Bad));
        frame[0] = VirtioNetHdr::NEEDS_CSUM;
        frame.extend([0x45; 40]);
        assert!(matches!(parse(&frame), Frame::Bad));
    }
}
