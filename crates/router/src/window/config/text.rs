//! Policies in words: reading and writing `target-window(upper=35 packets, …)`.

use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use transom_base::time::Duration;

use super::super::{Rule, TargetWindowConfig};
use super::{ControlConfigError, PolicyConfig};
use crate::parameters::{DURATION, Kind, Parameters, SOME_RATE, SWITCH, Shown, Walk};
use crate::queue::{Limit, Threshold};
use crate::text;

impl Parameters for PolicyConfig {
    fn name(&self) -> &'static str {
        PolicyConfig::name(self)
    }

    fn walk(&mut self, walk: &mut Walk<'_>) {
        match self {
            PolicyConfig::TargetWindow(config) => {
                walk.at("upper", &mut config.upper, THRESHOLD);
                walk.at("lower", &mut config.lower, THRESHOLD);
                walk.at("halve-after", &mut config.halve_after, THRESHOLD);
                walk.at("raise", &mut config.raise_shift, SHIFT);
                walk.at("initial", &mut config.initial, SIZE);
                walk.at("most", &mut config.most, SIZE);
                walk.at("rule", &mut config.rule, RULE);
                walk.at("syn-windows", &mut config.syn_windows, SWITCH);
                walk.at("naive", &mut config.naive, SWITCH);
            }
            PolicyConfig::ExplicitWindow { queue, mss, interval } => {
                walk.at("queue", queue, PACKETS);
                walk.at("mss", mss, SEGMENT);
                walk.at("interval", interval, DURATION);
            }
            PolicyConfig::AckDelay { above, rate, most } => {
                walk.at("above", above, BYTES);
                walk.at("rate", rate, SOME_RATE);
                walk.at("most", most, DURATION);
            }
            PolicyConfig::FairShare { queue, rate, rtt, syn_windows } => {
                walk.at("queue", queue, BYTES);
                walk.at("rate", rate, SOME_RATE);
                walk.at("rtt", rtt, DURATION);
                walk.at("syn-windows", syn_windows, SWITCH);
            }
            PolicyConfig::None => {}
        }
    }
}

const THRESHOLD: Kind<Threshold> = Kind {
    example: "35 packets or 50kB",
    read: |text| match text.parse().ok()? {
        Limit::Packets(packets) => Some(Threshold::Packets(packets)),
        Limit::Bytes(bytes) => Some(Threshold::Bytes(bytes)),
        Limit::Unlimited => None,
    },
    show: |threshold| Shown::Value(text::limit(threshold.as_limit())),
};

const PACKETS: Kind<u64> = Kind {
    example: "50 packets",
    read: |text| match text.parse().ok()? {
        Limit::Packets(packets) => Some(packets),
        _ => None,
    },
    show: |packets| Shown::Value(Limit::Packets(*packets).to_string()),
};

const BYTES: Kind<u64> = Kind {
    example: "1460B or 64KiB",
    read: |text| match text.parse().ok()? {
        Limit::Bytes(bytes) => Some(bytes),
        _ => None,
    },
    show: |bytes| Shown::Value(text::limit(Limit::Bytes(*bytes))),
};

/// Bytes, above zero.
const SIZE: Kind<NonZeroU64> = Kind {
    example: BYTES.example,
    read: |text| (BYTES.read)(text).and_then(NonZeroU64::new),
    show: |bytes| (BYTES.show)(&bytes.get()),
};

const SEGMENT: Kind<u16> = Kind {
    example: BYTES.example,
    read: |text| text::length(text)?.try_into().ok(),
    show: |bytes| Shown::Value(format!("{bytes}B")),
};

/// "1/64": by how many bits to shift.
const SHIFT: Kind<u8> = Kind {
    example: "1/64, one divided by a power of two",
    read: |text| {
        let (one, divisor) = text.split_once('/')?;
        let divisor: u32 = divisor.trim().parse().ok()?;
        (one.trim() == "1" && divisor.is_power_of_two()).then(|| divisor.trailing_zeros() as u8)
    },
    show: |shift| Shown::Value(format!("1/{}", 1u64 << (*shift).min(63))),
};

const RULE: Kind<Rule> = Kind {
    example: "appendix-b or section-3.2",
    read: |text| match text {
        "appendix-b" => Some(Rule::AppendixB),
        "section-3.2" => Some(Rule::Section32),
        _ => None,
    },
    show: |rule| match rule {
        Rule::AppendixB => Shown::Nothing,
        Rule::Section32 => Shown::Value("section-3.2".into()),
    },
};

/// A policy without its required parameters, and their names.
fn unset(name: &str) -> Option<(PolicyConfig, &'static [(&'static str, &'static str)])> {
    let zero = Threshold::Packets(0);
    Some(match name {
        "target-window" => (
            PolicyConfig::TargetWindow(TargetWindowConfig::new(zero, zero)),
            &[("upper", "35 packets"), ("lower", "15 packets")],
        ),
        "explicit-window" => (
            PolicyConfig::ExplicitWindow {
                queue: 0,
                mss: 1460,
                interval: Duration::from_millis(10),
            },
            &[("queue", PACKETS.example)],
        ),
        "ack-delay" => (
            PolicyConfig::AckDelay { above: 0, rate: None, most: Duration::from_millis(500) },
            &[("above", "20kB")],
        ),
        "fair-share" => (
            PolicyConfig::FairShare {
                queue: 0,
                rate: None,
                rtt: Duration::from_millis(100),
                syn_windows: false,
            },
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
        let seen = config.set_all(arguments, false)?;
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
        match self {
            PolicyConfig::None => f.write_str(self.name()),
            _ => write!(f, "{}({})", self.name(), self.written()),
        }
    }
}
