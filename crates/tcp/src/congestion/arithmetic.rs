//! Integer arithmetic that controllers share: products before divisions, roots, logarithms, and rates that add up to whole bytes.
//!
//! Congestion control adds fractions of a segment for each acknowledgement. Truncating each of them would lose up to a byte an
//! acknowledgement, which at large windows is most of the growth; [`Carry`] keeps what a division leaves for the next one.

use crate::time::Duration;

/// `value · numerator / denominator`, rounded down; saturating. A denominator of zero counts as one.
pub(super) fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// The remainders of divisions, in the unit of the numerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carry(u128);

impl Carry {
    /// `numerator / denominator`, with the remainder of earlier divisions; keeps the new remainder. Saturating.
    pub(super) fn divide(&mut self, numerator: u128, denominator: u128) -> u64 {
        let denominator = denominator.max(1);
        // The remainder came from another denominator; it is worth less than one with either.
        let sum = numerator.saturating_add(self.0.min(denominator - 1));
        self.0 = sum % denominator;
        u64::try_from(sum / denominator).unwrap_or(u64::MAX)
    }
}

/// The largest integer whose cube is at most `value`.
pub(super) fn cube_root(value: u128) -> u64 {
    // One bit of the root from three bits of the value, from the top.
    let (mut rest, mut root): (u128, u128) = (value, 0);
    let mut shift = 126;
    loop {
        root <<= 1;
        let step = 3 * root * (root + 1) + 1;
        if rest >> shift >= step {
            rest -= step << shift;
            root += 1;
        }
        if shift == 0 {
            // The root of the largest value has 43 bits.
            return root as u64;
        }
        shift -= 3;
    }
}

/// The binary logarithm of `value` with 32 fractional bits, rounded down; zero for zero.
pub(super) const fn log2(value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let whole = 63 - value.leading_zeros();
    // The mantissa, between one and two, with 63 fractional bits: squaring it doubles its logarithm.
    let mut mantissa = (value as u128) << (63 - whole);
    let mut fraction = 0;
    let mut bit = 0;
    while bit < 32 {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >= 1 << 64 {
            mantissa >>= 1;
            fraction |= 1;
        }
        bit += 1;
    }
    ((whole as u64) << 32) | fraction
}

/// Bytes in `span` at `rate` bytes per second, rounded down.
pub(super) fn bytes_in(span: Duration, rate: u64) -> u64 {
    mul_div(rate, span.as_nanos(), 1_000_000_000)
}

/// The rate in bytes per second of `bytes` in `span`, rounded down; `None` if there was no time.
pub(super) fn rate_of(bytes: u64, span: Duration) -> Option<u64> {
    (!span.is_zero()).then(|| mul_div(bytes, 1_000_000_000, span.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots() {
        for (value, root) in [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (999_999, 99)] {
            assert_eq!(cube_root(value), root, "{value}");
        }
        assert_eq!(cube_root(1_000_000_000_000_000_000_000_000_000_000_000_000), 1_000_000_000_000);
        // 6981463658331^3 < 2^128 - 1 < 6981463658332^3.
        assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
    }

    #[test]
    fn logarithms() {
        assert_eq!((log2(0), log2(1), log2(2), log2(1 << 40)), (0, 0, 1 << 32, 40 << 32));
        // log2(10) = 3.321928094887362; 0.321928094887362 · 2^32 = 1382670639.7 = 0x5269e12f.7…
        assert_eq!(log2(10) - (3 << 32), 0x5269_e12f);
        assert_eq!(log2(u64::MAX) >> 32, 63);
    }

    #[test]
    fn nothing_is_lost_between_divisions() {
        let mut carry = Carry::default();
        let total: u64 = (0..30).map(|_| carry.divide(1, 3)).sum();
        assert_eq!(total, 10);
        assert_eq!(carry.divide(u128::MAX, 0), u64::MAX);
        // Two thirds left over, of a denominator that became smaller, never make a whole one.
        let mut carry = Carry::default();
        assert_eq!((carry.divide(999, 1000), carry.divide(0, 2), carry.divide(1, 2)), (0, 0, 1));
    }

    #[test]
    fn rates() {
        assert_eq!(mul_div(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(mul_div(7, 3, 0), 21);
        assert_eq!(bytes_in(Duration::from_millis(20), 1_000_000), 20_000);
        assert_eq!(rate_of(20_000, Duration::from_millis(20)), Some(1_000_000));
        assert_eq!(rate_of(1, Duration::ZERO), None);
    }
}
