//! Sets one parameter of a queue by its name.

use super::super::{DelayEstimate, Isolation};
use super::{
    CakeConfig, CoDelConfig, DualPi2Config, FqCoDelConfig, FqConfig, Limit, PieConfig, RedConfig,
    Unit,
};
use crate::quantity::parse_duration;
use crate::text;

/// Why a parameter cannot be set.
pub(super) enum Refusal {
    /// There is none of this name.
    Unknown,
    /// The value is not one; this would be.
    Value(&'static str),
    /// It does not count what RED's other threshold counts.
    MixedUnits,
}

/// Stores a value that could be read, or gives the example of one.
fn store<T>(place: &mut T, read: Option<T>, example: &'static str) -> Result<(), Refusal> {
    *place = read.ok_or(Refusal::Value(example))?;
    Ok(())
}

const PROBABILITY: &str = "1/50, 2% or 0.02";
const DURATION: &str = "20ms or 1.5s";
const BYTES: &str = "1500B";
const SWITCH: &str = "true or false";
const RATE: &str = "10Mbit/s";
const NUMBER: &str = "1024";

fn switch(value: &str) -> Option<bool> {
    value.parse().ok()
}

pub(super) fn red(config: &mut RedConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "min" | "max" => {
            let (unit, amount) = threshold(value).ok_or(Refusal::Value("5 (packets) or 30kB"))?;
            if unit != config.unit {
                return Err(Refusal::MixedUnits);
            }
            *(if parameter == "min" { &mut config.min } else { &mut config.max }) = amount;
            Ok(())
        }
        "w" => store(&mut config.weight, value.parse().ok(), PROBABILITY),
        "p" => store(&mut config.max_p, value.parse().ok(), PROBABILITY),
        "packet" => store(&mut config.packet_size, text::length(value), BYTES),
        "transmission" => {
            store(&mut config.transmission, parse_duration(value).ok().map(Some), DURATION)
        }
        "gentle" => store(&mut config.gentle, switch(value), SWITCH),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

/// One of RED's thresholds: a bare number counts packets.
pub(super) fn threshold(value: &str) -> Option<(Unit, u64)> {
    if let Ok(packets) = value.trim().parse() {
        return Some((Unit::Packets, packets));
    }
    match text::limit(value)? {
        Limit::Packets(packets) => Some((Unit::Packets, packets)),
        Limit::Bytes(bytes) => Some((Unit::Bytes, bytes)),
        Limit::Unlimited => None,
    }
}

pub(super) fn codel(config: &mut CoDelConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "target" => store(&mut config.target, parse_duration(value).ok(), DURATION),
        "interval" => store(&mut config.interval, parse_duration(value).ok(), DURATION),
        "mtu" => store(&mut config.mtu, text::length(value), BYTES),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn pie(config: &mut PieConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "target" => store(&mut config.target, parse_duration(value).ok(), DURATION),
        "update" => store(&mut config.update, parse_duration(value).ok(), DURATION),
        "burst" => store(&mut config.burst, parse_duration(value).ok(), DURATION),
        "alpha" => store(&mut config.alpha, text::gain(value), "0.125"),
        "beta" => store(&mut config.beta, text::gain(value), "1.25"),
        "packet" => store(&mut config.packet_size, text::length(value), BYTES),
        "bytes" => {
            let unit = |bytes| if bytes { Unit::Bytes } else { Unit::Packets };
            store(&mut config.unit, switch(value).map(unit), SWITCH)
        }
        "departure-rate" => {
            let estimate = |measured| match measured {
                true => DelayEstimate::DepartureRate,
                false => DelayEstimate::Timestamps,
            };
            store(&mut config.estimate, switch(value).map(estimate), SWITCH)
        }
        "derandomize" => store(&mut config.derandomize, switch(value), SWITCH),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        "ecn-limit" => store(&mut config.ecn_limit, value.parse().ok(), PROBABILITY),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn fq_codel(
    config: &mut FqCoDelConfig,
    parameter: &str,
    value: &str,
) -> Result<(), Refusal> {
    match parameter {
        "flows" => store(&mut config.flows, value.parse().ok(), NUMBER),
        "target" => store(&mut config.target, parse_duration(value).ok(), DURATION),
        "interval" => store(&mut config.interval, parse_duration(value).ok(), DURATION),
        "quantum" => store(&mut config.quantum, text::length(value), BYTES),
        "mtu" => store(&mut config.mtu, text::length(value), BYTES),
        "ce-threshold" => {
            store(&mut config.ce_threshold, parse_duration(value).ok().map(Some), DURATION)
        }
        "l4s" => store(&mut config.l4s, switch(value), SWITCH),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn dualpi2(
    config: &mut DualPi2Config,
    parameter: &str,
    value: &str,
) -> Result<(), Refusal> {
    match parameter {
        "target" => store(&mut config.target, parse_duration(value).ok(), DURATION),
        "update" => store(&mut config.update, parse_duration(value).ok(), DURATION),
        "alpha" => store(&mut config.alpha, text::gain(value), "0.16"),
        "beta" => store(&mut config.beta, text::gain(value), "3.2"),
        "coupling" => store(&mut config.coupling, value.parse().ok(), "2"),
        "threshold" => store(&mut config.threshold, parse_duration(value).ok(), DURATION),
        "range" => store(&mut config.range, parse_duration(value).ok(), DURATION),
        "mtu" => store(&mut config.mtu, text::length(value), BYTES),
        "classic" => store(&mut config.classic, value.parse().ok(), PROBABILITY),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn cake(config: &mut CakeConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "flows" => store(&mut config.flows, value.parse().ok(), NUMBER),
        "bandwidth" => store(&mut config.bandwidth, text::rate(value).map(Some), RATE),
        "overhead" => store(&mut config.overhead, value.parse().ok(), "18 or -4"),
        "mpu" => store(&mut config.mpu, text::length(value), BYTES),
        "rtt" => store(&mut config.rtt, parse_duration(value).ok(), DURATION),
        "isolation" => {
            let known = Isolation::WORDS.iter().find(|(word, _)| *word == value);
            let isolation = known.map(|(_, isolation)| *isolation);
            store(&mut config.isolation, isolation, "triple, source, destination or flows")
        }
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

pub(super) fn fq(config: &mut FqConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "flow-limit" => store(&mut config.flow_limit, value.parse().ok(), NUMBER),
        "quantum" => store(&mut config.quantum, text::length(value), BYTES),
        "initial-quantum" => store(&mut config.initial_quantum, text::length(value), BYTES),
        "maxrate" => store(&mut config.maxrate, text::rate(value).map(Some), RATE),
        "refill" => store(&mut config.refill, parse_duration(value).ok(), DURATION),
        "ce-threshold" => {
            store(&mut config.ce_threshold, parse_duration(value).ok().map(Some), DURATION)
        }
        _ => Err(Refusal::Unknown),
    }
}
