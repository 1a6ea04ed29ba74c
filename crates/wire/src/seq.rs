//! Sequence numbers: 32 bits that wrap, and comparisons that survive it (RFC 9293 3.4).
//!
//! Two sequence numbers can be compared as long as they are less than 2³¹ apart: `a` is before `b`
//! when the wrapping difference `a − b`, read as a signed number, is negative. That is not a total
//! order – going round the circle every number is before every other – so [`Seq`] deliberately does
//! not implement `Ord`.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A TCP sequence (or acknowledgement) number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u32);

impl Seq {
    /// The sequence number `value`.
    #[inline]
    pub const fn new(value: u32) -> Seq {
        Seq(value)
    }

    /// The number as it travels in the header.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// `self − earlier` in octets of sequence space: positive if `self` comes after `earlier`.
    ///
    /// Numbers exactly 2³¹ apart give `i32::MIN` both ways; RFC 9293 3.4 leaves that case open.
    #[inline]
    pub const fn distance_from(self, earlier: Seq) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// Whether `self` comes strictly before `other`.
    #[inline]
    pub const fn before(self, other: Seq) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether `self` comes strictly after `other`.
    #[inline]
    pub const fn after(self, other: Seq) -> bool {
        other.before(self)
    }

    /// Whether `self` is `other` or comes before it.
    #[inline]
    pub const fn at_or_before(self, other: Seq) -> bool {
        !self.after(other)
    }

    /// Whether `self` is `other` or comes after it.
    #[inline]
    pub const fn at_or_after(self, other: Seq) -> bool {
        !self.before(other)
    }

    /// The earlier of two numbers that are less than 2³¹ apart.
    #[inline]
    pub const fn earlier(self, other: Seq) -> Seq {
        if other.before(self) { other } else { self }
    }

    /// The later of two numbers that are less than 2³¹ apart.
    #[inline]
    pub const fn later(self, other: Seq) -> Seq {
        if other.after(self) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn add(self, octets: u32) -> Seq {
        Seq(self.0.wrapping_add(octets))
    }
}

impl AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, octets: u32) {
        *self = *self + octets;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn sub(self, octets: u32) -> Seq {
        Seq(self.0.wrapping_sub(octets))
    }
}

impl SubAssign<u32> for Seq {
    #[inline]
    fn sub_assign(&mut self, octets: u32) {
        *self = *self - octets;
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seq({})", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comparisons_survive_the_wrap() {
        let last = Seq::new(u32::MAX);
        let first = Seq::new(0);
        assert_eq!(last + 1, first);
        assert_eq!(first - 1, last);
        assert_eq!(first.distance_from(last), 1);
        assert_eq!(last.distance_from(first), -1);
        assert!(last.before(first) && first.after(last));
        assert!(!first.before(last) && !last.after(first));
        assert_eq!(last.earlier(first), last);
        assert_eq!(last.later(first), first);
    }

    #[test]
    fn strict_and_loose_comparisons_differ_only_at_equality() {
        let a = Seq::new(7);
        assert!(!a.before(a) && !a.after(a));
        assert!(a.at_or_before(a) && a.at_or_after(a));
    }

    proptest! {
        #[test]
        fn order_follows_signed_distance(start: u32, step in 1u32..0x8000_0000) {
            let a = Seq::new(start);
            let b = a + step;
            prop_assert!(a.before(b) && b.after(a));
            prop_assert!(!a.after(b) && !b.before(a));
            prop_assert!(a.at_or_before(b) && b.at_or_after(a));
            prop_assert_eq!(i64::from(b.distance_from(a)), i64::from(step));
            prop_assert_eq!(b - step, a);
        }
    }
}
