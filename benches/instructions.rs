//! Instructions for each packet, counted by valgrind's callgrind through gungraun.
//!
//! Unlike time, a count of instructions is the same on a busy machine, so a small change shows. One end of a
//! conversation in memory is replayed (`transom_benches::replay`): bulk sending, bulk receiving, and short requests;
//! with checksums in software, and left to the device. Acknowledgements count as packets.
//!
//! `cargo bench -p transom-benches --bench instructions` needs valgrind, and gungraun-runner of the same version as the
//! library: `cargo install gungraun-runner --version 0.20.0`. Without them it says that it skips.

use anyhow::Context;
use std::path::Path;
use transom_benches::replay::{Checksums, Replay, Role};

mod measured {
    //! What gungraun's macros make functions and a `main` of.
    #![allow(missing_docs)]

    use gungraun::prelude::*;
    use std::hint::black_box;
    use transom_benches::replay::{Checksums, Replay, Role};

    fn prepare(role: Role, checksums: Checksums) -> Replay {
        Replay::new(role, checksums).expect("a conversation in memory works")
    }

    // The replay is returned so that dropping it is not counted.

    #[library_benchmark]
    #[bench::software_checksums(prepare(Role::BulkSender, Checksums::Software))]
    #[bench::device_checksums(prepare(Role::BulkSender, Checksums::Device))]
    fn bulk_send(replay: Replay) -> Replay {
        black_box(replay.run())
    }

    #[library_benchmark]
    #[bench::software_checksums(prepare(Role::BulkReceiver, Checksums::Software))]
    #[bench::device_checksums(prepare(Role::BulkReceiver, Checksums::Device))]
    fn bulk_receive(replay: Replay) -> Replay {
        black_box(replay.run())
    }

    #[library_benchmark]
    #[bench::software_checksums(prepare(Role::Requester, Checksums::Software))]
    #[bench::device_checksums(prepare(Role::Requester, Checksums::Device))]
    fn request(replay: Replay) -> Replay {
        black_box(replay.run())
    }

    library_benchmark_group!(name = packets, benchmarks = [bulk_send, bulk_receive, request]);

    // glibc copies longer pieces with `rep movsb`, which valgrind counts as an instruction per byte. The setting keeps it
    // at vector instructions, as a copy of a segment's length uses anyway.
    const COPIES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");

    gungraun::main!(
        config = LibraryBenchmarkConfig::default().env(COPIES.0, COPIES.1),
        library_benchmark_groups = packets
    );

    pub(super) fn run() {
        main();
    }
}

/// What is missing, if anything.
fn missing() -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let runner = option_env!("GUNGRAUN_RUNNER").is_some_and(|runner| Path::new(runner).is_file());
    if !there("valgrind") {
        Some("there is no valgrind")
    } else if !runner && !there("gungraun-runner") {
        Some("there is no gungraun-runner: cargo install gungraun-runner --version 0.20.0")
    } else {
        None
    }
}

/// The benchmarks: their names, and what they replay.
const BENCHMARKS: [(&str, Role); 3] = [
    ("bulk_send", Role::BulkSender),
    ("bulk_receive", Role::BulkReceiver),
    ("request", Role::Requester),
];
const VARIANTS: [(&str, Checksums); 2] =
    [("software_checksums", Checksums::Software), ("device_checksums", Checksums::Device)];

/// The instructions that callgrind counted in a benchmark of this run.
fn instructions(name: &str, variant: &str) -> anyhow::Result<u64> {
    // target/release/deps/instructions-…: the results lie in target/gungraun.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3).context("a program outside a target directory")?;
    let results = target.join("gungraun/transom-benches/instructions/measured/packets");
    let file = results.join(format!("{name}.{variant}/callgrind.{name}.{variant}.out"));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    // "summary:" is followed by one number per event, of which the first is Ir, the instructions.
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:"));
    let first = summary.and_then(|numbers| numbers.split_whitespace().next());
    Ok(first.context("no summary")?.parse()?)
}

fn print_per_packet() -> anyhow::Result<()> {
    println!("\n| instructions per packet | {} | {} |", VARIANTS[0].0, VARIANTS[1].0);
    println!("|---|--:|--:|");
    for (name, role) in BENCHMARKS {
        let mut row = format!("| {name} |");
        for (variant, checksums) in VARIANTS {
            let packets = Replay::new(role, checksums)?.packets();
            row += &format!(" {} |", instructions(name, variant)? / packets);
        }
        println!("{row}");
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    // Under valgrind this program runs itself once more, with an empty environment.
    if std::env::args().any(|argument| argument == "--gungraun-run") {
        measured::run();
        return Ok(());
    }
    if let Some(reason) = missing() {
        eprintln!("SKIPPED instructions: {reason}");
        return Ok(());
    }
    measured::run();
    print_per_packet().context("reading what callgrind has counted")
}
