//! The table of RFC 3649's appendix B, derived from its equations with integers when the program is compiled.
//!
//! - b(w) = 0.5 − 0.4·(log w − log 38)/(log 83000 − log 38) (section 5, with High_Decrease = 0.1);
//! - a(w) = w²·p(w)·2·b(w)/(2 − b(w)), with p(w) = 1/(12.8·w^1.2), the 0.078/w^1.2 of section 5 as the appendix has it.
//!
//! A line begins at the first window where a(w) is more than one above that of the line before, as in the RFC's own program. So the whole
//! part of a(w) rises by one from line to line.
//!
//! Logarithms have 32 fractional bits; w^0.8 is the fifth root of w⁴ with eleven.

use crate::congestion::arithmetic::log2;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The window from which it holds, in segments.
    pub(crate) window: u64,
    /// a(w): segments a round trip, rounded down.
    pub(crate) increase: u32,
    /// b(w): the share of the window that a loss takes, in units of 2^−[`DECREASE_BITS`].
    pub(crate) decrease: u32,
}

/// The fractional bits of [`Line::decrease`].
pub(crate) const DECREASE_BITS: u32 = 16;
/// Low_Window: up to here Reno's response function holds.
const LOW_WINDOW: u64 = 38;
/// High_Window.
const HIGH_WINDOW: u64 = 83_000;
/// The largest window of the RFC's program.
const LAST_WINDOW: u64 = 100_000;
/// The lines there are up to 100 000 segments.
const LINES: usize = 73;
/// The fractional bits of a(w).
const INCREASE_BITS: u32 = 24;

/// The table.
pub(crate) const TABLE: [Line; LINES] = derive();

/// The line for a window of this many segments.
pub(crate) fn line(window: u64) -> Line {
    let after = TABLE.partition_point(|line| line.window <= window);
    TABLE[after.max(1) - 1]
}

/// b(w) in units of 2⁻³².
const fn decrease(window: u64) -> u64 {
    let (low, high) = (log2(LOW_WINDOW), log2(HIGH_WINDOW));
    let above = (log2(window) - low) as u128;
    // 0.4 in units of 2⁻³², times the share of the way.
    let less = (above << 32) * 4 / (10 * (high - low) as u128);
    (1u64 << 31) - less as u64
}

/// w^0.8 in units of 2⁻¹¹: the fifth root of w⁴ · 2⁵⁵.
const fn power(window: u64) -> u64 {
    let fourth = (window as u128 * window as u128) * (window as u128 * window as u128);
    let value = fourth << 55;
    // Windows up to 100000 have w⁴·2⁵⁵ below 2¹²², and the root below 2²⁵.
    let (mut below, mut above): (u128, u128) = (0, 1 << 25);
    while above - below > 1 {
        let middle = (below + above) / 2;
        let square = middle * middle;
        if square * square * middle <= value {
            below = middle;
        } else {
            above = middle;
        }
    }
    below as u64
}

/// a(w) in units of 2^−[`INCREASE_BITS`]: w^0.8/12.8 · 2·b/(2 − b).
const fn increase(window: u64) -> u64 {
    let b = decrease(window) as u128;
    let product = ((power(window) as u128) * 2 * b * 10) << (INCREASE_BITS - 11);
    (product / (((2u128 << 32) - b) * 128)) as u64
}

const fn derive() -> [Line; LINES] {
    let one = 1 << INCREASE_BITS;
    let mut table = [Line { window: LOW_WINDOW, increase: 1, decrease: 1 << 15 }; LINES];
    let mut last = one;
    let mut index = 1;
    while index < LINES {
        // a(w) rises with w: the first window above `last + one` is found by halving.
        let (mut below, mut above) = (table[index - 1].window, LAST_WINDOW);
        while above - below > 1 {
            let middle = (below + above) / 2;
            if increase(middle) > last + one {
                above = middle;
            } else {
                below = middle;
            }
        }
        last = increase(above);
        table[index] = Line {
            window: above,
            increase: (last >> INCREASE_BITS) as u32,
            decrease: (decrease(above) >> (32 - DECREASE_BITS)) as u32,
        };
        index += 1;
    }
    table
}
