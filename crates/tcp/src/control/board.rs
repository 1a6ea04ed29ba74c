//! Acknowledgements, entered into the scoreboard.

use super::Control;
use crate::pos::Pos;
use crate::sent::Delivered;
use crate::time::Instant;
use core::ops::Range;

impl Control {
    /// Everything before `ack` is acknowledged. Data behind SND.NXT is a window probe that was taken after all: when it was sent says nothing about the
    /// round trip.
    pub(crate) fn acknowledge(&mut self, ack: Pos, now: Instant) -> Delivered {
        let mut delivered = Delivered::default();
        let probe = ack > self.sent.end();
        if probe {
            self.sent.push(ack, now);
        }
        self.sent.acknowledge(ack, now, &mut delivered);
        if probe {
            delivered.rtt = None;
        }
        delivered
    }

    /// The peer has `range`, which begins at SND.UNA or later.
    pub(crate) fn sack(&mut self, range: Range<Pos>, now: Instant, delivered: &mut Delivered) {
        let mss = u64::from(self.window.mss);
        self.sent.sack(range, mss, now, delivered);
    }

    /// Data in our SYN, which left at `sent_at`, is acknowledged up to `ack`.
    pub(crate) fn on_syn_data(&mut self, ack: Pos, sent_at: Instant, now: Instant) {
        self.sent.push(ack, sent_at);
        self.sent.acknowledge(ack, now, &mut Delivered::default());
    }
}
