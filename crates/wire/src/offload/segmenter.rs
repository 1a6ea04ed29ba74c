//! Segmentation and checksum completion in software.
//!
//! A super-segment is one set of headers with more payload than a segment may carry. Every segment
//! cut from it has those headers, except (as network cards and Linux do it):
//!
//! - the sequence number advances by the payload before it;
//! - FIN and PSH are on the last segment only, CWR on the first only (so a sender of accurate ECN,
//!   RFC 9768, whose CWR is part of a counter, must not leave segments with CWR to be cut);
//! - the urgent pointer keeps pointing at the same octet, and URG ends behind it;
//! - the IPv4 identification counts up; lengths and checksums are each segment's own.
//!
//! The payload is not copied: headers are written to the caller's buffer, payload is handed out in
//! slices of the original.

use super::{RxChecksum, RxOffload, SegmentKind, Segmentation, TxChecksum, TxOffload};
use crate::checksum::{self, Sum};
use crate::ip::{IpPacket, Protocol};
use crate::tcp::Flags;
use crate::{Error, Ipv6Header, Seq, tcp};

/// Offsets in the TCP header.
const SEQ: usize = 4;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const URGENT: usize = 18;

/// Places of IPv4 header fields, in bytes.
const TOTAL_LEN: usize = 2;
const ID: usize = 4;
const IP_CHECKSUM: usize = 10;

/// One packet as it goes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// How many bytes were written to the caller's buffer; the packet begins with them.
    pub header_len: usize,
    /// The payload behind them.
    pub payload: [&'a [u8]; 3],
}

impl Segment<'_> {
    /// The packet's length in bytes.
    pub fn total_len(&self) -> usize {
        self.payload.iter().fold(self.header_len, |len, slice| len + slice.len())
    }
}

/// Turns a packet with work left open into the packets that go on the wire.
#[derive(Clone, Debug)]
pub struct Segmenter<'a> {
    headers: &'a [u8],
    payload: [&'a [u8]; 3],
    work: Work,
}

/// The work that is left.
#[derive(Clone, Debug)]
enum Work {
    /// One packet, with its checksum to be stored.
    Whole(Option<Checksum>),
    /// Segments.
    Cut(Cut),
    Done,
}

/// The place of a checksum, and the sum to add to that of the bytes.
#[derive(Clone, Debug)]
struct Checksum {
    start: usize,
    offset: usize,
    initial: Sum,
}

#[derive(Clone, Debug)]
struct Cut {
    kind: SegmentKind,
    segment_size: usize,
    /// The offset of the TCP header.
    tcp_at: usize,
    /// The super-segment's own fields of which each segment gets its version.
    fields: Fields,
    /// Sums of what all segments share, taken once: the IP header without length, identification and checksum; and the
    /// pseudo-header's addresses and protocol with the TCP header without those fields and the checksum.
    ip_sum: Sum,
    tcp_sum: Sum,
    /// Segments handed out so far, and their payload in bytes.
    segments: u16,
    payload_done: u32,
}

/// The fields in which the segments of a super-segment differ.
#[derive(Clone, Copy, Debug)]
struct Fields {
    /// IPv4 identification; zero for IPv6.
    id: u16,
    seq: Seq,
    /// Data offset and reserved bits, as they stand before the flags.
    offset: u16,
    flags: Flags,
    urgent: u16,
}

impl<'a> Segmenter<'a> {
    /// Starts on a packet to be sent: `headers` and, behind them, `payload`.
    ///
    /// `headers` may be the whole packet. For a super-segment it reaches at least to the end of the
    /// TCP header.
    ///
    /// # Errors
    /// [`Error::BadOffload`] if the request is impossible for the packet: see
    /// [`VirtioNetHdr::for_packet`](super::VirtioNetHdr::for_packet); also for a super-segment with
    /// SYN or RST, and [`Error::TooLong`] if its segments would exceed 65,535 bytes.
    pub fn new(
        headers: &'a [u8],
        payload: [&'a [u8]; 2],
        offload: &TxOffload,
    ) -> Result<Self, Error> {
        let TxOffload { checksum, segmentation } = *offload;
        let checksum = match checksum {
            TxChecksum::Complete => None,
            TxChecksum::Partial { start, offset } => {
                Some((usize::from(start), usize::from(offset)))
            }
        };
        match (segmentation, checksum) {
            (Some(segmentation), Some((start, offset))) if offset == tcp::CHECKSUM_OFFSET => {
                Self::cut(headers, payload, segmentation, start)
            }
            (Some(_), _) => Err(Error::BadOffload),
            (None, None) => Ok(Self::whole(headers, payload, None)),
            (None, Some((start, offset))) => {
                let field = headers.get(start + offset..).and_then(|rest| rest.first_chunk::<2>());
                let partial = u16::from_be_bytes(*field.ok_or(Error::BadOffload)?);
                let checksum = Checksum { start, offset, initial: Sum(partial) };
                Ok(Self::whole(headers, payload, Some(checksum)))
            }
        }
    }

    /// Starts on a received packet, to see it as it might have looked on the wire: segments of a
    /// super-segment apart, and checksums that are known to be valid in their field.
    ///
    /// A packet that is not what `offload` says comes out as it is.
    pub fn for_received(packet: &'a [u8], offload: &RxOffload) -> Self {
        Self::received(packet, offload).unwrap_or_else(|_| Self::whole(&[], [packet, &[]], None))
    }

    fn received(packet: &'a [u8], offload: &RxOffload) -> Result<Self, Error> {
        let as_is = Self::whole(&[], [packet, &[]], None);
        let RxOffload { checksum, segmentation } = *offload;
        if segmentation.is_none() && checksum == RxChecksum::Unverified {
            return Ok(as_is);
        }
        let ip = IpPacket::parse(packet)?;
        let start = ip.header_len();
        // Bytes behind the packet are not part of it, and not of its checksum.
        let packet = packet.get(..ip.total_len()).ok_or(Error::Truncated)?;
        if let Some(segmentation) = segmentation {
            return Self::cut(packet, [&[], &[]], segmentation, start);
        }
        let Some(offset) = super::checksum_offset(&ip) else { return Ok(as_is) };
        let transport_len = u32::try_from(ip.payload().len()).map_err(|_| Error::TooLong)?;
        let initial = checksum::pseudo_header(ip.src(), ip.dst(), ip.protocol(), transport_len);
        let (headers, payload) =
            packet.split_at_checked(start + offset + 2).ok_or(Error::Truncated)?;
        let checksum = Checksum { start, offset, initial };
        Ok(Self::whole(headers, [payload, &[]], Some(checksum)))
    }

    fn whole(headers: &'a [u8], payload: [&'a [u8]; 2], checksum: Option<Checksum>) -> Self {
        let [first, second] = payload;
        Segmenter { headers, payload: [first, second, &[]], work: Work::Whole(checksum) }
    }

    fn cut(
        bytes: &'a [u8],
        payload: [&'a [u8]; 2],
        segmentation: Segmentation,
        tcp_at: usize,
    ) -> Result<Self, Error> {
        let Segmentation { kind, segment_size, header_len } = segmentation;
        let (headers, rest) = bytes.split_at_checked(header_len.into()).ok_or(Error::BadOffload)?;
        let tcp = headers.get(tcp_at..).ok_or(Error::BadOffload)?;
        let tcp = tcp.first_chunk::<{ tcp::MIN_HEADER_LEN }>().ok_or(Error::BadOffload)?;
        let tcp_len = usize::from(tcp[DATA_OFFSET] >> 4) * 4;
        let flags = Flags::from_bits_truncate(tcp[FLAGS].into());
        let segment_size = usize::from(segment_size);
        if tcp_len < tcp::MIN_HEADER_LEN
            || tcp_at + tcp_len != headers.len()
            || flags.intersects(Flags::SYN | Flags::RST)
            || segment_size == 0
        {
            return Err(Error::BadOffload);
        }
        let [first, second] = payload;
        let payload = [rest, first, second];
        let payload_len = payload.iter().fold(0usize, |len, slice| len.saturating_add(slice.len()));
        if headers.len() + segment_size.min(payload_len) > usize::from(u16::MAX) {
            return Err(Error::TooLong);
        }
        let addresses = addresses(kind, headers, tcp_at)?;
        let pseudo_header = Sum::of(addresses) + Sum(Protocol::TCP.0.into());
        let (ip, tcp) = headers.split_at_checked(tcp_at).ok_or(Error::BadOffload)?;
        let fields = Fields::of(kind, ip, tcp)?;
        let word = |bytes: &[u8], at: usize| load(bytes, at).map(Sum);
        // Ones-complement: taking a word out is adding its complement.
        let without = |sum: Sum, word: Sum| sum + Sum(!word.0);
        let ip_sum = match kind {
            SegmentKind::Tcp4 => [TOTAL_LEN, ID, IP_CHECKSUM]
                .into_iter()
                .try_fold(Sum::of(ip), |sum, at| Ok::<_, Error>(without(sum, word(ip, at)?)))?,
            SegmentKind::Tcp6 => Sum(0),
        };
        let tcp_sum = [SEQ, SEQ + 2, DATA_OFFSET, tcp::CHECKSUM_OFFSET, URGENT]
            .into_iter()
            .try_fold(Sum::of(tcp), |sum, at| Ok::<_, Error>(without(sum, word(tcp, at)?)))?;
        let cut = Cut {
            kind,
            segment_size,
            tcp_at,
            fields,
            ip_sum,
            tcp_sum: pseudo_header + tcp_sum,
            segments: 0,
            payload_done: 0,
        };
        Ok(Segmenter { headers, payload, work: Work::Cut(cut) })
    }

    /// How many bytes of buffer [`next_segment`](Self::next_segment) needs.
    pub fn headers_len(&self) -> usize {
        self.headers.len()
    }

    /// The next packet: its first bytes are written to `out`, the others are in the result. `None`
    /// after the last.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] if `out` is shorter than [`headers_len`](Self::headers_len);
    /// nothing is lost then.
    pub fn next_segment(&mut self, out: &mut [u8]) -> Result<Option<Segment<'a>>, Error> {
        if matches!(self.work, Work::Done) {
            return Ok(None);
        }
        let header_len = self.headers.len();
        let out = out.get_mut(..header_len).ok_or(Error::BufferTooSmall)?;
        out.copy_from_slice(self.headers);
        let payload = match &mut self.work {
            Work::Done => return Ok(None),
            Work::Whole(checksum) => {
                if let Some(checksum) = checksum {
                    checksum.store(out, &self.payload)?;
                }
                self.work = Work::Done;
                self.payload
            }
            Work::Cut(cut) => {
                let payload = take(&mut self.payload, cut.segment_size);
                let is_last = self.payload.iter().all(|slice| slice.is_empty());
                cut.write_headers(out, &payload, is_last)?;
                if is_last {
                    self.work = Work::Done;
                }
                payload
            }
        };
        Ok(Some(Segment { header_len, payload }))
    }
}

/// The bytes of source and destination address, in a header of the version that `kind` says.
fn addresses(kind: SegmentKind, headers: &[u8], transport_at: usize) -> Result<&[u8], Error> {
    let first = *headers.first().ok_or(Error::BadOffload)?;
    let (range, fits) = match kind {
        SegmentKind::Tcp4 => {
            let header_len = usize::from(first & 15) * 4;
            (12..20, first >> 4 == 4 && header_len == transport_at)
        }
        SegmentKind::Tcp6 => (8..40, first >> 4 == 6),
    };
    if !fits || transport_at < range.end {
        return Err(Error::BadOffload);
    }
    headers.get(range).ok_or(Error::BadOffload)
}

/// Takes up to `len` bytes off the front of `slices`.
fn take<'a>(slices: &mut [&'a [u8]; 3], mut len: usize) -> [&'a [u8]; 3] {
    slices.each_mut().map(|slice| {
        let (taken, rest) = slice.split_at(len.min(slice.len()));
        len -= taken.len();
        *slice = rest;
        taken
    })
}

impl Checksum {
    /// Stores the checksum of everything from `start` on.
    fn store(&self, headers: &mut [u8], payload: &[&[u8]; 3]) -> Result<(), Error> {
        let summed = headers.get_mut(self.start..).ok_or(Error::BadOffload)?;
        checksum::store(summed, self.offset, 0)?;
        let sum = Sum::of(summed).followed_by(summed.len(), Sum::of_slices(payload));
        checksum::store(summed, self.offset, super::transmitted(self.initial + sum, self.offset))
    }
}

impl Cut {
    /// Turns the super-segment's headers into those of the next segment.
    fn write_headers(
        &mut self,
        headers: &mut [u8],
        payload: &[&[u8]; 3],
        is_last: bool,
    ) -> Result<(), Error> {
        let payload_len = payload.iter().map(|slice| slice.len()).sum::<usize>();
        let total_len = u16::try_from(headers.len() + payload_len).map_err(|_| Error::TooLong)?;
        let (ip, tcp) = headers.split_at_mut_checked(self.tcp_at).ok_or(Error::BadOffload)?;
        match self.kind {
            SegmentKind::Tcp4 => self.finish_ipv4(ip, total_len)?,
            SegmentKind::Tcp6 => {
                checksum::store(ip, 4, total_len.saturating_sub(Ipv6Header::LEN as u16))?;
            }
        }
        self.finish_tcp(tcp, payload, payload_len, is_last)?;
        self.segments = self.segments.wrapping_add(1);
        self.payload_done = self.payload_done.wrapping_add(payload_len as u32);
        Ok(())
    }

    fn finish_ipv4(&self, ip: &mut [u8], total_len: u16) -> Result<(), Error> {
        let id = self.fields.id.wrapping_add(self.segments);
        let sum = self.ip_sum + Sum(total_len) + Sum(id);
        checksum::store(ip, TOTAL_LEN, total_len)?;
        checksum::store(ip, ID, id)?;
        checksum::store(ip, IP_CHECKSUM, sum.checksum())
    }

    fn finish_tcp(
        &self,
        tcp: &mut [u8],
        payload: &[&[u8]; 3],
        payload_len: usize,
        is_last: bool,
    ) -> Result<(), Error> {
        let segment_len = u32::try_from(tcp.len() + payload_len).map_err(|_| Error::TooLong)?;
        let Fields { id: _, seq, offset, mut flags, urgent } = self.fields;
        let seq = seq + self.payload_done;
        if !is_last {
            flags.remove(Flags::FIN | Flags::PSH);
        }
        if self.segments != 0 {
            flags.remove(Flags::CWR);
        }
        let mut pointer = urgent;
        if flags.contains(Flags::URG) {
            // The pointer is an offset from the segment's own sequence number (RFC 9293 3.1).
            pointer = u32::from(urgent).saturating_sub(self.payload_done) as u16;
            if pointer == 0 && self.payload_done != 0 {
                flags.remove(Flags::URG);
            }
        }
        let offset_and_flags = offset | flags.bits() & 0x00ff;
        // From the values, not from the bytes just written: those would have to be waited for.
        let own = u64::from(seq.get())
            + u64::from(segment_len)
            + u64::from(offset_and_flags)
            + u64::from(pointer);
        let sum = self.tcp_sum + Sum::of_value(own) + Sum::of_slices(payload);
        let fixed = tcp.first_chunk_mut::<{ tcp::MIN_HEADER_LEN }>().ok_or(Error::BadOffload)?;
        fixed[SEQ..SEQ + 4].copy_from_slice(&seq.get().to_be_bytes());
        fixed[DATA_OFFSET..DATA_OFFSET + 2].copy_from_slice(&offset_and_flags.to_be_bytes());
        fixed[tcp::CHECKSUM_OFFSET..tcp::CHECKSUM_OFFSET + 2]
            .copy_from_slice(&sum.checksum().to_be_bytes());
        fixed[URGENT..URGENT + 2].copy_from_slice(&pointer.to_be_bytes());
        Ok(())
    }
}

impl Fields {
    fn of(kind: SegmentKind, ip: &[u8], tcp: &[u8]) -> Result<Self, Error> {
        let id = match kind {
            SegmentKind::Tcp4 => load(ip, ID)?,
            SegmentKind::Tcp6 => 0,
        };
        let seq = u32::from(load(tcp, SEQ)?) << 16 | u32::from(load(tcp, SEQ + 2)?);
        let offset_and_flags = load(tcp, DATA_OFFSET)?;
        Ok(Fields {
            id,
            seq: Seq::new(seq),
            offset: offset_and_flags & 0xff00,
            flags: Flags::from_bits_truncate(offset_and_flags & 0x00ff),
            urgent: load(tcp, URGENT)?,
        })
    }
}

/// Reads a 16-bit field.
fn load(bytes: &[u8], offset: usize) -> Result<u16, Error> {
    let field = bytes.get(offset..).and_then(|rest| rest.first_chunk::<2>());
    field.map(|field| u16::from_be_bytes(*field)).ok_or(Error::Truncated)
}
