//! Linux' additions to the draft of version 1: room for what acknowledgements aggregate, a search for policers and their rate, and pacing a hundredth
//! below the bandwidth. The names are those of `net/ipv4/tcp_bbr.c`.

use super::super::arithmetic::{bytes_in, mul_div, rate_of};
use crate::time::{Duration, Instant};

/// `bbr_pacing_margin_percent`: a hundredth less than the bandwidth is paced. In thousandths.
pub(super) const PACED: u64 = 990;
/// `bbr_extra_acked_win_rtts`: a maximum is over so many round trips, and the same before.
const EXTRA_ROUNDS: u32 = 5;
/// `bbr_extra_acked_max_us`: no more than this time's data is added to the window.
const EXTRA_MAX: Duration = Duration::from_millis(100);
/// `bbr_ack_epoch_acked_reset_thresh`, in segments.
const EPOCH_MAX: u64 = 1 << 20;
/// `bbr_lt_intvl_min_rtts`: an interval is so many round trips long at least, and four times as many at most.
const INTERVAL: u32 = 4;
/// `bbr_lt_loss_thresh`: a policer loses so many of 256, by what is delivered.
const LOSSES: u64 = 50;
/// `bbr_lt_bw_ratio` and `bbr_lt_bw_diff`: two intervals have the same rate if they differ by an eighth at most, or by 4 kbit/s.
const RATIO: u64 = 8;
const DIFFERENCE: u64 = 500;
/// `bbr_lt_bw_max_rtts`: the long-term rate is used for so many round trips.
const USED: u32 = 48;

/// The aggregation of acknowledgements and the search for a policer, of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linux {
    pub(super) aggregation: Aggregation,
    pub(super) policer: Policer,
}

/// Bytes delivered beyond the bandwidth since acknowledgements last came no faster than it (`extra_acked`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Aggregation {
    began: Option<Instant>,
    acked: u64,
    extra: [u64; 2],
    newer: usize,
    rounds: u32,
}

/// An acknowledgement with a sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) now: Instant,
    /// Bytes that it newly delivers.
    pub(super) newly: u64,
    /// Whether a round trip begins.
    pub(super) round_start: bool,
    /// The bandwidth that is used now.
    pub(super) bandwidth: u64,
    /// The window: no more can be extra.
    pub(super) most: u64,
    pub(super) segment: u64,
}

impl Aggregation {
    /// `bbr_update_ack_aggregation`.
    pub(super) fn update(&mut self, of: &Delivery) {
        if of.round_start {
            self.rounds += 1;
            if self.rounds >= EXTRA_ROUNDS {
                self.rounds = 0;
                self.newer ^= 1;
                self.extra[self.newer] = 0;
            }
        }
        let span = self.began.map_or(Duration::ZERO, |began| of.now.since(began));
        let mut expected = bytes_in(span, of.bandwidth);
        let long = self.acked.saturating_add(of.newly) >= EPOCH_MAX * of.segment;
        if self.acked <= expected || long {
            (self.began, self.acked, expected) = (Some(of.now), 0, 0);
        }
        self.acked = self.acked.saturating_add(of.newly);
        let extra = self.acked.saturating_sub(expected).min(of.most);
        self.extra[self.newer] = self.extra[self.newer].max(extra);
    }

    /// `bbr_ack_aggregation_cwnd`: what the window has more.
    pub(super) fn window(&self, bandwidth: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(bytes_in(EXTRA_MAX, bandwidth))
    }
}

/// The search for a policer (`lt_bw`): two intervals that end with losses, lose a fifth, and have the same rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policer {
    sampling: bool,
    /// Round trips of the interval, or with the long-term rate.
    rounds: u32,
    rate: u64,
    used: bool,
    /// All that has been lost on the connection.
    lost: u64,
    since: Instant,
    delivered_before: u64,
    lost_before: u64,
}

/// An acknowledgement or a timeout, as the search for a policer sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) now: Instant,
    /// Bytes delivered on the connection.
    pub(super) delivered: u64,
    /// Whether this acknowledgement, or this timeout, found losses.
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
    /// Whether the mode is PROBE_BW.
    pub(super) probes: bool,
}

impl Policer {
    /// The long-term rate, while it is used.
    pub(super) fn rate(&self) -> Option<u64> {
        self.used.then_some(self.rate)
    }

    /// So much is believed lost, by an acknowledgement, a deadline or a timeout.
    pub(super) fn lose(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// `bbr_lt_bw_sampling`. Returns whether the long-term rate has been used for long enough: PROBE_BW begins anew.
    pub(super) fn update(&mut self, of: &Outcome) -> bool {
        if self.used {
            self.rounds += u32::from(of.probes && of.round_start);
            let over = self.rounds >= USED;
            if over {
                self.reset();
            }
            return over;
        }
        if !self.sampling {
            if !of.losses {
                return false;
            }
            self.begin(of);
            self.sampling = true;
        }
        if of.app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(of.round_start);
        if self.rounds > 4 * INTERVAL {
            self.reset();
            return false;
        }
        if self.rounds < INTERVAL || !of.losses {
            return false;
        }
        let lost = self.lost - self.lost_before;
        let delivered = of.delivered.saturating_sub(self.delivered_before);
        let few = u128::from(lost) * 256 < u128::from(delivered) * u128::from(LOSSES);
        let span = of.now.since(self.since);
        if delivered == 0 || few || span < Duration::from_millis(1) {
            return false;
        }
        if let Some(rate) = rate_of(delivered, span) {
            self.end(rate, of);
        }
        false
    }

    /// `bbr_lt_bw_interval_done`.
    fn end(&mut self, rate: u64, of: &Outcome) {
        let difference = rate.abs_diff(self.rate);
        let close = mul_div(difference, RATIO, 1) <= self.rate
            || mul_div(difference, PACED, 1000) <= DIFFERENCE;
        if self.rate > 0 && close {
            self.rate = self.rate.midpoint(rate);
            self.used = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.begin(of);
    }

    fn begin(&mut self, of: &Outcome) {
        self.since = of.now;
        self.delivered_before = of.delivered;
        self.lost_before = self.lost;
        self.rounds = 0;
    }

    /// `bbr_reset_lt_bw_sampling`.
    pub(super) fn reset(&mut self) {
        *self = Policer { lost: self.lost, ..Policer::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    /// A bandwidth of 1 MB/s. 30 kB arrive at once, though only 10 kB were expected since the epoch began: 20 kB are extra. The maximum holds for five to ten round
    /// trips.
    #[test]
    fn what_is_aggregated_is_remembered_for_ten_round_trips_at_most() {
        let mut aggregation = Aggregation::default();
        let delivery = |ms, newly, round_start| Delivery {
            now: at(ms),
            newly,
            round_start,
            bandwidth: 1_000_000,
            most: 100_000,
            segment: 1000,
        };
        // The epoch begins with what arrives: all of it is extra.
        aggregation.update(&delivery(1000, 10_000, false));
        assert_eq!(aggregation.window(1_000_000), 10_000);
        // 10 ms later 10 kB were expected, and as much had come: the epoch begins anew.
        aggregation.update(&delivery(1010, 2000, false));
        // 1 ms later 1 kB is expected: 2 kB had come, and 29 kB more.
        aggregation.update(&delivery(1011, 29_000, false));
        assert_eq!(aggregation.window(1_000_000), 30_000);
        // No more than the data of 100 ms, and than the window.
        assert_eq!(aggregation.window(100_000), 10_000);
        aggregation.update(&delivery(1012, 500_000, false));
        assert_eq!(aggregation.window(10_000_000), 100_000);
        // Five round trips later the other maximum counts too; after five more the first is gone.
        for round in 0..5 {
            aggregation.update(&delivery(3000 + 100 * round, 1000, true));
        }
        assert_eq!(aggregation.window(10_000_000), 100_000);
        for round in 5..10 {
            aggregation.update(&delivery(3000 + 100 * round, 1000, true));
        }
        assert_eq!(aggregation.window(10_000_000), 1000);
    }

    /// Two intervals of four round trips of 100 ms each. In each, 80 kB arrive and 20 kB are lost: 64 of 256. Their rates of 200 kB/s are the same, so the rate is
    /// used for 48 round trips.
    #[test]
    fn two_intervals_with_the_same_rate_and_many_losses_are_a_policer() {
        let outcome = |ms, delivered, losses| Outcome {
            now: at(ms),
            delivered,
            losses,
            app_limited: false,
            round_start: true,
            probes: true,
        };
        let step = |policer: &mut Policer, ms, delivered, lost| {
            policer.lose(lost);
            policer.update(&outcome(ms, delivered, lost > 0))
        };
        let mut policer = Policer::default();
        assert!(!step(&mut policer, 0, 0, 1000));
        for round in 1..=2 * u64::from(INTERVAL) {
            assert_eq!(policer.rate(), None);
            let lost = if round % 4 == 0 { 20_000 } else { 0 };
            step(&mut policer, 100 * round, 20_000 * round, lost);
        }
        // The first loss began a round trip: the first interval has three more.
        assert_eq!(policer.rate(), Some(200_000));
        for round in 1..48 {
            assert!(!step(&mut policer, 1000 + 100 * round, 1_000_000, 0), "{round}");
        }
        assert!(step(&mut policer, 10_000, 1_000_000, 0), "used for long enough");
        assert_eq!(policer.rate(), None);
        // A tenth lost is no policer.
        let mut policer = Policer::default();
        step(&mut policer, 0, 0, 1000);
        for round in 1..=40 {
            let lost = if round % 4 == 0 { 8000 } else { 0 };
            step(&mut policer, 100 * round, 20_000 * round, lost);
            assert_eq!(policer.rate(), None);
        }
    }
}
