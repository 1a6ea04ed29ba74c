//! Accurate ECN (RFC 9768): how many packets and bytes arrived with each codepoint, and not only whether any was marked.
//!
//! Each end counts what arrives (`ReceiverCounters`) and reports it in every segment. The flags AE, CWR and ECE, together the field ACE, carry the
//! lowest three bits of the count of marked packets. An option carries 24 bits of each count of bytes, if there is room. The other end reconstructs
//! the counts (`SenderCounters`). This module knows no connection: the connection decides when segments leave and how to respond to marks.
//!
//! # What the handshake agrees on
//!
//! | SYN (AE, CWR, ECE) | SYN-ACK | both ends use |
//! |---|---|---|
//! | 1 1 1 | 0 1 0, 0 1 1, 1 0 0 or 1 1 0: how the SYN arrived | accurate ECN |
//! | 1 1 1 | 1 0 1, which nobody sends yet | accurate ECN |
//! | 1 1 1 | 0 0 1 | RFC 3168 |
//! | 1 1 1 | 0 0 0, or 1 1 1 sent back | no ECN |
//! | 0 1 1 | 0 0 1 | RFC 3168 |
//! | 0 0 0 | 0 0 0 | no ECN |
//! | any other | as to 1 1 1 | accurate ECN |
//!
//! # What is left open by the RFC
//!
//! - If the segment has an option, its bytes decide how often the field ACE has wrapped: the fewest packets that can have carried them. This replaces
//!   appendix A.2.2 and agrees with its examples. Without an option the safest likely case of appendix A.2.1 is assumed, with two exceptions. Either
//!   options usually arrive, so that the next one will decide. Or acknowledgements usually cover half of a wrap or more, so that every one would be a
//!   guess. As on Linux, the first acknowledgement with data says what is usual at first.
//! - A count of bytes that would go back is ignored (section 3.2.3.1 would take it for nearly 16 MiB of it).
//! - There is no test for continuous marks (section 3.2.2.3).

mod arrivals;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use arrivals::Arrivals;
pub(crate) use receiver::ReceiverCounters;
pub(crate) use sender::{Arrival, SenderCounters};

use transom_wire::{Ecn, Flags};

/// Packets and bytes that have arrived, or were reported as arrived, since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counts {
    /// Packets with congestion experienced.
    pub ce_packets: u64,
    /// Payload bytes with congestion experienced.
    pub ce_bytes: u64,
    /// Payload bytes with ECT(0).
    pub ect0_bytes: u64,
    /// Payload bytes with ECT(1).
    pub ect1_bytes: u64,
}

impl Counts {
    /// Payload bytes with any codepoint but Not-ECT.
    pub(crate) fn bytes(&self) -> u64 {
        self.ce_bytes.saturating_add(self.ect0_bytes).saturating_add(self.ect1_bytes)
    }
}

/// The initial value of the counters of marked packets (section 3.2.1), so that a field of zeros is detected.
const FIRST_PACKETS: u64 = 5;
/// The counters of ECT(0) and ECT(1) start here.
const FIRST_BYTES: u64 = 1;

/// The three flags that are the field ACE after the handshake.
pub(crate) const FIELD: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

/// The field ACE of a segment: 0 to 7.
pub(crate) const fn ace(flags: Flags) -> u8 {
    (flags.bits() >> Flags::ECE.bits().trailing_zeros() & 7) as u8
}

/// The flags whose field ACE is `value`, of which three bits count.
pub(crate) const fn flags(value: u64) -> Flags {
    Flags::from_bits_truncate(((value & 7) as u16) << Flags::ECE.bits().trailing_zeros())
}

/// The flags of a segment that reports `packets` marked packets.
pub(crate) const fn count_flags(packets: u64) -> Flags {
    flags(FIRST_PACKETS.wrapping_add(packets))
}

/// How a SYN or SYN-ACK arrived, as the SYN-ACK and the pure acknowledgement of the SYN-ACK say it (tables 2 and 3).
pub(crate) const fn handshake_flags(arrived: Ecn) -> Flags {
    flags(match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    })
}

/// How the peer says a SYN or SYN-ACK arrived; `None` if it does not say.
pub(crate) const fn handshake_codepoint(said: Flags) -> Option<Ecn> {
    match ace(said) {
        0b010 => Some(Ecn::NotEct),
        0b011 => Some(Ecn::Ect1),
        0b100 => Some(Ecn::Ect0),
        0b110 => Some(Ecn::Ce),
        _ => None,
    }
}

/// Which feedback a handshake leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// RFC 9768.
    Accurate,
    /// RFC 3168.
    Classic,
    /// None.
    None,
}

/// The agreement of an end with accurate ECN that receives a SYN (table 2 and section 3.1.3).
pub(crate) const fn answer_to_syn(syn: Flags) -> Agreement {
    match ace(syn) {
        0b000 => Agreement::None,
        0b011 => Agreement::Classic,
        _ => Agreement::Accurate,
    }
}

/// The agreement of the end that offered accurate ECN, from the SYN-ACK (table 2 and section 3.1.3).
pub(crate) const fn agreed_by_syn_ack(syn_ack: Flags) -> Agreement {
    match ace(syn_ack) {
        0b000 | 0b111 => Agreement::None,
        0b001 => Agreement::Classic,
        _ => Agreement::Accurate,
    }
}

/// Whether no router may have made `arrived` of what left as `sent` (section 3.2.2.3, RFC 3168 section 18).
pub(crate) fn is_mangled(sent: Ecn, arrived: Ecn) -> bool {
    match sent {
        Ecn::NotEct | Ecn::Ce => arrived != sent,
        Ecn::Ect0 | Ecn::Ect1 => arrived == Ecn::NotEct,
    }
}
