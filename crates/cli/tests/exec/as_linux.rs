//! Socket calls answer as on Linux: one program of cases runs over the kernel's TCP alone and under the command in the same test, and has to print the same.
//!
//! The cases are Python beside this file, one file a subject. `frame.py` is what they share, and `peer.py` is the other end, with sockets of the
//! kernel's. Without the command the peer is in another namespace, behind a pair of veth interfaces. Under the command it is behind a TUN interface.
//! The addresses are the same: the peer has 10.9.0.1, the program 10.9.0.2.
//!
//! A new case has to give the same on Linux each time. `TRANSOM_AS_LINUX=plain` runs the program twice over the kernel's TCP, to find that out.

use std::collections::BTreeMap;
use std::path::Path;

use super::{available, inside};

/// A case that is allowed to differ.
struct Difference {
    subject: &'static str,
    case: &'static str,
    plain: &'static str,
    under: &'static str,
    /// A kernel may be without what the case is about. Then there is no difference.
    optional: bool,
    #[expect(dead_code, reason = "for whoever reads the list")]
    because: &'static str,
}

/// All that differs from Linux. A case in this list that does not differ fails too.
const DIFFERENT: &[Difference] = &[
    Difference {
        subject: "options",
        case: "a_controller_of_transoms",
        plain: "('ENOENT', False)",
        under: "(None, True)",
        optional: false,
        because: "TCP_CONGESTION speaks of the outer connection, whose controllers are Transom's",
    },
    Difference {
        subject: "options",
        case: "rings_of_calls",
        plain: "'EINVAL'",
        under: "'ENOSYS'",
        optional: false,
        because: "a ring makes sockets by calls that no filter sees, so programs have to do without",
    },
    Difference {
        subject: "connecting",
        case: "a_multipath_socket",
        plain: "262",
        under: "'EPROTONOSUPPORT'",
        optional: false,
        because: "Transom has no MPTCP, and programs then take TCP",
    },
    Difference {
        subject: "options",
        case: "keep_alive_finds_a_deaf_peer",
        plain: "('IN|OUT|ERR|HUP|RDHUP', 'ETIMEDOUT', b'')",
        under: "('IN|OUT|ERR|HUP|RDHUP', 'ECONNRESET', b'')",
        optional: false,
        because: "the outer connection has timed out, and a connection can be ended from afar by a reset only",
    },
    Difference {
        subject: "options",
        case: "the_users_timeout_ends_it",
        plain: "('IN|OUT|ERR|HUP|RDHUP', 'ETIMEDOUT', 'EPIPE', b'')",
        under: "('IN|OUT|ERR|HUP|RDHUP', 'ECONNRESET', 'EPIPE', b'')",
        optional: false,
        because: "the same",
    },
    Difference {
        subject: "data",
        case: "closed_with_time_at_a_deaf_peer",
        plain: "True",
        under: "False",
        optional: false,
        because: "the supervisor acknowledges the program's data, and the linger time ends with that",
    },
    Difference {
        subject: "connecting",
        case: "no_port",
        plain: "'ECONNREFUSED'",
        under: "no answer",
        optional: false,
        because: "a Transom stack answers no segment for port 0, which is nobody's",
    },
    Difference {
        subject: "connecting",
        case: "to_oneself",
        plain: "[(None, (True, 4, b'echo')), (None, (True, 4, b'echo'))]",
        under: "[(None, (True, 4, b'echo')), ('ECONNREFUSED', 'ECONNREFUSED')]",
        optional: false,
        because: "a socket that connects to its own port at Transom's address meets the outer stack, where nobody listens",
    },
    Difference {
        subject: "connecting",
        case: "bound_to_loopbacks_device",
        plain: "(None, b'lo', None)",
        under: "no answer",
        optional: false,
        because: "loopback addresses are reached over the private network's device, so SO_BINDTODEVICE for lo leads nowhere",
    },
    Difference {
        subject: "connecting",
        case: "unreachable_without_waiting",
        plain: "('EINPROGRESS', 'IN|OUT|ERR|HUP|RDHUP', 'EHOSTUNREACH', 'EHOSTUNREACH', 'CLOSE', 'ENOTCONN')",
        under: "('EINPROGRESS', 'IN|OUT|ERR|HUP|RDHUP', 'EHOSTUNREACH', 0, 'CLOSE', 'ENOTCONN')",
        optional: false,
        because: "an ICMP error is told once by the private network's kernel, and twice for an address of the own link that does not answer",
    },
    Difference {
        subject: "states",
        case: "what_is_in_proc",
        plain: "['01']",
        under: "[]",
        optional: false,
        because: "the socket is in a network namespace of its own, and the program is not",
    },
    Difference {
        subject: "options",
        case: "keys_that_sign_segments",
        plain: "None",
        under: "'ENOPROTOOPT'",
        optional: true,
        because: "the private network would ask the supervisor for signatures",
    },
    Difference {
        subject: "connecting",
        case: "a_socket_of_smc",
        plain: "43",
        under: "'EAFNOSUPPORT'",
        optional: true,
        because: "Transom has no SMC, and programs then take TCP",
    },
    Difference {
        subject: "version_six",
        case: "a_scoped_address",
        plain: "'ECONNREFUSED'",
        under: "'ENETUNREACH'",
        optional: false,
        because: "the private network has no interface with that number",
    },
    Difference {
        subject: "naming",
        case: "a_port_that_somebody_else_has",
        plain: "('EADDRINUSE', None)",
        under: "(None, 'EADDRINUSE')",
        optional: false,
        because: "`bind` asks the private network, and only `listen` takes the port outside",
    },
    Difference {
        subject: "signals",
        case: "before_a_call_is_received",
        plain: "['made', 'made']",
        under: "['EINTR', 'made']",
        optional: true,
        because: "seccomp holds a call for signals only from its receipt on, and on a busy machine the signal may come later",
    },
    Difference {
        subject: "data",
        case: "how_much_waits_for_a_deaf_peer",
        plain: "5",
        under: "0",
        optional: false,
        because: "the supervisor acknowledges the program's data",
    },
];

/// Makes the network, with `$WAY` as `plain` or `exec`, and runs the program of one subject.
const SCRIPT: &str = r#"
if [ $WAY = plain ]; then
    unshare -n sleep 1000 & there=$!
    until [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    IN="nsenter -n -t $there"; BESIDE=$IN; D=peer0
    ip link add peer0 type veth peer name program0; ip link set program0 netns $there
    $IN ip addr add 10.9.0.2/24 dev program0; $IN ip addr add fd09::2/64 dev program0 nodad
    $IN ip link set lo up; $IN ip link set program0 up
    # Packets for these addresses reach the peer's machine, as they do over a TUN interface.
    L=$(ip -o link show peer0 | sed 's/.*link.ether \([^ ]*\).*/\1/')
    for address in 10.9.0.77 10.9.0.78 10.9.0.79 fd09::77 fd09::78; do $IN ip neigh add $address lladdr $L dev program0; done
else
    # The private network has an interface of its own, with a small number.
    ip tuntap add dev other0 mode tun; ip tuntap add dev transom0 mode tun user 0 vnet_hdr; D=transom0
    BESIDE=; IN="$TRANSOM exec --addr 10.9.0.2/24 --addr fd09::2/64 --"
fi
ip addr add 10.9.0.1/24 dev $D; ip addr add fd09::1/64 dev $D nodad; ip addr add fe80::1/64 dev $D nodad; ip link set $D up
# One address is silent, and for others the peer's machine is a router that says they cannot be reached.
for file in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 >/proc/sys/net/$file; done
for file in ipv4/icmp_ratelimit ipv6/icmp/ratelimit; do echo 0 >/proc/sys/net/$file; done
ip route add blackhole 10.9.0.77; ip route add unreachable 10.9.0.78; ip route add prohibit 10.9.0.79
ip route add blackhole fd09::77; ip route add unreachable fd09::78
# The interfaces of a pair are up a while after they were told to be. Then a closed port refuses.
refused() { $IN python3 -c "import socket, sys; sys.exit(socket.socket(socket.AF_INET6).connect_ex(('fd09::1', 9)) != 111)"; }
[ $WAY = exec ] || until refused; do sleep 0.1; done
python3 peer.py & until [ -S peer ]; do sleep 0.02; done
# A program beside that of the cases, on the same machine.
$BESIDE python3 -c "import socket, signal; s = socket.create_server(('127.0.0.1', 7199)); signal.pause()" & until $BESIDE ss -Hltn 'sport = :7199' | grep -q .; do sleep 0.05; done
$IN python3 cases.py
# Each processor has one socket for the ICMP errors of all namespaces. While somebody else's packets fill its buffer, the kernel counts errors and sends none.
awk '/^Icmp:/ { if (++line == 1) split($0, name); else for (at in name) if (name[at] == "OutErrors") print "icmp-not-sent: " $at }' /proc/net/snmp
"#;

/// What one run printed, by case, and what it complained of.
fn results(cases: &str, way: &str) -> (BTreeMap<String, String>, String) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| write_to(directory.path(), name, text);
    write("frame.py", include_str!("as_linux/frame.py"));
    write("peer.py", include_str!("as_linux/peer.py"));
    write("cases.py", cases);
    let ended = inside(directory.path(), &format!("WAY={way}\n{SCRIPT}"));
    let text = ended.text();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    (lines.map(|(case, result)| (case.to_owned(), result.to_owned())).collect(), ended.stderr)
}

fn write_to(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).unwrap();
}

/// Runs the cases of one subject both ways, and compares.
fn compare(subject: &str, cases: &str) {
    if !available(&["python3", "nsenter"]) {
        return;
    }
    let only_plain = std::env::var("TRANSOM_AS_LINUX").is_ok_and(|way| way == "plain");
    let way = if only_plain { "plain" } else { "exec" };
    let ((mut plain, complaints), (mut under, more)) = std::thread::scope(|scope| {
        let plain = scope.spawn(|| results(cases, "plain"));
        let under = results(cases, way);
        (plain.join().unwrap(), under)
    });
    let lost = |ran: &mut BTreeMap<String, String>| {
        ran.remove("icmp-not-sent").and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    let lost = lost(&mut plain) + lost(&mut under);
    let mut wrong = Vec::new();
    for (case, linux) in &plain {
        // The cases that ask for such an error have it in their names.
        if lost > 0 && (case.contains("unreachable") || case.contains("router_says")) {
            eprintln!("SKIPPED: {case}: the kernel could not send {lost} ICMP errors");
            continue;
        }
        if linux.starts_with("raised ") || linux.starts_with("no ") {
            wrong.push(format!("{case}: the case itself fails on Linux: {linux}"));
            continue;
        }
        let ours = under.get(case).map_or("nothing", String::as_str);
        let listed = DIFFERENT.iter().find(|entry| (entry.subject, entry.case) == (subject, case));
        match listed.filter(|_| !only_plain) {
            None if ours == linux => (),
            None => wrong.push(format!("{case}:\n    Linux {linux}\n    here  {ours}")),
            Some(entry) if (entry.plain, entry.under) == (linux, ours) => (),
            Some(entry) if entry.optional && ours == linux => (),
            Some(entry) => wrong.push(format!(
                "{case}, which is listed as different:\n    Linux {linux}, expected {}\n    here  {ours}, expected {}",
                entry.plain, entry.under
            )),
        }
    }
    for entry in DIFFERENT.iter().filter(|entry| entry.subject == subject) {
        if !plain.contains_key(entry.case) {
            wrong.push(format!("{} is listed as different, and there is no such case", entry.case));
        }
    }
    // A file of cases that does not even begin prints nothing.
    let written = cases.lines().filter(|line| *line == "@case").count();
    assert!(
        plain.len() >= written && written > 10,
        "{} of {written} cases: {complaints}",
        plain.len()
    );
    assert!(
        wrong.is_empty(),
        "{} of {} cases of {subject}:\n{}\n{complaints}{more}",
        wrong.len(),
        plain.len(),
        wrong.join("\n")
    );
}

/// One test for each file of cases.
macro_rules! subjects {
    ($($subject:ident)*) => {
        $(
            #[test]
            fn $subject() {
                compare(stringify!($subject), include_str!(concat!("as_linux/", stringify!($subject), ".py")));
            }
        )*
    };
}

subjects! { states connecting naming accepting data urgent options passing signals version_six }
