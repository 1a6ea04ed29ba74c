//! rLEDBAT (RFC 9840): the receiver keeps a background transfer behind everyone else, whatever its sender runs, by the window that it offers.
//!
//! The receiver has its own window RLWND, by the rules of LEDBAT++ (the native controller `ledbat++`, applied to
//! arriving data). It advertises the smaller of RLWND and flow control's own window (fcwnd). An advertised window is never taken back: a smaller
//! RLWND takes effect as data arrives.
//!
//! The delay is that of round trips: from an acknowledgement of the receiver to the first full segment that echoes its timestamp. So it requires
//! timestamps. Its clock ticks in milliseconds, and less than one counts as one.
//!
//! Differences from the RFC, and choices that it leaves open:
//! - It was written from the RFC's abstract and from descriptions of its drafts; its sections could not be compared. Implementations of the drafts
//!   decrease once a round trip, and then wait until it has taken effect; here LEDBAT++ takes its share with all arriving data. They also detect
//!   retransmissions by timestamps.
//! - A loss halves RLWND, as in LEDBAT++, once in a round trip. It is detected when a hole is filled that was open for the least round-trip time
//!   or longer. Data that fills it sooner was reordered, not retransmitted.
//! - RLWND grows only where the sender made use of it: where half of it at least arrived in the last round trip. Otherwise it would be of
//!   any size when a sender with little to send begins to have more.
//! - It assumes the sender's segments to be as large as ours.
//! - A sender that pauses makes round trips look long. The least of four samples counts, as in LEDBAT.

use crate::catalogue::Entry;
use crate::shadow::native;
use transom_tcp::congestion::{CongestionControl, CongestionEvent, Controller, Window};
use transom_tcp::extension::{
    Capabilities, Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{AckContext, Estimate, Pos};

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "rledbat",
    source: "RFC 9840; draft-irtf-iccrg-ledbat-plus-plus",
    summary: "the receiver makes its incoming transfer yield to others, by its advertised window",
    parameters: &[("target", "60ms of queueing delay to keep")],
    read: |arguments| {
        let controller = native(arguments, "ledbat++")?;
        let make = move || Box::new(Rledbat::new(controller.controller())) as Box<_>;
        Ok(ExtensionChoice::new(arguments.choice(), make))
    },
};

/// The least length of a round trip: a tick of the timestamps' clock. Otherwise a round of no length would have no bytes, and any hole would have
/// been open for long enough.
const TICK: Duration = Duration::from_millis(1);

/// The present round trip and the last.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Instant,
    /// Bytes that arrived in it, and in the one before.
    bytes: u64,
    before: u64,
}

/// The extension of the receiver.
#[derive(Debug)]
pub(crate) struct Rledbat {
    controller: Controller,
    /// RLWND.
    window: Window,
    /// The next expected position at the last call, and the bytes that had arrived.
    next: Pos,
    arrived: u64,
    /// Since when there is a hole before what has arrived.
    hole: Option<Instant>,
    /// A loss before then is of the window that was reduced already.
    reduced_until: Option<Instant>,
    /// The time of the last sample that counted, and the least sample.
    sampled: Option<Instant>,
    least: Option<Duration>,
    round: Round,
}

impl Rledbat {
    /// By this controller of LEDBAT++.
    fn new(controller: Controller) -> Self {
        Rledbat {
            controller,
            window: Window::initial(0),
            next: Pos::default(),
            arrived: 0,
            hole: None,
            reduced_until: None,
            sampled: None,
            least: None,
            round: Round::default(),
        }
    }

    /// Whether the sender fills the window: half of it in a round trip.
    fn is_window_filled(&mut self, now: Instant, bytes: u64, rtt: Duration) -> bool {
        if now.since(self.round.began) >= rtt {
            self.round = Round { began: now, bytes: 0, before: self.round.bytes };
        }
        self.round.bytes = self.round.bytes.saturating_add(bytes);
        self.round.bytes.max(self.round.before) >= self.window.cwnd / 2
    }

    /// Whether what arrived now filled a hole, and had been sent again for it.
    fn has_lost(&mut self, view: &View<'_>) -> bool {
        let now = view.now();
        if view.rcv_nxt() == self.next {
            self.hole.get_or_insert(now);
            return false;
        }
        self.next = view.rcv_nxt();
        let open = self.hole.take().map(|since| now.since(since));
        open.zip(self.least).is_some_and(|(open, least)| open >= least)
            && self.reduced_until.is_none_or(|until| now >= until)
    }

    fn on_data(&mut self, view: &View<'_>) {
        let now = view.now();
        let arrived = view.counters().bytes_accepted;
        let bytes = arrived - std::mem::replace(&mut self.arrived, arrived);
        let new = view.last_rcv_rtt().filter(|&(at, _)| self.sampled.is_none_or(|last| at > last));
        let sample = new.map(|(at, rtt)| {
            self.sampled = Some(at);
            let rtt = rtt.max(TICK);
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            rtt
        });
        let srtt = view.rcv_rtt().map(|rtt| rtt.max(TICK));
        if self.has_lost(view) {
            let flight = self.window.cwnd;
            self.controller.on_event(&mut self.window, CongestionEvent::Loss { flight }, now);
            self.reduced_until = Some(now + srtt.unwrap_or_default());
        }
        let Some(srtt) = srtt else { return };
        let ack = AckContext {
            now,
            una: view.rcv_nxt(),
            nxt: view.rcv_nxt(),
            acked: bytes,
            newly_delivered: bytes,
            rtt: sample,
            estimate: Some(Estimate { srtt, rttvar: Duration::ZERO }),
            min_rtt: self.least,
            mss: self.window.mss,
            ..AckContext::default()
        };
        self.controller.on_sample(&mut self.window, &ack);
        if self.is_window_filled(now, bytes, srtt) {
            self.controller.on_ack(&mut self.window, bytes, &ack);
        }
    }
}

impl Extension for Rledbat {
    fn name(&self) -> &str {
        "rledbat"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::TIMESTAMPS
    }

    fn wake_on(&self) -> Wake {
        Wake::DATA
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.window = Window::initial(u32::try_from(view.mss()).unwrap_or(u32::MAX));
        self.controller.on_start(&mut self.window, view.now());
        (self.next, self.arrived) = (view.rcv_nxt(), view.counters().bytes_accepted);
        limits.at_most(Value::RcvWnd(self.window.cwnd));
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.on_data(view);
        limits.at_most(Value::RcvWnd(self.window.cwnd));
    }
}
