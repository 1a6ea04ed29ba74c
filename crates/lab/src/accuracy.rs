//! How accurate the emulator is on this machine.
//!
//! Theory of operation. The emulator is measured from outside: by what kernel sockets at both ends of a link receive, and when. A TCP transfer over a
//! link of 100 Mbit/s shows whether the link's rate is right. Datagrams over a link of 20 ms carry their sending time and show how long they took
//! (both ends read the same clock). Transfers over ever faster links show the highest rate that the emulator keeps. A rate is kept if it is delivered
//! to within one per cent, by a run that is not late ([`Fidelity`]).

use serde::Serialize;
use std::fmt;
use std::path::Path;

use crate::emulate::{Fidelity, emulate, measured_delays};
use crate::run::{Observations, RunError, RunOptions, numbers};
use crate::scenario::{Resolved, Scenario};
use transom_sim::measure::percentile;
use transom_tcp::time::{Duration, Instant};

/// The rate of the link that is measured.
const RATE: u64 = 100_000_000;
/// The delay of the link that is measured.
const DELAY: Duration = Duration::from_millis(20);
/// A rate is held if this much of it is delivered.
const HELD: f64 = 0.99;
/// The range in which the highest rate is searched.
const SLOWEST: u64 = 10_000_000;
const FASTEST: u64 = 20_000_000_000;
/// A rate that is not held is tried so often.
const TRIES: u32 = 2;
/// The search ends when the rate is known to this.
const PRECISION: f64 = 1.1;
/// The share of data in an MTU of 1500 bytes, with headers and timestamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// Bytes of a packet of data on the wire.
const PACKET: f64 = 1500.0;

/// How accurate the emulator is.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// A link's rate.
    pub(crate) rate: RateAccuracy,
    /// A link's delay.
    pub(crate) delay: DelayAccuracy,
    /// The highest rate found that was held, from kernel to kernel over 20 ms; none if not even the slowest was.
    pub(crate) held: Option<RateAccuracy>,
    /// The same with Transom's TCP as the sender.
    pub(crate) held_from_transom: Option<RateAccuracy>,
}

/// A rate, and its measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RateAccuracy {
    /// The configured rate of the link, bits per second.
    pub(crate) nominal: u64,
    /// The measured rate: the bytes of the receiving application, with headers added, bits per second.
    pub(crate) delivered: f64,
    /// Packets per second that passed through the emulator, acknowledgements included.
    pub(crate) packets_per_second: f64,
    /// How late the emulator was.
    pub(crate) fidelity: Fidelity,
}

/// The excess of the datagrams' delay over that of their link; negative if they were faster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DelayAccuracy {
    /// The delay, in milliseconds.
    pub(crate) nominal_ms: f64,
    /// How many datagrams were measured.
    pub(crate) datagrams: usize,
    /// The median excess, in milliseconds.
    pub(crate) median_error_ms: f64,
    /// 99 in 100 of them, in milliseconds.
    pub(crate) p99_error_ms: f64,
    /// The worst, in milliseconds.
    pub(crate) max_error_ms: f64,
}

impl DelayAccuracy {
    /// Of datagrams that took so long each.
    fn of(nominal: Duration, mut delays: Vec<Duration>) -> Self {
        delays.sort_unstable();
        let nominal_ms = nominal.as_nanos() as f64 / 1e6;
        let error = |percent| {
            percentile(&delays, percent)
                .map_or(f64::NAN, |took| took.as_nanos() as f64 / 1e6 - nominal_ms)
        };
        DelayAccuracy {
            nominal_ms,
            datagrams: delays.len(),
            median_error_ms: error(50),
            p99_error_ms: error(99),
            max_error_ms: error(100),
        }
    }
}

impl RateAccuracy {
    /// Which part of the nominal rate was delivered.
    fn share(&self) -> f64 {
        self.delivered / self.nominal as f64
    }

    fn is_held(&self) -> bool {
        self.share() >= HELD && self.fidelity.late.is_empty()
    }
}

/// Measures the emulator. It takes a minute or two. `progress` gets the name of each step, and ends the measurement by returning false.
///
/// # Errors
/// [`RunError`] if the system does not let it.
pub fn measure_accuracy(
    mut progress: impl FnMut(&str) -> bool,
) -> Result<Option<Accuracy>, RunError> {
    let mut tell = |text: String| progress(&text);
    if !tell("a link of 100 Mbit/s".into()) {
        return Ok(None);
    }
    let Some(rate) = transfer("kernel", RATE, &mut || tell(String::new()))? else {
        return Ok(None);
    };
    if !tell("a link of 20 ms".into()) {
        return Ok(None);
    }
    let delay = DelayAccuracy::of(DELAY, measured_delays(DELAY)?);
    let mut held = Vec::new();
    for sender in ["kernel", "transom"] {
        match search(sender, &mut tell)? {
            Some(highest) => held.push(highest),
            None => return Ok(None),
        }
    }
    let held_from_transom = held.pop().flatten();
    Ok(Some(Accuracy { rate, delay, held: held.pop().flatten(), held_from_transom }))
}

/// The highest rate that is held. `None` if it was broken off.
fn search(
    sender: &str,
    tell: &mut impl FnMut(String) -> bool,
) -> Result<Option<Option<RateAccuracy>>, RunError> {
    let (mut low, mut high) = (SLOWEST, FASTEST);
    let mut best = None;
    let mut rate = 1_000_000_000;
    while high as f64 / low as f64 > PRECISION {
        if !tell(format!("{sender} to kernel at {} Mbit/s", rate / 1_000_000)) {
            return Ok(None);
        }
        // One that fails may have met something else that the machine had to do.
        let mut held = None;
        for _ in 0..TRIES {
            let Some(seen) = transfer(sender, rate, &mut || tell(String::new()))? else {
                return Ok(None);
            };
            held = Some(seen).filter(RateAccuracy::is_held);
            if held.is_some() {
                break;
            }
        }
        match held {
            Some(seen) => (low, best) = (rate, Some(seen)),
            None => high = rate,
        }
        // In the middle, as ratios go; at first twice or half as fast.
        let middle = (low as f64 * high as f64).sqrt();
        let next = if low == SLOWEST { middle.max(rate as f64 / 2.0) } else { middle };
        let next = if high == FASTEST { next.min(rate as f64 * 2.0) } else { next };
        rate = next as u64 / 1_000_000 * 1_000_000;
    }
    Ok(Some(best))
}

/// A transfer over a link of this rate and 20 ms. `None` if it was broken off.
fn transfer(
    sender: &str,
    rate: u64,
    keep_running: &mut impl FnMut() -> bool,
) -> Result<Option<RateAccuracy>, RunError> {
    let scenario = scenario(sender, rate);
    let options = RunOptions::new(Path::new(""));
    let emulated = emulate(&scenario, 1, options, |_, _| keep_running())?;
    Ok(emulated.map(|(observations, record)| {
        let (goodput, packets) = seen(&scenario, &observations);
        RateAccuracy {
            nominal: rate,
            delivered: goodput / PAYLOAD,
            packets_per_second: packets,
            fidelity: record.fidelity,
        }
    }))
}

/// Bits per second that the application got after the warm-up, and packets per second.
fn seen(scenario: &Resolved, seen: &Observations) -> (f64, f64) {
    let begin = Instant::ZERO + scenario.scenario.warm_up.0;
    let mut numbers = numbers(scenario, seen).into_iter();
    let goodput = numbers.find(|(name, _)| name == "goodput_bps").and_then(|(_, value)| value);
    let time =
        scenario.scenario.duration.0.as_secs_f64() - scenario.scenario.warm_up.0.as_secs_f64();
    let packets: u64 = seen
        .links
        .iter()
        .filter_map(|link| {
            let first = link.samples.iter().find(|one| one.at >= begin)?;
            let last = link.samples.last()?;
            Some(last.counters.delivered.packets - first.counters.delivered.packets)
        })
        .sum();
    (goodput.unwrap_or(0.0), packets as f64 / time)
}

/// How many flows share a link whose rate is measured.
const FLOWS: u32 = 4;

/// Flows over a link whose queue holds two bandwidth-delay products. The kernel's Reno keeps the link busy even when all halve their windows twice.
/// Transom's flows, whose buffers hold as much together, fill the link without loss. This measures the emulator, not congestion control. There are
/// several flows, because a single one writes a third of its buffer at once when there is room.
fn scenario(sender: &str, rate: u64) -> Resolved {
    let product = (rate as f64 / 8.0 * 0.04).max(50.0 * PACKET);
    let queue = (2.0 * product / PACKET).ceil();
    let buffer = 2.0 * product / f64::from(FLOWS);
    let profile = match sender {
        "transom" => format!("profile = {{ send-buffer = \"{buffer:.0}B\" }}"),
        _ => "congestion = \"reno\"".into(),
    };
    let text = format!(
        r#"
[scenario]
name = "accuracy"
duration = "5s"
warm-up = "2s"
sample-interval = "50ms"
[hosts.a]
kind = "{sender}"
{profile}
[hosts.b]
kind = "kernel"
[[links]]
name = "link"
from = "a"
to = "b"
delay = "20ms"
there = {{ rate = "{rate}bit/s", queue = "{queue} packets" }}
[[flows]]
name = "bulk"
from = "a"
to = "b"
kind = "bulk"
count = {FLOWS}
"#
    );
    let scenario = Scenario::parse("accuracy", &text).ok();
    let resolved = scenario.and_then(|scenario| Some(scenario.sweep().next()?.resolved));
    resolved.unwrap_or_else(|| unreachable!("{text}"))
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Accuracy { rate, delay, held, held_from_transom } = self;
        writeln!(
            f,
            "rate:    {:.3} Mbit/s of {} Mbit/s ({:+.2} %)",
            rate.delivered / 1e6,
            rate.nominal / 1_000_000,
            (rate.share() - 1.0) * 100.0,
        )?;
        writeln!(f, "         {}", rate.fidelity)?;
        writeln!(
            f,
            "delay:   {} ms and {:.3} ms more at the median, {:.3} ms at the 99th percentile, {:.3} ms at most, of {} datagrams",
            delay.nominal_ms,
            delay.median_error_ms,
            delay.p99_error_ms,
            delay.max_error_ms,
            delay.datagrams,
        )?;
        for (sender, held) in [("kernel", held), ("Transom", held_from_transom)] {
            match held {
                Some(held) => {
                    writeln!(
                        f,
                        "highest: {} Mbit/s held from {sender} to kernel over 20 ms, {:.0} packets per second",
                        held.nominal / 1_000_000,
                        held.packets_per_second,
                    )?;
                    writeln!(f, "         {}", held.fidelity)?;
                }
                None => writeln!(
                    f,
                    "highest: not even {} Mbit/s held from {sender} to kernel over 20 ms",
                    SLOWEST / 1_000_000
                )?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_hand() {
        let delays = (1..=200).map(|tenths| Duration::from_micros(20_000 + 100 * tenths));
        let seen = DelayAccuracy::of(Duration::from_millis(20), delays.rev().collect());
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert_eq!(seen.datagrams, 200);
        assert!(close(seen.median_error_ms, 10.0) && close(seen.p99_error_ms, 19.8), "{seen:?}");
        assert!(close(seen.max_error_ms, 20.0), "{seen:?}");
    }

    #[test]
    fn the_scenarios_are_what_they_are_meant_to_be() {
        let fast = scenario("kernel", 1_000_000_000);
        // 1 Gbit/s · 40 ms are 5 MB, 3333 packets and a third.
        assert_eq!(fast.links[0].there.queue.to_string(), "6667 packets");
        assert!(fast.needs_emulation());
        scenario("transom", 20_000_000_000);
        scenario("transom", SLOWEST);
    }
}
