//! The question in an address: a base, changes of it, and which point, form and seed.

use std::path::PathBuf;

use transom_lab::play::{Change, ChangeError, apply};
use transom_lab::scenario::{Scenario, Variant};

use super::bases::Bases;

/// The pairs of an address behind the question mark.
pub(super) type Pairs = Vec<(String, String)>;

/// A run that somebody asks for.
pub(super) struct Question {
    /// The text of the changed scenario.
    pub(super) text: String,
    pub(super) variant: Variant,
    pub(super) points: usize,
    pub(super) seed: u64,
    /// The directory of files that the scenario names.
    pub(super) directory: PathBuf,
}

/// The value of a key.
pub(super) fn value<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a str> {
    pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn number<T: std::str::FromStr>(pairs: &Pairs, key: &str) -> Result<Option<T>, String> {
    let Some(text) = value(pairs, key).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{key} is a whole number"))
}

impl Question {
    /// Reads a question.
    pub(super) fn read(bases: &Bases, pairs: &Pairs) -> Result<Question, String> {
        let id = value(pairs, "base").unwrap_or_default();
        let base = bases.find(id).ok_or_else(|| format!("there is no scenario `{id}` here"))?;
        let changes = pairs.iter().filter(|(key, _)| key == "set");
        let changes: Result<Vec<Change>, ChangeError> =
            changes.map(|(_, text)| text.parse()).collect();
        let changes = changes.map_err(|error| error.to_string())?;
        let text = apply(&base.text, &changes).map_err(|error| error.to_string())?;
        let form = value(pairs, "form").filter(|form| !form.is_empty());
        let scenario = Scenario::read("scenario.toml", &text, base.directory.as_deref(), form);
        let scenario = scenario.map_err(|errors| problems(&errors))?;
        let point = number(pairs, "point")?.unwrap_or(1_usize);
        let variant = point.checked_sub(1).and_then(|number| scenario.point(number));
        let points = scenario.points();
        let variant = variant.ok_or_else(|| format!("the points are 1 to {points}"))?;
        let seed = number(pairs, "seed")?;
        let seed = seed.or_else(|| scenario.seeds.first().copied()).unwrap_or(1);
        let directory = base.directory.clone().unwrap_or_default();
        Ok(Question { text, variant, points, seed, directory })
    }
}

/// What is wrong with a scenario, without the lines of a text that nobody sees.
fn problems(errors: &transom_lab::scenario::Errors) -> String {
    let each = errors.diagnostics.iter().map(|one| one.message.clone());
    let mut each: Vec<String> = each.collect();
    each.dedup();
    each.truncate(3);
    each.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(&str, &str)]) -> Result<Question, String> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Question::read(&Bases::new(None).unwrap(), &pairs)
    }

    #[test]
    fn an_address_is_a_run() {
        let set = ("set", "topology.bottleneck.rate=5Mbit/s");
        let asked = ask(&[("base", "sawtooth"), ("seed", "7"), set]).unwrap();
        assert_eq!(asked.seed, 7);
        assert!(asked.text.contains("5Mbit/s") && !asked.text.contains("10Mbit/s"));
        assert!(ask(&[("base", "ictcp/fig12"), ("form", "quick"), ("point", "2")]).is_ok());
    }

    #[test]
    fn wrong_questions_are_answered_in_words() {
        let error = |pairs: &[(&str, &str)]| ask(pairs).err().unwrap_or_default();
        assert!(error(&[]).contains("there is no scenario"));
        assert!(error(&[("base", "file")]).contains("there is no scenario"));
        let base = ("base", "sawtooth");
        assert!(error(&[base, ("set", "x")]).contains("PATH=VALUE"));
        assert!(error(&[base, ("set", "scenario.tcp=cubik")]).contains("cubik"));
        assert!(error(&[base, ("point", "2")]).contains("1 to 1"));
        let trace = ("set", "topology.bottleneck.rate-trace=/etc/passwd");
        assert!(error(&[base, trace]).contains("names a file"));
    }
}
