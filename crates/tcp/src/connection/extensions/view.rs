//! The view of an extension.

use super::super::glance::{Glance, Source};
use super::effective::{Own as _, rule};
use super::{Observed, RequestCounters, Shared};
use crate::congestion::Window;
use crate::extension::{Ack, Capabilities, Message, Ruling, Variable};
use crate::rto::Estimate;
use crate::state::{ConnectionState, Counters};
use crate::time::{Duration, Instant};
use core::net::IpAddr;
use core::ops::Deref;
use either::Either;

/// The [state](ConnectionState) of a connection and its lists, after the event was processed and before any layer was woken. The values are TCP's own;
/// [`View::ruling`] has the effective ones.
///
/// The connection is Transom's, or one that another TCP runs ([`Observed`]). An extension sees no difference. Most values are those of a [`Glance`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    glance: Glance<'a>,
    shared: &'a Shared,
    now: Instant,
}

/// A value of the state that a [`Glance`] does not have. Of a connection of Transom's the whole state is filled for it, as far as the compiler cannot leave it out.
macro_rules! read {
    ($view:ident.$($value:ident).+) => {
        match $view.glance.0 {
            Source::Connection(tcp) => tcp.fill($view.now, Some($view.shared)).$($value).+,
            Source::Observed(from) => from.state.$($value).+,
        }
    };
}

/// What extensions read for each acknowledgement.
impl<'a> Deref for View<'a> {
    type Target = Glance<'a>;
    fn deref(&self) -> &Glance<'a> {
        &self.glance
    }
}

impl<'a> View<'a> {
    pub(super) fn new(source: Source<'a>, shared: &'a Shared, now: Instant) -> Self {
        View { glance: Glance(source), shared, now }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The peer's address ([`Setting::Remote`](crate::connection::Setting::Remote)): where the profile names extensions and the host has said it, and never of a connection that another TCP runs.
    pub fn remote(&self) -> Option<IpAddr> {
        read!(self.remote)
    }

    /// Payload of a full segment, in bytes.
    pub fn mss(&self) -> u64 {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.segment(),
            Source::Observed(from) => from.state.segment(),
        }
    }

    /// The variables of congestion control: TCP's own.
    pub fn window(&self) -> Window {
        let mss = u32::try_from(self.mss()).unwrap_or(u32::MAX);
        Window { cwnd: self.cwnd(), cwnd_cnt: self.cwnd_cnt(), ssthresh: self.ssthresh(), mss }
    }

    /// Whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh()
    }

    /// srtt and rttvar, once there is a sample.
    pub fn estimate(&self) -> Option<Estimate> {
        Some(Estimate { srtt: self.srtt()?, rttvar: self.rttvar()? })
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

    /// Duplicate acknowledgements in a row.
    pub fn duplicate_acks(&self) -> u32 {
        read!(self.duplicate_acks)
    }

    /// How many of them mean a loss to TCP now.
    pub fn dupthresh(&self) -> u32 {
        read!(self.dupthresh)
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

    /// Whether the first duplicates bring new data out (RFC 3042).
    pub fn limited_transmit(&self) -> bool {
        read!(self.limited_transmit)
    }

    /// Whether SACK is agreed.
    pub fn has_sack(&self) -> bool {
        read!(self.sack)
    }

    /// Running totals.
    pub fn counters(&self) -> &'a Counters {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.counters(),
            Source::Observed(from) => &from.state.counters,
        }
    }

    /// The state as a whole.
    pub fn info(&self) -> ConnectionState {
        match self.glance.0 {
            Source::Connection(tcp) => tcp.fill(self.now, Some(self.shared)),
            Source::Observed(from) => from.state,
        }
    }

    /// The messages not yet acknowledged cumulatively, the oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Message> + use<'a> {
        match self.glance.0 {
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
        match self.glance.0 {
            Source::Connection(tcp) => tcp.capabilities(),
            Source::Observed(from) => from.capabilities,
        }
    }

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        match self.glance.0 {
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
