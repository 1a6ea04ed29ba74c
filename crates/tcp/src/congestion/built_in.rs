//! The algorithms here as entries of a list. Each names its parameters once, and is read from text and written by these names.

use super::controller::{Controller, Kind};
use super::{Algorithm, CongestionChoice, Entry};
use crate::arguments::{ArgumentError, Arguments, ChoiceText, Fraction};
use crate::quantity::DurationText;
use crate::time::Duration;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A built-in algorithm, with its parameters.
pub(super) trait BuiltIn: Clone + Default + fmt::Debug + Send + Sync + 'static {
    /// The name by which it is chosen.
    const NAME: &'static str;
    /// The specification.
    const SOURCE: &'static str;
    /// Its description, in a few words.
    const SUMMARY: &'static str;

    /// Its parameters by name, in the order in which they are read and written.
    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        Vec::new()
    }

    /// Whether it can work with its parameters.
    fn check(&self, _given: &Arguments<'_>) -> Result<(), ArgumentError> {
        Ok(())
    }

    /// A controller for one connection.
    fn kind(&self) -> Kind;

    /// Takes the parameters that are given; the others are the defaults.
    fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        let mut read = Self::default();
        for (name, value) in read.parameters() {
            value.take(given, name)?;
        }
        read.check(given)?;
        Ok(read)
    }

    /// Writes its name, and the parameters that differ from their defaults.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut own, mut default) = (self.clone(), Self::default());
        let mut text = ChoiceText::new(f, Self::NAME);
        for ((name, value), (_, default)) in own.parameters().into_iter().zip(default.parameters())
        {
            let value = value.text();
            text = text.parameter(name, &value, value == default.text());
        }
        text.finish()
    }
}

/// A value of a parameter.
pub(super) trait Value {
    /// Takes it, if the parameter `name` is given.
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError>;

    /// As it is written.
    fn text(&self) -> String;
}

impl Value for u64 {
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError> {
        *self = given.number(name)?.unwrap_or(*self);
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Fraction {
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError> {
        *self = given.fraction(name)?.unwrap_or(*self);
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Duration {
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError> {
        *self = given.duration(name)?.unwrap_or(*self);
        Ok(())
    }

    fn text(&self) -> String {
        DurationText(*self).to_string()
    }
}

/// On or off.
impl Value for bool {
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError> {
        *self = given.word(name, &[("on", true), ("off", false)])?.unwrap_or(*self);
        Ok(())
    }

    fn text(&self) -> String {
        (if *self { "on" } else { "off" }).into()
    }
}

/// The error for a parameter that does not fit the rule.
pub(super) fn require(
    given: &Arguments<'_>,
    fits: bool,
    rule: impl fmt::Display,
    value: impl fmt::Display,
) -> Result<(), ArgumentError> {
    if fits { Ok(()) } else { Err(given.impossible(format_args!("{rule}, not {value}"))) }
}

/// Whether it is above 0 and below 1.
pub(super) fn is_share(part: Fraction) -> bool {
    part > Fraction::default() && part < Fraction::ONE
}

/// Whether it is above 0 and at most 1.
pub(super) fn is_gain(part: Fraction) -> bool {
    part > Fraction::default() && part <= Fraction::ONE
}

/// A built-in algorithm as a profile names it: by the text that it writes.
#[derive(Clone, Debug)]
struct Chosen<T>(T);

impl<T: BuiltIn> Algorithm for Chosen<T> {
    fn controller(&self) -> Controller {
        Controller(self.0.kind())
    }
}

impl<T: BuiltIn> fmt::Display for Chosen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

/// A built-in algorithm with a program's own parameters, such as `CongestionChoice::from(Vegas { .. })`.
impl<T: BuiltIn> From<T> for CongestionChoice {
    fn from(algorithm: T) -> Self {
        CongestionChoice::new(Chosen(algorithm))
    }
}

impl Entry {
    /// The entry of a built-in algorithm.
    pub(super) const fn of<T: BuiltIn>() -> Self {
        Entry {
            name: T::NAME,
            source: T::SOURCE,
            summary: T::SUMMARY,
            read: |given| Ok(CongestionChoice::from(T::read(given)?)),
        }
    }
}
