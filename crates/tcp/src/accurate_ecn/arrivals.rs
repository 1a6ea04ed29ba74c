//! The sender's test for a path that clears codepoints: does the peer count what left ECN-capable?
//!
//! A device that clears ECT leaves nothing that a queue could mark, and one that clears CE hides the marks of a queue before it. Section 3.2.2.3 has
//! a test for packets of the handshake, and leaves what happens later to implementations. Options carry the counts of bytes that arrived with each
//! codepoint but Not-ECT. Together they must go up as fast as bytes are acknowledged.

/// How much of what left ECN-capable the peer has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// Bytes acknowledged since the last comparison.
    acknowledged: u64,
    /// By how much the counts of bytes went up.
    counted: u64,
    /// Comparisons in a row that found too many bytes uncounted.
    short: u8,
}

impl Arrivals {
    /// If most is uncounted, so many full segments are enough.
    const FEW: u64 = 20;
    /// After so many full segments, a sixteenth uncounted is too much. Less can be segments sent again, which need not be ECN-capable.
    const MANY: u64 = 320;
    /// So many comparisons leave no doubt.
    const COMPARISONS: u8 = 2;

    /// An acknowledgement came: so many bytes of what left ECN-capable are `acknowledged`, and the peer's counts went up by `counted` bytes. Only an
    /// `option` with counts tells all of them. A full segment has `mss` bytes. Returns whether the path clears codepoints.
    pub(crate) fn on_arrival(
        &mut self,
        acknowledged: u64,
        counted: u64,
        option: bool,
        mss: u64,
    ) -> bool {
        self.acknowledged = self.acknowledged.saturating_add(acknowledged);
        self.counted = self.counted.saturating_add(counted);
        let uncounted = self.acknowledged.saturating_sub(self.counted);
        let is_more_than = |segments: u64| self.acknowledged >= mss.saturating_mul(segments);
        let most = is_more_than(Self::FEW) && uncounted > self.acknowledged / 2;
        if option && (most || is_more_than(Self::MANY)) {
            let is_short = most || uncounted > self.acknowledged / 16;
            let short = if is_short { self.short.saturating_add(1) } else { 0 };
            *self = Arrivals { short, ..Arrivals::default() };
        }
        self.short >= Self::COMPARISONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many acknowledgements of two segments it is sure, if of each thousand bytes so many are counted.
    fn sure_after(counted: impl Fn(u64) -> u64, option: impl Fn(u64) -> bool) -> Option<u64> {
        let mut arrivals = Arrivals::default();
        (1..=2000).find(|&n| arrivals.on_arrival(2000, 2 * counted(n), option(n), 1000))
    }

    #[test]
    fn nothing_is_counted() {
        assert_eq!(sure_after(|_| 0, |_| true), Some(20));
        // Only options tell.
        assert_eq!(sure_after(|_| 0, |n| n.is_multiple_of(16)), Some(32));
        assert_eq!(sure_after(|_| 0, |_| false), None);
    }

    #[test]
    fn some_is_not_counted() {
        assert_eq!(sure_after(|_| 499, |_| true), Some(20));
        assert_eq!(sure_after(|_| 900, |_| true), Some(320));
        assert_eq!(sure_after(|_| 938, |_| true), None);
        // It has to be so twice in a row.
        assert_eq!(sure_after(|n| if n / 160 % 2 == 0 { 500 } else { 1000 }, |_| true), None);
    }

    #[test]
    fn all_is_counted() {
        assert_eq!(sure_after(|_| 1000, |_| true), None);
        // Packets that arrived twice were counted twice.
        assert_eq!(sure_after(|_| 1500, |_| true), None);
        // A count comes later than the acknowledgement, with the next option.
        let late = |n: u64| if n.is_multiple_of(8) { 8000 } else { 0 };
        assert_eq!(sure_after(late, |n| n.is_multiple_of(8)), None);
    }

    #[test]
    fn no_number_is_too_large() {
        let mut arrivals = Arrivals::default();
        for _ in 0..10 {
            arrivals.on_arrival(u64::MAX, u64::MAX, true, u64::MAX);
            arrivals.on_arrival(u64::MAX, 0, true, 0);
        }
    }
}
