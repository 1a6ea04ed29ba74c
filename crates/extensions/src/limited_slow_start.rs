//! Limited Slow-Start (RFC 3742): beyond max_ssthresh a slow start no longer doubles the window each round trip, but adds max_ssthresh/2.
//!
//! For each acknowledged segment the window grows by 1/K segment, K = int(cwnd / (max_ssthresh/2)) (section 2), and by a whole one up to
//! max_ssthresh, like the native unit `limited-slow-start`.
//!
//! A difference: it counts acknowledged bytes, not acknowledgements (RFC 3465). The requested window is the extension's own and grows
//! independently of TCP's; the smaller one is effective. So after a loss the limit is set to TCP's window, and slow start begins again
//! from there.

use crate::catalogue::{Entry, choice};
use transom_tcp::AckContext;
use transom_tcp::congestion::Window;
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::slow_start::{Limited, SlowStart};

/// Limited Slow-Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitedSlowStart {
    unit: Limited,
    window: Window,
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "limited-slow-start",
    source: "RFC 3742",
    summary: "adds half of max_ssthresh each round instead of doubling beyond it",
    parameters: &[("max-ssthresh", "100 segments: from here on the window no longer doubles")],
    read: |arguments| match u32::try_from(arguments.number("max-ssthresh")?.unwrap_or(100)) {
        Ok(max_ssthresh) if max_ssthresh >= 2 => {
            Ok(choice(arguments, LimitedSlowStart::new(max_ssthresh)))
        }
        _ => Err(arguments.impossible("max-ssthresh is between 2 and 4294967295 segments")),
    },
};

impl LimitedSlowStart {
    /// With this max_ssthresh, in segments; RFC 3742 suggests 100.
    fn new(max_ssthresh: u32) -> Self {
        // Its size follows when it is attached. No ssthresh ends it: that is TCP's own affair.
        let window = Window { cwnd: 0, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 0 };
        LimitedSlowStart { unit: Limited { max_ssthresh }, window }
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
        self.window.cwnd = view.cwnd();
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if occasion.what.intersects(Wake::LOSS | Wake::TIMEOUT) {
            self.window.cwnd = self.window.cwnd.min(view.cwnd());
        } else if let Some(ack) = &occasion.ack {
            self.window.mss = u32::try_from(view.mss()).unwrap_or(u32::MAX);
            self.unit.grow(&mut self.window, ack.acked, &AckContext::default());
        }
        limits.at_most(Value::Cwnd(self.window.cwnd));
    }
}
