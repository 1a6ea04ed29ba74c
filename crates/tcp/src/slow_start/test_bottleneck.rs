//! For tests of slow starts: a sender and a bottleneck, in a loop.

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::pos::Pos;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;
use std::vec::Vec;

const MSS: u64 = 1000;

/// A sender, a bottleneck that takes a millisecond for a segment, a queue without end, and a round trip of 100 ms: 100 segments fill the path.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// Segments that leave together.
    pub(super) burst: u64,
    /// Segments that one acknowledgement is for.
    pub(super) stretch: u64,
    /// Whether the sender paces at twice the window in a round trip.
    pub(super) paced: bool,
    /// Extra delay of acknowledgements: up to this many milliseconds, by a pattern.
    pub(super) jitter: u64,
    /// Segments that the application gives every 10 ms, after ten at the beginning.
    pub(super) application: Option<u64>,
}

/// One segment at a time, and nothing in the way.
pub(super) const PLAIN: Path =
    Path { burst: 1, stretch: 1, paced: false, jitter: 0, application: None };
const MICROS: u64 = 1000;

impl Path {
    /// The window when `unit` ended slow start, in segments, and after how many milliseconds; within 5 s.
    pub(super) fn run(self, unit: &mut impl SlowStart) -> Option<(u64, u64)> {
        let mut w = Window { cwnd: 10 * MSS, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        // Arrival of each segment's acknowledgement, and departure; when the sender and the bottleneck are free.
        let mut flying = VecDeque::<(u64, u64)>::new();
        let (mut sender_free, mut link_free, mut last_ack) = (0, 0, 0);
        let (mut left, mut delivered, mut now) = (0u64, 0u64, 0u64);
        let mut rounds = 0u64;
        let mut round_end = 0u64;
        let mut departures = Vec::new();
        while now < 5_000 * MICROS {
            while w.cwnd / MSS >= flying.len() as u64 + self.burst
                && self.application.is_none_or(|rate| left < 10 + now / (10 * MICROS) * rate)
            {
                let departure = if self.paced { now.max(sender_free) } else { now };
                sender_free = departure + self.burst * 100 * MICROS * MSS / (2 * w.cwnd);
                for _ in 0..self.burst {
                    link_free = link_free.max(departure) + MICROS;
                    rounds += 1;
                    let jitter = rounds * 7919 % (self.jitter + 1) * MICROS;
                    last_ack = last_ack.max(link_free + 99 * MICROS + jitter);
                    flying.push_back((last_ack, departure));
                    departures.push(departure);
                    left += 1;
                }
            }
            if flying.is_empty() {
                now += MICROS;
                continue;
            }
            let flight = flying.len() as u64;
            let group = self.stretch.min(flight);
            let (mut arrival, mut departure) = (now, now);
            for (at, from) in flying.drain(..group as usize) {
                (arrival, departure) = (at, from);
            }
            now = now.max(arrival);
            delivered += group * MSS;
            let sent = departures.partition_point(|&at| at <= now) as u64 * MSS;
            let rtt = Some(Duration::from_micros(now - departure));
            let ack = AckContext {
                now: Instant::from_secs(1) + Duration::from_micros(now),
                rtt,
                estimate: rtt.map(crate::rto::Estimate::first),
                round_start: delivered > round_end,
                nxt: Pos::FIRST_DATA + sent,
                delivered,
                ..AckContext::default()
            };
            if ack.round_start {
                round_end = sent;
            }
            unit.on_sample(&mut w, &ack);
            if !w.in_slow_start() {
                return Some((w.cwnd / MSS, now / MICROS));
            }
            // Where the application holds the sender back, the window grows while half of it is used.
            if self.application.is_none() || flight * 2 * MSS > w.cwnd {
                unit.grow(&mut w, group * MSS, &ack);
            }
        }
        None
    }
}
