//! The view of an extension.

use super::super::{Connection, Counters, Info, LimitedBy, State};
use super::{Observed, RequestCounters, Shared};
use crate::extension::{Ack, Capabilities, Message, Ruling, Variable};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer as _;
use crate::time::{Duration, Instant};
use core::net::IpAddr;
use either::Either;

/// Everything that can be seen of a connection, in its state after the event was processed and before any layer was woken. The values are TCP's own;
/// [`View::ruling`] has the effective ones.
///
/// The connection is Transom's, or one that another TCP runs ([`Observed`]). An extension sees no difference.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    source: Source<'a>,
    shared: &'a Shared,
    now: Instant,
}

/// The source of the values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Connection(&'a Connection),
    Observed(&'a Observed),
}

impl<'a> View<'a> {
    pub(super) fn new(source: Source<'a>, shared: &'a Shared, now: Instant) -> Self {
        View { source, shared, now }
    }

    /// A value from either source.
    #[inline(always)]
    fn of<T>(
        &self,
        connection: impl FnOnce(&'a Connection) -> T,
        observed: impl FnOnce(&'a Observed) -> T,
    ) -> T {
        match self.source {
            Source::Connection(from) => connection(from),
            Source::Observed(from) => observed(from),
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The peer's address ([`Setting::Remote`](crate::connection::Setting::Remote)): where the profile names extensions and the host has said it, and never of a connection that another TCP runs.
    pub fn remote(&self) -> Option<IpAddr> {
        self.of(Connection::remote, |_| None)
    }

    /// The state of RFC 9293.
    pub fn state(&self) -> State {
        self.of(|tcp| tcp.state, |tcp| tcp.info.state)
    }

    /// Open, disorder, recovery or loss.
    pub fn phase(&self) -> Phase {
        self.of(|tcp| tcp.control.phase(), |tcp| tcp.info.phase)
    }

    /// Payload of a full segment, in bytes.
    pub fn mss(&self) -> u64 {
        self.of(|tcp| tcp.control.window().segment(), |tcp| u64::from(tcp.info.mss).max(1))
    }

    /// The congestion window, in bytes.
    pub fn cwnd(&self) -> u64 {
        self.of(|tcp| tcp.control.window().cwnd, |tcp| tcp.info.cwnd)
    }

    /// Bytes acknowledged towards the next increase of cwnd.
    pub fn cwnd_cnt(&self) -> u64 {
        self.of(|tcp| tcp.control.window().cwnd_cnt, |tcp| tcp.info.cwnd_cnt)
    }

    /// The slow-start threshold, in bytes; `u64::MAX` before the first reduction.
    pub fn ssthresh(&self) -> u64 {
        self.of(|tcp| tcp.control.window().ssthresh, |tcp| tcp.info.ssthresh)
    }

    /// Whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.of(|tcp| tcp.control.window().in_slow_start(), |tcp| tcp.info.cwnd < tcp.info.ssthresh)
    }

    /// The oldest position not acknowledged.
    pub fn snd_una(&self) -> Pos {
        self.of(|tcp| tcp.una(), |tcp| tcp.info.snd_una)
    }

    /// The next position to be sent.
    pub fn snd_nxt(&self) -> Pos {
        self.of(|tcp| tcp.nxt(), |tcp| tcp.info.snd_nxt)
    }

    /// The peer's window beyond snd_una, in bytes.
    pub fn snd_wnd(&self) -> u64 {
        self.of(|tcp| tcp.snd.peer.edge.since(tcp.una()), |tcp| tcp.info.snd_wnd)
    }

    /// The next position expected of the peer.
    pub fn rcv_nxt(&self) -> Pos {
        self.of(|tcp| tcp.rcv.next(), |tcp| tcp.info.rcv_nxt)
    }

    /// The advertised window beyond rcv_nxt, in bytes.
    pub fn rcv_wnd(&self) -> u64 {
        self.of(|tcp| tcp.rcv.edge.since(tcp.rcv.next()), |tcp| tcp.info.rcv_wnd)
    }

    /// Sent and not acknowledged cumulatively, in bytes (FlightSize of RFC 5681).
    pub fn outstanding(&self) -> u64 {
        self.of(
            |tcp| tcp.control.board().outstanding(),
            |tcp| tcp.info.snd_nxt.since(tcp.info.snd_una),
        )
    }

    /// Believed to be in the network, in bytes (the pipe of RFC 6675).
    pub fn in_flight(&self) -> u64 {
        self.of(|tcp| tcp.in_flight(), |tcp| tcp.info.in_flight)
    }

    /// Written by the application and not sent yet, in bytes.
    pub fn unsent(&self) -> u64 {
        self.of(|tcp| tcp.snd.buffer.end().since(tcp.nxt()), |tcp| tcp.unsent)
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.of(|tcp| tcp.control.timer().srtt(), |tcp| tcp.info.srtt)
    }

    /// The round-trip time variation, once there is a sample.
    pub fn rttvar(&self) -> Option<Duration> {
        self.of(|tcp| tcp.control.timer().rttvar(), |tcp| tcp.info.rttvar)
    }

    /// The least round-trip time seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.of(|tcp| tcp.control.min_rtt(), |tcp| tcp.info.min_rtt)
    }

    /// The last round-trip time.
    pub fn last_rtt(&self) -> Option<Duration> {
        self.of(|tcp| tcp.control.last_rtt(), |tcp| tcp.info.last_rtt)
    }

    /// The smoothed round-trip time as a receiver sees it: from an acknowledgement of ours to the first full segment of the peer's that
    /// echoes its timestamp. In whole milliseconds, and only where timestamps are agreed. A peer that had nothing to send for a while
    /// makes it longer.
    pub fn rcv_rtt(&self) -> Option<Duration> {
        self.of(|tcp| tcp.rcv.rtt(), |tcp| tcp.info.rcv_rtt)
    }

    /// The last sample of it, and when it was taken.
    pub fn last_rcv_rtt(&self) -> Option<(Instant, Duration)> {
        let sample = |tcp: &Connection| {
            let sample = Duration::from_micros(u64::from(tcp.rcv.round_trip.sample));
            (tcp.rcv.round_trip.sampled_at > Instant::ZERO)
                .then_some((tcp.rcv.round_trip.sampled_at, sample))
        };
        self.of(sample, |tcp| tcp.last_rcv_rtt)
    }

    /// The retransmission timeout with its back-off.
    pub fn rto(&self) -> Duration {
        self.of(|tcp| tcp.control.timer().rto(), |tcp| tcp.info.rto)
    }

    /// How often the timer has backed off since the last sample.
    pub fn backoffs(&self) -> u32 {
        self.of(|tcp| tcp.control.timer().backoffs(), |tcp| tcp.info.backoffs)
    }

    /// Timeouts in a row.
    pub fn retransmits(&self) -> u32 {
        self.of(|tcp| tcp.snd.retransmits, |tcp| tcp.info.retransmits)
    }

    /// Duplicate acknowledgements in a row.
    pub fn duplicate_acks(&self) -> u32 {
        self.of(|tcp| tcp.control.duplicate_acks(), |tcp| tcp.info.duplicate_acks)
    }

    /// How many of them mean a loss to TCP now.
    pub fn dupthresh(&self) -> u32 {
        self.of(|tcp| tcp.own_loss_threshold(), |tcp| tcp.dupthresh)
    }

    /// Bytes delivered to the peer so far, cumulatively or selectively acknowledged.
    pub fn delivered(&self) -> u64 {
        self.of(|tcp| tcp.control.board().delivery().delivered(), |tcp| tcp.info.delivered)
    }

    /// The rate at which data was delivered lately, in bytes per second. The flag says that the application had too little to send then, so that the
    /// path may be faster; see [`DeliveryRate::latest`](crate::rate::DeliveryRate::latest). Nothing before the first sample.
    pub fn delivery_rate(&self) -> Option<(u64, bool)> {
        self.of(
            |tcp| tcp.control.board().delivery().latest(),
            |tcp| tcp.info.delivery_rate.map(|rate| (rate, tcp.info.delivery_rate_app_limited)),
        )
    }

    /// Bytes marked lost so far.
    pub fn lost(&self) -> u64 {
        self.of(|tcp| tcp.counters.lost_bytes, |tcp| tcp.info.counters.lost_bytes)
    }

    /// The limit of the sender.
    pub fn limited_by(&self) -> LimitedBy {
        self.of(|tcp| tcp.limited.current(), |tcp| tcp.info.limited_by)
    }

    /// Whether the first duplicates bring new data out (RFC 3042).
    pub fn limited_transmit(&self) -> bool {
        self.of(|tcp| tcp.profile.limited_transmit, |tcp| tcp.limited_transmit)
    }

    /// Whether SACK is agreed.
    pub fn has_sack(&self) -> bool {
        self.of(|tcp| tcp.agreed.sack, |tcp| tcp.info.sack)
    }

    /// Whether timestamps are agreed.
    pub fn has_timestamps(&self) -> bool {
        self.of(|tcp| tcp.agreed.timestamps, |tcp| tcp.info.timestamps)
    }

    /// Running totals.
    pub fn counters(&self) -> &'a Counters {
        self.of(|tcp| &tcp.counters, |tcp| &tcp.info.counters)
    }

    /// Everything at once, shaped after Linux' `TCP_INFO`.
    pub fn info(&self) -> Info {
        // The layers are being woken, and the connection by itself knows nothing of them.
        let effective_rto = Duration::from_nanos(self.ruling(Variable::Rto).effective);
        Info { effective_rto, ..self.of(|tcp| tcp.info(self.now), |tcp| tcp.info) }
    }

    /// The messages not yet acknowledged cumulatively, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Message> + use<'a> {
        self.of(
            |tcp| Either::Left(tcp.control.board().records().map(Message::of)),
            |tcp| Either::Right(tcp.messages.iter().cloned()),
        )
    }

    /// The messages acknowledged lately, the latest first; none unless the extension
    /// [requires](crate::extension::Capabilities::MESSAGE_LIST) the list.
    pub fn past_messages(&self) -> impl Iterator<Item = &'a Message> + use<'a> {
        self.shared.history.messages()
    }

    /// The acknowledgements that arrived lately, the latest first; none unless the extension
    /// [requires](crate::extension::Capabilities::ACK_LIST) the list.
    pub fn acks(&self) -> impl Iterator<Item = &'a Ack> + use<'a> {
        self.shared.history.acks()
    }

    /// The last `count` of them, or as many as are remembered, in the order in which they arrived.
    pub fn last_acks(&self, count: usize) -> impl Iterator<Item = &'a Ack> + use<'a> {
        self.shared.history.last_acks(count)
    }

    /// The number of acknowledgements since the first extension was attached. If it rose by more than the list holds, the extension has missed some.
    pub fn acks_seen(&self) -> u64 {
        self.shared.acks_seen
    }

    /// The capabilities of this connection that an extension may require.
    pub fn capabilities(&self) -> Capabilities {
        self.of(|tcp| tcp.capabilities(), |tcp| tcp.capabilities)
    }

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        self.of(|tcp| tcp.rule(self.shared, variable), |tcp| tcp.rule(self.shared, variable))
    }

    /// The counters of the extensions' requests.
    pub fn request_counters(&self) -> RequestCounters {
        self.shared.request_counters()
    }
}

impl From<&View<'_>> for Observed {
    /// A copy of the view, for later or for another place. It does not contain the lists of the past.
    fn from(view: &View<'_>) -> Self {
        Observed {
            info: view.info(),
            unsent: view.unsent(),
            own_rcv_wnd: view.ruling(Variable::RcvWnd).own,
            last_rcv_rtt: view.last_rcv_rtt(),
            dupthresh: view.dupthresh(),
            limited_transmit: view.limited_transmit(),
            give_up_after: view.of(|tcp| tcp.profile.r2, |tcp| tcp.give_up_after),
            pacing_rate: Some(view.ruling(Variable::PacingRate).own)
                .filter(|rate| *rate < u64::MAX),
            messages: view.messages().collect(),
            capabilities: view.capabilities() - Capabilities::MESSAGE_LIST,
        }
    }
}
