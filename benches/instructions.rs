//! Instructions for each packet, counted by valgrind's callgrind through gungraun.
//!
//! Unlike time, a count of instructions is the same on a busy machine, so a small change shows. One end of a
//! conversation in memory is replayed (`transom_benches::replay`): bulk sending, bulk receiving, and short requests;
//! with checksums in software, and left to the device. Acknowledgements count as packets.
//!
//! `cargo bench -p transom-benches --bench instructions` needs valgrind, and gungraun-runner of the same version as the
//! library: `cargo install gungraun-runner --version 0.20.0`. Without them it says that it skips.

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

    gungraun::main!(library_benchmark_groups = packets);

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

fn main() {
    // Under valgrind this program runs itself once more, with an empty environment.
    let measured = std::env::args().any(|argument| argument == "--gungraun-run");
    if !measured {
        if let Some(reason) = missing() {
            eprintln!("SKIPPED instructions: {reason}");
            return;
        }
        println!("Packets in each benchmark, by which its instructions are to be divided:");
        let roles = [
            ("bulk_send", Role::BulkSender),
            ("bulk_receive", Role::BulkReceiver),
            ("request", Role::Requester),
        ];
        for (name, role) in roles {
            match Replay::new(role, Checksums::Device) {
                Ok(replay) => println!("  {name:12} {}", replay.packets()),
                Err(error) => println!("  {name:12} {error:#}"),
            }
        }
    }
    measured::run();
}
