use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_wire::IpPacket;
use transom_wire::checksum::Sum;
use transom_wire::ip::{Ecn, set_ecn};
use transom_wire::offload::{RxChecksum, SegmentKind, Segmentation, TxChecksum, TxOffload};

use super::*;

/// A clock that tests move by hand.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::SeqCst);
    }
}

fn path(egress: &str, ingress: &str) -> PathConfig {
    PathConfig { egress: egress.parse().unwrap(), ingress: ingress.parse().unwrap(), seed: 1 }
}

fn emulated(config: &PathConfig) -> (Emulated<MemoryDevice>, MemoryDevice, Hand) {
    let (near, far) = pair(&MemoryConfig::with_offload()).unwrap();
    let hand = Hand::default();
    let clock = hand.clone();
    let device = Emulated::new(near, config)
        .unwrap()
        .with_clock(move || Instant::from_micros(clock.0.load(Ordering::SeqCst)));
    (device, far, hand)
}

fn nothing(device: &mut impl Device) {
    assert_eq!(device.recv().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// Whether the device's descriptor becomes readable within `millis`.
fn readable(device: &impl Device, millis: i64) -> bool {
    let fd = device.poll_fd().unwrap();
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: (millis * 1_000_000) as _ };
    poll(&mut fds, Some(&timeout)).unwrap() == 1
}

/// An IPv4 packet with a TCP header and `payload` bytes, both checksums complete unless `open`.
fn tcp_packet(payload: usize, open: bool) -> Vec<u8> {
    let total = 40 + payload;
    let mut packet = vec![0u8; total];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    packet[8] = 64;
    packet[9] = 6;
    packet[12..16].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 1).octets());
    packet[16..20].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 2).octets());
    let header = Sum::of(&packet[..20]).checksum();
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet[32] = 5 << 4;
    packet[33] = 0x10;
    for (at, byte) in packet[40..].iter_mut().enumerate() {
        *byte = at as u8;
    }
    // RFC 9293 section 3.1: addresses, protocol and TCP length.
    let pseudo = Sum::of(&packet[12..20]) + Sum(6) + Sum((total - 20) as u16);
    let field =
        if open { !pseudo.checksum() } else { (pseudo + Sum::of(&packet[20..])).checksum() };
    packet[36..38].copy_from_slice(&field.to_be_bytes());
    packet
}

/// Whether the TCP checksum of an IPv4 packet is right.
fn verifies(packet: &[u8]) -> bool {
    let pseudo = Sum::of(&packet[12..20]) + Sum(6) + Sum((packet.len() - 20) as u16);
    (pseudo + Sum::of(&packet[20..])).checksum() == 0
}

#[test]
fn packets_take_their_time_in_both_directions() {
    let (mut device, mut far, hand) = emulated(&path("delay=10ms", "delay=20ms"));
    let packet = tcp_packet(10, false);
    device.send(&TxPacket::whole(&packet)).unwrap();
    far.send(&TxPacket::whole(&packet)).unwrap();
    nothing(&mut device); // the ingress link has the packet from now on
    hand.set(9_999);
    nothing(&mut device);
    nothing(&mut far);
    hand.set(10_000);
    nothing(&mut device); // but the egress link delivers
    assert_eq!(far.recv().unwrap().bytes(), packet);
    hand.set(19_999);
    nothing(&mut device);
    hand.set(20_000);
    let received = device.recv().unwrap();
    assert_eq!(received.bytes(), packet);
    assert_eq!(received.offload, RxOffload::default(), "nobody vouches for the checksum");
    let report = device.monitor().report();
    assert_eq!((report.egress.delivered.packets, report.ingress.delivered.packets), (1, 1));
    assert_eq!(report.refused, 0);
}

/// In both directions, and the header's checksum stays right.
#[test]
fn codepoints_are_cleared_on_the_way() {
    let (mut device, mut far, clock) = emulated(&path("bleach=ect1", "bleach=all"));
    let mut packet = tcp_packet(10, false);
    set_ecn(&mut packet, Ecn::Ect1).unwrap();
    device.send(&TxPacket::whole(&packet)).unwrap();
    far.send(&TxPacket::whole(&packet)).unwrap();
    clock.0.fetch_add(1, Ordering::SeqCst);
    let back = device.recv().unwrap();
    let there = far.recv().unwrap();
    for arrived in [there, back] {
        assert_eq!(IpPacket::parse(arrived.bytes()).map(|ip| ip.ecn()), Ok(Ecn::NotEct));
        assert_eq!(Sum::of(&arrived.bytes()[..20]).checksum(), 0);
        assert!(verifies(arrived.bytes()));
    }
}

#[test]
fn the_rate_spaces_packets_and_the_queue_is_watched() {
    // 1000 bytes take 1 ms at 8 Mbit/s; two wait while one is transmitted, and the fourth finds no room.
    let (near, mut far) = pair(&MemoryConfig::default()).unwrap();
    let hand = Hand::default();
    let clock = hand.clone();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let mut device = Emulated::new(near, &path("rate=8Mbit/s, queue=2 packets", ""))
        .unwrap()
        .with_clock(move || Instant::from_micros(clock.0.load(Ordering::SeqCst)))
        .observe_queues([
            Box::new(move |sample: QueueSample| {
                seen.lock().unwrap().push((sample.at.as_micros(), sample.length.packets));
            }) as Box<dyn FnMut(QueueSample) + Send>,
            Box::new(|_| ()),
        ]);
    let packet = tcp_packet(960, false);
    for _ in 0..4 {
        device.send(&TxPacket::whole(&packet)).unwrap();
    }
    let monitor = device.monitor();
    assert_eq!(monitor.egress_queue(Instant::ZERO).packets, 2);
    for milli in 1..=4 {
        hand.set(milli * 1000 - 1);
        nothing(&mut device);
        nothing(&mut far);
        hand.set(milli * 1000);
        nothing(&mut device);
        assert_eq!(far.recv().is_ok(), milli <= 3, "at {milli} ms");
    }
    assert_eq!(monitor.report().egress.queue_full.packets, 1);
    assert_eq!(*events.lock().unwrap(), [(0, 1), (0, 2), (0, 2), (1000, 1), (2000, 0)]);
}

#[test]
fn super_segments_are_cut_and_checksums_completed_before_the_link() {
    let (mut device, mut far, hand) = emulated(&path("delay=1ms", "delay=1ms"));
    let packet = tcp_packet(3000, true);
    let offload = TxOffload {
        checksum: TxChecksum::Partial { start: 20, offset: 16 },
        segmentation: Some(Segmentation {
            kind: SegmentKind::Tcp4,
            segment_size: 1460,
            header_len: 40,
        }),
    };
    let (headers, payload) = packet.split_at(40);
    let (first, second) = payload.split_at(100);
    let sent = TxPacket { headers, payload: [first, second], offload };
    device.send(&sent).unwrap();
    far.send(&sent).unwrap();
    nothing(&mut device);
    hand.set(1_000);
    for direction in ["ingress", "egress"] {
        let mut bytes = Vec::new();
        for (nth, size) in [1460, 1460, 80].into_iter().enumerate() {
            let received = match direction {
                "ingress" => device.recv(),
                _ => far.recv(),
            }
            .unwrap();
            let packet = received.bytes();
            assert_eq!(packet.len(), 40 + size, "{direction}");
            assert_eq!(packet[24..28], (nth as u32 * 1460).to_be_bytes(), "the sequence number");
            assert!(verifies(packet), "{direction} segment {nth}");
            assert_eq!(Sum::of(&packet[..20]).checksum(), 0, "the IPv4 header's checksum");
            assert_eq!(received.offload.checksum, RxChecksum::Unverified);
            bytes.extend_from_slice(&packet[40..]);
        }
        assert_eq!(bytes, payload, "{direction}");
    }
}

#[test]
fn damage_comes_after_the_checksum_and_leaves_the_copy_alone() {
    let config = path("corrupt=100%", "corrupt=50%, duplicate=100%");
    let (mut device, mut far, _) = emulated(&config);
    let packet = tcp_packet(500, false);
    let flipped = |received: &[u8]| {
        assert_eq!(received.len(), packet.len());
        let pairs = received.iter().zip(&packet);
        pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
    };
    // The far end is told that a checksum left open is valid; here nothing is left open.
    let open = tcp_packet(500, true);
    let checksum = TxChecksum::Partial { start: 20, offset: 16 };
    device
        .send(&TxPacket {
            headers: &open,
            payload: [&[]; 2],
            offload: TxOffload { checksum, segmentation: None },
        })
        .unwrap();
    let received = far.recv().unwrap();
    assert_eq!(flipped(received.bytes()), 1);
    assert_eq!(received.offload.checksum, RxChecksum::Unverified);

    let mut counts = [0; 2];
    for _ in 0..100 {
        far.send(&TxPacket::whole(&packet)).unwrap();
        for _ in 0..2 {
            let received = device.recv().unwrap();
            counts[flipped(received.bytes()) as usize] += 1;
            device.recycle(received.buffer);
        }
    }
    // 200 copies, each damaged with probability one half: mean 100, standard deviation 7.
    assert!((65..=135).contains(&counts[1]), "{counts:?}");
    assert_eq!(device.monitor().report().ingress.corrupted, counts[1]);
}

#[test]
fn the_descriptor_is_readable_for_arrivals_and_for_departures() {
    let (near, mut far) = pair(&MemoryConfig::default()).unwrap();
    let mut device = Emulated::new(near, &path("delay=30ms", "delay=30ms")).unwrap();
    assert!(!readable(&device, 1));
    let packet = tcp_packet(1, false);

    let sent = std::time::Instant::now();
    device.send(&TxPacket::whole(&packet)).unwrap();
    assert!(readable(&device, 900), "when the packet leaves the egress link");
    assert!(sent.elapsed().as_millis() >= 29, "and not before");
    nothing(&mut device);
    assert!(far.recv().is_ok());
    assert!(!readable(&device, 1), "there is nothing more to do");

    let sent = std::time::Instant::now();
    far.send(&TxPacket::whole(&packet)).unwrap();
    assert!(readable(&device, 900), "when a packet reaches the inner device");
    nothing(&mut device);
    assert!(readable(&device, 900), "when it leaves the ingress link");
    assert!(sent.elapsed().as_millis() >= 29, "and not before");
    assert!(device.recv().is_ok());
    nothing(&mut device);
    assert!(!readable(&device, 1));
}

#[test]
fn packets_that_the_path_cannot_carry_are_refused() {
    let (mut device, _far, _) = emulated(&path("", ""));
    let packet = tcp_packet(1461, false);
    let error = device.send(&TxPacket::whole(&packet)).unwrap_err();
    assert_eq!(SendError::of(&error), Some(SendError::TooLong { length: 1501, limit: 1500 }));
}

#[test]
fn two_stacks_agree_over_a_bad_path() {
    use std::io::{Read, Write};
    use transom_net::Stack;

    let (near, far) = pair(&MemoryConfig::with_offload()).unwrap();
    let bad =
        "delay=2ms, jitter=uniform(1ms), loss=1%, duplicate=1%, corrupt=1%, reorder=1% by 3ms";
    let device = Emulated::new(near, &path(bad, bad)).unwrap();
    let monitor = device.monitor();
    let left = Stack::builder().address([10, 0, 0, 1].into(), 24).start(device).unwrap();
    let right = Stack::builder().address([10, 0, 0, 2].into(), 24).start(far).unwrap();
    let listener = right.listen("10.0.0.2:7").unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
    });
    let mut stream = left.connect("10.0.0.2:7").unwrap();
    let data: Vec<u8> = (0..400_000u32).flat_map(|n| n.to_le_bytes()).collect();
    let writer = std::thread::spawn({
        let (mut stream, data) = (stream.try_clone().unwrap(), data.clone());
        move || {
            stream.write_all(&data).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
    });
    let mut echo = Vec::new();
    stream.read_to_end(&mut echo).unwrap();
    writer.join().unwrap();
    server.join().unwrap();
    assert!(echo == data, "{} of {} bytes, or different ones", echo.len(), data.len());
    let report = monitor.report();
    for link in [report.egress, report.ingress] {
        assert!(link.lost.packets > 0 && link.corrupted > 0 && link.duplicated.packets > 0);
        assert!(link.reordered > 0);
    }
    let damaged = left.counters().bad_checksum + right.counters().bad_checksum;
    assert!(damaged > 0, "the checksum catches the damage");
}

/// The n-th packet that comes in after it meets the fate of the n-th that went out.
#[test]
fn turned_round_the_way_back_is_as_the_way_there_was() {
    let (mut device, mut far, _) = emulated(&path("loss=10%", "loss=10%"));
    let fates = |from: &mut dyn Device, to: &mut dyn Device| -> Vec<bool> {
        let fate = |length: usize| {
            from.send(&TxPacket::whole(&tcp_packet(length, false))).unwrap();
            to.recv().is_ok()
        };
        (0..300).map(fate).collect()
    };
    let out = fates(&mut device, &mut far);
    assert!(out.iter().any(|arrived| !arrived));
    device.monitor().reseed_reversed();
    assert_eq!(fates(&mut far, &mut device), out);
}
