//! Flows that are not TCP's as members of a macroflow: the calls of RFC 3124 section 3, without a socket and without a clock.
//!
//! A stream has its own congestion window (RFC 5681, in bytes: slow start and congestion avoidance, half of it for a loss, one packet
//! without feedback). The application reports its receiver's feedback to it. The stream keeps to its share of the macroflow like all
//! members. An application that reports false feedback, or sends without asking, takes more than its share. As in the RFC, this is for
//! well-behaved applications.

use super::macroflow::{Estimate, Member, Report};
use super::{Manager, Membership};
use std::collections::VecDeque;
use transom_tcp::arguments::Fraction;
use transom_tcp::congestion::Window;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{RetransmissionTimer, Rfc6298, Rfc6298Config};

/// A grant holds for a round-trip time, and this long at least (RFC 3124 section 3.3).
const LEAST_VALIDITY: Duration = Duration::from_millis(100);

/// The most packets that can be requested at a time; further requests are dropped.
const MOST_REQUESTS: u32 = 1 << 16;

/// How a loss was detected (RFC 3124 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossMode {
    /// There was none that congestion caused (CM_NO_CONGESTION).
    #[default]
    NoCongestion,
    /// Some packets were lost, and others arrived (CM_LOSS_FEEDBACK).
    Loss,
    /// A router marked packets (CM_EXPLICIT_CONGESTION).
    Marked,
    /// No feedback for all outstanding packets (CM_NO_FEEDBACK).
    NoFeedback,
}

/// The receiver's feedback, or its absence (cm_update).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Bytes that arrived since the last feedback.
    pub received: u64,
    /// Bytes that were lost since then.
    pub lost: u64,
    /// How the loss was detected.
    pub mode: LossMode,
    /// A round-trip time that was measured.
    pub rtt: Option<Duration>,
}

/// Leave to send a packet (cmapp_send).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Bytes at most.
    pub bytes: u64,
    /// From then on it no longer holds.
    pub expires: Instant,
}

/// The factors by which the rate or the round-trip time has to fall or rise for a notification (cm_thresh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The rate, downwards: less than one.
    pub rate_down: Fraction,
    /// The rate, upwards: more than one.
    pub rate_up: Fraction,
    /// The round-trip time, downwards.
    pub rtt_down: Fraction,
    /// The round-trip time, upwards.
    pub rtt_up: Fraction,
}

impl Default for Thresholds {
    /// Any change.
    fn default() -> Self {
        let one = Fraction::ONE;
        Thresholds { rate_down: one, rate_up: one, rtt_down: one, rtt_up: one }
    }
}

/// A flow of an application's, from [`Manager::open`](super::Manager::open).
#[derive(Debug)]
pub struct Stream {
    membership: Membership,
    packet: u64,
    window: Window,
    timer: Rfc6298,
    outstanding: u64,
    delivered: u64,
    lost: u64,
    /// Packets that were requested and not granted.
    requested: u32,
    /// Grants that were not used, the oldest first.
    granted: VecDeque<Grant>,
    /// Until then a loss is of the same window that was reduced already.
    reduced_until: Option<Instant>,
    /// The changes from which on [`Stream::poll_change`] reports an estimate (cm_thresh).
    pub thresholds: Thresholds,
    /// The last estimate that was reported.
    told: Option<Estimate>,
}

impl Stream {
    pub(super) fn new(manager: &Manager, macroflow: String, weight: u32, packet: u32) -> Self {
        let (window, packet) = (Window::initial(packet), u64::from(packet));
        let report = Report { window: window.cwnd, packet, ..Report::default() };
        Stream {
            membership: manager.add(macroflow, Member { weight, report }),
            packet,
            window,
            timer: Rfc6298::new(Rfc6298Config::default()),
            outstanding: 0,
            delivered: 0,
            lost: 0,
            requested: 0,
            granted: VecDeque::new(),
            reduced_until: None,
            thresholds: Thresholds::default(),
            told: None,
        }
    }

    /// The largest packet it sends, in bytes (cm_mtu).
    pub fn packet(&self) -> u64 {
        self.packet
    }

    /// Which macroflow it is part of (cm_getmacroflow).
    pub fn macroflow(&self) -> &str {
        self.membership.macroflow()
    }

    /// Becomes part of another macroflow (cm_setmacroflow).
    pub fn set_macroflow(&mut self, macroflow: impl Into<String>) {
        self.membership.move_to(macroflow.into());
    }

    /// Its part from now on (cm_setweights): no weight counts as one.
    pub fn set_weight(&mut self, weight: u32) {
        self.membership.set_weight(weight);
    }

    /// Requests to send this many packets (cm_request).
    pub fn request(&mut self, now: Instant, packets: u32) {
        self.requested = self.requested.saturating_add(packets).min(MOST_REQUESTS);
        self.report(now);
    }

    /// Packets that were requested and not granted yet.
    pub fn requested(&self) -> u32 {
        self.requested
    }

    /// A grant to send one requested packet, if there is room for it. Poll after a request, and after any change: feedback arrived, or
    /// another flow of the macroflow has less.
    pub fn poll_grant(&mut self, now: Instant) -> Option<Grant> {
        if self.requested == 0 || !self.may_send(now, self.packet) {
            return None;
        }
        self.requested -= 1;
        let validity = self.timer.srtt().unwrap_or_default().max(LEAST_VALIDITY);
        let grant = Grant { bytes: self.packet, expires: now + validity };
        self.granted.push_back(grant);
        self.report(now);
        Some(grant)
    }

    /// Whether there is room for `bytes` besides what is outstanding and granted. For applications with a clock of their own, that would
    /// not wait for a grant; one packet may always be outstanding.
    pub fn may_send(&mut self, now: Instant, bytes: u64) -> bool {
        self.expire(now);
        let used = self.outstanding.saturating_add(self.reserved());
        used == 0 || used.saturating_add(bytes) <= self.allowed(now)
    }

    /// `bytes` have left in a packet (cm_notify). Nothing gives the oldest grant back.
    pub fn notify(&mut self, now: Instant, bytes: u64) {
        self.granted.pop_front();
        self.outstanding = self.outstanding.saturating_add(bytes);
        self.report(now);
    }

    /// Reports the fate of packets (cm_update).
    pub fn update(&mut self, now: Instant, feedback: Feedback) {
        let Feedback { received, lost, mode, rtt } = feedback;
        if let Some(rtt) = rtt {
            self.timer.on_sample(rtt, now);
        }
        // Its own window was the limit, and not its share or its application: only then does it grow (RFC 7661).
        let filled = self.outstanding.saturating_add(self.packet) > self.window.cwnd;
        self.outstanding = self.outstanding.saturating_sub(received.saturating_add(lost));
        self.delivered = self.delivered.saturating_add(received);
        self.lost = self.lost.saturating_add(lost);
        match mode {
            LossMode::NoCongestion if filled => self.grow(received),
            LossMode::NoCongestion => {}
            LossMode::Loss | LossMode::Marked => {
                if self.reduced_until.is_none_or(|until| now >= until) {
                    self.reduce(now);
                    self.window.resize(self.window.ssthresh);
                }
            }
            LossMode::NoFeedback => {
                self.reduce(now);
                self.window.resize(self.packet);
                self.outstanding = 0;
            }
        }
        self.report(now);
    }

    /// Rate, round-trip time and loss (cm_query); nothing before anyone of the macroflow has measured a round-trip time.
    pub fn query(&self, now: Instant) -> Option<Estimate> {
        self.membership.estimate(now)
    }

    /// The present estimate, if it differs from the last reported one by more than the thresholds (cmapp_update).
    pub fn poll_change(&mut self, now: Instant) -> Option<Estimate> {
        let current = self.query(now)?;
        let limits = self.thresholds;
        let passed =
            |was: u64, is: u64, down: Fraction, up: Fraction| is < down.of(was) || is > up.of(was);
        let changed = self.told.is_none_or(|told| {
            let [was, is] = [told, current].map(|estimate| estimate.rtt.srtt.as_nanos());
            passed(told.rate, current.rate, limits.rate_down, limits.rate_up)
                || passed(was, is, limits.rtt_down, limits.rtt_up)
        });
        changed.then(|| *self.told.insert(current))
    }

    /// The window that it may fill, in bytes: its own, and its share at most.
    pub fn allowed(&self, now: Instant) -> u64 {
        self.window.cwnd.min(self.membership.share(now))
    }

    /// Sent, and not known to have arrived or to be lost, in bytes.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// RFC 5681 section 3.1.
    fn grow(&mut self, received: u64) {
        let left =
            if self.window.in_slow_start() { self.window.slow_start(received) } else { received };
        if left > 0 {
            self.window.additive_increase(left, self.window.cwnd);
        }
    }

    /// RFC 5681 equation 4.
    fn reduce(&mut self, now: Instant) {
        self.window.ssthresh = (self.window.cwnd / 2).max(self.window.floor());
        self.window.cwnd_cnt = 0;
        self.reduced_until = Some(now + self.timer.srtt().unwrap_or_default());
    }

    fn reserved(&self) -> u64 {
        self.granted.iter().fold(0, |sum: u64, grant| sum.saturating_add(grant.bytes))
    }

    fn expire(&mut self, now: Instant) {
        self.granted.retain(|grant| now < grant.expires);
    }

    fn report(&mut self, now: Instant) {
        self.expire(now);
        let waiting = self.reserved().saturating_add(u64::from(self.requested) * self.packet);
        let usable = self.outstanding.saturating_add(waiting);
        let patience = self.timer.rto().times(2);
        self.membership.report(
            Report {
                window: self.window.cwnd,
                outstanding: self.outstanding,
                usable,
                packet: self.packet,
                rtt: self.timer.estimate(),
                delivered: self.delivered,
                lost: self.lost,
                // An application that has gone without closing does not hold up the others.
                expires: (usable > 0).then(|| now + patience),
            },
            now,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1000);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1000 + millis)
    }

    fn received(bytes: u64) -> Feedback {
        let rtt = Some(Duration::from_millis(100));
        Feedback { received: bytes, rtt, ..Feedback::default() }
    }

    /// All that it may send leaves.
    fn send_all(stream: &mut Stream, now: Instant) -> u64 {
        let mut sent = 0;
        stream.request(now, 1000);
        while let Some(grant) = stream.poll_grant(now) {
            stream.notify(now, grant.bytes);
            sent += grant.bytes;
        }
        sent
    }

    /// Ten packets, twenty, a loss halves them, and then one more for each round trip.
    #[test]
    fn a_window_by_hand() {
        let mut stream = Manager::default().open("a", 1, 1000);
        assert_eq!(stream.query(NOW), None);
        assert_eq!(send_all(&mut stream, NOW), 10_000);
        assert!(!stream.may_send(NOW, 1));
        for _ in 0..10 {
            stream.update(at(100), received(1000));
            assert_eq!(send_all(&mut stream, at(100)), 2000);
        }
        assert_eq!((stream.allowed(at(100)), stream.outstanding()), (20_000, 20_000));
        let estimate = stream.query(at(100)).unwrap();
        assert_eq!((estimate.rate, estimate.rtt.srtt.as_millis()), (200_000, 100));
        // 4000 of 16 000 bytes that are accounted for are lost: half of the window, once in a round trip.
        let loss = Feedback { received: 1000, lost: 2000, mode: LossMode::Loss, rtt: None };
        stream.update(at(200), loss);
        stream.update(at(299), loss);
        assert_eq!(stream.allowed(at(299)), 10_000);
        assert_eq!(stream.query(at(299)).unwrap().loss, Fraction::from_millionths(250_000));
        assert_eq!(stream.outstanding(), 14_000);
        stream.update(at(300), received(14_000));
        let before = stream.allowed(at(300));
        assert_eq!(send_all(&mut stream, at(300)), before);
        for _ in 0..before / 1000 {
            stream.update(at(400), received(1000));
            send_all(&mut stream, at(400));
        }
        assert_eq!(stream.allowed(at(400)), before + 1000);
        // Nothing is heard: one packet.
        stream.update(at(900), Feedback { mode: LossMode::NoFeedback, ..Feedback::default() });
        assert_eq!((stream.allowed(at(900)), stream.outstanding()), (1000, 0));
    }

    /// Both are busy: 10 000 each, in three parts.
    #[test]
    fn streams_share_by_weight_and_change_over() {
        let manager = Manager::default();
        let (mut one, mut two) = (manager.open("a", 1, 1000), manager.open("a", 2, 1000));
        one.request(NOW, 100);
        two.request(NOW, 100);
        assert_eq!([one.allowed(NOW), two.allowed(NOW)], [6666, 10_000]);
        one.set_weight(2);
        assert_eq!([one.allowed(NOW), two.allowed(NOW)], [10_000, 10_000]);
        two.set_weight(4);
        two.set_macroflow("b");
        assert_eq!((two.macroflow(), one.allowed(NOW)), ("b", 10_000));
        assert!(manager.macroflows(NOW).keys().eq(["a", "b"]));
        drop(two);
        let left = manager.macroflows(NOW);
        assert_eq!((left.len(), left["a"].window), (1, 10_000));
    }

    /// A grant that is not used, or given back, is room again; one packet may be out in any case.
    #[test]
    fn grants_expire() {
        let mut stream = Manager::default().open("a", 1, 6000);
        assert_eq!(stream.allowed(NOW), 14_600);
        stream.request(NOW, 5);
        let grant = stream.poll_grant(NOW).unwrap();
        assert_eq!(grant, Grant { bytes: 6000, expires: at(100) });
        assert!(stream.poll_grant(NOW).is_some() && stream.poll_grant(at(99)).is_none());
        stream.notify(at(99), 0);
        assert!(stream.poll_grant(at(99)).is_some() && stream.poll_grant(at(99)).is_none());
        assert!(stream.poll_grant(at(100)).is_some(), "one of them is no longer valid");
    }

    /// Told at first, and when the rate has fallen below half: with a window of 10 000 bytes, 5000, and 2500.
    #[test]
    fn changes_are_told_beyond_thresholds() {
        let mut stream = Manager::default().open("a", 1, 1000);
        let half = Fraction::from_millionths(500_000);
        let twice = Fraction::from_millionths(2_000_000);
        let thresholds =
            Thresholds { rate_down: half, rate_up: twice, rtt_down: half, rtt_up: twice };
        stream.thresholds = thresholds;
        assert_eq!(stream.poll_change(NOW), None);
        stream.update(NOW, received(0));
        assert_eq!(stream.poll_change(NOW).unwrap().rate, 100_000);
        stream.update(at(1), Feedback { lost: 1000, mode: LossMode::Marked, ..received(0) });
        assert_eq!(stream.poll_change(at(1)), None, "not less than half");
        stream.update(at(200), Feedback { lost: 1000, mode: LossMode::Marked, ..received(0) });
        assert_eq!(stream.poll_change(at(200)).unwrap().rate, 25_000);
        assert_eq!(stream.poll_change(at(200)), None);
    }
}
