//! What an extension costs, in instructions: the cases of the group `extensions`, counted by valgrind's callgrind instead of timed.
//!
//! A count is the same on a busy machine and from run to run, so that a hundredth of a per cent shows. Each case is run twice under callgrind, and
//! the second time transfers [`BYTES`] more: the difference is those bytes' instructions, of everything: both hosts, the copies, the path.
//! Instructions are not time. An instruction of a copy moves 32 bytes, and a cache miss counts nothing, so a share in instructions is an upper bound of
//! sorts for what runs in cache, as an extension on few connections does, and says nothing of what a thousand connections fetch from memory.
//!
//! `cargo run --release -p transom-benches --bin counted` needs valgrind; it takes about three minutes.
//! With `--keep DIR` it leaves callgrind's files there, for `callgrind_annotate`.

use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use transom_benches::delayed::{Delayed, plain_feed};
use transom_benches::groups::extensions::{PATH, plain_profile, woken_profile};
use transom_tcp::extension::Wake;
use transom_tcp::profile::Profile;

/// Bytes that are counted.
const BYTES: u64 = 16 << 20;
/// Bytes before them, for slow start and the first allocations.
const WARM_UP: u64 = 16 << 20;
const COUNTS: [usize; 3] = [1, 96, 1000];
const CASES: [&str; 4] = ["plain", "per ack", "per round", "per round with lists"];
const MSS: u64 = 1448;
// glibc copies longer pieces with `rep movsb`, which valgrind counts as an instruction per byte.
const COPIES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");

fn profile(case: &str) -> anyhow::Result<Profile> {
    let acks = Wake::ACK | Wake::DUPLICATE_ACK;
    Ok(match case {
        "plain" => plain_profile(),
        "per ack" => woken_profile(acks, false),
        "per round" => woken_profile(Wake::ROUND, false),
        "per round with lists" => woken_profile(Wake::ROUND, true),
        _ => bail!("no case {case:?}"),
    })
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--case", case, count, bytes] => {
            let mut delayed = Delayed::new(profile(case)?, count.parse()?, PATH, plain_feed())?;
            delayed.transfer(bytes.parse()?)
        }
        ["--keep", dir] => count(Path::new(dir)),
        [] => count(tempfile::tempdir()?.path()),
        _ => bail!("only --keep DIR"),
    }
}

fn count(dir: &Path) -> anyhow::Result<()> {
    println!("| connections | woken | instructions per segment | of plain |");
    println!("|--:|---|--:|--:|");
    for count in COUNTS {
        let mut plain = None;
        for case in CASES {
            let counted = instructions(dir, case, count, WARM_UP + BYTES)?
                .checked_sub(instructions(dir, case, count, WARM_UP)?)
                .context("more bytes took fewer instructions")?;
            let plain = *plain.get_or_insert(counted);
            let per_segment = counted as f64 * MSS as f64 / BYTES as f64;
            let ratio = counted as f64 / plain as f64;
            println!("| {count} | {case} | {per_segment:.0} | {ratio:.4} |");
        }
    }
    Ok(())
}

/// The instructions of a whole run.
fn instructions(dir: &Path, case: &str, count: usize, bytes: u64) -> anyhow::Result<u64> {
    let file: PathBuf = dir.join(format!("callgrind.{}.{count}.{bytes}", case.replace(' ', "-")));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args(["--case", case, &count.to_string(), &bytes.to_string()])
        .env(COPIES.0, COPIES.1)
        .output()
        .context("valgrind (is it installed?)")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("summary:").or(line.strip_prefix("totals:")));
    Ok(total.context("no total")?.trim().parse()?)
}
