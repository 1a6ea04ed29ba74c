//! A controller without a connection, for the tests of the algorithms: rounds of acknowledgements, losses and marks at times that the
//! test chooses.
//!
//! Segments are 1000 bytes. The window is always full, every segment is acknowledged by itself, and a round is what the window held when
//! it began.

use super::{CongestionChoice, CongestionControl, CongestionEvent, Controller, Window};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::rate::RateSample;
use crate::slow_start::SlowStart;
use crate::slow_start::standard::Standard;
use crate::time::{Duration, Instant};
use std::vec::Vec;
use transom_wire::Timestamps;

/// Bytes in a segment.
pub(super) const MSS: u64 = 1000;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A controller with its window, and the clock.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) window: Window,
    pub(super) controller: Controller,
    pub(super) now: Instant,
    pub(super) delivered: u64,
    min_rtt: Option<Duration>,
    /// The rate that acknowledgements show; by default a window in a round trip.
    pub(super) rate: Option<u64>,
    /// Whether acknowledgements echo congestion experienced.
    pub(super) ecn_echo: bool,
    /// The marked bytes that acknowledgements report, with accurate feedback.
    pub(super) marked: Option<u64>,
    pub(super) cwnd_limited: bool,
    pub(super) recovering: bool,
    pub(super) app_limited: bool,
    pub(super) timestamps: Option<Timestamps>,
    /// Bytes in flight that acknowledgements show; by default the window.
    pub(super) flight: Option<u64>,
    /// Bytes lost since what is acknowledged left.
    pub(super) lost: u64,
}

impl Trace {
    /// In congestion avoidance with a window of `segments`.
    pub(super) fn avoiding(choice: &CongestionChoice, segments: u64) -> Self {
        let mut trace = Trace::new(choice, segments);
        trace.window.ssthresh = segments * MSS;
        trace
    }

    /// In slow start with a window of `segments`.
    pub(super) fn new(choice: &CongestionChoice, segments: u64) -> Self {
        let mut window =
            Window { cwnd: segments * MSS, cwnd_cnt: 0, ssthresh: u64::MAX, mss: MSS as u32 };
        let now = Instant::from_secs(1);
        let mut controller = choice.controller();
        controller.on_start(&mut window, now);
        Trace {
            window,
            controller,
            now,
            delivered: 0,
            min_rtt: None,
            rate: None,
            ecn_echo: false,
            marked: None,
            cwnd_limited: true,
            recovering: false,
            app_limited: false,
            timestamps: None,
            flight: None,
            lost: 0,
        }
    }

    /// cwnd in whole segments.
    pub(super) fn segments(&self) -> u64 {
        self.window.cwnd / MSS
    }

    /// `bytes` are acknowledged now; they took `rtt`.
    pub(super) fn ack(&mut self, bytes: u64, rtt: Duration, round_start: bool) {
        self.delivered += bytes;
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        let flight = self.flight.unwrap_or(self.window.cwnd);
        let rate =
            self.rate.map_or(self.window.cwnd, |rate| super::arithmetic::bytes_in(rtt, rate));
        let context = AckContext {
            now: self.now,
            una: Pos::FIRST_DATA + self.delivered,
            nxt: Pos::FIRST_DATA + self.delivered + flight,
            acked: bytes,
            newly_delivered: bytes,
            sack_agreed: true,
            rtt: Some(rtt),
            estimate: Some(crate::rto::Estimate::first(rtt)),
            min_rtt: self.min_rtt,
            timestamps: self.timestamps,
            round_start,
            delivered: self.delivered,
            recovering: self.recovering,
            rate: Some(RateSample {
                delivered: rate,
                interval: rtt,
                prior_delivered: self.delivered.saturating_sub(rate),
                in_flight: flight,
                lost: self.lost,
                app_limited: self.app_limited,
            }),
            prior_in_flight: flight,
            in_flight: flight.saturating_sub(bytes),
            cwnd_limited: self.cwnd_limited,
            ecn_echo: self.ecn_echo,
            marked: self.marked,
            mss: MSS as u32,
            ..AckContext::default()
        };
        self.controller.on_sample(&mut self.window, &context);
        let mut left = bytes;
        if self.recovering || !self.cwnd_limited {
            return;
        }
        if self.window.in_slow_start() && !self.controller.has_own_slow_start() {
            left = Standard::default().grow(&mut self.window, left, &context);
        }
        if left > 0 {
            self.controller.on_ack(&mut self.window, left, &context);
        }
    }

    /// A round trip: `rtt` later everything that the window held is acknowledged, segment by segment.
    pub(super) fn round(&mut self, rtt: Duration) -> &mut Self {
        self.now += rtt;
        let whole = self.window.cwnd / MSS;
        for i in 0..whole {
            self.ack(MSS, rtt, i == 0);
        }
        let rest = self.window.cwnd.min(whole.max(1) * MSS) % MSS;
        if whole == 0 {
            self.ack(rest.max(1), rtt, true);
        }
        self
    }

    /// cwnd in bytes after each of `rounds` rounds.
    pub(super) fn rounds(&mut self, rounds: usize, rtt: Duration) -> Vec<u64> {
        (0..rounds).map(|_| self.round(rtt).window.cwnd).collect()
    }

    pub(super) fn event(&mut self, event: CongestionEvent) -> &mut Self {
        self.controller.on_event(&mut self.window, event, self.now);
        self
    }

    /// A segment of a full window is found lost, and recovery ends at once.
    pub(super) fn loss(&mut self) -> &mut Self {
        let flight = self.window.cwnd;
        self.event(CongestionEvent::Loss { flight })
    }

    pub(super) fn timeout(&mut self) -> &mut Self {
        let flight = self.window.cwnd;
        self.event(CongestionEvent::Timeout { flight, first: true })
    }

    pub(super) fn mark(&mut self) -> &mut Self {
        let flight = self.window.cwnd;
        self.event(CongestionEvent::Ecn { flight })
    }

    pub(super) fn undo(&mut self, prior: Window) -> &mut Self {
        self.controller.on_undo(&mut self.window, prior, self.now);
        self
    }
}
