//! An extension that asks anything of all variables at every event: icTCP's experiment with random settings (section 5.2).
//!
//! What it asks for is often absurd, so a flow that has it is slow, and may stand still for long; what it never is, is more aggressive than TCP.
//! In one of two cases a variable is left alone, in one of four the request lies near TCP's own value, in the rest anywhere in the range of a
//! window.
//!
//! What differs from the paper, or is left open by it:
//! - It sets values outside of the safe ranges; here they are anywhere, inside too, and of sizes that have nothing to do with a variable's unit.
//! - It sets variables one by one as well, and leaves out retransmits. Here all eleven take part, with pacing_rate, which is not in its table.
//! - When it sets them anew is not said. Here that is at each acknowledgement, duplicate, loss and timeout, and when data arrives; the
//!   numbers follow from the seed.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Event, Extension, Interval, Limits, View, Wake, variable};

/// Pseudo-random numbers: the 64-bit xorshift of Marsaglia (Journal of Statistical Software 8(14), 2003) with shifts 13, 7, 17. Nothing here needs
/// better ones, and the same seed gives the same run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u64);

impl Default for Stream {
    fn default() -> Self {
        Stream(0x9E37_79B9_7F4A_7C15)
    }
}

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is above zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }
}

/// Asks anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scramble {
    stream: Stream,
}

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "scramble",
    source: "icTCP (OSDI 2004), section 5.2",
    summary: "asks anything of all variables, at every event",
    parameters: &[("seed", "0: of what it asks")],
    read: |arguments| {
        let seed = arguments.number("seed")?.unwrap_or(0);
        // An xorshift never leaves zero.
        let stream = Stream((Stream::default().0 ^ seed).max(1));
        Ok(choice(arguments, Scramble { stream }))
    },
};

impl Scramble {
    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        let window = view.cwnd().saturating_mul(2);
        for variable in variable::ALL {
            let own = view.ruling(variable).own;
            let near = |stream: &mut Stream| {
                let reach = own / 4 + 1;
                (own - reach.min(own)).saturating_add(stream.below(2 * reach))
            };
            match self.stream.below(4) {
                0 => limits.set(variable, Interval::exactly(near(&mut self.stream))),
                1 => limits.set(variable, Interval::exactly(self.stream.below(window))),
                _ => limits.clear(variable),
            }
        }
    }
}

impl Extension for Scramble {
    fn name(&self) -> &str {
        "scramble"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::LOSS | Wake::TIMEOUT | Wake::DATA
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }

    fn on_wake(&mut self, _event: &Event, view: &View<'_>, limits: &mut Limits) {
        self.ask(view, limits);
    }
}
