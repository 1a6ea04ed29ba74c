//! The Eifel retransmission timer (Ludwig, Sklower: "The Eifel Retransmission Timer", CCR 30(3), 2000) as an extension: icTCP-Eifel (section
//! 5.4.5), in the three versions whose timeouts the paper draws.
//!
//! With DELTA = RTT − SRTT, and n samples in a round trip, three at least:
//! - `karn` is the timer of RFC 6298: SRTT += DELTA/8, RTTVAR += (|DELTA| − RTTVAR)/4, RTO = SRTT + 4·RTTVAR. A round-trip time that falls raises it.
//! - `no-spike` lets only a sample above SRTT move RTTVAR. With many samples in a round trip it collapses into the round-trip time.
//! - `full` has gains that scale: RTTVAR += (DELTA − RTTVAR)/n where it rises and (DELTA − RTTVAR)/n² where it falls, SRTT += DELTA/n,
//!   RTO = max(SRTT + n·RTTVAR, RTT + 2 ticks).
//!
//! What differs from the paper, or is left open by it:
//! - It begins with TCP's own SRTT and RTTVAR, which are the handshake's.
//! - The timeout backs off as TCP's own does; it counts from the last acknowledgement, as TCP's own, and not from when the oldest segment left.
//! - TCP's minimum holds no more, but Table 1's does: it cannot be less than SRTT + RTTVAR of TCP's own timer.
//! - Samples of a round are counted, in the last round or in this one, whichever has more.
//! - What the full algorithm does after a timeout that turns out to have been spurious is not here yet.

use crate::catalogue::{Entry, choice};
use transom_tcp::extension::{Event, Extension, Limits, View, Wake, variable};
use transom_tcp::time::Duration;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 6298.
    Karn,
    /// Without the spike.
    NoSpike,
    /// All of it.
    Full,
}

impl Version {
    const WORDS: [(&'static str, Version); 3] =
        [("karn", Version::Karn), ("no-spike", Version::NoSpike), ("full", Version::Full)];
}

/// The reciprocal of the largest gain.
const LEAST: u64 = 3;

/// The timer.
#[derive(Clone, Copy, Debug)]
pub struct Eifel {
    /// Which of the three it is.
    pub version: Version,
    /// A tick of the clock.
    pub tick: Duration,
    estimate: Option<(Duration, Duration)>,
    last: Duration,
    /// Samples in this round trip, and in the last.
    samples: u64,
    last_samples: u64,
}

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "eifel",
    source: "Ludwig, Sklower: The Eifel Retransmission Timer, CCR 30(3), 2000",
    summary: "a retransmission timer that neither spikes nor collapses",
    parameters: &[
        ("version", "full, no-spike or karn: the three whose timeouts the paper compares"),
        ("tick", "10ms of the clock: the timeout exceeds the last sample by two"),
    ],
    read: |arguments| {
        let version = arguments.word("version", &Version::WORDS)?.unwrap_or(Version::Full);
        let tick = arguments.duration("tick")?.unwrap_or(Duration::from_millis(10));
        Ok(choice(arguments, Eifel::new(version, tick)))
    },
};

impl Eifel {
    /// One of the three, by a clock of such ticks.
    pub fn new(version: Version, tick: Duration) -> Self {
        let last = Duration::ZERO;
        Eifel { version, tick, estimate: None, last, samples: 0, last_samples: 0 }
    }

    /// The reciprocals of the gains by which SRTT moves and RTTVAR rises and falls; the first of the full ones is RTTVAR's weight.
    fn gains(&self) -> (u64, u64, u64) {
        let n = self.samples.max(self.last_samples).max(LEAST);
        match self.version {
            Version::Karn | Version::NoSpike => (8, 4, 4),
            Version::Full => (n, n, n.saturating_mul(n)),
        }
    }

    fn sample(&mut self, rtt: Duration) {
        self.samples += 1;
        self.last = rtt;
        let Some((srtt, rttvar)) = self.estimate else {
            // RFC 6298 section 2.2.
            self.estimate = Some((rtt, rtt.over(2)));
            return;
        };
        let (gain, rise, fall) = self.gains();
        let delta = rtt.abs_diff(srtt);
        let counts = rtt >= srtt || self.version == Version::Karn;
        let rttvar = if !counts {
            rttvar
        } else if delta >= rttvar {
            rttvar + (delta - rttvar).over(rise)
        } else {
            rttvar - (rttvar - delta).over(fall)
        };
        let srtt = if rtt >= srtt { srtt + delta.over(gain) } else { srtt - delta.over(gain) };
        self.estimate = Some((srtt, rttvar));
    }

    fn rto(&self) -> Option<Duration> {
        let (srtt, rttvar) = self.estimate?;
        Some(match self.version {
            Version::Karn | Version::NoSpike => srtt + rttvar.times(4),
            Version::Full => {
                let (weight, ..) = self.gains();
                (srtt + rttvar.times(weight)).max(self.last + self.tick.times(2))
            }
        })
    }
}

impl Extension for Eifel {
    fn name(&self) -> &str {
        "eifel"
    }

    fn wake_on(&self) -> Wake {
        Wake::ACK | Wake::ROUND | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, _limits: &mut Limits) {
        self.estimate = view.srtt().zip(view.rttvar());
        self.last = view.last_rtt().unwrap_or_default();
    }

    fn on_wake(&mut self, event: &Event, view: &View<'_>, limits: &mut Limits) {
        if let Some(rtt) = event.ack.as_ref().and_then(|ack| ack.rtt) {
            self.sample(rtt);
        }
        if event.what.contains(Wake::ROUND) {
            self.last_samples = std::mem::take(&mut self.samples);
        }
        if let Some(rto) = self.rto() {
            limits.exactly(variable::RTO, rto.doubled(view.backoffs()));
        }
    }
}
