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
    pub(crate) const fn admits(self, length: Length, len: usize) -> bool {
        match self {
            Limit::Packets(limit) => length.packets < limit,
            Limit::Bytes(limit) => match length.bytes.checked_add(len as u64) {
                Some(bytes) => bytes <= limit,
                None => false,
            },
            Limit::Unlimited => true,
        }
    }
}

impl Limit {
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

/// The unit that a discipline counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// Packets, whatever their size.
    #[default]
    Packets,
    /// Bytes.
    Bytes,
}
