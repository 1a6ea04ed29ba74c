//! A description of the machine.

use std::fmt;
use std::fs::read_to_string;

pub(crate) struct Machine {
    kernel: String,
    cpu: String,
    cpus: usize,
    load: String,
}

impl Machine {
    /// The machine, as the system describes it; empty fields if it does not.
    pub(crate) fn detect() -> Self {
        let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
        Machine {
            kernel: kernel.trim().into(),
            cpu: model.unwrap_or("unknown").trim_start_matches([':', ' ', '\t']).into(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
        }
    }
}

/// How many threads wanted to run in the last minute.
pub(crate) fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").into()
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { kernel, cpu, cpus, load } = self;
        write!(f, "Linux {kernel}, {cpu}, {cpus} CPUs, load {load} before")
    }
}
