//! Connections from the host to itself: nothing of them leaves.

use crate::harness::*;
use std::net::{IpAddr, SocketAddr};
use transom_stack::{ConnectionId, Offload};
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionError, State};
use transom_wire::{Flags, IcmpMessage};

/// Writes `bytes` at one end until all of it has been read at the other.
fn carry(host: &mut Host, from: ConnectionId, to: ConnectionId, bytes: &[u8]) {
    let (mut written, mut read) = (0, Vec::new());
    for _ in 0..100_000 {
        if read.len() == bytes.len() {
            break;
        }
        let result = host.call(|stack, now| stack.write(from, now, &bytes[written..]));
        written += result.unwrap_or(0);
        read.extend(host.read(to));
        assert!(host.sent().is_empty(), "something left the host");
        if result.is_err() {
            host.advance(Duration::from_millis(10));
        }
    }
    assert!(read == bytes, "{} of {} bytes arrived", read.len(), bytes.len());
}

fn host_for(offload: Offload) -> Host {
    Host::with(|config, _| {
        config.addresses.push((IpAddr::from([127, 0, 0, 1]), 8));
        config.offload = offload;
    })
}

#[test]
fn a_connection_to_an_own_address_carries_data_both_ways() {
    let plain = Offload::default();
    let capable = Offload::default().with_tx_checksum(true).with_segmentation(Some(65_535));
    for offload in [plain, capable] {
        for local in [at(HOST, 80), at(HOST6, 80), at([127, 0, 0, 1], 80)] {
            let mut host = host_for(offload);
            let listener = host.listen(local);
            let client = host.connect(local);
            assert_eq!(host.stack.local_address(client).unwrap().ip(), local.ip());
            let server = host.accept(listener);
            carry(&mut host, client, server, &stream(1_000_000));
            carry(&mut host, server, client, &stream(1_000_000));
            host.close(client);
            host.close(server);
            assert!(host.sent().is_empty());
            assert_eq!((host.stack.connection_count(), host.stack.time_wait_count()), (0, 1));
        }
    }
}

/// RFC 9293 section 3.5, simultaneous open in the extreme: the connection is its own other end.
#[test]
fn a_connection_to_itself_reads_what_it_writes() {
    let mut host = Host::new();
    let own = at(HOST, 5000);
    let id = host.connect_from(own, own);
    assert_eq!(host.state(id), State::Established);
    carry(&mut host, id, id, &stream(100_000));
    host.close(id);
    host.advance(Duration::from_secs(1));
    assert_eq!((host.stack.connection_count(), host.stack.time_wait_count()), (0, 1));
    assert!(host.sent().is_empty());
}

#[test]
fn nobody_listening_is_a_refusal_at_once() {
    let mut host = Host::new();
    let id = host.connect(at(HOST, 81));
    assert_eq!(host.connection(id).error(), Some(ConnectionError::Refused));
    assert!(host.sent().is_empty());
}

/// The network cannot take part: a packet from outside that claims to come from here is forged.
#[test]
fn nobody_outside_can_speak_for_the_host() {
    let mut host = host_for(Offload::default());
    let listener = host.listen(at(HOST, 80));
    let client = host.connect(at(HOST, 80));
    let server = host.accept(listener);
    let client_at = host.stack.local_address(client).unwrap();
    let forge = |from: SocketAddr, flags| Peer::new(from, at(HOST, 80)).segment(flags, &[]);
    for flags in [Flags::RST, Flags::ACK, Flags::SYN] {
        assert!(host.inject(&forge(client_at, flags)).is_empty());
        assert!(host.inject(&forge(at([127, 0, 0, 1], 9), flags)).is_empty());
    }
    let echo = IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" };
    assert!(host.inject(&packets::icmp(HOST, HOST, &echo)).is_empty());
    assert_eq!(host.counters().misaddressed, 7);
    carry(&mut host, client, server, b"still there");
}
