//! Super-segments: several segments that pass the stack as one, out (TSO) and in (GRO).

use crate::harness::*;
use std::net::SocketAddr;
use transom_stack::{ConnectionId, Offload};
use transom_tcp::time::Duration;
use transom_tcp::{CongestionChoice, Profile};
use transom_wire::Flags;
use transom_wire::offload::{
    RxChecksum, RxOffload, SegmentKind, Segmentation, Segmenter, TxChecksum,
};

/// A connection of a host whose device cuts packets of up to `longest` bytes, whose peer offers a large window, and whose sending is
/// limited by that alone.
fn connected(v6: bool, longest: usize) -> (Host, Peer, ConnectionId) {
    let mut host = Host::with(|config, profile: &mut Profile| {
        config.offload = Offload::default().with_tx_checksum(true).with_segmentation(Some(longest));
        profile.congestion = CongestionChoice::none();
    });
    let (from, to): (SocketAddr, SocketAddr) =
        if v6 { (at(PEER6, 4000), at(HOST6, 80)) } else { (at(PEER, 4000), service()) };
    let listener = host.listen(to);
    let (peer, id) = Peer::connect(&mut host, listener, from, to);
    // The first window is not scaled.
    host.inject(&peer.segment(Flags::ACK, &[]));
    (host, peer, id)
}

/// A segment has 1500 - 20 - 20 - 12 = 1448 bytes of data over IPv4, twenty fewer over IPv6. A packet has 65,535 at most.
#[test]
fn super_segments_say_where_to_cut_them() {
    for (v6, size, header_len, kind) in
        [(false, 1448, 52, SegmentKind::Tcp4), (true, 1428, 72, SegmentKind::Tcp6)]
    {
        for longest in [65_535, 20_000] {
            let (mut host, _, id) = connected(v6, longest);
            let data = stream(200_000);
            host.write_all(id, &data);
            let sent = host.sent();
            assert!(sent.len() < 200_000 / size / 2, "{} packets", sent.len());
            let mut rebuilt = Vec::new();
            for packet in &sent {
                assert!(packet.bytes.len() <= longest, "{} bytes", packet.bytes.len());
                let payload = packet.payload();
                assert!(matches!(packet.offload.checksum, TxChecksum::Partial { .. }));
                if payload.len() > size {
                    let segment_size = size as u16;
                    let expected = Segmentation { kind, segment_size, header_len };
                    assert_eq!(packet.offload.segmentation, Some(expected));
                } else {
                    assert_eq!(packet.offload.segmentation, None, "one segment needs no cutting");
                }
                rebuilt.extend(payload);
            }
            assert!(rebuilt == data);
            // As many bytes as fit, in whole segments.
            let full = (longest - usize::from(header_len)) / size * size;
            assert!(
                sent[0].payload().len() + size > full - 60,
                "{} bytes",
                sent[0].payload().len()
            );
            assert_eq!(sent[0].payload().len() % size, 0);
        }
    }
}

#[test]
fn without_a_device_that_cuts_no_packet_exceeds_the_mtu() {
    let mut host = Host::with(|_, profile| profile.congestion = CongestionChoice::none());
    let listener = host.listen(service());
    let (peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.inject(&peer.segment(Flags::ACK, &[]));
    host.write_all(id, &stream(100_000));
    for packet in host.sent() {
        assert!(packet.bytes.len() <= 1500 && packet.offload.segmentation.is_none());
        assert_eq!(packet.offload.checksum, TxChecksum::Complete);
    }
}

/// A receiver reads the bytes of all pieces together.
#[test]
fn cut_as_the_device_would_the_pieces_are_valid_segments() {
    let (mut host, _, id) = connected(false, 65_535);
    let data = stream(60_000);
    host.stack.write(id, host.now, &data).unwrap();
    let now = host.now;
    let (mut seen, mut next) = (Vec::new(), None);
    while let Some(transmit) = host.stack.poll_transmit(now) {
        let mut pieces =
            Segmenter::new(transmit.headers, transmit.payload, &transmit.offload).unwrap();
        let mut headers = [0; 120];
        while let Some(piece) = pieces.next_segment(&mut headers).unwrap() {
            let bytes = [&headers[..piece.header_len], &piece.payload.concat()].concat();
            let piece = Sent::new(now, bytes, Default::default());
            assert!(piece.bytes.len() <= 1500 && piece.ip().transport_checksum_ok());
            let header = piece.tcp();
            assert_eq!(header.seq, *next.get_or_insert(header.seq));
            next = Some(header.seq + piece.payload().len() as u32);
            seen.extend(piece.payload());
        }
    }
    assert!(seen == data);
}

/// A merged packet is what its segments were: all data is there, and as it stands for more than two full segments, it is
/// acknowledged at once (RFC 5681 section 4.2).
#[test]
fn a_merged_packet_counts_as_its_segments() {
    for checksum in [RxChecksum::Unverified, RxChecksum::Valid] {
        let (mut host, mut peer, id) = connected(false, 65_535);
        // The first acknowledgements of a connection are quick; this is about the usual ones.
        for _ in 0..40 {
            peer.send(&mut host, &stream(100));
            host.read(id);
        }
        host.advance(Duration::from_secs(1));
        let delayed = peer.send(&mut host, &stream(100));
        assert!(delayed.is_empty(), "a small segment waits: {delayed:?}");
        host.advance(Duration::from_secs(1));
        host.read(id);

        let payload = stream(20 * 1448);
        let packet = peer.segment(Flags::ACK | Flags::PSH, &payload);
        peer.seq += payload.len() as u32;
        let merged = Segmentation { kind: SegmentKind::Tcp4, segment_size: 1448, header_len: 52 };
        let offload = RxOffload { checksum, segmentation: Some(merged) };
        let ack = one(host.inject_with(&packet, offload)).tcp();
        assert_eq!((ack.flags, ack.ack), (Flags::ACK, peer.seq));
        assert!(host.read(id) == payload);
        peer.assert_alive(&mut host, id);
    }
}
