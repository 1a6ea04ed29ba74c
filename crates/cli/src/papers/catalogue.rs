//! Which experiments there are.

use anyhow::{Context, anyhow, bail};
use transom_lab::scenario::{Paper, Scenario};

use super::{other_experiments::other_experiment, text};

/// The form that takes little time.
const QUICK: &str = "quick";

/// An experiment: a scenario in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    /// Its id, such as "ltcp/fig5".
    pub(crate) id: &'static str,
    /// The file in the repository.
    pub(super) file: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

macro_rules! experiments {
    ($($id:literal),* $(,)?) => {
        &[$(Experiment {
            id: $id,
            file: concat!("papers/", $id, ".toml"),
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/papers/", $id, ".toml")),
        }),*]
    };
}

/// All of them, paper by paper.
pub(crate) const EXPERIMENTS: &[Experiment] = experiments![
    "ictcp/fig3",
    "ictcp/fig3-rto",
    "ictcp/fig6",
    "ictcp/fig7",
    "ictcp/fig8",
    "ictcp/fig9",
    "ictcp/fig10",
    "ictcp/fig11",
    "ictcp/fig11-adaptive",
    "ictcp/fig12",
    "ictcp/companion",
    "compose/goodput",
    "compose/efficiency",
    "compose/buffers",
    "compose/units",
    "ltcp/fig2",
    "ltcp/double",
    "ltcp/throughput",
    "ltcp/fig5",
    "ltcp/fig6",
    "ltcp/fig7",
    "ltcp/fig8",
    "ltcp/fig9",
    "ltcp/fig9-slow-start",
    "ltcp/fig9-candidates",
    "ltcp/fig10",
    "ltcp/fig11",
    "ltcp/peers",
    "ltcp/peers-losses",
    "ltcp/fig9-emulated",
    "ltcp/fig10-emulated",
    "ltcp/fig11-emulated",
    "router/fig5",
    "router/fig7",
    "router/fig9-load",
    "router/fig10",
    "router/fig5-emulated",
    "router/shrink",
    "l4s/balance",
    "l4s/paths",
    "l4s/mixed",
    "l4s/steps",
    "l4s/bleached",
];

/// The name of a form.
pub(super) fn form(full: bool) -> &'static str {
    if full { "full" } else { QUICK }
}

impl Experiment {
    /// One that is not in the program, for a test.
    #[cfg(test)]
    pub(super) const fn with_text(id: &'static str, text: &'static str) -> Experiment {
        Experiment { id, file: id, text }
    }

    /// The paper's part of the id.
    pub(super) fn paper(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(paper, _)| paper)
    }

    /// The scenario, quick or with the paper's lengths and rates. A test reads them all.
    pub(crate) fn scenario(&self, full: bool) -> anyhow::Result<Scenario> {
        let form = (!full).then_some(QUICK);
        Ok(Scenario::read(self.file, self.text, None, form)?)
    }

    /// The paper that it reproduces. A test asks each experiment.
    pub(super) fn described(&self) -> anyhow::Result<Paper> {
        let scenario = self.scenario(true)?;
        scenario.paper.with_context(|| format!("{} does not name its paper", self.file))
    }
}

/// The experiments that are meant by ids or by the names of papers; all of them by none. Those of [`other_experiments`](super::other_experiments) are refused
/// with their command.
pub(super) fn find(words: &[String]) -> anyhow::Result<Vec<Experiment>> {
    if words.is_empty() {
        return Ok(EXPERIMENTS.to_vec());
    }
    let mut found: Vec<Experiment> = Vec::new();
    for word in words {
        let word = word.trim_end_matches('/');
        let is_meant = |one: &&Experiment| one.id == word || one.paper() == word;
        let mut meant: Vec<&Experiment> = EXPERIMENTS.iter().filter(is_meant).collect();
        if meant.is_empty() {
            meant = of_page(word)?;
        }
        for one in meant {
            if !found.iter().any(|other| other.id == one.id) {
                found.push(*one);
            }
        }
    }
    Ok(found)
}

/// The experiments of a page of another name, such as router/fig8, whose scenarios are those of a page that shares them.
fn of_page(id: &str) -> anyhow::Result<Vec<&'static Experiment>> {
    let no_scenario = |command: &str| {
        anyhow!("{id} is not a scenario: run it with `{command}` in the repository")
    };
    if let Some(one) = other_experiment(id) {
        return Err(no_scenario(one.command));
    }
    let Some(page) = text::texts()?.into_iter().find(|page| page.id == id) else {
        bail!("there is no experiment {id}; `transom papers list` shows which there are");
    };
    if page.scenarios.is_empty() {
        let command = page.command.unwrap_or_default().trim().replace('\n', "`, `");
        return Err(no_scenario(&command));
    }
    Ok(EXPERIMENTS.iter().filter(|one| page.scenarios.iter().any(|id| id == one.id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use transom_lab::scenario::{HostKind, Resolved};
    use transom_tcp::compose::{compose, compose_classic};

    /// A new default must not change a stored result, so nothing in an experiment may depend on the default.
    fn names_every_unit(scenario: &Resolved, id: &str) {
        for (name, host) in &scenario.hosts {
            if host.kind == HostKind::Transom {
                let host = serde_json::to_value(host).unwrap();
                let tcp = &host["profile"]["tcp"];
                assert!(tcp.is_null() || tcp.is_string(), "{id}: {name}: {tcp}");
                let text = tcp.as_str().unwrap_or_default();
                assert_eq!(compose(text), compose_classic(text), "{id}: {name}");
            }
        }
    }

    /// Each file in `papers/` is in the program, names its experiment, and can be read in both forms.
    #[test]
    fn every_scenario_is_an_experiment() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers");
        let entries = |path: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let is_scenario = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "toml");
        let files: BTreeSet<String> = entries(&root)
            .iter()
            // The texts of the pages are no scenarios.
            .filter(|path| path.is_dir() && !path.ends_with("pages"))
            .flat_map(|path| entries(path))
            .filter(is_scenario)
            .map(|path| {
                let id = path.strip_prefix(&root).unwrap().with_extension("");
                id.to_string_lossy().into_owned()
            })
            .collect();
        let known: BTreeSet<String> = EXPERIMENTS.iter().map(|one| one.id.to_owned()).collect();
        assert_eq!(files, known);
        for one in EXPERIMENTS {
            assert_eq!(one.described().unwrap().id, one.id);
            for full in [true, false] {
                let scenario = one.scenario(full).unwrap_or_else(|error| panic!("{error}"));
                let expected = scenario
                    .sweep()
                    .map(|point| point.resolved.expect.len() + point.comparisons.len())
                    .sum::<usize>();
                assert!(expected > 0, "{} expects nothing", one.id);
                for point in scenario.sweep() {
                    names_every_unit(&point.resolved, one.id);
                }
            }
        }
    }

    #[test]
    fn experiments_are_found_by_id_and_by_paper() {
        let ids = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            find(&words).unwrap().iter().map(|one| one.id).collect()
        };
        assert_eq!(ids(&["ltcp/fig5"]), ["ltcp/fig5"]);
        assert_eq!(
            ids(&["compose"]),
            ["compose/goodput", "compose/efficiency", "compose/buffers", "compose/units"]
        );
        assert_eq!(ids(&["compose/units", "compose"]).len(), 4);
        assert_eq!(ids(&[]).len(), EXPERIMENTS.len());
        let refusal = |id: &str| find(&[id.into()]).unwrap_err().to_string();
        assert!(refusal("ltcp/fig99").contains("there is no experiment"));
        assert!(refusal("ictcp/fig4").contains("--group extensions"));
        // Pages that share a scenario, and one of a benchmark that is in no list.
        assert_eq!(ids(&["router/fig8"]), ["router/fig7", "router/fig9-load"]);
        assert_eq!(ids(&["router/fig4", "router/fig5"]), ["router/fig5"]);
        assert!(refusal("tcpu/ilp").contains("--group ilp"));
        assert!(refusal("tcpu/fig6-7").contains("--group messages"));
    }
}
