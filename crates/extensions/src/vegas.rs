//! Vegas (Brakmo, Peterson: "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 1995) as an extension: icTCP-Vegas
//! (section 5.3.2).
//!
//! Once each round trip, what the flow keeps in queues is cwnd·(RTT − BaseRTT)/RTT. With fewer than α segments there the window grows
//! by one, with more than β it shrinks by one, in between it stays. Slow start doubles every other round trip, and ends with more than γ segments
//! in queues.
//!
//! The window that is computed is the extension's own, and asked for as the most that cwnd may be. TCP's own window is what it would be without Vegas, and a
//! loss halves it; Vegas's follows it down. So it can grow no faster than TCP's, and what differs from the native Vegas is that:
//! - growth stops at TCP's own window plus a segment, which is where the native one would go beyond it;
//! - TCP's own slow start goes on above Vegas's for as long as it is fed, and its end is of no consequence here.
//!
//! As in the native one RTT is the least of a round's samples, a round without samples changes nothing, the window grows only when it was used, and it
//! never shrinks below two segments.

use crate::catalogue::{Entry, choice};
use crate::round::{Rounds, Step};
use transom_tcp::compose::{ArgumentError, Arguments};
use transom_tcp::congestion::vegas::Vegas as Parameters;
use transom_tcp::extension::{Capabilities, Event, Extension, Limits, View, Wake, variable};
use transom_tcp::recovery::Phase;
use transom_tcp::time::Duration;

/// When it is woken. It decides once each round in any case; the paper compares what the three cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
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

    /// Takes it; once each round unless something else is said.
    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        Ok(arguments.word("poll", &Poll::WORDS)?.unwrap_or(Poll::Round))
    }

    /// What wakes it besides the end of a round.
    pub(crate) fn wakes(self) -> Wake {
        match self {
            Poll::Send => Wake::SEND,
            Poll::Ack => Wake::ACK,
            Poll::Round => Wake::empty(),
        }
    }
}

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    source: "Brakmo, Peterson: TCP Vegas, JSAC 13(8), 1995",
    summary: "keeps between alpha and beta segments in queues",
    parameters: &[
        ("alpha", "2 segments in queues: with fewer the window grows"),
        ("beta", "4 segments in queues: with more it shrinks"),
        ("gamma", "1 segment in queues: with more slow start is over"),
        ("poll", "round, ack or send: when it looks"),
    ],
    read: |arguments| {
        Ok({
            let vegas = Vegas::new(Parameters::read(arguments)?, Poll::read(arguments)?);
            choice(arguments, vegas)
        })
    },
};

/// What a round found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Fewer than α segments in queues.
    Grow,
    /// More than β.
    Shrink,
    /// As it should be, or not known.
    Stay,
}

/// The window, and where slow start stands.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    parameters: Parameters,
    poll: Poll,
    /// What is asked for, in bytes.
    pub(crate) window: u64,
    /// Slow start is over.
    linear: bool,
    /// Whether slow start doubles in this round.
    doubling: bool,
    /// Whether the window was used in this round.
    used: bool,
    timeouts: u64,
    recoveries: u64,
}

impl Core {
    pub(crate) fn new(parameters: Parameters, poll: Poll) -> Self {
        Core {
            parameters,
            poll,
            window: 0,
            linear: false,
            doubling: true,
            used: false,
            timeouts: 0,
            recoveries: 0,
        }
    }

    pub(crate) fn wake_on(&self) -> Wake {
        self.poll.wakes() | Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    pub(crate) fn begin(&mut self, view: &View<'_>) {
        self.window = view.cwnd();
        self.linear = !view.in_slow_start();
        (self.timeouts, self.recoveries) =
            (view.counters().timeouts, view.counters().fast_recoveries);
    }

    /// TCP has reduced its window: this one is no wider, and slow start stands where TCP's does. Returns whether it has.
    pub(crate) fn follow_down(&mut self, view: &View<'_>) -> bool {
        let now = (view.counters().timeouts, view.counters().fast_recoveries);
        let reduced = (self.timeouts, self.recoveries) != now;
        if reduced {
            self.linear = now.0 == self.timeouts;
            self.doubling = true;
            self.used = false;
        }
        (self.timeouts, self.recoveries) = now;
        self.window = self.window.min(view.cwnd().saturating_add(view.mss()));
        if reduced {
            self.window = self.window.min(view.cwnd());
        }
        reduced
    }

    /// `acked` bytes were acknowledged: slow start, every other round.
    pub(crate) fn on_acked(&mut self, acked: u64, view: &View<'_>) {
        // What is in flight now, and what was before this.
        let flight = view.in_flight() + acked;
        self.used |= flight + view.mss() > self.window.min(view.cwnd());
        if !self.linear && self.doubling && view.phase() != Phase::Recovery {
            self.window = self.window.saturating_add(acked);
        }
    }

    /// A round is over, of which `rtt` was the least sample.
    pub(crate) fn judge(&mut self, rtt: Option<Duration>, view: &View<'_>) -> Verdict {
        let used = core::mem::take(&mut self.used);
        let (Some(rtt), Some(base)) = (rtt, view.min_rtt()) else {
            return Verdict::Stay;
        };
        if view.phase() == Phase::Recovery {
            return Verdict::Stay;
        }
        let window = self.window.min(view.cwnd());
        let (late, rtt) = (u128::from((rtt - base).as_nanos()), u128::from(rtt.as_nanos().max(1)));
        let queued = u64::try_from(u128::from(window) * late / rtt).unwrap_or(u64::MAX);
        let Parameters { alpha, beta, gamma } = self.parameters;
        let segment = view.mss();
        if !self.linear {
            if !self.doubling && queued > gamma.of(segment) {
                self.linear = true;
            }
            self.doubling = !self.doubling;
            return Verdict::Stay;
        }
        if queued < alpha.of(segment) && used {
            Verdict::Grow
        } else if queued > beta.of(segment) {
            Verdict::Shrink
        } else {
            Verdict::Stay
        }
    }

    /// Slow start is over for a reason of its own.
    pub(crate) fn end_slow_start(&mut self) {
        self.linear = true;
    }
}

/// Vegas for one connection.
#[derive(Clone, Debug)]
pub struct Vegas {
    core: Core,
    rounds: Rounds,
}

impl Vegas {
    /// With the native one's parameters.
    pub fn new(parameters: Parameters, poll: Poll) -> Self {
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
        limits.at_most(variable::CWND, self.core.window);
    }

    fn on_wake(&mut self, _event: &Event, view: &View<'_>, limits: &mut Limits) {
        let core = &mut self.core;
        let reduced = core.follow_down(view);
        self.rounds.follow(view, |step| match step {
            Step::RoundOver(_) if reduced => {}
            Step::RoundOver(rtt) => {
                let (window, segment) = (core.window.min(view.cwnd()), view.mss());
                match core.judge(rtt, view) {
                    Verdict::Grow => core.window = window + segment,
                    Verdict::Shrink => {
                        core.window = window.saturating_sub(segment).max(2 * segment);
                    }
                    Verdict::Stay => {}
                }
            }
            Step::Ack(ack) => core.on_acked(ack.acked, view),
        });
        limits.at_most(variable::CWND, core.window);
    }
}
