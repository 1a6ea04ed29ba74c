//! Transmission at a rate: one packet after the other, each taking 8·len / rate seconds.
//!
//! That time is rarely a whole number of nanoseconds, and rounding each packet would make a 10 Gbit/s link
//! of small packets wrong by percents. So the time at which the serialiser becomes free is kept as a whole
//! number of nanoseconds plus a fraction whose denominator is the rate: exact, however long the busy
//! period. Only the times shown to the outside are rounded, up: a packet is not there before its last bit.

use transom_tcp::time::Instant;

use crate::units::Rate;

const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// When a packet is on the serialiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// The first bit leaves: now, or when the packets before it are through.
    pub(crate) begins: Instant,
    /// The last bit has left.
    pub(crate) ends: Instant,
}

/// A transmitter of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Serialiser {
    rate: Option<Rate>,
    /// When the last accepted packet ends, rounded down…
    free_nanos: u64,
    /// …and what was rounded off, in nanoseconds times the rate: always below the rate.
    free_fraction: u64,
}

impl Serialiser {
    /// An idle serialiser. Without a rate, transmission takes no time.
    pub(crate) const fn new(rate: Option<Rate>) -> Self {
        Serialiser { rate, free_nanos: 0, free_fraction: 0 }
    }

    /// Whether a packet offered now would have to wait.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        now < self.free_at()
    }

    /// When the serialiser has nothing left to do, rounded up.
    pub(crate) fn free_at(&self) -> Instant {
        Instant::from_nanos(self.free_nanos.saturating_add(u64::from(self.free_fraction > 0)))
    }

    /// Accepts a packet of `len` bytes behind all earlier ones. `now` must not run backwards.
    pub(crate) fn transmit(&mut self, now: Instant, len: usize) -> Transmission {
        let Some(rate) = self.rate else {
            return Transmission { begins: now, ends: now };
        };
        let begins = if self.is_busy(now) {
            self.free_at()
        } else {
            (self.free_nanos, self.free_fraction) = (now.as_nanos(), 0);
            now
        };
        let (nanos, fraction) = divided(len, self.free_fraction, rate.bits_per_sec());
        match u64::try_from(u128::from(self.free_nanos) + nanos) {
            Ok(nanos) => (self.free_nanos, self.free_fraction) = (nanos, fraction),
            Err(_) => (self.free_nanos, self.free_fraction) = (u64::MAX, 0),
        }
        Transmission { begins, ends: self.free_at() }
    }
}

/// Nanoseconds for `len` bytes at a rate, behind this fraction of one. Both fractions are in nanoseconds times the rate.
fn divided(len: usize, fraction: u64, rate: u64) -> (u128, u64) {
    // A division of 128 bits takes some ten times as long as one of 64, which have room for any packet.
    let narrow = (len as u64).checked_mul(BIT_NANOS_PER_BYTE);
    if let Some(work) = narrow.and_then(|work| work.checked_add(fraction)) {
        return (u128::from(work / rate), work % rate);
    }
    // len < 2^64 and the factor is below 2^33: the product and the sum fit.
    let work = len as u128 * u128::from(BIT_NANOS_PER_BYTE) + u128::from(fraction);
    let rate = u128::from(rate);
    (work / rate, (work % rate) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(rate: u64, len: usize, count: u64) -> Vec<u64> {
        let mut serialiser = Serialiser::new(Rate::from_bits_per_sec(rate));
        (0..count).map(|_| serialiser.transmit(Instant::ZERO, len).ends.as_nanos()).collect()
    }

    #[test]
    fn a_rate_that_divides() {
        // 1500 bytes at 12 Mbit/s take one millisecond.
        assert_eq!(ends(12_000_000, 1500, 3), [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn a_rate_that_does_not_divide_does_not_drift() {
        // 1 byte at 3 Gbit/s takes 8/3 ns: ends at 2.67, 5.33, 8, …
        assert_eq!(ends(3_000_000_000, 1, 4), [3, 6, 8, 11]);
        let million = ends(3_000_000_000, 1, 1_000_000);
        assert_eq!(million.last(), Some(&2_666_667));
        // 40 bytes at 7,777,777 bit/s: 320e9/7777777 ns each, a hundred thousand times.
        let expected = (320_000_000_000u128 * 100_000).div_ceil(7_777_777);
        assert_eq!(u128::from(*ends(7_777_777, 40, 100_000).last().unwrap()), expected);
    }

    #[test]
    fn an_idle_period_starts_afresh() {
        let mut serialiser = Serialiser::new(Rate::from_bits_per_sec(3_000_000_000));
        assert_eq!(serialiser.transmit(Instant::ZERO, 1).ends.as_nanos(), 3);
        // At 2 ns the packet is still on the wire (until 2.67), at 3 ns it is not.
        assert!(serialiser.is_busy(Instant::from_nanos(2)));
        assert!(!serialiser.is_busy(Instant::from_nanos(3)));
        let next = serialiser.transmit(Instant::from_nanos(3), 3);
        assert_eq!((next.begins.as_nanos(), next.ends.as_nanos()), (3, 11));
    }

    #[test]
    fn no_rate_takes_no_time() {
        let mut serialiser = Serialiser::new(None);
        let now = Instant::from_nanos(5);
        assert_eq!(serialiser.transmit(now, usize::MAX), Transmission { begins: now, ends: now });
        assert!(!serialiser.is_busy(now));
    }

    #[test]
    fn both_divisions_are_the_same() {
        let lens = [
            0,
            1,
            1500,
            65_535,
            usize::MAX / 8_000_000_000,
            usize::MAX / 8_000_000_000 + 1,
            usize::MAX,
        ];
        for (len, rate) in
            lens.into_iter().flat_map(|len| [1, 3, 9_999_999_999, u64::MAX].map(|rate| (len, rate)))
        {
            for fraction in [0, rate - 1] {
                let work = len as u128 * 8_000_000_000 + u128::from(fraction);
                let wide = (work / u128::from(rate), (work % u128::from(rate)) as u64);
                assert_eq!(divided(len, fraction, rate), wide, "{len} bytes at {rate} bit/s");
            }
        }
    }

    #[test]
    fn an_endless_transmission_saturates() {
        let mut serialiser = Serialiser::new(Rate::from_bits_per_sec(1));
        assert_eq!(serialiser.transmit(Instant::ZERO, usize::MAX).ends, Instant::FAR_FUTURE);
        assert_eq!(serialiser.transmit(Instant::ZERO, 1).ends, Instant::FAR_FUTURE);
    }
}
