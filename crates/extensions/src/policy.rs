//! A learned extension: a small network of integers decides the window, once each round trip or for each acknowledgement.
//!
//! Theory of operation. An `Observer` makes a vector of what happened since the last decision ([`Observation`]). A [`Decider`] turns it into two
//! numbers, a factor and a sum, and `Action::apply` makes a window of them. The extension requests this window as the upper bound of cwnd. So whatever was
//! learned, or was not, the flow is no more aggressive than TCP, and it always may have one segment in the network, so that it ends.
//!
//! The decider is a [`Network`] from a file, which is hostile input (`network`). It is a trainer's own function where a policy is learned:
//! the same code then observes and acts. All of it is integers, so a decision is the same in every place.
//!
//! [`controller()`] gives the same as a congestion controller, which is trusted: its window may be wider than that of another TCP.

mod controller;
mod file;
mod network;
mod observation;

pub use controller::controller;
pub use file::{chosen, pinned};
pub use network::{Layer, Network, NetworkError};
pub(crate) use observation::Observer;
pub use observation::{INPUTS, Observation, Seen};

use crate::catalogue::Entry;
use std::fmt;
use std::sync::Arc;
use transom_tcp::Phase;
use transom_tcp::congestion::Window;
use transom_tcp::extension::{
    AckKind, Capabilities, Extension, ExtensionChoice, Limits, Occasion, Value, View, Wake,
};

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "policy",
    source: "learned; docs/learning.md",
    summary: "a small network of integers, learned in the simulator, decides the window",
    parameters: &[
        ("name", "background: a policy of the program, background or low-latency"),
        ("file", "a file that transom.gym has written, in the place of one of the program"),
        ("sha256", "the file's SHA-256; another file is refused"),
    ],
    read: |arguments| {
        let network = Arc::new(file::chosen(arguments)?);
        let period = network.period();
        let text = arguments.choice();
        Ok(ExtensionChoice::new(text, move || extension(period, Box::new(network.clone()))))
    },
};

/// When a decider decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Once each round trip.
    Round,
    /// For each acknowledgement of something new.
    Ack,
}

/// The wish of a decider: the window times 1 + `factor`/1024, and `sum`/1024 segments more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// In 1024ths of the window: from -768, a quarter of it, to 1024, twice as much.
    pub factor: i32,
    /// In 1024ths of a segment: from -4096 to 4096, four segments.
    pub sum: i32,
}

impl Action {
    /// The bounds of `factor`.
    const FACTORS: (i32, i32) = (-768, 1024);
    /// The bounds of `sum`.
    const SUMS: (i32, i32) = (-4096, 4096);

    /// The window that becomes of `window`, in bytes: from one segment to [`Window::WIDEST`].
    fn apply(self, window: u64, mss: u64) -> u64 {
        let (low, high) = Self::FACTORS;
        let factor = i64::from(self.factor.clamp(low, high));
        let (low, high) = Self::SUMS;
        let sum = i64::from(self.sum.clamp(low, high));
        // At most 2^40 times 2^11, and 2^32 times 2^12: both fit.
        let (window, mss) = (window.min(Window::WIDEST) as i64, mss.clamp(1, 1 << 32) as i64);
        let next = ((window * (1024 + factor)) >> 10) + ((mss * sum) >> 10);
        next.clamp(mss, Window::WIDEST as i64) as u64
    }
}

/// Something that decides. It is called for each connection on its own, in the order of events.
pub trait Decider: fmt::Debug + Send {
    /// The decision for what was observed; nothing changes nothing, as when nobody decides any more.
    fn decide(&mut self, observation: &Observation, seen: &Seen) -> Option<Action>;
}

impl Decider for Arc<Network> {
    fn decide(&mut self, observation: &Observation, _: &Seen) -> Option<Action> {
        Some(Network::decide(self, observation))
    }
}

/// The extension for one connection, that decides by `decider`.
pub fn extension(period: Period, decider: Box<dyn Decider>) -> Box<dyn Extension> {
    Box::new(Policy { period, decider, observer: Observer::default(), window: 0, acks: 0 })
}

#[derive(Debug)]
struct Policy {
    period: Period,
    decider: Box<dyn Decider>,
    observer: Observer,
    /// The request, in bytes.
    window: u64,
    /// Acknowledgements that have been observed.
    acks: u64,
}

impl Policy {
    fn seen(&self, view: &View<'_>) -> Seen {
        let counters = view.counters();
        Seen {
            now: view.now(),
            mss: view.mss(),
            window: self.window.min(view.cwnd()),
            in_flight: view.in_flight(),
            delivered: view.delivered(),
            lost: view.counters().lost_bytes,
            base: view.min_rtt(),
            reductions: counters.fast_recoveries + counters.timeouts,
        }
    }

    /// Takes in the acknowledgements since the last call.
    fn listen(&mut self, view: &View<'_>) {
        let new = usize::try_from(view.acks_seen() - self.acks).unwrap_or(usize::MAX);
        self.acks = view.acks_seen();
        for ack in view.last_acks(new) {
            let marked = ack.kind.contains(AckKind::ECN_ECHO);
            self.observer.ack(ack.rtt, ack.acked.saturating_add(ack.sacked), marked);
        }
    }
}

impl Extension for Policy {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn requires(&self) -> Capabilities {
        Capabilities::ACK_LIST
    }

    fn wake_on(&self) -> Wake {
        let always = Wake::ROUND | Wake::LOSS | Wake::TIMEOUT;
        match self.period {
            Period::Round => always,
            Period::Ack => always | Wake::ACK,
        }
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.window = view.cwnd();
        self.acks = view.acks_seen();
        self.observer = Observer::begin(&self.seen(view));
        limits.at_most(Value::Cwnd(self.window));
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.listen(view);
        // What is in flight bounds TCP's window while it repairs; what it will be then is ssthresh.
        let repairing = view.phase() == Phase::Recovery;
        let own = if repairing { view.window().ssthresh } else { view.cwnd() };
        self.window = self.window.min(own.saturating_add(view.mss()));
        let decides = match self.period {
            Period::Round => Wake::ROUND,
            Period::Ack => Wake::ROUND | Wake::ACK,
        };
        if occasion.what.intersects(decides) {
            let seen = self.seen(view);
            let observation = self.observer.observe(&seen);
            if let Some(action) = self.decider.decide(&observation, &seen) {
                self.window = action.apply(self.window, view.mss());
                self.window = self.window.min(own.saturating_add(view.mss()));
            }
        }
        limits.at_most(Value::Cwnd(self.window.max(view.mss())));
    }
}

#[cfg(test)]
mod tests;
