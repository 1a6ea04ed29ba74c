//! The window's growth outside of the controllers: where it begins, and what an acknowledgement counts for.

use crate::ack_context::AckContext;
use core::num::NonZeroU8;

/// The amount that an acknowledgement of new data counts for in slow start and in congestion avoidance.
///
/// RFC 5681 section 3.1 recommends counting bytes, and allows counting acknowledgements. The TCPs before it counted acknowledgements. Then a
/// receiver that delays its acknowledgements slows the growth, and one that divides them speeds it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// For the bytes that it acknowledges.
    #[default]
    Bytes,
    /// For one segment, however much it acknowledges (RFC 5681 equations 2 and 3, with N never less than a segment).
    Acks,
}

impl Counting {
    /// The bytes that an acknowledgement counts for. Data that was given up counts for nothing.
    pub(crate) fn counted(self, ack: &AckContext) -> u64 {
        let acked = ack.acked.saturating_sub(ack.given_up);
        match self {
            Counting::Acks if acked > 0 => u64::from(ack.mss).max(1),
            Counting::Acks | Counting::Bytes => acked,
        }
    }
}

/// The initial window, which is also the restart window: a number of segments, and never more bytes than RFC 6928 allows.
///
/// One segment is RFC 2001's choice, two are RFC 2581's, four RFC 3390's for small segments, and ten RFC 6928's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindow {
    segments: NonZeroU8,
}

/// RFC 6928's.
impl Default for InitialWindow {
    fn default() -> Self {
        InitialWindow { segments: NonZeroU8::new(InitialWindow::MOST).unwrap_or(NonZeroU8::MIN) }
    }
}

impl InitialWindow {
    /// The segments that RFC 6928 allows.
    const MOST: u8 = 10;

    /// Of so many segments; `None` for none at all, and for more than `InitialWindow::MOST`.
    pub fn segments(segments: u64) -> Option<Self> {
        let segments = u8::try_from(segments).ok().filter(|&segments| segments <= Self::MOST)?;
        Some(InitialWindow { segments: NonZeroU8::new(segments)? })
    }

    /// In bytes, for segments of `mss` bytes: RFC 6928 equation 1, with this number of segments.
    pub(crate) fn bytes(self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        (u64::from(self.segments.get()) * mss).min((2 * mss).max(14_600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6928 equation 1 for ten; for fewer the same bound, which only large segments reach.
    #[test]
    fn the_initial_window_by_hand() {
        let bytes = |segments, mss| InitialWindow::segments(segments).unwrap().bytes(mss);
        for (segments, small, ordinary, jumbo) in [
            (1, 536, 1460, 8960),
            (2, 1072, 2920, 17_920),
            (4, 2144, 5840, 17_920),
            (10, 5360, 14_600, 17_920),
        ] {
            let all = [536, 1460, 8960].map(|mss| bytes(segments, mss));
            assert_eq!(all, [small, ordinary, jumbo], "{segments}");
        }
        assert_eq!(InitialWindow::segments(10), Some(InitialWindow::default()));
        assert_eq!([0, 11, 256, u64::MAX].map(InitialWindow::segments), [None; 4]);
    }

    #[test]
    fn acknowledgements_count_bytes_or_segments() {
        let ack =
            |acked, given_up| AckContext { acked, given_up, mss: 1000, ..AckContext::default() };
        for (acked, given_up, bytes, acks) in [
            (2000, 0, 2000, 1000),
            (100, 0, 100, 1000),
            (0, 0, 0, 0),
            (2000, 2000, 0, 0),
            (3000, 2000, 1000, 1000),
        ] {
            let ack = ack(acked, given_up);
            assert_eq!(Counting::Bytes.counted(&ack), bytes);
            assert_eq!(Counting::Acks.counted(&ack), acks);
        }
    }
}
