//! A flow's key, and its record.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use transom_base::time::{Duration, Instant};
use transom_wire::Seq;

use super::segment::Segment;

/// The data of one direction of a TCP connection.
///
/// A connection that sends data both ways has a flow in each direction, and each has its own queue.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowKey {
    /// As words: a slot of the table is exactly a cache line.
    sender: [u32; 4],
    receiver: [u32; 4],
    /// The sender's port and the receiver's.
    ports: u32,
}

const fn words(address: u128) -> [u32; 4] {
    [(address >> 96) as u32, (address >> 64) as u32, (address >> 32) as u32, address as u32]
}

const fn ports(sender: u16, receiver: u16) -> u32 {
    (sender as u32) << 16 | receiver as u32
}

fn socket(words: [u32; 4], port: u16) -> SocketAddr {
    let address = words.iter().fold(0u128, |sum, word| sum << 32 | u128::from(*word));
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(address)).to_canonical(), port)
}

impl FlowKey {
    /// The flow that a segment going forward belongs to.
    pub(super) const fn forward(segment: &Segment) -> Self {
        FlowKey {
            sender: words(segment.src),
            receiver: words(segment.dst),
            ports: ports(segment.src_port, segment.dst_port),
        }
    }

    /// The flow that a returning segment acknowledges.
    pub(super) const fn returning(segment: &Segment) -> Self {
        FlowKey {
            sender: words(segment.dst),
            receiver: words(segment.src),
            ports: ports(segment.dst_port, segment.src_port),
        }
    }

    /// The address and port of the data's sender.
    fn sender(&self) -> SocketAddr {
        socket(self.sender, (self.ports >> 16) as u16)
    }

    /// The receiver's address.
    fn receiver(&self) -> SocketAddr {
        socket(self.receiver, self.ports as u16)
    }
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let [a, b, c, d] = self.sender;
        let [e, f, g, h] = self.receiver;
        // An IPv4 address is one word; the rest is the same for all of them.
        if (a, b, c, e, f, g) == (0, 0, 0xffff, 0, 0, 0xffff) {
            state.write_u64(pair(d, h));
            state.write_u32(self.ports);
        } else {
            for word in [pair(a, b), pair(c, d), pair(e, f), pair(g, h)] {
                state.write_u64(word);
            }
            state.write_u32(self.ports);
        }
    }
}

impl core::fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} -> {}", self.sender(), self.receiver())
    }
}

/// The record of a flow: 28 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// When something of it was last seen, in milliseconds that wrap.
    pub(super) seen: u32,
    pub(super) phase: Phase,
}

impl Record {
    /// Whether the handshake has been seen, so that its windows can be read and written.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Its handshake is under way.
    Opening(Opening),
    /// Its windows can be written.
    Open(Open),
    /// Its packets were inconsistent: they pass unchanged until the record is dropped.
    #[default]
    Lost,
}

/// The information from the SYNs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The sender's initial sequence number, from its SYN or what the receiver's SYN acknowledges; unknown in
    /// [`Step::CalledBack`].
    pub(super) iss: Seq,
    /// The receiver's; unknown in [`Step::Called`].
    pub(super) irs: Seq,
    /// When the first SYN passed, in microseconds that wrap.
    pub(super) began: u32,
    /// The furthest edge beyond its SYN that the sender has seen, in bytes, from a SYN of the receiver or an unproven ACK on
    /// this side of the router. The window of a SYN is never scaled (RFC 7323 2.2), and a SYN may acknowledge data in the
    /// sender's (RFC 7413).
    pub(super) seen_edge: u32,
    /// The receiver's MSS option, or the default (RFC 9293 3.7.1).
    pub(super) mss: u16,
    pub(super) syn_flags: SynFlags,
    pub(super) step: Step,
}

/// Flags of the SYNs' windows, in one byte: a record has no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct SynFlags(u8);

impl SynFlags {
    /// The lower half is the receiver's shift.
    const SHIFT: u8 = 15;
    const SENDER_SCALES: u8 = 1 << 4;
    const RECEIVER_SCALES: u8 = 1 << 5;
    const LOWERED: u8 = 1 << 6;
    const EARLY: u8 = 1 << 7;

    /// Whether the sender's SYN offered to scale windows.
    #[must_use]
    pub(super) const fn sender_scales(self, scales: bool) -> Self {
        let others = self.0 & !SynFlags::SENDER_SCALES;
        SynFlags(if scales { others | SynFlags::SENDER_SCALES } else { others })
    }

    /// The shift in the receiver's SYN, if it has one; at most 14.
    #[must_use]
    pub(super) const fn receiver_scale(self, scale: Option<u8>) -> Self {
        let others = self.0 & !(SynFlags::RECEIVER_SCALES | SynFlags::SHIFT);
        SynFlags(match scale {
            Some(shift) => others | SynFlags::RECEIVER_SCALES | (shift & SynFlags::SHIFT),
            None => others,
        })
    }

    /// The window of a SYN of the receiver was lowered in passing.
    #[must_use]
    pub(super) const fn lowered(self) -> Self {
        SynFlags(self.0 | SynFlags::LOWERED)
    }

    /// Whether one was.
    pub(super) const fn is_lowered(self) -> bool {
        self.0 & SynFlags::LOWERED != 0
    }

    /// The sender's SYN carried data, or a SYN of the receiver acknowledged some, if `early`. Nothing takes it back.
    #[must_use]
    pub(super) const fn early_if(self, early: bool) -> Self {
        if early { SynFlags(self.0 | SynFlags::EARLY) } else { self }
    }

    /// Whether there was data before the end of the handshake (RFC 7413).
    pub(super) const fn is_early(self) -> bool {
        self.0 & SynFlags::EARLY != 0
    }

    /// The shift of the receiver's windows, which is in force only if both have offered it.
    pub(super) const fn scale(self) -> u8 {
        let both = SynFlags::SENDER_SCALES | SynFlags::RECEIVER_SCALES;
        if self.0 & both == both { self.0 & SynFlags::SHIFT } else { 0 }
    }
}

/// Which SYN came first, and whether both have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The sender's SYN.
    Called,
    /// The sender's SYN and the receiver's, which acknowledges it.
    Answered,
    /// The sender's SYN was repeated after that. The next answer may come from another host behind the receiver's address,
    /// or have another sequence number.
    AskedAgain,
    /// The receiver's SYN.
    CalledBack,
    /// The receiver's SYN, and the sender's, which acknowledges it.
    AnsweredBack,
}

/// A flow whose windows are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// The furthest right edge that the sender has seen.
    pub(super) edge: Seq,
    /// The highest acknowledgement number.
    pub(super) ack: Seq,
    /// The window that the policy has arrived at, in bytes.
    pub(super) desired: u32,
    /// How long the handshake took, there and back, in microseconds; zero if that was not seen.
    pub(super) rtt: u32,
    /// The period in which it was last counted as active.
    pub(super) period: u16,
    pub(super) mss: u16,
    pub(super) scale: u8,
    /// Acknowledgements in a row that could not be of this connection.
    pub(super) implausible_in_a_row: u8,
    /// A FIN or RST has passed: a new handshake may take its place.
    pub(super) closing: bool,
}

/// The summary of a flow, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowSummary {
    /// The address and port of the data's sender.
    pub sender: SocketAddr,
    /// Those of its receiver.
    pub receiver: SocketAddr,
    /// Its handshake has been seen, so that its windows can be read and written. Before that the next three are zero.
    pub is_open: bool,
    /// The window that the policy has arrived at, in bytes.
    pub desired: u32,
    /// The largest segment, in bytes.
    pub mss: u16,
    /// The receiver's window scale.
    pub scale: u8,
    /// How long ago something of it was seen.
    pub idle: Duration,
}

impl FlowSummary {
    pub(super) fn new(key: &FlowKey, record: &Record, now: Instant) -> Self {
        let (desired, mss, scale) = match &record.phase {
            Phase::Open(open) => (open.desired, open.mss, open.scale),
            Phase::Opening(_) | Phase::Lost => (0, 0, 0),
        };
        let idle = (now.as_millis() as u32).wrapping_sub(record.seen);
        FlowSummary {
            sender: key.sender(),
            receiver: key.receiver(),
            is_open: record.is_open(),
            desired,
            mss,
            scale,
            idle: Duration::from_millis(idle.into()),
        }
    }
}
