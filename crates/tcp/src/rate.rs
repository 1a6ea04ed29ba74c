//! Delivery-rate estimation (draft-ietf-ccwg-bbr-06 section 4.1, before that draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Every transmission carries a stamp of the bytes delivered when it left. When it is acknowledged, the bytes delivered since, over the longer of the
//! sending and the acknowledging interval, are one sample of the path's rate. A sample is flagged if the application had nothing to send.

use crate::pos::Pos;
use crate::time::{Duration, Instant};
use core::ops::Range;

/// The state that a transmission keeps from the moment it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateStamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes in flight with it, and lost before it.
    in_flight: u64,
    lost: u64,
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
    /// Bytes in flight just after it had left.
    pub in_flight: u64,
    /// Bytes found lost since it left.
    pub lost: u64,
    /// Whether the application had too little to send at that time: the path may be faster.
    pub app_limited: bool,
}

/// A transmission that is newly believed lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostTransmission {
    /// When it was found.
    pub now: Instant,
    /// Its range.
    pub range: Range<Pos>,
    /// Bytes in flight just after it had left.
    pub in_flight: u64,
    /// Bytes found lost since it left, itself included.
    pub lost: u64,
    /// Total bytes delivered by now.
    pub delivered: u64,
    /// Whether the application had too little to send when it left.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate in bytes per second; `None` for an interval of zero.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        let nanos = u128::from(self.interval.as_nanos());
        let rate = (u128::from(self.delivered) * 1_000_000_000).checked_div(nanos)?;
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// The rate of a sample as a quotient, kept for later readers: a division for each acknowledgement would cost more.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    delivered: u32,
    app_limited: bool,
    interval: Duration,
}

/// The connection's account of delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// `delivered` has to pass this before the flow counts as limited by the network again; zero before the application ran out the first time.
    app_limited_until: u64,
    latest: Latest,
}

/// A sample being put together while an acknowledgement is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PendingSample {
    newest: Option<(RateStamp, Instant)>,
}

impl DeliveryRate {
    /// An account that starts at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        DeliveryRate {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited_until: 0,
            latest: Latest::default(),
        }
    }

    /// The last valid estimate of the path's rate, in bytes per second, and whether the application had too little to send when it was taken. Such an
    /// estimate counts only if it is not below the one before it. `None` before the first.
    pub(crate) fn latest(&self) -> Option<(u64, bool)> {
        let Latest { delivered, app_limited, interval } = self.latest;
        let rate =
            (u128::from(delivered) * 1_000_000_000).checked_div(u128::from(interval.as_nanos()))?;
        Some((u64::try_from(rate).unwrap_or(u64::MAX), app_limited))
    }

    /// Notes an estimate for [`latest`](Self::latest).
    fn note(&mut self, sample: &RateSample) {
        let new = Latest {
            delivered: u32::try_from(sample.delivered).unwrap_or(u32::MAX),
            app_limited: sample.app_limited,
            interval: sample.interval,
        };
        let per = |one: Latest, other: Latest| {
            u128::from(one.delivered) * u128::from(other.interval.as_nanos())
        };
        // There is none yet while its interval is zero: then nothing is below it.
        if !new.app_limited || per(new, self.latest) >= per(self.latest, new) {
            self.latest = new;
        }
    }

    /// Total bytes delivered (acknowledged or selectively acknowledged).
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp for a transmission of `bytes` leaving at `now`, with `in_flight` bytes before it.
    pub(crate) fn on_send(&mut self, now: Instant, bytes: u64, in_flight: u64) -> RateStamp {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight + bytes,
            lost: self.lost,
            app_limited: self.is_app_limited(),
        }
    }

    /// Whether data that leaves now is application-limited: until more has been delivered than was outstanding when the application ran out.
    fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0 && self.delivered <= self.app_limited_until
    }

    /// A transmission stamped `stamp` is believed lost.
    pub(crate) fn on_lost(
        &mut self,
        now: Instant,
        range: Range<Pos>,
        stamp: RateStamp,
    ) -> LostTransmission {
        self.lost = self.lost.saturating_add(range.end.since(range.start));
        LostTransmission {
            now,
            range,
            in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            delivered: self.delivered,
            app_limited: stamp.app_limited,
        }
    }

    /// The application ran out of data with `in_flight` bytes outstanding.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// `bytes` stamped `stamp` at `sent_at` were just delivered.
    pub(crate) fn on_delivered(
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
    pub(crate) fn finish(
        &mut self,
        pending: PendingSample,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let (stamp, sent_at) = pending.newest?;
        let send_elapsed = sent_at.since(stamp.first_sent_at);
        let ack_elapsed = self.delivered_at.since(stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let sample = RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            app_limited: stamp.app_limited,
        };
        self.note(&sample);
        Some(sample)
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
            stamps.push((account.on_send(at(ms), 1000, ms.min(10) * 1000), at(ms)));
        }
        assert_eq!(last.unwrap().bytes_per_second(), Some(1_000_000));
        assert!(!last.unwrap().app_limited);
    }

    #[test]
    fn samples_taken_while_the_application_was_idle_say_so() {
        let mut account = DeliveryRate::new(Instant::ZERO);
        account.on_app_limited(0);
        let stamp = account.on_send(Instant::ZERO, 10, 0);
        let mut pending = PendingSample::default();
        account.on_delivered(Instant::from_millis(5), 10, stamp, Instant::ZERO, &mut pending);
        assert!(account.finish(pending, None).unwrap().app_limited);
        let stamp = account.on_send(Instant::from_millis(5), 10, 0);
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

    /// A sample of a time with too little to send counts where it shows that the path is at least as fast, and says what it is.
    #[test]
    fn the_latest_estimate_is_one_that_says_something() {
        let mut account = DeliveryRate::new(Instant::ZERO);
        assert_eq!(account.latest(), None);
        let mut sample = |bytes: u64, from: u64, to: u64, limited: bool| {
            if limited {
                account.on_app_limited(0);
            }
            let [left, arrived] = [from, to].map(Instant::from_millis);
            let stamp = account.on_send(left, bytes, 0);
            let mut pending = PendingSample::default();
            account.on_delivered(arrived, bytes, stamp, left, &mut pending);
            assert_eq!(account.finish(pending, None).unwrap().app_limited, limited);
            account.latest()
        };
        assert_eq!(sample(500, 0, 10, true), Some((50_000, true)), "the first counts");
        assert_eq!(sample(2000, 20, 30, false), Some((200_000, false)));
        assert_eq!(sample(500, 40, 50, true), Some((200_000, false)), "it was not tried");
        assert_eq!(sample(3000, 60, 70, true), Some((300_000, true)), "it is faster still");
        assert_eq!(sample(100, 80, 90, false), Some((10_000, false)), "it has become slow");
    }

    /// Ten segments are in flight; the third and the fourth are found lost. When the tenth arrives, two have been lost since it left; of one sent
    /// afterwards none.
    #[test]
    fn losses_since_a_transmission_left() {
        let mut account = DeliveryRate::new(Instant::ZERO);
        let at = Instant::from_millis;
        let stamps: std::vec::Vec<_> =
            (0..10).map(|i| account.on_send(at(i), 1000, i * 1000)).collect();
        let range = |i: u64| Pos::FIRST_DATA + i * 1000..Pos::FIRST_DATA + (i + 1) * 1000;
        let lost = [2, 3].map(|i| account.on_lost(at(20), range(i), stamps[i as usize]));
        assert_eq!(lost.clone().map(|lost| lost.in_flight), [3000, 4000]);
        assert_eq!(lost.map(|lost| lost.lost), [1000, 2000]);
        let later = account.on_send(at(21), 1000, 8000);
        for (stamp, sent, expected) in
            [(stamps[9], at(9), (10_000, 2000)), (later, at(21), (9000, 0))]
        {
            let mut pending = PendingSample::default();
            account.on_delivered(at(30), 1000, stamp, sent, &mut pending);
            let sample = account.finish(pending, None).unwrap();
            assert_eq!((sample.in_flight, sample.lost), expected);
        }
    }
}
