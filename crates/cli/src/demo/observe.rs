//! Records the packets at the host's device for the plots: every data segment and acknowledgement with
//! its time.

use std::io;
use std::sync::{Arc, Mutex};
use transom_device::{Capabilities, Device, Head, Received, RxPacket, TxPacket};
use transom_report::ByteTraces;
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::Instant;
use transom_wire::{Flags, IpPacket, Seq, TcpPacket};

use crate::thread::lock;

/// The demo's clock: everything is plotted against the time since its start.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    started: std::time::Instant,
}

impl Timeline {
    pub(crate) fn start() -> Self {
        Timeline { started: std::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed().into()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// The positions of one direction of one connection.
#[derive(Clone, Copy, Debug)]
struct Stream {
    first: Seq,
    /// Bytes from the first to the highest seen.
    highest: u64,
}

impl Stream {
    /// Bytes from the first data byte to `seq`, which lies near the highest seen.
    fn offset(&self, seq: Seq) -> u64 {
        let highest = self.first + (self.highest as u32);
        self.highest.saturating_add_signed(i64::from(seq.distance_from(highest)))
    }
}

/// Both directions as seen at the host's device.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The host's data, and the acknowledgements for it.
    pub(crate) outbound: ByteTraces,
    /// The data that the host received, and its acknowledgements.
    pub(crate) inbound: ByteTraces,
    streams: [Option<Stream>; 2],
}

impl Seen {
    /// Starts over for the next connection.
    pub(crate) fn take(&mut self) -> Seen {
        std::mem::take(self)
    }

    fn note(&mut self, seconds: f64, outbound: bool, head: &[u8], total: usize) {
        let Some((tcp_header, payload)) = read(head, total) else { return };
        let own = usize::from(outbound);
        let flags = tcp_header.flags;
        if flags.contains(Flags::SYN) {
            self.streams[own] = Some(Stream { first: tcp_header.seq + 1, highest: 0 });
            return;
        }
        let (mine, other) = if outbound {
            (&mut self.outbound, &mut self.inbound)
        } else {
            (&mut self.inbound, &mut self.outbound)
        };
        if let Some(stream) = &mut self.streams[own]
            && payload > 0
        {
            let end = stream.offset(tcp_header.seq) + payload as u64;
            if end > stream.highest {
                stream.highest = end;
                mine.sent.push((seconds, end as f64));
            } else {
                mine.resent.push((seconds, end as f64));
            }
        }
        if let Some(stream) = &self.streams[1 - own]
            && flags.contains(Flags::ACK)
        {
            other.acked.push((seconds, stream.offset(tcp_header.ack) as f64));
        }
    }
}

/// The TCP header at the start of `head`, and the payload's length in a packet of `total` bytes.
fn read(head: &[u8], total: usize) -> Option<(transom_wire::TcpHeader, usize)> {
    // Only the headers are at hand, so lengths are checked against the whole packet's.
    let ip_len = match head.first()? >> 4 {
        4 => usize::from(head.first()? & 15) * 4,
        _ => 40,
    };
    let tcp = TcpPacket::parse(head.get(ip_len..)?).ok()?;
    let headers = ip_len + tcp.header_len();
    Some((tcp.header, total.checked_sub(headers)?))
}

/// A device that notes what passes.
pub(crate) struct Observed<D> {
    inner: D,
    timeline: Timeline,
    seen: Arc<Mutex<Seen>>,
}

impl<D: Device> Observed<D> {
    pub(crate) fn new(inner: D, timeline: Timeline, seen: Arc<Mutex<Seen>>) -> Self {
        Observed { inner, timeline, seen }
    }

    fn note(&self, outbound: bool, head: &[u8], total: usize) {
        let mut seen = lock(&self.seen);
        seen.note(self.timeline.seconds(), outbound, head, total);
    }
}

impl<D: Device> Device for Observed<D> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.note(true, packet.headers, packet.len());
        self.inner.send(packet)
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let packet = self.inner.recv()?;
        if let Ok(ip) = IpPacket::parse(packet.bytes()) {
            self.note(false, packet.bytes(), ip.total_len());
        }
        Ok(packet)
    }

    fn recv_scattered(&mut self, _head_len: usize, _body: &mut [u8]) -> io::Result<Received> {
        // Whole packets are easier to look at, and speed is not the point here.
        self.recv().map(Received::Whole)
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        self.inner.gather(head, body)
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.inner.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.inner.poll_fd()
    }
}
