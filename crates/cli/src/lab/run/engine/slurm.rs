//! Slurm: an array job as a script for `sbatch`.
//!
//! The names of the runs are in the script itself, because Slurm keeps a copy of it and nothing else. An array has at most [`MOST_TASKS`] tasks, which is
//! what Slurm permits by default; with more runs, each task makes several.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::super::super::interruption::Interruption;
use super::Task;

/// MaxArraySize is 1001 where it is not configured, and the last index is one less.
const MOST_TASKS: usize = 1000;
/// The interval between two looks at whether the job has ended.
const LOOK: Duration = Duration::from_millis(200);

/// The script.
pub(super) fn script(
    name: &str,
    command: &[String],
    tasks: &[Task<'_>],
    directory: &Path,
) -> String {
    let last = tasks.len().min(MOST_TASKS).saturating_sub(1);
    let directory = directory.display().to_string();
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let mut text = format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=transom-{name}\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --output=/dev/null\n\
         # {} runs of a sweep. Options of sbatch, such as a partition and a time limit, can be given to sbatch, or added here.\n\
         runs=(\n",
        tasks.len(),
    );
    for Task { run, .. } in tasks {
        let _ = writeln!(text, "    {}", run.directory);
    }
    let _ = write!(
        text,
        ")\n\
         status=0\n\
         for ((number = SLURM_ARRAY_TASK_ID; number < ${{#runs[@]}}; number += {})); do\n    \
             run=${{runs[number]}}\n    \
             {} \"$run\" 2>{}/\"$run\".log || status=1\n\
         done\n\
         exit $status\n",
        last + 1,
        words.join(" "),
        quoted(&directory),
    );
    text
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Lets Slurm check the script, if it is here.
pub(super) fn check(script: &Path) -> anyhow::Result<()> {
    match Command::new("sbatch").arg("--test-only").arg(script).stdin(Stdio::null()).output() {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            Err(anyhow!("sbatch refuses {}: {said}", script.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context("cannot start sbatch"),
    }
}

/// Submits the script, and waits until its tasks have ended. A task may fail without an error here.
pub(super) fn submit(script: &Path, interruption: &Interruption) -> anyhow::Result<()> {
    let started = Command::new("sbatch")
        .arg("--wait")
        .arg(script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "the program sbatch is missing, so this machine submits no jobs to Slurm. Submit {} on one that does, or install \
             Slurm's client (Debian: slurm-client)",
            script.display()
        ),
        Err(error) => return Err(error).context("cannot start sbatch"),
    };
    loop {
        if child.try_wait().context("cannot wait for sbatch")?.is_some() {
            return Ok(());
        }
        if interruption.is_requested() {
            // The job goes on without it.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(());
        }
        thread::sleep(LOOK);
    }
}
