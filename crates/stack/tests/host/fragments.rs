//! Segments that arrive in pieces (RFC 791, RFC 8200 section 4.5), and IP options in front of them.

use crate::harness::*;
use transom_stack::stack::ConnectionId;
use transom_tcp::time::Duration;
use transom_testkit::packets::{fragment4, fragment6, segment, with_ip_options};
use transom_wire::{Flags, Protocol};

struct Scene {
    host: Host,
    peer: Peer,
    id: ConnectionId,
    v6: bool,
}

fn scene(v6: bool) -> Scene {
    let mut host = Host::new();
    let (from, to) =
        if v6 { (at(PEER6, 4000), at(HOST6, 80)) } else { (at(PEER, 4000), service()) };
    let listener = host.listen(to);
    let (peer, id) = Peer::connect(&mut host, listener, from, to);
    Scene { host, peer, id, v6 }
}

impl Scene {
    /// The next segment of the connection, without IP header.
    fn next(&mut self, payload: &[u8]) -> Vec<u8> {
        let header = self.peer.header(Flags::ACK | Flags::PSH);
        let bytes = segment(self.peer.from, self.peer.to, &header, payload);
        self.peer.seq += payload.len() as u32;
        bytes
    }

    fn piece(&self, id: u32, bytes: &[u8], from: usize, to: usize) -> Vec<u8> {
        let more = to < bytes.len();
        if self.v6 {
            fragment6(PEER6, HOST6, Protocol::TCP, id, from as u16, more, &bytes[from..to])
        } else {
            fragment4(PEER, HOST, Protocol::TCP, id as u16, from as u16, more, &bytes[from..to])
        }
    }
}

#[test]
fn a_segment_in_pieces_arrives_whole_in_whatever_order_they_come() {
    let cuts = [(0, 800), (800, 1_600), (1_600, 2_432)];
    for v6 in [false, true] {
        let mut scene = scene(v6);
        for (n, order) in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]].into_iter().enumerate() {
            let payload = stream(2_400);
            let bytes = scene.next(&payload);
            assert_eq!(bytes.len(), 2_432);
            for &place in &order[..2] {
                let (from, to) = cuts[place];
                let piece = scene.piece(n as u32, &bytes, from, to);
                assert!(scene.host.inject(&piece).is_empty());
                // The same piece again is harmless.
                scene.host.inject(&piece);
                assert!(scene.host.read(scene.id).is_empty());
            }
            let (from, to) = cuts[order[2]];
            scene.host.inject(&scene.piece(n as u32, &bytes, from, to));
            assert_eq!(scene.host.read(scene.id), payload);
        }
        assert_eq!(scene.host.counters().fragments_dropped, 0);
        assert_eq!(scene.host.counters().bad_checksum, 0);
        scene.peer.assert_alive(&mut scene.host, scene.id);
    }
}

/// The checksum is that of the whole: damage in any piece is noticed.
#[test]
fn a_damaged_piece_spoils_the_segment() {
    for v6 in [false, true] {
        let mut scene = scene(v6);
        let bytes = scene.next(&stream(1_000));
        scene.host.inject(&scene.piece(1, &bytes, 0, 800));
        let mut damaged = scene.piece(1, &bytes, 800, bytes.len());
        *damaged.last_mut().unwrap() ^= 1;
        scene.host.inject(&damaged);
        assert_eq!(scene.host.counters().bad_checksum, 1);
        assert!(scene.host.read(scene.id).is_empty());
        // Sent again, under another identification.
        scene.host.inject(&scene.piece(2, &bytes, 0, 800));
        scene.host.inject(&scene.piece(2, &bytes, 800, bytes.len()));
        assert_eq!(scene.host.read(scene.id), stream(1_000));
    }
}

#[test]
fn pieces_that_stay_alone_are_forgotten_in_time() {
    for v6 in [false, true] {
        let mut scene = scene(v6);
        let bytes = scene.next(&stream(1_000));
        scene.host.advance(Duration::from_secs(5));
        scene.host.inject(&scene.piece(1, &bytes, 0, 800));
        let deadline = scene.host.now + Duration::from_secs(60);
        assert_eq!(scene.host.stack.next_timeout(), Some(deadline));
        scene.host.advance(Duration::from_secs(60));
        assert_eq!(
            (scene.host.stack.next_timeout(), scene.host.counters().fragments_dropped),
            (None, 1)
        );
        // The other piece comes too late.
        scene.host.inject(&scene.piece(1, &bytes, 800, bytes.len()));
        assert!(scene.host.read(scene.id).is_empty());
    }
}

/// RFC 6946: an IPv6 packet with a fragment header that is nevertheless whole.
#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let mut scene = scene(true);
    let bytes = scene.next(b"whole");
    scene.host.inject(&scene.piece(1, &bytes, 0, bytes.len()));
    assert_eq!(scene.host.read(scene.id), b"whole");
    scene.host.advance(Duration::from_secs(100));
    assert_eq!(scene.host.counters().fragments_dropped, 0, "nothing waited for more");
}

/// [MUST-50] IP options mean nothing to TCP: whatever they are, the segment behind them counts.
#[test]
fn ip_options_are_ignored() {
    let options: [&[u8]; 6] = [
        &[1, 1, 1, 0],                            // no-operation, end of list
        &[7, 7, 4, 0, 0, 0, 0, 0],                // record route
        &[68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0],  // timestamps
        &[0x88, 4, 0, 1],                         // stream identifier
        &[0x9e, 4, 0xab, 0xcd],                   // experimental
        &[130, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // security
    ];
    let mut scene = scene(false);
    for options in options {
        let packet = scene.peer.segment(Flags::ACK | Flags::PSH, b"data");
        scene.peer.seq += 4;
        scene.host.inject(&with_ip_options(&packet, options));
        assert_eq!(scene.host.read(scene.id), b"data", "{options:?}");
    }
    // An answer carries none.
    let syn =
        with_ip_options(&Peer::new(at(PEER, 4001), service()).syn(usual_options()), options[1]);
    let answer = one(scene.host.inject(&syn));
    assert_eq!(answer.ip().header_len(), 20);
    assert_eq!(answer.flags(), Flags::SYN | Flags::ACK);
    scene.peer.assert_alive(&mut scene.host, scene.id);
}
