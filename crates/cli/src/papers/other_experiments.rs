//! Experiments that are not scenarios: they measure this program itself, or the kernel.

use serde::Serialize;

use super::catalogue::EXPERIMENTS;

/// One of them.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct OtherExperiment {
    /// Its id, such as "ictcp/fig4".
    pub(super) id: &'static str,
    /// The result that it shows.
    pub(super) shows: &'static str,
    /// The command that runs it, in the repository.
    pub(super) command: &'static str,
    /// The place of its results.
    pub(super) results: &'static str,
}

const EXTENSIONS: &str =
    "cargo run --profile dist -p transom-benches -- --group extensions --cpu one";
const STATEMENTS: &str = "cargo test -p transom-extensions --test statements";
const WINDOW: &str = "cargo run --profile dist -p transom-benches -- --group window --cpu one";
const HAND_OVER: &str = "cargo run --profile dist -p transom-benches --features bpf -- --group hand-over-in --group hand-over-out";
const OBSERVERS: &str = "docs/papers/ictcp-fig4.md, papers/results/ictcp-benchmarks.md";
const PAGE: &str = "docs/ictcp-statements.md";

const fn of(
    id: &'static str,
    shows: &'static str,
    command: &'static str,
    results: &'static str,
) -> OtherExperiment {
    OtherExperiment { id, shows, command, results }
}

/// All of them, paper by paper.
const OTHERS: &[OtherExperiment] = &[
    of(
        "ictcp/fig4",
        "What extensions cost that are woken per ack and per round, with 1 to 1000 connections",
        EXTENSIONS,
        "docs/papers/ictcp-fig4.md",
    ),
    of(
        "ictcp/fig4-outside",
        "The same watched from other threads and processes, and the wake-ups they miss",
        "cargo run --profile dist -p transom-benches --bin observers",
        OBSERVERS,
    ),
    of(
        "ictcp/fig5",
        "What Vegas costs as an extension, polled in three ways, and outside of TCP",
        EXTENSIONS,
        "docs/papers/ictcp-fig5.md",
    ),
    of(
        "ictcp/fig8-processes",
        "Four flows of four processes, each for itself and under a Congestion Manager; also with UDP",
        "cargo run -p transom-cli --example cm_processes",
        "papers/results/ictcp-processes.md",
    ),
    of("ictcp/table2", "What the environment takes, in statements", STATEMENTS, PAGE),
    of("ictcp/table3", "What the extensions take, in statements", STATEMENTS, PAGE),
    of(
        "tcpu/fig6-7",
        "Throughput by message size, beside the kernel's TCP",
        "cargo run --profile dist -p transom-benches -- --group messages",
        "docs/papers/tcpu-fig6-7.md",
    ),
    of(
        "tcpu/ilp",
        "One loop over the data, and several passes",
        "cargo run --profile dist -p transom-benches -- --group ilp --cpu one",
        "docs/papers/tcpu-ilp.md",
    ),
    of(
        "tcpu/demux",
        "What a packet costs that finds its process in the kernel, by another process, or alone",
        HAND_OVER,
        "docs/papers/tcpu-demux.md",
    ),
    of(
        "router/fig5-linux",
        "Ten transfers through a router on Linux, in three ways, with kernel and mixed senders",
        "cargo run --profile dist -p transom-forwarder --example fig5",
        "papers/results/router-linux.md",
    ),
    of(
        "router/fig11",
        "What a packet costs with 10 to 1,000,000 flows",
        WINDOW,
        "docs/papers/router-fig11.md",
    ),
    of(
        "router/table1",
        "The share of a router's time for packets of 1500 bytes, with 10 to 5000 flows",
        WINDOW,
        "docs/papers/router-table1.md",
    ),
    of(
        "router/table2",
        "The same for packets of 500 bytes",
        WINDOW,
        "docs/papers/router-table2.md",
    ),
];

/// Those that are meant by ids or by the names of papers; all of them by none.
pub(super) fn other_experiments(words: &[String]) -> Vec<OtherExperiment> {
    let meant = |one: &&OtherExperiment| {
        words.is_empty()
            || words.iter().any(|word| {
                let word = word.trim_end_matches('/');
                one.id == word || one.id.split_once('/').is_some_and(|(paper, _)| paper == word)
            })
    };
    OTHERS.iter().filter(meant).copied().collect()
}

/// The one with this id, if no scenario has it.
pub(super) fn other_experiment(id: &str) -> Option<&'static OtherExperiment> {
    OTHERS.iter().find(|one| one.id == id && EXPERIMENTS.iter().all(|other| other.id != id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_found_and_are_no_scenarios() {
        assert!(OTHERS.iter().all(|one| other_experiment(one.id).is_some()));
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(other_experiments(&[]).len(), OTHERS.len());
        assert_eq!(other_experiments(&words(&["router/fig11", "router/fig5"])).len(), 1);
        assert_eq!(other_experiments(&words(&["ictcp/"])).len(), 6);
        assert!(other_experiment("ictcp/fig6").is_none(), "it is a scenario");
    }
}
