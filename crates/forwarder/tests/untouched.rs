//! What window control must not touch, in every mode: signed segments of the kernel's TCP, connections that began before it, and packets
//! thrown in whose headers something covers or hides.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::inject::{FAR, FAR_SIX, NEAR, NEAR_SIX, START, Side, sides};
use crate::support::{BOTTLENECK, Net, Offloads, installed, network, started, wire};
use transom_forwarder::User;
#[cfg(feature = "bpf")]
use transom_forwarder::tc::{Options as TcOptions, Tc};
use transom_forwarder::{Deployment, Nfqueue, PolicyFile};
use transom_testkit::packets;
use transom_wire::tcp::{Flags, Options, TcpHeader};
use transom_wire::{IpPacket, Protocol, Seq};

/// It grants 20 kB from the beginning, so that windows of any size above are written.
const TEXT: &str = "policy = 'target-window(upper=40kB, lower=20kB, initial=20kB, most=20kB, rule=section-3.2)'\nrate = '10Mbit/s'\nqueue = '75kB'";
const BYTES: usize = 300_000;

fn file() -> PolicyFile {
    TEXT.parse().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    #[cfg(feature = "bpf")]
    Tc,
    Nfqueue,
    User,
}

impl Mode {
    fn net(self) -> Option<Net> {
        if self == Mode::User { wire(Offloads::Off) } else { network(Offloads::Off) }
    }

    fn start(self, net: &Net) -> Option<Box<dyn Deployment>> {
        net.router
            .run(|| match self {
                #[cfg(feature = "bpf")]
                Mode::Tc => started(Tc::attach(TcOptions::new(BOTTLENECK, file().control))),
                Mode::Nfqueue => started(Nfqueue::start(BOTTLENECK, &file().control)),
                Mode::User => started(User::start("in", BOTTLENECK, &file())),
            })
            .unwrap()
    }
}

// ---- signed segments of the kernel's TCP

/// The two ends of a signed transfer: `md5` (RFC 2385) or `ao` (RFC 5925) by socket options 14 and 38. The receiver says when it listens,
/// and in the end how much has arrived. Exit code 9: the kernel has no such option.
const SIGNED: &str = r#"
import errno, socket, struct, sys
role, kind, receiver, sender, count = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
SECRET = b"a secret of both"

def peer(address):
    if ":" in address:
        return struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, address), 0).ljust(128, b"\0")
    return struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address)).ljust(128, b"\0")

def sign(one, other):
    secret = SECRET.ljust(80, b"\0")
    if kind == "md5":
        number, value = 14, peer(other) + struct.pack("=BBHi", 0, 0, len(SECRET), 0) + secret
    else:
        prefix = 128 if ":" in other else 32
        key = struct.pack("=iIHBBBBBB", 0, 3, 0, prefix, 100, 100, 12, 0, len(SECRET))
        number, value = 38, peer(other) + b"hmac(sha1)".ljust(64, b"\0") + key + secret
    try:
        one.setsockopt(socket.IPPROTO_TCP, number, value)
    except OSError as error:
        if error.errno in (errno.ENOPROTOOPT, errno.EOPNOTSUPP):
            sys.exit(9)
        raise

family = socket.AF_INET6 if ":" in receiver else socket.AF_INET
one = socket.socket(family)
if role == "receive":
    sign(one, sender)
    one.bind((receiver, 4179))
    one.listen(1)
    one.settimeout(50)
    print("listens", flush=True)
    stream, _ = one.accept()
    stream.settimeout(50)
    got = 0
    while data := stream.recv(65536):
        got += len(data)
    print(got)
else:
    sign(one, receiver)
    one.settimeout(50)
    one.connect((receiver, 4179))
    one.sendall(bytes(count))
    one.shutdown(socket.SHUT_WR)
    one.recv(1)
"#;

/// Sends signed data, all of which has to arrive. `None` where there is no such signature.
fn signed(net: &Net, kind: &str, six: bool) -> Option<()> {
    let [sender, receiver] =
        net.addresses.map(|(four, six_)| if six { six_ } else { four }).map(|one| one.to_string());
    let start = |namespace: &transom_device::namespace::Namespace, role: &str| {
        let count = BYTES.to_string();
        let words = ["-c", SIGNED, role, kind, &receiver, &sender, &count];
        let mut command = Command::new("python3");
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        namespace.run(|| command.spawn().unwrap()).unwrap()
    };
    let mut receiving = start(&net.receiver, "receive");
    let mut first = [0; 8];
    if receiving.stdout.as_mut().unwrap().read_exact(&mut first).is_err() {
        let output = receiving.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(9), "{stderr}");
        eprintln!("SKIPPED: this kernel has no TCP-{}", kind.to_uppercase());
        return None;
    }
    assert_eq!(&first, b"listens\n");
    let sending = start(&net.sender, "send").wait_with_output().unwrap();
    let received = receiving.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&received.stdout).into_owned();
    let errors = [&sending.stderr, &received.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(told.trim(), BYTES.to_string(), "{errors:?}");
    assert!(sending.status.success(), "{errors:?}");
    Some(())
}

fn signed_transfers_arrive(mode: Mode) {
    if !installed("python3") {
        return;
    }
    let Some(net) = mode.net() else { return };
    let Some(mut deployment) = mode.start(&net) else { return };
    for (kind, six) in [("md5", false), ("md5", true), ("ao", false), ("ao", true)] {
        let before = deployment.status(0).unwrap().counters;
        let Some(()) = signed(&net, kind, six) else { continue };
        let after = deployment.status(0).unwrap().counters;
        assert!(after.covered > before.covered + 20, "{kind}: {after:?}");
        assert_eq!((after.rewritten, after.confirmed, after.unknown), (0, 0, 0), "{kind}");
    }
}

#[cfg(feature = "bpf")]
#[test]
fn tc_lets_signed_transfers_pass() {
    signed_transfers_arrive(Mode::Tc);
}

#[test]
fn nfqueue_lets_signed_transfers_pass() {
    signed_transfers_arrive(Mode::Nfqueue);
}

#[test]
fn user_lets_signed_transfers_pass() {
    signed_transfers_arrive(Mode::User);
}

// ---- connections that began before

/// A connection whose handshake another deployment has seen. This one knows no scale of its windows.
fn begun_before(mode: Mode) {
    let Some(net) = mode.net() else { return };
    let Some(first) = mode.start(&net) else { return };
    let address = net.addresses[1].0;
    let listener = net.receiver.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    let patience = Some(Duration::from_secs(60));
    let mut sending = net.sender.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let (mut receiving, _) = listener.accept().unwrap();
    sending.set_write_timeout(patience).unwrap();
    receiving.set_read_timeout(patience).unwrap();
    let mut carry = || {
        std::thread::scope(|scope| {
            scope.spawn(|| sending.write_all(&vec![7; BYTES]).unwrap());
            let mut received = vec![0; BYTES];
            receiving.read_exact(&mut received).unwrap();
        });
    };
    carry();
    drop(first);
    let Some(mut deployment) = mode.start(&net) else { return };
    carry();
    let counters = deployment.status(0).unwrap().counters;
    assert_eq!((counters.rewritten, counters.confirmed), (0, 0), "{counters:?}");
    assert!(counters.unknown > 20, "{counters:?}");
}

#[cfg(feature = "bpf")]
#[test]
fn tc_lets_older_connections_pass() {
    begun_before(Mode::Tc);
}

#[test]
fn nfqueue_lets_older_connections_pass() {
    begun_before(Mode::Nfqueue);
}

#[test]
fn user_lets_older_connections_pass() {
    begun_before(Mode::User);
}

// ---- packets thrown in

/// What the payload of a numbered packet begins with.
const MARK: &[u8; 4] = b"odd ";
const WINDOW: u16 = 500;
/// The acknowledgement leaves 10,000 bytes of the SYN's window, so that 500 units of 128 bytes would be written down to 20,000 bytes.
const ACKED: u32 = 50_101;

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn ends(six: bool) -> (SocketAddr, SocketAddr) {
    let (near, far): (IpAddr, IpAddr) =
        if six { (NEAR_SIX.into(), FAR_SIX.into()) } else { (NEAR.into(), FAR.into()) };
    (SocketAddr::new(near, 40_000), SocketAddr::new(far, 80))
}

fn header(flags: Flags, (seq, ack): (u32, u32), window: u16, scale: Option<u8>) -> TcpHeader {
    let mss = scale.map(|_| 1460);
    let options = Options { mss, window_scale: scale, ..Options::default() };
    TcpHeader {
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window,
        options,
        ..TcpHeader::default()
    }
}

fn payload(number: u8) -> Vec<u8> {
    [&MARK[..], &[number; 12]].concat()
}

/// The next numbered packet at a side.
fn numbered(side: &mut Side) -> Option<(u8, Vec<u8>)> {
    while let Some(frame) = side.receive() {
        if let Some(at) = frame.windows(4).position(|four| four == MARK) {
            return Some((frame[at + 4], frame[START..].to_vec()));
        }
    }
    None
}

/// A packet without what a router changes.
fn blanked(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] >> 4 == 4 {
        packet[8] = 0;
        packet[10..12].fill(0);
    } else {
        packet[7] = 0;
    }
    packet
}

/// A packet of IPv6 with a header of this type and fourth byte before its segment.
fn behind(kind: u8, fourth: u8, packet: &[u8]) -> Vec<u8> {
    let mut changed = packet[..40].to_vec();
    changed[6] = kind;
    // Padding options; of an authentication header the rest is an identifier and numbers.
    changed.extend([6, if kind == 51 { 4 } else { 0 }, 1, fourth, 0, 0, 0, 0]);
    changed.extend(vec![0; if kind == 51 { 16 } else { 0 }]);
    changed.extend(&packet[40..]);
    let payload = (changed.len() as u16 - 40).to_be_bytes();
    changed[4..6].copy_from_slice(&payload);
    changed
}

/// Packets of a known flow that have to come out as they go in, and what they are.
fn odd(six: bool) -> Vec<(&'static str, Vec<u8>)> {
    let (sender, receiver) = ends(six);
    let plain = header(Flags::ACK, (901, ACKED), WINDOW, None);
    let mut all: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut number = 0;
    let mut next = || {
        number += 1;
        payload(number)
    };
    let signature = [&[1, 1, 19, 18][..], &[5; 16]].concat();
    let authentication = [&[29, 16, 100, 100][..], &[5; 12]].concat();
    let lists: [(&str, &[u8]); 6] = [
        ("TCP-MD5", &signature),
        ("TCP-AO", &authentication),
        ("Multipath TCP", &[30, 8, 0x20, 1, 0, 0, 0, 1]),
        ("an unknown option", &[77, 4, 0, 0]),
        ("an unknown experiment", &[254, 4, 0x12, 0x34]),
        ("a list that cannot be read", &[1, 1, 8, 99]),
    ];
    for (what, options) in lists {
        all.push((what, packets::tcp_with_options(receiver, sender, &plain, options, &next())));
    }
    // Of another connection.
    let stranger = SocketAddr::new(receiver.ip(), 81);
    all.push(("an unknown flow", packets::tcp(stranger, sender, &plain, &next())));
    let mut short = packets::segment(receiver, sender, &plain, &next());
    short[12] = 0x40;
    all.push(("a short header", packets::raw_tcp(receiver.ip(), sender.ip(), &short)));
    let mut long = packets::segment(receiver, sender, &plain, &next());
    long[12] = 0xf0;
    all.push(("a header beyond the packet", packets::raw_tcp(receiver.ip(), sender.ip(), &long)));
    let segment = packets::segment(receiver, sender, &plain, &next());
    let esp = packets::ip(receiver.ip(), sender.ip(), Protocol(50), &segment);
    all.push(("ESP", esp));
    if six {
        let mut tcp = || packets::tcp(receiver, sender, &plain, &next());
        all.push(("an authentication header", behind(51, 0, &tcp())));
        all.push(("a routing header with segments left", behind(43, 1, &tcp())));
        all.push(("a fragment header", behind(44, 1, &tcp())));
        all.push(("mobility", behind(135, 0, &tcp())));
    } else {
        let segment =
            [&[6, 4, 0, 0][..], &[0; 20], &packets::segment(receiver, sender, &plain, &next())];
        let ah = packets::ip(receiver.ip(), sender.ip(), Protocol(51), &segment.concat());
        all.push(("an authentication header", ah));
        let mut fragment = packets::tcp(receiver, sender, &plain, &next());
        fragment[6] = 0x20;
        fragment[10..12].fill(0);
        let sum = transom_wire::checksum::Sum::of(&fragment[..20]).checksum();
        fragment[10..12].copy_from_slice(&sum.to_be_bytes());
        all.push(("a fragment", fragment));
    }
    all
}

fn forward_random_packets(mode: Mode) {
    let Some(net) = mode.net() else { return };
    let Some(mut deployment) = mode.start(&net) else { return };
    let [mut near, mut far] = sides(&net, mode != Mode::User);
    for (known, six) in [(1, false), (2, true)] {
        let (sender, receiver) = ends(six);
        let send = |side: &Side, from, to, header: &TcpHeader, data: &[u8]| {
            side.send(&packets::tcp(from, to, header, data));
        };
        let both = Flags::SYN | Flags::ACK;
        send(
            &near,
            sender,
            receiver,
            &header(Flags::SYN, (100, 0), 60_000, Some(7)),
            &payload(101),
        );
        until("the SYN did not come", || numbered(&mut far).is_some());
        send(&far, receiver, sender, &header(both, (900, 101), 60_000, Some(7)), &payload(102));
        until("the answer did not come", || numbered(&mut near).is_some());
        send(&near, sender, receiver, &header(Flags::ACK, (101, 901), 60_000, None), &[]);
        until("the flow did not open", || {
            deployment.status(0).unwrap().counters.confirmed == known
        });
        // The flow is controlled: a plain acknowledgement is written, also behind destination options, and a checksum that is wrong stays so.
        let plain = packets::tcp(
            receiver,
            sender,
            &header(Flags::ACK, (901, ACKED), WINDOW, None),
            &payload(103),
        );
        let mut wrong = plain.clone();
        let last = wrong.len() - 1;
        wrong[last] ^= 0x55;
        let mut written = vec![(plain.clone(), true), (wrong, false)];
        if six {
            written.push((behind(60, 4, &plain), true));
        }
        for (packet, right) in written {
            let before = deployment.status(0).unwrap().counters.rewritten;
            far.send(&packet);
            let mut arrived = Vec::new();
            until("an acknowledgement did not arrive", || {
                numbered(&mut near).is_some_and(|(_, packet)| {
                    arrived = packet;
                    true
                })
            });
            let ip = IpPacket::parse(&arrived).unwrap();
            assert_eq!(ip.transport_checksum_ok(), right, "{mode:?}");
            let window = u16::from_be_bytes([ip.payload()[14], ip.payload()[15]]);
            assert_eq!(window, 157, "20,000 bytes in units of 128, {mode:?}");
            assert_eq!(deployment.status(0).unwrap().counters.rewritten, before + 1);
        }
        let before = deployment.status(0).unwrap().counters;
        for (what, packet) in odd(six) {
            far.send(&packet);
            let mut arrived = Vec::new();
            until(&format!("{what} did not arrive, {mode:?}"), || {
                numbered(&mut near).is_some_and(|(_, packet)| {
                    arrived = packet;
                    true
                })
            });
            assert_eq!(blanked(arrived), blanked(packet), "{what}, {mode:?}");
        }
        let after = deployment.status(0).unwrap().counters;
        assert_eq!(after.rewritten, before.rewritten, "{mode:?}");
        assert_eq!(after.covered, before.covered + 6, "{mode:?}");
        assert_eq!(after.unknown, before.unknown + 1, "{mode:?}");
        assert!(after.unreadable > before.unreadable, "{mode:?}: {after:?}");
    }
}

#[cfg(feature = "bpf")]
#[test]
fn tc_leaves_odd_packets_alone() {
    forward_random_packets(Mode::Tc);
}

#[test]
fn nfqueue_leaves_odd_packets_alone() {
    forward_random_packets(Mode::Nfqueue);
}

#[test]
fn user_leaves_odd_packets_alone() {
    forward_random_packets(Mode::User);
}
