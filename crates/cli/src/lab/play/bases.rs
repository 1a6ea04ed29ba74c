//! The scenarios that one can play with: the presets, the figures of the papers, and the one of the command.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use transom_lab::scenario::Scenario;

use crate::papers::catalogue::EXPERIMENTS;

/// A scenario to begin with.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Base {
    /// Its name in addresses.
    pub(super) id: String,
    pub(super) title: String,
    /// The heading that it is listed under.
    pub(super) group: &'static str,
    /// Questions to try answers to.
    pub(super) questions: &'static [&'static str],
    /// The form to begin with.
    pub(super) form: Option<String>,
    #[serde(skip)]
    pub(super) text: String,
    /// The directory of files that it names, if it may name any.
    #[serde(skip)]
    pub(super) directory: Option<PathBuf>,
}

/// All of them.
pub(super) struct Bases(Vec<Base>);

/// A figure that every course draws.
struct Preset {
    id: &'static str,
    text: &'static str,
    questions: [&'static str; 2],
}

macro_rules! preset {
    ($id:literal, $first:literal, $second:literal) => {
        Preset {
            id: $id,
            text: include_str!(concat!("presets/", $id, ".toml")),
            questions: [$first, $second],
        }
    };
}

const PRESETS: [Preset; 7] = [
    preset!(
        "sawtooth",
        "Halve the queue, and halve it again. When is the link idle after a loss, and what is the product of rate and delay in packets?",
        "Double the delay. How much longer does a tooth take, and why is it not twice as long?"
    ),
    preset!(
        "slow-start",
        "How many packets are lost at the end of slow start? Make the queue longer: are there fewer losses, or only later ones?",
        "Set tcp to `reno + sack + hystart++` in B. What does it see that slow start does not, and when?"
    ),
    preset!(
        "fairness",
        "How long does each newcomer take to get its share? Does a shorter queue make it faster?",
        "Give one flow the profile tcp = `multcp`. What share does it get, and does the queue's discipline change that?"
    ),
    preset!(
        "rtt-unfairness",
        "The far flow has four times the round trip of the near one. Is its share a quarter, or a sixteenth? Try a drop-tail queue in B.",
        "Set tcp to `modern`, which has CUBIC. Whose share grows, and why does CUBIC ask the clock instead of the round trip?"
    ),
    preset!(
        "bufferbloat",
        "How long does a click take beside the download? Put `codel` in the place of the queue in B and compare.",
        "Which queue length gives CoDel's delay without CoDel? What happens to it when you halve the rate?"
    ),
    preset!(
        "vegas",
        "Who gets the link when Reno begins? Stop Reno at 40s: how long does Vegas take to come back?",
        "Make the queue 5 packets long. Why are they nearly equal now?"
    ),
    preset!(
        "l4s",
        "Put `300 packets` in the place of the queue in B. Who gives way, and how long do both wait?",
        "Write `dualpi2(target=50ms)` as the queue of B. Whose round-trip time changes, and whose does not?"
    ),
];

const COURSE: &str = "Figures of every course";
const PAPERS: &str = "Figures of papers";
const OWN: &str = "Your scenario";
/// The base of the command's scenario.
const FILE: &str = "file";

impl Bases {
    /// All, and the scenario of a file first.
    pub(super) fn new(file: Option<&Path>) -> anyhow::Result<Bases> {
        let mut all = Vec::new();
        if let Some(path) = file {
            let scenario = Scenario::load(path, None)?;
            let name = path.display();
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            let title = title(&scenario, FILE);
            let directory = Some(path.parent().unwrap_or(Path::new("")).to_path_buf());
            let id = FILE.to_owned();
            all.push(Base { id, title, group: OWN, text, directory, ..Base::default() });
        }
        for preset in &PRESETS {
            let scenario = Scenario::parse(preset.id, preset.text)?;
            all.push(Base {
                id: preset.id.into(),
                title: title(&scenario, preset.id),
                group: COURSE,
                questions: &preset.questions,
                text: preset.text.into(),
                ..Base::default()
            });
        }
        for experiment in EXPERIMENTS {
            let scenario = experiment.scenario(false)?;
            let simulated =
                scenario.point(0).is_some_and(|variant| !variant.resolved.needs_emulation());
            if !simulated {
                continue;
            }
            all.push(Base {
                id: experiment.id.into(),
                title: format!("{}: {}", experiment.id, title(&scenario, experiment.id)),
                group: PAPERS,
                form: scenario.form.clone(),
                text: experiment.text.into(),
                ..Base::default()
            });
        }
        Ok(Bases(all))
    }

    pub(super) fn all(&self) -> &[Base] {
        &self.0
    }

    /// The names of the figures of every course.
    pub(super) fn presets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|base| base.group == COURSE).map(|base| base.id.as_str())
    }

    pub(super) fn find(&self, id: &str) -> Option<&Base> {
        self.0.iter().find(|base| base.id == id)
    }
}

fn title(scenario: &Scenario, otherwise: &str) -> String {
    let header = scenario.point(0).map(|variant| variant.resolved.scenario);
    let title = header.and_then(|header| header.title);
    title.unwrap_or_else(|| otherwise.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_a_course_is_a_scenario_with_two_questions() {
        let bases = Bases::new(None).unwrap();
        let course: Vec<&Base> = bases.presets().filter_map(|id| bases.find(id)).collect();
        assert_eq!(course.len(), 7);
        for base in course {
            assert_eq!(base.questions.len(), 2, "{}", base.id);
            assert!(base.questions.iter().all(|question| question.contains('?')), "{}", base.id);
        }
        assert!(bases.all().iter().any(|base| base.id == "ictcp/fig12"));
        assert!(bases.find("file").is_none());
    }
}
