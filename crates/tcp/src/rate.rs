//! Delivery-rate estimation (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Every transmission carries a stamp of what had been delivered when it left. When it is acknowledged, the
//! bytes delivered since, over the longer of the sending and the acknowledging interval, are one sample of
//! the rate the path sustained. A sample taken while the application had nothing to send says so.

use crate::time::{Duration, Instant};

/// What a transmission remembers about the moment it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

/// One estimate of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes newly delivered over `interval`.
    pub delivered: u64,
    /// The interval they took.
    pub interval: Duration,
    /// Total bytes delivered when the sampled transmission left.
    pub prior_delivered: u64,
    /// Whether the application had too little to send at that time: the path may be faster.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate in bytes per second; `None` for an interval of zero.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let nanos = u128::from(self.interval.as_nanos());
        let rate = (u128::from(self.delivered) * 1_000_000_000).checked_div(nanos)?;
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// The connection's account of delivery.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// `delivered` has to pass this before the flow counts as limited by the network again.
    app_limited_until: u64,
}

/// A sample being put together while an acknowledgement is processed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PendingSample {
    newest: Option<(RateStamp, Instant)>,
}

impl DeliveryRate {
    /// An account that starts at `now`.
    pub fn new(now: Instant) -> Self {
        DeliveryRate { delivered: 0, delivered_at: now, first_sent_at: now, app_limited_until: 0 }
    }

    /// Total bytes delivered (acknowledged or selectively acknowledged).
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp for a transmission leaving at `now`, with `in_flight` bytes before it.
    pub fn on_send(&mut self, now: Instant, in_flight: u64) -> RateStamp {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > self.delivered,
        }
    }

    /// The application ran out of data with `in_flight` bytes outstanding.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// `bytes` stamped `stamp` at `sent_at` were just delivered.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        stamp: RateStamp,
        sent_at: Instant,
        pending: &mut PendingSample,
    ) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = now;
        let newer = pending.newest.is_none_or(|(newest, newest_sent)| {
            (stamp.delivered, sent_at) >= (newest.delivered, newest_sent)
        });
        if newer {
            pending.newest = Some((stamp, sent_at));
            self.first_sent_at = sent_at;
        }
    }

    /// The sample the acknowledgement gave, if any. `min_rtt` rejects samples over intervals too short to be true.
    pub fn finish(&self, pending: PendingSample, min_rtt: Option<Duration>) -> Option<RateSample> {
        let (stamp, sent_at) = pending.newest?;
        let send_elapsed = sent_at.since(stamp.first_sent_at);
        let ack_elapsed = self.delivered_at.since(stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            app_limited: stamp.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_path_gives_its_rate() {
        // 1000 bytes every millisecond, acknowledged 10 ms later: 1 MB/s.
        let mut account = DeliveryRate::new(Instant::ZERO);
        let at = |ms| Instant::from_millis(ms);
        let mut stamps = std::vec::Vec::new();
        let mut last = None;
        for ms in 0u64..40 {
            if ms >= 10 {
                let (stamp, sent) = stamps[ms as usize - 10];
                let mut pending = PendingSample::default();
                account.on_delivered(at(ms), 1000, stamp, sent, &mut pending);
                last = account.finish(pending, Some(Duration::from_millis(10)));
            }
            stamps.push((account.on_send(at(ms), ms.min(10) * 1000), at(ms)));
        }
        assert_eq!(last.unwrap().bytes_per_second(), Some(1_000_000));
        assert!(!last.unwrap().app_limited);
    }

    #[test]
    fn samples_taken_while_the_application_was_idle_say_so() {
        let mut account = DeliveryRate::new(Instant::ZERO);
        account.on_app_limited(0);
        let stamp = account.on_send(Instant::ZERO, 0);
        let mut pending = PendingSample::default();
        account.on_delivered(Instant::from_millis(5), 10, stamp, Instant::ZERO, &mut pending);
        assert!(account.finish(pending, None).unwrap().app_limited);
        let stamp = account.on_send(Instant::from_millis(5), 0);
        let mut pending = PendingSample::default();
        account.on_delivered(
            Instant::from_millis(9),
            10,
            stamp,
            Instant::from_millis(5),
            &mut pending,
        );
        assert!(!account.finish(pending, None).unwrap().app_limited);
    }
}
