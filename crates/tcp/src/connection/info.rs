//! Observable state of a connection.

use super::{AccurateInfo, Connection, FastOpenInfo, PartialInfo, State};
use crate::extension::Variable;
use crate::flow::FlowControl as _;
use crate::ordering::Ordering as _;
use crate::ordering::UnitFaults;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer as _;
use crate::time::{Duration, Instant};

/// The limit of the sender, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LimitedBy {
    /// The application had nothing (more) to send.
    #[default]
    Application,
    /// The peer's receive window.
    PeerWindow,
    /// The congestion window.
    CongestionWindow,
    /// Pacing.
    Pacing,
    /// An extension that keeps the congestion window lower than TCP would.
    VirtualWindow,
}

impl LimitedBy {
    /// Its name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            LimitedBy::Application => "application",
            LimitedBy::PeerWindow => "peer-window",
            LimitedBy::CongestionWindow => "cwnd",
            LimitedBy::Pacing => "pacing",
            LimitedBy::VirtualWindow => "virtual-cwnd",
        }
    }
}

/// Time spent under each limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitedAccount {
    current: LimitedBy,
    since: Instant,
    spent: [Duration; 5],
    /// Since when data has been waiting to be acknowledged, sent or not; [`Instant::FAR_FUTURE`] if none has.
    busy_since: Instant,
    busy: Duration,
}

impl LimitedAccount {
    pub(super) fn new(now: Instant) -> Self {
        LimitedAccount {
            current: LimitedBy::Application,
            since: now,
            spent: [Duration::ZERO; 5],
            busy_since: Instant::FAR_FUTURE,
            busy: Duration::ZERO,
        }
    }

    /// There is data that is not acknowledged.
    pub(super) fn begin_busy(&mut self, now: Instant) {
        self.busy_since = self.busy_since.min(now);
    }

    /// The time until now was the handshake's, not that of data.
    pub(super) fn forget_busy(&mut self) {
        self.busy_since = Instant::FAR_FUTURE;
    }

    /// All of it is acknowledged.
    pub(super) fn end_busy(&mut self, now: Instant) {
        self.busy = self.busy(now);
        self.busy_since = Instant::FAR_FUTURE;
    }

    fn busy(&self, now: Instant) -> Duration {
        let running = match self.busy_since {
            Instant::FAR_FUTURE => Duration::ZERO,
            since => now.since(since),
        };
        self.busy + running
    }

    pub(super) fn note(&mut self, now: Instant, limit: LimitedBy) {
        if limit != self.current {
            let slot = &mut self.spent[self.current as usize];
            *slot = *slot + now.since(self.since);
            self.current = limit;
            self.since = now;
        }
    }

    fn spent(&self, now: Instant, limit: LimitedBy) -> Duration {
        let running = if limit == self.current { now.since(self.since) } else { Duration::ZERO };
        self.spent[limit as usize] + running
    }
}

/// Running totals of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent (a super-segment counts once).
    pub segments_sent: u64,
    /// Segments received (a merged super-segment counts once).
    pub segments_received: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes received, duplicates included.
    pub bytes_received: u64,
    /// Payload bytes received that were new.
    pub bytes_accepted: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Bytes of sequence space sent again.
    pub retransmitted_bytes: u64,
    /// Bytes believed lost.
    pub lost_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
    /// Bytes that arrived here twice.
    pub duplicate_bytes_received: u64,
    /// Bytes the peer reported as having arrived there twice (DSACK).
    pub duplicate_bytes_reported: u64,
    /// Segments that arrived out of order.
    pub out_of_order_segments: u64,
    /// Acknowledgements sent without data.
    pub pure_acks_sent: u64,
    /// Answers to segments that were not acceptable.
    pub challenge_acks: u64,
    /// Segments rejected by PAWS.
    pub paws_rejected: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Keep-alive probes sent.
    pub keep_alives: u64,
    /// Segments sent as probes (tail loss probes, RFC 8985).
    pub tail_probes: u64,
    /// Reductions of the window that were undone as spurious.
    pub spurious_reductions: u64,
    /// ICMP messages that quoted nothing in flight.
    pub icmp_rejected: u64,
}

/// A snapshot of a connection, shaped after Linux' `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The state of RFC 9293.
    pub state: State,
    /// The congestion phase.
    pub phase: Phase,
    /// The congestion controller's name.
    pub congestion: &'static str,
    /// The recovery unit's name.
    pub recovery: &'static str,
    /// The window was reduced for a mark, and data sent before that is not acknowledged yet (CWR of Linux).
    pub reduced_for_mark: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Payload bytes of the largest segments that the peer was offered to send.
    pub advertised_mss: u32,
    /// The path MTU in use.
    pub path_mtu: u32,
    /// Probes for a larger path MTU that were sent (RFC 4821).
    pub path_mtu_probes: u64,
    /// Times that segments were found to be too large for the path without a report of a router.
    pub black_holes: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Bytes acknowledged towards the next increase of cwnd.
    pub cwnd_cnt: u64,
    /// Slow-start threshold, bytes (`u64::MAX` before the first reduction).
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes in flight that the peer has acknowledged selectively.
    pub sacked: u64,
    /// Bytes in flight that are believed lost.
    pub lost: u64,
    /// Bytes in flight that were sent again.
    pub retransmitted: u64,
    /// SND.UNA.
    pub snd_una: Pos,
    /// SND.NXT.
    pub snd_nxt: Pos,
    /// SND.WND, bytes.
    pub snd_wnd: u64,
    /// RCV.NXT.
    pub rcv_nxt: Pos,
    /// RCV.WND, bytes: the rest of the advertised window.
    pub rcv_wnd: u64,
    /// The receive buffer's present size, bytes.
    pub rcv_buffer: usize,
    /// The ordering unit's name.
    pub ordering: &'static str,
    /// The flow-control unit's name.
    pub flow: &'static str,
    /// Bytes that arrived within the window and were dropped for lack of memory, which no window announces.
    pub rcv_dropped: u64,
    /// Data units that were none.
    pub unit_faults: UnitFaults,
    /// The send buffer's present size, bytes.
    pub snd_buffer: usize,
    /// Bytes written and not acknowledged.
    pub unacknowledged: usize,
    /// Bytes that can be read.
    pub readable: usize,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Option<Duration>,
    /// The last round-trip time sample.
    pub last_rtt: Option<Duration>,
    /// The smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout with its back-off.
    pub rto: Duration,
    /// The timeout that is used: another one if an extension sets it.
    pub effective_rto: Duration,
    /// How often it has backed off.
    pub backoffs: u32,
    /// Retransmissions of the oldest segment.
    pub retransmits: u32,
    /// Consecutive duplicate acknowledgements.
    pub duplicate_acks: u32,
    /// Over how many segments the path was seen to reorder, at most, and not less than the number of duplicates that mean a loss.
    pub reordering: u32,
    /// Times that reordering was detected: a segment arrived that a later one had overtaken.
    pub reordering_seen: u32,
    /// Whether timestamps were agreed.
    pub timestamps: bool,
    /// Whether SACK was agreed.
    pub sack: bool,
    /// The state of Fast Open (RFC 7413).
    pub fast_open: FastOpenInfo,
    /// Window scales (peer's, ours) if agreed.
    pub window_scale: Option<(u8, u8)>,
    /// Total bytes delivered to the peer (acknowledged or selectively acknowledged).
    pub delivered: u64,
    /// The rate at which data has been delivered to the peer lately, bytes per second, as the last acknowledgement that says something of the path
    /// has it ([`DeliveryRate::latest`](crate::rate::DeliveryRate::latest)); nothing before the first.
    pub delivery_rate: Option<u64>,
    /// Whether the application had too little to send when that was measured, so that the path may be faster.
    pub delivery_rate_app_limited: bool,
    /// The round-trip time as a receiver sees it ([`View::rcv_rtt`](crate::extension::View::rcv_rtt)).
    pub rcv_rtt: Option<Duration>,
    /// The present limit of the sender.
    pub limited_by: LimitedBy,
    /// Time spent limited by the application.
    pub limited_application: Duration,
    /// Time spent limited by the peer's window.
    pub limited_peer_window: Duration,
    /// Time spent limited by the congestion window.
    pub limited_congestion_window: Duration,
    /// Time spent limited by pacing.
    pub limited_pacing: Duration,
    /// Time spent limited by an extension that keeps the congestion window lower than TCP would.
    pub limited_virtual_window: Duration,
    /// Time during which data was waiting to be acknowledged, sent or not.
    pub busy: Duration,
    /// How long ago data (or a FIN) was last sent; nothing before there was any.
    pub since_data_sent: Option<Duration>,
    /// How long ago data last arrived; nothing before there was any.
    pub since_data_received: Option<Duration>,
    /// How long ago anything acceptable last arrived.
    pub since_heard: Duration,
    /// The state of explicit congestion notification, if it was agreed.
    pub ecn: Option<EcnInfo>,
    /// The state of partial reliability, if this end uses any of it.
    pub partial: Option<PartialInfo>,
    /// Running totals.
    pub counters: Counters,
}

/// Explicit congestion notification on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnInfo {
    /// Segments that arrived with the congestion-experienced mark (RFC 3168).
    pub marked_segments: u64,
    /// Reductions of the window for marks that the peer echoed.
    pub reductions: u64,
    /// Packets are no longer ECN-capable, because a node on the path alters codepoints or flags.
    pub disabled: bool,
    /// Counts of bytes and packets, where accurate ECN was agreed (RFC 9768).
    pub accurate: Option<AccurateInfo>,
}

impl Connection {
    /// A snapshot at `now`.
    pub fn info(&self, now: Instant) -> Info {
        let (snd, rcv, control) = (&self.snd, &self.rcv, &self.control);
        let (window, board, timer) = (control.window(), control.board(), control.timer());
        let rate = board.delivery().latest();
        let (congestion, recovery) = control.names();
        let (reordered_over, reordering_seen) = control.reordering();
        Info {
            state: self.state,
            phase: control.phase(),
            congestion,
            recovery,
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
            in_flight: self.in_flight(),
            sacked: board.sacked_bytes(),
            lost: board.lost_bytes(),
            retransmitted: board.retransmitted_bytes(),
            snd_una: self.una(),
            snd_nxt: self.nxt(),
            snd_wnd: snd.peer.edge.since(self.una()),
            rcv_nxt: rcv.next(),
            rcv_wnd: rcv.edge.since(rcv.next()),
            rcv_buffer: rcv.flow.buffer_limit(),
            ordering: rcv.ordering.name(),
            flow: rcv.flow.name(),
            rcv_dropped: rcv.flow.dropped(),
            unit_faults: rcv.ordering.unit_faults(),
            snd_buffer: snd.buffer.limit(),
            unacknowledged: snd.buffer.len(),
            readable: rcv.ordering.readable(),
            srtt: timer.srtt(),
            rttvar: timer.rttvar(),
            last_rtt: control.last_rtt(),
            min_rtt: control.min_rtt(),
            rto: timer.rto(),
            effective_rto: Duration::from_nanos(self.ruling(Variable::Rto).effective),
            backoffs: timer.backoffs(),
            retransmits: snd.retransmits,
            duplicate_acks: control.duplicate_acks(),
            reordering: reordered_over.max(self.profile.dup_thresh),
            reordering_seen,
            timestamps: self.agreed.timestamps,
            sack: self.agreed.sack,
            fast_open: self.fast_open_info(),
            window_scale: self.agreed.send_scale.map(|scale| (scale, self.agreed.receive_scale)),
            delivered: board.delivery().delivered(),
            delivery_rate: rate.map(|(rate, _)| rate),
            delivery_rate_app_limited: rate.is_some_and(|(_, limited)| limited),
            rcv_rtt: rcv.rtt(),
            limited_by: self.limited.current(),
            limited_application: self.limited.spent(now, LimitedBy::Application),
            limited_peer_window: self.limited.spent(now, LimitedBy::PeerWindow),
            limited_congestion_window: self.limited.spent(now, LimitedBy::CongestionWindow),
            limited_pacing: self.limited.spent(now, LimitedBy::Pacing),
            limited_virtual_window: self.limited.spent(now, LimitedBy::VirtualWindow),
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

impl LimitedAccount {
    pub(super) fn current(&self) -> LimitedBy {
        self.current
    }
}
