//! The parameters of queues and of window policies, by name. What has parameters walks over them once: setting one of them, writing them all and
//! the names in an error follow from the same list.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;
use core::num::NonZeroU64;
use core::str::FromStr;

use transom_base::arguments::Fraction;
use transom_base::time::Duration;

use crate::probability::Probability;
use crate::quantity::{DurationText, RateText, parse_duration};
use crate::queue::Limit;
use crate::text;

/// Why a parameter in parentheses cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// There is no such parameter.
    #[error("{owner} has no parameter `{parameter}`: it has {}", known.join(", "))]
    Unknown {
        /// The queue or the policy.
        owner: &'static str,
        /// The parameter.
        parameter: String,
        /// The known ones.
        known: Vec<&'static str>,
    },
    /// A parameter's value is not one.
    #[error("`{value}` is not a value of {owner}'s `{parameter}`: write {example}")]
    Value {
        /// The queue or the policy.
        owner: &'static str,
        /// The parameter.
        parameter: String,
        /// The value.
        value: String,
        /// An example of an accepted value.
        example: &'static str,
    },
    /// A parameter is given more than once.
    #[error("{owner}'s `{parameter}` is given twice")]
    Twice {
        /// The queue or the policy.
        owner: &'static str,
        /// The parameter.
        parameter: String,
    },
}

/// The values that a parameter has, as text.
pub(crate) struct Kind<T> {
    /// An accepted value.
    pub(crate) example: &'static str,
    pub(crate) read: fn(&str) -> Option<T>,
    pub(crate) show: fn(&T) -> Shown,
}

/// How a value is written.
pub(crate) enum Shown {
    /// Not at all: it is the default.
    Nothing,
    /// Behind the name.
    Value(String),
    /// Without the name.
    Alone(String),
    /// A switch that is on: the name, behind all other parameters.
    Switch,
}

impl Shown {
    fn some<T>(value: &Option<T>, text: impl Fn(&T) -> String) -> Shown {
        value.as_ref().map_or(Shown::Nothing, |value| Shown::Value(text(value)))
    }
}

pub(crate) const LIMIT: Kind<Limit> = Kind {
    example: "100 packets or 64KiB",
    read: |text| text.parse().ok(),
    show: |limit| Shown::Alone(text::limit(*limit)),
};

pub(crate) const DURATION: Kind<Duration> = Kind {
    example: "20ms or 1.5s",
    read: |text| parse_duration(text).ok(),
    show: |duration| Shown::Value(DurationText(*duration).to_string()),
};

/// A duration that may be missing.
pub(crate) const SOME_DURATION: Kind<Option<Duration>> = Kind {
    example: DURATION.example,
    read: |text| parse_duration(text).ok().map(Some),
    show: |duration| Shown::some(duration, |duration| DurationText(*duration).to_string()),
};

/// A rate that may be missing, in bits per second.
pub(crate) const SOME_RATE: Kind<Option<NonZeroU64>> = Kind {
    example: "10Mbit/s",
    read: |text| text.parse().ok().map(|RateText(rate)| Some(rate)),
    show: |rate| Shown::some(rate, |rate| RateText(*rate).to_string()),
};

/// A length in bytes.
pub(crate) const LENGTH: Kind<u32> = Kind {
    example: "1500B",
    read: text::length,
    show: |length| Shown::Value(format!("{length}B")),
};

pub(crate) const PROBABILITY: Kind<Probability> = Kind {
    example: "1/50, 2% or 0.02",
    read: |text| text.parse().ok(),
    show: |probability| Shown::Value(probability.to_string()),
};

/// A whole number, such as the example.
pub(crate) const fn number<T: FromStr + Display>(example: &'static str) -> Kind<T> {
    Kind {
        example,
        read: |text| text.parse().ok(),
        show: |number| Shown::Value(number.to_string()),
    }
}

/// A change of probability per second of delay, such as the example.
pub(crate) const fn gain(example: &'static str) -> Kind<Fraction> {
    Kind { example, read: text::gain, show: |gain| Shown::Value(gain.to_string()) }
}

/// On or off, and written in either case.
pub(crate) const CHOICE: Kind<bool> = Kind { show: |on| Shown::Value(on.to_string()), ..SWITCH };

/// Off unless it is given.
pub(crate) const SWITCH: Kind<bool> = Kind {
    example: "true or false",
    read: |text| text.parse().ok(),
    show: |on| if *on { Shown::Switch } else { Shown::Nothing },
};

/// A visitor of the parameters of a queue or of a policy: it sets one of them, or writes all.
#[derive(Default)]
pub(crate) struct Walk<'a> {
    /// The parameter to be set, and its value.
    given: Option<(&'a str, &'a str)>,
    /// The outcome of setting it: on failure, an example of a value.
    outcome: Option<Result<(), &'static str>>,
    names: Vec<&'static str>,
    values: Vec<String>,
    switches: Vec<String>,
}

impl Walk<'_> {
    /// The parameter with this name is at this place.
    pub(crate) fn at<T>(&mut self, name: &'static str, place: &mut T, kind: Kind<T>) {
        self.names.push(name);
        if let Some((parameter, value)) = self.given
            && parameter == name
        {
            let read = (kind.read)(value).ok_or(kind.example);
            self.outcome = Some(read.map(|value| *place = value));
        }
        match (kind.show)(place) {
            Shown::Nothing => {}
            Shown::Value(value) => self.values.push(format!("{name}={value}")),
            Shown::Alone(value) => self.values.push(value),
            Shown::Switch => self.switches.push(name.into()),
        }
    }
}

/// A queue or a policy.
pub(crate) trait Parameters {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Goes to each parameter, in the order in which they are written.
    fn walk(&mut self, walk: &mut Walk<'_>);

    /// Sets one parameter by its name. `validate` checks whether they fit together.
    fn set(&mut self, parameter: &str, value: &str) -> Result<(), ArgumentError> {
        let mut walk = Walk { given: Some((parameter, value)), ..Walk::default() };
        self.walk(&mut walk);
        let (owner, parameter) = (self.name(), parameter.into());
        match walk.outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(example)) => {
                Err(ArgumentError::Value { owner, parameter, value: value.into(), example })
            }
            None => Err(ArgumentError::Unknown { owner, parameter, known: walk.names }),
        }
    }

    /// Sets what `name=value` says, or `name` for a switch. A limit may come first without its name, if there is one. Returns the names.
    fn set_all<'a>(
        &mut self,
        arguments: Vec<&'a str>,
        has_limit: bool,
    ) -> Result<Vec<&'a str>, ArgumentError> {
        let mut seen = Vec::new();
        for (position, argument) in arguments.into_iter().enumerate() {
            let is_limit = || has_limit && position == 0 && argument.parse::<Limit>().is_ok();
            let (parameter, value) = match argument.split_once('=') {
                Some((parameter, value)) => (parameter.trim(), value.trim()),
                None if is_limit() => ("limit", argument),
                None => (argument, "true"),
            };
            self.set(parameter, value)?;
            if seen.contains(&parameter) {
                let (owner, parameter) = (self.name(), parameter.into());
                return Err(ArgumentError::Twice { owner, parameter });
            }
            seen.push(parameter);
        }
        Ok(seen)
    }

    /// All parameters; of the switches those that are on.
    fn written(mut self) -> String
    where
        Self: Sized,
    {
        let mut walk = Walk::default();
        self.walk(&mut walk);
        walk.values.append(&mut walk.switches);
        walk.values.join(", ")
    }
}
