//! A cap on the rate, in bytes per second: data leaves evenly, and no faster.
//!
//! TCP's own window is not changed; if it allows less, less is sent.
//!
//! Differences from RFC 9002 section 7.7: the rate is fixed, not a multiple of cwnd over SRTT. A burst is at most a millisecond of
//! the rate, one segment at least; the RFC allows an initial window. The connection enforces this, not the extension.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};

/// The cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateCap {
    /// Bytes per second at most.
    pub(crate) rate: u64,
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "rate-cap",
    source: "pacing, as RFC 9002 section 7.7 has it, below a fixed rate",
    summary: "limits the sending rate",
    parameters: &[("rate", "bytes per second, such as 2MB; required")],
    read: |arguments| match arguments.bytes("rate")? {
        Some(rate) if rate > 0 => Ok(choice(arguments, RateCap { rate })),
        _ => Err(arguments.impossible("give rate in bytes per second, as in rate=2MB")),
    },
};

impl Extension for RateCap {
    fn name(&self) -> &str {
        "rate-cap"
    }

    fn wake_on(&self) -> Wake {
        Wake::empty()
    }

    fn on_attach(&mut self, _view: &View<'_>, limits: &mut Limits) {
        limits.at_most(Value::PacingRate(self.rate));
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {}
}
