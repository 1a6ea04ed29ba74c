//! IPv6 listeners that take IPv4 connections, and IPv4-mapped addresses.

use super::*;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn any6() -> SocketAddr {
    SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)
}

fn any4(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)
}

fn as_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Says so if there is no IPv6 here.
fn without_ipv6(world: &World) -> bool {
    let missing = world.server6().is_none();
    if missing {
        eprintln!("SKIPPED: this machine has no IPv6 on its loopback interface");
    }
    missing
}

#[test]
fn an_ipv6_listener_shows_ipv4_peers_as_mapped_addresses() {
    let world = World::new();
    if without_ipv6(&world) {
        return;
    }
    let listener = world.listen_at(any6()).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(listener.local_addr().unwrap().ip(), any6().ip());
    let v4 = SocketAddr::new(world.server().ip(), port);
    let mut client = world.connect(v4).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer, as_mapped(client.local_addr().unwrap()));
    assert_eq!(server.peer_addr().unwrap(), peer);
    assert_eq!(server.local_addr().unwrap(), as_mapped(v4));
    assert_eq!(server.try_clone().unwrap().peer_addr().unwrap(), peer);
    client.write_all(b"over four").unwrap();
    assert_eq!(read_exactly(&server, 9), b"over four");

    let v6 = SocketAddr::new(world.server6().unwrap(), port);
    let client = world.connect(v6).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    assert_eq!(server.local_addr().unwrap(), v6);
}

#[test]
fn connecting_to_a_mapped_address_makes_an_ipv4_connection() {
    let world = World::new();
    if without_ipv6(&world) {
        return;
    }
    let (listener, addr) = listen(&world);
    let client = world.connect(as_mapped(addr)).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert!(peer.is_ipv4());
    assert_eq!(server.local_addr().unwrap(), addr);
    assert_eq!(client.peer_addr().unwrap(), as_mapped(addr));
    assert_eq!(client.local_addr().unwrap(), as_mapped(peer));
}

#[test]
fn a_listener_at_a_mapped_address_is_ipv4s() {
    let world = World::new();
    if without_ipv6(&world) {
        return;
    }
    let listener = world.listen_at(as_mapped(world.server())).unwrap();
    let local = listener.local_addr().unwrap();
    assert_eq!(local.ip(), as_mapped(world.server()).ip());
    let v4 = SocketAddr::new(world.server().ip(), local.port());
    let client = world.connect(v4).unwrap();
    let (_, peer) = listener.accept().unwrap();
    assert_eq!(peer, as_mapped(client.local_addr().unwrap()));
}

#[test]
fn a_dual_stack_listener_and_one_for_ipv4_exclude_each_other() {
    let world = World::new();
    if without_ipv6(&world) {
        return;
    }
    let dual = world.listen_at(any6()).unwrap();
    let port = dual.local_addr().unwrap().port();
    let exact = SocketAddr::new(world.server().ip(), port);
    for taken in [any4(port), exact, as_mapped(exact)] {
        assert_eq!(kind(world.listen_at(taken)), ErrorKind::AddrInUse, "{taken}");
    }
    drop(dual);
    let v4 = world.listen_at(exact).unwrap();
    let mut every6 = any6();
    every6.set_port(port);
    for taken in [every6, any4(port)] {
        assert_eq!(kind(world.listen_at(taken)), ErrorKind::AddrInUse, "{taken}");
    }
    // One IPv6 address is another place.
    let v6 = SocketAddr::new(world.server6().unwrap(), port);
    world.listen_at(v6).unwrap();
    drop(v4);
    world.listen_at(every6).unwrap();
}
