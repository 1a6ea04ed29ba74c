//! Which queue, with which parameters: as a value and as text.

mod set;
mod show;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use transom_base::time::Duration;

use super::{
    Cake, CakeConfig, CoDel, CoDelConfig, Discipline, DropHead, DropTail, DualPi2, DualPi2Config,
    Fq, FqCoDel, FqCoDelConfig, FqConfig, Limit, ParameterError, Pie, PieConfig, Red, RedConfig,
    Unit,
};
use crate::text;

use set::{Refusal, threshold};

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
/// | `fq-codel` | `limit` (10240 packets), `flows` (1024), `target` (5ms), `interval` (100ms), `quantum` (1514B), `mtu` (1500B), `ce-threshold` (none), `l4s`, `ecn` (true) |
/// | `dualpi2` | `limit` (10000 packets), `target` (15ms), `update` (16ms), `alpha` (0.16), `beta` (3.2), `coupling` (2), `threshold` (0.8ms), `range` (0.4ms), `mtu` (1500B), `classic` (1/16), `ecn` (true) |
/// | `cake` | `limit` (4MiB), `flows` (1024), `bandwidth` (none), `overhead` (0), `mpu` (0B), `rtt` (100ms), `isolation` (triple, source, destination or flows), `ecn` (true) |
/// | `fq` | `limit` (10000 packets), `flow-limit` (100), `quantum` (3028B), `initial-quantum` (15140B), `maxrate` (none), `refill` (40ms), `ce-threshold` (none) |
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
    /// [`FqCoDel`].
    FqCoDel(FqCoDelConfig),
    /// [`DualPi2`].
    DualPi2(DualPi2Config),
    /// [`Cake`].
    Cake(CakeConfig),
    /// [`Fq`].
    Fq(FqConfig),
}

impl Default for Config {
    /// Drop-tail with the default limit.
    fn default() -> Self {
        Config::DropTail { limit: Limit::default() }
    }
}

/// Why a text is not a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It names no discipline, or its parentheses do not match.
    #[error(
        "`{0}` is not a queue: write a limit such as `100 packets`, or drop-tail, drop-head, red, codel, pie, \
         fq-codel, dualpi2, cake or fq with parameters in parentheses, such as red(50 packets, min=5, max=15, gentle)"
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
            Config::FqCoDel(config) => Box::new(FqCoDel::new(config)?),
            Config::DualPi2(config) => Box::new(DualPi2::new(config)?),
            Config::Cake(config) => Box::new(Cake::new(config)?),
            Config::Fq(config) => Box::new(Fq::new(config)?),
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
            Config::FqCoDel(config) => config.validate(),
            Config::DualPi2(config) => config.validate(),
            Config::Cake(config) => config.validate(),
            Config::Fq(config) => config.validate(),
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

    /// Whether it keeps flows apart, so that packets have to say whose they are ([`Item::flow`](super::Item::flow)).
    pub const fn tells_flows_apart(&self) -> bool {
        matches!(self, Config::FqCoDel(_) | Config::Cake(_) | Config::Fq(_))
    }

    /// The discipline's name.
    const fn name(&self) -> &'static str {
        match self {
            Config::DropTail { .. } => "drop-tail",
            Config::DropHead { .. } => "drop-head",
            Config::Red(_) => "red",
            Config::CoDel(_) => "codel",
            Config::Pie(_) => "pie",
            Config::FqCoDel(_) => "fq-codel",
            Config::DualPi2(_) => "dualpi2",
            Config::Cake(_) => "cake",
            Config::Fq(_) => "fq",
        }
    }

    /// The queue's capacity.
    pub const fn limit(&self) -> Limit {
        match self {
            Config::DropTail { limit } | Config::DropHead { limit } => *limit,
            Config::Red(config) => config.limit,
            Config::CoDel(config) => config.limit,
            Config::Pie(config) => config.limit,
            Config::FqCoDel(config) => config.limit,
            Config::DualPi2(config) => config.limit,
            Config::Cake(config) => config.limit,
            Config::Fq(config) => config.limit,
        }
    }

    /// Changes the queue's capacity.
    const fn set_limit(&mut self, capacity: Limit) {
        match self {
            Config::DropTail { limit } | Config::DropHead { limit } => *limit = capacity,
            Config::Red(config) => config.limit = capacity,
            Config::CoDel(config) => config.limit = capacity,
            Config::Pie(config) => config.limit = capacity,
            Config::FqCoDel(config) => config.limit = capacity,
            Config::DualPi2(config) => config.limit = capacity,
            Config::Cake(config) => config.limit = capacity,
            Config::Fq(config) => config.limit = capacity,
        }
    }

    /// Sets one parameter by its name. [`validate`](Self::validate) checks whether the parameters are consistent.
    fn set(&mut self, parameter: &str, value: &str) -> Result<(), ConfigError> {
        let discipline = self.name();
        let done = match self {
            _ if parameter == "limit" => {
                let limit = text::limit(value).ok_or(Refusal::Value("100 packets or 64KiB"));
                limit.map(|limit| self.set_limit(limit))
            }
            Config::Red(config) => set::red(config, parameter, value),
            Config::CoDel(config) => set::codel(config, parameter, value),
            Config::Pie(config) => set::pie(config, parameter, value),
            Config::FqCoDel(config) => set::fq_codel(config, parameter, value),
            Config::DualPi2(config) => set::dualpi2(config, parameter, value),
            Config::Cake(config) => set::cake(config, parameter, value),
            Config::Fq(config) => set::fq(config, parameter, value),
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
            Config::FqCoDel(_) => {
                "limit, flows, target, interval, quantum, mtu, ce-threshold, l4s, ecn"
            }
            Config::DualPi2(_) => {
                "limit, target, update, alpha, beta, coupling, threshold, range, mtu, classic, ecn"
            }
            Config::Cake(_) => "limit, flows, bandwidth, overhead, mpu, rtt, isolation, ecn",
            Config::Fq(_) => {
                "limit, flow-limit, quantum, initial-quantum, maxrate, refill, ce-threshold"
            }
        }
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
            "fq-codel" => Config::FqCoDel(FqCoDelConfig::default()),
            "dualpi2" => Config::DualPi2(DualPi2Config::default()),
            "cake" => Config::Cake(CakeConfig::default()),
            "fq" => Config::Fq(FqConfig::default()),
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

#[cfg(test)]
mod tests;
