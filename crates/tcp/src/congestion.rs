//! Congestion control: *how much* may be in flight.
//!
//! The connection owns the [`Window`]; a controller changes it through the calls of [`CongestionControl`] and nothing else. Other units control
//! slow start ([`crate::slow_start`]), unless the controller has its own, and the moments at which a reduction takes effect. So most controllers
//! only decide how the window grows in congestion avoidance, and to what a loss reduces it.
//!
//! A [`crate::profile::Profile`] names an [`Algorithm`]: the parameters of a controller. Each connection gets its own controller from it. The
//! set is open: a program's own algorithm is chosen in the same way.
//!
//! # Writing one
//!
//! `examples/my_controller.rs` is a complete one, step by step:
//!
//! 1. The state of a connection is a type, here an empty one. A [`CongestionControl`] needs a name, and a rule for the growth of the window
//!    outside recovery, when the window limited the sender. [`Window::additive_increase`] adds a segment for a given number of acknowledged
//!    bytes: for each window of them it is Reno, for every second one it is half a segment each round trip.
//!
//!    ```
//!    # use transom_tcp::AckContext;
//!    # use transom_tcp::congestion::{Algorithm, CongestionChoice, CongestionControl, Window};
//!    # use transom_tcp::time::Instant;
//!    #[derive(Clone, Copy, Debug)]
//!    struct Gentle;
//!
//!    impl CongestionControl for Gentle {
//!        fn name(&self) -> &'static str {
//!            "gentle"
//!        }
//!
//!        fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
//!            window.additive_increase(acked, 2 * window.cwnd);
//!        }
//!
//!        fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
//!            (flight.min(window.cwnd) * 3 / 4).max(window.floor())
//!        }
//!    }
//!    # impl Algorithm for Gentle {
//!    #     fn controller(&self) -> transom_tcp::congestion::Controller {
//!    #         transom_tcp::congestion::Controller::custom(*self)
//!    #     }
//!    # }
//!    # impl std::fmt::Display for Gentle {
//!    #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
//!    #         f.write_str("gentle")
//!    #     }
//!    # }
//!    # use transom_tcp::Profile;
//!    # let profile = Profile::default().with_congestion(CongestionChoice::new(Gentle));
//!    # assert_eq!(profile.validate(), Ok(()));
//!    ```
//!
//! 2. To what a loss reduces the window is [`ssthresh`](CongestionControl::ssthresh), two segments at least. When the reduction takes
//!    effect, what a timeout does and where slow start ends is what RFC 5681 says, unless [`on_event`](CongestionControl::on_event) is
//!    replaced; [`react`] is there for the events that are not of interest.
//! 3. An algorithm that measures does so in [`on_sample`](CongestionControl::on_sample), which sees every acknowledgement first, and may change
//!    the window there. An algorithm with its own slow start says so ([`has_own_slow_start`](CongestionControl::has_own_slow_start)), and so does
//!    one that needs pacing ([`needs_pacing`](CongestionControl::needs_pacing)).
//! 4. [`Algorithm`] makes a controller for each connection, and its `Display` is the text by which people name it. With it,
//!    `Profile::default().with_congestion(CongestionChoice::new(Gentle))` is a profile that uses it.
//! 5. To be chosen by name like those here, with parameters read from text, it needs an [`Entry`] in [`ALGORITHMS`].
//!
//! Use no floating point, allocate nothing for an acknowledgement, and let sums saturate: a peer chooses the numbers. The algorithms here show
//! how to keep the remainders of divisions. `tests/congestion_properties.rs` tests every algorithm in the list with arbitrary input.

mod arithmetic;
mod bbr;
mod bbr3;
mod bic;
mod built_in;
mod controller;
mod cubic;
mod dctcp;
mod delay;
mod fast;
mod filter;
mod full_pipe;
mod growth;
mod highspeed;
mod htcp;
mod ledbat;
mod ledbat_plus_plus;
mod lp;
pub mod ltcp;
mod multcp;
mod nice;
mod none;
mod prague;
mod reno;
mod scalable;
mod takeover;
#[cfg(test)]
mod test_bottleneck;
#[cfg(test)]
mod test_trace;
mod vegas;
mod westwood;

use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments};
use crate::pacing::RatePacing;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;

pub use controller::Controller;
pub use growth::{Counting, InitialWindow};
pub use nice::Nice;
pub use takeover::Takeover;
pub use vegas::Vegas;

/// The congestion variables of RFC 5681, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// Bytes acknowledged towards the next increase of `cwnd` in congestion avoidance.
    pub cwnd_cnt: u64,
    /// The slow-start threshold, in bytes: [`u64::MAX`] before the first reduction.
    pub ssthresh: u64,
    /// The sender's maximum segment size.
    pub mss: u32,
}

impl Default for Window {
    /// None yet.
    fn default() -> Self {
        Window { cwnd: 0, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1 }
    }
}

impl Window {
    /// As wide as a window ever gets, in bytes: wider than any path needs, and sums and products of windows fit.
    pub const WIDEST: u64 = 1 << 40;

    /// The initial window of RFC 6928: ten segments, bounded by max(2·MSS, 14600).
    pub fn initial(mss: u32) -> Self {
        Window::of(InitialWindow::default(), mss)
    }

    /// The initial window of this choice.
    pub(crate) fn of(choice: InitialWindow, mss: u32) -> Self {
        Window { cwnd: choice.bytes(mss), cwnd_cnt: 0, ssthresh: u64::MAX, mss }
    }

    /// Whether slow start governs (`cwnd` below `ssthresh`).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// One segment in bytes; never zero.
    pub fn segment(&self) -> u64 {
        u64::from(self.mss).max(1)
    }

    /// Sets `cwnd`, between one segment and [`Window::WIDEST`].
    pub fn resize(&mut self, cwnd: u64) {
        self.cwnd = cwnd.min(Self::WIDEST).max(self.segment());
    }

    /// Slow start: `cwnd` grows by what was acknowledged, up to `ssthresh`. Returns the bytes left over for
    /// congestion avoidance.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let most = self.ssthresh.min(Self::WIDEST);
        let grown = self.cwnd.saturating_add(acked).min(most).max(self.cwnd);
        let used = grown - self.cwnd;
        self.cwnd = grown;
        acked - used
    }

    /// Congestion avoidance by counting bytes: one segment more for each `per_segment` bytes acknowledged.
    pub fn additive_increase(&mut self, acked: u64, per_segment: u64) {
        let per_segment = per_segment.max(1);
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(acked);
        let segments = self.cwnd_cnt / per_segment;
        self.cwnd_cnt %= per_segment;
        self.resize(self.cwnd.saturating_add(segments.saturating_mul(self.segment())));
    }

    /// The least `ssthresh` RFC 5681 equation 4 allows: two segments.
    pub fn floor(&self) -> u64 {
        2 * self.segment()
    }
}

/// RFC 6928 equation 1, in bytes.
fn initial_window(mss: u32) -> u64 {
    InitialWindow::default().bytes(mss)
}

/// Events for a controller besides acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// Loss recovery starts: duplicate acknowledgements or SACK say that a segment is lost.
    Loss {
        /// FlightSize of RFC 5681 when it was found, without what Limited Transmit sent.
        flight: u64,
    },
    /// The retransmission timer expired.
    Timeout {
        /// FlightSize of RFC 5681 at that time.
        flight: u64,
        /// Whether this is the first expiry for this data (RFC 5681 holds ssthresh on later ones).
        first: bool,
    },
    /// The receiver echoed congestion experienced (RFC 3168); treated like a loss, without retransmission.
    Ecn {
        /// FlightSize of RFC 5681.
        flight: u64,
    },
    /// Fast recovery without SACK ended: everything outstanding at its start is acknowledged.
    RecoveryEnd {
        /// Bytes in flight now.
        flight: u64,
    },
    /// The window was not fully used, and the validation unit reduces it.
    Unvalidated {
        /// The upper bound of cwnd, in bytes.
        cwnd: u64,
        /// The lower bound of ssthresh, in bytes.
        ssthresh: u64,
        /// Whether nothing was sent at all, for longer than the retransmission timeout (RFC 5681 section 4.1).
        idle: bool,
    },
    /// The SYN or SYN-ACK had to be retransmitted (RFC 5681 section 3.1, RFC 6298 section 5.7).
    HandshakeLoss,
}

/// A congestion controller. It is trusted code: the operator of the stack chooses it.
///
/// Only [`name`](CongestionControl::name) and [`on_ack`](CongestionControl::on_ack) must be written; without the rest it reacts as
/// RFC 5681 does.
pub trait CongestionControl: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The connection begins with the window of RFC 6928; a controller with another initial window sets it here.
    fn on_start(&mut self, _window: &mut Window, _now: Instant) {}

    /// The controller takes over on a live connection; `window` is what the one before it left. It is held to that window until it grows it. A
    /// controller that begins with another window than RFC 6928's, or measures by what has been delivered since the beginning, says here
    /// what it does instead.
    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        self.on_start(window, takeover.now);
    }

    /// Another controller takes over: `window` must then hold values that it can use. Only a controller whose cwnd and ssthresh differ in
    /// meaning from RFC 5681's has to do something here.
    fn on_leave(&mut self, _window: &mut Window) {}

    /// A transmission is newly believed lost, by an acknowledgement (then before [`on_sample`](CongestionControl::on_sample)), a deadline or a
    /// timeout. For controllers that relate losses to the flight; [`on_event`](CongestionControl::on_event) reports the beginning of recovery.
    fn on_lost(&mut self, _window: &mut Window, _lost: &LostTransmission) {}

    /// Something was acknowledged, cumulatively, selectively or once more, in whatever phase. Called before the window grows: for
    /// controllers that measure.
    fn on_sample(&mut self, _window: &mut Window, _ack: &AckContext) {}

    /// Whether the controller has its own slow start, in [`on_ack`](CongestionControl::on_ack). Otherwise the slow-start unit does it, and the
    /// controller gets the rest.
    fn has_own_slow_start(&self) -> bool {
        false
    }

    /// `acked` bytes of new data were acknowledged outside recovery, and the window was what held the sender back: grow it.
    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext);

    /// A loss was found with `flight` bytes outstanding: returns the new ssthresh, and cwnd after it (RFC 5681 equation 4).
    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        half(window, flight)
    }

    /// Whether the controller takes care of the window in fast recovery itself; otherwise the reduction unit does, if there is one.
    fn has_own_recovery(&self) -> bool {
        false
    }

    /// Something happened that may shrink the window. Controllers with another idea than RFC 5681's replace this, and leave to
    /// [`react`] the events that are not their concern.
    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        react(self, window, event, now);
    }

    /// A reduction was spurious: `prior` is the window before it.
    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        restore(window, prior);
    }

    /// The rate at which to pace, in bytes per second, if the controller has an opinion. Without one, a paced connection sends a
    /// window in a little less than a round trip.
    fn pacing_rate(&self, _window: &Window) -> Option<u64> {
        None
    }

    /// Whether the controller counts on [`pacing_rate`](CongestionControl::pacing_rate) being kept: on a connection that does not pace, it
    /// is not what its specification describes. A profile that chooses it without pacing is refused; one that is composed of words gets
    /// pacing unless a word is against it.
    fn needs_pacing(&self) -> bool {
        false
    }

    /// Whether the window grows by counting acknowledged bytes in [`Window::cwnd_cnt`]. Then an extension that limits the count limits the
    /// growth of the window, and nothing else.
    fn counts_acknowledged_bytes(&self) -> bool {
        false
    }

    /// Whether the controller reduces its window for marks ([`CongestionEvent::Ecn`]). If not, its packets are not ECN-capable, even if ECN was
    /// agreed on. It would ignore a mark, but it responds to a drop (RFC 3168 section 5).
    fn answers_marks(&self) -> bool {
        true
    }

    /// Whether the controller is scalable (RFC 9331 section 4): where feedback is accurate, its packets carry ECT(1) and get the marks of L4S queues.
    fn is_scalable(&self) -> bool {
        false
    }

    /// How much may leave in one burst on a connection that paces, as a span of time at the pace.
    fn pacing_burst(&self) -> Duration {
        RatePacing::BURST
    }
}

/// RFC 5681's response to an event, with the controller's own [`ssthresh`](CongestionControl::ssthresh).
pub fn react<C: CongestionControl + ?Sized>(
    controller: &mut C,
    window: &mut Window,
    event: CongestionEvent,
    now: Instant,
) {
    window.cwnd_cnt = 0;
    match event {
        CongestionEvent::Loss { flight } | CongestionEvent::Ecn { flight } => {
            window.ssthresh = controller.ssthresh(window, flight, now);
            window.resize(window.ssthresh);
        }
        CongestionEvent::Timeout { flight, first } => {
            if first {
                window.ssthresh = controller.ssthresh(window, flight, now);
            }
            window.resize(window.segment());
        }
        CongestionEvent::RecoveryEnd { flight } => {
            // RFC 6582 section 3.2 step 3 option 1: no burst into an almost empty pipe.
            let segment = window.segment();
            window.resize(window.ssthresh.min(flight.max(segment).saturating_add(segment)));
        }
        CongestionEvent::Unvalidated { cwnd, ssthresh, idle: _ } => {
            window.ssthresh = window.ssthresh.max(ssthresh);
            window.resize(window.cwnd.min(cwnd));
        }
        CongestionEvent::HandshakeLoss => window.resize(window.segment()),
    }
}

/// Takes back a reduction: the window is at least as wide as it was, and slow start ends where it did.
pub fn restore(window: &mut Window, prior: Window) {
    window.resize(window.cwnd.max(prior.cwnd));
    window.ssthresh = prior.ssthresh.max(window.floor());
}

/// RFC 5681 equation 4: half of the flight, two segments at least.
pub fn half(window: &Window, flight: u64) -> u64 {
    (flight.min(window.cwnd) / 2).max(window.floor())
}

/// A congestion control algorithm with its parameters, of which controllers are made.
///
/// Its `Display` is its name and, in parentheses, the parameters that differ from their defaults; two algorithms with the same text are the
/// same.
pub trait Algorithm: fmt::Debug + fmt::Display + Send + Sync {
    /// A controller for one connection.
    fn controller(&self) -> Controller;
}

/// An algorithm in a list of those that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The specification.
    pub source: &'static str,
    /// Its description, in a few words.
    pub summary: &'static str,
    /// Reads its parameters.
    pub read: fn(&mut Arguments<'_>) -> Result<CongestionChoice, ArgumentError>,
}

/// The algorithms here, by name.
pub const ALGORITHMS: &[Entry] = &[
    Entry::of::<none::NoCongestionControl>(),
    Entry::of::<reno::Reno>(),
    Entry::of::<cubic::Cubic>(),
    Entry::of::<ltcp::Ltcp>(),
    Entry::of::<highspeed::HighSpeed>(),
    Entry::of::<scalable::Scalable>(),
    Entry::of::<bic::Bic>(),
    Entry::of::<htcp::HTcp>(),
    Entry::of::<multcp::MulTcp>(),
    Entry::of::<westwood::Westwood>(),
    Entry::of::<vegas::Vegas>(),
    Entry::of::<fast::Fast>(),
    Entry::of::<nice::Nice>(),
    Entry::of::<lp::Lp>(),
    Entry::of::<ledbat::Ledbat>(),
    Entry::of::<ledbat_plus_plus::LedbatPlusPlus>(),
    Entry::of::<dctcp::Dctcp>(),
    Entry::of::<prague::Prague>(),
    Entry::of::<bbr::Bbr>(),
    Entry::of::<bbr3::Bbr3>(),
];

/// The algorithm a profile names.
#[derive(Clone, Debug)]
pub struct CongestionChoice {
    name: &'static str,
    needs_pacing: bool,
    pacing_burst: Duration,
    algorithm: Arc<dyn Algorithm>,
}

impl CongestionChoice {
    /// This algorithm.
    pub fn new(algorithm: impl Algorithm + 'static) -> Self {
        let controller = algorithm.controller();
        let (name, needs_pacing) = (controller.name(), controller.needs_pacing());
        let pacing_burst = controller.pacing_burst();
        CongestionChoice { name, needs_pacing, pacing_burst, algorithm: Arc::new(algorithm) }
    }

    /// The name of its controllers.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether its controllers count on being paced ([`CongestionControl::needs_pacing`]).
    pub(crate) fn needs_pacing(&self) -> bool {
        self.needs_pacing
    }

    /// The bursts of its controllers ([`CongestionControl::pacing_burst`]).
    pub(crate) fn pacing_burst(&self) -> Duration {
        self.pacing_burst
    }

    /// RFC 5681.
    pub fn reno() -> Self {
        CongestionChoice::from(reno::Reno)
    }

    /// RFC 9438.
    pub(crate) fn cubic() -> Self {
        CongestionChoice::from(cubic::Cubic::default())
    }

    /// The receiver's window alone bounds the flight.
    pub fn none() -> Self {
        CongestionChoice::from(none::NoCongestionControl)
    }
}

impl Deref for CongestionChoice {
    type Target = dyn Algorithm;
    fn deref(&self) -> &Self::Target {
        &*self.algorithm
    }
}

impl PartialEq for CongestionChoice {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.algorithm, &other.algorithm) || self.to_string() == other.to_string()
    }
}

impl Eq for CongestionChoice {}

impl fmt::Display for CongestionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.algorithm.fmt(f)
    }
}
