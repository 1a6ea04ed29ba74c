//! A native congestion controller as an extension. It runs as a shadow of the connection's controller, with its own window, and requests that window
//! as the upper bound of cwnd.
//!
//! So its arithmetic is that of the native controller, and only the constraint makes a difference. It receives the same information as the
//! connection's own controller, as far as a [`View`] shows it:
//! - Acknowledgements with their samples. If the controller has no slow start, RFC 5681's applies. The window grows when it, or TCP's own if that is
//!   less, limited the sender.
//! - Losses and timeouts, with what is outstanding when the extension is woken as the flight. If TCP takes its reduction back, so does this one.
//! - That TCP's own window fell for another reason: for marks, or because it was not used.
//!
//! Two rules apply between its window and the request:
//! - A window wider than TCP's own does not show in the network, and a controller that measures would draw conclusions from an unused window. So it
//!   follows TCP's own down to a segment above it, unless the request of an unbounded controller is to be shown.
//! - In fast recovery TCP decides the reduction (RFC 5681's at once, or RFC 9937's step by step), unless the controller wants to end below TCP.
//!
//! It does not receive rate samples, one-way delays and given-up data, which a native controller may use.

use transom_tcp::arguments::{ArgumentError, Arguments};
use transom_tcp::congestion::{
    ALGORITHMS, CongestionChoice, CongestionControl, CongestionEvent, Controller, Takeover, Window,
};
use transom_tcp::extension::{
    Ack, AckKind, Capabilities, Extension, ExtensionChoice, Limits, Occasion, Value, Variable,
    View, Wake,
};
use transom_tcp::slow_start::{SlowStart as _, Standard};
use transom_tcp::{AckContext, Phase, Pos};

/// The native algorithm of this name, with the parameters that are given.
pub(crate) fn native(
    given: &mut Arguments<'_>,
    name: &str,
) -> Result<CongestionChoice, ArgumentError> {
    match ALGORITHMS.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.read)(given),
        None => Err(given.impossible(format_args!("there is no algorithm called {name}"))),
    }
}

/// The extension `name`: the native algorithm `of` as a shadow, which `adapt` adapts.
pub(crate) fn shadow(
    given: &mut Arguments<'_>,
    name: &'static str,
    of: &str,
    adapt: fn(ShadowController) -> ShadowController,
) -> Result<ExtensionChoice, ArgumentError> {
    let choice = native(given, of)?;
    let make = move || Box::new(adapt(ShadowController::new(name, &choice))) as Box<_>;
    Ok(ExtensionChoice::new(given.choice(), make))
}

/// The state of the connection at the last call.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    window: Window,
    delivered: u64,
    spurious_reductions: u64,
    /// In fast recovery, or after a timeout.
    repairing: bool,
}

impl Seen {
    fn of(view: &View<'_>) -> Self {
        Seen {
            window: view.window(),
            delivered: view.delivered(),
            spurious_reductions: view.counters().spurious_reductions,
            repairing: matches!(view.phase(), Phase::Recovery | Phase::Loss),
        }
    }
}

/// A controller that shadows a connection's own.
#[derive(Debug)]
pub(crate) struct ShadowController {
    name: &'static str,
    controller: Controller,
    slow_start: Standard,
    /// The requested window.
    window: Window,
    /// As it was before the last reduction.
    prior: Window,
    follows: bool,
    limits_ssthresh: bool,
    /// Data before this was sent while the window was the limit.
    limited_upto: Pos,
    seen: Seen,
}

impl ShadowController {
    /// A controller of `choice`, as an extension that reports call `name`.
    pub(crate) fn new(name: &'static str, choice: &CongestionChoice) -> Self {
        let window = Window { cwnd: 0, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1 };
        ShadowController {
            name,
            controller: choice.controller(),
            slow_start: Standard::default(),
            window,
            prior: window,
            follows: true,
            limits_ssthresh: false,
            limited_upto: Pos::INITIAL,
            seen: Seen::default(),
        }
    }

    /// With this slow start.
    #[must_use]
    pub(crate) fn slow_start(self, slow_start: Standard) -> Self {
        ShadowController { slow_start, ..self }
    }

    /// Whether its window follows TCP's own down to a segment above it.
    #[must_use]
    pub(crate) fn following(self, follows: bool) -> Self {
        ShadowController { follows, ..self }
    }

    /// Requests its ssthresh as an upper bound as well.
    #[must_use]
    pub(crate) fn limiting_ssthresh(self) -> Self {
        ShadowController { limits_ssthresh: true, ..self }
    }

    /// The context of this event's acknowledgement.
    fn context(&mut self, occasion: &Occasion, ack: &Ack, view: &View<'_>) -> AckContext {
        let prior_in_flight = view.in_flight().saturating_add(ack.acked + ack.sacked);
        let used = self.window.cwnd.min(view.cwnd());
        if prior_in_flight.saturating_add(view.mss()) > used {
            self.limited_upto = view.snd_nxt();
        }
        let tcp_grew = (view.cwnd(), view.window().cwnd_cnt)
            != (self.seen.window.cwnd, self.seen.window.cwnd_cnt);
        let half_used = self.window.in_slow_start() && prior_in_flight * 2 > used;
        let una = ack.ack - ack.acked;
        AckContext {
            now: occasion.now,
            una: ack.ack,
            nxt: view.snd_nxt(),
            acked: ack.acked,
            sacked: ack.sacked,
            newly_delivered: view.delivered().saturating_sub(self.seen.delivered),
            duplicate: ack.kind.contains(AckKind::DUPLICATE),
            has_sack: ack.kind.contains(AckKind::SACK),
            sack_agreed: view.capabilities().contains(Capabilities::SACK),
            rtt: ack.rtt,
            estimate: view.estimate(),
            min_rtt: view.min_rtt(),
            round_start: occasion.what.contains(Wake::ROUND),
            delivered: view.delivered(),
            recovering: view.phase() == Phase::Recovery,
            prior_in_flight,
            in_flight: view.in_flight(),
            cwnd_limited: una < self.limited_upto || half_used || tcp_grew,
            ecn_echo: ack.kind.contains(AckKind::ECN_ECHO),
            mss: self.window.mss,
            ..AckContext::default()
        }
    }

    /// As the connection grows its own.
    fn grow(&mut self, ack: &AckContext) {
        let mut acked = ack.acked;
        if self.window.in_slow_start() && !self.controller.has_own_slow_start() {
            acked = self.slow_start.grow(&mut self.window, acked, ack);
        }
        // One round trip is worth one increase, however much it acknowledges.
        acked = acked.min(self.window.cwnd);
        if acked > 0 {
            self.controller.on_ack(&mut self.window, acked, ack);
        }
    }

    fn reduce(&mut self, event: CongestionEvent, view: &View<'_>) {
        if !self.seen.repairing {
            self.prior = self.window;
        }
        self.slow_start.on_reduction(matches!(event, CongestionEvent::Timeout { .. }));
        self.controller.on_event(&mut self.window, event, view.now());
    }

    /// TCP's own window is less than it was, and neither a loss nor a timeout is why.
    fn on_window_decrease(&mut self, marked: bool, view: &View<'_>) {
        let event = if marked {
            CongestionEvent::Ecn { flight: view.outstanding() }
        } else {
            // RFC 7661 section 4.4.3 raises ssthresh, RFC 5681 section 4.1 does not.
            let raised = view.window().ssthresh > self.seen.window.ssthresh;
            let ssthresh = if raised { self.window.cwnd / 4 * 3 } else { 0 };
            CongestionEvent::Unvalidated { cwnd: view.cwnd(), ssthresh, idle: true }
        };
        self.reduce(event, view);
    }

    fn on_event(&mut self, occasion: &Occasion, view: &View<'_>) {
        self.window.mss = u32::try_from(view.mss()).unwrap_or(u32::MAX);
        let flight = view.outstanding();
        if occasion.what.contains(Wake::TIMEOUT) {
            let first = view.retransmits() <= 1;
            self.reduce(CongestionEvent::Timeout { flight, first }, view);
        }
        let tells = |ack: &&Ack| ack.kind.intersects(AckKind::all() - AckKind::WINDOW_UPDATE);
        let Some(ack) = occasion.ack.as_ref().filter(tells) else {
            // RACK's reordering timer finds a loss when no acknowledgement arrives (RFC 8985 section 6.3).
            if occasion.what.contains(Wake::LOSS) {
                self.reduce(CongestionEvent::Loss { flight }, view);
            }
            return;
        };
        let context = self.context(occasion, ack, view);
        self.controller.on_sample(&mut self.window, &context);
        let fell = view.cwnd() < self.seen.window.cwnd
            && !self.seen.repairing
            && !occasion.what.intersects(Wake::LOSS | Wake::TIMEOUT);
        if view.counters().spurious_reductions > self.seen.spurious_reductions {
            self.controller.on_undo(&mut self.window, self.prior, view.now());
        } else if occasion.what.contains(Wake::LOSS) {
            self.reduce(CongestionEvent::Loss { flight }, view);
        } else if ack.acked > 0 && context.cwnd_limited && !context.recovering {
            self.grow(&context);
        }
        if fell {
            self.on_window_decrease(context.ecn_echo, view);
        }
    }

    fn ask(&self, view: &View<'_>, limits: &mut Limits) {
        let Window { cwnd, ssthresh, .. } = self.window;
        if view.phase() == Phase::Recovery && cwnd >= view.window().ssthresh {
            limits.clear(Variable::Cwnd);
        } else {
            // Increases come in whole segments, and two counts need not come to one at the same byte: who does not mean to be less than TCP
            // is not less for that.
            let apart = if self.follows { 0 } else { view.mss() };
            limits.at_most(Value::Cwnd(cwnd.saturating_add(apart)));
        }
        if self.limits_ssthresh {
            limits.at_most(Value::Ssthresh(ssthresh));
        }
    }
}

impl Extension for ShadowController {
    fn name(&self) -> &str {
        self.name
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::DUPLICATE_ACK | Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.window = view.window();
        self.prior = self.window;
        self.seen = Seen::of(view);
        if view.delivered() == 0 {
            self.controller.on_start(&mut self.window, view.now());
        } else {
            let takeover = Takeover {
                now: view.now(),
                in_flight: view.in_flight(),
                delivered: view.delivered(),
                estimate: view.estimate(),
                min_rtt: view.min_rtt(),
            };
            self.controller.on_takeover(&mut self.window, &takeover);
        }
        self.ask(view, limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.on_event(occasion, view);
        self.seen = Seen::of(view);
        if self.follows && view.phase() != Phase::Recovery {
            let most = view.cwnd().saturating_add(view.mss());
            self.window.resize(self.window.cwnd.min(most));
        }
        self.ask(view, limits);
    }
}
