//! Vegas (Brakmo, Peterson: "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 1995) as an extension: icTCP-Vegas
//! (section 5.3.2).
//!
//! Once each round trip, what the flow keeps in queues is cwnd·(RTT − BaseRTT)/RTT. With fewer than α segments there the window grows
//! by one, with more than β it shrinks by one, in between it stays. Slow start doubles every other round trip, and ends with more than γ segments
//! in queues.
//!
//! The calculated window is the extension's own, and is requested as an upper bound of cwnd. TCP's own window is the same as without Vegas. So growth
//! stops at TCP's own window plus a segment, where the native Vegas would continue. The rest is the same, acknowledgement by acknowledgement if it
//! samples each one:
//! - RTT is the least of a round's samples, a round without samples changes nothing, the window grows only when it was used, and it never shrinks below two segments;
//! - a loss or a mark halves this window, which may be narrower than TCP's, and after a timeout Vegas's slow start begins anew and ends at half of it as well;
//! - a reduction that TCP undoes is undone here.
//!
//! Other reductions of TCP's window differ. After an idle period, after low use (RFC 7661), and at the end of a recovery without SACK, this window is
//! no wider, but Vegas's slow start does not begin again. During proportional rate reduction TCP's window may exceed ssthresh for moments; this one
//! does not. With samples once each round, only the present flight is known, and nothing of reductions that were undone before.

use crate::catalogue::{Entry, choice};
use crate::round::{Rounds, Step};
use transom_tcp::arguments::{ArgumentError, Arguments};
use transom_tcp::congestion::{Vegas as Parameters, Window};
use transom_tcp::extension::{Ack, Capabilities, Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::Duration;
use transom_tcp::{LimitedBy, Phase, Pos};

/// When it is woken. It decides once each round in any case; the paper compares what the three cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    /// Whenever something leaves.
    Send,
    /// For every acknowledgement.
    Ack,
    /// Once each round.
    Round,
}

impl Poll {
    const WORDS: [(&'static str, Poll); 3] =
        [("send", Poll::Send), ("ack", Poll::Ack), ("round", Poll::Round)];

    /// Reads the parameter; once each round by default.
    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        Ok(arguments.word("poll", &Poll::WORDS)?.unwrap_or(Poll::Round))
    }

    /// The events that wake it besides the end of a round.
    pub(crate) fn wakes(self) -> Wake {
        match self {
            Poll::Send => Wake::SEND,
            Poll::Ack => Wake::ACK | Wake::DUPLICATE_ACK,
            Poll::Round => Wake::empty(),
        }
    }
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "vegas",
    source: "Brakmo, Peterson: TCP Vegas, JSAC 13(8), 1995",
    summary: "keeps between alpha and beta segments in queues",
    parameters: &[
        ("alpha", "2 segments in queues: with fewer, the window grows"),
        ("beta", "4 segments in queues: with more, it shrinks"),
        ("gamma", "1 segment in queues: with more, slow start ends"),
        ("noise", "0ms: a delay up to this shows no queue"),
        ("poll", "round, ack or send: when it takes a sample"),
    ],
    read: |arguments| {
        Ok({
            let vegas = Vegas::new(Parameters::read(arguments)?, Poll::read(arguments)?);
            choice(arguments, vegas)
        })
    },
};

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Fewer than α segments in queues.
    Grow,
    /// More than β.
    Shrink,
    /// As it should be, or not known.
    Stay,
}

/// The window, and the state of slow start.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    parameters: Parameters,
    pub(crate) poll: Poll,
    /// The request, in bytes.
    pub(crate) window: u64,
    /// Slow start has ended.
    linear: bool,
    /// Whether slow start doubles in this round.
    doubling: bool,
    /// Data sent before this had to wait for the window.
    limited_upto: Pos,
    /// Bytes delivered until the last call, and since then.
    delivered: (u64, u64),
    /// TCP's reactions to losses so far.
    seen: Reductions,
    /// Slow start ends here, in bytes.
    ssthresh: u64,
    /// Window, threshold and whether slow start was over, before the last reduction: for when TCP takes it back.
    before: Option<(u64, u64, bool)>,
}

/// TCP's changes of its window because of losses and marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reductions {
    timeouts: u64,
    recoveries: u64,
    spurious: u64,
    phase: Phase,
    window: Window,
}

impl Reductions {
    const NONE: Self = Reductions {
        timeouts: 0,
        recoveries: 0,
        spurious: 0,
        phase: Phase::Open,
        window: Window { cwnd: 0, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1 },
    };

    fn of(view: &View<'_>) -> Self {
        let counters = view.counters();
        Reductions {
            timeouts: counters.timeouts,
            recoveries: counters.fast_recoveries,
            spurious: counters.spurious_reductions,
            phase: view.phase(),
            // What is counted on the way to the next increase is no reduction.
            window: Window { cwnd_cnt: 0, mss: 1, ..view.window() },
        }
    }

    /// Whether both have come down since `before`, and not for a loss: congestion was echoed.
    fn was_marked(&self, before: &Self) -> bool {
        self.window.cwnd < before.window.cwnd && self.window.ssthresh < before.window.ssthresh
    }
}

impl Core {
    pub(crate) fn new(parameters: Parameters, poll: Poll) -> Self {
        Core {
            parameters,
            poll,
            window: 0,
            linear: false,
            doubling: true,
            limited_upto: Pos::INITIAL,
            delivered: (0, 0),
            seen: Reductions::NONE,
            ssthresh: u64::MAX,
            before: None,
        }
    }

    pub(crate) fn wake_on(&self) -> Wake {
        self.poll.wakes() | Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    pub(crate) fn begin(&mut self, view: &View<'_>) {
        *self = Core::new(self.parameters, self.poll);
        self.window = view.cwnd();
        self.linear = !view.window().in_slow_start();
        self.seen = Reductions::of(view);
        self.ssthresh = view.window().ssthresh;
        self.delivered = (view.delivered(), 0);
    }

    /// After a reduction of TCP's window, this one is no wider than it, and than half of its own value. Slow start takes TCP's state. Returns whether
    /// there was a reduction: then earlier measurements are invalid.
    pub(crate) fn follow_down(&mut self, view: &View<'_>) -> bool {
        let now = Reductions { spurious: self.seen.spurious, ..Reductions::of(view) };
        let before = core::mem::replace(&mut self.seen, now);
        let timeout = now.timeouts != before.timeouts;
        let lost = timeout || now.recoveries != before.recoveries;
        // What is in flight may bound TCP's window while it repairs; what it will be then is ssthresh.
        let own = if now.phase == Phase::Recovery { now.window.ssthresh } else { now.window.cwnd };
        if !lost && !now.was_marked(&before) {
            self.window = self.window.min(own.saturating_add(view.mss()));
            return false;
        }
        // Of both, what is taken back came first: there is nothing yet that could show this one to have been for nothing.
        self.take_back(view, u64::MAX);
        let repairing = matches!(before.phase, Phase::Recovery | Phase::Loss);
        // A timeout in the midst of a repair reduces for the same data once more, and a mark cannot turn out to have been none.
        if !lost {
            self.before = None;
        } else if !(timeout && repairing && self.before.is_some()) {
            self.before = Some((self.window, self.ssthresh, self.linear));
        }
        // TCP halves what it has of its own, and this may have been narrower. Once for the same data (RFC 5681 section 3.1).
        if !(timeout && before.phase == Phase::Loss && view.retransmits() > 1) {
            let half = (self.window / 2).max(2 * view.mss());
            self.ssthresh = now.window.ssthresh.min(half);
        }
        self.window = self.window.min(own).min(self.ssthresh);
        self.linear = !timeout;
        self.doubling = true;
        true
    }

    /// If TCP has taken a reduction back, so is this one's.
    pub(crate) fn follow_up(&mut self, view: &View<'_>) {
        self.take_back(view, view.cwnd());
    }

    fn take_back(&mut self, view: &View<'_>, most: u64) {
        let spurious = view.counters().spurious_reductions;
        if spurious != self.seen.spurious {
            self.seen.spurious = spurious;
            if let Some((window, ssthresh, linear)) = self.before.take() {
                self.window = self.window.max(window).min(most);
                (self.ssthresh, self.linear) = (ssthresh, linear);
            }
        }
    }

    /// Notes whether the window limits the sender, and the delivered bytes. Must be called before the acknowledgements since the last call are
    /// processed.
    pub(crate) fn note_limit(&mut self, view: &View<'_>) {
        let delivered = view.delivered();
        self.delivered = (delivered, delivered - self.delivered.0);
        let window = self.window.min(view.cwnd());
        // Somebody else may keep the window narrower than this.
        let full = view.in_flight() + self.delivered.1 + view.mss() > window;
        let limited = match view.limited_by() {
            LimitedBy::CongestionWindow => true,
            LimitedBy::VirtualWindow => full,
            _ => false,
        };
        if limited {
            self.limited_upto = view.snd_nxt();
        }
    }

    /// Whether what is acknowledged was sent while the window held the sender back.
    fn was_limited(&self, ack: &Ack) -> bool {
        ack.ack - ack.acked < self.limited_upto
    }

    /// Slow start, every other round.
    pub(crate) fn on_ack(&mut self, ack: &Ack, view: &View<'_>) {
        // Where a reduction is taken back, that is all that is done.
        let taken_back = view.counters().spurious_reductions != self.seen.spurious;
        if self.linear || !self.doubling || taken_back || view.phase() == Phase::Recovery {
            return;
        }
        let window = self.window.min(view.cwnd());
        // Doubling takes the whole round trip to show: half of the window in use is enough.
        let used = (view.in_flight() + ack.acked.min(self.delivered.1)) * 2 > window;
        if used || self.was_limited(ack) {
            let more = self.window.saturating_add(ack.acked.min(window));
            self.window = more.min(self.ssthresh).max(self.window);
            self.linear = self.window >= self.ssthresh;
        }
    }

    /// `ack` ends a round, of which `rtt` was the least sample.
    pub(crate) fn judge(&mut self, ack: &Ack, rtt: Option<Duration>, view: &View<'_>) -> Verdict {
        let (Some(rtt), Some(base)) = (rtt, view.min_rtt()) else {
            return Verdict::Stay;
        };
        if view.phase() == Phase::Recovery {
            return Verdict::Stay;
        }
        let window = self.window.min(view.cwnd());
        let Parameters { alpha, beta, gamma, noise } = self.parameters;
        let late = u128::from((rtt - base - noise).as_nanos());
        let rtt = u128::from(rtt.as_nanos().max(1));
        let queued = u64::try_from(u128::from(window) * late / rtt).unwrap_or(u64::MAX);
        let segment = view.mss();
        if !self.linear {
            if !self.doubling && queued > gamma.of(segment) {
                self.linear = true;
            }
            self.doubling = !self.doubling;
            return Verdict::Stay;
        }
        if queued < alpha.of(segment) && self.was_limited(ack) {
            Verdict::Grow
        } else if queued > beta.of(segment) {
            Verdict::Shrink
        } else {
            Verdict::Stay
        }
    }

    /// Ends slow start for a reason of Vegas.
    pub(crate) fn end_slow_start(&mut self) {
        self.linear = true;
    }
}

/// Vegas for one connection.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    core: Core,
    rounds: Rounds,
}

impl Vegas {
    /// With the native one's parameters.
    fn new(parameters: Parameters, poll: Poll) -> Self {
        Vegas { core: Core::new(parameters, poll), rounds: Rounds::default() }
    }
}

impl Extension for Vegas {
    fn name(&self) -> &str {
        "vegas"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::ACK_LIST
    }

    fn wake_on(&self) -> Wake {
        self.core.wake_on()
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.core.begin(view);
        self.rounds.begin(view);
        limits.at_most(Value::Cwnd(self.core.window));
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let core = &mut self.core;
        core.note_limit(view);
        if core.follow_down(view) {
            // What was measured before it says nothing about now.
            self.rounds.pass(view, |_| {});
        }
        self.rounds.follow(view, |step| match step {
            Step::RoundOver(ack, rtt) => {
                let (window, segment) = (core.window.min(view.cwnd()), view.mss());
                match core.judge(ack, rtt, view) {
                    Verdict::Grow => core.window = window + segment,
                    Verdict::Shrink => {
                        core.window = window.saturating_sub(segment).max(2 * segment);
                    }
                    Verdict::Stay => {}
                }
            }
            Step::Ack(ack) => core.on_ack(ack, view),
        });
        core.follow_up(view);
        limits.at_most(Value::Cwnd(core.window));
    }
}
