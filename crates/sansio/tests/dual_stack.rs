//! IPv6 sockets with IPv4 connections, as Linux has them: `IPV6_V6ONLY`, IPv4-mapped addresses, who may be bound beside whom.

use crate::support;
use libc::{
    AF_INET, AF_INET6, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, ENETUNREACH, ENOPROTOOPT,
    IP_TOS, IP_TTL, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPV6_TCLASS, IPV6_UNICAST_HOPS,
    IPV6_V6ONLY, SO_DOMAIN, SOCK_STREAM, SOL_SOCKET, TCP_NODELAY,
};

use crate::support::{Dialogue, Pair, at, drain, failed, host_with, ms, only};
use std::net::SocketAddr;
use transom_sansio::{Host, Result, SocketCalls};
use transom_wire::Flags;

/// A host with an address of each version.
fn both(v4: &str, v6: &str) -> Host {
    host_with(v4, |config| config.addresses.push((v6.parse().expect("an address"), 64)))
}

fn local() -> Host {
    both(support::LOCAL, "2001:db8::1")
}

fn set(host: &mut Host, fd: i32, level: i32, name: i32, value: i32) -> Result<()> {
    host.set_option(fd, level, name, &value.to_ne_bytes())
}

fn get(host: &mut Host, fd: i32, level: i32, name: i32) -> i32 {
    let bytes = host.option(fd, level, name).unwrap();
    i32::from_ne_bytes(bytes.try_into().unwrap())
}

/// A socket bound to `address`, of the address' family, for IPv6 alone or not.
fn bound(host: &mut Host, address: &str, v6_only: bool) -> Result<i32> {
    let address = at(address);
    let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    let fd = host.socket(family, SOCK_STREAM, 0).unwrap();
    if v6_only {
        set(host, fd, IPPROTO_IPV6, IPV6_V6ONLY, 1).unwrap();
    }
    match host.bind(fd, address) {
        Ok(()) => Ok(fd),
        Err(error) => {
            host.close(fd).unwrap();
            Err(error)
        }
    }
}

fn listening(host: &mut Host, address: &str) -> i32 {
    let fd = bound(host, address, false).unwrap();
    host.listen(fd, 5).unwrap();
    fd
}

#[test]
fn an_ipv6_listener_shows_ipv4_peers_as_mapped_addresses() {
    let mut pair = Pair::new(local(), both(support::REMOTE, "2001:db8::2"), ms(5));
    let listener = listening(pair.b(), "[::]:80");
    assert_eq!(get(pair.b(), listener, IPPROTO_IPV6, IPV6_V6ONLY), 0, "Linux' default");
    let client = pair.a().socket(AF_INET, SOCK_STREAM, 0).unwrap();
    pair.complete(|pair| pair.a().connect(client, at("192.0.2.2:80"))).unwrap();
    let (server, remote) = pair.complete(|pair| pair.b().accept(listener, 0)).unwrap();
    let port = pair.a().local_address(client).unwrap().port();
    assert_eq!(remote, at(&format!("[::ffff:192.0.2.1]:{port}")));
    assert_eq!(pair.b().peer_address(server), Ok(remote));
    assert_eq!(pair.b().local_address(server), Ok(at("[::ffff:192.0.2.2]:80")));
    assert_eq!(get(pair.b(), server, SOL_SOCKET, SO_DOMAIN), AF_INET6);
    pair.a().write(client, b"over four").unwrap();
    let mut buffer = [0; 32];
    assert_eq!(pair.complete(|pair| pair.b().read(server, &mut buffer)), Ok(9));
    assert_eq!(&buffer[..9], b"over four");

    let client = pair.a().socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    pair.complete(|pair| pair.a().connect(client, at("[2001:db8::2]:80"))).unwrap();
    let (_, remote) = pair.complete(|pair| pair.b().accept(listener, 0)).unwrap();
    assert_eq!(Ok(remote), pair.a().local_address(client));
}

#[test]
fn connecting_to_a_mapped_address_makes_an_ipv4_connection() {
    let mut pair = Pair::new(local(), both(support::REMOTE, "2001:db8::2"), ms(5));
    let listener = listening(pair.b(), "0.0.0.0:80");
    let client = pair.a().socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    pair.complete(|pair| pair.a().connect(client, at("[::ffff:192.0.2.2]:80"))).unwrap();
    assert_eq!(pair.a().peer_address(client), Ok(at("[::ffff:192.0.2.2]:80")));
    let local = pair.a().local_address(client).unwrap();
    assert_eq!(local.ip(), at("[::ffff:192.0.2.1]:1").ip());
    let (_, remote) = pair.complete(|pair| pair.b().accept(listener, 0)).unwrap();
    assert_eq!(remote, SocketAddr::new([192, 0, 2, 1].into(), local.port()));
}

#[test]
fn a_socket_for_ipv6_alone_has_nothing_to_do_with_ipv4() {
    let mut host = local();
    assert_eq!(bound(&mut host, "[::ffff:192.0.2.1]:80", true), failed(EINVAL));
    let fd = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    set(&mut host, fd, IPPROTO_IPV6, IPV6_V6ONLY, 1).unwrap();
    assert_eq!(host.connect(fd, at("[::ffff:192.0.2.2]:80")), failed(ENETUNREACH));
    let listener = bound(&mut host, "[::]:80", true).unwrap();
    host.listen(listener, 5).unwrap();
    support::peer(4000, 80).send(&mut host, Flags::SYN, b"");
    assert!(only(&mut host).header.flags.contains(Flags::RST));
    // What the address stands for is settled by binding.
    assert_eq!(set(&mut host, listener, IPPROTO_IPV6, IPV6_V6ONLY, 0), failed(EINVAL));
    assert_eq!(get(&mut host, listener, IPPROTO_IPV6, IPV6_V6ONLY), 1);
}

#[test]
fn addresses_of_the_other_kind() {
    let mut host = local();
    // As Linux 6.18 answers.
    let mapped = bound(&mut host, "[::ffff:192.0.2.1]:90", false).unwrap();
    assert_eq!(host.local_address(mapped), Ok(at("[::ffff:192.0.2.1]:90")));
    let six = bound(&mut host, "[2001:db8::1]:91", false).unwrap();
    assert_eq!(host.connect(six, at("[::ffff:192.0.2.2]:80")), failed(ENETUNREACH));
    assert_eq!(bound(&mut host, "[::ffff:192.0.2.77]:92", false), failed(EADDRNOTAVAIL));
    let four = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    assert_eq!(host.bind(four, at("[::ffff:192.0.2.1]:93")), failed(EAFNOSUPPORT));
    // IPv4's options are for IPv6 sockets too, not the other way round.
    assert_eq!(set(&mut host, four, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 9), failed(ENOPROTOOPT));
    assert_eq!(host.option(four, IPPROTO_IPV6, IPV6_V6ONLY), failed(ENOPROTOOPT));
    let fd = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    set(&mut host, fd, IPPROTO_IP, IP_TTL, 9).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_TTL), 9);
    assert_eq!(get(&mut host, fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS), 64);
}

/// Who may listen beside whom: the answers of Linux 6.18.
#[test]
fn two_listeners_never_have_the_same_packets() {
    let places = [
        ("0.0.0.0:80", false),
        ("192.0.2.1:80", false),
        ("[::]:80", false),
        ("[::]:80", true),
        ("[2001:db8::1]:80", false),
        ("[::ffff:192.0.2.1]:80", false),
        ("[::ffff:0.0.0.0]:80", false),
    ];
    let refused = ["1110011", "1110011", "1111111", "0011100", "0011100", "1110011", "1110011"];
    for ((first, first_only), row) in places.into_iter().zip(refused) {
        let mut host = local();
        let fd = bound(&mut host, first, first_only).unwrap();
        host.listen(fd, 5).unwrap();
        for ((second, second_only), expected) in places.into_iter().zip(row.bytes()) {
            let expected = if expected == b'1' { failed(EADDRINUSE) } else { Ok(()) };
            let outcome = bound(&mut host, second, second_only);
            let what = format!("{second} {second_only} beside {first} {first_only}");
            assert_eq!(outcome.map(|_| ()), expected, "{what}");
            if let Ok(fd) = outcome {
                host.listen(fd, 5).expect(&what);
                host.close(fd).unwrap();
            }
        }
    }
}

/// Ports that the host chooses are free for both versions.
#[test]
fn a_free_port_for_both_versions() {
    let mut host = both(support::LOCAL, "2001:db8::1");
    let four = bound(&mut host, "0.0.0.0:0", false).unwrap();
    let six = bound(&mut host, "[::]:0", false).unwrap();
    let [four, six] = [four, six].map(|fd| host.local_address(fd).unwrap().port());
    assert_ne!(four, six);
}

#[test]
fn time_to_live_and_hop_limit_are_two_things() {
    let mut host = local();
    let listener = listening(&mut host, "[::]:80");
    for (level, name, value) in [
        (IPPROTO_IP, IP_TTL, 33),
        (IPPROTO_IP, IP_TOS, 0x10),
        (IPPROTO_IPV6, IPV6_UNICAST_HOPS, 44),
        (IPPROTO_IPV6, IPV6_TCLASS, 0x20),
        (IPPROTO_TCP, TCP_NODELAY, 1),
    ] {
        set(&mut host, listener, level, name, value).unwrap();
    }
    let mut peer = support::peer(4000, 80);
    peer.send(&mut host, Flags::SYN, b"");
    let syn_ack = only(&mut host);
    peer.take(&[syn_ack]);
    peer.send(&mut host, Flags::ACK, b"");
    let (fd, _) = host.accept(listener, 0).unwrap();
    host.write(fd, b"x").unwrap();
    let seen = only(&mut host);
    assert_eq!((seen.ttl, seen.traffic_class), (33, 0x10), "IPv4's");
    set(&mut host, fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 55).unwrap();
    set(&mut host, fd, IPPROTO_IP, IP_TTL, 66).unwrap();
    host.write(fd, b"y").unwrap();
    assert_eq!(only(&mut host).ttl, 66);

    let client = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    set(&mut host, client, IPPROTO_IP, IP_TTL, 77).unwrap();
    set(&mut host, client, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 88).unwrap();
    let _ = host.connect(client, at("[2001:db8::2]:80"));
    assert_eq!(only(&mut host).ttl, 88);
    host.close(client).unwrap();
    let client = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    set(&mut host, client, IPPROTO_IP, IP_TTL, 77).unwrap();
    drain(&mut host);
    let _ = host.connect(client, at("[::ffff:192.0.2.2]:80"));
    assert_eq!(only(&mut host).ttl, 77);
}
