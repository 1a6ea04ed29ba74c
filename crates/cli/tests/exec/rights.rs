//! Rights are the caller's: the supervisor, which may be root, does nothing for a program that the kernel would refuse it.

use super::{available, directory, inside};
use crate::support::in_own_network;

/// A network with real users in it: this takes root. `$N` runs a program as nobody, and `$T` over Transom.
const SETUP: &str = r#"
# Programs that others may run too come first.
PATH=/usr/bin:$PATH:/usr/sbin:/sbin
T="$1 exec --"; X="$1 exec"
ip link set lo up && ip tuntap add dev transom0 mode tun vnet_hdr && ip addr add 10.9.0.1/24 dev transom0 && ip link set transom0 up || exit 99
N="setpriv --reuid 65534 --regid 65534 --clear-groups"
$N true || exit 99
echo 1024 >/proc/sys/net/ipv4/ip_unprivileged_port_start
same() { [ "$1" = "$2" ] && echo "same: $1" || { echo "Linux:"; echo "$1"; echo "here:"; echo "$2"; }; }
"#;

/// Runs a script as root in a network of its own; `None`, and a word about it, where there is no root.
fn as_root(files: &[(&str, &str)], programs: &[&str], text: &str) -> Option<String> {
    let prepare = |path: &std::path::Path| {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, open).unwrap();
        for (name, text) in files {
            std::fs::write(path.join(name), text).unwrap();
        }
    };
    let apart = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let programs: Vec<_> = ["ip", "setpriv", "python3"].iter().chain(programs).copied().collect();
    in_own_network(&apart, &programs, prepare, &format!("{SETUP}{text}"))
}

/// Tries to listen at ports, low and high, everywhere.
const PORTS: &str = r#"
import errno, sys
from socket import *
def listens(address, port):
    s = socket(AF_INET6 if ':' in address else AF_INET)
    try: s.bind((address, port)); s.listen(); return 'listens'
    except OSError as error: return errno.errorcode[error.errno]
print(*(f'{address}:{port}={listens(address, port)}' for address in ('', '127.0.0.1', '127.0.0.7', '::1', '::') for port in map(int, sys.argv[1:])))
"#;

#[test]
fn a_low_port_takes_the_callers_right() {
    let said = as_root(
        &[("ports.py", PORTS)],
        &[],
        r#"
C="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +net_bind_service --ambient-caps +net_bind_service"
same "$($N python3 ports.py 81 8081)" "$($T $N python3 ports.py 81 8081)"
# With the capability that is about this, or where low ports are anybody's, a port is had.
same "$($C python3 ports.py 81)" "$($T $C python3 ports.py 81)"
echo 80 >/proc/sys/net/ipv4/ip_unprivileged_port_start
same "$($N python3 ports.py 79 81)" "$($T $N python3 ports.py 79 81)"
"#,
    );
    let Some(said) = said else { return };
    assert!(!said.contains("here:"), "{said}");
    // So that the script cannot pass by saying nothing.
    assert_eq!(said.matches("same: ").count(), 3, "{said}");
    assert!(said.contains(":81=EACCES") && said.contains("127.0.0.1:81=listens"), "{said}");
}

/// Root's program is refused nothing, and has its listener at the address of Transom.
#[test]
fn root_has_a_low_port() {
    let said = as_root(
        &[("server.py", LOW)],
        &[],
        r#"
$T python3 server.py & server=$!
until python3 -c 'import socket; print(socket.create_connection(("10.9.0.2", 81), 5).recv(9))' 2>/dev/null; do sleep 0.05; done; kill $server; wait $server || true
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "b'low'\n");
    }
}

const LOW: &str = r#"
from socket import *
s = create_server(('', 81))
while True:
    c, _ = s.accept(); c.sendall(b'low'); c.close()
"#;

/// A firewall that knows who a packet is from: connections that the kernel makes have the caller as their owner.
#[test]
fn firewalls_know_the_owner() {
    let said = as_root(
        &[("try.py", TRY), ("server.py", SERVER)],
        &["iptables"],
        r#"
python3 server.py & until [ -e ready ]; do sleep 0.02; done
iptables -A OUTPUT -p tcp --dport 7000 -m owner --uid-owner 65534 -j REJECT --reject-with tcp-reset || exit 99
for who in "" "$N"; do
    same "$($who python3 try.py 10.9.0.1 127.0.0.1)" "$($X --not 10.9.0.0/24 -- $who python3 try.py 10.9.0.1 127.0.0.1)"
done
"#,
    );
    let Some(said) = said else { return };
    let expected =
        "same: 10.9.0.1=in 127.0.0.1=in\nsame: 10.9.0.1=ECONNREFUSED 127.0.0.1=ECONNREFUSED\n";
    assert_eq!(said, expected);
}

/// The same for control groups: the program is in one, and the supervisor is not.
#[test]
fn firewalls_know_the_control_group() {
    let said = as_root(
        &[("try.py", TRY), ("server.py", SERVER)],
        &["iptables"],
        r#"
mount=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
[ -n "$mount" ] || { echo "no cgroup2 is mounted" >&2; exit 99; }
name=transom-test-$(cat /proc/sys/kernel/random/uuid); mkdir "$mount/$name" || exit 99
trap 'rmdir "$mount/$name"' EXIT
iptables -A OUTPUT -p tcp --dport 7000 -m cgroup --path "$name" -j REJECT --reject-with tcp-reset || exit 99
python3 server.py & until [ -e ready ]; do sleep 0.02; done
G="sh -c 'echo 0 >$mount/$name/cgroup.procs; exec python3 try.py 10.9.0.1 127.0.0.1'"
same "$(python3 try.py 10.9.0.1 127.0.0.1)" "$($X --not 10.9.0.0/24 -- python3 try.py 10.9.0.1 127.0.0.1)"
same "$(eval "$G")" "$(eval "$X --not 10.9.0.0/24 -- $G")"
"#,
    );
    let Some(said) = said else { return };
    let expected =
        "same: 10.9.0.1=in 127.0.0.1=in\nsame: 10.9.0.1=ECONNREFUSED 127.0.0.1=ECONNREFUSED\n";
    assert_eq!(said, expected);
}

const TRY: &str = r#"
import errno, sys
from socket import *
def made(address):
    try: return create_connection((address, 7000), timeout=20).recv(9).decode()
    except OSError as error: return errno.errorcode.get(error.errno, type(error).__name__)
print(*(f'{address}={made(address)}' for address in sys.argv[1:]))
"#;

const SERVER: &str = r#"
from socket import *
s = create_server(('', 7000)); open('ready', 'w').close()
while True:
    c, _ = s.accept(); c.sendall(b'in'); c.close()
"#;

/// Leaves the network, and tries to reach it all the same.
const LEAVES: &str = r#"
import ctypes, errno, os, sys
from socket import *
def tried(call, *arguments):
    try: return call(*arguments)
    except OSError as error: return errno.errorcode.get(error.errno, type(error).__name__)
def made(address):
    s = socket(); s.settimeout(20)
    return tried(s.connect, (address, 7000)) or s.recv(9)
kept = create_connection(('10.9.0.1', 7000)); new = socket(); print('before', made('10.9.0.1'), made('127.0.0.1'))
assert ctypes.CDLL(None).unshare(0x40000000) == 0 # CLONE_NEWNET
print('after', made('10.9.0.1'), made('127.0.0.1'), [name for _, name in if_nameindex()])
# Sockets from before stay where they were made.
print('kept', kept.recv(9), tried(new.connect, ('10.9.0.1', 7000)) or new.recv(9))
print('binds', [tried(socket().bind, (address, 0)) for address in ('10.9.0.2', '10.9.0.1')])
s = socket(); s.bind(('127.0.0.1', 84)); s.listen(); print('listens', sum(line.split()[1].endswith(':0054') for line in open('/proc/self/net/tcp')))
"#;

/// A process in a network namespace of its own stays there, with what it does from then on.
#[test]
fn another_namespace_is_another_network() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("leaves.py"), LEAVES).unwrap();
    std::fs::write(path.join("server.py"), SERVER).unwrap();
    let script = "ip tuntap add dev transom0 mode tun user 0 vnet_hdr; ip addr add 10.9.0.1/24 dev transom0; ip link set transom0 up
        python3 server.py & until [ -e ready ]; do sleep 0.02; done
        python3 leaves.py >native; $T python3 leaves.py >under; diff native under && cat native";
    let ended = inside(&path, script);
    let expected = "before b'in' b'in'\nafter ENETUNREACH ENETUNREACH ['lo']\nkept b'in' b'in'\nbinds [None, None]\nlistens 1\n";
    assert_eq!(ended.text(), expected, "{}", ended.stderr);
}

/// The same when the program is started in another namespace.
#[test]
fn a_program_started_in_another_namespace() {
    if !available(&["python3"]) {
        return;
    }
    let (_keep, path, _) = directory();
    std::fs::write(path.join("try.py"), TRY).unwrap();
    std::fs::write(path.join("server.py"), SERVER).unwrap();
    let script = "python3 server.py & until [ -e ready ]; do sleep 0.02; done
        $T sh -c 'python3 try.py 10.9.0.1; unshare -n python3 try.py 10.9.0.1; python3 try.py 127.0.0.1; unshare -n python3 try.py 127.0.0.1'";
    let ended = inside(&path, script);
    let expected = "10.9.0.1=in\n10.9.0.1=ENETUNREACH\n127.0.0.1=in\n127.0.0.1=ENETUNREACH\n";
    assert_eq!(ended.text(), expected, "{}", ended.stderr);
}
