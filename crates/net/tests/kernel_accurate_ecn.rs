//! Accurate ECN (RFC 9768) against the kernel: what both ends agree on, and with a kernel that can negotiate it (`net.ipv4.tcp_ecn` from 3 on) both roles
//! and both directions, the counts of both ends, and a queue that marks. On another kernel these are skipped, and say so.

use crate::support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Lab, ROLES, Role, VERSIONS, Version, both_ways, receive, send, start, tun};
use transom_device::namespace::Namespace;
use transom_device::tcp_info;
use transom_device::tun::TunOffload;
use transom_lab::{Emulated, PathConfig};
use transom_net::ConnectionState;
use transom_tcp::AccurateInfo;
use transom_tcp::compose::compose_classic as compose;

/// The kernel's setting `net.ipv4.tcp_ecn` in a namespace, and from 3 on, where that means accurate ECN, `net.ipv4.tcp_ecn_option`; `None`, and a word
/// about it, if it has no accurate ECN. (Linux 6.18 has the counts and the options, but not these settings yet.)
fn set_kernel(namespace: &Namespace, ecn: u8, option: u8) -> Option<()> {
    let set = |name: &str, value: u8| {
        let path = format!("/proc/sys/net/ipv4/{name}");
        namespace.run(|| std::fs::write(path, value.to_string())).unwrap()
    };
    if ecn <= 2 {
        set("tcp_ecn", ecn).expect("a setting of a namespace of our own");
        return Some(());
    }
    let both = set("tcp_ecn", ecn).and_then(|()| set("tcp_ecn_option", option));
    if let Err(error) = both {
        eprintln!(
            "SKIPPED: this kernel cannot negotiate accurate ECN (net.ipv4.tcp_ecn = {ecn}): {error}"
        );
        return None;
    }
    Some(())
}

/// The kernel with these settings and Transom with these words, with a path between them.
fn lab(path: [&str; 2], words: &str, ecn: u8, option: u8) -> Option<Lab> {
    let [egress, ingress] = path.map(|link| link.parse().unwrap());
    let path = PathConfig { egress, ingress, seed: 1 };
    let (namespace, tun) = tun(TunOffload::Segmentation)?;
    set_kernel(&namespace, ecn, option)?;
    let device = Emulated::new(tun, &path).unwrap();
    let monitor = device.monitor();
    let stack = start(device, compose(words).unwrap());
    Some(Lab::new(namespace, stack, Some(monitor)))
}

fn accurate(info: &ConnectionState) -> AccurateInfo {
    let ecn = info.ecn.unwrap_or_else(|| panic!("ECN was not agreed: {info:?}"));
    ecn.accurate.unwrap_or_else(|| panic!("accurate ECN was not agreed: {info:?}"))
}

/// The counts of one of the kernel's connections.
#[derive(Clone, Copy, Debug)]
struct KernelAccurateEcn {
    /// Segments that arrived with congestion experienced.
    received_ce: u32,
    /// Payload bytes that arrived with ECT(0), with ECT(1) and with congestion experienced.
    received_bytes: [u32; 3],
    /// Payload bytes that the peer says have arrived so.
    delivered_bytes: [u32; 3],
}

/// As a kernel that knows them (6.18) has them in `struct tcp_info` (linux/tcp.h): tcpi_received_ce, then the bytes delivered and received, with ECT(1),
/// with ECT(0) and with congestion experienced.
fn kernels(socket: &std::net::TcpStream) -> KernelAccurateEcn {
    let info = tcp_info(socket).unwrap();
    let word = |at: usize| {
        let word = info.as_bytes().get(at..).and_then(<[u8]>::first_chunk);
        u32::from_ne_bytes(*word.expect("a kernel that knows it"))
    };
    KernelAccurateEcn {
        received_ce: word(248),
        received_bytes: [word(268), word(264), word(272)],
        delivered_bytes: [word(256), word(252), word(260)],
    }
}

/// A file each way at once: the counts of bytes are those of the other end, as far as they have been told.
#[test]
fn both_ends_count_the_same() {
    for (version, option) in VERSIONS.into_iter().zip([2, 1]) {
        let Some(lab) = lab(["delay=2ms", "delay=2ms"], "modern + accecn", 3, option) else {
            return;
        };
        for role in ROLES {
            const BYTES: u64 = 2 << 20;
            let (ours, theirs) = lab.connect(version, role);
            thread::scope(|scope| {
                let up = scope.spawn(|| receive((&theirs).take(BYTES)).unwrap());
                let sent = scope.spawn(|| send(&ours, 1, BYTES).unwrap());
                let back = scope.spawn(|| send(&theirs, 2, BYTES).unwrap());
                let down = receive((&ours).take(BYTES)).unwrap();
                assert_eq!(down, back.join().unwrap());
                assert_eq!(up.join().unwrap(), sent.join().unwrap());
            });
            let info = ours.info().unwrap();
            let what = format!("{version:?} {role:?}: {info:?}");
            let counts = accurate(&info);
            assert!(!info.ecn.unwrap().disabled && !counts.field_zeroed, "{what}");
            assert!(counts.options_seen && counts.counts_seen, "{what}");
            let kernel = kernels(&theirs);
            let KernelAccurateEcn { received_ce, received_bytes, delivered_bytes } = kernel;
            let again = info.counters.retransmitted_segments;
            if again == 0 {
                assert_eq!(received_bytes[0] as u64, BYTES, "{what} {kernel:?}");
            }
            // Nothing is marked, and nothing is said to be.
            assert_eq!((received_ce, received_bytes[1], received_bytes[2]), (0, 0, 0), "{what}");
            assert_eq!((counts.delivered.ce_packets, counts.delivered.ce_bytes), (0, 0), "{what}");
            assert_eq!(counts.received.ce_packets, 0, "{what}");
            assert!(counts.delivered.ect0_bytes <= received_bytes[0].into(), "{what} {kernel:?}");
            assert!(counts.delivered.ect0_bytes > 0, "{what}");
            assert!(u64::from(delivered_bytes[0]) <= counts.received.ect0_bytes, "{kernel:?}");
            assert!(delivered_bytes[0] > 0, "{what} {kernel:?}");
            eprintln!(
                "{version:?} {role:?}: {:?} {:?} {kernel:?}",
                counts.delivered, counts.received
            );
        }
    }
}

const QUEUE: &str =
    "rate=40Mbit/s, delay=5ms, queue=codel(20000 packets, target=2ms, interval=20ms, ecn)";

/// Sends through a queue that marks; returns what is known of it at both ends, and how many packets were marked.
fn marked(
    role: Role,
    up: bool,
    words: &str,
    option: u8,
) -> Option<(ConnectionState, KernelAccurateEcn, u64)> {
    let path = if up { [QUEUE, "delay=5ms"] } else { ["delay=5ms", QUEUE] };
    let lab = lab(path, words, 3, option)?;
    let (ours, theirs) = lab.connect(Version::V4, role);
    const BYTES: u64 = 16 << 20;
    thread::scope(|scope| {
        let (from, to): (Box<dyn Write + Send>, Box<dyn Read + Send>) = match up {
            true => (Box::new(&ours), Box::new(&theirs)),
            false => (Box::new(&theirs), Box::new(&ours)),
        };
        let received = scope.spawn(|| receive(to.take(BYTES)).unwrap());
        let sent = send(from, 9, BYTES).unwrap();
        assert_eq!(received.join().unwrap(), sent);
    });
    // The last counts are on their way for a round trip.
    let until = Instant::now() + support::PATIENCE;
    while up && ours.info().unwrap().in_flight > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    let report = lab.monitor.as_ref().unwrap().report();
    let link = if up { report.egress } else { report.ingress };
    let (info, kernel) = (ours.info().unwrap(), kernels(&theirs));
    assert_eq!(link.queue_full.packets + link.lost.packets, 0, "nothing is dropped");
    drop((ours, theirs, lab));
    Some((info, kernel, link.marked))
}

/// The kernel counts as many packets as the queue has marked of Transom's data, and tells Transom so.
#[test]
fn the_kernel_counts_the_marks_and_transom_answers() {
    for role in ROLES {
        for words in ["modern + accecn", "dctcp + rack-tlp + prr + undo + accecn"] {
            let Some((info, kernel, marks)) = marked(role, true, words, 2) else { return };
            let counts = accurate(&info);
            let reductions = info.ecn.unwrap().reductions;
            eprintln!(
                "{role:?}, {words}: {marks} marks, {reductions} reductions, {:?}, {kernel:?}",
                counts.delivered
            );
            assert!(marks > 0 && reductions > 0, "{info:?}");
            assert_eq!(u64::from(kernel.received_ce), marks, "{info:?}");
            let told = counts.delivered;
            assert_eq!(told.ce_bytes, u64::from(kernel.received_bytes[2]), "{info:?} {kernel:?}");
            assert_eq!(told.ce_packets, marks, "{info:?} {kernel:?}");
            assert_eq!(told.ect0_bytes, u64::from(kernel.received_bytes[0]), "{info:?} {kernel:?}");
            assert!(reductions <= marks && !info.ecn.unwrap().disabled);
        }
    }
}

/// The other way round: what Transom counts is what the kernel is told.
#[test]
fn transom_counts_the_marks_and_the_kernel_answers() {
    for role in ROLES {
        let Some((info, kernel, marks)) = marked(role, false, "modern + accecn", 2) else { return };
        let counts = accurate(&info);
        eprintln!("{role:?}: {marks} marks, {:?}, {kernel:?}", counts.received);
        assert!(marks > 0);
        assert_eq!(counts.received.ce_packets, marks, "{info:?}");
        // The last of it may not have arrived there yet.
        assert!(u64::from(kernel.delivered_bytes[2]) <= counts.received.ce_bytes, "{kernel:?}");
        assert!(u64::from(kernel.delivered_bytes[2]) * 10 >= counts.received.ce_bytes * 9);
        assert!(u64::from(kernel.delivered_bytes[0]) * 10 >= counts.received.ect0_bytes * 9);
    }
}

/// Without options the count of packets is all there is.
#[test]
fn the_field_alone_is_enough() {
    for (words, option) in [("modern + accecn(options=off)", 2), ("modern + accecn", 0)] {
        let Some((info, kernel, marks)) = marked(Role::Client, true, words, option) else { return };
        let counts = accurate(&info);
        eprintln!("{words}, tcp_ecn_option {option}: {marks} marks, {counts:?}, {kernel:?}");
        assert!(marks > 0);
        assert_eq!(u64::from(kernel.received_ce), marks, "{info:?}");
        assert_eq!(counts.options_seen, option != 0);
        // A wrap cannot be told from none; that there were marks can.
        assert!(counts.delivered.ce_packets > 0 && info.ecn.unwrap().reductions > 0);
    }
}

/// One end has accurate ECN, and the other RFC 3168 or none.
#[test]
fn it_falls_back_to_what_the_other_end_knows() {
    // Transom's words, the kernel's `tcp_ecn`, and who opens: is there ECN, and is it accurate?
    for (words, kernel, role, expected) in [
        ("accecn", 1, Role::Client, Some(false)),
        ("accecn", 1, Role::Server, Some(false)),
        ("accecn", 0, Role::Client, None),
        ("accecn", 0, Role::Server, None),
        ("ecn", 3, Role::Client, Some(false)),
        ("ecn", 3, Role::Server, Some(false)),
        ("no-ecn", 3, Role::Server, None),
        ("passive-accecn", 3, Role::Client, None),
        ("passive-accecn", 3, Role::Server, Some(true)),
        ("accecn", 5, Role::Client, Some(true)),
        ("accecn++", 3, Role::Client, Some(true)),
        ("accecn++", 3, Role::Server, Some(true)),
    ] {
        let words = format!("modern + {words}");
        let Some(lab) = lab(["delay=1ms", "delay=1ms"], &words, kernel, 2) else { continue };
        let info = both_ways(&lab, Version::V6, role, 1 << 18, true, 7);
        let accurate = info.ecn.map(|ecn| ecn.accurate.is_some());
        assert_eq!(accurate, expected, "{words}, tcp_ecn {kernel}, {role:?}: {info:?}");
        assert!(info.ecn.is_none_or(|ecn| !ecn.disabled), "{words} {kernel} {role:?}: {info:?}");
    }
}

/// A path that loses: the counts of bytes are exact as soon as an option has arrived after the last loss.
#[test]
fn counts_survive_losses() {
    let lossy = "delay=2ms, loss=1%";
    let Some(lab) = lab([lossy, lossy], "modern + accecn", 3, 2) else { return };
    for role in ROLES {
        let (ours, theirs) = lab.connect(Version::V4, role);
        const BYTES: u64 = 4 << 20;
        thread::scope(|scope| {
            let up = scope.spawn(|| receive(&theirs).unwrap());
            let sent = send(&ours, 1, BYTES).unwrap();
            ours.shutdown(Shutdown::Write).unwrap();
            assert_eq!(up.join().unwrap(), sent);
        });
        let info = ours.info().unwrap();
        // A lost SYN-ACK, or its acknowledgement, ends options or ECN itself.
        let Some(counts) = info.ecn.and_then(|ecn| ecn.accurate) else { continue };
        let kernel = kernels(&theirs);
        eprintln!("{role:?}: {:?} {kernel:?}", counts.delivered);
        assert!(counts.delivered.ect0_bytes <= kernel.received_bytes[0].into(), "{kernel:?}");
        assert_eq!((counts.delivered.ce_bytes, kernel.received_ce), (0, 0));
    }
}
