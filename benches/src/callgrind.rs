//! Instructions of a run of this program, counted by valgrind's callgrind.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// glibc copies longer pieces with `rep movsb`, which valgrind counts as an instruction per byte. The setting keeps it at vector
/// instructions, as a copy of a segment's length uses anyway.
const COPIES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");

/// Runs this program with these arguments, whole, and counts. callgrind's output stays in `dir`, in a file with the arguments in its name.
///
/// # Errors
/// Without valgrind, or when the run fails.
pub fn instructions(dir: &Path, arguments: &[&str]) -> anyhow::Result<u64> {
    let name = arguments.join(".").replace(' ', "-");
    let file: PathBuf = dir.join(format!("callgrind.{name}"));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args(arguments)
        .env(COPIES.0, COPIES.1)
        .output()
        .context("valgrind (is it installed?)")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    // "summary:" is followed by one number per event, of which there is one: Ir, the instructions.
    let total = text.lines().find_map(|line| line.strip_prefix("summary:"));
    Ok(total.context("callgrind wrote no summary")?.trim().parse()?)
}
