//! Where a run takes place, as far as it matters for its numbers.

use serde::Serialize;
use std::fmt;

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's model name.
    pub cpu: String,
    /// Logical CPUs this process may use.
    pub cpus: usize,
    /// How many threads wanted to run in the last minute, when the run began. More than a few tenths means that
    /// something else competes with what is measured.
    pub load: String,
    /// Whether this program was built with optimisation.
    pub optimised: bool,
    /// Cargo's profile in which it was built: `dist` for figures to be compared with those that are published.
    pub profile: &'static str,
}

impl Environment {
    /// What the system says of itself; `unknown` where it does not.
    pub fn detect() -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| matches!(key.trim(), "model name" | "Model" | "Processor" | "uarch"))
            .map(|(_, value)| value);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Environment {
            kernel: or_unknown(&kernel),
            cpu: or_unknown(model.unwrap_or_default()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            load: or_unknown(load.split_whitespace().next().unwrap_or_default()),
            optimised: !cfg!(debug_assertions),
            profile: env!("TRANSOM_PROFILE"),
        }
    }
}

fn or_unknown(text: &str) -> String {
    match text.trim() {
        "" => "unknown".into(),
        text => text.into(),
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { kernel, cpu, cpus, load, optimised, profile } = self;
        write!(f, "Linux {kernel}, {cpu}, {cpus} CPUs, load {load} before")?;
        if !optimised {
            write!(f, ", **not optimised: build with --profile dist**")?;
        } else if *profile != "dist" {
            write!(
                f,
                ", **profile {profile}: build with --profile dist to compare with published figures**"
            )?;
        }
        Ok(())
    }
}
