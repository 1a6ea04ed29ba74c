//! How much a queue holds.

use super::Length;

/// The capacity of a queue, not counting the packet that is being transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// At most this many packets of any size.
    Packets(u64),
    /// At most this many bytes: a packet fits whole or not at all.
    Bytes(u64),
    /// No limit: memory is the caller's concern.
    Unlimited,
}

impl Limit {
    /// Whether a packet of `len` bytes fits into a queue that already holds `length`.
    pub const fn admits(self, length: Length, len: usize) -> bool {
        match self {
            Limit::Packets(limit) => length.packets < limit,
            Limit::Bytes(limit) => match length.bytes.checked_add(len as u64) {
                Some(bytes) => bytes <= limit,
                None => false,
            },
            Limit::Unlimited => true,
        }
    }

    /// Whether a queue may hold so much.
    pub(crate) const fn holds(self, length: Length) -> bool {
        match self {
            Limit::Packets(limit) => length.packets <= limit,
            Limit::Bytes(limit) => length.bytes <= limit,
            Limit::Unlimited => true,
        }
    }
}

impl Default for Limit {
    /// 1000 packets: Linux' default for an Ethernet interface (`txqueuelen`).
    fn default() -> Self {
        Limit::Packets(1000)
    }
}

/// A length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Threshold {
    /// In packets. Where super-segments pass they count as one packet: count bytes there.
    Packets(u64),
    /// In bytes.
    Bytes(u64),
}

impl Threshold {
    /// The length of `queue` in this threshold's unit.
    pub(crate) const fn measure(self, queue: Length) -> u64 {
        match self {
            Threshold::Packets(_) => queue.packets,
            Threshold::Bytes(_) => queue.bytes,
        }
    }

    /// The threshold as a number, in its unit.
    pub(crate) const fn amount(self) -> u64 {
        match self {
            Threshold::Packets(amount) | Threshold::Bytes(amount) => amount,
        }
    }

    pub(crate) const fn counts_bytes(self) -> bool {
        matches!(self, Threshold::Bytes(_))
    }

    pub(crate) const fn as_limit(self) -> Limit {
        match self {
            Threshold::Packets(packets) => Limit::Packets(packets),
            Threshold::Bytes(bytes) => Limit::Bytes(bytes),
        }
    }
}
