//! Whether the programs of a scenario may run.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use anyhow::bail;
use transom_lab::scenario::Scenario;

use super::Programs;
use super::known::{Identity, Known};
use crate::output;

/// The decision about programs on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Consent {
    /// No option: programs of a known file may run; for others the command asks.
    #[default]
    Seen,
    /// They may run, this time.
    Given,
    /// None may run.
    Refused,
}

/// Asks about the programs of a scenario, if it has any that may not run without.
pub(in super::super) fn ask(
    file: &Path,
    scenario: &Scenario,
    consent: Consent,
    quiet: bool,
) -> anyhow::Result<()> {
    let programs = Programs::of(scenario);
    if programs.is_empty() {
        return Ok(());
    }
    let name = file.display();
    if consent == Consent::Refused {
        bail!("{name} runs programs, which --no-programs refuses:\n{programs}");
    }
    let directory = scenario.directory.as_deref().unwrap_or(Path::new(""));
    let identity = Identity::of(scenario, &programs.own_files(directory));
    let known = Known::open();
    if known.as_ref().is_ok_and(|known| known.has(&identity)) {
        return Ok(());
    }
    if consent == Consent::Given {
        if !quiet {
            output::note(format_args!("{name} runs programs, with your rights:\n{programs}"));
        }
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!(
            "{name} runs programs, with your rights, and has not been run before:\n{programs}\n\
             Nobody can be asked here. If they may run, say so with --allow-programs."
        );
    }
    output::note(format_args!(
        "{name} has not been run before. It runs programs, with your rights:\n{programs}\n\
         They run in {}. {{address}} and {{port}} stand for the server's.",
        shown(directory)
    ));
    if !is_yes()? {
        bail!("the programs of {name} may not run");
    }
    let kept = known.and_then(|known| known.add(&identity, file));
    if let Err(error) = kept {
        output::note(format_args!("You will be asked again: {error:#}"));
    }
    Ok(())
}

fn shown(directory: &Path) -> String {
    let whole = std::path::absolute(Path::new(".").join(directory));
    whole.unwrap_or_else(|_| directory.to_owned()).display().to_string()
}

/// Whether the answer on the terminal is yes. Anything else, and no answer, is no.
fn is_yes() -> anyhow::Result<bool> {
    output::note(
        "May they run? Write `yes`, and this file is not asked about again until it changes.",
    );
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes" | "YES"))
}
