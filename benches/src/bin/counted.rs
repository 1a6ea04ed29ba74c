//! Instructions counted by valgrind's callgrind, where time would only scatter: a count is the same on a busy machine and from run to run, so that a
//! hundredth of a per cent shows.
//!
//! Each number is the difference of two runs, one of which does more: so what comes before and after is not in it.
//!
//! - **Packets**: one end of a conversation in memory is replayed ([`replay`](transom_benches::replay)): bulk sending, bulk receiving, and short
//!   requests; with checksums in software, and left to the device. Acknowledgements count as packets.
//! - **Extensions**: the cases of the group `extensions`, of which [`BYTES`] are counted: of everything, both hosts, the copies, the path.
//!
//! Instructions are not time. One of a copy moves 32 bytes, and waiting for memory counts nothing. A share in instructions says little of
//! what a thousand connections have to fetch.
//!
//! `cargo run --profile dist -p transom-benches --bin counted` needs valgrind; it takes about two minutes. With `--keep FILE` the counts of extensions
//! are put into the file, for the pages of papers ([`stored_results`]). With `--callgrind DIR` callgrind's files stay there, for `callgrind_annotate`.

use anyhow::{Context, bail};
use std::hint::black_box;
use std::path::Path;
use transom_benches::callgrind::instructions;
use transom_benches::delayed::{Delayed, plain_feed};
use transom_benches::environment::Environment;
use transom_benches::groups::extensions::{PATH, plain_profile, woken_profile};
use transom_benches::placement::Placement;
use transom_benches::replay::{Checksums, Replay, Role};
use transom_benches::stored_results::{self, KeptCase, KeptGroup};
use transom_tcp::Profile;
use transom_tcp::extension::Wake;

const ROLES: [(&str, Role); 3] = [
    ("bulk-send", Role::BulkSender),
    ("bulk-receive", Role::BulkReceiver),
    ("request", Role::Requester),
];
const CHECKSUMS: [(&str, Checksums); 2] =
    [("software", Checksums::Software), ("device", Checksums::Device)];

/// Bytes that are counted.
const BYTES: u64 = 16 << 20;
/// Bytes before them, for slow start and the first allocations.
const WARM_UP: u64 = 16 << 20;
const COUNTS: [usize; 3] = [1, 96, 1000];
const CASES: [&str; 5] =
    ["plain", "per ack", "per ack with lists", "per round", "per round with lists"];
/// Payload of a full segment with timestamps.
const MSS: u64 = 1448;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["replay", role, checksums, what] => replay(role, checksums, *what == "run"),
        ["transfer", case, count, bytes] => {
            let mut delayed = Delayed::new(profile(case)?, count.parse()?, PATH, plain_feed())?;
            delayed.transfer(bytes.parse()?)
        }
        options => {
            let [mut keep, mut callgrind] = [None, None];
            for option in options.chunks(2) {
                match *option {
                    ["--keep", file] => keep = Some(Path::new(file)),
                    ["--callgrind", dir] => callgrind = Some(Path::new(dir)),
                    _ => bail!("usage: counted [--keep FILE] [--callgrind DIR]"),
                }
            }
            match callgrind {
                Some(dir) => count(dir, keep),
                None => count(tempfile::tempdir()?.path(), keep),
            }
        }
    }
}

fn count(dir: &Path, keep: Option<&Path>) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    packets(dir)?;
    println!();
    let cases = extensions(dir)?;
    let Some(file) = keep else { return Ok(()) };
    let group = KeptGroup {
        group: "counted".into(),
        // All of it is one thread.
        cpu: Placement::One.describe(1),
        unit: "instructions per segment".into(),
        machine: format!("{}; instructions of {BYTES} bytes", Environment::detect()),
        cases,
    };
    stored_results::keep_groups(&[group], file)
}

/// The instructions by which the second run is longer.
fn difference(dir: &Path, before: &[&str], all: &[&str]) -> anyhow::Result<u64> {
    let before = instructions(dir, before)?;
    instructions(dir, all)?.checked_sub(before).context("more work took fewer instructions")
}

fn named<T: Copy>(all: &[(&str, T)], name: &str) -> anyhow::Result<T> {
    let found = all.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| *value).with_context(|| format!("there is no {name:?}"))
}

fn replay(role: &str, checksums: &str, runs: bool) -> anyhow::Result<()> {
    let replay = Replay::new(named(&ROLES, role)?, named(&CHECKSUMS, checksums)?)?;
    black_box(if runs { replay.run() } else { replay });
    Ok(())
}

fn packets(dir: &Path) -> anyhow::Result<()> {
    println!("| instructions per packet | checksums in software | left to the device |");
    println!("|---|--:|--:|");
    for (name, role) in ROLES {
        print!("| {name} |");
        for (checksums, kind) in CHECKSUMS {
            let case = |what| ["replay", name, checksums, what];
            let counted = difference(dir, &case("prepare"), &case("run"))?;
            print!(" {} |", counted / Replay::new(role, kind)?.packets());
        }
        println!();
    }
    Ok(())
}

fn profile(case: &str) -> anyhow::Result<Profile> {
    let acks = Wake::ACK | Wake::DUPLICATE_ACK;
    Ok(match case {
        "plain" => plain_profile(),
        "per ack" => woken_profile(acks, false),
        "per ack with lists" => woken_profile(acks, true),
        "per round" => woken_profile(Wake::ROUND, false),
        "per round with lists" => woken_profile(Wake::ROUND, true),
        _ => bail!("there is no {case:?}"),
    })
}

/// Prints the instructions of each case, and gives them.
fn extensions(dir: &Path) -> anyhow::Result<Vec<KeptCase>> {
    println!("| connections | extension woken | instructions per segment | of plain |");
    println!("|--:|---|--:|--:|");
    let [before, all] = [WARM_UP, WARM_UP + BYTES].map(|bytes| bytes.to_string());
    let mut cases = Vec::new();
    for count in COUNTS {
        let connections = count.to_string();
        let plural = if count == 1 { "connection" } else { "connections" };
        let of = |name| format!("{count} {plural}, {name}");
        let mut plain = None;
        for name in CASES {
            let case = |bytes| ["transfer", name, &connections, bytes];
            let counted = difference(dir, &case(&before), &case(&all))?;
            let plain = *plain.get_or_insert(counted);
            let per_segment = counted as f64 * MSS as f64 / BYTES as f64;
            let ratio = counted as f64 / plain as f64;
            println!("| {count} | {name} | {per_segment:.0} | {ratio:.4} |");
            let ratios = if name == CASES[0] { Vec::new() } else { vec![(of(CASES[0]), ratio)] };
            cases.push(KeptCase {
                name: of(name),
                median: per_segment,
                min: None,
                max: None,
                ratios,
            });
        }
    }
    Ok(cases)
}
