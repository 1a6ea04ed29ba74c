//! Table 1 of icTCP: between which values each variable may be set while the flow stays no more aggressive than TCP.
//!
//! Every function takes TCP's own value x of its variable (if the range depends on it) and the other values in the range, and returns the
//! range of v. The ranges of snd_una and snd_nxt refer to each other. Here snd_una is clamped first, with TCP's own snd_nxt as its bound,
//! and then snd_nxt above it, which leaves the same pairs.

use super::interval::Interval;
use crate::pos::Pos;
use crate::time::Duration;

/// 0 ≤ v ≤ x: less is sent.
pub(crate) fn cwnd(own: u64) -> Interval {
    Interval::at_most(own)
}

/// 0 ≤ v ≤ x: cwnd grows later.
pub(crate) fn cwnd_cnt(own: u64) -> Interval {
    Interval::at_most(own)
}

/// 1 ≤ v ≤ x, in bytes of which a segment has `mss`: slow start ends earlier.
pub(crate) fn ssthresh(own: u64, mss: u64) -> Interval {
    between(mss.min(own), own)
}

/// 0 ≤ v ≤ x: the peer may send less.
pub(crate) fn rcv_wnd(own: u64) -> Interval {
    Interval::at_most(own)
}

/// x ≤ v ≤ x + rcv_wnd, the virtual one: data before v is dropped, and the peer sends it again.
pub(crate) fn rcv_nxt(own: Pos, rcv_wnd: u64) -> Interval {
    between(own.get(), (own + rcv_wnd).get())
}

/// x ≤ v ≤ snd_nxt: acknowledgements before v are not believed.
pub(crate) fn snd_una(own: Pos, snd_nxt: Pos) -> Interval {
    between(own.get(), snd_nxt.max(own).get())
}

/// snd_una (the virtual one) ≤ v ≤ x: acknowledgements beyond v are not believed.
pub(crate) fn snd_nxt(snd_una: Pos, own: Pos) -> Interval {
    between(snd_una.min(own).get(), own.get())
}

/// 1 ≤ v ≤ cwnd, the virtual one, in segments: when a loss is believed. It changes neither cwnd nor what new data is sent.
pub(crate) fn dupthresh(cwnd_segments: u64) -> Interval {
    between(1, cwnd_segments.max(1))
}

/// x ≤ v, where x is TCP's own timeout with its back-off: silence means loss no sooner than for TCP.
///
/// The table has exp_backoff · (srtt + rttvar). These are names of Linux 2.4, which the paper changed. There `rttvar` is not the RTTVAR of RFC 6298.
/// It is four times the mean deviation, and 200 ms at least, so that their sum is the kernel's own timeout. Here that is
/// 2^backoffs · (SRTT + max(4·RTTVAR, variation)) with the timer `rfc6298`, and what another timer has with that one.
pub(crate) fn rto(own: Duration) -> Interval {
    Interval::at_least(own.as_nanos())
}

/// 0 ≤ v ≤ threshold, at which the connection is given up.
pub(crate) fn retransmits(threshold: Option<u32>) -> Interval {
    Interval::at_most(threshold.map_or(u64::MAX, u64::from))
}

/// 1 ≤ v ≤ x, the rate TCP paces at, if it does. This one is not in the table; it is safe for the reason that a smaller cwnd is. A rate of
/// nothing would be a connection that never wakes up again.
pub(crate) fn pacing_rate(own: Option<u64>) -> Interval {
    between(1, own.map_or(u64::MAX, |own| own.max(1)))
}

/// From `low` on, to `high` if that is not less.
fn between(low: u64, high: u64) -> Interval {
    Interval::new(low, high).unwrap_or(Interval::exactly(low))
}

/// A value that is used in the place of TCP's own, already within its safe range.
///
/// It can be compared with, and asked what is left of it; it cannot become a value of TCP's own:
///
/// ```compile_fail
/// # use transom_tcp::congestion::Window;
/// # use transom_tcp::extension::safe::Effective;
/// fn grow(window: &mut Window, virtual_cwnd: Effective<u64>) {
///     window.cwnd = virtual_cwnd + 1; // cwnd = vcwnd + 1
/// }
/// ```
///
/// ```compile_fail
/// # use transom_tcp::congestion::Window;
/// # use transom_tcp::extension::safe::Effective;
/// fn shrink(window: &mut Window, virtual_cwnd: Effective<u64>) {
///     window.cwnd = virtual_cwnd.into();
/// }
/// ```
///
/// ```compile_fail
/// # use transom_tcp::congestion::Window;
/// # use transom_tcp::extension::safe::Effective;
/// fn peek(window: &mut Window, virtual_cwnd: Effective<u64>) {
///     window.cwnd = virtual_cwnd.0;
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effective<T>(T);

impl<T: PartialOrd + Copy> Effective<T> {
    /// Only the one place that coerces makes one.
    pub(crate) fn new(value: T) -> Self {
        Effective(value)
    }

    /// Whether it is less than `other`.
    pub fn is_below(self, other: T) -> bool {
        self.0 < other
    }

    /// Whether it is more than `other`.
    pub(crate) fn is_above(self, other: T) -> bool {
        self.0 > other
    }
}

impl Effective<u64> {
    /// The rest of it after `used`: room in bytes, which is no window.
    pub fn left_after(self, used: u64) -> u64 {
        self.0.saturating_sub(used)
    }
}

impl Effective<u32> {
    /// The threshold for a count.
    pub(crate) fn threshold(self) -> u32 {
        self.0
    }
}

impl Effective<Duration> {
    /// The moment this much later than `now`.
    pub(crate) fn after(self, now: crate::time::Instant) -> crate::time::Instant {
        now + self.0
    }
}
