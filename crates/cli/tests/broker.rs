//! The broker as a command: one process serves on the host's own address, and the kernel's TCP goes on beside it.

use std::path::Path;
use std::process::Command;

use crate::support::{in_own_network, installed, transom, wait};

/// Two hosts in namespaces of the test's own, in one mount namespace with a BPF file system of its own. `$1` is the command. The peer's commands
/// begin with `$P`, those of an ordinary user with `$U`.
const SETUP: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
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
pub(crate) fn script(text: &str) -> Option<String> {
    if !cfg!(feature = "bpf") {
        eprintln!("SKIPPED: this build has no broker (feature bpf)");
        return None;
    }
    let prepare = |path: &Path| {
        std::fs::create_dir(path.join("www")).unwrap();
        let file = b"over the host's own address".repeat(40_000);
        std::fs::write(path.join("www/file"), file).unwrap();
        // An ordinary user serves from it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, open).unwrap();
    };
    let programs = ["nsenter", "setpriv", "ip", "curl", "python3"];
    in_own_network(&["--mount"], &programs, prepare, &format!("{SETUP}{text}"))
}

#[test]
fn a_user_serves_beside_the_kernel() {
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
timeout 60 "$T" broker watch --json $R | head -n 2 | grep -c '"192.0.2.1:8080"'
timeout 60 "$T" broker watch $R 2>&1 | head -n 2 | grep -o '^DEVICE' | head -n 1
TRANSOM_BROKER=$PWD/socket $U ./served doctor | grep -o '^ *shared *works'
curl -s http://127.0.0.1:9300/metrics | grep '^transom_broker_leases '
$U "$PWD/served" serve www --device shared:socket --port 9000 2>&1 | grep -o 'may not\|not allowed\|policy' | head -n 1
grep -c '"event":"refused".*may not hold port 9000' broker
"$T" broker stop $R 2>&1
echo "pins: $(ls bpf/t 2>/dev/null | wc -l), devices: $(ip -o link | grep -c tcpk)"
"#,
    ) else {
        return;
    };
    let expected = "the peer has it from 80\nthe peer has it from 8080\nthe host has it too\nrefused: 7\n1\n2\nDEVICE\nshared works\ntransom_broker_leases 1\n";
    let said = said.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let said = said.collect::<Vec<_>>().join("\n");
    assert!(said.starts_with(expected), "{said}");
    assert!(
        said.contains("policy") || said.contains("not allowed") || said.contains("may not"),
        "{said}"
    );
    assert!(said.contains("all leases have ended"), "{said}");
    assert!(said.ends_with("pins: 0, devices: 0\n"), "{said}");
}

/// The broker's own metrics: a page of another site reads none of them, and a crowd of clients that say nothing or little keeps nobody away.
#[test]
fn the_metrics_of_the_broker_are_for_this_machine_and_for_all_of_it() {
    let Some(said) = script(
        r#"
ask() { curl -s -m 60 "$@" http://127.0.0.1:9300/metrics >answer; grep -c '^transom_broker_leases ' answer; }
ask
for host in evil.example evil.example:9300 localhost.evil.example; do ask -H "Host: $host"; cat answer; done
# A user's own clients, and those of another user.
cat >crowd.py <<END
import socket, sys, time
clients = []
for number in range(600):
    client = socket.create_connection(("127.0.0.1", 9300), 60)
    try:
        client.sendall(b"GET /metrics HTTP" if number % 2 else b"")
    except OSError:
        pass
    clients.append(client)
print("they are there", flush=True)
time.sleep(100)
END
# Root's own Python may be where nobody else reaches it.
for python in python3 /usr/bin/python3; do $U $python -c "" 2>/dev/null && break; done
for user in "" "$U"; do
    $user $python crowd.py >crowd 2>&1 & crowd=$!
    background="$background $crowd"
    until_said crowd 'they are there'
    for turn in 1 2 3; do ask; done
    kill $crowd; wait $crowd 2>/dev/null
    rm crowd
done
"#,
    ) else {
        return;
    };
    let foreign = "0\nthis server is for the machine that it runs on\n";
    let expected = format!("1\n{}{}", foreign.repeat(3), "1\n".repeat(6));
    assert_eq!(said, expected);
}

/// A broker that was killed: what it has left goes on, and is removed without it.
#[test]
fn the_leftovers_of_a_killed_broker_can_be_removed() {
    let Some(said) = script(
        r#"
cp "$T" served && $U ./served serve www --device shared:socket --port 8080 >serve 2>&1 &
background="$background $!"
until_said serve interrupt
kill -9 $(echo $background | cut -d ' ' -f 2)
$P curl -s -m 60 -o copy http://192.0.2.1:8080/file; cmp copy www/file && echo "it goes on"
$U ./served broker stop $R --pins "$PWD/bpf/t" 2>&1 | grep -o 'no broker answers\|root'  | head -n 1
"$T" broker stop $R --pins "$PWD/bpf/t" 2>&1
echo "pins: $(ls bpf/t 2>/dev/null | wc -l), devices: $(ip -o link | grep -c tcpk), files: $(ls socket* 2>/dev/null | wc -l)"
"$T" broker stop $R --pins "$PWD/bpf/t" 2>&1 | grep -o 'no broker answers'
"#,
    ) else {
        return;
    };
    assert!(said.starts_with("it goes on\nroot\n"), "{said}");
    assert!(said.contains("no broker was running"), "{said}");
    assert!(said.ends_with("pins: 0, devices: 0, files: 0\nno broker answers\n"), "{said}");
}

/// The library for C programs, by the variable that names the device.
#[test]
fn a_c_program_serves_on_the_hosts_address() {
    let library = std::env::current_exe().unwrap().with_file_name("libtransom.a");
    if !library.exists() || !installed("cc") {
        eprintln!(
            "SKIPPED: `shared` under C takes a C compiler and libtransom (cargo test -p transom-c)"
        );
        return;
    }
    let c = concat!(env!("CARGO_MANIFEST_DIR"), "/../c");
    let Some(said) = script(&format!(
        r#"
cc -std=c11 -D_GNU_SOURCE -I {c}/include {c}/tests/c/echo.c -o echo {} -lpthread -ldl -lm -lgcc_s -lc || exit 97
TRANSOM_DEVICE=shared:$PWD/socket $U ./echo server 8088 >said 2>&1 & serving=$!
background="$background $serving"
until_said said listening
$P python3 -c '
import socket, threading
stream = socket.create_connection(("192.0.2.1", 8088), 60)
sent = bytes(range(251)) * 10000
def write():
    stream.sendall(sent)
    stream.shutdown(socket.SHUT_WR)
threading.Thread(target=write).start()
back = bytearray()
while piece := stream.recv(65536):
    back += piece
print("whole" if back == sent else "not whole")
'
wait $serving; cat said
"#,
        library.display()
    )) else {
        return;
    };
    assert_eq!(said, "whole\nlistening\nserved\n");
}

/// The package for Python, as `./test.sh` has installed it for `TRANSOM_PYTHON`.
#[test]
fn a_python_program_on_the_hosts_address() {
    let python = std::env::var_os("TRANSOM_PYTHON").unwrap_or_default();
    let find = "import pathlib, transom; print(pathlib.Path(transom.__file__).parent)";
    let found = Command::new(&python).args(["-c", find]).output();
    let Some(found) = found.ok().filter(|found| found.status.success()) else {
        eprintln!("SKIPPED: `shared` under Python takes TRANSOM_PYTHON, with the package transom");
        return;
    };
    let package = String::from_utf8(found.stdout).unwrap();
    let Some(said) = script(&format!(
        r#"
# Where an ordinary user can read it.
mkdir lib && cp -r {} lib/ && chmod -R a+rX lib && mkdir -m 777 open
P3=
for python in {} /usr/bin/python3; do
    # Root's own Python may be where nobody else reaches it.
    one="$U env PYTHONPATH=$PWD/lib PYTHONDONTWRITEBYTECODE=1 $python -c"
    $one "import transom" 2>/dev/null && P3=$one && break
done
[ -n "$P3" ] || exit 99
$P python3 -m http.server -d www 80 >/dev/null 2>&1 & background="$background $!"
until curl -s -m 5 -o /dev/null http://192.0.2.2/; do sleep 0.05; done
$P3 '
import transom
with transom.Stack("shared:socket") as stack, stack.connect("192.0.2.2", 80, timeout=60) as stream:
    stream.settimeout(60)
    stream.sendall(b"GET /file HTTP/1.0\r\n\r\n")
    got = bytearray()
    while data := stream.recv(1 << 16):
        got += data
    open("open/copy", "wb").write(got.split(b"\r\n\r\n", 1)[1])
    print("from", stream.getsockname()[0])
'
cmp open/copy www/file && echo whole
# The policy is the broker's.
$P3 '
import transom
with transom.Stack("shared:socket") as stack:
    try:
        stack.listen("192.0.2.1", 9000)
    except PermissionError as error:
        print("refused:", error)
'
"#,
        package.trim(),
        python.to_string_lossy()
    )) else {
        return;
    };
    assert!(said.starts_with("from 192.0.2.1\nwhole\nrefused"), "{said}");
}

#[test]
fn without_a_broker_the_reason_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = format!("shared:{}/none", directory.path().display());
    let ended = wait(Command::new(transom()).args(["serve", ".", "--device", &nowhere]));
    ended.fails_with(1, "root starts");
}

/// One process that is trusted, beside the kernel and a broker. When it is killed, the kernel answers for its port again.
#[test]
fn a_packet_socket_on_the_kernels_address() {
    let Some(said) = script(
        r#"
"$T" doctor | grep 'packet:eth0' -A 1
"$T" serve www --device packet:eth0 --port 8090 >serve 2>&1 & own=$!
background="$background $own"
python3 -m http.server -d www -b 192.0.2.1 80 >kernel 2>&1 &
background="$background $!"
until_said serve interrupt
until $P curl -s -m 5 -o /dev/null http://192.0.2.1/; do sleep 0.05; done
for port in 80 8090; do
    $P curl -s -m 60 -o copy http://192.0.2.1:$port/file; cmp copy www/file && echo "the peer has it from $port"
done
$P python3 -m http.server -d www -b 192.0.2.2 80 >outside 2>&1 &
background="$background $!"
until curl -s -m 5 -o /dev/null http://192.0.2.2/; do sleep 0.05; done
"$T" get -q --device packet:eth0 -o fetched http://192.0.2.2/file && cmp fetched www/file && echo "fetched"
kill -9 $own; wait $own
$P curl -s -m 5 http://192.0.2.1:8090/ || echo "refused: $?"
"#,
    ) else {
        return;
    };
    assert!(said.contains("without --addr it is on the kernel's own addresses"), "{said}");
    let expected = "the peer has it from 80\nthe peer has it from 8090\nfetched\nrefused: 7\n";
    assert!(said.ends_with(expected), "{said}");
}

/// Real servers of the kernel's on the same address, and clients for all of them at the same time. Every byte is compared.
#[test]
fn sshd_and_nginx_serve_under_load_beside_it() {
    if !["sshd", "ssh", "ssh-keygen", "nginx", "iperf3"].iter().all(|name| installed(name)) {
        return;
    }
    let Some(said) = script(
        r#"
cp "$T" served && mkdir out && chmod 777 out
$U ./served serve www --device shared:socket --port 8080 >serve 2>&1 &
background="$background $!"
# sshd needs its directory in /run, and this mount namespace is ours.
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd
ssh-keygen -q -t ed25519 -N '' -f host_key; ssh-keygen -q -t ed25519 -N '' -f key; cp key.pub authorized
cat >sshd_config <<END
ListenAddress 192.0.2.1
HostKey $PWD/host_key
AuthorizedKeysFile $PWD/authorized
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
END
"$(command -v sshd)" -D -e -f sshd_config >sshd 2>&1 &
background="$background $!"
cat >nginx.conf <<END
daemon off; pid $PWD/nginx.pid; error_log $PWD/nginx.log; user root;
events {}
http {
    access_log off; client_body_temp_path out; proxy_temp_path out; fastcgi_temp_path out; uwsgi_temp_path out; scgi_temp_path out;
    server { listen 192.0.2.1:80; root $PWD/www; }
}
END
nginx -c "$PWD/nginx.conf" >nginx 2>&1 &
background="$background $!"
iperf3 -s -B 192.0.2.1 >iperf 2>&1 &
background="$background $!"
$P python3 -m http.server -d www -b 192.0.2.2 80 >outside 2>&1 &
background="$background $!"
until_said serve interrupt
SSH="$P ssh -q -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@192.0.2.1"
answers() { turns=0; until "$@" >/dev/null 2>&1; do turns=$((turns + 1)); [ $turns -lt 200 ] || { echo "$* does not answer" >&2; exit 98; }; sleep 0.05; done; }
answers $SSH true; answers $P curl -s http://192.0.2.1/; answers curl -s http://192.0.2.2/

# $1 times: a command that leaves a copy of the file in out/$2.
repeat() {
    count=$1 name=$2 turn=0; shift 2
    while [ $turn -lt $count ]; do
        "$@" && cmp "out/$name" www/file || { echo "$name failed in turn $turn"; return; }
        rm -f "out/$name"; turn=$((turn + 1))
    done
    echo "$name $turn"
}
ssh_down() { $SSH "cat $PWD/www/file" >out/ssh-down; }
ssh_up() { $SSH "cat >$PWD/out/ssh-up" <www/file; }
repeat 30 nginx $P curl -sf -m 60 -o out/nginx http://192.0.2.1/file >said.1 &
load=$!
repeat 30 serve $P curl -sf -m 60 -o out/serve http://192.0.2.1:8080/file >said.2 & load="$load $!"
repeat 30 serve-too $P curl -sf -m 60 -o out/serve-too http://192.0.2.1:8080/file >said.3 & load="$load $!"
repeat 10 get $U ./served get -q --device shared:socket -o out/get http://192.0.2.2/file >said.4 & load="$load $!"
repeat 8 ssh-down ssh_down >said.5 & load="$load $!"
repeat 8 ssh-up ssh_up >said.6 & load="$load $!"
repeat 10 local curl -sf -m 60 -o out/local http://192.0.2.1:8080/file >said.7 & load="$load $!"
{ $P iperf3 -c 192.0.2.1 -t 2 >out/iperf && $P iperf3 -c 192.0.2.1 -t 2 -R >>out/iperf && echo "iperf3 done" || cat out/iperf; } >said.8 & load="$load $!"
wait $load
cat said.*
"$T" broker show $R tcpk0 | grep '^dropped'
"$T" broker stop $R 2>&1
"#,
    ) else {
        return;
    };
    let expected =
        "nginx 30\nserve 30\nserve-too 30\nget 10\nssh-down 8\nssh-up 8\nlocal 10\niperf3 done\n";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("\ndropped    nothing\n"), "{said}");
}

/// What leaves the host is what the stack has sent, byte for byte where the remote end can see it, and it looks like the kernel's own in all that
/// belongs to the host.
#[test]
fn the_remote_end_cannot_tell_that_packets_were_redirected() {
    if !["tshark", "ethtool"].iter().all(|name| installed(name)) {
        return;
    }
    let Some(said) = script(
        r#"
# What is captured is what would be on a wire: whole checksums, and no super-segments.
for feature in tx tso gso gro; do ethtool -K eth0 $feature off; $P ethtool -K peer $feature off; done >ethtool 2>&1
mkdir out && chmod 777 out && cp "$T" served
$U ./served serve www --device shared:socket --port 8080 --pcap out/own.pcapng >serve 2>&1 & serving=$!
python3 -m http.server -d www -b 192.0.2.1 80 >kernel 2>&1 &
background="$background $!"
# A buffer for all that is sent: on a busy machine tshark reads late.
$P tshark -q -n -B 64 -i peer -w out/wire.pcapng >shark 2>&1 & shark=$!
background="$background $shark $serving"
until_said serve interrupt; until_said shark 'Capturing'
until $P curl -s -m 5 -o /dev/null http://192.0.2.1/; do sleep 0.05; done
for port in 80 8080; do $P curl -s -m 60 -o copy http://192.0.2.1:$port/file; cmp copy www/file && echo "$port is whole"; done
sleep 0.5
kill -INT $serving; wait $serving
kill -INT $shark; wait $shark
# Stations, times to live, fragmentation, IP header lengths and classes, and whether both checksums are right.
look() { tshark -n -r out/wire.pcapng -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE -Y "ip.src==192.0.2.1 && tcp.srcport==$1"     -T fields -e eth.src -e ip.ttl -e ip.flags -e ip.hdr_len -e ip.checksum.status -e tcp.checksum.status 2>/dev/null | sort -u; }
look 80 >out/of-kernel; look 8080 >out/of-transom
wc -l <out/of-transom
cmp out/of-kernel out/of-transom && echo "they look alike"
cut -f 2-6 out/of-transom
# Each packet of the stack, as it was sent and as it arrived.
fields() { tshark -n -r "$1" -Y 'ip.src==192.0.2.1 && tcp.srcport==8080' -T fields -e ip.id -e ip.ttl -e ip.flags -e ip.dsfield -e ip.len -e tcp.seq_raw     -e tcp.ack_raw -e tcp.flags -e tcp.window_size_value -e tcp.urgent_pointer -e tcp.options -e tcp.checksum 2>/dev/null | sort; }
fields out/own.pcapng >out/sent; fields out/wire.pcapng >out/arrived
[ "$(wc -l <out/sent)" -gt 700 ] && cmp out/sent out/arrived && echo "nothing has changed"
tshark -n -r out/wire.pcapng -Y 'ip.src==192.0.2.1 && tcp.flags.reset==1 && tcp.srcport==8080' 2>/dev/null | wc -l
"#,
    ) else {
        return;
    };
    // Don't Fragment is the second of the three flags; 1 stands for a good checksum.
    let looks = said.lines().nth(4).unwrap_or_default();
    assert!(
        said.starts_with("80 is whole\n8080 is whole\n1\nthey look alike\n")
            && said.ends_with("nothing has changed\n0\n"),
        "{said}"
    );
    let words: Vec<_> = looks.split('\t').collect();
    assert_eq!(words, ["64", "0x02", "20", "1", "1"], "{said}");
}
