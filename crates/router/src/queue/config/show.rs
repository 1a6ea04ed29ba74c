//! A queue as text.

use core::fmt;

use super::super::{DelayEstimate, Isolation};
use super::{
    CakeConfig, CoDelConfig, Config, DualPi2Config, FqCoDelConfig, FqConfig, PieConfig, RedConfig,
    Unit,
};
use crate::quantity::{DurationText, RateText};

impl fmt::Display for Config {
    /// All parameters; switches that are on. It reads back as the same configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}", self.name(), self.limit())?;
        let mut switches: [(&str, bool); 4] = [("", false); 4];
        match *self {
            Config::DropTail { limit: _ } | Config::DropHead { limit: _ } => {}
            Config::Red(RedConfig {
                limit: _,
                unit,
                min,
                max,
                weight,
                max_p,
                packet_size,
                transmission,
                gentle,
                ecn,
            }) => {
                let unit = if unit == Unit::Bytes { "B" } else { "" };
                write!(f, ", min={min}{unit}, max={max}{unit}, w={weight}, p={max_p}")?;
                write!(f, ", packet={packet_size}B")?;
                if let Some(transmission) = transmission {
                    write!(f, ", transmission={}", DurationText(transmission))?;
                }
                switches[..2].copy_from_slice(&[("gentle", gentle), ("ecn", ecn)]);
            }
            Config::CoDel(CoDelConfig { limit: _, target, interval, mtu, ecn }) => {
                let (target, interval) = (DurationText(target), DurationText(interval));
                write!(f, ", target={target}, interval={interval}, mtu={mtu}B")?;
                switches[0] = ("ecn", ecn);
            }
            Config::Pie(PieConfig {
                limit: _,
                target,
                update,
                burst,
                alpha,
                beta,
                unit,
                packet_size,
                estimate,
                derandomize,
                ecn,
                ecn_limit,
            }) => {
                let (target, update) = (DurationText(target), DurationText(update));
                write!(f, ", target={target}, update={update}, burst={}", DurationText(burst))?;
                write!(f, ", alpha={alpha}, beta={beta}, packet={packet_size}B")?;
                write!(f, ", ecn-limit={ecn_limit}")?;
                switches = [
                    ("bytes", unit == Unit::Bytes),
                    ("departure-rate", estimate == DelayEstimate::DepartureRate),
                    ("derandomize", derandomize),
                    ("ecn", ecn),
                ];
            }
            Config::FqCoDel(FqCoDelConfig {
                limit: _,
                flows,
                target,
                interval,
                quantum,
                mtu,
                ecn,
                ce_threshold,
                l4s,
            }) => {
                let (target, interval) = (DurationText(target), DurationText(interval));
                write!(f, ", flows={flows}, target={target}, interval={interval}")?;
                write!(f, ", quantum={quantum}B, mtu={mtu}B")?;
                if let Some(threshold) = ce_threshold {
                    write!(f, ", ce-threshold={}", DurationText(threshold))?;
                }
                write!(f, ", ecn={ecn}")?;
                switches[0] = ("l4s", l4s);
            }
            Config::DualPi2(DualPi2Config {
                limit: _,
                target,
                update,
                alpha,
                beta,
                coupling,
                threshold,
                range,
                mtu,
                classic,
                ecn,
            }) => {
                let (target, update) = (DurationText(target), DurationText(update));
                write!(f, ", target={target}, update={update}, alpha={alpha}, beta={beta}")?;
                let (threshold, range) = (DurationText(threshold), DurationText(range));
                write!(f, ", coupling={coupling}, threshold={threshold}, range={range}")?;
                write!(f, ", mtu={mtu}B, classic={classic}, ecn={ecn}")?;
            }
            Config::Cake(CakeConfig {
                limit: _,
                flows,
                bandwidth,
                overhead,
                mpu,
                rtt,
                isolation,
                ecn,
            }) => {
                write!(f, ", flows={flows}")?;
                if let Some(rate) = bandwidth {
                    write!(f, ", bandwidth={}", RateText(rate))?;
                }
                write!(f, ", overhead={overhead}, mpu={mpu}B, rtt={}", DurationText(rtt))?;
                let word = Isolation::WORDS.iter().find(|(_, one)| *one == isolation);
                write!(f, ", isolation={}, ecn={ecn}", word.map_or("triple", |(word, _)| word))?;
            }
            Config::Fq(FqConfig {
                limit: _,
                flow_limit,
                quantum,
                initial_quantum,
                maxrate,
                refill,
                ce_threshold,
            }) => {
                write!(f, ", flow-limit={flow_limit}, quantum={quantum}B")?;
                write!(f, ", initial-quantum={initial_quantum}B, refill={}", DurationText(refill))?;
                if let Some(rate) = maxrate {
                    write!(f, ", maxrate={}", RateText(rate))?;
                }
                if let Some(threshold) = ce_threshold {
                    write!(f, ", ce-threshold={}", DurationText(threshold))?;
                }
            }
        }
        for (name, _) in switches.iter().filter(|(_, on)| *on) {
            write!(f, ", {name}")?;
        }
        f.write_str(")")
    }
}
