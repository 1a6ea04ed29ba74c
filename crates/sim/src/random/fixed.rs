//! Binary logarithm and exponential in fixed point, without floats and without tables from elsewhere.
//!
//! Both work a bit at a time. For the logarithm: squaring the mantissa doubles its logarithm, and whether
//! the square reaches 2 is the next bit. For the exponential: 2^x is the product of the 2^(2^-i) for the
//! bits i set in x, and these constants are repeated square roots of two, taken by the compiler.

/// Fractional bits of the logarithms.
pub(super) const LOG_BITS: u32 = 48;

/// ln 2 × 2^60.
const LN_2: u128 = 799_144_290_325_165_979;

/// log2(value) × 2^48, rounded down to within 2 units; zero has none and gives zero.
pub(super) fn log2(value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let whole = 63 - value.leading_zeros();
    // The mantissa in [1, 2) with 63 fractional bits.
    let mut mantissa = value << value.leading_zeros();
    let mut result = u64::from(whole);
    for _ in 0..LOG_BITS {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let reached_two = square >> 127 != 0;
        mantissa = (square >> (63 + u32::from(reached_two))) as u64;
        result = result << 1 | u64::from(reached_two);
    }
    result
}

/// −ln(value / 2^64) × 2^48.
pub(super) fn neg_ln_fraction(value: u64) -> u64 {
    let neg_log2 = (64u64 << LOG_BITS) - log2(value);
    ((u128::from(neg_log2) * LN_2) >> 60) as u64
}

/// `ROOTS[i]` is 2^(2^-(i+1)) × 2^62.
const ROOTS: [u64; LOG_BITS as usize] = {
    let mut roots = [0; LOG_BITS as usize];
    let mut power: u128 = 2 << 62;
    let mut i = 0;
    while i < roots.len() {
        power = (power << 62).isqrt();
        roots[i] = power as u64;
        i += 1;
    }
    roots
};

/// `scale` × 2^(exponent / 2^48), rounded down and saturating.
pub(super) fn times_exp2(scale: u64, exponent: u128) -> u64 {
    let whole = exponent >> LOG_BITS;
    if scale == 0 {
        return 0;
    }
    if whole > u128::from(scale.leading_zeros()) {
        return u64::MAX;
    }
    let mut mantissa: u128 = 1 << 62;
    for (i, root) in ROOTS.iter().enumerate() {
        if exponent >> (LOG_BITS - 1 - i as u32) & 1 == 1 {
            mantissa = (mantissa * u128::from(*root)) >> 62;
        }
    }
    // Scaled, the whole part leaves scale below 2^64; the mantissa is below 2 × 2^62.
    let result = ((u128::from(scale) << whole) * mantissa) >> 62;
    u64::try_from(result).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_powers_of_two_are_exact() {
        for exponent in 0..64u32 {
            assert_eq!(log2(1 << exponent), u64::from(exponent) << LOG_BITS);
        }
    }

    #[test]
    fn logarithms_agree_with_known_values() {
        // log2(3) = 1.58496250072115618145…, log2(10) = 3.32192809488736234787… (OEIS A020857, A020862).
        let scaled = |digits: u128| (digits << LOG_BITS) / 10u128.pow(20);
        for (value, expected) in
            [(3, scaled(158_496_250_072_115_618_145)), (10, scaled(332_192_809_488_736_234_787))]
        {
            assert!(u128::from(log2(value)).abs_diff(expected) <= 2, "log2({value})");
        }
        // −ln(1/2) = 0.69314718055994530941…
        let expected = scaled(69_314_718_055_994_530_941);
        assert!(u128::from(neg_ln_fraction(1 << 63)).abs_diff(expected) <= 2);
    }

    #[test]
    fn exponentials_agree_with_known_values() {
        assert_eq!(times_exp2(3, 4 << LOG_BITS), 48);
        assert_eq!(times_exp2(7, 0), 7);
        // 2^0.5 = 1.41421356237309504880…, 2^2.75 = 6.72717132202971559535…; one part in 2^46.
        let half = times_exp2(1_000_000_000_000_000, 1 << (LOG_BITS - 1));
        assert!(half.abs_diff(1_414_213_562_373_095) <= 20, "{half}");
        let other = times_exp2(1_000_000_000_000_000, 11 << (LOG_BITS - 2));
        assert!(other.abs_diff(6_727_171_322_029_716) <= 100, "{other}");
    }

    #[test]
    fn exponentials_saturate() {
        assert_eq!(times_exp2(1, 63 << LOG_BITS), 1 << 63);
        assert_eq!(times_exp2(1, 64 << LOG_BITS), u64::MAX);
        assert_eq!(times_exp2(u64::MAX, 1), u64::MAX);
        assert_eq!(times_exp2(5, u128::MAX), u64::MAX);
        assert_eq!(times_exp2(0, u128::MAX), 0);
    }
}
