//! Where connections fail in silence, the command says what is missing.

use crate::support::in_own_network;

/// A host behind `eth0` with a web server, and this one with no forwarding. `$1` is the command.
const NETWORK: &str = r#"
ip link set lo up
ip link add eth0 type veth peer name far0 || exit 99
ip addr add 192.0.2.1/24 dev eth0
ip link set eth0 up
unshare --net sh -c 'read -r go; ip addr add 192.0.2.9/24 dev far0; ip link set far0 up; ip link set lo up
    exec python3 -m http.server 80' <fifo >/dev/null 2>&1 &
far=$!
exec 7>fifo
sleep 0.3
ip link set far0 netns $far || exit 99
echo go >&7
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do curl -sm 1 -o /dev/null http://192.0.2.9/ && break; sleep 0.2; done
"#;

fn fifo(directory: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(directory.join("fifo")).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_destination_that_does_not_answer_is_named() {
    let script = format!(
        "{NETWORK}
echo 0 > /proc/sys/net/ipv4/ip_forward
timeout 20 \"$1\" exec -- curl -sm 3 http://192.0.2.9/ 2>&1
timeout 20 \"$1\" get --device tun:other --addr 10.8.0.2/24 http://192.0.2.9/ 2>&1 & get=$!
sleep 2; kill $get
\"$1\" doctor --reach 192.0.2.9
echo 1 > /proc/sys/net/ipv4/ip_forward
\"$1\" doctor --reach 192.0.2.9
\"$1\" doctor --reach 198.51.100.1
kill $far
exit 0"
    );
    let programs = ["ip", "python3", "curl", "mkfifo"];
    let Some(said) = in_own_network(
        &["--mount-proc", "--mount", "--pid", "--fork", "--kill-child"],
        &programs,
        fifo,
        &script,
    ) else {
        return;
    };
    let message = "transom: no answer from 192.0.2.9 to 10.9.0.2: does this host forward packets and translate addresses? `transom doctor --reach 192.0.2.9`";
    assert_eq!(said.matches(message).count(), 1, "{said}");
    assert!(said.contains("no answer from 192.0.2.9 to 10.8.0.2"), "{said}");
    assert!(said.contains("`sysctl -w net.ipv4.ip_forward=1`"), "{said}");
    assert!(said.contains("-j MASQUERADE"), "{said}");
    assert!(said.contains("no route to 198.51.100.1"), "{said}");
}

/// The kernel's end of a TUN interface is in the network of the stack, whatever that is.
#[test]
fn the_kernel_is_found_from_any_address() {
    let script = r#"
ip link set lo up
python3 -m http.server 8000 >/dev/null 2>&1 & server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do curl -sm 1 -o /dev/null http://127.0.0.1:8000/ && break; sleep 0.2; done
timeout 20 "$1" get --addr 10.77.0.2/24 http://10.77.0.1:8000/ -o got && echo fetched
timeout 20 "$1" get --addr 10.77.0.2/24 --peer-addr 10.9.0.1/24 http://10.9.0.1:8000/ -o got 2>&1
timeout 20 "$1" get --addr 10.77.0.2/32 http://10.77.0.1:8000/ -o got 2>&1
kill $server
exit 0"#;
    let programs = ["ip", "python3", "curl"];
    let Some(said) = in_own_network(&[], &programs, |_| {}, script) else { return };
    assert!(said.contains("fetched"), "{said}");
    assert!(said.contains("the kernel at 10.9.0.1/24 does not find 10.77.0.2/24"), "{said}");
    assert!(said.contains("10.77.0.2/32 has no second address"), "{said}");
}
