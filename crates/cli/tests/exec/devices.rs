//! The same programs over every device, and on two cores. `tun` is in the other tests; `mem` has both ends in one process.

use super::{available, directory, inside};
use crate::support::sha256_of;

/// What an exec'ed client and server do, with the command's network options in `$D`, the kernel or another Transom at `$THEIRS`, and our address in `$OURS`.
const CLIENT: &str = "$TRANSOM exec $D -- curl -sS http://$THEIRS:8000/small
    $TRANSOM exec $D -- curl -sS -o copy http://$THEIRS:8000/big\n";
const SERVER: &str = "$TRANSOM exec $D -- python3 -m http.server 8001 >/dev/null 2>&1 & server=$!
    answers http://$OURS:8001/small
    curl -sS http://$OURS:8001/small; curl -sS -o copy2 http://$OURS:8001/big
    end $server\n";
const KERNEL: &str = "python3 -m http.server 8000 >/dev/null 2>&1 & kernel=$!\nlistening 8000\n";

/// Runs a client and a server over a device that the setup prepares.
fn both(setup: &str) {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    let ended = inside(&path, &format!("{setup}{KERNEL}{CLIENT}{SERVER}"));
    assert_eq!(ended.text(), "hello\nhello\n", "{}", ended.stderr);
    for copy in ["copy", "copy2"] {
        assert_eq!(sha256_of(&path.join(copy)), digest, "{copy}");
    }
}

#[test]
fn a_station_of_its_own_on_an_ethernet() {
    both(
        "ip link add left0 type veth peer name right0; ip link set left0 up; ip link set right0 up
        ip addr add 192.0.2.1/24 dev right0
        D='--device packet:left0 --addr 192.0.2.2/24'; THEIRS=192.0.2.1; OURS=192.0.2.2\n",
    );
}

#[test]
fn two_cores() {
    both("D='--shards 2'; THEIRS=10.9.0.1; OURS=10.9.0.2\n");
}

/// Another program has opened the interface, and started the command with the descriptor.
#[test]
fn a_descriptor_that_was_handed_on() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let opener = "
import fcntl, os, struct, subprocess, sys
tun = os.open('/dev/net/tun', os.O_RDWR)
# A TUN interface without packet information.
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'handed0', 0x1001))
subprocess.check_call(['ip', 'addr', 'add', '10.9.0.1/24', 'dev', 'handed0'])
subprocess.check_call(['ip', 'link', 'set', 'handed0', 'up'])
os.set_inheritable(tun, True)
os.execvp(os.environ['TRANSOM'], ['transom', 'exec', '--device', f'fd:{tun}', '--'] + sys.argv[1:])";
    std::fs::write(path.join("opener.py"), opener).unwrap();
    let script = "python3 opener.py curl -sS http://10.9.0.1:8000/small
        python3 opener.py python3 -m http.server 8001 >/dev/null 2>&1 & server=$!
        answers http://10.9.0.2:8001/small; curl -sS http://10.9.0.2:8001/small; end $server";
    let ended = inside(&path, &format!("{KERNEL}{script}"));
    assert_eq!(ended.text(), "hello\nhello\n", "{}", ended.stderr);
}

/// Both ends are programs that know nothing of Transom.
#[test]
fn datagrams_between_two_commands() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    let script = "$TRANSOM exec --device udp:listen:127.0.0.1:4000 -- python3 -m http.server 8000 >/dev/null 2>&1 & server=$!
        until $TRANSOM exec --device udp:127.0.0.1:4000 -- curl -sS -m 5 http://10.9.0.1:8000/small 2>/dev/null; do sleep 0.1; done
        $TRANSOM exec --device udp:127.0.0.1:4000 -- curl -sS -o copy http://10.9.0.1:8000/big
        end $server";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "hello\n", "{}", ended.stderr);
    assert_eq!(sha256_of(&path.join("copy")), digest);
}

/// An ordinary user's programs, on the host's own address.
#[test]
fn the_machines_own_address() {
    let said = crate::broker::script(
        r#"
cp "$T" served; D="--device shared:socket"
$P python3 -m http.server -d www 80 >/dev/null 2>&1 & background="$background $!"
until $U curl -s -m 5 -o /dev/null http://192.0.2.2/; do sleep 0.05; done
$U ./served exec $D -- curl -sS -m 60 http://192.0.2.2/file >copy; cmp copy www/file && echo client
$U ./served exec $D -- python3 -m http.server -d www 8080 >/dev/null 2>&1 & background="$background $!"
until $P curl -s -m 5 -o /dev/null http://192.0.2.1:8080/; do sleep 0.05; done
$P curl -s -m 60 -o copy http://192.0.2.1:8080/file; cmp copy www/file && echo server
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "client\nserver\n");
    }
}

/// Frames pass by the kernel. This needs more than a network of one's own: real privileges.
#[test]
fn frames_that_pass_by_the_kernel() {
    if !cfg!(feature = "xdp") {
        eprintln!("SKIPPED: this build has no xdp");
        return;
    }
    let said = crate::broker::script(
        r#"
ip link add left0 type veth peer name right0; ip link set left0 up; ip link set right0 up
ip address add 198.51.100.1/24 dev right0
D="--device xdp:left0 --addr 198.51.100.2/24"
python3 -m http.server -d www 8000 >/dev/null 2>&1 & background="$background $!"
until curl -s -m 5 -o /dev/null http://198.51.100.1:8000/; do sleep 0.05; done
"$T" exec $D -- curl -sS -m 60 http://198.51.100.1:8000/file >copy; cmp copy www/file && echo client
"$T" exec $D -- python3 -m http.server -d www 8001 >/dev/null 2>&1 & background="$background $!"
until curl -s -m 5 -o /dev/null http://198.51.100.2:8001/; do sleep 0.05; done
curl -s -m 60 -o copy http://198.51.100.2:8001/file; cmp copy www/file && echo server
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "client\nserver\n");
    }
}

/// Transom's own IPv6, with a server and a client of the kernel's.
#[test]
fn version_six() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, digest) = directory();
    let script = "python3 -m http.server 8000 --bind :: >/dev/null 2>&1 & listening 8000
        V='--addr 10.9.0.2/24 --addr fd00::2/64 --peer-addr 10.9.0.1/24 --peer-addr fd00::1/64'
        $TRANSOM exec -v $V -- curl -gsS 'http://[fd00::1]:8000/small'
        $TRANSOM exec $V -- curl -gsS -o copy 'http://[fd00::1]:8000/big'
        $TRANSOM exec $V -- python3 -m http.server 8001 --bind :: >/dev/null 2>&1 & server=$!
        answers 'http://[fd00::2]:8001/small'
        curl -gsS 'http://[fd00::2]:8001/small'; curl -sS http://10.9.0.2:8001/small
        curl -gsS -o copy2 'http://[fd00::2]:8001/big'; end $server";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "hello\nhello\nhello\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("1 connections by Transom"), "{}", ended.stderr);
    for copy in ["copy", "copy2"] {
        assert_eq!(sha256_of(&path.join(copy)), digest, "{copy}");
    }
}

/// The Congestion Manager, another process, has the windows of a program's connections.
#[test]
fn a_manager_of_the_programs_connections() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    let client = "
import os, socket, time
many = [socket.create_connection(('10.9.0.1', 7000)) for _ in range(3)]
for c in many: c.sendall(b'x' * 100000)
print(sum(int(c.recv(1) == b'y') for c in many))
while not os.path.exists('managed'): time.sleep(0.05)";
    let server = "
import os, socket
s = socket.create_server(('0.0.0.0', 7000))
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        got = 0
        while got < 100000: got += len(c.recv(99999))
        c.sendall(b'y'); c.recv(1); os._exit(0)
    c.close()";
    std::fs::write(path.join("client.py"), client).unwrap();
    std::fs::write(path.join("server.py"), server).unwrap();
    let script = "python3 server.py & listening 7000; mkdir offered
        $TRANSOM cm run offered --socket manager >said 2>&1 & manager=$!
        $TRANSOM exec --extension-socket offered/one -- python3 client.py & command=$!
        until $TRANSOM cm list --socket manager --json 2>/dev/null | tr -d ' ' | grep -q '10.9.0.1'; do sleep 0.1; done
        touch managed; wait $command; echo $?; kill $manager";
    let ended = inside(&path, script);
    assert_eq!(ended.text(), "3\n0\n", "{}", ended.stderr);
}
