//! A Linux TUN interface: IP packets between this process and the kernel's own network.
//!
//! Each `read` gives one packet that the kernel routed into the interface, each `write` is one
//! packet that the kernel takes as received from it. With `IFF_VNET_HDR` a virtio-net header stands
//! before each packet, and two things become possible that make the interface fast. A packet may
//! leave its checksum open, as the kernel trusts both itself and us. And a packet may be a
//! super-segment of up to 64 KB that goes through the whole stack in one piece. Towards the kernel
//! that takes only the header; from the kernel it takes `TUNSETOFFLOAD` as well, which an old
//! kernel may refuse in part. The device's [`Capabilities`] say which of them it got.
//!
//! Sending gathers the header and the packet's parts in one `writev`. Receiving reads straight into
//! a pooled buffer, header and all, of which [`RxPacket`]'s range then leaves the header out.
//! Neither allocates in steady state.
//!
//! The kernel keeps the packets we have not read yet in a queue of fixed length and drops what does
//! not fit, so the queue must hold what a peer may have in flight: see [`TunBuilder::queue_len`].
//!
//! ```no_run
//! use transom_device::namespace::{Namespace, enter_user_namespace};
//! use transom_device::tun::Tun;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! enter_user_namespace()?; // for an ordinary user, and before any thread is started
//! let namespace = Namespace::new()?;
//! // The kernel is 192.0.2.1; every other address of the network leads here.
//! let builder = Tun::builder().address("192.0.2.1/24".parse()?);
//! let mut device = namespace.run(|| builder.open())??;
//! # let _: &mut dyn transom_device::Device = &mut device;
//! # Ok(())
//! # }
//! ```

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxOffload, Segmenter, TxOffload, VirtioNetHdr};

use crate::device::{Head, MAX_HEAD, Received};
use crate::unflushed::Kept;
use crate::{Capabilities, Device, RxPacket, SendError, TxPacket};

mod builder;
mod handed_over;
mod inherited;
mod ioctl;
mod joining;

pub use builder::{TunBuilder, TunError, TunOffload};

/// An open TUN interface.
#[derive(Debug)]
pub struct Tun {
    descriptor: OwnedFd,
    name: String,
    index: u32,
    capabilities: Capabilities,
    /// Bytes before each packet: [`VirtioNetHdr::LEN`] or none.
    header_len: usize,
    pool: BufferPool,
    /// A buffer that a fruitless read has left.
    spare: Option<PacketBuf>,
    /// The virtio-net header of the packet received last in two parts.
    last_header: VirtioNetHdr,
    discarded: u64,
    /// The other queues, until they are taken.
    others: Vec<Tun>,
    /// Super-segments of smaller segments are cut here.
    min_segment: u16,
    /// Room for the headers of what is cut.
    cut_headers: Vec<u8>,
    /// What leaves with the next flush, where the kernel joins packets.
    joining: Option<Kept>,
}

impl Tun {
    /// The default settings, to be changed and opened.
    pub fn builder() -> TunBuilder {
        TunBuilder::new()
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's number in its network namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether the kernel joins packets that follow each other: see [`TunBuilder::joining`].
    pub fn joins(&self) -> bool {
        self.joining.is_some()
    }

    /// How many packets from the kernel were thrown away because they were longer than the MTU was
    /// when the device was opened, or because their virtio-net header made no sense.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// The same device with other queues of its interface, which it gives away with [`Device::take_queues`].
    pub fn with_queues(mut self, others: impl IntoIterator<Item = Tun>) -> Self {
        self.others.extend(others);
        self
    }

    /// The descriptors of all queues, if super-segments cross both ways.
    pub(crate) fn into_descriptors(self) -> Option<Vec<OwnedFd>> {
        let whole = self.capabilities.rx_coalesce && self.capabilities.segmentation.is_some();
        let others = self.others.into_iter().map(|queue| queue.descriptor);
        whole.then(|| std::iter::once(self.descriptor).chain(others).collect())
    }

    /// Leaves no super-segment to the kernel whose segments have less than `bytes` of payload: it is cut here. Some receivers reject
    /// shorter ones.
    pub fn with_min_segment(mut self, bytes: u16) -> Self {
        self.min_segment = bytes;
        self
    }

    /// Cuts a super-segment and sends the segments one by one.
    #[cold]
    fn send_cut(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        let mut segments = Segmenter::new(packet.headers, packet.payload, &packet.offload)
            .map_err(SendError::Offload)?;
        let mut headers = std::mem::take(&mut self.cut_headers);
        headers.resize(segments.headers_len(), 0);
        let mut outcome = Ok(());
        while let Ok(Some(segment)) = segments.next_segment(&mut headers) {
            let [first, second, third] = segment.payload;
            // The third part is what of the payload stood behind the headers.
            let all = [first, second, third].concat();
            let header = headers.get(..segment.header_len).unwrap_or_default();
            let payload: [&[u8]; 2] = [&all, &[]];
            let whole = TxPacket { headers: header, payload, offload: TxOffload::default() };
            outcome = outcome.and(self.write(&whole));
        }
        self.cut_headers = headers;
        outcome
    }

    /// Writes a packet as it is.
    fn write(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        let header = match self.header_len {
            0 => [0; VirtioNetHdr::LEN],
            _ => VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
                .map_err(SendError::Offload)?
                .encode(),
        };
        let parts = [
            IoSlice::new(&header[..self.header_len]),
            IoSlice::new(packet.headers),
            IoSlice::new(packet.payload[0]),
            IoSlice::new(packet.payload[1]),
        ];
        loop {
            match rustix::io::writev(&self.descriptor, &parts) {
                // The driver takes a packet as a whole or not at all.
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // The kernel is short of memory for packets, which passes.
                Err(Errno::NOBUFS | Errno::NOMEM) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(errno) => return Err(self.failed(errno)),
            }
        }
    }

    /// Sends what was kept. Nothing of it waits in the kernel afterwards.
    fn send_kept(&mut self) {
        let Some(mut kept) = self.joining.take_if(|kept| !kept.is_empty()) else { return };
        joining::end_batch(&mut kept);
        // One `write` takes one packet.
        kept.send_by(|packets| {
            let first = packets.first().map_or(&[][..], |packet| packet);
            rustix::io::write(&self.descriptor, first).map(|_| 1)
        });
        self.joining = Some(kept);
    }

    /// Sends a packet at once, which the kernel then does not keep, after those that were kept.
    fn send_alone(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send_kept();
        let Some(mut kept) = self.joining.take() else { return self.write(packet) };
        let fits = kept.keep(&[packet.headers, packet.payload[0], packet.payload[1]]);
        joining::end_batch(&mut kept);
        let outcome = match fits {
            true => self.write(&TxPacket::whole(kept.packet(0))),
            // Not with an MTU at which packets are joined.
            false => self.write(packet),
        };
        kept.clear();
        self.joining = Some(kept);
        outcome
    }

    /// The meaning of an error of the driver.
    fn failed(&self, errno: Errno) -> io::Error {
        match errno {
            // The descriptor is still there, and what it belonged to is not (tun_chr_read_iter() and its like).
            Errno::BADFD => {
                let why = format!("the interface {} has been removed", self.name);
                io::Error::new(io::ErrorKind::NetworkDown, why)
            }
            _ => errno.into(),
        }
    }
}

/// The offload state in the header before a packet; `None` if it makes no sense or there is no packet behind
/// it.
fn parse_header(header_len: usize, read: &[u8]) -> Option<RxOffload> {
    if header_len == 0 {
        return (!read.is_empty()).then(RxOffload::default);
    }
    let packet = read.get(header_len..)?;
    let offload = VirtioNetHdr::decode(read).and_then(|header| header.rx_offload(packet));
    offload.ok().filter(|_| !packet.is_empty())
}

impl Device for Tun {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        if self.joining.is_some() {
            return self.send_alone(packet);
        }
        match packet.offload.segmentation {
            Some(cut) if cut.segment_size < self.min_segment => self.send_cut(packet),
            _ => self.write(packet),
        }
    }

    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        if self.joining.as_ref().is_some_and(Kept::is_full) {
            self.send_kept();
        }
        let Some(kept) = &mut self.joining else { return self.send(packet) };
        self.capabilities.admit(packet)?;
        match kept.keep(&[packet.headers, packet.payload[0], packet.payload[1]]) {
            true => Ok(()),
            false => self.send_alone(packet),
        }
    }

    fn flush(&mut self) -> usize {
        self.send_kept();
        self.joining.as_mut().map_or(0, Kept::take_lost)
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
            let bytes = &mut buffer[..];
            let length = match rustix::io::read(&self.descriptor, &mut *bytes) {
                Ok(length) => length,
                Err(errno) => {
                    self.spare = Some(buffer);
                    match errno {
                        Errno::INTR => continue,
                        // A packet the kernel could not hand over is gone; the next one may be there.
                        Errno::INVAL | Errno::NOMEM => {
                            self.discarded += 1;
                            return Err(io::ErrorKind::Interrupted.into());
                        }
                        _ => return Err(self.failed(errno)),
                    }
                }
            };
            let whole = length < bytes.len();
            match parse_header(self.header_len, bytes.get(..length).unwrap_or_default()) {
                Some(offload) if whole => {
                    return Ok(RxPacket { buffer, range: self.header_len..length, offload });
                }
                _ => {
                    self.discarded += 1;
                    self.spare = Some(buffer);
                }
            }
        }
    }

    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        let longest = self.capabilities.segmentation.unwrap_or(self.capabilities.mtu);
        if head_len > MAX_HEAD || head_len + body.len() < longest {
            return self.recv().map(Received::Whole);
        }
        let mut head = [0; VirtioNetHdr::LEN + MAX_HEAD];
        let front = self.header_len + head_len;
        // One byte more than fits tells a packet that is too long from one that just fits.
        let mut beyond = [0];
        let length = loop {
            let mut parts = [
                IoSliceMut::new(&mut head[..front]),
                IoSliceMut::new(body),
                IoSliceMut::new(&mut beyond),
            ];
            match rustix::io::readv(&self.descriptor, &mut parts) {
                Ok(length) => break length,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed(errno)),
            }
        };
        let body_len = length.saturating_sub(front);
        let head_bytes = &head[self.header_len.min(length)..front.min(length)];
        if body_len > body.len() || head_bytes.is_empty() {
            self.discarded += 1;
            return Err(io::ErrorKind::Interrupted.into());
        }
        let header = match self.header_len {
            0 => VirtioNetHdr::default(),
            _ => VirtioNetHdr::decode(&head).unwrap_or_default(),
        };
        self.last_header = header;
        let head = Head::new(head_bytes);
        match header.claimed_offload(u16::try_from(head_len).unwrap_or(u16::MAX)) {
            Ok(offload) if body_len > 0 => Ok(Received::Split { head, body_len, offload }),
            _ => match self.gather(&head, body.get(..body_len).unwrap_or_default()) {
                Some(packet) => Ok(Received::Whole(packet)),
                None => Err(io::ErrorKind::Interrupted.into()),
            },
        }
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        let head = head.bytes();
        let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
        let length = head.len() + body.len();
        if buffer.len() < length {
            buffer = vec![0; length].into();
        }
        let bytes = &mut buffer[..];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..length].copy_from_slice(body);
        let offload = match self.header_len {
            0 => Ok(RxOffload::default()),
            _ => self.last_header.rx_offload(&bytes[..length]),
        };
        match offload {
            Ok(offload) => Some(RxPacket { buffer, range: 0..length, offload }),
            Err(_) => {
                self.discarded += 1;
                self.spare = Some(buffer);
                None
            }
        }
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Device>> {
        let others = std::mem::take(&mut self.others).into_iter();
        others.map(|queue| Box::new(queue) as Box<dyn Device>).collect()
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }
}
