//! Unpredictable numbers: initial sequence numbers (RFC 6528), timestamp offsets (RFC 7323 section 5.4), ephemeral
//! ports (RFC 6056) and hash keys, all derived from one secret.

use crate::flow::FlowKey;
use core::hash::{Hash, Hasher};
use siphasher::sip::SipHasher24;
use transom_tcp::time::Instant;
use transom_wire::Seq;

/// The purpose of a derived number; different purposes give independent numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Initial sequence numbers.
    Isn = 1,
    /// Timestamp offsets.
    Timestamp = 2,
    /// Ephemeral ports.
    Port = 3,
    /// SYN cookies.
    Cookie = 4,
    /// The demultiplexing table's key.
    Demux = 5,
    /// The start of the identifications of IPv4 packets (RFC 6864).
    Identification = 6,
    /// Cookies of TCP Fast Open.
    FastOpen = 7,
    /// Which counter a destination has.
    Counter = 8,
}

/// The host's secret.
#[derive(Clone)]
pub(crate) struct Secrets {
    key: [u64; 2],
}

impl core::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// Derives everything from `secret`, which should be random on a real network.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let secret = u128::from_le_bytes(secret);
        Secrets { key: [secret as u64, (secret >> 64) as u64] }
    }

    /// A keyed hash of `value` for one purpose [MUST-9].
    pub(crate) fn hash<T: Hash>(&self, purpose: Purpose, value: &T) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        hasher.write_u8(purpose as u8);
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// A key for a hash table.
    pub(crate) fn table_key(&self) -> [u64; 2] {
        [self.hash(Purpose::Demux, &0u8), self.hash(Purpose::Demux, &1u8)]
    }

    /// RFC 6528: a clock that ticks every 4 µs [MUST-8], plus a secret function of the connection's name [SHLD-1].
    pub(crate) fn initial_sequence(&self, key: &FlowKey, now: Instant) -> Seq {
        let clock = (now.as_nanos() / 4_000) as u32;
        Seq::new(clock.wrapping_add(self.hash(Purpose::Isn, key) as u32))
    }

    /// The start of the connection's timestamp clock: the same for the same name, so that TIME-WAIT and SYN cookies
    /// can rely on it.
    pub(crate) fn timestamp_offset(&self, key: &FlowKey) -> u32 {
        self.hash(Purpose::Timestamp, key) as u32
    }
}
