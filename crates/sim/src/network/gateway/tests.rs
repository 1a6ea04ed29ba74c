//! Packets that leave and enter, worked out by hand; and a network cut in two.

use super::*;
use crate::link::LinkConfig;
use crate::network::{HostConfig, Topology};
use crate::traffic::{Amount, FlowId, Sends, bulk, datagram_sink, on_off, sink};
use crate::units::Rate;
use std::net::SocketAddrV4;
use transom_tcp::time::Duration;
use transom_wire::{Ipv4Header, Protocol, UdpHeader, checksum};

const FLOW: FlowId = FlowId(0);
const PORT: u16 = 80;

fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A UDP datagram from 10.0.0.`from` to 10.0.0.`to` with so many bytes of payload, all checksums right.
fn datagram(from: u8, to: u8, payload: usize) -> Vec<u8> {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, from), Ipv4Addr::new(10, 0, 0, to));
    let mut bytes = vec![0xa5; 28 + payload];
    Ipv4Header::new(src, dst, Protocol::UDP).emit(8 + payload, &mut bytes).unwrap();
    let udp = UdpHeader { src_port: 9, dst_port: PORT };
    udp.emit(payload, &mut bytes[20..]).unwrap();
    checksum::fill(src.into(), dst.into(), Protocol::UDP, &mut bytes[20..], 6).unwrap();
    bytes
}

#[test]
fn packets_pass_from_one_gateway_to_the_other_unchanged() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.gateway(), topology.gateway());
    // 1000 bytes take a millisecond at 8 Mbit/s.
    topology.join(a, b, link("rate=8Mbit/s, delay=20ms, queue=9 packets"), link(""));
    let mut network = topology.build().unwrap();
    assert_eq!(network.next_event(), None);
    let packet = datagram(1, 2, 972);
    let remote = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
    network.count(a, Sends::To(remote.into()), FLOW);
    network.count(a, Sends::From(9), FlowId(1));
    for _ in 0..2 {
        network.inject(ms(5), a, packet.clone()).unwrap();
    }
    assert_eq!(network.entered(a, FLOW), Traffic { packets: 2, bytes: 2000 });
    assert_eq!(network.entered(a, FlowId(1)), Traffic::default());
    assert_eq!(network.next_event(), Some(ms(26)));
    network.run_until(ms(25)).unwrap();
    assert_eq!(network.take_departure(b), None);
    network.run_until(ms(100)).unwrap();
    for at in [26, 27] {
        assert_eq!(network.take_departure(b), Some((ms(at), packet.clone())));
    }
    assert_eq!(network.take_departure(b), None);
    assert_eq!(network.take_departure(a), None);
    let totals = network.totals();
    assert_eq!((totals.packets, totals.on_their_way), (2, 0));
}

#[test]
fn a_router_on_the_way_counts_as_a_hop() {
    let mut topology = Topology::new(1);
    let (a, b, router) = (topology.gateway(), topology.gateway(), topology.router());
    topology.join(a, router, link("delay=1ms"), link("delay=1ms"));
    topology.join(router, b, link("delay=1ms"), link("delay=1ms"));
    let mut network = topology.build().unwrap();
    assert_eq!(network.address(b), Some(Ipv4Addr::new(10, 0, 0, 2)));
    assert_eq!(network.address(router), None);
    let sent = datagram(2, 1, 10);
    network.inject(ms(0), b, sent.clone()).unwrap();
    network.run_until(ms(2)).unwrap();
    let (at, bytes) = network.take_departure(a).unwrap();
    assert_eq!(at, ms(2));
    let (before, after) = (IpPacket::parse(&sent).unwrap(), IpPacket::parse(&bytes).unwrap());
    assert_eq!(after.hop_limit(), before.hop_limit() - 1);
    assert_eq!(after.payload(), before.payload());
    assert!(matches!(after, IpPacket::V4(ip) if ip.checksum_ok()));
}

#[test]
fn packets_for_nobody_are_counted() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.gateway(), topology.host(HostConfig::default()));
    topology.join(a, b, link(""), link(""));
    let mut network = topology.build().unwrap();
    // A third host there is none, a multicast is for nobody, and neither is rubbish.
    let mut multicast = datagram(1, 2, 4);
    multicast[16..20].copy_from_slice(&[224, 0, 0, 1]);
    for bytes in [datagram(1, 3, 4), multicast, vec![0x60; 40], vec![1, 2, 3], Vec::new()] {
        network.inject(ms(1), a, bytes).unwrap();
    }
    let totals = network.totals();
    assert_eq!((totals.undeliverable, totals.packets), (5, 0));
    let error = network.inject(ms(1), b, datagram(1, 2, 4)).unwrap_err();
    assert_eq!(error.to_string(), "node 1 is not a gateway");
    assert_eq!(network.take_departure(b), None);
}

#[test]
fn a_host_verifies_what_comes_from_outside() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.gateway(), topology.host(HostConfig::default()));
    topology.join(a, b, link(""), link(""));
    topology.run(b, Instant::ZERO, datagram_sink(FLOW, PORT)).unwrap();
    let mut network = topology.build().unwrap();
    network.inject(ms(1), a, datagram(1, 2, 100)).unwrap();
    network.run_until(ms(2)).unwrap();
    assert_eq!(network.flows()[0].delivered, 100);
    let mut wrong = datagram(1, 2, 100);
    *wrong.last_mut().unwrap() ^= 1;
    network.inject(ms(3), a, wrong).unwrap();
    network.run_until(ms(4)).unwrap();
    assert_eq!(network.flows()[0].delivered, 100);
}

#[test]
fn a_damaged_packet_leaves_damaged() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.gateway(), topology.gateway());
    topology.join(a, b, link("corrupt=100%"), link(""));
    let mut network = topology.build().unwrap();
    let sent = datagram(1, 2, 100);
    network.inject(ms(1), a, sent.clone()).unwrap();
    network.run_until(ms(1)).unwrap();
    let left = network.take_departure(b).unwrap().1;
    assert_eq!(left.len(), sent.len());
    assert_ne!(left, sent);
}

/// Two networks whose gateways are joined by hand, and what one that is whole does.
#[test]
fn a_network_cut_in_two_does_what_the_whole_one_does() {
    const BYTES: u64 = 300_000;
    const LINK: &str = "rate=10Mbit/s, delay=10ms, queue=20 packets";
    let remote = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
    let bulk = || bulk(FLOW, remote.into(), Amount::Bytes(BYTES));
    let sink = || sink(FLOW, PORT);

    let mut topology = Topology::new(3);
    let ends = [topology.host(HostConfig::default()), topology.host(HostConfig::default())];
    topology.join(ends[0], ends[1], link(LINK), link(LINK));
    topology.run(ends[0], Instant::ZERO, bulk()).unwrap();
    topology.run(ends[1], Instant::ZERO, sink()).unwrap();
    let mut whole = topology.build().unwrap();
    whole.run_until(ms(3000)).unwrap();

    let mut topology = Topology::new(3);
    let (near, out) = (topology.host(HostConfig::default()), topology.gateway());
    topology.join(near, out, link(LINK), link(LINK));
    topology.run(near, Instant::ZERO, bulk()).unwrap();
    let mut left = topology.build().unwrap();
    let mut topology = Topology::new(3);
    let (back, far) = (topology.gateway(), topology.host(HostConfig::default()));
    topology.join(back, far, link(""), link(""));
    topology.run(far, Instant::ZERO, sink()).unwrap();
    let mut right = topology.build().unwrap();

    while let Some(at) = [left.next_event(), right.next_event()].into_iter().flatten().min()
        && at <= ms(3000)
    {
        left.run_until(at).unwrap();
        right.run_until(at).unwrap();
        while let Some((at, bytes)) = left.take_departure(out) {
            right.inject(at, back, bytes).unwrap();
        }
        while let Some((at, bytes)) = right.take_departure(back) {
            left.inject(at, out, bytes).unwrap();
        }
    }
    let mut ledger = std::mem::take(right.ledger());
    left.ledger().absorb(&mut ledger);
    let (one, two) = (&whole.flows()[0], &left.flows()[0]);
    assert_eq!((two.delivered, two.completions.len()), (BYTES, 1));
    assert_eq!(two.completions, one.completions);
    assert_eq!(two.finished, one.finished);
}

#[test]
fn datagrams_leave_with_their_checksums() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.host(HostConfig::default()), topology.gateway());
    topology.join(a, b, link(""), link(""));
    let rate: Rate = "1Mbit/s".parse().unwrap();
    let constant = crate::random::Draw::Constant;
    let remote = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
    let periods = (constant(1_000_000), constant(0));
    let source = on_off(FLOW, 9, remote, rate, 97, periods, ms(1));
    topology.run(a, Instant::ZERO, source).unwrap();
    let mut network = topology.build().unwrap();
    network.run_until(ms(0) + Duration::from_micros(999)).unwrap();
    let (at, left) = network.take_departure(b).unwrap();
    let ip = IpPacket::parse(&left).unwrap();
    assert_eq!((at, ip.total_len()), (ms(0), 125));
    assert!(ip.transport_checksum_ok());
}
