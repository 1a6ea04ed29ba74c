//! Policies in words: reading and writing `target-window(upper=35 packets, …)`.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use transom_base::time::Duration;

use super::super::{
    AckDelayConfig, ExplicitWindowConfig, FairShareConfig, Rule, TargetWindowConfig, Threshold,
};
use super::{ControlConfigError, PolicyConfig};
use crate::quantity::{DurationText, RateText, parse_duration};
use crate::queue::Limit;
use crate::text;

/// Why a parameter cannot be set.
enum Refusal {
    /// There is none of this name.
    Unknown,
    /// The value is not one; this would be.
    Value(&'static str),
}

impl PolicyConfig {
    /// Sets one parameter by its name.
    fn set(&mut self, parameter: &str, value: &str) -> Result<(), ControlConfigError> {
        let (policy, known) = (self.name(), self.parameters());
        let done = match self {
            PolicyConfig::TargetWindow(config) => set_target(config, parameter, value),
            PolicyConfig::ExplicitWindow(config) => match parameter {
                "queue" => store(&mut config.queue, packets(value), PACKETS),
                "mss" => store(&mut config.mss, text::length(value).and_then(narrow), BYTES),
                "interval" => store(&mut config.interval, duration(value), DURATION),
                _ => Err(Refusal::Unknown),
            },
            PolicyConfig::AckDelay(config) => match parameter {
                "above" => store(&mut config.above, bytes(value), BYTES),
                "rate" => store(&mut config.rate, text::rate(value).map(Some), RATE),
                "most" => store(&mut config.most, duration(value), DURATION),
                _ => Err(Refusal::Unknown),
            },
            PolicyConfig::FairShare(config) => match parameter {
                "queue" => store(&mut config.queue, bytes(value), BYTES),
                "rate" => store(&mut config.rate, text::rate(value).map(Some), RATE),
                "rtt" => store(&mut config.rtt, duration(value), DURATION),
                "syn-windows" => store(&mut config.syn_windows, value.parse().ok(), SWITCH),
                _ => Err(Refusal::Unknown),
            },
            PolicyConfig::None => Err(Refusal::Unknown),
        };
        done.map_err(|refusal| match refusal {
            Refusal::Unknown => {
                ControlConfigError::UnknownParameter { policy, parameter: parameter.into(), known }
            }
            Refusal::Value(example) => ControlConfigError::Value {
                policy,
                parameter: parameter.into(),
                value: value.into(),
                example,
            },
        })
    }
}

const THRESHOLD: &str = "35 packets or 50kB";
const PACKETS: &str = "50 packets";
const BYTES: &str = "1460B or 64KiB";
const DURATION: &str = "20ms or 1.5s";
const RATE: &str = "10Mbit/s";
const SWITCH: &str = "true or false";
const RULE: &str = "appendix-b or section-3.2";
const FRACTION: &str = "1/64, one divided by a power of two";

/// Stores a value that could be read, or gives the example of one.
fn store<T>(place: &mut T, read: Option<T>, example: &'static str) -> Result<(), Refusal> {
    *place = read.ok_or(Refusal::Value(example))?;
    Ok(())
}

fn duration(value: &str) -> Option<Duration> {
    parse_duration(value).ok()
}

fn narrow(length: u32) -> Option<u16> {
    length.try_into().ok()
}

fn threshold(value: &str) -> Option<Threshold> {
    match text::limit(value)? {
        Limit::Packets(packets) => Some(Threshold::Packets(packets)),
        Limit::Bytes(bytes) => Some(Threshold::Bytes(bytes)),
        Limit::Unlimited => None,
    }
}

fn packets(value: &str) -> Option<u64> {
    match text::limit(value)? {
        Limit::Packets(packets) => Some(packets),
        _ => None,
    }
}

fn bytes(value: &str) -> Option<u64> {
    match text::limit(value)? {
        Limit::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// "1/64": by how many bits to shift.
fn shift(value: &str) -> Option<u8> {
    let (one, divisor) = value.split_once('/')?;
    let divisor: u32 = divisor.trim().parse().ok()?;
    (one.trim() == "1" && divisor.is_power_of_two()).then(|| divisor.trailing_zeros() as u8)
}

/// The name of a rule.
fn rule(value: &str) -> Option<Rule> {
    Rule::WORDS.into_iter().find(|(word, _)| *word == value).map(|(_, rule)| rule)
}

fn set_target(
    config: &mut TargetWindowConfig,
    parameter: &str,
    value: &str,
) -> Result<(), Refusal> {
    let size = || bytes(value).and_then(NonZeroU64::new);
    match parameter {
        "upper" => store(&mut config.upper, threshold(value), THRESHOLD),
        "lower" => store(&mut config.lower, threshold(value), THRESHOLD),
        "halve-after" => store(&mut config.halve_after, threshold(value), THRESHOLD),
        "raise" => store(&mut config.raise_shift, shift(value), FRACTION),
        "initial" => store(&mut config.initial, size(), BYTES),
        "most" => store(&mut config.most, size(), BYTES),
        "rule" => store(&mut config.rule, rule(value), RULE),
        "syn-windows" => store(&mut config.syn_windows, value.parse().ok(), SWITCH),
        "naive" => store(&mut config.naive, value.parse().ok(), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

/// A policy without its required parameters, and their names.
fn unset(name: &str) -> Option<(PolicyConfig, &'static [(&'static str, &'static str)])> {
    let zero = Threshold::Packets(0);
    Some(match name {
        "target-window" => (
            PolicyConfig::TargetWindow(TargetWindowConfig::new(zero, zero)),
            &[("upper", "35 packets"), ("lower", "15 packets")],
        ),
        "explicit-window" => (
            PolicyConfig::ExplicitWindow(ExplicitWindowConfig {
                queue: 0,
                mss: 1460,
                interval: Duration::from_millis(10),
            }),
            &[("queue", PACKETS)],
        ),
        "ack-delay" => (
            PolicyConfig::AckDelay(AckDelayConfig {
                above: 0,
                rate: None,
                most: Duration::from_millis(500),
            }),
            &[("above", "20kB")],
        ),
        "fair-share" => (
            PolicyConfig::FairShare(FairShareConfig {
                rate: None,
                rtt: Duration::from_millis(100),
                queue: 0,
                syn_windows: false,
            }),
            &[("queue", "20kB")],
        ),
        _ => return None,
    })
}

impl FromStr for PolicyConfig {
    type Err = ControlConfigError;

    fn from_str(given: &str) -> Result<PolicyConfig, ControlConfigError> {
        // The word that links have for it too.
        if given.trim() == "none" {
            return Ok(PolicyConfig::None);
        }
        let not_a_policy = || ControlConfigError::NotAPolicy(given.into());
        let (name, arguments) = text::call(given).ok_or_else(not_a_policy)?;
        let (mut config, needed) = unset(name).ok_or_else(not_a_policy)?;
        let policy = config.name();
        let mut seen: Vec<&str> = Vec::new();
        for argument in arguments {
            let (parameter, value) = match argument.split_once('=') {
                Some((parameter, value)) => (parameter.trim(), value.trim()),
                None => (argument, "true"),
            };
            config.set(parameter, value)?;
            if seen.contains(&parameter) {
                return Err(ControlConfigError::Twice { policy, parameter: parameter.into() });
            }
            seen.push(parameter);
        }
        if let Some((parameter, example)) = needed.iter().find(|(name, _)| !seen.contains(name)) {
            return Err(ControlConfigError::Missing { policy, parameter, example });
        }
        config.validate()?;
        Ok(config)
    }
}

impl fmt::Display for PolicyConfig {
    /// All parameters; switches that are on. It reads back as the same policy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if !matches!(self, PolicyConfig::None) {
            f.write_str("(")?;
        }
        let size = |bytes: NonZeroU64| Limit::Bytes(bytes.get());
        match *self {
            PolicyConfig::TargetWindow(TargetWindowConfig {
                upper,
                lower,
                halve_after,
                raise_shift,
                initial,
                most,
                rule,
                syn_windows,
                naive,
            }) => {
                write!(f, "upper={}, lower={}", upper.as_limit(), lower.as_limit())?;
                write!(f, ", halve-after={}", halve_after.as_limit())?;
                write!(f, ", raise=1/{}", 1u64 << raise_shift.min(63))?;
                write!(f, ", initial={}, most={}", size(initial), size(most))?;
                for (word, other) in Rule::WORDS {
                    if other == rule && rule != Rule::default() {
                        write!(f, ", rule={word}")?;
                    }
                }
                write_switch(f, "syn-windows", syn_windows)?;
                write_switch(f, "naive", naive)?;
                f.write_str(")")
            }
            PolicyConfig::ExplicitWindow(ExplicitWindowConfig { queue, mss, interval }) => {
                let queue = Limit::Packets(queue);
                write!(f, "queue={queue}, mss={mss}B, interval={})", DurationText(interval))
            }
            PolicyConfig::AckDelay(AckDelayConfig { above, rate, most }) => {
                write!(f, "above={}", Limit::Bytes(above))?;
                write_rate(f, rate)?;
                write!(f, ", most={})", DurationText(most))
            }
            PolicyConfig::FairShare(FairShareConfig { rate, rtt, queue, syn_windows }) => {
                write!(f, "queue={}", Limit::Bytes(queue))?;
                write_rate(f, rate)?;
                write!(f, ", rtt={}", DurationText(rtt))?;
                write_switch(f, "syn-windows", syn_windows)?;
                f.write_str(")")
            }
            PolicyConfig::None => Ok(()),
        }
    }
}

fn write_switch(f: &mut fmt::Formatter<'_>, name: &str, on: bool) -> fmt::Result {
    if on { write!(f, ", {name}") } else { Ok(()) }
}

fn write_rate(f: &mut fmt::Formatter<'_>, rate: Option<NonZeroU64>) -> fmt::Result {
    match rate {
        Some(rate) => write!(f, ", rate={}", RateText(rate)),
        None => Ok(()),
    }
}
