//! A TUN interface that is removed ends the command that works on it, with the reason.

use std::process::Command;

use crate::support::{installed, transom, wait};

/// Runs a command in a network of its own and removes its interface when `ready` succeeds there. Gives what it said, and its exit status; `None` if
/// there is no such network here.
fn removed(command: &str, ready: &str) -> Option<(String, i32)> {
    if !installed("unshare") || !installed("ip") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "trap 'kill $peer 2>/dev/null' EXIT
         ip link set lo up || exit 99
         ip tuntap add dev probe mode tun || exit 99
         ip link del probe
         {command} &
         command=$!
         until {{ {ready}; }} >/dev/null 2>&1; do
             kill -0 $command || {{ cat said >&2; exit 98; }}
             sleep 0.02
         done
         ip link del transom0
         wait $command
         echo $? >status"
    );
    let ended = wait(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "sh", "-c", &script])
            .arg(transom())
            .current_dir(directory.path()),
    );
    if ended.code == Some(99) || ended.stderr.contains("unshare:") {
        eprintln!("SKIPPED: no network of our own here: {}", ended.stderr);
        return None;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    Some((read("said"), read("status").trim().parse().unwrap()))
}

#[track_caller]
fn says_so(command: &str, ready: &str) {
    let Some((said, status)) = removed(command, ready) else { return };
    assert!(said.contains("the interface transom0 has been removed"), "{said}");
    assert_eq!(status, 1, "{said}");
}

#[test]
fn a_server_ends() {
    says_so("\"$0\" serve . 2>said", "grep -q interrupt said");
}

#[test]
fn a_receiver_that_waits_ends() {
    says_so("\"$0\" recv 9000 -o copy 2>said", "grep -q listening said");
}

#[test]
fn a_client_that_waits_for_an_answer_ends() {
    // The peer is the kernel's, takes the connection and says nothing.
    says_so(
        "\"$0\" recv 80 --side kernel -o request 2>peer & peer=$!; until grep -q listening peer; do sleep 0.02; done; \
         \"$0\" get http://10.9.0.1/ -o answer 2>said",
        "grep -q ' 01 ' /proc/net/tcp",
    );
}
