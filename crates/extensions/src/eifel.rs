//! The Eifel retransmission timer (Ludwig, Sklower: "The Eifel Retransmission Timer", CCR 30(3), 2000) as an extension: icTCP-Eifel (section
//! 5.4.5), in the three versions whose timeouts the paper draws first, and the adaptive one that it draws then.
//!
//! With DELTA = RTT − SRTT, and n samples in a round trip, three at least:
//! - `karn` is the timer of RFC 6298: SRTT += DELTA/8, RTTVAR += (|DELTA| − RTTVAR)/4, RTO = SRTT + 4·RTTVAR. A round-trip time that falls
//!   raises it.
//! - `no-spike` lets only a sample above SRTT move RTTVAR. With many samples in a round trip it collapses into the round-trip time.
//! - `full` has gains that scale: RTTVAR += (DELTA − RTTVAR)/n where it rises and (DELTA − RTTVAR)/n² where it falls, SRTT += DELTA/n,
//!   RTO = max(SRTT + n·RTTVAR, RTT + 2 ticks).
//! - `adaptive` is `full`, with a timeout that becomes more and more aggressive until one is spurious. RTO = max(SRTT + m·n·RTTVAR, RTT + 2
//!   ticks), where m is one at first and loses a part (`decay`) with each round trip. A spurious timeout doubles m, to one at least and `MOST`
//!   at most. Then the timer is adapted as in RFC 4015: SRTT = max(SRTT + 2 ticks, RTT), RTTVAR = max(RTTVAR, RTT/2), where RTT is the time that
//!   the segment really took.
//!
//! TCP's own units of that name calculate the estimates. [The detection of spurious timeouts](spurious) has its own file.
//!
//! Differences from the paper, and choices that it leaves open:
//! - icTCP says no more about the adaptive timer than the above: increasingly aggressive until a spurious timeout, then more conservative. Ludwig
//!   and Sklower's own equations for it were not available: m, its decrease and its increase are ours. RFC 4015 takes the first sample of *new*
//!   data; here it is that of the segment for which the timer expired.
//! - It begins with TCP's own SRTT and RTTVAR, which are the handshake's.
//! - The timeout backs off as TCP's own does; it counts from the last acknowledgement, as TCP's own, and not from when the oldest segment left.
//! - Table 1 lets nobody shorten TCP's own timeout. So beside RFC 6298's timer this one can only lengthen. icTCP disables the kernel's algorithm first, and
//!   a connection does so by its profile: `fixed-timer(rto=200ms)` leaves a least timeout and its back-off, and the rest to the extension.
//! - It is never more than `LONGEST`, a minute. A receiver's report of a second copy counts as a spurious timeout even if the network made the
//!   copy. Without a bound the adaptive timeout could rise with each loss.
//! - Samples of a round are counted, in the last round or in this one, whichever has more, and never more than the largest flight of this round.

mod spurious;

use crate::catalogue::{Entry, choice};
use spurious::Watch;
use transom_tcp::arguments::Fraction;
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{
    Eifel as ScalingTimer, EifelConfig, Estimate, RetransmissionTimer, Rfc6298, Rfc6298Config,
};

/// Which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// RFC 6298.
    Karn,
    /// Without the spike.
    NoSpike,
    /// All of it.
    Full,
    /// All of it, more aggressive until a timeout is spurious.
    Adaptive,
}

impl Version {
    const WORDS: [(&'static str, Version); 4] = [
        ("karn", Version::Karn),
        ("no-spike", Version::NoSpike),
        ("full", Version::Full),
        ("adaptive", Version::Adaptive),
    ];
}

/// m at most: after four spurious timeouts in a row the margin is sixteen times that of the full algorithm.
const MOST: Fraction = Fraction::from_millionths(16_000_000);

/// The timeout at most, as RFC 6298 section 2.5 allows and as TCP's own.
const LONGEST: Duration = Duration::from_secs(60);

/// The default share of m that is lost in each round trip.
const DECAY: Fraction = Fraction::from_millionths(50_000);

/// The estimator: TCP's own units without minimum, maximum and back-off.
#[derive(Clone, Debug)]
enum Timer {
    Karn(Rfc6298),
    Eifel(ScalingTimer),
}

impl Timer {
    fn new(version: Version, tick: Duration, begun: Option<(Estimate, Duration)>) -> Self {
        let max = Duration::MAX;
        if version == Version::Karn {
            let (min, zero) = (Duration::ZERO, Duration::ZERO);
            let standard = Rfc6298Config::default();
            let config = standard
                .with_min(min)
                .with_min_variation(zero)
                .with_max(max)
                .with_granularity(zero);
            return Timer::Karn(match begun {
                None => Rfc6298::new(config),
                Some((estimate, _)) => Rfc6298::from_estimate(config, estimate),
            });
        }
        let scaled = version != Version::NoSpike;
        // Without the scaling gains there is no floor either: with them RTT + 2 ticks.
        let tick = if scaled { tick } else { Duration::ZERO };
        let config = EifelConfig::default().with_max(max).with_tick(tick).with_scaled(scaled);
        Timer::Eifel(match begun {
            None => ScalingTimer::new(config),
            Some((estimate, last)) => ScalingTimer::from_estimate(config, estimate, last),
        })
    }

    fn unit(&mut self) -> &mut dyn RetransmissionTimer {
        match self {
            Timer::Karn(timer) => timer,
            Timer::Eifel(timer) => timer,
        }
    }
}

/// The timer.
#[derive(Clone, Debug)]
pub(crate) struct Eifel {
    version: Version,
    tick: Duration,
    decay: Fraction,
    timer: Timer,
    last: Duration,
    /// m.
    margin: Fraction,
    watch: Watch,
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "eifel",
    source: "Ludwig, Sklower: The Eifel Retransmission Timer, CCR 30(3), 2000",
    summary: "a retransmission timer that neither spikes nor collapses",
    parameters: &[
        ("version", "full, no-spike, karn or adaptive: the variants in the paper"),
        ("tick", "10ms of the clock: the timeout exceeds the last sample by two"),
        (
            "decay",
            "0.05: the share of its margin that the adaptive timeout loses in each round trip",
        ),
    ],
    read: |arguments| {
        let version = arguments.word("version", &Version::WORDS)?.unwrap_or(Version::Full);
        let tick = arguments.duration("tick")?.unwrap_or(Duration::from_millis(10));
        let decay = arguments.fraction("decay")?;
        if decay.is_some() && version != Version::Adaptive {
            return Err(arguments.impossible("only the adaptive version has decay"));
        }
        let decay = decay.unwrap_or(DECAY);
        if decay >= Fraction::ONE {
            return Err(arguments.impossible(format_args!("decay is less than 1, not {decay}")));
        }
        Ok(choice(arguments, Eifel { decay, ..Eifel::new(version, tick) }))
    },
};

impl Eifel {
    /// One of the versions, by a clock of such ticks.
    fn new(version: Version, tick: Duration) -> Self {
        Eifel {
            version,
            tick,
            decay: DECAY,
            timer: Timer::new(version, tick, None),
            last: Duration::ZERO,
            margin: Fraction::ONE,
            watch: Watch::default(),
        }
    }

    fn begin(&mut self, estimate: Estimate) {
        self.timer = Timer::new(self.version, self.tick, Some((estimate, self.last)));
    }

    /// A timeout was spurious: the segment took `took`.
    fn back_off(&mut self, took: Duration) {
        let unit = self.timer.unit();
        // Where the network makes a second copy of what was sent again, that looks the same, and took as long as the timeout.
        let took = took.min(LONGEST);
        let (srtt, rttvar) = (unit.srtt().unwrap_or(took), unit.rttvar().unwrap_or_default());
        let srtt = (srtt + self.tick.times(2)).max(took);
        self.begin(Estimate { srtt, rttvar: rttvar.max(took.over(2)) });
        let doubled = Fraction::from_millionths(self.margin.millionths() * 2);
        self.margin = doubled.max(Fraction::ONE).min(MOST);
    }

    /// Asks for the timeout with its back-off, once there is a sample.
    fn ask(&mut self, view: &View<'_>, limits: &mut Limits) {
        if let Some(rto) = self.rto() {
            limits.exactly(Value::Rto(rto.doubled(view.backoffs()).min(LONGEST)));
        }
    }

    /// The timeout without its back-off; nothing before the first sample.
    fn rto(&mut self) -> Option<Duration> {
        let floor = self.last + self.tick.times(2);
        let unit = self.timer.unit();
        let (srtt, full) = (unit.srtt()?, unit.rto());
        Some(match self.version {
            Version::Karn | Version::NoSpike | Version::Full => full,
            Version::Adaptive => {
                let margin = self.margin.of((full - srtt).as_nanos());
                (srtt + Duration::from_nanos(margin)).max(floor)
            }
        })
    }
}

impl Extension for Eifel {
    fn name(&self) -> &str {
        "eifel"
    }

    fn wake_on(&self) -> Wake {
        let watched = match self.version {
            Version::Adaptive => Wake::SEND | Wake::DUPLICATE_ACK,
            _ => Wake::empty(),
        };
        Wake::ACK | Wake::ROUND | Wake::TIMEOUT | watched
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        self.last = view.last_rtt().unwrap_or_default();
        if let Some(estimate) = view.estimate() {
            self.begin(estimate);
        }
        self.ask(view, limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if let Some(rtt) = occasion.ack.as_ref().and_then(|ack| ack.rtt) {
            self.last = rtt;
            // What is still in flight, and a segment that has just arrived.
            self.timer.unit().on_flight(view.in_flight().div_ceil(view.mss()) + 1);
            self.timer.unit().on_sample(rtt, Instant::ZERO);
        }
        if occasion.what.contains(Wake::ROUND) {
            self.timer.unit().on_round();
            let left = self.decay.complement().of(self.margin.millionths());
            self.margin = Fraction::from_millionths(left);
        }
        if self.version == Version::Adaptive
            && let Some(took) = self.watch.follow(occasion, view)
        {
            self.back_off(took);
        }
        if occasion.what != Wake::SEND {
            self.ask(view, limits);
        }
    }
}
