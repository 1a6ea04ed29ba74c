//! The Eifel retransmission timer (Ludwig, Sklower: "The Eifel Retransmission Timer", ACM Computer Communication Review 30(3), 2000).
//!
//! It repairs four things in the timer of RFC 6298, whose notation is kept:
//! - *A falling round-trip time raises the timeout*, as RTTVAR grows with every difference. Here only a sample above SRTT moves RTTVAR, so
//!   that the timeout falls as SRTT does.
//! - *The gains suit one sample per round trip.* With a sample for each segment the timeout collapses into the round-trip time. Here there is
//!   one gain for SRTT and RTTVAR, and the weight of RTTVAR is its reciprocal. It distributes the weight of one over the samples of a
//!   flight, and is never more than 1/3. While RTTVAR decreases it is squared (the paper's shock absorber): up quickly, down slowly.
//! - *A restart forgets how old the segment is that is now the oldest.* Here the timeout counts from when that segment left.
//! - *A coarse minimum.* Here it is the latest sample and two ticks of the clock.
//!
//! With DELTA = RTT − SRTT and n samples per flight, n ≥ 3:
//!
//! ```text
//! RTTVAR += (DELTA − RTTVAR)/n      where DELTA ≥ RTTVAR
//! RTTVAR −= (RTTVAR − DELTA)/n²     where 0 ≤ DELTA < RTTVAR
//! SRTT   += DELTA/n
//! RTO     = max(SRTT + n·RTTVAR, RTT + 2 ticks)
//! ```
//!
//! Differences from the paper, and choices that it leaves open:
//! - The paper infers the number of samples of a flight from the flight and from the segments that each acknowledgement covers (1/FLIGHT for each
//!   segment sampled, 2/FLIGHT with delayed acknowledgements, 1/3 for one sample per round trip). Here they are counted, in the last round trip or in
//!   this one, the larger of both. So it also works if an acknowledgement covers a super-segment. But n is never more than the largest flight of
//!   this round trip, in segments. A hole that stays open, because its repair is lost too, makes the round trip last until it is closed. Selective
//!   acknowledgements bring samples all the time, and without this limit n and the timeout would grow with each of them.
//! - The first sample, back-off, bounds and the lost SYN are treated as in RFC 6298, section 2.2.
//! - [`EifelConfig::scaled`] off leaves RFC 6298's gains and weight, and only the first and the last two repairs.
//! - The paper's response to a spurious timeout is not here. Other units detect it (RFC 3522) and undo it. They restore the window, which is more
//!   than RFC 4015's response allows without pacing, and leave the timer.

use super::{Estimate, RetransmissionTimer};
use crate::arguments::{ArgumentError, Arguments};
use crate::time::{Duration, Instant};

/// The timer's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EifelConfig {
    /// The timeout before the first sample.
    pub initial: Duration,
    /// The upper bound.
    pub max: Duration,
    /// A tick of the clock: the timeout exceeds the latest sample by two.
    pub tick: Duration,
    /// Whether the gains scale with the samples of a flight; otherwise they are RFC 6298's.
    pub scaled: bool,
}

transom_base::setters! {
    const EifelConfig:
    with_initial = initial: Duration,
    with_max = max: Duration,
    with_tick = tick: Duration,
    with_scaled = scaled: bool,
}

impl Default for EifelConfig {
    fn default() -> Self {
        EifelConfig {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            tick: Duration::from_millis(10),
            scaled: true,
        }
    }
}

impl EifelConfig {
    /// Takes the parameters.
    pub(crate) fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        let default = EifelConfig::default();
        Ok(EifelConfig {
            initial: given.duration("initial")?.unwrap_or(default.initial),
            max: given.duration("max")?.unwrap_or(default.max),
            tick: given.duration("tick")?.unwrap_or(default.tick),
            scaled: given
                .word("gains", &[("scaled", true), ("fixed", false)])?
                .unwrap_or(default.scaled),
        })
    }
}

/// The reciprocal of the largest gain.
const LEAST: u64 = 3;

/// The measurements.
#[derive(Clone, Copy, Debug)]
struct Measured {
    estimate: Estimate,
    /// The timeout as of the latest sample.
    rto: Duration,
}

/// SRTT, RTTVAR and the back-off.
#[derive(Clone, Debug)]
pub struct Eifel {
    config: EifelConfig,
    measured: Option<Measured>,
    backoffs: u32,
    /// Samples in this round trip, and in the last.
    samples: u32,
    last_samples: u32,
    /// The largest flight in this round trip, in segments; zero before it is known.
    flight: u64,
}

impl Eifel {
    /// A timer without samples.
    pub fn new(config: EifelConfig) -> Self {
        Eifel { config, measured: None, backoffs: 0, samples: 0, last_samples: 0, flight: 0 }
    }

    /// A timer that continues from another one's measurements; `last` was the latest sample.
    pub fn from_estimate(config: EifelConfig, estimate: Estimate, last: Duration) -> Self {
        let mut timer = Eifel::new(config);
        timer.measured = Some(Measured { estimate, rto: timer.timeout(estimate, last) });
        timer
    }

    /// The timeout for an estimate and the latest sample.
    fn timeout(&self, Estimate { srtt, rttvar }: Estimate, last: Duration) -> Duration {
        let (.., weight) = self.gains();
        (srtt + rttvar.times(weight)).max(last + self.config.tick.times(2))
    }

    /// The reciprocals of the gains by which SRTT moves, and RTTVAR rises and falls, and the weight of RTTVAR.
    fn gains(&self) -> (u64, u64, u64, u64) {
        if !self.config.scaled {
            return (8, 4, 4, 4);
        }
        let most = if self.flight == 0 { u64::MAX } else { self.flight };
        let n = u64::from(self.samples.max(self.last_samples)).min(most).max(LEAST);
        (n, n, n * n, n)
    }
}

impl RetransmissionTimer for Eifel {
    fn name(&self) -> &'static str {
        "eifel"
    }

    fn on_sample(&mut self, rtt: Duration, _now: Instant) {
        self.samples = self.samples.saturating_add(1);
        self.backoffs = 0;
        let (gain, rise, fall, _) = self.gains();
        let estimate = match self.estimate() {
            None => Estimate::first(rtt),
            Some(Estimate { srtt, rttvar }) if rtt < srtt => {
                Estimate { srtt: srtt - (srtt - rtt).over(gain), rttvar }
            }
            Some(Estimate { srtt, rttvar }) => {
                let delta = rtt - srtt;
                let rttvar = if delta >= rttvar {
                    rttvar + (delta - rttvar).over(rise)
                } else {
                    rttvar - (rttvar - delta).over(fall)
                };
                Estimate { srtt: srtt + delta.over(gain), rttvar }
            }
        };
        let rto = self.timeout(estimate, rtt);
        self.measured = Some(Measured { estimate, rto });
    }

    fn on_flight(&mut self, segments: u64) {
        self.flight = self.flight.max(segments);
    }

    fn on_round(&mut self) {
        self.last_samples = core::mem::take(&mut self.samples);
        self.flight = 0;
    }

    fn estimate(&self) -> Option<Estimate> {
        self.measured.map(|measured| measured.estimate)
    }

    fn rto(&self) -> Duration {
        let base = self.measured.map_or(self.config.initial, |measured| measured.rto);
        base.doubled(self.backoffs).min(self.config.max)
    }

    fn restart(&self, now: Instant, sent: Instant) -> Instant {
        (sent + self.rto()).max(now + self.config.tick.times(2))
    }

    fn back_off(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
    }

    fn backoffs(&self) -> u32 {
        self.backoffs
    }

    fn on_handshake_loss(&mut self) {
        if self.measured.is_none() {
            self.config.initial = self.config.initial.max(Duration::from_secs(3));
            self.backoffs = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// After a sample: SRTT, RTTVAR and the timeout, in milliseconds.
    fn sample(timer: &mut Eifel, millis: u64) -> (u64, u64, u64) {
        timer.on_sample(ms(millis), Instant::ZERO);
        let [srtt, rttvar] = [timer.srtt(), timer.rttvar()].map(Option::unwrap);
        for exact in [srtt, rttvar, timer.rto()] {
            assert_eq!(exact.as_nanos() % 1_000_000, 0, "whole milliseconds only");
        }
        (srtt.as_millis(), rttvar.as_millis(), timer.rto().as_millis())
    }

    #[test]
    fn follows_the_equations_by_hand() {
        let mut timer = Eifel::new(EifelConfig::default());
        assert_eq!(timer.rto(), ms(1000));
        // RFC 6298 (2.2), and a weight of three.
        assert_eq!(sample(&mut timer, 324), (324, 162, 324 + 3 * 162));
        // DELTA = 0: RTTVAR loses a ninth, 18.
        assert_eq!(sample(&mut timer, 324), (324, 144, 324 + 3 * 144));
        // DELTA = 324, above RTTVAR: a third of each difference, 108 and 60.
        assert_eq!(sample(&mut timer, 648), (432, 204, 432 + 3 * 204));
        timer.on_round();
        assert_eq!(timer.rto(), ms(1044), "no sample, no change");
        // DELTA = -300: SRTT falls by 100, and the timeout with it.
        assert_eq!(sample(&mut timer, 132), (332, 204, 332 + 3 * 204));
        // DELTA = 300: 100, and (300 - 204)/3 = 32.
        assert_eq!(sample(&mut timer, 632), (432, 236, 432 + 3 * 236));
        assert_eq!(sample(&mut timer, 132), (332, 236, 332 + 3 * 236));
        // The fourth sample of this round trip: the gain is 1/4, the weight four. DELTA = 316: 79, and (316 - 236)/4 = 20.
        assert_eq!(sample(&mut timer, 648), (411, 256, 411 + 4 * 256));
        // So it is in the next one. DELTA = 64: 16, and (256 - 64)/16 = 12.
        timer.on_round();
        assert_eq!(sample(&mut timer, 475), (427, 244, 427 + 4 * 244));
        timer.back_off();
        assert_eq!(timer.rto(), ms(2806));
    }

    /// From SRTT 324, RTTVAR 162 and the same sample it goes on like the timer above; with a large latest sample from that.
    #[test]
    fn goes_on_from_what_another_has_measured() {
        let config = EifelConfig::default();
        let mut timer = Eifel::from_estimate(config, Estimate::first(ms(324)), ms(324));
        assert_eq!(timer.rto(), ms(810));
        assert_eq!(sample(&mut timer, 324), (324, 144, 324 + 3 * 144));
        let timer = Eifel::from_estimate(config, Estimate::first(ms(324)), ms(900));
        assert_eq!(timer.rto(), ms(920));
    }

    /// As RFC 6298 has it, but for what a fall does: there SRTT = 90 and RTTVAR = 3/4·50 + 80/4 = 57.5 after the second sample, and the
    /// timeout has risen from 300 ms to 320.
    #[test]
    fn with_fixed_gains_a_fall_raises_nothing_either() {
        let mut timer = Eifel::new(EifelConfig { scaled: false, ..EifelConfig::default() });
        assert_eq!(sample(&mut timer, 100), (100, 50, 300));
        assert_eq!(sample(&mut timer, 20), (90, 50, 290));
        // DELTA = 90 and RTTVAR = 50 + 40/4: as there.
        timer.on_sample(ms(180), Instant::ZERO);
        assert_eq!(timer.srtt(), Some(Duration::from_micros(101_250)));
        assert_eq!(timer.rttvar(), Some(ms(60)));
        // DELTA = 18.75 and RTTVAR = 60 - 41.25/4.
        timer.on_sample(ms(120), Instant::ZERO);
        assert_eq!(timer.rttvar(), Some(Duration::from_nanos(49_687_500)));
    }

    /// A flight of four segments, of which the first is lost, and its repair too. The others, and what follows, are acknowledged selectively, so
    /// that the round trip does not end. n stays four. With DELTA = 0 RTTVAR loses a sixteenth with each sample, and the timeout is
    /// SRTT + 4·RTTVAR.
    #[test]
    fn a_hole_that_stays_open_raises_nothing() {
        let mut timer = Eifel::new(EifelConfig::default());
        timer.on_sample(ms(400), Instant::ZERO);
        timer.on_round();
        let mut last = timer.rto();
        assert_eq!(last, ms(1000), "400 + 3·200");
        for sample in 1..=1000 {
            timer.on_flight(4);
            timer.on_sample(ms(400), Instant::ZERO);
            let rto = timer.rto();
            match sample {
                // n = 3: 200 − 200/9, and so on; then n = 4, once.
                4 => assert!(rto > last, "the weight of four"),
                _ => assert!(rto <= last, "{sample}: {rto:?} after {last:?}"),
            }
            last = rto;
        }
        assert_eq!(last, ms(420), "RTTVAR has come to nothing, and two ticks are left");
        // A sample 80 above: DELTA/4 = 20, for SRTT and for RTTVAR, with a weight of four.
        timer.on_sample(ms(480), Instant::ZERO);
        assert_eq!(timer.rto().as_millis(), 500);
    }

    #[test]
    fn never_less_than_the_latest_sample_and_two_ticks() {
        let mut timer = Eifel::new(EifelConfig::default());
        for _ in 0..2000 {
            timer.on_sample(ms(100), Instant::ZERO);
            timer.on_round();
        }
        assert_eq!(timer.rto(), ms(120));
        // In a flight of twenty samples one of 2000 ms above makes SRTT 200 and RTTVAR 100, with a weight of twenty.
        for _ in 0..20 {
            timer.on_sample(ms(100), Instant::ZERO);
        }
        timer.on_round();
        timer.on_sample(ms(2100), Instant::ZERO);
        // RTTVAR had not quite come to nothing.
        let rest = Duration::from_micros(1);
        assert!(timer.rto() >= ms(2200) && timer.rto() < ms(2200) + rest, "{:?}", timer.rto());
    }

    #[test]
    fn counts_from_when_the_oldest_segment_left() {
        let mut timer = Eifel::new(EifelConfig::default());
        timer.on_sample(ms(324), Instant::ZERO);
        let now = Instant::from_millis(5000);
        assert_eq!(timer.restart(now, now - ms(200)), now + ms(610));
        // But never at once.
        assert_eq!(timer.restart(now, now - ms(1000)), now + ms(20));
    }

    #[test]
    fn a_lost_syn_means_three_seconds() {
        let mut timer = Eifel::new(EifelConfig::default());
        timer.back_off();
        timer.on_handshake_loss();
        assert_eq!(timer.rto(), Duration::from_secs(3));
    }
}
