//! The broker as a command: one process serves on the host's own address, and the kernel's TCP goes on beside it.

use std::process::Command;

use crate::support::{installed, transom, wait};

/// Two hosts in namespaces of the test's own, in one mount namespace with a BPF file system of its own. `$1` is the command. The peer's commands
/// begin with `$P`, those of an ordinary user with `$U`.
const SETUP: &str = r#"
T=$1; B=$PWD/broker; R=--socket=$PWD/socket
ip link set lo up && ip link add eth0 type veth peer name peer || exit 99
mkdir bpf && mount -t bpf bpf bpf || exit 99
unshare --net sleep 100 & P="nsenter --net=/proc/$!/ns/net"
background=$!
trap 'kill $background 2>/dev/null' EXIT
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link set peer netns $! || exit 99
ip address add 192.0.2.1/24 dev eth0; ip link set eth0 up
$P ip address add 192.0.2.2/24 dev peer; $P ip link set peer up
U="setpriv --reuid 65534 --regid 65534 --clear-groups"
until_said() {
    turns=0
    until grep -q "$2" "$1"; do
        turns=$((turns + 1)); [ $turns -lt 1000 ] || { cat "$1" >&2; exit 98; }
        sleep 0.02
    done
}
"$T" broker run --uplink eth0 --allow user:65534,ports:8000-8999 $R --pins "$PWD/bpf/t" --metrics 127.0.0.1:9300 >broker 2>&1 &
background="$background $!"
until_said broker 'are lent at'
"#;

/// Runs a script after the setup, and gives its output; `None` if this system has no such networks or BPF programs.
fn script(text: &str) -> Option<String> {
    if !["unshare", "nsenter", "setpriv", "ip", "curl", "python3"]
        .iter()
        .all(|name| installed(name))
    {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::create_dir(path.join("www")).unwrap();
    std::fs::write(path.join("www/file"), b"over the host's own address".repeat(40_000)).unwrap();
    // An ordinary user serves from it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, open).unwrap();
    let ended = wait(
        Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c", &format!("{SETUP}{text}"), "sh"])
            .arg(transom())
            .current_dir(path),
    );
    if ended.code == Some(99) || ended.stderr.contains("unshare:") {
        eprintln!("SKIPPED: no networks and BPF file system of our own: {}", ended.stderr);
        return None;
    }
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.text(), ended.stderr);
    Some(ended.text())
}

#[test]
fn a_user_serves_beside_the_kernel() {
    if !cfg!(feature = "bpf") {
        eprintln!("SKIPPED: this build has no broker (feature bpf)");
        return;
    }
    let Some(said) = script(
        r#"
cp "$T" served && $U ./served serve www --device shared:socket --port 8080 >serve 2>&1 &
background="$background $!"
python3 -m http.server -d www -b 192.0.2.1 80 >kernel 2>&1 &
background="$background $!"
until_said serve interrupt
until $P curl -s -m 5 -o /dev/null http://192.0.2.1/; do sleep 0.05; done
for port in 80 8080; do
    $P curl -s -m 60 -o copy http://192.0.2.1:$port/file; cmp copy www/file && echo "the peer has it from $port"
done
curl -s -m 60 -o copy http://192.0.2.1:8080/file; cmp copy www/file && echo "the host has it too"
$P curl -s -m 5 http://192.0.2.1:8081/ || echo "refused: $?"
"$T" broker list $R | grep -c 192.0.2.1:8080
curl -s http://127.0.0.1:9300/metrics | grep '^transom_broker_leases '
$U "$PWD/served" serve www --device shared:socket --port 9000 2>&1 | grep -o 'may not\|not allowed\|policy' | head -n 1
"$T" broker stop $R 2>&1
echo "pins: $(ls bpf/t 2>/dev/null | wc -l), devices: $(ip -o link | grep -c tcpk)"
"#,
    ) else {
        return;
    };
    let expected = "the peer has it from 80\nthe peer has it from 8080\nthe host has it too\nrefused: 7\n1\ntransom_broker_leases 1\n";
    assert!(said.starts_with(expected), "{said}");
    assert!(
        said.contains("policy") || said.contains("not allowed") || said.contains("may not"),
        "{said}"
    );
    assert!(said.contains("all leases have ended"), "{said}");
    assert!(said.ends_with("pins: 0, devices: 0\n"), "{said}");
}

#[test]
fn without_a_broker_the_reason_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = format!("shared:{}/none", directory.path().display());
    let ended = wait(Command::new(transom()).args(["serve", ".", "--device", &nowhere]));
    ended.fails_with(1, "root starts");
}
