//! A choice with its parameters, as people write it: `ltcp(beta=0.15, wt=50)`.

use crate::quantity::{Decimal, UnitError, call, parse_duration, parse_size};
use crate::time::Duration;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Why the parameters of a choice cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// Parentheses that do not close, or something behind them.
    #[error("`{0}` is not a choice: write it like reno or ltcp(beta=0.15)")]
    Malformed(String),
    /// Something in the parentheses that is not `name=value`.
    #[error("`{argument}` is not a parameter of {choice}: write name=value")]
    NotAParameter {
        /// The choice.
        choice: String,
        /// The argument.
        argument: String,
    },
    /// A parameter that the choice does not have.
    #[error("{choice} has no parameter `{name}`{}", Known(known))]
    Unknown {
        /// The choice.
        choice: String,
        /// The name.
        name: String,
        /// The parameters that there are.
        known: Vec<&'static str>,
    },
    /// The same parameter twice.
    #[error("{choice} is given `{name}` twice")]
    Twice {
        /// The choice.
        choice: String,
        /// The parameter.
        name: String,
    },
    /// A value that is no number, or has too many digits.
    #[error("`{value}` is not a number for {choice}'s `{name}`: write it like {example}")]
    NotANumber {
        /// The choice.
        choice: String,
        /// The parameter.
        name: &'static str,
        /// The value.
        value: String,
        /// An example of an accepted value.
        example: &'static str,
    },
    /// A value that is no duration, or no size.
    #[error("{choice}'s `{name}`: {error}")]
    NotAQuantity {
        /// The choice.
        choice: String,
        /// The parameter.
        name: &'static str,
        /// Why not.
        error: UnitError,
    },
    /// A word that the parameter does not have.
    #[error("{choice}'s `{name}` is one of {}, not `{value}`", words.join(", "))]
    NotAWord {
        /// The choice.
        choice: String,
        /// The parameter.
        name: &'static str,
        /// The value.
        value: String,
        /// The words there are.
        words: Vec<&'static str>,
    },
    /// A value that the algorithm cannot work with.
    #[error("{choice}: {reason}")]
    Impossible {
        /// The choice.
        choice: String,
        /// Why, with the numbers.
        reason: String,
    },
}

struct Known<'a>(&'a [&'static str]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("; it has none"),
            known => write!(f, "; it has {}", known.join(", ")),
        }
    }
}

/// A number between 0 and 18 million million with up to six decimals, such as a gain or a share, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction(u64);

impl Fraction {
    /// One.
    pub const ONE: Fraction = Fraction(1_000_000);

    /// This many millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Fraction(millionths)
    }

    /// In millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// This part of `value`, rounded down; saturating.
    pub fn of(self, value: u64) -> u64 {
        let part = u128::from(value) * u128::from(self.0) / 1_000_000;
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// One minus this, or zero.
    pub const fn complement(self) -> Fraction {
        Fraction(Self::ONE.0.saturating_sub(self.0))
    }
}

/// With as many decimals as it has.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = alloc::format!("{rest:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// The parameters of one choice, taken out one by one; an unused parameter is an error.
#[derive(Debug)]
pub struct Arguments<'a> {
    choice: &'a str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Arguments<'a> {
    /// Reads `name` or `name(key=value, …)`.
    ///
    /// # Errors
    /// [`ArgumentError::Malformed`], [`ArgumentError::NotAParameter`] and [`ArgumentError::Twice`].
    pub fn read(text: &'a str) -> Result<Self, ArgumentError> {
        let text = text.trim();
        let malformed = || ArgumentError::Malformed(text.into());
        let (choice, inside) = call(text).ok_or_else(malformed)?;
        let inside = inside.unwrap_or_default();
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '=' | '_');
        if choice.is_empty() || !choice.chars().all(word) || inside.contains(['(', ')']) {
            return Err(malformed());
        }
        let mut given: Vec<(&str, &str)> = Vec::new();
        for argument in inside.split(',').map(str::trim) {
            if argument.is_empty() && inside.trim().is_empty() {
                break;
            }
            let Some((name, value)) = argument.split_once('=') else {
                let (choice, argument) = (choice.into(), argument.into());
                return Err(ArgumentError::NotAParameter { choice, argument });
            };
            let (name, value) = (name.trim(), value.trim());
            if given.iter().any(|(other, _)| *other == name) {
                return Err(ArgumentError::Twice { choice: choice.into(), name: name.into() });
            }
            given.push((name, value));
        }
        Ok(Arguments { choice, given, known: Vec::new() })
    }

    /// The choice's name.
    pub fn choice(&self) -> &'a str {
        self.choice
    }

    /// The value of a parameter as it was written, if it was.
    pub fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        let at = self.given.iter().position(|(given, _)| *given == name)?;
        Some(self.given.swap_remove(at).1)
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`ArgumentError::NotANumber`].
    pub fn number(&mut self, name: &'static str) -> Result<Option<u64>, ArgumentError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| self.not_a_number(name, value, "50"))
    }

    /// A number with up to six decimals, or a percentage.
    ///
    /// # Errors
    /// [`ArgumentError::NotANumber`].
    pub fn fraction(&mut self, name: &'static str) -> Result<Option<Fraction>, ArgumentError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        let number = match Decimal::split(value) {
            Some((number, "")) => number.scaled(1_000_000),
            Some((number, "%")) => number.hundredth().scaled(1_000_000),
            _ => None,
        };
        let number = number.ok_or_else(|| self.not_a_number(name, value, "0.15 or 15%"))?;
        Ok(Some(Fraction(number)))
    }

    /// A duration.
    ///
    /// # Errors
    /// [`ArgumentError::NotAQuantity`].
    pub fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, ArgumentError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        self.quantity(name, parse_duration(value))
    }

    /// A number of bytes.
    ///
    /// # Errors
    /// [`ArgumentError::NotAQuantity`].
    pub fn bytes(&mut self, name: &'static str) -> Result<Option<u64>, ArgumentError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        self.quantity(name, parse_size(value))
    }

    fn quantity<T>(
        &self,
        name: &'static str,
        value: Result<T, UnitError>,
    ) -> Result<Option<T>, ArgumentError> {
        let choice = || self.choice.into();
        value.map(Some).map_err(|error| ArgumentError::NotAQuantity {
            choice: choice(),
            name,
            error,
        })
    }

    /// One of some words.
    ///
    /// # Errors
    /// [`ArgumentError::NotAWord`].
    pub fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, ArgumentError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == value) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => Err(ArgumentError::NotAWord {
                choice: self.choice.into(),
                name,
                value: value.into(),
                words: words.iter().map(|(word, _)| *word).collect(),
            }),
        }
    }

    /// The error for parameters that the algorithm cannot work with.
    pub fn impossible(&self, reason: impl fmt::Display) -> ArgumentError {
        ArgumentError::Impossible { choice: self.choice.into(), reason: reason.to_string() }
    }

    /// All parameters have been taken out.
    ///
    /// # Errors
    /// [`ArgumentError::Unknown`] if one has not.
    pub fn finish(self) -> Result<(), ArgumentError> {
        match self.given.first() {
            None => Ok(()),
            Some((name, _)) => Err(ArgumentError::Unknown {
                choice: self.choice.into(),
                name: (*name).into(),
                known: self.known,
            }),
        }
    }

    fn not_a_number(
        &self,
        name: &'static str,
        value: &str,
        example: &'static str,
    ) -> ArgumentError {
        ArgumentError::NotANumber { choice: self.choice.into(), name, value: value.into(), example }
    }
}

/// Writes a choice's name and those of its parameters that differ from their defaults: the inverse of [`Arguments::read`].
pub struct ChoiceText<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    result: fmt::Result,
    open: bool,
}

impl<'a, 'f> ChoiceText<'a, 'f> {
    /// Begins with the name.
    pub fn new(f: &'a mut fmt::Formatter<'f>, name: &str) -> Self {
        let result = f.write_str(name);
        ChoiceText { f, result, open: false }
    }

    /// A parameter, unless `is_default`.
    pub fn parameter(mut self, name: &str, value: impl fmt::Display, is_default: bool) -> Self {
        if !is_default && self.result.is_ok() {
            let before = if self.open { ", " } else { "(" };
            self.result = write!(self.f, "{before}{name}={value}");
            self.open = true;
        }
        self
    }

    /// The end.
    ///
    /// # Errors
    /// Those of the formatter.
    pub fn finish(self) -> fmt::Result {
        self.result?;
        if self.open { self.f.write_str(")") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn parameters_are_taken_out_one_by_one() {
        let mut read =
            Arguments::read(" ltcp( beta = 15% ,wt=50, rule=paper,span=1.5ms) ").unwrap();
        assert_eq!(read.choice(), "ltcp");
        assert_eq!(read.fraction("beta"), Ok(Some(Fraction::from_millionths(150_000))));
        assert_eq!(read.number("wt"), Ok(Some(50)));
        assert_eq!(read.word("rule", &[("paper", 1), ("double", 2)]), Ok(Some(1)));
        assert_eq!(read.duration("span"), Ok(Some(Duration::from_micros(1500))));
        assert_eq!(read.number("other"), Ok(None));
        assert_eq!(read.finish(), Ok(()));
        assert_eq!(Arguments::read("reno").unwrap().finish(), Ok(()));
        assert_eq!(Arguments::read("reno()").unwrap().finish(), Ok(()));
    }

    #[test]
    fn wrong_arguments_are_named() {
        let error = |text| Arguments::read(text).map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            error("a(b=1"),
            "`a(b=1` is not a choice: write it like reno or ltcp(beta=0.15)"
        );
        assert_eq!(
            error("(b=1)"),
            "`(b=1)` is not a choice: write it like reno or ltcp(beta=0.15)"
        );
        assert_eq!(
            error("a((b=1))"),
            "`a((b=1))` is not a choice: write it like reno or ltcp(beta=0.15)"
        );
        assert_eq!(error("a(b)"), "`b` is not a parameter of a: write name=value");
        assert_eq!(error("a(b=1,)"), "`` is not a parameter of a: write name=value");
        assert_eq!(error("a(b=1,b=2)"), "a is given `b` twice");
        let mut read = Arguments::read("a(b=x, c=1, d=4)").unwrap();
        assert_eq!(
            read.number("b").unwrap_err().to_string(),
            "`x` is not a number for a's `b`: write it like 50"
        );
        assert_eq!(
            read.word("c", &[("on", true), ("off", false)]).unwrap_err().to_string(),
            "a's `c` is one of on, off, not `1`"
        );
        assert_eq!(read.finish().unwrap_err().to_string(), "a has no parameter `d`; it has b, c");
        let read = Arguments::read("reno(x=1)").unwrap();
        assert_eq!(
            read.finish().unwrap_err().to_string(),
            "reno has no parameter `x`; it has none"
        );
    }

    #[test]
    fn fractions() {
        let texts = [(0, "0"), (150_000, "0.15"), (1_000_000, "1"), (2_000_001, "2.000001")];
        for (millionths, text) in texts {
            assert_eq!(Fraction::from_millionths(millionths).to_string(), text);
        }
        let beta = Fraction::from_millionths(150_000);
        assert_eq!((beta.of(1000), beta.complement().of(1000)), (150, 850));
        assert_eq!(Fraction::from_millionths(u64::MAX).of(u64::MAX), u64::MAX);
    }

    struct Choice;

    impl fmt::Display for Choice {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            ChoiceText::new(f, "ltcp")
                .parameter("beta", "0.15", true)
                .parameter("wt", 60, false)
                .parameter("rule", "double", false)
                .finish()
        }
    }

    #[test]
    fn only_what_differs_is_written() {
        assert_eq!(Choice.to_string(), "ltcp(wt=60, rule=double)");
    }
}
