//! Who verifies and who computes checksums: the host, or the device below.

use crate::harness::*;
use transom_stack::{ConnectionId, ListenerId, Offload};
use transom_wire::offload::{RxChecksum, RxOffload, TxChecksum};
use transom_wire::{Flags, IpPacket, Protocol, checksum};

fn connected(v6: bool, tx_checksum: bool) -> (Host, Peer, ConnectionId) {
    let mut host = Host::with(|config, _| {
        config.offload = Offload::default().with_tx_checksum(tx_checksum);
    });
    let (from, to) =
        if v6 { (at(PEER6, 4000), at(HOST6, 80)) } else { (at(PEER, 4000), service()) };
    let listener: ListenerId = host.listen(to);
    let (peer, id) = Peer::connect(&mut host, listener, from, to);
    (host, peer, id)
}

const VALID: RxOffload = RxOffload { checksum: RxChecksum::Valid, segmentation: None };

/// [MUST-3] A segment with any bit flipped is dropped and counted, unless somebody the host trusts vouches for it.
#[test]
fn a_wrong_checksum_is_dropped_and_counted() {
    for v6 in [false, true] {
        let (mut host, mut peer, id) = connected(v6, false);
        let good = peer.segment(Flags::ACK | Flags::PSH, b"payload");
        let ip = if v6 { 40 } else { 20 };
        let (mut bad, mut seen) = (0, 0);
        for bit in ip * 8..good.len() * 8 {
            let mut packet = good.clone();
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(host.inject(&packet).is_empty());
            bad += 1;
            seen = host.counters().bad_checksum;
        }
        assert_eq!(seen, bad);
        assert!(host.read(id).is_empty());
        // Not even as a reset: nothing of it is looked at.
        let mut reset = peer.segment(Flags::RST, &[]);
        *reset.last_mut().unwrap() ^= 1;
        host.inject(&reset);
        peer.assert_alive(&mut host, id);
    }
}

#[test]
fn a_segment_somebody_vouches_for_is_taken_without_a_look_at_its_checksum() {
    for v6 in [false, true] {
        let (mut host, mut peer, id) = connected(v6, false);
        let mut packet = peer.segment(Flags::ACK | Flags::PSH, b"payload");
        let field = if v6 { 56..58 } else { 36..38 };
        packet[field].copy_from_slice(&[0xde, 0xad]);
        host.inject_with(&packet, VALID);
        peer.seq += 7;
        assert_eq!(host.read(id), b"payload");
        assert_eq!(host.counters().bad_checksum, 0);
        peer.assert_alive(&mut host, id);
    }
}

/// The IPv4 header's own checksum is verified whoever vouches for the payload.
/// [RFC1122-3.1-9] [RFC1122-3.2.1.2-1]
#[test]
fn a_wrong_header_checksum_is_dropped() {
    let (mut host, mut peer, id) = connected(false, false);
    let mut packet = peer.segment(Flags::ACK | Flags::PSH, b"payload");
    packet[8] -= 1; // the time to live, without an update of the checksum
    host.inject_with(&packet, VALID);
    assert!(host.read(id).is_empty());
    assert_eq!(host.counters().bad_checksum, 1);
    peer.assert_alive(&mut host, id);
}

/// [MUST-2] What leaves has its checksum: here summed by hand over pseudo-header and segment (RFC 9293 section 3.1).
/// [RFC8200-8.1-1]
#[test]
fn every_segment_leaves_with_its_checksum() {
    let (mut host, mut peer, id) = connected(false, false);
    host.write_all(id, b"odd");
    let data = host.sent_one();
    assert_eq!(data.offload.checksum, TxChecksum::Complete);
    let transport = &data.bytes[20..];
    let pseudo = [&data.bytes[12..20], &[0, 6], &(transport.len() as u16).to_be_bytes()].concat();
    let sum = |bytes: &[u8]| -> u64 {
        bytes
            .chunks(2)
            .map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0)))
            .sum()
    };
    assert_eq!((sum(&pseudo) + sum(transport)) % 0xffff, 0);
    assert_ne!(sum(transport), 0);
    peer.receive(&[data]);
    // And so do a SYN, a SYN-ACK, an answer to nobody and a FIN: the harness verifies each.
    host.connect(at(PEER, 81));
    host.inject(&Peer::new(at(PEER, 4001), service()).syn(usual_options()));
    host.inject(&Peer::new(at(PEER, 4001), at(HOST, 99)).segment(Flags::ACK, &[]));
    peer.close_after(&mut host, id);
}

/// [MUST-2] Where the device completes it, the field holds the folded sum of the pseudo-header and says where to go on.
#[test]
fn a_device_that_completes_checksums_is_given_the_pseudo_headers_sum() {
    for v6 in [false, true] {
        let (mut host, _, id) = connected(v6, true);
        host.stack.write(id, host.now, b"payload").unwrap();
        let now = host.now;
        let transmit = host.stack.poll_transmit(now).unwrap();
        let ip_len = if v6 { 40 } else { 20 };
        assert_eq!(transmit.offload.checksum, TxChecksum::Partial { start: ip_len, offset: 16 });
        let bytes = transmit.to_vec();
        let ip = IpPacket::parse(&bytes).unwrap();
        let len = ip.payload().len() as u32;
        let expected = checksum::pseudo_header(ip.src(), ip.dst(), Protocol::TCP, len).0;
        let field = usize::from(ip_len) + 16;
        assert_eq!(bytes[field..field + 2], expected.to_be_bytes());
        // Answers that are not a connection's too.
        let stray = if v6 {
            Peer::new(at(PEER6, 9), at(HOST6, 99))
        } else {
            Peer::new(at(PEER, 9), at(HOST, 99))
        };
        let reset = one(host.inject(&stray.segment(Flags::ACK, &[])));
        assert_eq!(reset.offload.checksum, TxChecksum::Partial { start: ip_len, offset: 16 });
    }
}
