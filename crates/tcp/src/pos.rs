//! Positions in a sequence space, 64 bits wide.
//!
//! On the wire a sequence number has 32 bits and wraps. Inside a connection a [`Pos`] never does. The initial
//! sequence number is [`Pos::INITIAL`], and the first byte of data is one above it. A connection would have
//! to carry 2⁶⁴ bytes to overflow. Ordinary ordering therefore works, and the modulo arithmetic of RFC 9293
//! section 3.4 happens in exactly two functions: `SeqSpace::to_wire` and [`SeqSpace::from_wire`].

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use transom_wire::Seq;

/// A position in one direction's sequence space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pos(u64);

impl Pos {
    /// The position of the SYN. It is 2³² rather than zero, so that a stale segment from before it still has
    /// a position and needs no special case.
    pub const INITIAL: Pos = Pos(1 << 32);
    /// The first byte of data, one after the SYN.
    pub const FIRST_DATA: Pos = Pos((1 << 32) + 1);
    /// Beyond every position.
    pub const MAX: Pos = Pos(u64::MAX);

    /// The position as a number, for logs and plots: data byte k (from 0) is at 2³² + 1 + k.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How far `self` lies after `earlier`; zero when it does not.
    pub const fn since(self, earlier: Pos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Bytes of the stream before this position (the SYN does not count).
    pub const fn stream_offset(self) -> u64 {
        self.0.saturating_sub(Pos::FIRST_DATA.0)
    }
}

impl fmt::Debug for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(Pos::INITIAL.0) {
            Some(relative) => write!(f, "+{relative}"),
            None => write!(f, "-{}", Pos::INITIAL.0 - self.0),
        }
    }
}

impl Add<u64> for Pos {
    type Output = Pos;
    fn add(self, bytes: u64) -> Pos {
        Pos(self.0.saturating_add(bytes))
    }
}

impl AddAssign<u64> for Pos {
    fn add_assign(&mut self, bytes: u64) {
        *self = *self + bytes;
    }
}

impl Sub<u64> for Pos {
    type Output = Pos;
    fn sub(self, bytes: u64) -> Pos {
        Pos(self.0.saturating_sub(bytes))
    }
}

/// The mapping between one direction's positions and its wire sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqSpace {
    initial: Seq,
}

impl SeqSpace {
    /// The space whose SYN has sequence number `initial` (the ISS or IRS of RFC 9293).
    pub const fn new(initial: Seq) -> Self {
        SeqSpace { initial }
    }

    /// The initial sequence number.
    pub(crate) const fn initial(self) -> Seq {
        self.initial
    }

    /// The sequence number of `pos` on the wire.
    pub(crate) fn to_wire(self, pos: Pos) -> Seq {
        self.initial + (pos.0.wrapping_sub(Pos::INITIAL.0) as u32)
    }

    /// The position meant by `seq`: the one within 2³¹ of `near`.
    pub fn from_wire(self, seq: Seq, near: Pos) -> Pos {
        let distance = seq.distance_from(self.to_wire(near));
        Pos(near.0.saturating_add_signed(i64::from(distance)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wire_numbers_wrap_and_positions_do_not() {
        let space = SeqSpace::new(Seq::new(u32::MAX - 1));
        assert_eq!(space.to_wire(Pos::INITIAL), Seq::new(u32::MAX - 1));
        assert_eq!(space.to_wire(Pos::INITIAL + 3), Seq::new(1));
        assert_eq!(space.from_wire(Seq::new(1), Pos::INITIAL), Pos::INITIAL + 3);
        assert_eq!(space.from_wire(Seq::new(u32::MAX - 10), Pos::INITIAL), Pos::INITIAL - 9);
    }

    proptest! {
        #[test]
        fn every_position_near_the_reference_survives_the_wire(
            initial: u32, progress in 0u64..1 << 40, offset in -(1i64 << 31) + 1..(1i64 << 31),
        ) {
            let space = SeqSpace::new(Seq::new(initial));
            let near = Pos::INITIAL + progress;
            let pos = Pos(near.0.saturating_add_signed(offset));
            prop_assert_eq!(space.from_wire(space.to_wire(pos), near), pos);
        }
    }
}
