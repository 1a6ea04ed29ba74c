//! The view of an extension.

use super::super::{Connection, Counters, Info, LimitedBy, State};
use super::{Shared, Tallies};
use crate::extension::{Ack, Message, Ruling, Variable};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::time::{Duration, Instant};
#[cfg(fixed_units)]
use crate::units::direct::*;

/// Everything that can be seen of a connection, in its state after the event was processed and before any layer was woken. The values are TCP's own;
/// [`View::ruling`] has the effective ones.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    connection: &'a Connection,
    shared: &'a Shared,
    now: Instant,
}

impl<'a> View<'a> {
    pub(super) fn new(connection: &'a Connection, shared: &'a Shared, now: Instant) -> Self {
        View { connection, shared, now }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The state of RFC 9293.
    pub fn state(&self) -> State {
        self.connection.state
    }

    /// Open, disorder, recovery or loss.
    pub fn phase(&self) -> Phase {
        self.connection.snd.recovery.phase()
    }

    /// Payload of a full segment, in bytes.
    pub fn mss(&self) -> u64 {
        self.connection.snd.window.segment()
    }

    /// The congestion window, in bytes.
    pub fn cwnd(&self) -> u64 {
        self.connection.snd.window.cwnd
    }

    /// Bytes acknowledged towards the next increase of cwnd.
    pub fn cwnd_cnt(&self) -> u64 {
        self.connection.snd.window.cwnd_cnt
    }

    /// The slow-start threshold, in bytes; `u64::MAX` before the first reduction.
    pub fn ssthresh(&self) -> u64 {
        self.connection.snd.window.ssthresh
    }

    /// Whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.connection.snd.window.in_slow_start()
    }

    /// The oldest position not acknowledged.
    pub fn snd_una(&self) -> Pos {
        self.connection.una()
    }

    /// The next position to be sent.
    pub fn snd_nxt(&self) -> Pos {
        self.connection.nxt()
    }

    /// The peer's window beyond snd_una, in bytes.
    pub fn snd_wnd(&self) -> u64 {
        self.connection.snd.right_edge.since(self.snd_una())
    }

    /// The next position expected of the peer.
    pub fn rcv_nxt(&self) -> Pos {
        self.connection.rcv.next
    }

    /// The advertised window beyond rcv_nxt, in bytes.
    pub fn rcv_wnd(&self) -> u64 {
        self.connection.rcv.edge.since(self.rcv_nxt())
    }

    /// Sent and not acknowledged cumulatively, in bytes (FlightSize of RFC 5681).
    pub fn outstanding(&self) -> u64 {
        self.connection.snd.sent.outstanding()
    }

    /// Believed to be in the network, in bytes (the pipe of RFC 6675).
    pub fn in_flight(&self) -> u64 {
        self.connection.in_flight()
    }

    /// Written by the application and not sent yet, in bytes.
    pub fn unsent(&self) -> u64 {
        self.connection.snd.buffer.end().since(self.snd_nxt())
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.connection.snd.timer.srtt()
    }

    /// The round-trip time variation, once there is a sample.
    pub fn rttvar(&self) -> Option<Duration> {
        self.connection.snd.timer.rttvar()
    }

    /// The least round-trip time seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.connection.snd.min_rtt()
    }

    /// The last round-trip time.
    pub fn last_rtt(&self) -> Option<Duration> {
        self.connection.snd.last_rtt()
    }

    /// The smoothed round-trip time as a receiver sees it: from an acknowledgement of ours to the first full segment of the peer's that
    /// echoes its timestamp. In whole milliseconds, and only where timestamps are agreed. A peer that had nothing to send for a while
    /// makes it longer.
    pub fn rcv_rtt(&self) -> Option<Duration> {
        self.connection.rcv.rtt()
    }

    /// The last sample of it, and when it was taken.
    pub fn last_rcv_rtt(&self) -> Option<(Instant, Duration)> {
        let rcv = &self.connection.rcv;
        let sample = Duration::from_micros(u64::from(rcv.rtt_sample));
        (rcv.rtt_sampled_at > Instant::ZERO).then_some((rcv.rtt_sampled_at, sample))
    }

    /// The retransmission timeout with its back-off.
    pub fn rto(&self) -> Duration {
        self.connection.snd.timer.rto()
    }

    /// How often the timer has backed off since the last sample.
    pub fn backoffs(&self) -> u32 {
        self.connection.snd.timer.backoffs()
    }

    /// Timeouts in a row.
    pub fn retransmits(&self) -> u32 {
        self.connection.snd.retransmits
    }

    /// Duplicate acknowledgements in a row.
    pub fn duplicate_acks(&self) -> u32 {
        self.connection.snd.recovery.duplicate_acks()
    }

    /// How many of them mean a loss to TCP now.
    pub fn dupthresh(&self) -> u32 {
        self.connection.own_loss_threshold()
    }

    /// Bytes delivered to the peer so far, cumulatively or selectively acknowledged.
    pub fn delivered(&self) -> u64 {
        self.connection.snd.sent.delivery().delivered()
    }

    /// The rate at which data was delivered lately, in bytes per second, and whether the application had too little to send when that was measured, so
    /// that the path may be faster; see [`DeliveryRate::latest`](crate::rate::DeliveryRate::latest). Nothing before the first sample.
    pub fn delivery_rate(&self) -> Option<(u64, bool)> {
        self.connection.snd.sent.delivery().latest()
    }

    /// Bytes marked lost so far.
    pub fn lost(&self) -> u64 {
        self.connection.counters.lost_bytes
    }

    /// The limit of the sender.
    pub fn limited_by(&self) -> LimitedBy {
        self.connection.limited.current()
    }

    /// Whether the first duplicates bring new data out (RFC 3042).
    pub fn limited_transmit(&self) -> bool {
        self.connection.profile.limited_transmit
    }

    /// Whether SACK is agreed.
    pub fn has_sack(&self) -> bool {
        self.connection.agreed.sack
    }

    /// Whether timestamps are agreed.
    pub fn has_timestamps(&self) -> bool {
        self.connection.agreed.timestamps
    }

    /// Running totals.
    pub fn counters(&self) -> &'a Counters {
        &self.connection.counters
    }

    /// Everything at once, shaped after Linux' `TCP_INFO`.
    pub fn info(&self) -> Info {
        // The layers are being woken, and the connection by itself knows nothing of them.
        let effective_rto = Duration::from_nanos(self.ruling(Variable::Rto).effective);
        Info { effective_rto, ..self.connection.info(self.now) }
    }

    /// The messages not yet acknowledged cumulatively, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Message> + use<'a> {
        self.connection.snd.sent.records().map(Message::of)
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

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        self.connection.rule(self.shared, variable)
    }

    /// The counters of the extensions' requests.
    pub fn tallies(&self) -> Tallies {
        self.shared.tallies()
    }
}
