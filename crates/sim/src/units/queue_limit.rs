//! How much a queue holds.

use core::fmt;
use core::str::FromStr;

use super::{Decimal, UnitError, serde_as_text};
use transom_router::quantity::parse_size;

const QUANTITY: &str = "queue limit";

/// The capacity of a drop-tail queue, not counting the packet that is being transmitted.
///
/// Written "100 packets", "64KiB", "64kB", "1500 bytes" or "unlimited".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueLimit {
    /// At most so many packets, whatever their size.
    Packets(u64),
    /// At most so many bytes: a packet that does not fit whole is dropped.
    Bytes(u64),
    /// No limit: memory is the caller's concern.
    Unlimited,
}

impl QueueLimit {
    /// Whether a packet of `len` bytes fits into a queue that already holds `packets` and `bytes`.
    pub(crate) const fn admits(self, packets: u64, bytes: u64, len: u64) -> bool {
        match self {
            QueueLimit::Packets(limit) => packets < limit,
            QueueLimit::Bytes(limit) => bytes.saturating_add(len) <= limit,
            QueueLimit::Unlimited => true,
        }
    }
}

impl Default for QueueLimit {
    /// 1000 packets: what Linux gives an Ethernet interface (`txqueuelen`).
    fn default() -> Self {
        QueueLimit::Packets(1000)
    }
}

impl FromStr for QueueLimit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<QueueLimit, UnitError> {
        if text.trim() == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let Some((number, unit)) = Decimal::split(text) else {
            return Err(UnitError::Malformed {
                quantity: QUANTITY,
                text: text.into(),
                example: "100 packets, 64KiB or unlimited",
            });
        };
        let no_unit = || UnitError::Unit {
            quantity: QUANTITY,
            text: text.into(),
            units: "packets, bytes, kB, MB, GB, KiB, MiB, GiB",
        };
        let amount = match unit {
            "packet" | "packets" | "p" => number.scaled(1).map(QueueLimit::Packets),
            "byte" => number.scaled(1).map(QueueLimit::Bytes),
            // Of what, has to be said.
            "" => return Err(no_unit()),
            _ => match parse_size(text) {
                Ok(bytes) => Some(QueueLimit::Bytes(bytes)),
                Err(UnitError::Unit { .. }) => return Err(no_unit()),
                Err(_) => None,
            },
        };
        amount.ok_or_else(|| UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "a whole number of packets or bytes below 2^64",
        })
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QueueLimit::Packets(1) => f.write_str("1 packet"),
            QueueLimit::Packets(packets) => write!(f, "{packets} packets"),
            QueueLimit::Bytes(bytes) => {
                let (divisor, unit) =
                    [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1_000, "kB")]
                        .into_iter()
                        .find(|(divisor, _)| bytes > 0 && bytes.is_multiple_of(*divisor))
                        .unwrap_or((1, "B"));
                write!(f, "{}{unit}", bytes / divisor)
            }
            QueueLimit::Unlimited => f.write_str("unlimited"),
        }
    }
}

serde_as_text!(QueueLimit, "a queue limit such as \"100 packets\" or \"64KiB\"");
