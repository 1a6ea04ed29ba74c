//! Choosing units by name: texts such as `sack + ltcp(beta=0.15) + delayed-ack`.
//!
//! A text is a list of words joined by `+`. Each word is a choice of one unit, or a preset, which stands for a list of words; what is not
//! said stays as it was. Two words for the same unit contradict each other, except that a word of the text's own wins over one of a
//! preset. Where a choice cannot do without another and no word is about that one, it is made too: without the SACK option NewReno repairs
//! losses, and a controller that counts on pacing is paced. The words of congestion control are its [algorithms](crate::congestion::ALGORITHMS); a program can add its own.
//!
//! ```
//! use transom_tcp::compose::compose;
//! use transom_tcp::profile::{RecoveryChoice, ReductionChoice};
//!
//! let profile = compose("sack + reno + prr")?;
//! assert_eq!(profile.recovery, RecoveryChoice::Sack);
//! assert_eq!(profile.reduction, ReductionChoice::Prr);
//! let error = compose("sack + newreno").unwrap_err();
//! assert_eq!(error.to_string(), "`sack` and `newreno` are both loss recovery");
//! # Ok::<(), transom_tcp::compose::ComposeError>(())
//! ```

mod arguments;
mod presets;
mod recompose;
mod words;

use crate::congestion::{ALGORITHMS, Entry};
use crate::profile::{PacingChoice, Profile, ProfileError, RecoveryChoice};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use arguments::{ArgumentError, Arguments, ChoiceText, Fraction};
pub use presets::{PRESETS, Preset};
pub use recompose::RecomposeError;
pub use words::{Unit, WORDS, Word};

/// Why a text does not name a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A word that nothing is called by.
    #[error("there is no unit called `{word}`{}", Near(near))]
    Unknown {
        /// What was written.
        word: String,
        /// Words that look like it.
        near: Vec<String>,
    },
    /// Two choices for one unit.
    #[error("`{first}` and `{second}` are both {unit}")]
    Twice {
        /// The unit.
        unit: Unit,
        /// The word that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// The parameters of a choice.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The choices do not work together.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

struct Near<'a>(&'a [String]);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            near => write!(f, "; did you mean {}?", near.join(" or ")),
        }
    }
}

/// The profile that a text stands for, beginning with the default.
///
/// # Errors
/// [`ComposeError`].
pub fn compose(text: &str) -> Result<Profile, ComposeError> {
    Composer::default().compose(Profile::default(), text)
}

/// Reads texts. The algorithms of congestion control can be added to.
#[derive(Clone, Debug)]
pub struct Composer {
    algorithms: Vec<Entry>,
}

/// With the algorithms of this crate.
impl Default for Composer {
    fn default() -> Self {
        Composer { algorithms: ALGORITHMS.to_vec() }
    }
}

/// A choice that has been made: for which unit, by which word, and whether by a preset.
struct Made {
    unit: Unit,
    word: String,
    by_preset: bool,
}

impl Composer {
    /// With one algorithm more, or in the place of the one by that name.
    pub fn with(mut self, entry: Entry) -> Self {
        self.algorithms.retain(|other| other.name != entry.name);
        self.algorithms.push(entry);
        self
    }

    /// The algorithms of congestion control.
    pub fn algorithms(&self) -> &[Entry] {
        &self.algorithms
    }

    /// The profile that `text` makes of `base`.
    ///
    /// # Errors
    /// [`ComposeError`].
    pub fn compose(&self, base: Profile, text: &str) -> Result<Profile, ComposeError> {
        let mut profile = base;
        let mut made: Vec<Made> = Vec::new();
        // Presets first, wherever they stand: what the text itself says wins.
        let (presets, words): (Vec<&str>, Vec<&str>) =
            split(text).into_iter().partition(|word| preset(word).is_some());
        for word in presets {
            let Some(preset) = preset(word) else { continue };
            for word in split(preset.text) {
                self.choose(&mut profile, word, true, &mut made)?;
            }
        }
        for word in words {
            self.choose(&mut profile, word, false, &mut made)?;
        }
        // Without the option there is only one recovery that nobody has to ask for.
        if !profile.options.sack && !made.iter().any(|made| made.unit == Unit::Recovery) {
            profile.recovery = RecoveryChoice::NewReno;
        }
        // Pacing comes with a controller that counts on it, unless a word says otherwise: then the profile is refused.
        if profile.congestion.needs_pacing() && !made.iter().any(|made| made.unit == Unit::Pacing) {
            profile.pacing = PacingChoice::Rate;
        }
        profile.validate()?;
        Ok(profile)
    }

    fn choose(
        &self,
        profile: &mut Profile,
        text: &str,
        by_preset: bool,
        made: &mut Vec<Made>,
    ) -> Result<(), ComposeError> {
        let mut arguments = Arguments::read(text)?;
        let name = arguments.choice();
        let unit = if let Some(word) = WORDS.iter().find(|word| word.name == name) {
            (word.choose)(profile, &mut arguments)?;
            word.unit
        } else if let Some(entry) =
            self.algorithms.iter().find(|entry| entry.name == name && name != "none")
        {
            profile.congestion = (entry.read)(&mut arguments)?;
            Unit::Congestion
        } else {
            return Err(ComposeError::Unknown { word: name.into(), near: self.near(name) });
        };
        arguments.finish()?;
        let same = |one: &&mut Made| one.unit == unit && !unit.is_additive();
        if let Some(before) = made.iter_mut().find(same) {
            if before.by_preset == by_preset {
                let (first, second) = (before.word.clone(), name.into());
                return Err(ComposeError::Twice { unit, first, second });
            }
            *before = Made { unit, word: name.into(), by_preset };
        } else {
            made.push(Made { unit, word: name.into(), by_preset });
        }
        Ok(())
    }

    /// Words that share their beginning or end with one that does not exist.
    fn near(&self, word: &str) -> Vec<String> {
        let algorithms =
            self.algorithms.iter().map(|entry| entry.name).filter(|name| *name != "none");
        let presets = PRESETS.iter().map(|preset| preset.name);
        let all = WORDS.iter().map(|word| word.name).chain(algorithms).chain(presets);
        let common = |name: &str| {
            let forward = name.chars().zip(word.chars()).take_while(|(a, b)| a == b).count();
            let backward =
                name.chars().rev().zip(word.chars().rev()).take_while(|(a, b)| a == b).count();
            forward.max(backward)
        };
        let least = 2.max(word.chars().count() / 2);
        all.filter(|name| common(name) >= least).map(String::from).take(3).collect()
    }
}

/// The words of a text. A `+` belongs to a word that ends with it, as `ecn++` does, or stands inside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut depth = 0u32;
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'+' if depth == 0 => {
                let alone = |at: Option<usize>| {
                    at.and_then(|at| bytes.get(at)).is_none_or(|byte| byte.is_ascii_whitespace())
                };
                if alone(at.checked_sub(1)) && alone(at.checked_add(1)) {
                    words.push(text.get(start..at).unwrap_or_default());
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    words.push(text.get(start..).unwrap_or_default());
    words.into_iter().map(str::trim).filter(|word| !word.is_empty()).collect()
}

fn preset(word: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == word)
}

#[cfg(test)]
mod tests;
