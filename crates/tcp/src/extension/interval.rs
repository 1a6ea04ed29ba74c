//! Intervals of values: the request of a layer, and the lattice in which layers are combined.

use core::fmt;

/// The values from the least to the most, both included; never empty. Ordered by inclusion, with the values in both as the meet,
/// intervals and "nothing" form a lattice: meeting is commutative, associative and idempotent, and that is all that the safety of stacks
/// needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    low: u64,
    high: u64,
}

impl Interval {
    /// Every value.
    pub const ANY: Interval = Interval { low: 0, high: u64::MAX };

    /// From `low` to `high`; nothing if that is empty.
    pub const fn new(low: u64, high: u64) -> Option<Interval> {
        if low <= high { Some(Interval { low, high }) } else { None }
    }

    /// Up to `high`.
    pub const fn at_most(high: u64) -> Interval {
        Interval { low: 0, high }
    }

    /// From `low` on.
    pub const fn at_least(low: u64) -> Interval {
        Interval { low, high: u64::MAX }
    }

    /// One value.
    pub const fn exactly(value: u64) -> Interval {
        Interval { low: value, high: value }
    }

    /// The least value.
    pub const fn low(self) -> u64 {
        self.low
    }

    /// The greatest value.
    pub const fn high(self) -> u64 {
        self.high
    }

    /// Whether `value` is in it.
    pub const fn contains(self, value: u64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The value in it that is nearest to `value`.
    pub fn clamp(self, value: u64) -> u64 {
        value.max(self.low).min(self.high)
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high) {
            (0, u64::MAX) => f.write_str("any"),
            (low, u64::MAX) => write!(f, "{low}.."),
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) => write!(f, "{low}..={high}"),
        }
    }
}
