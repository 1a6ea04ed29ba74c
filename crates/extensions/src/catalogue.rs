//! Extensions by name: texts such as `nice + rr(cap=0.8)`, in the language of profiles.

use crate::cm::{self, Manager};
use transom_tcp::arguments::{ArgumentError, Arguments};
use transom_tcp::extension::{Extension, ExtensionChoice};

/// An extension that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The specification.
    pub source: &'static str,
    /// Its effect, in a few words.
    pub summary: &'static str,
    /// Its parameters, each with its default and what it is.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Reads its parameters.
    pub read: fn(&mut Arguments<'_>) -> Result<ExtensionChoice, ArgumentError>,
}

/// All of them.
pub const CATALOGUE: &[Entry] = &[
    crate::vegas::ENTRY,
    crate::nice::ENTRY,
    crate::rr::ENTRY,
    crate::efr::ENTRY,
    crate::eifel::ENTRY,
    crate::limited_slow_start::ENTRY,
    crate::rate_cap::ENTRY,
    crate::greedy::ENTRY,
    crate::scramble::ENTRY,
    crate::cm::ENTRY,
    crate::deadline::ENTRY,
    crate::rledbat::ENTRY,
    crate::abc::ENTRY,
    crate::westwood::ENTRY,
    crate::tfrc::ENTRY,
    crate::fast::ENTRY,
    crate::ledbat_plus_plus::ENTRY,
    crate::highspeed::ENTRY,
    crate::policy::ENTRY,
];

/// A choice that clones `extension` for each connection.
pub(crate) fn choice(
    arguments: &Arguments<'_>,
    extension: impl Extension + Clone + Sync + 'static,
) -> ExtensionChoice {
    ExtensionChoice::new(arguments.choice(), move || Box::new(extension.clone()))
}

/// Why a text does not name extensions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// A name that nothing is called by.
    #[error("there is no extension called `{name}`; {}", instead(name))]
    Unknown {
        /// The name that was written.
        name: String,
    },
    /// The parameters of one.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
}

/// Suggestions for an unknown name: similar names, or all of them.
fn instead(name: &str) -> String {
    let names = CATALOGUE.iter().map(|entry| entry.name);
    let near = names.clone().map(|one| (strsim::osa_distance(name, one), one)).min();
    // One letter in three may be wrong.
    match near {
        Some((distance, one)) if distance <= name.chars().count().div_ceil(3) => {
            format!("did you mean `{one}`?")
        }
        _ => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// The extensions that a text names, joined by `+` (or by commas, outside of parentheses).
///
/// ```
/// let stack = transom_extensions::stack("nice + rr(cap=0.8)")?;
/// assert_eq!(stack.len(), 2);
/// let error = transom_extensions::stack("nise").unwrap_err();
/// assert_eq!(error.to_string(), "there is no extension called `nise`; did you mean `nice`?");
/// # Ok::<(), transom_extensions::StackError>(())
/// ```
///
/// # Errors
/// [`StackError`].
pub fn stack(text: &str) -> Result<Vec<ExtensionChoice>, StackError> {
    stack_sharing(text, &Manager::default())
}

/// The same, where the macroflows of `cm` are those of `manager`: of choices that are made with the same manager, all connections that
/// name the same macroflow share. With [`stack`] only those do whose extensions are of the same choice.
///
/// ```
/// use transom_extensions::{cm::Manager, stack_sharing};
///
/// // For each host one manager, and for each run another.
/// let host = Manager::default();
/// let usual = stack_sharing("cm", &host)?;
/// let twice = stack_sharing("cm(weight=2) + rr", &host)?;
/// # Ok::<(), transom_extensions::StackError>(())
/// ```
///
/// # Errors
/// [`StackError`].
pub fn stack_sharing(text: &str, manager: &Manager) -> Result<Vec<ExtensionChoice>, StackError> {
    split(text).into_iter().map(|one| choose(one, manager)).collect()
}

fn choose(text: &str, manager: &Manager) -> Result<ExtensionChoice, StackError> {
    let mut arguments = Arguments::read(text)?;
    let name = arguments.choice();
    let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
        return Err(StackError::Unknown { name: name.to_owned() });
    };
    let choice = if entry.name == cm::ENTRY.name {
        cm::choice(&mut arguments, manager)?
    } else {
        (entry.read)(&mut arguments)?
    };
    arguments.finish()?;
    let made = move || choice.extension();
    Ok(ExtensionChoice::new(text, made))
}

/// The parts between separators outside of parentheses.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth <= 0 && matches!(c, '+' | ',')
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_by_its_name() {
        for entry in CATALOGUE {
            let text = match entry.name {
                "rate-cap" => "rate-cap(rate=1MB)",
                "greedy" => "greedy(cwnd=4)",
                "deadline" => "deadline(bytes=1MB, within=10s)",
                name => name,
            };
            let stack = stack(text).unwrap();
            assert_eq!(stack[0].extension().name(), entry.name);
        }
    }

    #[test]
    fn wrong_words_are_named() {
        let error = |text| stack(text).unwrap_err().to_string();
        assert!(error("vegas + vegass").contains("`vegass`"), "{}", error("vegas + vegass"));
        assert!(error("vegas(gama=1)").contains("gama"), "{}", error("vegas(gama=1)"));
        assert!(error("vegas(alpha=5)").contains("alpha"), "{}", error("vegas(alpha=5)"));
        assert!(error("rate-cap").contains("rate"), "{}", error("rate-cap"));
        assert!(stack(" ").unwrap().is_empty());
        assert_eq!(stack("vegas(alpha=1, beta=3), rr").unwrap().len(), 2);
    }
}
