//! Which queue, with which parameters: as a value and as text.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use transom_base::time::Duration;

use super::{
    Cake, CakeConfig, CoDel, CoDelConfig, Discipline, DualPi2, DualPi2Config, Fq, FqCoDel,
    FqCoDelConfig, FqConfig, Limit, Limited, Pie, PieConfig, Red, RedConfig, Victim,
};
use crate::parameters::{ArgumentError, LIMIT, Parameters, Walk};
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
/// | `fq-codel` | `limit` (10240 packets), `flows` (1024), `target` (5ms), `interval` (100ms), `quantum` (1514B), `mtu` (1500B), `ce-threshold` (none), `l4s`, `ecn` (true) |
/// | `dualpi2` | `limit` (10000 packets), `target` (15ms), `update` (16ms), `alpha` (0.16), `beta` (3.2), `coupling` (2), `threshold` (0.8ms), `range` (0.4ms), `mtu` (1500B), `classic` (1/16), `ecn` (true) |
/// | `cake` | `limit` (4MiB), `flows` (1024), `bandwidth` (none), `overhead` (0), `mpu` (0B), `rtt` (100ms), `isolation` (triple, source, destination or flows), `ecn` (true) |
/// | `fq` | `limit` (10000 packets), `flow-limit` (100), `quantum` (3028B), `initial-quantum` (15140B), `maxrate` (none), `refill` (40ms), `ce-threshold` (none) |
///
/// Parameters without a value are switches: `gentle` means `gentle=true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config(pub(super) Choice);

/// The disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    DropTail { limit: Limit },
    DropHead { limit: Limit },
    Red(RedConfig),
    CoDel(CoDelConfig),
    Pie(PieConfig),
    FqCoDel(FqCoDelConfig),
    DualPi2(DualPi2Config),
    Cake(CakeConfig),
    Fq(FqConfig),
}

impl Default for Config {
    /// Drop-tail with the default limit.
    fn default() -> Self {
        Limit::default().into()
    }
}

impl From<Limit> for Config {
    /// Drop-tail.
    fn from(limit: Limit) -> Self {
        Config(Choice::DropTail { limit })
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
    /// The discipline has no such parameter, or the parameter no such value.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A parameter must be above zero.
    #[error("`{parameter}` must be above zero")]
    Zero {
        /// Its name in a queue's text form.
        parameter: &'static str,
    },
    /// A parameter is too large to be computed with.
    #[error("`{parameter}` must be at most {most}")]
    TooLarge {
        /// Its name in a queue's text form.
        parameter: &'static str,
        /// The largest value there is.
        most: u64,
    },
    /// RED's thresholds do not count the same.
    #[error("red's `min` and `max` must both count packets, or both bytes")]
    MixedUnits,
    /// RED's lower threshold is not below its upper one.
    #[error("red's `min` ({min}) must be below its `max` ({max})")]
    Thresholds {
        /// The lower threshold.
        min: u64,
        /// The upper threshold.
        max: u64,
    },
    /// RED's lower threshold lies beyond the queue's capacity.
    #[error(
        "a queue limited to {limit} never exceeds red's `min` ({min}), so RED would do nothing; lower `min`"
    )]
    NeverReached {
        /// The lower threshold.
        min: u64,
        /// The capacity, in the same unit.
        limit: u64,
    },
    /// CoDel's target is longer than its interval.
    #[error("codel's `target` must be shorter than its `interval`; 5 to 10 % of it is usual")]
    TargetAboveInterval,
}

/// Refuses the first parameter that is zero.
pub(super) fn above_zero(parameters: &[(&'static str, bool)]) -> Result<(), ConfigError> {
    match parameters.iter().find(|(_, is_zero)| *is_zero) {
        Some((parameter, _)) => Err(ConfigError::Zero { parameter }),
        None => Ok(()),
    }
}

impl Config {
    /// A queue with these parameters, empty.
    ///
    /// # Errors
    /// [`ConfigError`] if they make no sense.
    pub fn build<P: Send + 'static>(&self) -> Result<Box<dyn Discipline<P>>, ConfigError> {
        Ok(match self.0 {
            Choice::DropTail { limit } => Box::new(Limited::new(limit, Victim::Arriving)),
            Choice::DropHead { limit } => Box::new(Limited::new(limit, Victim::Oldest)),
            Choice::Red(config) => Box::new(Red::new(config)?),
            Choice::CoDel(config) => Box::new(CoDel::new(config)?),
            Choice::Pie(config) => Box::new(Pie::new(config)?),
            Choice::FqCoDel(config) => Box::new(FqCoDel::new(config)?),
            Choice::DualPi2(config) => Box::new(DualPi2::new(config)?),
            Choice::Cake(config) => Box::new(Cake::new(config)?),
            Choice::Fq(config) => Box::new(Fq::new(config)?),
        })
    }

    /// Checks the parameters as [`build`](Self::build) does.
    fn validate(&self) -> Result<(), ConfigError> {
        match &self.0 {
            Choice::DropTail { .. } | Choice::DropHead { .. } => Ok(()),
            Choice::Red(config) => config.validate(),
            Choice::CoDel(config) => config.validate(),
            Choice::Pie(config) => config.validate(),
            Choice::FqCoDel(config) => config.validate(),
            Choice::DualPi2(config) => config.validate(),
            Choice::Cake(config) => config.validate(),
            Choice::Fq(config) => config.validate(),
        }
    }

    /// The same queue in front of a link of this rate: fills in what follows from it and was left out, which is RED's
    /// `transmission`.
    #[must_use]
    pub fn on_link(mut self, bits_per_second: u64) -> Self {
        if let Choice::Red(config) = &mut self.0 {
            let bit_nanos = u64::from(config.packet_size) * 8 * 1_000_000_000;
            let each =
                Duration::from_nanos(bit_nanos.checked_div(bits_per_second).unwrap_or(0).max(1));
            config.transmission.get_or_insert(each);
        }
        self
    }

    /// Whether it keeps flows apart, so that packets have to say whose they are ([`Item::flow`](super::Item::flow)).
    pub const fn tells_flows_apart(&self) -> bool {
        matches!(self.0, Choice::FqCoDel(_) | Choice::Cake(_) | Choice::Fq(_))
    }

    /// Whether it is drop-tail, whose only parameter is its limit.
    pub const fn is_drop_tail(&self) -> bool {
        matches!(self.0, Choice::DropTail { .. })
    }

    /// The queue's capacity.
    pub const fn limit(&self) -> Limit {
        match &self.0 {
            Choice::DropTail { limit } | Choice::DropHead { limit } => *limit,
            Choice::Red(config) => config.limit,
            Choice::CoDel(config) => config.limit,
            Choice::Pie(config) => config.limit,
            Choice::FqCoDel(config) => config.limit,
            Choice::DualPi2(config) => config.limit,
            Choice::Cake(config) => config.limit,
            Choice::Fq(config) => config.limit,
        }
    }
}

impl Parameters for Config {
    fn name(&self) -> &'static str {
        match self.0 {
            Choice::DropTail { .. } => "drop-tail",
            Choice::DropHead { .. } => "drop-head",
            Choice::Red(_) => "red",
            Choice::CoDel(_) => "codel",
            Choice::Pie(_) => "pie",
            Choice::FqCoDel(_) => "fq-codel",
            Choice::DualPi2(_) => "dualpi2",
            Choice::Cake(_) => "cake",
            Choice::Fq(_) => "fq",
        }
    }

    fn walk(&mut self, walk: &mut Walk<'_>) {
        match &mut self.0 {
            Choice::DropTail { limit } | Choice::DropHead { limit } => {
                walk.at("limit", limit, LIMIT);
            }
            Choice::Red(config) => config.walk(walk),
            Choice::CoDel(config) => config.walk(walk),
            Choice::Pie(config) => config.walk(walk),
            Choice::FqCoDel(config) => config.walk(walk),
            Choice::DualPi2(config) => config.walk(walk),
            Choice::Cake(config) => config.walk(walk),
            Choice::Fq(config) => config.walk(walk),
        }
    }
}

impl FromStr for Config {
    type Err = ConfigError;

    fn from_str(given: &str) -> Result<Config, ConfigError> {
        if let Ok(limit) = given.parse::<Limit>() {
            return Ok(limit.into());
        }
        let not_a_queue = || ConfigError::NotAQueue(given.into());
        let (name, arguments) = text::call(given).ok_or_else(not_a_queue)?;
        let mut config = Config(match name {
            "drop-tail" => Choice::DropTail { limit: Limit::default() },
            "drop-head" => Choice::DropHead { limit: Limit::default() },
            "red" => Choice::Red(RedConfig::default()),
            "codel" => Choice::CoDel(CoDelConfig::default()),
            "pie" => Choice::Pie(PieConfig::default()),
            "fq-codel" => Choice::FqCoDel(FqCoDelConfig::default()),
            "dualpi2" => Choice::DualPi2(DualPi2Config::default()),
            "cake" => Choice::Cake(CakeConfig::default()),
            "fq" => Choice::Fq(FqConfig::default()),
            _ => return Err(not_a_queue()),
        });
        config.set_all(arguments, true)?;
        config.validate()?;
        Ok(config)
    }
}

impl fmt::Display for Config {
    /// All parameters; switches that are on. It reads back as the same configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.written())
    }
}

#[cfg(test)]
mod tests;
