//! TCP Nice (Venkataramani, Kokku, Dahlin: "TCP Nice: A Mechanism for Background Transfers", OSDI 2002) as an extension: icTCP-Nice
//! (section 5.4.1).
//!
//! Vegas, made sensitive to queues that others build. If more than the share f of a round trip's packets were delayed by more than minRTT + t·(maxRTT
//! − minRTT), the window is halved. It may fall below one packet: a window of 1/n is one packet for a round trip and none for n − 1.
//!
//! Differences from the paper, and choices that it leaves open:
//! - f = 0.5 and t = 0.1 by default, as icTCP uses them.
//! - Samples count packets: each acknowledgement represents the bytes that it acknowledges.
//! - A segment that travels alone shows no queue, as its receiver may have delayed the acknowledgement: it changes nothing. So after its n round trips
//!   comes one with two; if they were delayed, n doubles, up to 48; if not, n halves, and at n = 1 the window grows again.
//! - A round trip in which nothing may leave is a smoothed round-trip time long.
//! - minRTT and maxRTT are the least and the largest sample of data, except segments that travel alone. maxRTT is twice minRTT at least; the native
//!   controller explains why.

use crate::catalogue::{Entry, choice};
use crate::round::{Rounds, Step};
use crate::vegas::{Core, Poll, Verdict};
use transom_tcp::Phase;
use transom_tcp::arguments::Fraction;
use transom_tcp::congestion::Nice as Parameters;
use transom_tcp::extension::{Ack, Capabilities, Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::{Duration, Instant};

/// The most round trips for one segment.
const LONGEST_WAIT: u64 = 48;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "nice",
    source: "Venkataramani, Kokku, Dahlin: TCP Nice, OSDI 2002",
    summary: "Vegas that halves its window when half of a round's packets meet a queue; for background transfers",
    parameters: &[
        ("fraction", "0.5 of a round's packets: if more of them are delayed, the window is halved"),
        (
            "threshold",
            "0.1: a packet is delayed above this point between the least and the largest round-trip time",
        ),
        ("alpha", "2 segments in queues: with fewer, the window grows"),
        ("beta", "4 segments in queues: with more, it shrinks"),
        ("gamma", "1 segment in queues: with more, slow start ends"),
        (
            "noise",
            "0ms: a delay up to this shows no queue, such as the scheduler's on paths of microseconds",
        ),
        ("poll", "round, ack or send: when it takes a sample"),
    ],
    read: |arguments| {
        let nice = Nice::new(Parameters::read(arguments)?, Poll::read(arguments)?);
        Ok(choice(arguments, nice))
    },
};

/// The delays of a round's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    min_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Bytes of this round whose round-trip time is known.
    acked: u64,
    /// Those among them that met a queue.
    delayed: u64,
}

impl Delays {
    fn add(&mut self, ack: &Ack, alone: bool, parameters: &Parameters) {
        let Some(rtt) = ack.rtt else { return };
        if !alone {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
        }
        let least = self.min_rtt.unwrap_or(rtt);
        let span = self.max_rtt.max(least.times(2)) - least;
        let Parameters { vegas, threshold, .. } = parameters;
        let late = least + Duration::from_nanos(threshold.of(span.as_nanos())) + vegas.noise;
        let bytes = (ack.acked + ack.sacked).max(1);
        self.acked += bytes;
        if rtt > late && !alone {
            self.delayed += bytes;
        }
    }

    /// Whether too many did; the next round begins.
    fn are_too_many(&mut self, fraction: Fraction) -> bool {
        let too_many = self.delayed > fraction.of(self.acked);
        (self.acked, self.delayed) = (0, 0);
        too_many
    }
}

/// Whether what is acknowledged travelled alone.
fn is_alone(ack: &Ack, view: &View<'_>) -> bool {
    ack.acked <= view.mss() && view.in_flight() == 0
}

/// Nice for one connection.
#[derive(Clone, Debug)]
pub(crate) struct Nice {
    parameters: Parameters,
    vegas: Core,
    rounds: Rounds,
    delays: Delays,
    /// Whether the window has fallen to one segment and not yet come back.
    below: bool,
    /// n: a window of one segment for this many round trips.
    wait: u64,
    /// Nothing may leave before.
    closed_until: Option<Instant>,
}

impl Nice {
    /// With the native one's parameters.
    pub(crate) fn new(parameters: Parameters, poll: Poll) -> Self {
        Nice {
            parameters,
            vegas: Core::new(parameters.vegas, poll),
            rounds: Rounds::default(),
            delays: Delays::default(),
            below: false,
            wait: 1,
            closed_until: None,
        }
    }

    fn halve(&mut self, mss: u64) {
        if self.below {
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
            self.vegas.window = mss;
        } else {
            self.vegas.window = (self.vegas.window / 2).max(mss);
            self.below = self.vegas.window <= mss;
        }
    }

    fn grow(&mut self, cwnd: u64, mss: u64) {
        let window = self.vegas.window.min(cwnd);
        if window <= mss {
            // Two show what one does not.
            self.vegas.window = 2 * mss;
        } else if self.below && self.wait > 1 {
            self.wait /= 2;
            self.vegas.window = mss;
        } else {
            self.below = false;
            self.vegas.window = window + mss;
        }
    }

    /// An acknowledgement, the first of a new round if the one before is `over`: it still counts in the judgement of that.
    fn on_ack(&mut self, ack: &Ack, over: Option<Option<Duration>>, view: &View<'_>) {
        self.delays.add(ack, is_alone(ack, view), &self.parameters);
        if let Some(rtt) = over {
            self.end_round(ack, rtt, view);
        }
        self.vegas.on_ack(ack, view);
    }

    fn end_round(&mut self, ack: &Ack, rtt: Option<Duration>, view: &View<'_>) {
        let mss = view.mss();
        let congested = self.delays.are_too_many(self.parameters.fraction);
        let verdict = self.vegas.judge(ack, rtt, view);
        let window = self.vegas.window.min(view.cwnd());
        if congested && view.phase() != Phase::Recovery {
            self.vegas.window = window;
            self.halve(mss);
            self.vegas.end_slow_start();
        } else {
            match verdict {
                Verdict::Grow => self.grow(view.cwnd(), mss),
                Verdict::Shrink => self.vegas.window = window.saturating_sub(mss).max(mss),
                Verdict::Stay => {}
            }
        }
    }

    /// Ends a round. If it was the single round trip of a window of 1/n, n − 1 round trips without data follow.
    fn rest(&mut self, view: &View<'_>) {
        if self.vegas.window <= view.mss() && self.wait > 1 {
            let span = view.srtt().unwrap_or_default().times(self.wait - 1);
            self.closed_until = Some(view.now() + span);
        }
    }
}

impl Extension for Nice {
    fn name(&self) -> &str {
        "nice"
    }

    fn requires(&self) -> Capabilities {
        Capabilities::ACK_LIST
    }

    fn wake_on(&self) -> Wake {
        self.vegas.wake_on()
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        *self = Nice::new(self.parameters, self.vegas.poll);
        self.vegas.begin(view);
        self.rounds.begin(view);
        limits.at_most(Value::Cwnd(self.vegas.window));
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        let mut rounds = std::mem::take(&mut self.rounds);
        self.vegas.note_limit(view);
        let mut ended = false;
        if self.vegas.follow_down(view) {
            ended = rounds.pass(view, |ack| {
                self.delays.add(ack, is_alone(ack, view), &self.parameters);
            });
            (self.delays.acked, self.delays.delayed) = (0, 0);
        }
        let mut over = None;
        rounds.follow(view, |step| match step {
            Step::RoundOver(_, rtt) => (over, ended) = (Some(rtt), true),
            Step::Ack(ack) => self.on_ack(ack, over.take(), view),
        });
        self.rounds = rounds;
        self.vegas.follow_up(view);
        if ended {
            self.rest(view);
        }
        match self.closed_until {
            Some(at) if at > view.now() => {
                limits.at_most(Value::Cwnd(0));
                limits.wake_at(at);
            }
            _ => {
                self.closed_until = None;
                limits.at_most(Value::Cwnd(self.vegas.window));
            }
        }
    }
}
