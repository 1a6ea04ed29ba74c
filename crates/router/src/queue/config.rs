//! Which queue, with which parameters: as a value and as text.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use transom_base::time::Duration;

use super::{
    CoDel, CoDelConfig, DelayEstimate, Discipline, DropHead, DropTail, Limit, ParameterError, Pie,
    PieConfig, Red, RedConfig, Unit,
};
use crate::quantity::{DurationText, parse_duration};
use crate::text;

/// A queue discipline and its parameters.
///
/// As text, the name and what differs from the default: `drop-tail(64KiB)`, `codel`, `red(50 packets, min=5, max=15,
/// w=0.002, p=1/50, gentle)`. The limit comes first or as `limit=`; a limit alone means drop-tail. The parameters:
///
/// | queue | parameters (defaults) |
/// |---|---|
/// | `drop-tail`, `drop-head` | `limit` (1000 packets) |
/// | `red` | `limit`, `min` (5), `max` (15), both in packets or like `30kB`; `w` (0.002), `p` (1/50), `packet` (1500B), `transmission` (from the link), `gentle`, `ecn` |
/// | `codel` | `limit`, `target` (5ms), `interval` (100ms), `mtu` (1500B), `ecn` |
/// | `pie` | `limit`, `target` (15ms), `update` (15ms), `burst` (150ms), `alpha` (0.125), `beta` (1.25), `packet` (1500B), `bytes`, `departure-rate`, `derandomize`, `ecn`, `ecn-limit` (10%) |
///
/// Parameters without a value are switches: `gentle` means `gentle=true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Config {
    /// [`DropTail`].
    DropTail {
        /// The queue's capacity.
        limit: Limit,
    },
    /// [`DropHead`].
    DropHead {
        /// The queue's capacity.
        limit: Limit,
    },
    /// [`Red`].
    Red(RedConfig),
    /// [`CoDel`].
    CoDel(CoDelConfig),
    /// [`Pie`].
    Pie(PieConfig),
}

impl Default for Config {
    /// Drop-tail with the default limit.
    fn default() -> Self {
        Config::DropTail { limit: Limit::default() }
    }
}

/// Why a text is not a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It names no discipline, or its parentheses do not match.
    #[error(
        "`{0}` is not a queue: write a limit such as `100 packets`, or drop-tail, drop-head, red, codel or pie \
         with parameters in parentheses, such as red(50 packets, min=5, max=15, gentle)"
    )]
    NotAQueue(String),
    /// The discipline has no such parameter.
    #[error("{discipline} has no parameter `{parameter}`: it has {known}")]
    UnknownParameter {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        parameter: String,
        /// The known ones.
        known: &'static str,
    },
    /// A parameter's value is not one.
    #[error("`{value}` is not a value of {discipline}'s `{parameter}`: write {example}")]
    Value {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        parameter: String,
        /// The value.
        value: String,
        /// An example of an accepted value.
        example: &'static str,
    },
    /// A parameter is given more than once.
    #[error("{discipline}'s `{parameter}` is given twice")]
    Twice {
        /// The discipline.
        discipline: &'static str,
        /// The parameter.
        parameter: String,
    },
    /// RED's thresholds do not count the same.
    #[error("red's `min` and `max` must both count packets, or both bytes")]
    MixedUnits,
    /// The values make no sense.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Config {
    /// A queue with these parameters, empty.
    ///
    /// # Errors
    /// [`ParameterError`] if they make no sense.
    pub fn build<P: Send + 'static>(&self) -> Result<Box<dyn Discipline<P>>, ParameterError> {
        Ok(match *self {
            Config::DropTail { limit } => Box::new(DropTail::new(limit)),
            Config::DropHead { limit } => Box::new(DropHead::new(limit)),
            Config::Red(config) => Box::new(Red::new(config)?),
            Config::CoDel(config) => Box::new(CoDel::new(config)?),
            Config::Pie(config) => Box::new(Pie::new(config)?),
        })
    }

    /// Checks the parameters as [`build`](Self::build) does.
    ///
    /// # Errors
    /// [`ParameterError`] if they make no sense.
    pub fn validate(&self) -> Result<(), ParameterError> {
        match self {
            Config::DropTail { .. } | Config::DropHead { .. } => Ok(()),
            Config::Red(config) => config.validate(),
            Config::CoDel(config) => config.validate(),
            Config::Pie(config) => config.validate(),
        }
    }

    /// The same queue in front of a link of this rate: fills in what follows from it and was left out, which is RED's
    /// `transmission`.
    #[must_use]
    pub fn on_link(mut self, bits_per_second: u64) -> Self {
        if let Config::Red(config) = &mut self {
            let bit_nanos = u64::from(config.packet_size) * 8 * 1_000_000_000;
            let each =
                Duration::from_nanos(bit_nanos.checked_div(bits_per_second).unwrap_or(0).max(1));
            config.transmission.get_or_insert(each);
        }
        self
    }

    /// The discipline's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Config::DropTail { .. } => "drop-tail",
            Config::DropHead { .. } => "drop-head",
            Config::Red(_) => "red",
            Config::CoDel(_) => "codel",
            Config::Pie(_) => "pie",
        }
    }

    /// The queue's capacity.
    pub const fn limit(&self) -> Limit {
        match self {
            Config::DropTail { limit } | Config::DropHead { limit } => *limit,
            Config::Red(config) => config.limit,
            Config::CoDel(config) => config.limit,
            Config::Pie(config) => config.limit,
        }
    }

    /// Changes the queue's capacity.
    pub const fn set_limit(&mut self, capacity: Limit) {
        match self {
            Config::DropTail { limit } | Config::DropHead { limit } => *limit = capacity,
            Config::Red(config) => config.limit = capacity,
            Config::CoDel(config) => config.limit = capacity,
            Config::Pie(config) => config.limit = capacity,
        }
    }

    /// Sets one parameter by its name. [`validate`](Self::validate) checks whether the parameters are consistent.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no such parameter or the value is not one of its values; the configuration is then
    /// unchanged.
    pub fn set(&mut self, parameter: &str, value: &str) -> Result<(), ConfigError> {
        let discipline = self.name();
        let done = match self {
            _ if parameter == "limit" => {
                let limit = text::limit(value).ok_or(Refusal::Value("100 packets or 64KiB"));
                limit.map(|limit| self.set_limit(limit))
            }
            Config::Red(config) => set_red(config, parameter, value),
            Config::CoDel(config) => set_codel(config, parameter, value),
            Config::Pie(config) => set_pie(config, parameter, value),
            Config::DropTail { .. } | Config::DropHead { .. } => Err(Refusal::Unknown),
        };
        done.map_err(|refusal| match refusal {
            Refusal::Unknown => ConfigError::UnknownParameter {
                discipline,
                parameter: parameter.into(),
                known: self.parameters(),
            },
            Refusal::MixedUnits => ConfigError::MixedUnits,
            Refusal::Value(example) => ConfigError::Value {
                discipline,
                parameter: parameter.into(),
                value: value.into(),
                example,
            },
        })
    }

    const fn parameters(&self) -> &'static str {
        match self {
            Config::DropTail { .. } | Config::DropHead { .. } => "limit",
            Config::Red(_) => "limit, min, max, w, p, packet, transmission, gentle, ecn",
            Config::CoDel(_) => "limit, target, interval, mtu, ecn",
            Config::Pie(_) => {
                "limit, target, update, burst, alpha, beta, packet, bytes, departure-rate, derandomize, ecn, \
                 ecn-limit"
            }
        }
    }
}

/// Why a parameter cannot be set.
enum Refusal {
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

fn switch(value: &str) -> Option<bool> {
    value.parse().ok()
}

fn set_red(config: &mut RedConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
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
fn threshold(value: &str) -> Option<(Unit, u64)> {
    if let Ok(packets) = value.trim().parse() {
        return Some((Unit::Packets, packets));
    }
    match text::limit(value)? {
        Limit::Packets(packets) => Some((Unit::Packets, packets)),
        Limit::Bytes(bytes) => Some((Unit::Bytes, bytes)),
        Limit::Unlimited => None,
    }
}

fn set_codel(config: &mut CoDelConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
    match parameter {
        "target" => store(&mut config.target, parse_duration(value).ok(), DURATION),
        "interval" => store(&mut config.interval, parse_duration(value).ok(), DURATION),
        "mtu" => store(&mut config.mtu, text::length(value), BYTES),
        "ecn" => store(&mut config.ecn, switch(value), SWITCH),
        _ => Err(Refusal::Unknown),
    }
}

fn set_pie(config: &mut PieConfig, parameter: &str, value: &str) -> Result<(), Refusal> {
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

/// The unit of RED's thresholds: bytes if both are given so. The defaults count packets.
fn red_unit(arguments: &[&str]) -> Result<Unit, ConfigError> {
    let in_bytes = |parameter: &str| {
        arguments.iter().any(|argument| match argument.split_once('=') {
            Some((name, value)) if name.trim() == parameter => {
                matches!(threshold(value), Some((Unit::Bytes, _)))
            }
            _ => false,
        })
    };
    match (in_bytes("min"), in_bytes("max")) {
        (true, true) => Ok(Unit::Bytes),
        (false, false) => Ok(Unit::Packets),
        _ => Err(ConfigError::MixedUnits),
    }
}

impl FromStr for Config {
    type Err = ConfigError;

    fn from_str(given: &str) -> Result<Config, ConfigError> {
        if let Some(limit) = text::limit(given) {
            return Ok(Config::DropTail { limit });
        }
        let not_a_queue = || ConfigError::NotAQueue(given.into());
        let (name, arguments) = text::call(given).ok_or_else(not_a_queue)?;
        let mut config = match name {
            "drop-tail" => Config::default(),
            "drop-head" => Config::DropHead { limit: Limit::default() },
            "red" => Config::Red(RedConfig { unit: red_unit(&arguments)?, ..RedConfig::default() }),
            "codel" => Config::CoDel(CoDelConfig::default()),
            "pie" => Config::Pie(PieConfig::default()),
            _ => return Err(not_a_queue()),
        };
        let mut seen: Vec<&str> = Vec::new();
        for (position, argument) in arguments.into_iter().enumerate() {
            let (parameter, value) = match argument.split_once('=') {
                Some((parameter, value)) => (parameter.trim(), value.trim()),
                None if position == 0 && text::limit(argument).is_some() => ("limit", argument),
                None => (argument, "true"),
            };
            config.set(parameter, value)?;
            if seen.contains(&parameter) {
                let discipline = config.name();
                return Err(ConfigError::Twice { discipline, parameter: parameter.into() });
            }
            seen.push(parameter);
        }
        config.validate()?;
        Ok(config)
    }
}

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
        }
        for (name, _) in switches.iter().filter(|(_, on)| *on) {
            write!(f, ", {name}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests;
