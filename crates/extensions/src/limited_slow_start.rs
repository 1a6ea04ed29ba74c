//! Limited Slow-Start (RFC 3742): beyond max_ssthresh a slow start no longer doubles the window each round trip, but adds max_ssthresh/2.
//!
//! For each acknowledged segment the window grows by 1/K segment, K = ⌈cwnd / (max_ssthresh/2)⌉ (section 2), and by a whole one below
//! max_ssthresh.
//!
//! What differs: acknowledged bytes are counted, not acknowledgements (RFC 3465), and what a division leaves over counts on. The window
//! that is asked for is the extension's own, and grows whether TCP's own does or not; where that is smaller, it is what is used. So after a loss
//! the limit is set to TCP's window, and slow start begins again from there.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Event, Extension, Limits, View, Wake, variable};

/// Limited Slow-Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedSlowStart {
    /// max_ssthresh in segments; RFC 3742 suggests 100.
    pub max_ssthresh: u64,
    window: u64,
    left_over: u64,
}

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "limited-slow-start",
    source: "RFC 3742",
    summary: "adds half of max_ssthresh each round instead of doubling beyond it",
    parameters: &[("max-ssthresh", "100 segments: from here on the window no longer doubles")],
    read: |arguments| match arguments.number("max-ssthresh")?.unwrap_or(100) {
        0 | 1 => Err(arguments.impossible("max-ssthresh is two segments at least")),
        max_ssthresh => Ok(choice(arguments, LimitedSlowStart::new(max_ssthresh))),
    },
};

impl LimitedSlowStart {
    /// With this max_ssthresh, in segments.
    pub fn new(max_ssthresh: u64) -> Self {
        LimitedSlowStart { max_ssthresh: max_ssthresh.max(2), window: 0, left_over: 0 }
    }

    fn grow(&mut self, acked: u64, mss: u64) {
        let threshold = self.max_ssthresh.saturating_mul(mss);
        let whole = acked.min(threshold.saturating_sub(self.window));
        self.window += whole;
        let k = self.window.div_ceil(threshold / 2).max(1);
        let rest = acked - whole + self.left_over;
        self.window = self.window.saturating_add(rest / k);
        self.left_over = rest % k;
    }
}

impl Extension for LimitedSlowStart {
    fn name(&self) -> &str {
        "limited-slow-start"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.window = view.cwnd();
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        if event.what.intersects(Wake::LOSS | Wake::TIMEOUT) {
            self.window = self.window.min(view.cwnd());
            self.left_over = 0;
        } else if let Some(ack) = &event.ack {
            self.grow(ack.acked, view.mss());
        }
        limits.at_most(variable::CWND, self.window);
    }
}
