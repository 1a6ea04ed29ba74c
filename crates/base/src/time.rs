//! Time as the protocol sees it: integer nanoseconds that never wrap and never panic.
//!
//! Nothing here reads a clock. The clock's owner (the runtime, the simulator) passes an [`Instant`]
//! with every call; the protocol only compares and adds. All arithmetic saturates: a deadline that does
//! not fit is [`Instant::FAR_FUTURE`], a negative span is zero.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Conversions from and to units. Both types are a number of nanoseconds.
macro_rules! in_units {
    ($name:ident) => {
        impl $name {
            /// From nanoseconds.
            pub const fn from_nanos(nanos: u64) -> Self {
                $name(nanos)
            }

            /// From microseconds.
            pub const fn from_micros(micros: u64) -> Self {
                $name(micros.saturating_mul(1_000))
            }

            /// From milliseconds.
            pub const fn from_millis(millis: u64) -> Self {
                $name(millis.saturating_mul(1_000_000))
            }

            /// From seconds.
            pub const fn from_secs(secs: u64) -> Self {
                $name(secs.saturating_mul(1_000_000_000))
            }

            /// In nanoseconds.
            pub const fn as_nanos(self) -> u64 {
                self.0
            }

            /// In whole microseconds.
            pub const fn as_micros(self) -> u64 {
                self.0 / 1_000
            }

            /// In whole milliseconds.
            pub const fn as_millis(self) -> u64 {
                self.0 / 1_000_000
            }

            /// In seconds, for display and plots only.
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 / 1e9
            }
        }
    };
}

in_units!(Instant);
in_units!(Duration);

/// A point in time, in nanoseconds since an origin chosen by the owner of the clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instant(u64);

impl Instant {
    /// The clock's origin.
    pub const ZERO: Instant = Instant(0);
    /// Later than every deadline; arithmetic saturates here.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

/// A span of time in nanoseconds, up to 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The span times `factor`, saturating.
    pub const fn times(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }

    /// The span divided by `divisor`; by zero gives [`Duration::MAX`].
    pub const fn over(self, divisor: u64) -> Duration {
        match self.0.checked_div(divisor) {
            Some(nanos) => Duration(nanos),
            None => Duration::MAX,
        }
    }

    /// The span doubled `exponent` times, saturating.
    pub const fn doubled(self, exponent: u32) -> Duration {
        if exponent >= 64 || self.0.leading_zeros() < exponent {
            if self.0 == 0 { Duration(0) } else { Duration::MAX }
        } else {
            Duration(self.0 << exponent)
        }
    }

    /// The distance between two spans.
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&core::time::Duration::from_nanos(self.0), f)
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Duration(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        core::time::Duration::from_nanos(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::ZERO.since(Instant::from_secs(3)), Duration::ZERO);
        assert_eq!(Duration::MAX.times(2), Duration::MAX);
        assert_eq!(Duration::from_secs(1).over(0), Duration::MAX);
    }

    #[test]
    fn doubling_saturates_instead_of_wrapping() {
        assert_eq!(Duration::from_nanos(3).doubled(2), Duration::from_nanos(12));
        assert_eq!(Duration::from_nanos(1).doubled(63), Duration::from_nanos(1 << 63));
        assert_eq!(Duration::from_nanos(2).doubled(63), Duration::MAX);
        assert_eq!(Duration::from_nanos(1).doubled(64), Duration::MAX);
        assert_eq!(Duration::ZERO.doubled(100), Duration::ZERO);
    }
}
