//! Rates, of bytes and of losses.

use transom_tcp::arguments::Fraction;
use transom_tcp::time::Duration;

/// Bytes per second of a window of bytes.
pub(crate) fn rate(window: u64, rtt: Duration) -> u64 {
    let per_second = u128::from(window) * 1_000_000_000 / u128::from(rtt.as_nanos().max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// The part of what was sent that was lost.
pub(crate) fn loss_rate(delivered: u64, lost: u64) -> Fraction {
    let all = u128::from(delivered) + u128::from(lost);
    let millionths = u128::from(lost) * 1_000_000 / all.max(1);
    Fraction::from_millionths(u64::try_from(millionths).unwrap_or(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_losses() {
        assert_eq!(rate(10_000, Duration::from_millis(100)), 100_000);
        assert_eq!(rate(u64::MAX, Duration::ZERO), u64::MAX);
        assert_eq!(loss_rate(75, 25), Fraction::from_millionths(250_000));
        assert_eq!(loss_rate(0, 0), Fraction::from_millionths(0));
    }
}
