//! `transom exec`: programs that know nothing of Transom, in a network of their own, with the kernel's TCP as their peer.

mod as_linux;
mod clients;
mod closing;
mod devices;
mod hostile;
mod languages;
mod lent_network;
mod matrix;
mod programs;
mod report;
mod rights;
mod servers;
mod sockets;
mod supervision;
mod throughput;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ended, finish, installed, transom};

/// What scripts begin with. `$T` runs a program over Transom, whose address is 10.9.0.2; the kernel's is 10.9.0.1.
const PROLOGUE: &str = r#"
set -u
PATH=$PATH:/usr/sbin
ip link set lo up
T="$TRANSOM exec --"
# The kernel listens at this port.
listening() { until ss -Hltn "sport = :$1" | grep -q .; do sleep 0.05; done; }
# Something answers there.
answers() { until curl -s -o /dev/null -m 2 "$1"; do sleep 0.05; done; }
end() { kill "$1"; wait "$1"; }
"#;

/// For scripts that are run without and with an extension that yields.
const BOTH: [&str; 2] = ["", "T=\"$TRANSOM exec --extension nice --\"\n"];

/// Whether a network of one's own can be had, and these programs are there.
pub(crate) fn available(programs: &[&str]) -> bool {
    let tools = ["ip", "ss", "unshare", "curl"];
    if !tools.iter().chain(programs).all(|program| installed(program)) {
        return false;
    }
    let probe = Command::new("unshare")
        .args(["-rn", "sh", "-c", "test -w /dev/net/tun && ip link set lo up"])
        .stderr(Stdio::null())
        .status();
    let works = probe.is_ok_and(|status| status.success());
    if !works {
        eprintln!("SKIPPED: no network of our own here");
    }
    works
}

/// Runs a script in a network of its own. All that it starts ends with it.
#[track_caller]
pub(crate) fn inside(directory: &Path, script: &str) -> Ended {
    let child = Command::new("unshare")
        .args(["-rnpf", "--kill-child", "--mount-proc", "sh", "-c"])
        .arg(format!("{PROLOGUE}{script}"))
        .current_dir(directory)
        .env("TRANSOM", transom())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    finish(child)
}

/// A directory with a small file and a large one.
fn directory() -> (tempfile::TempDir, PathBuf, String) {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = directory.path().to_owned();
    std::fs::write(path.join("small"), "hello\n").unwrap();
    let digest = crate::support::content(&path.join("big"), 20_000_000);
    (directory, path, digest)
}
