//! Choosing units by name: texts such as `sack + ltcp(beta=0.15) + delayed-ack`.
//!
//! A text is a list of words joined by `+`. Each word chooses one unit, or is a preset, which represents a list of words. A unit without
//! a word keeps its default, that of the preset `modern`; experiments with the core RFCs begin with `classic`. Two words for the same
//! unit contradict each other. There are two exceptions: a word of the text wins over one of a preset, and a text can be laid
//! [over](Composer::over) another. A word also wins over words for other units that are incompatible with it: `no-sack` over a preset's
//! `rack-tlp`. The losing word has no effect. If a choice needs another one, and no word is about that one, it is made too: without the
//! SACK option NewReno repairs losses, and a controller that needs pacing is paced. In the same way Reno has plain slow start, and not the
//! default's `hystart`. The words of congestion control are its
//! [algorithms](crate::congestion::ALGORITHMS); a program can add its own.
//!
//! This is the only language of profiles: the command line, scenarios and the C interface take these texts. A table with one key for each
//! unit ([`Unit::name`]), as scenarios have it, says the same.
//!
//! ```
//! use transom_tcp::{RecoveryChoice, ReductionChoice};
//! use transom_tcp::compose::compose;
//!
//! let profile = compose("sack + reno + prr")?;
//! assert_eq!(profile.recovery, RecoveryChoice::Sack);
//! assert_eq!(profile.reduction, ReductionChoice::Prr);
//! assert_eq!(compose("classic + prr")?.recovery, RecoveryChoice::Sack);
//! assert_eq!(compose("")?, compose("modern")?);
//! let error = compose("sack + newreno").unwrap_err();
//! assert_eq!(error.to_string(), "`sack` and `newreno` are both loss recovery");
//! # Ok::<(), transom_tcp::compose::ComposeError>(())
//! ```

mod grammar;
mod presets;
mod recompose;

use crate::arguments::{ArgumentError, Arguments};
use crate::congestion::{ALGORITHMS, Entry};
use crate::profile::{
    PLAIN, PacingChoice, Profile, ProfileError, RecoveryChoice, slow_start_before,
};
use crate::undo::UndoConfig;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use grammar::{Unit, WORDS, Word};
pub use presets::{PRESETS, Preset};

/// Why a text does not name a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A word that nothing is called by.
    #[error("there is no unit called `{word}`{}", Near(near))]
    Unknown {
        /// The unknown word.
        word: String,
        /// Similar words.
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
    /// A word where another unit is chosen.
    #[error("`{word}` is {unit}, not {wanted}")]
    Elsewhere {
        /// The word.
        word: String,
        /// The unit that it chooses.
        unit: Unit,
        /// The unit that was to be chosen.
        wanted: Unit,
    },
    /// A word for a unit that a live connection keeps.
    #[error("`{word}` would exchange {unit} of a live connection: {reason}")]
    Fixed {
        /// The word.
        word: String,
        /// The unit that it chooses.
        unit: Unit,
        /// Why not.
        reason: &'static str,
    },
    /// No word where one is needed.
    #[error("a word for {0} is missing")]
    Nothing(Unit),
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

/// The profile for a text, based on [`Profile::default`].
///
/// # Errors
/// [`ComposeError`].
pub fn compose(text: &str) -> Result<Profile, ComposeError> {
    Composer::default().compose(Profile::default(), text)
}

/// The profile for a text, based on [`Profile::classic`]. For experiments that compare one unit at a time.
///
/// # Errors
/// [`ComposeError`].
pub fn compose_classic(text: &str) -> Result<Profile, ComposeError> {
    Composer::default().compose(Profile::classic(), text)
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

/// A word, and its choice.
#[derive(Clone, Copy, Debug)]
struct Chosen<'a> {
    unit: Unit,
    /// Its name, and all of it, with its parameters.
    name: &'a str,
    text: &'a str,
    /// Of two words for one unit, that of the higher rank counts.
    rank: u8,
}

impl Chosen<'_> {
    /// Whether both hold: for most units only one word can.
    fn is_compatible(&self, other: &Chosen<'_>) -> bool {
        let none = |one: &Chosen<'_>| one.unit.none() == Some(one.name);
        self.unit != other.unit || self.unit.none().is_some() && !none(self) && !none(other)
    }
}

impl Composer {
    /// With one algorithm more, or in the place of the one by that name.
    pub fn with(mut self, entry: Entry) -> Self {
        self.algorithms.retain(|other| other.name != entry.name);
        self.algorithms.push(entry);
        self
    }

    /// The algorithm of congestion control by this name.
    pub fn algorithm(&self, name: &str) -> Option<&Entry> {
        self.algorithms.iter().find(|entry| entry.name == name)
    }

    /// The profile that `text` makes of `base`.
    ///
    /// # Errors
    /// [`ComposeError`].
    pub fn compose(&self, base: Profile, text: &str) -> Result<Profile, ComposeError> {
        let mut profile = base;
        let before = profile.congestion.name();
        let chosen = self.choose(&[text])?;
        // Words of undo add up with each other, and not with those of the base: a text chooses the whole unit.
        if chosen.iter().any(|word| word.unit == Unit::Undo) {
            profile.undo = UndoConfig::default();
        }
        for word in &chosen {
            self.apply(&mut profile, word)?;
        }
        let silent = |unit: Unit| chosen.iter().all(|word| word.unit != unit);
        if silent(Unit::Recovery) {
            let counts = (profile.early_retransmit && !silent(Unit::EarlyRetransmit))
                || (profile.reordering.is_some() && !silent(Unit::Reordering));
            // Without the option there is only one recovery that nobody has to ask for.
            let needs_sack =
                matches!(profile.recovery, RecoveryChoice::Sack | RecoveryChoice::RackTlp);
            if !profile.options.sack && needs_sack {
                profile.recovery = RecoveryChoice::NewReno;
            } else if counts && profile.recovery == RecoveryChoice::RackTlp {
                profile.recovery = RecoveryChoice::Sack;
            }
        }
        if before != PLAIN && silent(Unit::SlowStart) {
            profile.slow_start = slow_start_before(profile.congestion.name(), profile.slow_start);
        }
        // Pacing comes with a controller that counts on it, unless a word says otherwise: then the profile is refused.
        if profile.congestion.needs_pacing() && silent(Unit::Pacing) {
            profile.pacing = PacingChoice::Rate;
        }
        profile.validate()?;
        Ok(profile)
    }

    /// `text` laid over `base`: one text with the words of both, in which those of `text` and its presets win. Whether they work together
    /// is for [`Composer::compose`] to say.
    ///
    /// # Errors
    /// [`ComposeError`] if one of them is wrong by itself.
    pub fn over(&self, base: &str, text: &str) -> Result<String, ComposeError> {
        let chosen = self.choose(&[base, text])?;
        Ok(chosen.iter().map(|word| word.text).collect::<Vec<_>>().join(" + "))
    }

    /// Checks that a text has words for `unit`, with the right parameters, and for no other.
    ///
    /// # Errors
    /// [`ComposeError`].
    pub fn check_unit(&self, wanted: Unit, text: &str) -> Result<(), ComposeError> {
        let words = split(text);
        if words.is_empty() {
            return Err(ComposeError::Nothing(wanted));
        }
        for word in &words {
            let word = self.word(word, 0)?;
            if word.unit != wanted {
                let (unit, word) = (word.unit, word.name.into());
                return Err(ComposeError::Elsewhere { word, unit, wanted });
            }
            self.apply(&mut Profile::default(), &word)?;
        }
        self.choose(&[text]).map(|_| ())
    }

    /// The words of which no other has won, from texts of which each counts for more than those before.
    fn choose<'a>(&self, texts: &[&'a str]) -> Result<Vec<Chosen<'a>>, ComposeError> {
        let mut chosen: Vec<Chosen<'a>> = Vec::new();
        for (text, rank) in texts.iter().zip((0u8..).step_by(2)) {
            // Presets first, wherever they stand: what the text itself says wins.
            let (presets, words): (Vec<&str>, Vec<&str>) =
                split(text).into_iter().partition(|word| preset(word).is_some());
            let presets = presets.into_iter().filter_map(preset).flat_map(|one| split(one.text));
            let ranked = presets
                .map(|word| (word, rank))
                .chain(words.into_iter().map(|word| (word, rank + 1)));
            for (text, rank) in ranked {
                let word = self.word(text, rank)?;
                if let Some(before) =
                    chosen.iter().find(|before| before.rank == rank && !before.is_compatible(&word))
                {
                    let (first, second) = (before.name.into(), word.name.into());
                    return Err(ComposeError::Twice { unit: word.unit, first, second });
                }
                chosen.retain(|before| {
                    before.rank == rank
                        || before.unit != word.unit && self.works_with(before, &word)
                });
                chosen.push(word);
            }
        }
        Ok(chosen)
    }

    /// Whether a word stays if a later one counts for more and is for another unit, as far as their names show it. [`Profile::validate`] checks
    /// the rest.
    fn works_with(&self, one: &Chosen<'_>, other: &Chosen<'_>) -> bool {
        let against = |one: &str, other: &str| match (one, other) {
            ("no-sack", "sack" | "rack-tlp" | "rr") => true,
            ("rack-tlp", "early-retransmit" | "rr") => true,
            ("no-pacing", name) => self.needs_pacing(name),
            _ => false,
        };
        // Reno takes a preset's HyStart away. HyStart takes no controller away.
        let slows = one.name == "hystart" && other.name == PLAIN;
        !slows && !against(one.name, other.name) && !against(other.name, one.name)
    }

    /// Whether it is the name of a controller that counts on pacing.
    fn needs_pacing(&self, name: &str) -> bool {
        let reads = |entry: &Entry| (entry.read)(&mut Arguments::read(name).ok()?).ok();
        self.algorithm(name).and_then(reads).is_some_and(|choice| choice.needs_pacing())
    }

    /// The choice of a word. Its parameters are not read.
    fn word<'a>(&self, text: &'a str, rank: u8) -> Result<Chosen<'a>, ComposeError> {
        let name = Arguments::read(text)?.choice();
        let unit = match WORDS.iter().find(|word| word.name == name) {
            Some(word) => word.unit,
            // Its word is `no-congestion-control`.
            None if name != "none" && self.algorithm(name).is_some() => Unit::Congestion,
            None => {
                return Err(ComposeError::Unknown { word: name.into(), near: self.near(name) });
            }
        };
        Ok(Chosen { unit, name, text, rank })
    }

    fn apply(&self, profile: &mut Profile, word: &Chosen<'_>) -> Result<(), ComposeError> {
        let mut arguments = Arguments::read(word.text)?;
        if let Some(word) = WORDS.iter().find(|one| one.name == word.name) {
            (word.choose)(profile, &mut arguments)?;
        } else if let Some(entry) = self.algorithm(word.name) {
            profile.congestion = (entry.read)(&mut arguments)?;
        }
        Ok(arguments.finish()?)
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

/// The words of a text. A `+` at the end of a word (as in `ecn++`) or inside of parentheses is part of the word.
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
