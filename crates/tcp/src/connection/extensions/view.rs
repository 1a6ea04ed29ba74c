//! The view of an extension.

use super::super::glance::Glance;
use super::super::{Connection, State};
use super::effective::{Own as _, rule};
use super::{Observed, RequestCounters, Shared};
use crate::congestion::Window;
use crate::extension::{Ack, Capabilities, Message, Ruling, Variable};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::Estimate;
use crate::state::{ConnectionState, Counters, LimitedBy};
use crate::time::{Duration, Instant};
use core::net::IpAddr;
use either::Either;

/// The [state](ConnectionState) of a connection and its lists, after the event was processed and before any layer was woken. The values are TCP's own;
/// [`View::ruling`] has the effective ones.
///
/// The connection is Transom's, or one that another TCP runs ([`Observed`]). An extension sees no difference.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    source: Source<'a>,
    shared: &'a Shared,
    now: Instant,
}

/// A value that a [`Glance`] at a connection of Transom's has: extensions read these for each acknowledgement.
macro_rules! glance {
    ($view:ident.$value:ident) => {
        match $view.source {
            Source::Connection(tcp) => Glance::at(tcp).$value(),
            Source::Observed(from) => from.state.$value,
        }
    };
}

/// Another value of the state. Of a connection of Transom's the whole state is filled for it, as far as the compiler cannot leave it out.
macro_rules! read {
    ($view:ident.$($value:ident).+) => {
        match $view.source {
            Source::Connection(tcp) => tcp.fill($view.now, Some($view.shared)).$($value).+,
            Source::Observed(from) => from.state.$($value).+,
        }
    };
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

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The peer's address ([`Setting::Remote`](crate::connection::Setting::Remote)): where the profile names extensions and the host has said it, and never of a connection that another TCP runs.
    pub fn remote(&self) -> Option<IpAddr> {
        read!(self.remote)
    }

    /// The state of RFC 9293.
    pub fn state(&self) -> State {
        glance!(self.state)
    }

    /// Open, disorder, recovery or loss.
    pub fn phase(&self) -> Phase {
        glance!(self.phase)
    }

    /// Payload of a full segment, in bytes.
    pub fn mss(&self) -> u64 {
        match self.source {
            Source::Connection(tcp) => tcp.segment(),
            Source::Observed(from) => from.state.segment(),
        }
    }

    /// The congestion window, in bytes.
    pub fn cwnd(&self) -> u64 {
        glance!(self.cwnd)
    }

    /// Its variables: TCP's own.
    pub fn window(&self) -> Window {
        let mss = u32::try_from(self.mss()).unwrap_or(u32::MAX);
        Window { cwnd: self.cwnd(), cwnd_cnt: self.cwnd_cnt(), ssthresh: self.ssthresh(), mss }
    }

    /// Bytes acknowledged towards the next increase of cwnd.
    pub fn cwnd_cnt(&self) -> u64 {
        glance!(self.cwnd_cnt)
    }

    /// The slow-start threshold, in bytes; `u64::MAX` before the first reduction.
    pub fn ssthresh(&self) -> u64 {
        glance!(self.ssthresh)
    }

    /// Whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh()
    }

    /// The oldest position not acknowledged.
    pub fn snd_una(&self) -> Pos {
        glance!(self.snd_una)
    }

    /// The next position to be sent.
    pub fn snd_nxt(&self) -> Pos {
        glance!(self.snd_nxt)
    }

    /// The peer's window beyond snd_una, in bytes.
    pub fn snd_wnd(&self) -> u64 {
        glance!(self.snd_wnd)
    }

    /// The next position expected of the peer.
    pub fn rcv_nxt(&self) -> Pos {
        glance!(self.rcv_nxt)
    }

    /// The advertised window beyond rcv_nxt, in bytes.
    pub fn rcv_wnd(&self) -> u64 {
        glance!(self.rcv_wnd)
    }

    /// Sent and not acknowledged cumulatively, in bytes (FlightSize of RFC 5681).
    pub fn outstanding(&self) -> u64 {
        glance!(self.outstanding)
    }

    /// Believed to be in the network, in bytes (the pipe of RFC 6675).
    pub fn in_flight(&self) -> u64 {
        glance!(self.in_flight)
    }

    /// Written by the application and not sent yet, in bytes.
    pub fn unsent(&self) -> u64 {
        glance!(self.unsent)
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Duration> {
        glance!(self.srtt)
    }

    /// The round-trip time variation, once there is a sample.
    pub fn rttvar(&self) -> Option<Duration> {
        glance!(self.rttvar)
    }

    /// Both, once there is a sample.
    pub fn estimate(&self) -> Option<Estimate> {
        Some(Estimate { srtt: self.srtt()?, rttvar: self.rttvar()? })
    }

    /// The least round-trip time seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        glance!(self.min_rtt)
    }

    /// The last round-trip time.
    pub fn last_rtt(&self) -> Option<Duration> {
        glance!(self.last_rtt)
    }

    /// The smoothed round-trip time as a receiver sees it: from an acknowledgement of ours to the first full segment of the peer's that
    /// echoes its timestamp. In whole milliseconds, and only where timestamps are agreed. A peer that had nothing to send for a while
    /// makes it longer.
    pub fn rcv_rtt(&self) -> Option<Duration> {
        read!(self.rcv_rtt)
    }

    /// The last sample of it, and when it was taken.
    pub fn last_rcv_rtt(&self) -> Option<(Instant, Duration)> {
        read!(self.last_rcv_rtt)
    }

    /// The retransmission timeout with its back-off.
    pub fn rto(&self) -> Duration {
        glance!(self.rto)
    }

    /// How often the timer has backed off since the last sample.
    pub fn backoffs(&self) -> u32 {
        glance!(self.backoffs)
    }

    /// Timeouts in a row.
    pub fn retransmits(&self) -> u32 {
        glance!(self.retransmits)
    }

    /// Duplicate acknowledgements in a row.
    pub fn duplicate_acks(&self) -> u32 {
        read!(self.duplicate_acks)
    }

    /// How many of them mean a loss to TCP now.
    pub fn dupthresh(&self) -> u32 {
        read!(self.dupthresh)
    }

    /// Bytes delivered to the peer so far, cumulatively or selectively acknowledged.
    pub fn delivered(&self) -> u64 {
        glance!(self.delivered)
    }

    /// The rate at which data was delivered lately, in bytes per second. The flag says that the application had too little to send then, so that the
    /// path may be faster; see `DeliveryRate::latest`. Nothing before the first sample.
    pub fn delivery_rate(&self) -> Option<(u64, bool)> {
        read!(self.delivery_rate).map(|rate| (rate, read!(self.delivery_rate_app_limited)))
    }

    /// Bytes marked lost so far.
    pub fn lost(&self) -> u64 {
        self.counters().lost_bytes
    }

    /// The limit of the sender.
    pub fn limited_by(&self) -> LimitedBy {
        glance!(self.limited_by)
    }

    /// Whether the first duplicates bring new data out (RFC 3042).
    pub fn limited_transmit(&self) -> bool {
        read!(self.limited_transmit)
    }

    /// Whether SACK is agreed.
    pub fn has_sack(&self) -> bool {
        read!(self.sack)
    }

    /// Whether timestamps are agreed.
    pub fn has_timestamps(&self) -> bool {
        read!(self.timestamps)
    }

    /// Running totals.
    pub fn counters(&self) -> &'a Counters {
        match self.source {
            Source::Connection(tcp) => tcp.counters(),
            Source::Observed(from) => &from.state.counters,
        }
    }

    /// The state as a whole.
    pub fn info(&self) -> ConnectionState {
        match self.source {
            Source::Connection(tcp) => tcp.fill(self.now, Some(self.shared)),
            Source::Observed(from) => from.state,
        }
    }

    /// The messages not yet acknowledged cumulatively, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Message> + use<'a> {
        match self.source {
            Source::Connection(tcp) => Either::Left(tcp.control.board().records().map(Message::of)),
            Source::Observed(from) => Either::Right(from.messages.iter().cloned()),
        }
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
        match self.source {
            Source::Connection(tcp) => tcp.capabilities(),
            Source::Observed(from) => from.capabilities,
        }
    }

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        match self.source {
            Source::Connection(tcp) => rule(tcp, self.shared, variable),
            Source::Observed(from) => rule(&from.state, self.shared, variable),
        }
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
            state: view.info(),
            messages: view.messages().collect(),
            capabilities: view.capabilities() - Capabilities::MESSAGE_LIST,
        }
    }
}
