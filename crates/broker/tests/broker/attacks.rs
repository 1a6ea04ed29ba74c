//! Attacks of a process with a device on others. Each attack is followed by a packet that is allowed: when that has come, nothing else may
//! have.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use transom_testkit::packets;
use transom_wire::offload::VirtioNetHdr;

use crate::support::frames::{self, ACK, SYN, Tap, header_len, tcp, virtio, write, write_with};
use crate::support::tun::{attach, set_carrier, set_persistent};
use crate::support::{
    BrokerProcess, HOST4, HOST6, Holder, NOBODY, Net, PEER4, PEER6, SOMEBODY, at, echoes,
    start_with_device, until,
};

const RULES: &str = "
[[allow]]
user = 65534
ports = \"8000-8999\"
[[allow]]
user = 65533
ports = \"9000-9999\"
";

const NEEDS_CHECKSUM: u8 = 1;
const TCPV4: u8 = 1;
const UDP: u8 = 3;
const TCPV6: u8 = 4;
const UDP_L4: u8 = 5;

struct Attack {
    net: Net,
    _broker: BrokerProcess,
    _holder: Holder,
    tun: OwnedFd,
    device: String,
    tap: Tap,
    mark_count: std::cell::Cell<u16>,
}

impl Attack {
    fn new() -> Option<Self> {
        let net = Net::new()?;
        let (broker, holder, mut device) = start_with_device(&net, RULES);
        holder.bind(at(HOST4, 8000)).unwrap();
        holder.bind(at(HOST6, 8000)).unwrap();
        let tap = Tap::new(&net);
        let tun = device.queues.remove(0);
        let device = device.opened.device;
        let mark_count = std::cell::Cell::new(0);
        Some(Attack { net, _broker: broker, _holder: holder, tun, device, tap, mark_count })
    }

    /// The segments that the device has sent since the last call. The kernel's own packets are left out.
    fn take_sent_packets(&self) -> Vec<Vec<u8>> {
        let number = self.mark_count.get() + 1;
        self.mark_count.set(number);
        let mark = tcp(at(HOST4, 8000), at(PEER4, 40_000 + number), ACK, b"mark");
        write(&self.tun, &mark).unwrap();
        let mut packets = self.tap.until(|packet| packet == mark);
        packets.pop();
        // Neighbour discovery and the like are the kernel's.
        packets.retain(|packet| match frames::ends(packet) {
            Some(_) => true,
            None => packet[0] >> 4 == 4 && packet[9] != 1,
        });
        packets
    }

    /// Runs an attack that returns how many packets it sent. The guard must drop all of them for this reason.
    #[track_caller]
    fn assert_dropped(&self, reason: &str, attack: impl FnOnce(&OwnedFd) -> u64) {
        let before = self.net.drops(reason);
        let sent = attack(&self.tun);
        assert_eq!(self.take_sent_packets(), Vec::<Vec<u8>>::new());
        assert_eq!(self.net.drops(reason) - before, sent, "{:?}", self.net.status().guard);
    }
}

fn mine() -> SocketAddr {
    at(HOST4, 8000)
}

fn theirs() -> SocketAddr {
    at(PEER4, 7)
}

#[test]
fn a_process_cannot_send_from_a_foreign_port_or_address() {
    let Some(attack) = Attack::new() else { return };
    let other = Holder::start(&attack.net, SOMEBODY);
    other.open().unwrap();
    other.bind(at(HOST4, 9000)).unwrap();
    attack.net.kernel_echo(at(HOST4, 80));
    attack.assert_dropped("foreign-port", |tun| {
        let sources = [
            at(HOST4, 22),          // nobody's
            at(HOST4, 80),          // the kernel's
            at(HOST4, 9000),        // another process'
            at(PEER4, 8000),        // another address
            at("192.0.2.99", 8000), // one that nobody has
            at("127.0.0.1", 8000),  // loopback
            at("0.0.0.0", 8000),
            at("255.255.255.255", 8000),
            at("224.0.0.1", 8000),
        ];
        for source in sources {
            write(tun, &tcp(source, theirs(), ACK, b"x")).unwrap();
        }
        let v6 = [at(HOST6, 22), at(PEER6, 8000), at("::", 8000), at("fe80::1", 8000)];
        for source in v6 {
            write(tun, &tcp(source, at(PEER6, 7), ACK, b"x")).unwrap();
        }
        // The own IPv4 address and port, as a mapped address of IPv6.
        let mapped = packets::tcp(at(HOST6, 8000), at(PEER6, 7), &Default::default(), b"x");
        let mut mapped = mapped;
        mapped[8..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1]);
        frames::fill_checksum(&mut mapped);
        write(tun, &mapped).unwrap();
        sources.len() as u64 + v6.len() as u64 + 1
    });
}

#[test]
fn only_tcp_packets_leave() {
    let Some(attack) = Attack::new() else { return };
    let good = tcp(mine(), theirs(), ACK, &[7; 64]);
    attack.assert_dropped("not-tcp", |tun| {
        write(tun, &packets::udp(mine(), theirs(), b"dns?")).unwrap();
        let [host, peer] = [HOST4, PEER4].map(|text| text.parse::<IpAddr>().unwrap());
        let error = transom_wire::IcmpMessage::Unreachable {
            code: transom_wire::UnreachableCode::Host,
            quoted: &good,
        };
        write(tun, &packets::icmp(host, peer, &error)).unwrap();
        for protocol in [2u8, 4, 41, 47, 50, 89, 132, 255] {
            let mut other = good.clone();
            other[9] = protocol;
            fill_ipv4_checksum(&mut other);
            write(tun, &other).unwrap();
        }
        // A neighbour advertisement would take addresses over.
        let mut advertisement = tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 12]);
        advertisement[6] = 58;
        advertisement[40] = 136;
        write(tun, &advertisement).unwrap();
        11
    });
    attack.assert_dropped("fragment", |tun| {
        for field in [0x2000u16, 1, 0x1fff, 0x2001] {
            let mut fragment = good.clone();
            fragment[6..8].copy_from_slice(&field.to_be_bytes());
            fill_ipv4_checksum(&mut fragment);
            write(tun, &fragment).unwrap();
        }
        let mut fragment = tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 12]);
        fragment[6] = 44;
        write(tun, &fragment).unwrap();
        5
    });
    attack.assert_dropped("ip-options", |tun| {
        for options in [
            &[131u8, 7, 4, 192, 0, 2, 2, 0][..], // loose source route
            &[137, 7, 4, 192, 0, 2, 2, 0],       // strict source route
            &[7, 7, 4, 0, 0, 0, 0, 0],           // record route
            &[148, 4, 0, 0],                     // router alert
        ] {
            write(tun, &packets::with_ip_options(&good, options)).unwrap();
        }
        for header in [0u8, 43, 60] {
            let mut packet = tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 12]);
            packet[6] = header;
            write(tun, &packet).unwrap();
        }
        7
    });
    attack.assert_dropped("malformed", |tun| {
        let mut longer = good.clone();
        longer.push(0);
        write(tun, &longer).unwrap();
        write(tun, &good[..good.len() - 1]).unwrap();
        let mut header = good.clone();
        header[20 + 12] = 0x40; // a header of 16 bytes
        write(tun, &header).unwrap();
        // One of 60 bytes, and the packet ends before.
        write(tun, &with_tcp_header_past_the_end(&good[..20 + 20])).unwrap();
        4
    });
}

/// A whole packet whose TCP header says that it is longer than the packet.
fn with_tcp_header_past_the_end(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[20 + 12] = 0xf0;
    fill_ipv4_checksum(&mut packet);
    packet
}

fn fill_ipv4_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = transom_wire::checksum::Sum::of(&packet[..20]).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn packets_to_forbidden_destinations_are_dropped() {
    let Some(attack) = Attack::new() else { return };
    attack.assert_dropped("destination", |tun| {
        let to4 = ["224.0.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0", "240.0.0.1"];
        for to in to4 {
            write(tun, &tcp(mine(), at(to, 7), SYN, &[])).unwrap();
        }
        let to6 = ["ff02::1", "::1", "::"];
        for to in to6 {
            write(tun, &tcp(at(HOST6, 8000), at(to, 7), SYN, &[])).unwrap();
        }
        (to4.len() + to6.len()) as u64
    });
    attack.assert_dropped("no-route", |tun| {
        write(tun, &tcp(mine(), at("198.51.100.1", 7), SYN, &[])).unwrap();
        // The network's own broadcast address.
        write(tun, &tcp(mine(), at("192.0.2.255", 7), SYN, &[])).unwrap();
        2
    });
    // An interface that is no uplink: a tunnel, or a container's.
    attack.net.join("inside", ["10.9.9.1", "fd00::1"], ["10.9.9.2", "fd00::2"]);
    attack.assert_dropped("not-an-uplink", |tun| {
        write(tun, &tcp(mine(), at("10.9.9.2", 7), SYN, &[])).unwrap();
        write(tun, &tcp(at(HOST6, 8000), at("fd00::2", 7), SYN, &[])).unwrap();
        2
    });
    attack.assert_dropped("too-big", |tun| {
        write(tun, &tcp(mine(), theirs(), ACK, &[0; 1500 - 39])).unwrap();
        1
    });
}

/// The kernel completes the checksum after the guard has looked: at any place of the packet, if it is let.
#[test]
fn a_checksum_offload_cannot_write_into_other_fields() {
    let Some(attack) = Attack::new() else { return };
    let packet = tcp(mine(), theirs(), ACK, &[0; 100]);
    let v6 = tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 100]);
    attack.assert_dropped("offload", |tun| {
        let mut sent = 0;
        for packet in [&packet, &v6] {
            let start = header_len(packet) as u16;
            // The source port, the destination port, the sequence number, the data; and sums that begin elsewhere.
            for (start, offset) in [
                (start, 0),
                (start, 2),
                (start, 4),
                (start, 18),
                (start, 40),
                (start + 16, 0),
                (start - 4, 4),
                (0, 16),
                (12, 0),
                (start - 4, 20),
            ] {
                // A packet that the kernel refuses does not come to the guard.
                let header = virtio(NEEDS_CHECKSUM, 0, 0, start, offset);
                if write_with(tun, &header, packet).is_ok() {
                    sent += 1;
                }
            }
        }
        assert!(sent > 10, "{sent}");
        sent
    });
    // Its own place is fine.
    let header = virtio(NEEDS_CHECKSUM, 0, 0, 20, 16);
    write_with(&attack.tun, &header, &packet).unwrap();
    assert_eq!(attack.take_sent_packets().len(), 1);
}

#[test]
fn super_segments_are_tcp_and_their_segments_are_not_too_small() {
    let Some(attack) = Attack::new() else { return };
    let long = tcp(mine(), theirs(), ACK, &[0; 30_000]);
    let v6 = tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 30_000]);
    let super_segment = |kind, size, packet: &[u8]| {
        virtio(NEEDS_CHECKSUM, kind, size, header_len(packet) as u16, 16)
    };
    attack.assert_dropped("small-segment", |tun| {
        let mut sent = 0;
        for size in [1, 2, 40, 87] {
            for (kind, packet) in [(TCPV4, &long), (TCPV6, &v6)] {
                if write_with(tun, &super_segment(kind, size, packet), packet).is_ok() {
                    sent += 1;
                }
            }
        }
        assert!(sent > 0);
        sent
    });
    attack.assert_dropped("offload", |tun| {
        let mut sent = 0;
        for kind in [UDP, UDP_L4, TCPV4, TCPV6] {
            for packet in [&long, &v6] {
                let fits =
                    (kind == TCPV4) == (packet[0] >> 4 == 4) && (kind == TCPV4 || kind == TCPV6);
                if !fits && write_with(tun, &super_segment(kind, 1000, packet), packet).is_ok() {
                    sent += 1;
                }
            }
        }
        sent
    });
    attack.assert_dropped("too-big", |tun| {
        write_with(tun, &super_segment(TCPV4, 1461, &long), &long).unwrap();
        write_with(tun, &super_segment(TCPV6, 1441, &v6), &v6).unwrap();
        2
    });
    // Those of the right kind go through, in whatever pieces they come out.
    write_with(&attack.tun, &super_segment(TCPV4, 1460, &long), &long).unwrap();
    write_with(&attack.tun, &super_segment(TCPV6, 1440, &v6), &v6).unwrap();
    let bytes: usize = attack
        .take_sent_packets()
        .iter()
        .map(|packet| packet.len() - header_len(packet) - 20)
        .sum();
    assert_eq!(bytes, 60_000);
    let sent = attack.net.lease(&attack.device).sent_packets;
    assert_eq!(sent, 21 + 21 + 4, "counted as on the wire, and the marks");
}

#[test]
fn random_headers_and_packets_do_no_harm() {
    let Some(attack) = Attack::new() else { return };
    attack.net.kernel_echo(at(HOST4, 80));
    let mut kernel = attack.net.connect(at(HOST4, 80)).unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let good =
        [tcp(mine(), theirs(), ACK, &[0; 300]), tcp(at(HOST6, 8000), at(PEER6, 7), ACK, &[0; 300])];
    for round in 0..20_000 {
        let mut packet = good[round % 2].clone();
        let mut header = [0; VirtioNetHdr::LEN];
        for _ in 0..random() % 4 {
            let at = random() as usize % 64;
            packet[at] = random() as u8;
        }
        for byte in &mut header {
            if random() % 3 == 0 {
                *byte = random() as u8;
            }
        }
        // The kernel may refuse a packet.
        let _ = write_with(&attack.tun, &header, &packet);
    }
    let out = attack.take_sent_packets();
    for packet in &out {
        let from = frames::ends(packet).map(|(from, _)| from);
        assert!(
            from == Some(mine()) || from == Some(at(HOST6, 8000)) || from == Some(at(HOST4, 80)),
            "{packet:?}"
        );
    }
    assert!(echoes(&mut kernel, 100_000));
}

/// `/dev/net/tun`, on the host.
fn open_tun(net: &Net) -> OwnedFd {
    let open = || std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    net.host.run(open).unwrap().unwrap().into()
}

#[test]
fn another_process_cannot_attach_a_queue() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let holder = Holder::start(&net, NOBODY);
    let device = holder.open_with(2).unwrap();
    for user in [SOMEBODY, NOBODY] {
        let other = Holder::start(&net, user);
        let error = other.attach(&open_tun(&net), &device.opened.device, "many").unwrap_err();
        assert!(error.contains("PermissionDenied"), "{user}: {error}");
    }
}

#[test]
fn no_packet_leaves_with_a_vlan_tag() {
    let Some(net) = Net::new() else { return };
    let (mut broker, holder, mut device) = start_with_device(&net, RULES);
    holder.bind(mine()).unwrap();
    let tap = Tap::new(&net);
    // The device outlives its descriptor for a moment, between two looks of a broker. Here there is none meanwhile.
    broker.kill();
    let before = device.queues.remove(0);
    set_persistent(&before, true);
    holder.ask("close").unwrap();
    drop(before);
    // The packet's protocol comes first from now on, as whoever opens it says.
    let tun = open_tun(&net);
    // The broker's and the holder's own descriptors may close late.
    until("the device is free", || attach(&tun, &device.opened.device, false, true).is_ok());
    set_persistent(&tun, false);
    let good = tcp(mine(), theirs(), ACK, b"x");
    let header = [0; VirtioNetHdr::LEN];
    let tagged = [&[0, 0, 0x81, 0][..], &header, &[0, 42, 8, 0], &good].concat();
    rustix::io::write(&tun, &tagged).unwrap();
    let mark = tcp(mine(), theirs(), ACK, b"mark");
    rustix::io::write(&tun, &[&[0, 0, 8, 0][..], &header, &mark].concat()).unwrap();
    let out = tap.until(|packet| packet == mark);
    assert!(!out.contains(&good));
    let _broker = BrokerProcess::start(&net, RULES);
    assert_eq!(net.drops("malformed"), 1);
}

#[test]
fn packets_with_ipv4_mapped_addresses_are_dropped() {
    let Some(attack) = Attack::new() else { return };
    let mapped = |address: [u8; 4]| {
        let mut bytes = [0; 16];
        bytes[10..12].fill(255);
        bytes[12..].copy_from_slice(&address);
        bytes
    };
    let v6 = || tcp(at(PEER6, 7), at(HOST6, 8000), ACK, b"mapped");
    attack.assert_dropped("destination", |tun| {
        let mut packet = tcp(at(HOST6, 8000), at(PEER6, 8000), ACK, b"x");
        packet[24..40].copy_from_slice(&mapped([192, 0, 2, 1]));
        frames::fill_checksum(&mut packet);
        write(tun, &packet).unwrap();
        1
    });
    let (mut from, mut to) = (v6(), v6());
    from[8..24].copy_from_slice(&mapped([192, 0, 2, 2]));
    to[24..40].copy_from_slice(&mapped([192, 0, 2, 1]));
    frames::fill_checksum(&mut from);
    frames::fill_checksum(&mut to);
    let last = tcp(at(PEER6, 7), at(HOST6, 8000), ACK, b"last");
    for packet in [&from, &to, &last] {
        attack.tap.send(packet);
    }
    let received = frames::until(&attack.tun, &last);
    assert!(!received.contains(&from) && !received.contains(&to));
}

#[test]
fn a_device_cannot_be_opened_by_others_or_outlive_its_process() {
    let Some(attack) = Attack::new() else { return };
    let Attack { net, tun, device, .. } = &attack;
    // Another user, and another process of the same user, open it by its name.
    for user in [SOMEBODY, NOBODY] {
        let other = Holder::start(net, user);
        assert!(other.attach(&open_tun(net), device, "one").is_err(), "{user}");
    }
    // Without a cable nobody but the process itself misses anything.
    net.kernel_echo(at(HOST4, 80));
    set_carrier(tun, false);
    attack.tap.send(&tcp(theirs(), mine(), ACK, b"into the void"));
    assert!(echoes(&mut net.connect(at(HOST4, 80)).unwrap(), 100_000));
    set_carrier(tun, true);
    // A process that makes its device persistent loses it.
    set_persistent(tun, true);
    until("the lease has ended", || net.status().leases.is_empty());
    assert!(!net.interfaces().contains(device));
    assert!(write(tun, &tcp(mine(), theirs(), ACK, b"x")).is_err());
    let tampered = net.status().broker.into_iter().find(|count| count.name == "tampered").unwrap();
    assert_eq!(tampered.count, 1);
}

#[test]
fn a_copied_descriptor_fails_after_its_process_has_ended() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let mut holder = Holder::start(&net, NOBODY);
    // The test has a copy.
    let device = holder.open().unwrap();
    holder.bind(mine()).unwrap();
    write(&device.queues[0], &tcp(mine(), theirs(), ACK, b"x")).unwrap();
    holder.kill();
    until("the lease has ended", || net.status().leases.is_empty());
    assert!(write(&device.queues[0], &tcp(mine(), theirs(), ACK, b"x")).is_err());
    assert!(!net.interfaces().contains(&device.opened.device));
}

#[test]
fn floods_are_bounded_by_the_rate() {
    let Some(net) = Net::new() else { return };
    let rules = "[[allow]]\nuser = 65534\nports = \"8000\"\npackets-per-second = 1000\n";
    let (_broker, holder, device) = start_with_device(&net, rules);
    assert_eq!(device.opened.packets_per_second, Some(1000));
    holder.bind(mine()).unwrap();
    let tun = &device.queues[0];
    let (one, many) = (tcp(mine(), theirs(), ACK, b"x"), tcp(mine(), theirs(), ACK, &[0; 60_000]));
    let header = virtio(NEEDS_CHECKSUM, TCPV4, 100, 20, 16);
    let start = Instant::now();
    let mut tried = 0;
    while start.elapsed() < Duration::from_secs(1) {
        for _ in 0..100 {
            write(tun, &one).unwrap();
            // 600 packets in one.
            write_with(tun, &header, &many).unwrap();
            tried += 601;
        }
    }
    let lease = net.lease(&device.opened.device);
    let most = start.elapsed().as_secs_f64() * 1000.0 + 1000.0 + 601.0;
    assert!((lease.sent_packets as f64) <= most, "{} of {tried}", lease.sent_packets);
    assert!(lease.sent_packets >= 900, "{lease:?}");
    assert!(lease.drops.iter().any(|count| count.name == "rate" && count.count > 0), "{lease:?}");
}

/// Otherwise each device of a user would have the rate anew.
#[test]
fn the_devices_of_a_user_share_its_rate() {
    let Some(net) = Net::new() else { return };
    let rules = "[[allow]]\nuser = 65534\nports = \"8000-8003\"\npackets-per-second = 100\n";
    let mut broker = BrokerProcess::start(&net, rules);
    let holders: Vec<_> = (0..4).map(|_| Holder::start(&net, NOBODY)).collect();
    let devices: Vec<_> = holders.iter().map(|holder| holder.open().unwrap()).collect();
    let sent = || net.status().leases.iter().map(|lease| lease.sent_packets).sum::<u64>();
    let start = Instant::now();
    for (number, holder) in holders.iter().enumerate() {
        holder.bind(at(HOST4, 8000 + number as u16)).unwrap();
    }
    for round in 0..3 {
        for (number, device) in devices.iter().enumerate() {
            let from = at(HOST4, 8000 + number as u16);
            for _ in 0..2000 {
                write(&device.queues[0], &tcp(from, theirs(), ACK, b"x")).unwrap();
            }
        }
        // Packets that were sent already still count at a new broker.
        if round == 0 {
            broker.kill();
            broker = BrokerProcess::start(&net, rules);
        }
    }
    // A burst of a thousand, and the rate.
    let most = start.elapsed().as_secs_f64() * 100.0 + 1001.0;
    assert!((900.0..=most).contains(&(sent() as f64)), "{} of {most}", sent());
}

/// Connections that one process begins must not push out those of another: its peers would not hear of its end.
#[test]
fn a_flood_of_connections_does_not_push_out_those_of_others() {
    let Some(net) = Net::new() else { return };
    let _broker = BrokerProcess::start(&net, RULES);
    let (attacker, mut victim) = (Holder::start(&net, NOBODY), Holder::start(&net, SOMEBODY));
    let device = attacker.open().unwrap();
    attacker.bind(mine()).unwrap();
    victim.open().unwrap();
    victim.bind(at(HOST4, 9000)).unwrap();
    victim.ask(&format!("serve {}", at(HOST4, 9000))).unwrap();
    let mut idle = net.connect(at(HOST4, 9000)).unwrap();
    assert!(echoes(&mut idle, 100));
    for number in 0..70_000u32 {
        let to = at(&format!("192.0.2.{}", 10 + number % 200), 1 + (number / 200) as u16);
        write(&device.queues[0], &tcp(mine(), to, SYN, &[])).unwrap();
    }
    victim.kill();
    let error = std::io::Read::read(&mut idle, &mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    drop(attacker);
    until("the leases have ended", || net.status().leases.is_empty());
}

#[test]
fn packets_of_peers_outside_the_policy_are_dropped() {
    let Some(net) = Net::new() else { return };
    let rules = "[[allow]]\nuser = 65534\nports = \"8000\"\npeers = [\"192.0.2.2\"]\n";
    let (_broker, holder, device) = start_with_device(&net, rules);
    holder.bind(mine()).unwrap();
    let tap = Tap::new(&net);
    let tun = &device.queues[0];
    let stranger = at("192.0.2.3", 7);
    tap.send(&tcp(stranger, mine(), SYN, &[]));
    let good = tcp(theirs(), mine(), SYN, &[]);
    tap.send(&good);
    assert_eq!(frames::until(tun, &good), [good]);
    assert_eq!(net.demuxed("peer"), 1);
    write(tun, &tcp(mine(), stranger, SYN, &[])).unwrap();
    let good = tcp(mine(), theirs(), SYN, &[]);
    write(tun, &good).unwrap();
    let out = tap.until(|packet| packet == good);
    assert!(!out.iter().any(|packet| frames::ends(packet).is_some_and(|(_, to)| to == stranger)));
    assert_eq!(net.drops("peer"), 1);
}
