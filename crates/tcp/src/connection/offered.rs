//! The window that is offered to the peer (RFC 9293 section 3.8.6).

use super::{Connection, MemoryState, RESERVE};
use crate::flow::FlowControl as _;
use crate::ordering::Ordering as _;
use crate::pos::Pos;

impl Connection {
    /// How far the window should reach now.
    fn wanted_edge(&self) -> Pos {
        let next = self.rcv.next();
        let wanted = self.effective_receive_edge(next, self.own_wanted_edge(next));
        match self.memory {
            // The window opens no further than for what is taken in anyhow.
            MemoryState::Full => wanted.min(self.rcv.edge.max(next + RESERVE as u64)),
            MemoryState::Normal | MemoryState::Pressure => wanted,
        }
    }

    /// The largest window that the header can express, in bytes.
    fn widest_window(&self) -> u64 {
        u64::from(u16::MAX) << self.agreed.receive_scale
    }

    /// The right edge that the window could have now, if RCV.NXT is `next`: read data makes room. Room that the header cannot express does not
    /// count, or it would be offered again and again.
    pub(super) fn own_wanted_edge(&self, next: Pos) -> Pos {
        let widest = self.widest_window();
        let edge = self.rcv.flow.right_edge(next, self.rcv.ordering.window_base(), widest);
        edge.min(next + widest)
    }

    /// Half of the window at its largest.
    fn half_window(&self) -> u64 {
        self.effective_receive_buffer().min(self.widest_window()) / 2
    }

    /// The window field of an acknowledgement of `next`, and with it the new right edge. The edge never moves left [SHLD-14], and moves right
    /// only by a sufficient amount [MUST-39]. While the application does not read, it stays, closed for as long as necessary [MAY-8].
    pub(super) fn advertise(&mut self, next: Pos) -> u16 {
        let wanted = self.wanted_edge();
        let gain = wanted.since(self.rcv.edge);
        let moves = gain >= self.rcv.segment || (gain > 0 && gain >= self.half_window());
        let edge = if moves { wanted } else { self.rcv.edge };
        let scale = self.agreed.receive_scale;
        let window = edge.max(self.rcv.edge).since(next);
        // Rounded up, so that the scaled window does not fall short of the promised one; but at most one unit beyond
        // the buffer. Else a sender of small segments would move the edge with each of them, read or not. Data within
        // the promised window is taken in any case (RFC 7323 section 2.4).
        let up = window.div_ceil(1 << scale);
        let most = (wanted + (1 << scale)).max(self.rcv.edge);
        let field = if next + (up << scale) <= most { up } else { window >> scale };
        let field = field.min(65_535);
        self.rcv.edge = self.rcv.edge.max(next + (field << scale));
        u16::try_from(field).unwrap_or(u16::MAX)
    }

    /// Whether the peer should learn at once that the window has opened: it was (nearly) closed, or half of it
    /// has become free.
    pub(super) fn window_update_is_due(&self) -> bool {
        let next = self.rcv.next();
        let gain = self.wanted_edge().since(self.rcv.edge);
        let offered = self.rcv.edge.since(next);
        let half = self.half_window();
        let segment = self.rcv.segment;
        gain >= segment.min(half) && (offered < 2 * segment || gain >= half)
    }
}
