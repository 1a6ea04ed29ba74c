//! Control as a whole: handshakes, what is left alone, what must not be harmed.

use std::vec;
use std::vec::Vec;

use core::net::SocketAddr;

use transom_base::time::{Duration, Instant};
use transom_wire::tcp::{Flags, Options, TcpHeader, TcpPacket};
use transom_wire::{IpHeader, IpPacket, Protocol, Seq, checksum};

use super::*;
use crate::queue::Length;

/// A TCP packet with its checksums.
pub(super) fn packet(
    src: SocketAddr,
    dst: SocketAddr,
    flags: Flags,
    (seq, ack): (u32, u32),
    window: u16,
    options: &Options,
    payload: usize,
) -> Vec<u8> {
    let tcp = TcpHeader {
        src_port: src.port(),
        dst_port: dst.port(),
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window,
        options: *options,
        ..TcpHeader::default()
    };
    let mut segment = vec![0; tcp.header_len() + payload];
    tcp.emit(&mut segment).unwrap();
    segment.iter_mut().skip(tcp.header_len()).zip(1u8..=255).for_each(|(byte, n)| *byte = n);
    checksum::fill(src.ip(), dst.ip(), Protocol::TCP, &mut segment, 16).unwrap();
    let mut packet = vec![0; 40];
    let header = IpHeader::new(src.ip(), dst.ip(), Protocol::TCP);
    let header_len = header.emit(segment.len(), &mut packet).unwrap();
    packet.truncate(header_len);
    packet.extend(segment);
    packet
}

/// Whether all checksums of a packet are right.
pub(super) fn is_sound(packet: &[u8]) -> bool {
    let ip = IpPacket::parse(packet).unwrap();
    ip.transport_checksum_ok()
}

pub(super) fn window_of(packet: &[u8]) -> u16 {
    TcpPacket::parse(IpPacket::parse(packet).unwrap().payload()).unwrap().header.window
}

/// A policy that always wishes for the same window.
#[derive(Debug)]
struct Always(u64);

impl Policy for Always {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> AckAction {
        AckAction::Window { bytes: self.0, fall: true }
    }
}

/// Notes what it is told of acknowledgements.
#[derive(Debug)]
struct Notes(std::sync::mpsc::Sender<AckContext>);

impl Policy for Notes {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        self.0.send(*ack).unwrap();
        AckAction::AsItIs
    }
}

pub(super) fn config() -> ControlConfig {
    ControlConfig {
        flows: 1000,
        ..ControlConfig::new(
            "target-window(upper=35 packets, lower=15 packets, rule=section-3.2)".parse().unwrap(),
        )
    }
}

pub(super) fn always(bytes: u64) -> WindowControl {
    WindowControl::with_policy(std::boxed::Box::new(Always(bytes)), &config(), [3; 16])
}

/// A sender and a receiver with the box between them.
pub(super) struct Path {
    pub(super) control: WindowControl,
    pub(super) now: Instant,
    pub(super) sender: SocketAddr,
    pub(super) receiver: SocketAddr,
    pub(super) sender_scale: Option<u8>,
    pub(super) receiver_scale: Option<u8>,
    pub(super) mss: Option<u16>,
}

pub(super) const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

impl Path {
    pub(super) fn new(control: WindowControl) -> Self {
        Path {
            control,
            now: Instant::from_millis(1000),
            sender: "192.0.2.1:40000".parse().unwrap(),
            receiver: "198.51.100.2:80".parse().unwrap(),
            sender_scale: Some(7),
            receiver_scale: Some(7),
            mss: Some(1000),
        }
    }

    pub(super) fn forward(
        &mut self,
        flags: Flags,
        numbers: (u32, u32),
        options: &Options,
        payload: usize,
    ) {
        let packet = packet(self.sender, self.receiver, flags, numbers, 500, options, payload);
        self.control.forward(self.now, &packet, packet.len(), Length::default());
    }

    /// The window that comes out, of a packet that comes back.
    pub(super) fn back(
        &mut self,
        flags: Flags,
        numbers: (u32, u32),
        window: u16,
        options: &Options,
    ) -> u16 {
        let original = packet(self.receiver, self.sender, flags, numbers, window, options, 0);
        let mut packet = original.clone();
        let len = packet.len();
        let verdict = self.control.returning(
            self.now,
            &mut packet,
            len,
            ChecksumState::Complete,
            Length::default(),
        );
        assert_eq!(verdict.rewritten, packet != original);
        assert!(is_sound(&packet));
        window_of(&packet)
    }

    pub(super) fn options(&self, scale: Option<u8>) -> Options {
        Options { mss: self.mss, window_scale: scale, ..Options::default() }
    }

    /// The sender calls; initial sequence numbers 100 and 900, the receiver's first window 10,000.
    pub(super) fn call(&mut self) {
        let options = self.options(self.sender_scale);
        self.forward(Flags::SYN, (100, 0), &options, 0);
    }

    fn answer(&mut self) {
        let options = self.options(self.receiver_scale);
        assert_eq!(self.back(SYN_ACK, (900, 101), 10_000, &options), 10_000);
    }

    fn connect(&mut self) {
        self.call();
        self.answer();
        self.forward(Flags::ACK, (101, 901), &Options::default(), 0);
    }

    pub(super) fn ack(&mut self, number: u32, window: u16) -> u16 {
        self.back(Flags::ACK, (901, number), window, &Options::default())
    }
}

#[test]
fn a_handshake_teaches_the_scale() {
    let mut path = Path::new(always(2000));
    path.connect();
    assert_eq!(path.control.report().counters.opened, 1);
    // 10,000 bytes were told up to 10,101; 9000 of them are acknowledged. 2000 bytes are 15.6 units of 128.
    assert_eq!(path.ack(9101, 500), 16);
    // Without scaling on the sender's side the field is bytes.
    for (sender, receiver) in [(None, Some(7)), (Some(7), None), (None, None)] {
        let mut path = Path::new(always(2000));
        (path.sender_scale, path.receiver_scale) = (sender, receiver);
        path.connect();
        assert_eq!(path.ack(9101, 5000), 2000, "{sender:?} {receiver:?}");
    }
}

#[test]
fn the_receiver_may_call() {
    let mut path = Path::new(always(2000));
    let options = path.options(Some(7));
    assert_eq!(path.back(Flags::SYN, (900, 0), 10_000, &options), 10_000);
    path.now += Duration::from_millis(20);
    path.forward(SYN_ACK, (100, 901), &options, 0);
    assert_eq!(path.control.report().counters.opened, 0);
    assert_eq!(path.ack(101, 500), 79, "the edge of the SYN's 10,000 bytes");
    assert_eq!(path.control.report().counters.opened, 1);
    assert_eq!(path.ack(9101, 500), 16);
}

#[test]
fn a_scale_above_14_is_14() {
    let mut path = Path::new(always(20_000));
    path.receiver_scale = Some(255);
    path.connect();
    assert_eq!(path.ack(10_101, 500), 2, "20,000 bytes in units of 16 KiB");
}

#[test]
fn connections_from_before_the_router_pass() {
    let mut path = Path::new(always(2000));
    assert_eq!(path.ack(9101, 500), 500);
    // Half of a handshake is as good as none.
    path.answer();
    assert_eq!(path.ack(9101, 500), 500);
    let mut path = Path::new(always(2000));
    path.call();
    assert_eq!(path.ack(9101, 500), 500);
    assert_eq!(
        (path.control.report().counters.unknown, path.control.report().counters.opened),
        (1, 0)
    );
}

#[test]
fn only_what_returns_comes_by() {
    let only = ControlConfig { returns_only: true, ..config() };
    let control = || WindowControl::with_policy(std::boxed::Box::new(Always(2000)), &only, [3; 16]);
    let mut path = Path::new(control());
    path.answer();
    assert_eq!((path.ack(102, 500), path.ack(9101, 500)), (79, 16));
    // Whether the answer to a caller's SYN scales cannot be known without it.
    let mut path = Path::new(control());
    let options = path.options(Some(7));
    path.back(Flags::SYN, (900, 0), 10_000, &options);
    assert_eq!((path.ack(102, 500), path.ack(9101, 500)), (500, 500));
}

#[test]
fn syns_without_a_wish_and_resets_are_not_touched() {
    let mut path = Path::new(always(1));
    path.connect();
    path.answer();
    let options = Options::default();
    assert_eq!(path.back(Flags::RST | Flags::ACK, (901, 101), 500, &options), 500);
    assert_eq!(path.back(Flags::RST, (901, 101), 500, &options), 500);
}

#[test]
fn an_impossible_acknowledgement_teaches_nothing() {
    let mut path = Path::new(always(2000));
    path.connect();
    assert_eq!(path.ack(9101, 500), 16);
    // Bytes beyond the edge cannot have been sent. If this were believed the edge would be anywhere.
    assert_eq!(path.ack(1_000_000, 500), 500);
    assert_eq!(path.ack(0x7000_0000, 500), 500);
    assert_eq!(path.control.report().counters.implausible, 2);
    assert_eq!(path.ack(10_101, 500), 16);
    // A flow of which nothing fits any more passes.
    (0..8).for_each(|_| assert_eq!(path.ack(1_000_000, 500), 500));
    assert_eq!(path.ack(10_101, 500), 500);
    assert_eq!(path.control.report().table.open, 0);
}

#[test]
fn a_syn_does_not_end_a_flow_that_goes_on_and_a_fin_makes_room_for_the_next() {
    let mut path = Path::new(always(2000));
    path.connect();
    let spoofed = path.options(Some(0));
    path.forward(Flags::SYN, (77, 0), &spoofed, 0);
    path.back(Flags::SYN, (77, 0), 1, &spoofed);
    assert_eq!(path.ack(9101, 500), 16);
    path.forward(Flags::FIN | Flags::ACK, (9101, 901), &Options::default(), 0);
    assert_eq!(path.ack(9102, 500), 16, "what is on its way is still governed");
    path.receiver_scale = Some(3);
    path.connect();
    assert_eq!(path.ack(9101, 500), 250);
    assert_eq!(path.control.report().counters.opened, 2);
}

#[test]
fn flows_are_reported() {
    let (tell, told) = std::sync::mpsc::channel();
    let policy = std::boxed::Box::new(Notes(tell));
    let mut path = Path::new(WindowControl::with_policy(policy, &config(), [3; 16]));
    path.call();
    path.now += Duration::from_millis(30);
    path.answer();
    path.now += Duration::from_millis(12);
    path.forward(Flags::ACK, (101, 901), &Options::default(), 0);
    path.ack(1101, 500);
    let context = told.recv().unwrap();
    let expected = AckContext {
        queue: Length::default(),
        advertised: 64_000,
        newly_acked: 1000,
        mss: 1000,
        rtt: Some(Duration::from_millis(42)),
        active: 1,
    };
    assert_eq!(context, expected);
    // A second flow in the same second, and one that acknowledges nothing new.
    path.sender.set_port(40_001);
    path.connect();
    path.ack(101, 500);
    assert_eq!(told.recv().unwrap().active, 1);
    path.ack(102, 500);
    assert_eq!(told.recv().unwrap().active, 2);
    // In the next second the last one still counts, then nothing does.
    path.now += Duration::from_secs(1);
    path.ack(103, 500);
    assert_eq!(told.recv().unwrap().active, 2);
    path.now += Duration::from_secs(5);
    path.ack(103, 500);
    assert_eq!(told.recv().unwrap().active, 1);
}

#[test]
fn partial_checksums_stay_as_they_are() {
    let mut path = Path::new(always(2000));
    path.connect();
    let mut packet =
        packet(path.receiver, path.sender, Flags::ACK, (901, 9101), 500, &Options::default(), 0);
    let before = packet.clone();
    let len = packet.len();
    let verdict = path.control.returning(
        path.now,
        &mut packet,
        len,
        ChecksumState::ToBeMade,
        Length::default(),
    );
    assert!(verdict.rewritten);
    let changed: Vec<usize> = (0..len).filter(|at| packet[*at] != before[*at]).collect();
    assert_eq!(changed, [34, 35], "the window and nothing else");
}

#[test]
fn packets_without_a_whole_tcp_header_pass() {
    let addresses = ["192.0.2.1:1", "[2001:db8::1]:1"].map(|text| text.parse().unwrap());
    for src in addresses {
        let whole = packet(src, src, Flags::ACK, (1, 1), 500, &Options::default(), 10);
        assert!(Segment::peek(&whole, whole.len()).is_some());
        let headers = whole.len() - 10;
        for len in 0..headers {
            assert_eq!(Segment::peek(&whole[..len], whole.len()), None, "{len} bytes of {src}");
            assert_eq!(Segment::peek(&whole[..len], len), None, "{len} bytes alone of {src}");
        }
        assert!(Segment::peek(&whole[..headers], whole.len()).is_some(), "headers alone");
        // Every byte of the headers, changed in every bit: nothing may fail.
        for bit in 0..headers * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let len = damaged.len();
            let mut control = always(1);
            control.forward(Instant::ZERO, &damaged, len, Length::default());
            let state = ChecksumState::Complete;
            control.returning(Instant::ZERO, &mut damaged, len, state, Length::default());
        }
    }
    let mut fragment =
        packet(addresses[0], addresses[0], Flags::ACK, (1, 1), 5, &Options::default(), 0);
    fragment[6] = 0x20;
    assert_eq!(Segment::peek(&fragment, 40), None, "more fragments");
    (fragment[6], fragment[7]) = (0, 1);
    assert_eq!(Segment::peek(&fragment, 40), None, "a later fragment");
}

#[test]
fn unreadable_packets_are_counted_and_other_protocols_are_not() {
    let mut control = always(2000);
    let mut pass = |bytes: &[u8], len: usize| {
        control.forward(Instant::ZERO, bytes, len, Length::default());
        let (mut one, mut other) = (bytes.to_vec(), bytes.to_vec());
        let (state, queue) = (ChecksumState::Complete, Length::default());
        control.returning(Instant::ZERO, &mut one, len, state, queue);
        let packet = &mut other[..];
        let mut all = [Returning { packet, len, checksum: state, verdict: Verdict::default() }];
        control.returning_all(Instant::ZERO, &mut all, queue);
        assert_eq!((&one[..], &other[..]), (bytes, bytes), "they pass as they are");
        control.report().counters.unreadable
    };
    let mut expected = 0;
    for text in ["192.0.2.1:1", "[2001:db8::1]:1"] {
        let at: SocketAddr = text.parse().unwrap();
        let whole = packet(at, at, Flags::ACK, (1, 1), 5, &Options::default(), 0);
        let next = if at.is_ipv4() { 9 } else { 6 };
        let with = |place: usize, value: u8| {
            let mut changed = whole.clone();
            changed[place] = value;
            changed
        };
        let len = whole.len();
        // Cut off in the IP header, in the TCP header, and by the length that the header says.
        let mut broken = vec![whole[..len - 1].to_vec(), whole[..10].to_vec()];
        let longer = if at.is_ipv4() { 3 } else { 5 };
        broken.push(with(longer, whole[longer] + 1));
        // A TCP header that is too short to be one, and a fragment.
        broken.push(with(len - 8, 0x40));
        broken.push(if at.is_ipv4() { with(6, 0x20) } else { with(next, 44) });
        for bytes in &broken {
            expected += 3;
            assert_eq!(pass(bytes, bytes.len()), expected, "{bytes:?}");
        }
        // Whole ones, UDP and what is no IP.
        for bytes in [&whole, &with(next, 17), &with(0, 0)] {
            assert_eq!(pass(bytes, len), expected, "{bytes:?}");
        }
    }
    assert_eq!(pass(&[], 0), expected);
}

#[test]
fn a_super_segment_longer_than_its_length_field() {
    for src in ["192.0.2.1:1", "[2001:db8::1]:1"].map(|text| text.parse::<SocketAddr>().unwrap()) {
        let mut packet = packet(src, src, Flags::ACK, (1, 1), 500, &Options::default(), 0);
        let length = if src.is_ipv4() { 2..4 } else { 4..6 };
        packet[length].fill(0);
        let headers = packet.len();
        let segment = Segment::peek(&packet, headers + 100_000).unwrap();
        assert_eq!(segment.payload, 100_000);
    }
}

#[test]
fn without_a_memory_every_acknowledgement_is_written_as_if_unscaled() {
    let naive =
        "target-window(upper=35 packets, lower=15 packets, initial=2kB, rule=section-3.2, naive)";
    let config = ControlConfig::new(naive.parse().unwrap());
    let mut path = Path::new(WindowControl::new(&config, [3; 16]).unwrap());
    assert_eq!(path.ack(9101, 500), 500, "never above");
    assert_eq!(path.ack(9101, 5000), 2000);
    assert_eq!(path.back(SYN_ACK, (1, 1), 5000, &Options::default()), 5000);
    assert_eq!(path.control.report().table, TableStats::default());
}

#[test]
fn nothing_is_done_and_everything_counted() {
    let config = ControlConfig { flows: 1000, ..ControlConfig::new(" none".parse().unwrap()) };
    let mut path = Path::new(WindowControl::new(&config, [3; 16]).unwrap());
    path.connect();
    for (number, window) in [(1101, 500), (9101, 7), (5101, 60_000)] {
        assert_eq!(path.ack(number, window), window);
    }
    // Of a connection that nobody has opened.
    path.sender.set_port(40_001);
    assert_eq!(path.ack(1101, 500), 500);
    let counters = path.control.report().counters;
    assert_eq!((counters.acks, counters.unknown, counters.opened), (4, 1, 1));
    assert_eq!((counters.rewritten, counters.held, counters.implausible), (0, 0, 0));
    assert_eq!(path.control.report().table.open, 1);
    assert_eq!(path.control.report().target, None);
}

#[test]
fn delayed_acknowledgements() {
    let config = ControlConfig::new("ack-delay(above=10kB, rate=8Mbit/s)".parse().unwrap());
    let mut control = WindowControl::new(&config, [3; 16]).unwrap();
    let address = "192.0.2.1:1".parse().unwrap();
    let mut packet = packet(address, address, Flags::ACK, (1, 1), 5, &Options::default(), 0);
    let queue = Length { packets: 10, bytes: 15_000 };
    let verdict = control.returning(Instant::ZERO, &mut packet, 40, ChecksumState::Complete, queue);
    assert_eq!(verdict, Verdict { rewritten: false, hold: Duration::from_millis(5) });
    assert_eq!(control.report().counters.held, 1);
}

#[test]
fn a_million_spoofed_handshakes_leave_flows_and_memory_alone() {
    let mut path = Path::new(always(2000));
    path.connect();
    let mut syn =
        packet(path.sender, path.receiver, Flags::SYN, (1, 0), 500, &path.options(Some(7)), 0);
    for number in 0..1_000_000u32 {
        syn[12..16].copy_from_slice(&number.to_be_bytes());
        path.control.forward(path.now, &syn, syn.len(), Length::default());
    }
    let stats = path.control.report().table;
    assert_eq!((stats.capacity, stats.open), (1504, 1));
    assert!(stats.flows <= stats.capacity);
    assert_eq!(path.ack(9101, 500), 16);
    // And a flow that comes in the middle of it is served too.
    path.sender.set_port(40_001);
    path.connect();
    assert_eq!(path.ack(9101, 500), 16);
}

#[test]
fn several_at_once_are_as_one_by_one() {
    let mut one = Path::new(always(2000));
    let mut all = Path::new(always(2000));
    for port in 40_000..40_100 {
        for path in [&mut one, &mut all] {
            path.sender.set_port(port);
            path.connect();
        }
    }
    let mut packets: Vec<Vec<u8>> = (40_000..40_150)
        .map(|port| {
            one.sender.set_port(port);
            let ack = (901, 2101);
            packet(one.receiver, one.sender, Flags::ACK, ack, 500, &Options::default(), 0)
        })
        .collect();
    let mut expected = packets.clone();
    let queue = Length::default();
    for packet in &mut expected {
        let len = packet.len();
        one.control.returning(one.now, packet, len, ChecksumState::Complete, queue);
    }
    let mut returning: Vec<Returning<'_>> = packets
        .iter_mut()
        .map(|packet| Returning {
            len: packet.len(),
            packet,
            checksum: ChecksumState::Complete,
            verdict: Verdict::default(),
        })
        .collect();
    all.control.returning_all(all.now, &mut returning, queue);
    assert_eq!(returning.iter().filter(|one| one.verdict.rewritten).count(), 100);
    assert_eq!(packets, expected);
    assert_eq!(one.control.report().counters, all.control.report().counters);
}

/// The addresses that have been asked for.
static ASKED: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

#[test]
fn memory_is_asked_for_before_it_is_needed() {
    let mut path = Path::new(always(2000));
    path.connect();
    let mut known =
        packet(path.receiver, path.sender, Flags::ACK, (901, 9101), 500, &Options::default(), 0);
    path.sender.set_port(1);
    let mut unknown =
        packet(path.receiver, path.sender, Flags::ACK, (901, 9101), 500, &Options::default(), 0);
    path.control.set_prefetch(Some(|addresses| {
        ASKED.lock().unwrap().extend(addresses.iter().filter(|address| **address != 0));
    }));
    let mut batch = [&mut known, &mut unknown].map(|packet| Returning {
        len: packet.len(),
        packet,
        checksum: ChecksumState::Complete,
        verdict: Verdict::default(),
    });
    path.control.returning_all(path.now, &mut batch, Length::default());
    assert_eq!(batch.map(|one| one.verdict.rewritten), [true, false]);
    // The tags of two buckets for each, then the slot of the one that is there: 188 buckets of eight slots, of 64 bytes and two.
    let [tags, slots] = path.control.memory();
    assert_eq!((tags.len(), slots.len()), (188 * 16, 188 * 512));
    let asked = ASKED.lock().unwrap();
    assert_eq!(asked.len(), 5);
    assert!(asked[..4].iter().all(|address| tags.contains(address)));
    assert!(slots.contains(&asked[4]) && (asked[4] - slots.start).is_multiple_of(64));
}
