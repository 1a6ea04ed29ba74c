//! Two honest hosts set against each other, or one against itself: whatever was injected, they come to rest.

use crate::harness::*;
use crate::states::{Scene, Stage};
use transom_sim::link::LinkConfig;
use transom_sim::{Pair, Side};
use transom_stack::{ConnectionId, ListenConfig, Stack, StackConfig};
use transom_tcp::State;
use transom_tcp::time::{Duration, Instant};
use transom_wire::{Flags, IpPacket, TcpHeader, TcpPacket, Timestamps};

/// Two hosts with a connection between them, and what an attacker needs to know to forge its segments.
struct Two {
    pair: Pair,
    ids: [ConnectionId; 2],
    /// For each side, a peer that speaks as the other one.
    impostors: [Peer; 2],
}

impl Two {
    fn connect(timestamps: bool) -> Two {
        let host = |address: &str, secret| {
            let mut config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
            config.secret = [secret; 16];
            let mut profile = transom_tcp::Profile::classic();
            profile.options.timestamps = timestamps;
            config.profile = std::sync::Arc::new(profile);
            Stack::new(config, Instant::from_secs(5)).unwrap()
        };
        let (a, mut b) = (host("10.0.0.1", 1), host("10.0.0.2", 2));
        let listener = b.listen(SERVICE, ListenConfig::default()).unwrap();
        let link: LinkConfig = "delay=5ms".parse().unwrap();
        let mut pair = Pair::new(a, b, [&link, &link], 1, Instant::from_secs(5));
        let now = pair.now();
        let last: std::rc::Rc<std::cell::RefCell<[TcpHeader; 2]>> = Default::default();
        let seen = last.clone();
        pair.set_middlebox(move |_, side, bytes| {
            let ip = IpPacket::parse(bytes).unwrap();
            seen.borrow_mut()[side as usize] = TcpPacket::parse(ip.payload()).unwrap().header;
            true
        });
        let first = pair.host(Side::A).connect(now, None, SERVICE, None).unwrap();
        pair.run_until(now + Duration::from_secs(1), |_| false);
        let second = pair.host(Side::B).accept(listener).unwrap().0;
        let local = pair.host(Side::A).local_address(first).unwrap();
        let last = last.borrow();
        let next = |side: usize| {
            let header = last[side];
            header.seq + header.segment_len(0)
        };
        let impostor = |from: usize, to: usize| {
            let addresses = [local, SERVICE];
            Peer {
                seq: next(from),
                ack: next(to),
                timestamps: last[from].options.timestamps.map(|stamps| Timestamps {
                    value: stamps.value.wrapping_add(1_000),
                    echo: last[to].options.timestamps.unwrap().value,
                }),
                ..Peer::new(addresses[from], addresses[to])
            }
        };
        let impostors = [impostor(1, 0), impostor(0, 1)];
        Two { pair, ids: [first, second], impostors }
    }

    /// A forged segment arrives at `side`, as from the other.
    fn inject(&mut self, side: Side, packet: &[u8]) {
        self.pair.inject(side, packet);
    }

    fn impostor(&self, side: Side) -> Peer {
        self.impostors[side as usize]
    }

    /// Lets a minute pass; returns how many packets were exchanged in it.
    fn minute(&mut self) -> u64 {
        let before = self.pair.packets();
        let end = self.pair.now() + Duration::from_secs(60);
        self.pair.run_until(end, |_| false);
        for side in [Side::A, Side::B] {
            self.pair.host(side).check().unwrap();
        }
        self.pair.packets() - before
    }
}

#[test]
fn a_connection_at_rest_is_silent() {
    let mut two = Two::connect(true);
    assert_eq!(two.minute(), 0);
}

/// Data injected into one or both directions makes each side find the other's acknowledgements impossible. RFC 5961 section
/// 7 and the budget end what would be an endless exchange.
#[test]
fn desynchronised_hosts_do_not_start_an_ack_storm() {
    for timestamps in [false, true] {
        for both in [false, true] {
            for size in [1usize, 2, 100, 1_460] {
                let mut two = Two::connect(timestamps);
                for side in [Side::A, Side::B] {
                    if side == Side::B || both {
                        let forged =
                            two.impostor(side).at(Flags::ACK | Flags::PSH, 0, 0, &vec![b'f'; size]);
                        two.inject(side, &forged);
                    }
                }
                let what = format!("timestamps {timestamps}, both {both}, {size} bytes");
                let exchanged = two.minute();
                assert!(exchanged <= 50, "{what}: {exchanged} packets in a minute");
                assert_eq!(two.minute(), 0, "{what}: they have come to rest");
                // Both applications write: now the retransmissions disagree too.
                let now = two.pair.now();
                for (side, id) in [Side::A, Side::B].into_iter().zip(two.ids) {
                    two.pair.host(side).write(id, now, &[b'h'; 50]).unwrap();
                }
                let exchanged = two.minute();
                assert!(exchanged <= 200, "{what}: {exchanged} packets in a minute after writing");
            }
        }
    }
}

/// Single segments of every kind, to either side, near every edge.
#[test]
fn no_single_segment_starts_a_storm() {
    for bits in 0..64u16 {
        let flags = Flags::from_bits_truncate(bits);
        for (seq, ack) in [
            (0, 0),
            (-1, 0),
            (1, 0),
            (0, 1),
            (0, -1),
            (70_000, 0),
            (-70_000, 5),
            (1 << 30, 1 << 30),
        ] {
            let mut two = Two::connect(bits % 2 == 0);
            for side in [Side::A, Side::B] {
                for payload in [&b""[..], b"x"] {
                    let forged = two.impostor(side).at(flags, seq, ack, payload);
                    two.inject(side, &forged);
                }
            }
            let exchanged = two.minute();
            assert!(exchanged <= 60, "{flags:?} {seq:+} {ack:+}: {exchanged} packets");
        }
    }
}

/// The attacker sends whatever a host sends back to it, with the addresses exchanged, as if the host talked to its mirror
/// image. A SYN makes a simultaneous open with itself.
#[test]
fn a_host_and_its_mirror_image_come_to_rest() {
    let mut scene = Scene::at(Stage::In(State::SynSent));
    let id = scene.id.unwrap();
    let Peer { from, to, .. } = scene.peer;
    scene.victim.limits.packets = 20;
    let reflect = |victim: &mut Victim| {
        let out = victim.sent();
        for packet in &out {
            let header = packet.tcp();
            victim.inject(&packets::tcp(from, to, &header, &packet.payload()));
        }
        out.len()
    };
    // The SYN was taken by the scene; it is sent again after a second.
    let mut packets = 0;
    for second in 0..120 {
        scene.victim.advance(Duration::from_secs(1));
        for _ in 0..100 {
            packets += reflect(&mut scene.victim);
        }
        if second == 10 && scene.victim.state(id) == State::Established {
            scene.victim.write(id, b"who is there?");
        }
    }
    assert!(packets <= 200, "{packets} packets reflected");
    assert_eq!(
        scene.victim.state(id),
        State::Established,
        "with itself, as RFC 9293 figure 8 has it"
    );
    assert_eq!(scene.victim.read(id), b"who is there?");
}

/// The same packets, sent back as they are: they come from the host's own address, which is not believed.
#[test]
fn a_host_does_not_listen_to_its_echo() {
    for stage in crate::states::STAGES {
        let mut scene = Scene::at(stage);
        let before = scene.fingerprint();
        scene.victim.limits.packets = 10;
        scene.victim.advance(Duration::from_secs(3));
        for out in scene.victim.sent() {
            assert_eq!(scene.victim.inject(&out.bytes), 0, "{stage:?}");
        }
        assert_eq!(scene.fingerprint(), before, "{stage:?}");
    }
}

/// RFC 1337: old segments are answered in TIME-WAIT, the resets which that answer may draw do not end it, and neither do
/// forged ones.
#[test]
fn time_wait_is_not_assassinated() {
    let mut scene = Scene::at(Stage::In(State::TimeWait));
    assert_eq!(scene.victim.stack.time_wait_count(), 1);
    let mut answers = 0;
    for i in 0..10_000i64 {
        // Old duplicates of every kind, then resets at and around the right place.
        answers += scene.victim.inject(&scene.peer.at(Flags::ACK, -i, -i, b"old"));
        answers += scene.victim.inject(&scene.peer.at(Flags::ACK, -i, 0, &[]));
        for seq in [0, 1, -1, i] {
            let reset = scene.victim.inject(&scene.peer.at(Flags::RST, seq, 0, &[]));
            let with_ack =
                scene.victim.inject(&scene.peer.at(Flags::RST | Flags::ACK, seq, 0, &[]));
            assert_eq!(reset + with_ack, 0, "a reset is not answered");
        }
        assert_eq!(scene.victim.stack.time_wait_count(), 1);
    }
    assert!(answers <= 2, "{answers} answers in one moment");
    // It ends when it should: nothing of this extended it.
    scene.victim.advance(Duration::from_secs(59));
    assert_eq!(scene.victim.stack.time_wait_count(), 1);
    scene.victim.advance(Duration::from_secs(2));
    assert_eq!(scene.victim.stack.time_wait_count(), 0);
}

/// A SYN may start the connection anew only when it can be told from an old one [MAY-2]: by a higher sequence number.
#[test]
fn an_old_syn_does_not_reopen_time_wait() {
    let mut scene = Scene::at(Stage::In(State::TimeWait));
    for back in [0i64, 1, 100, 1 << 20, 1 << 30, (1 << 31) - 2] {
        scene.victim.inject(&scene.peer.at(Flags::SYN, -back - 1, 0, &[]));
        assert_eq!(scene.victim.stack.time_wait_count(), 1, "{back} back");
        assert_eq!(scene.victim.stack.half_open_count(), 0);
    }
    scene.victim.inject(&scene.peer.at(Flags::SYN, 1, 0, &[]));
    assert_eq!(scene.victim.stack.time_wait_count(), 0);
    assert_eq!(scene.victim.stack.half_open_count(), 1);
    // Its numbers lie beyond the old ones.
    assert!(scene.victim.last().seq.after(scene.peer.ack));
}

/// Two hosts, one in TIME-WAIT and one that was given another idea by a forged segment.
#[test]
fn the_end_of_a_connection_is_no_time_for_storms() {
    for forged in [b"".as_slice(), b"z", &[b'z'; 500]] {
        let mut two = Two::connect(false);
        let impostor = two.impostor(Side::B);
        two.inject(Side::B, &impostor.at(Flags::ACK | Flags::FIN, 0, 0, forged));
        let now = two.pair.now();
        for (side, id) in [Side::A, Side::B].into_iter().zip(two.ids) {
            two.pair.host(side).close(id, now);
        }
        let mut exchanged = 0;
        for _ in 0..30 {
            exchanged += two.minute();
        }
        assert!(exchanged <= 400, "{exchanged} packets");
        for side in [Side::A, Side::B] {
            assert_eq!(two.pair.host(side).connection_count(), 0);
            assert_eq!(two.pair.host(side).time_wait_count(), 0);
        }
    }
}

/// An impostor that knows everything can inject, but not make the two exchange more than it sends itself.
#[test]
fn a_stream_of_forgeries_is_not_amplified() {
    let mut two = Two::connect(false);
    let before = two.pair.packets();
    let mut sent = 0;
    for i in 0..2_000u32 {
        for side in [Side::A, Side::B] {
            let impostor = two.impostor(side);
            let forged = impostor.at(
                Flags::ACK,
                i64::from(i % 3) - 1,
                i64::from(i % 5) - 2,
                &[b'f'; 3][..(i % 4) as usize % 4],
            );
            two.inject(side, &forged);
            sent += 1;
        }
        let end = two.pair.now() + Duration::from_millis(20);
        two.pair.run_until(end, |_| false);
    }
    let exchanged = two.pair.packets() - before;
    assert!(exchanged <= 2 * sent, "{exchanged} packets for {sent}");
    assert!(two.minute() <= 60);
}
