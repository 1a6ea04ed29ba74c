//! A connection as others see it.

use super::Connection;
use super::extensions::Shared;
use super::glance::Glance;
use crate::extension::Variable;
use crate::flow::FlowControl as _;
use crate::ordering::Ordering as _;
use crate::rto::RetransmissionTimer as _;
use crate::state::{ConnectionState, Counters, EcnInfo, LimitedBy, Name, Untold};
use crate::time::{Duration, Instant};

impl Connection {
    /// The state at `now`.
    pub fn info(&self, now: Instant) -> ConnectionState {
        self.fill(now, self.extensions.shared())
    }

    /// The one function that fills a state. While layers are woken, the connection by itself knows nothing of them.
    #[inline(always)]
    pub(super) fn fill(&self, now: Instant, layers: Option<&Shared>) -> ConnectionState {
        let (seen, snd, rcv, control) = (Glance::from(self), &self.snd, &self.rcv, &self.control);
        let (board, timer) = (control.board(), control.timer());
        let (window, rate) = (seen.window(), seen.delivery_rate());
        let (congestion, recovery) = control.names();
        let (reordered_over, reordering_seen) = control.reordering();
        ConnectionState {
            remote: seen.remote(),
            state: seen.state(),
            phase: seen.phase(),
            congestion: Name::new(congestion),
            recovery: Name::new(recovery),
            reduced_for_mark: self.is_reduced_for_mark(),
            mss: self.mss(),
            advertised_mss: u32::from(self.path.announced_mss())
                .saturating_sub(self.agreed.data_option_len()),
            path_mtu: self.path.mtu,
            path_mtu_probes: self.path_mtu.as_ref().map_or(0, |path| path.probes),
            black_holes: self.path_mtu.as_ref().map_or(0, |path| path.black_holes),
            cwnd: window.cwnd,
            cwnd_cnt: window.cwnd_cnt,
            ssthresh: window.ssthresh,
            in_flight: seen.in_flight(),
            sacked: board.sacked_bytes(),
            lost: board.lost_bytes(),
            retransmitted: board.retransmitted_bytes(),
            outstanding: seen.outstanding(),
            unsent: seen.unsent(),
            snd_una: seen.snd_una(),
            snd_nxt: seen.snd_nxt(),
            snd_wnd: seen.snd_wnd(),
            rcv_nxt: seen.rcv_nxt(),
            rcv_wnd: seen.rcv_wnd(),
            own_rcv_wnd: seen.own_rcv_wnd(),
            rcv_buffer: rcv.flow.buffer_limit(),
            ordering: Name::new(rcv.ordering.name()),
            flow: Name::new(rcv.flow.name()),
            rcv_dropped: rcv.flow.dropped(),
            unit_faults: rcv.ordering.unit_faults(),
            snd_buffer: snd.buffer.limit(),
            unacknowledged: snd.buffer.len(),
            readable: rcv.ordering.readable(),
            srtt: timer.srtt(),
            rttvar: timer.rttvar(),
            last_rtt: seen.last_rtt(),
            min_rtt: seen.min_rtt(),
            rto: seen.rto(),
            effective_rto: layers.map_or(timer.rto(), |layers| {
                Duration::from_nanos(self.rule(layers, Variable::Rto).effective)
            }),
            backoffs: seen.backoffs(),
            retransmits: seen.retransmits(),
            duplicate_acks: seen.duplicate_acks(),
            dupthresh: seen.dupthresh(),
            limited_transmit: seen.limited_transmit(),
            give_up_after: seen.give_up_after(),
            pacing_rate: seen.pacing_rate(),
            reordering: reordered_over.max(self.profile.dup_thresh),
            reordering_seen,
            timestamps: self.agreed.timestamps,
            sack: self.agreed.sack,
            fast_open: self.fast_open_info(),
            window_scale: self.agreed.send_scale.map(|scale| (scale, self.agreed.receive_scale)),
            delivered: seen.delivered(),
            delivery_rate: rate.map(|(rate, _)| rate),
            delivery_rate_app_limited: rate.is_some_and(|(_, limited)| limited),
            rcv_rtt: seen.rcv_rtt(),
            last_rcv_rtt: seen.last_rcv_rtt(),
            limited_by: seen.limited_by(),
            limited_because: self.limited.reason(),
            limited_application: self.limited.spent(now, LimitedBy::Application),
            limited_peer_window: self.limited.spent(now, LimitedBy::PeerWindow),
            limited_congestion_window: self.limited.spent(now, LimitedBy::CongestionWindow),
            limited_pacing: self.limited.spent(now, LimitedBy::Pacing),
            limited_virtual_window: self.limited.spent(now, LimitedBy::VirtualWindow),
            limited_send_buffer: Duration::ZERO,
            busy: self.limited.busy(now),
            since_data_sent: self.control.sent_since(now),
            since_data_received: Some(rcv.heard.data)
                .filter(|&at| at < Instant::FAR_FUTURE)
                .map(|at| now.since(at)),
            since_heard: now.since(rcv.heard.last),
            ecn: self.ecn.as_ref().map(|ecn| EcnInfo {
                marked_segments: ecn.marked_segments,
                reductions: ecn.reductions,
                disabled: ecn.silent,
                accurate: ecn.accurate().map(super::accurate::Accurate::info),
            }),
            partial: self.partial_info(),
            counters: self.counters,
            untold: Untold::empty(),
        }
    }

    /// Running totals.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of memory the connection owns or pins, itself included (units are counted by their state's size).
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.snd.buffer.memory()
            + self.snd.buffer.spare_memory()
            + self.control.board().memory()
            + self.rcv.ordering.memory()
            + self.partial.as_ref().map_or(0, |partial| partial.memory())
            + self.controls_memory()
    }

    /// Checks what must hold at all times, for tests: the scoreboard's counters, and that new data was only sent
    /// within the windows. `Err` says what does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.control.board().check()?;
        let end = self.snd.buffer.end();
        if self.control.board().end() > end + u64::from(self.snd.fin_queued) {
            return Err("sent more than was written");
        }
        if self.control.has_begun() && self.control.board().start() > self.snd.buffer.start() + 1 {
            return Err("acknowledged data is still buffered");
        }
        if self.rcv.next() > self.rcv.edge {
            return Err("received beyond the window offered");
        }
        Ok(())
    }
}
