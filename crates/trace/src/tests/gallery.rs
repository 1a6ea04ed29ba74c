//! A gallery of captures, read by us and by tshark: every kind of link that we read, cut and whole, in both byte orders, with times of several
//! resolutions. Both have to find the same connections, packets and bytes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::made::{Made, block, transfer};
use crate::Capture;

/// What is known of a connection: packets, bytes of data there and back (with what was sent again), and the time of its first packet in
/// microseconds.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Seen {
    packets: u64,
    bytes: [u64; 2],
    first: u64,
}

/// A kind of link: its number, its name, and what stands before an IP packet of either version.
struct Kind {
    link: u16,
    name: &'static str,
    before: fn(bool) -> Vec<u8>,
}

const fn kind(link: u16, name: &'static str, before: fn(bool) -> Vec<u8>) -> Kind {
    Kind { link, name, before }
}

fn ethertype(six: bool) -> [u8; 2] {
    if six { [0x86, 0xdd] } else { [8, 0] }
}

fn ppp(six: bool) -> u8 {
    if six { 0x57 } else { 0x21 }
}

fn with_type(head: &[u8], six: bool) -> Vec<u8> {
    [head, &ethertype(six)].concat()
}

/// LLC and SNAP.
fn snap(head: &[u8], six: bool) -> Vec<u8> {
    [head, &[0xaa, 0xaa, 3, 0, 0, 0], &ethertype(six)].concat()
}

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
/// A frame with data from a station.
const WIFI: [u8; 24] = [8, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0, 0];

fn wifi(control: [u8; 2], more: &[u8], six: bool) -> Vec<u8> {
    let mut head = WIFI.to_vec();
    head[..2].copy_from_slice(&control);
    head.extend(more);
    snap(&head, six)
}

const GALLERY: [Kind; 50] = [
    kind(0, "loopback", |six| vec![if six { 24 } else { 2 }, 0, 0, 0]),
    kind(1, "Ethernet", |six| with_type(&MACS, six)),
    kind(1, "VLAN", |six| with_type(&[&MACS[..], &[0x81, 0, 0, 5]].concat(), six)),
    kind(1, "VLAN in VLAN", |six| {
        with_type(&[&MACS[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]].concat(), six)
    }),
    kind(1, "PPPoE", |six| [&MACS[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 200, 0, ppp(six)]].concat()),
    kind(1, "PPPoE, compressed", |six| {
        [&MACS[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 200, ppp(six)]].concat()
    }),
    kind(1, "MPLS", |_| [&MACS[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat()),
    kind(1, "Ethernet with SNAP", |six| snap(&[&MACS[..], &[0, 200]].concat(), six)),
    kind(6, "Token Ring", |six| snap(&[&[0x10, 0x40][..], &MACS].concat(), six)),
    kind(6, "Token Ring, routed", |six| {
        let mut head = [&[0x10, 0x40][..], &MACS, &[0x06, 0x30, 0, 0x11, 0, 0x20]].concat();
        head[8] |= 0x80;
        snap(&head, six)
    }),
    kind(9, "PPP", |six| vec![0xff, 3, 0, ppp(six)]),
    kind(9, "PPP without an address", |six| vec![0, ppp(six)]),
    kind(9, "PPP, compressed", |six| vec![ppp(six)]),
    kind(9, "PPP with MPLS", |_| vec![0xff, 3, 2, 0x81, 0, 1, 1, 64]),
    kind(10, "FDDI", |six| snap(&[&[0x50][..], &MACS].concat(), six)),
    kind(50, "PPP in HDLC", |six| vec![0xff, 3, 0, ppp(six)]),
    kind(51, "PPP over Ethernet", |six| vec![0x11, 0, 0, 1, 0, 200, 0, ppp(six)]),
    kind(100, "ATM", |six| snap(&[], six)),
    kind(101, "raw IP", |_| vec![]),
    kind(104, "Cisco HDLC", |six| with_type(&[0x0f, 0], six)),
    kind(105, "802.11", |six| wifi([8, 1], &[], six)),
    kind(105, "802.11 with quality", |six| wifi([0x88, 1], &[0, 0], six)),
    kind(105, "802.11 between four", |six| wifi([8, 3], &[2, 0, 0, 0, 0, 4], six)),
    kind(107, "frame relay", |six| vec![0x18, 0x41, 3, if six { 0x8e } else { 0xcc }]),
    kind(107, "frame relay with SNAP", |six| {
        [&[0x18, 0x41, 3, 0, 0x80, 0, 0, 0][..], &ethertype(six)].concat()
    }),
    kind(108, "OpenBSD loopback", |six| vec![0, 0, 0, if six { 24 } else { 2 }]),
    kind(109, "OpenBSD IPsec", |six| [&[if six { 24 } else { 2 }, 0, 0, 0][..], &[0; 8]].concat()),
    kind(113, "Linux cooked", |six| with_type(&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], six)),
    kind(113, "Linux cooked, VLAN", |six| {
        with_type(&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0, 0, 5], six)
    }),
    kind(122, "Fibre Channel", |six| {
        snap(&[0x10, 0, 2, 0, 0, 0, 0, 1, 0x10, 0, 2, 0, 0, 0, 0, 2], six)
    }),
    kind(123, "SunATM", |six| snap(&[2, 0, 0, 5], six)),
    kind(127, "radiotap", |six| wifi_behind(&[0, 0, 8, 0, 0, 0, 0, 0], six)),
    kind(127, "radiotap with padding", |six| {
        let head = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
        [&head[..], &wifi([0x88, 1], &[0, 0, 0, 0], six)].concat()
    }),
    kind(127, "radiotap with a time", |six| {
        let mut head = vec![0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];
        head.extend([0; 9]);
        wifi_behind(&head, six)
    }),
    kind(138, "IP over 1394", |six| with_type(&[0; 16], six)),
    kind(163, "AVS", |six| {
        let mut head = vec![0x80, 0x21, 0x10, 1, 0, 0, 0, 64];
        head.extend([0; 56]);
        wifi_behind(&head, six)
    }),
    kind(166, "pppd", |six| vec![0, 3, 0, ppp(six)]),
    kind(192, "PPI with Ethernet", |six| {
        with_type(&[&[0, 0, 8, 0, 1, 0, 0, 0][..], &MACS].concat(), six)
    }),
    kind(192, "PPI with 802.11", |six| wifi_behind(&[0, 0, 8, 0, 105, 0, 0, 0], six)),
    kind(204, "PPP with a direction", |six| vec![1, 0xff, 3, 0, ppp(six)]),
    kind(205, "Cisco HDLC with a direction", |six| with_type(&[1, 0x0f, 0], six)),
    kind(206, "frame relay with a direction", |six| {
        vec![1, 0x18, 0x41, 3, if six { 0x8e } else { 0xcc }]
    }),
    kind(226, "Solaris IPNET", |six| {
        let mut head = vec![1, if six { 26 } else { 2 }, 0, 1];
        head.extend([0; 20]);
        head
    }),
    kind(228, "IPv4", |_| vec![]),
    kind(229, "IPv6", |_| vec![]),
    kind(239, "netfilter log", |six| {
        // Two records, an interface and the payload: their lengths and types are still to be written.
        let mut head = vec![if six { 10 } else { 2 }, 0, 0, 0];
        head.extend([0; 12]);
        head
    }),
    kind(274, "Ethernet with a preamble", |six| {
        with_type(&[&[0x55; 7][..], &[0xd5], &MACS].concat(), six)
    }),
    kind(276, "Linux cooked 2", |six| {
        let mut head = ethertype(six).to_vec();
        head.extend([0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
        head
    }),
    kind(101, "raw IP again", |_| vec![]),
    kind(119, "Prism", |six| {
        let mut head = vec![0; 144];
        // The code of the message and its length, in the order of the card.
        head[..8].copy_from_slice(&[0x44, 0, 0, 0, 144, 0, 0, 0]);
        wifi_behind(&head, six)
    }),
];

/// These are not compared with tshark, which reads something else into them, or nothing. What they are stands in the registry.
const TSHARK_CANNOT: [&str; 4] = [
    "pppd",
    "Cisco HDLC with a direction",
    "frame relay with a direction",
    "Ethernet with a preamble",
];

fn wifi_behind(head: &[u8], six: bool) -> Vec<u8> {
    [head, &wifi([8, 1], &[], six)].concat()
}

/// The same transfer for each kind of link and each version of IP that it carries, between addresses with other ports. The times go up.
fn transfers(number: usize, kind: &Kind, big: bool) -> Vec<(Vec<u8>, u64)> {
    let versions: &[bool] = match kind.link {
        228 => &[false],
        229 => &[true],
        _ => &[false, true],
    };
    let mut frames = Vec::new();
    for &six in versions {
        let ends = if six {
            ["[2001:db8::1]:", "[2001:db8::2]:"]
        } else {
            ["192.0.2.1:", "198.51.100.2:"]
        };
        let port = 20_000 + number as u16 * 2 + u16::from(six);
        let [client, server] = [format!("{}{port}", ends[0]), format!("{}80", ends[1])];
        let [client, server] = [client, server].map(|end| end.parse().unwrap());
        for one in transfer() {
            let is_client = one.ends[0].port() != 80;
            let ends = if is_client { [client, server] } else { [server, client] };
            let made: Made = one.between(ends);
            let packet = made.packet();
            let mut frame = (kind.before)(six);
            if kind.link == 239 {
                // Its numbers are in the order of the capturing host.
                let length = packet.len() as u16 + 4;
                for (at, value) in [(4, 8), (6, 5), (12, length), (14, 9)] {
                    let value = if big { value.to_be_bytes() } else { value.to_le_bytes() };
                    frame[at..at + 2].copy_from_slice(&value);
                }
            }
            if kind.link == 226 {
                frame[4..8].copy_from_slice(&(packet.len() as u32).to_be_bytes());
            }
            frame.extend(packet);
            frames.push((frame, made.micros + number as u64 * 1_000_000));
        }
    }
    frames
}

/// One file of pcapng with an interface for each kind of link. The resolutions of the interfaces differ.
fn pcapng(big: bool, snap: usize) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut body = word(0x1A2B_3C4D).to_vec();
    body.extend([half(1), half(0)].concat());
    body.extend([0xff; 8]);
    let mut file = block(0x0A0D_0D0A, &body, big);
    // Micro- and nanoseconds, milliseconds, and two to the power of -20.
    let resolutions = [6u8, 9, 3, 0x80 | 20];
    for (number, kind) in GALLERY.iter().enumerate() {
        let mut body = [half(kind.link), half(0)].concat();
        body.extend(word(if snap < 65_535 { snap as u32 } else { 0 }));
        body.extend([half(9), half(1)].concat());
        body.extend([resolutions[number % 4], 0, 0, 0]);
        body.extend([half(0), half(0)].concat());
        file.extend(block(1, &body, big));
    }
    for (number, kind) in GALLERY.iter().enumerate() {
        for (place, (frame, micros)) in transfers(number, kind, big).into_iter().enumerate() {
            let unit = match number % 4 {
                0 => micros,
                1 => micros * 1000,
                2 => micros / 1000,
                _ => (micros << 20) / 1_000_000,
            };
            let kept = frame.len().min(snap);
            let time = [word((unit >> 32) as u32), word(unit as u32)].concat();
            let lengths = [word(kept as u32), word(frame.len() as u32)].concat();
            // The older kind of blocks now and then.
            let (kind, on) = if place % 3 == 2 {
                (2, [half(number as u16), half(0)].concat())
            } else {
                (6, word(number as u32).to_vec())
            };
            file.extend(block(kind, &[&on[..], &time, &lengths, &frame[..kept]].concat(), big));
        }
    }
    file
}

/// One file of pcap with one kind of link.
fn pcap(number: usize, big: bool, nanos: bool, snap: usize) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let kind = &GALLERY[number];
    let mut file = word(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
    file.extend([half(2), half(4)].concat());
    [0, 0, 262_144, u32::from(kind.link)].into_iter().for_each(|value| file.extend(word(value)));
    for (frame, micros) in transfers(number, kind, big) {
        let kept = frame.len().min(snap);
        let part = (micros % 1_000_000) as u32 * if nanos { 1000 } else { 1 };
        for value in [(micros / 1_000_000) as u32, part, kept as u32, frame.len() as u32] {
            file.extend(word(value));
        }
        file.extend(&frame[..kept]);
    }
    file
}

/// The connections, by the client's port. The times are in thousandths, so that resolutions do not matter.
type Connections = BTreeMap<u16, Seen>;

fn ours(file: &[u8]) -> Connections {
    let capture = Capture::read(file).unwrap();
    let notes = capture.notes();
    assert!(notes.is_empty(), "{notes:?}");
    let seen = |way: &crate::Way| way.counts.bytes + way.counts.resent;
    let each = capture.connections.iter().map(|one| {
        let first = (one.first.as_nanos() + 500_000) / 1_000_000;
        let bytes = one.ways.each_ref().map(seen);
        (one.ends[0].port(), Seen { packets: one.packets, bytes, first })
    });
    let all: Connections = each.collect();
    assert_eq!(all.len(), capture.connections.len(), "a connection was taken for two");
    all
}

/// What tshark says of each segment: the number of its connection, ports, bytes, time. `None` if it is not installed.
fn of_tshark(file: &[u8]) -> Option<Connections> {
    let fields = ["tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.len", "frame.time_epoch"];
    let mut command = Command::new("tshark");
    // Checksums are right, and nothing is taken apart behind TCP.
    command.args(["-n", "-r", "-", "-Y", "tcp", "-T", "fields", "-E", "separator=/s"]);
    fields.iter().for_each(|field| _ = command.args(["-e", field]));
    command.args(["-o", "wlan.ignore_wep:No", "-o", "wlan_radio.always_short_preamble:FALSE"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("SKIPPED: tshark is not installed");
        return None;
    };
    let mut input = child.stdin.take().unwrap();
    let bytes = file.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    writing.join().unwrap().unwrap();
    let mut streams: BTreeMap<u16, u64> = BTreeMap::new();
    let mut all = Connections::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [stream, from, to, bytes, time] = words[..] else { panic!("{line:?}") };
        let number = |text: &str| text.parse::<u64>().unwrap();
        let is_client = to == "80";
        let port = number(if is_client { from } else { to }) as u16;
        let known = *streams.entry(port).or_insert(number(stream));
        assert_eq!(known, number(stream), "tshark has two connections for port {port}");
        let seen = all.entry(port).or_default();
        if seen.packets == 0 {
            seen.first = (time.parse::<f64>().unwrap() * 1000.0).round() as u64;
        }
        seen.packets += 1;
        seen.bytes[usize::from(!is_client)] += number(bytes);
    }
    Some(all)
}

#[track_caller]
fn same(file: &[u8], what: &str) -> bool {
    let ours = ours(file);
    // What was made: twelve packets, and 500 bytes there, of which 100 were sent again.
    for (port, seen) in &ours {
        let name = GALLERY[usize::from(port - 20_000) / 2].name;
        assert_eq!((seen.packets, seen.bytes), (12, [500, 0]), "{name}, {what}");
    }
    let Some(theirs) = of_tshark(file) else { return false };
    let mut wrong = Vec::new();
    for (port, seen) in &ours {
        let name = GALLERY[usize::from(port - 20_000) / 2].name;
        if theirs.get(port) != Some(seen) && !TSHARK_CANNOT.contains(&name) {
            wrong.push(format!("{name}: tshark {:?}, we {seen:?}", theirs.get(port)));
        }
    }
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    assert!(theirs.keys().all(|port| ours.contains_key(port)), "{what}: tshark has more");
    true
}

#[test]
fn every_kind_of_link_is_read_as_tshark_reads_it() {
    let connections = GALLERY.iter().map(|kind| if matches!(kind.link, 228 | 229) { 1 } else { 2 });
    let count: usize = connections.sum();
    for (big, snap) in [(false, 65_535), (true, 65_535), (true, 260), (false, 300)] {
        let file = pcapng(big, snap);
        assert_eq!(ours(&file).len(), count, "big: {big}, kept: {snap}");
        if !same(&file, &format!("pcapng, big: {big}, kept: {snap}")) {
            return;
        }
    }
}

#[test]
fn files_of_pcap_are_read_as_tshark_reads_them() {
    // Ethernet, PPPoE in Ethernet, raw IP, Linux cooked.
    for (number, big, nanos, snap) in [
        (1, false, false, 65_535),
        (1, true, true, 96),
        (5, true, false, 120),
        (18, false, true, 96),
        (27, true, true, 65_535),
        (20, false, true, 130),
    ] {
        let file = pcap(number, big, nanos, snap);
        if !same(&file, &format!("pcap, big: {big}, nanoseconds: {nanos}, kept: {snap}")) {
            return;
        }
    }
}
