//! Small pieces: a peer that asks for tiny segments, reports tiny ranges, or sends tiny segments out of order, to make every
//! byte cost a record, a buffer and a search.

use crate::harness::*;
use transom_stack::ConnectionId;
use transom_tcp::time::Duration;
use transom_tcp::{FlowChoice, ReceiveWindowConfig};
use transom_wire::{Flags, Options};

const RECEIVE_BUFFER: usize = 64 << 10;

/// A victim whose receive buffer has a fixed size, and how much it holds with one idle connection.
fn receiving(options: Options) -> (Victim, Peer, ConnectionId, i64) {
    let mut victim = Victim::with(|_, profile, _| {
        let fixed = ReceiveWindowConfig::new(RECEIVE_BUFFER, RECEIVE_BUFFER);
        profile.flow = FlowChoice::ReceiveWindow(fixed);
    });
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, options);
    let idle = victim.held();
    (victim, peer, id, idle)
}

/// A few times the receive buffer, whatever the peer does: that is what holding a byte may cost.
fn assert_modest(victim: &Victim, id: ConnectionId, idle: i64, what: &str) {
    let held = (victim.held() - idle) as usize;
    let most = 4 * RECEIVE_BUFFER + (16 << 10);
    assert!(held <= most, "{what}: {held} bytes held for a buffer of {RECEIVE_BUFFER}");
    // The connection's own count is near the truth.
    let said = victim.connection(id).memory();
    assert!(said + 4096 >= held, "{what}: {held} bytes held, {said} admitted");
}

/// [MUST-16] An MSS of nothing does not make segments of nothing.
#[test]
fn a_tiny_mss_does_not_make_crumbs() {
    for mss in [0, 1, 2, 8, 63, 64] {
        for options in [usual_options(), bare_options()] {
            let mut victim = Victim::new();
            victim.limits.packets = 2_000;
            let options = Options { mss: Some(mss), ..options };
            let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, options);
            let idle = victim.held();
            let data = stream(50_000);
            let mut written = victim.write(id, &data);
            let (mut packets, mut bytes) = (0, 0);
            while bytes < 50_000 {
                for out in victim.sent() {
                    packets += 1;
                    let len = out.payload().len();
                    bytes += len;
                    peer.ack += len as u32;
                }
                victim.inject(&peer.segment(Flags::ACK, &[]));
                if written < data.len() {
                    written += victim.write(id, &data[written..]);
                }
            }
            // 64 less the timestamps.
            let most = 50_000usize.div_ceil(52) + 20;
            assert!(packets <= most, "MSS {mss}: {packets} packets for 50,000 bytes");
            let held = victim.held() - idle;
            assert!(held < 1 << 20, "MSS {mss}: {held} bytes held");
        }
    }
}

/// A sender whose flight is large, in segments or super-segments, to a peer with a small or a usual MSS.
fn large_flight(mss: u16, merged: bool) -> (Victim, Peer, ConnectionId, i64) {
    let mut victim = Victim::with(|config, profile, _| {
        config.offload.segmentation = merged.then_some(65_535);
        profile.max_send_buffer = 1 << 20;
    });
    victim.limits.packets = 40_000;
    victim.limits.held = 16 << 20;
    let options = Options { mss: Some(mss), ..usual_options() };
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, options);
    let idle = victim.held();
    let chunk = stream(1 << 20);
    while victim.info(id).cwnd < 300_000 {
        let room = victim.call(|stack, now| {
            stack.with_connection(id, now, |connection| connection.writable()).unwrap().unwrap()
        });
        if room > 0 {
            victim.write(id, &chunk[..room]);
        }
        peer.acknowledge(&mut victim);
    }
    victim.sent();
    (victim, peer, id, idle)
}

/// CVE-2019-11478 and its kin: selective acknowledgements that cut what was sent into ever smaller pieces. Only whole
/// segments are cut off, so there are never more records than segments.
#[test]
fn selective_acknowledgements_do_not_cut_records_into_crumbs() {
    for (mss, merged) in [(64u16, false), (64, true), (536, false), (1460, false), (1460, true)] {
        for step in [1u32, 53, 100, 1_448, 2_896] {
            let (mut victim, peer, id, idle) = large_flight(mss, merged);
            let info = victim.info(id);
            let flight = info.snd_nxt.since(info.snd_una) as i64;
            let segments = flight / i64::from(info.mss) + 1;
            let sent_before = info.counters.segments_sent;
            let mut acks = 0;
            // Alternate pieces, from the end so that nothing merges early, four blocks at a time.
            let mut at = flight - i64::from(step);
            while at > 0 && acks < 1_500 {
                let mut blocks = Vec::new();
                for _ in 0..3 {
                    blocks.push((at, at + i64::from(step)));
                    at -= 2 * i64::from(step);
                    if at <= 0 {
                        break;
                    }
                }
                victim.inject(&peer.sack(&blocks));
                acks += 1;
            }
            let what = format!("MSS {mss}, pieces of {step}, super-segments: {merged}");
            // The ring that holds the data, and a record of 128 bytes (twice, as vectors grow) for each segment.
            let most = info.snd_buffer as i64 + 2 * (128 + 16) * 2 * segments + (64 << 10);
            let held = victim.held() - idle;
            assert!(held <= most, "{what}: {held} bytes held, {most} expected at most");
            // Each piece of news releases at most what it says has left the network, and the fast retransmission.
            let sent = (victim.info(id).counters.segments_sent - sent_before) as i64;
            assert!(
                sent <= 2 * segments + 3,
                "{what}: {sent} segments for {acks} acknowledgements"
            );
            victim.advance(Duration::from_secs(2));
        }
    }
}

/// The same against super-segments, each of which is one record until it is cut: 4 MB in segments of 52 bytes would be
/// 80,000 of them.
#[test]
fn super_segments_are_not_cut_without_end() {
    let mut victim = Victim::with(|config, profile, _| {
        config.offload.segmentation = Some(65_535);
        profile.send_buffer = 4 << 20;
        profile.max_send_buffer = 4 << 20;
    });
    victim.limits = Limits { packets: 200, allocations: 16, held: 32 << 20 };
    let options = Options { mss: Some(64), window_scale: Some(14), ..usual_options() };
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, options);
    let idle = victim.held();
    let chunk = stream(4 << 20);
    while victim.info(id).snd_nxt.since(victim.info(id).snd_una) < 2 << 20 {
        let connection = victim.connection(id);
        let room = (4 << 20) - connection.unacknowledged();
        if room > 0 {
            victim.write(id, &chunk[..room]);
        }
        peer.acknowledge(&mut victim);
    }
    victim.sent();
    // The first news calls most of the flight lost, and half of it may leave again.
    victim.limits.packets = 50;
    let flight = victim.info(id).snd_nxt.since(victim.info(id).snd_una) as i64;
    // Every second segment, from the end.
    let mut at = flight - 104;
    while at > 400 {
        let blocks = [(at, at + 52), (at - 104, at - 52), (at - 208, at - 156)];
        victim.inject(&peer.sack(&blocks));
        at -= 312;
    }
    let held = victim.held() - idle - (victim.info(id).snd_buffer as i64);
    assert!(held < 4 << 20, "{held} bytes of records");
}

#[test]
fn one_byte_segments_out_of_order_cost_a_bounded_multiple() {
    type Place = fn(i64) -> i64;
    let orders: [(&str, Place); 5] = [
        ("every second byte", |i| 1 + 2 * i),
        ("descending", |i| 60_000 - i),
        ("every second, descending", |i| 60_001 - 2 * i),
        ("from both ends", |i| if i % 2 == 0 { 1 + i } else { 60_000 - i }),
        ("scattered", |i| 1 + (i * 7_919) % 60_000),
    ];
    for (name, place) in orders {
        let (mut victim, peer, id, idle) = receiving(usual_options());
        for i in 0..30_000 {
            victim.inject(&peer.at(Flags::ACK, place(i), 0, b"x"));
        }
        assert_modest(&victim, id, idle, name);
        // Data that was refused is not lost: the peer sends it again, in order.
        let mut honest = peer;
        victim.limits.packets = 2;
        let sent = stream(60_002);
        for from in (0..60_002).step_by(1_000) {
            honest.send(&mut victim, &sent[from..60_002.min(from + 1_000)]);
        }
        assert_eq!(victim.read(id).len(), 60_002, "{name}");
        assert_modest(&victim, id, idle, name);
    }
}

/// In-order bytes nobody reads: single ones, or each completing one that came early.
#[test]
fn one_byte_segments_in_order_cost_a_bounded_multiple() {
    for pairs in [false, true] {
        let (mut victim, mut peer, id, idle) = receiving(usual_options());
        for _ in 0..RECEIVE_BUFFER / 2 {
            if pairs {
                victim.inject(&peer.at(Flags::ACK, 1, 0, b"b"));
                victim.inject(&peer.segment(Flags::ACK, b"a"));
            } else {
                victim.inject(&peer.segment(Flags::ACK, b"a"));
                victim.inject(&peer.at(Flags::ACK, 1, 0, b"b"));
            }
            peer.seq += 2;
        }
        assert_modest(&victim, id, idle, if pairs { "in pairs" } else { "one by one" });
        assert_eq!(victim.read(id), b"ab".repeat(RECEIVE_BUFFER / 2));
    }
}

/// The same in packet buffers that may be kept, mixed so that a kept one follows each gathered crumb.
#[test]
fn crumbs_between_kept_buffers_cost_a_bounded_multiple() {
    for early in [false, true] {
        for size in [60usize, 200, 1_460] {
            let (mut victim, mut peer, id, idle) = receiving(usual_options());
            let large = vec![b'l'; size];
            while victim.connection(id).readable() + size < 60_000 {
                let pair = [peer.segment(Flags::ACK, b"s"), peer.at(Flags::ACK, 1, 0, &large)];
                let order = if early { [1, 0] } else { [0, 1] };
                for which in order {
                    victim.inject_owned(&pair[which]);
                }
                peer.seq += 1 + size as u32;
            }
            assert_modest(&victim, id, idle, &format!("{size} bytes, early: {early}"));
            let got = victim.read(id);
            assert!(got.chunks(size + 1).all(|pair| pair[0] == b's' && pair[1..] == large));
        }
    }
}

/// Many gaps, closed one by one from the left, then all at once: nothing piles up in what waits to be read.
#[test]
fn crumbs_that_become_readable_are_gathered() {
    let (mut victim, mut peer, id, idle) = receiving(usual_options());
    while victim.connection(id).readable() < 60_000 {
        for gap in 0..300 {
            victim.inject(&peer.at(Flags::ACK, 1 + 2 * gap, 0, b"x"));
        }
        victim.inject(&peer.segment(Flags::ACK, &[b'x'; 601]));
        peer.seq += 601;
    }
    assert_modest(&victim, id, idle, "closed gaps");
}

/// A buffer that the application has emptied is not given to one early byte to keep.
#[test]
fn an_early_byte_does_not_pin_a_large_buffer() {
    let (mut victim, mut peer, id, idle) = receiving(usual_options());
    for i in 0..400 {
        // Read at once, the byte leaves behind the buffer it came in.
        peer.send(&mut victim, b"x");
        victim.read(id);
        victim.inject(&peer.at(Flags::ACK, 60_000 - 3 * i, 0, b"x"));
        victim.sent();
    }
    assert_modest(&victim, id, idle, "early bytes");
}

/// Segments of every size in random order, by a peer that never repairs some: the memory returns when the connection ends.
#[test]
fn everything_is_given_back_in_the_end() {
    for seed in 0..30 {
        let mut rng = transom_sim::Streams::new(seed).rng(3, 0);
        let mut victim = Victim::new();
        let empty = victim.held();
        let (peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
        for _ in 0..3_000 {
            let payload = vec![1; rng.between(1, 3_000) as usize];
            victim.inject(&peer.at(Flags::ACK, rng.below(60_000) as i64 + 1, 0, &payload));
        }
        victim.inject(&peer.at(Flags::RST, 0, 0, &[]));
        victim.close(id);
        victim.advance(Duration::from_secs(10));
        assert_eq!(victim.stack.connection_count(), 0);
        // Tables that have grown stay so.
        assert!(
            victim.held() - empty < 8 << 10,
            "seed {seed}: {} bytes stay",
            victim.held() - empty
        );
    }
}
