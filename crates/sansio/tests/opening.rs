//! `bind`, `listen`, `accept` and `connect`, with their errors.

use crate::support;
use libc::{
    AF_INET, AF_INET6, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF,
    ECONNABORTED, ECONNREFUSED, EINPROGRESS, EINTR, EINVAL, EISCONN, ENETUNREACH, ENOTCONN,
    EPROTONOSUPPORT, ESOCKTNOSUPPORT, ETIMEDOUT, SHUT_RD, SHUT_WR, SO_ERROR, SO_REUSEADDR,
    SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET,
};

use crate::support::{Dialogue, Pair, accepted, at, drain, failed, host, host_with, ms, only};
use transom_sansio::{Host, SocketCalls};
use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

fn socket(host: &mut Host) -> i32 {
    host.socket(AF_INET, SOCK_STREAM, 0).unwrap()
}

fn error_of(host: &mut Host, fd: i32) -> i32 {
    let bytes = host.option(fd, SOL_SOCKET, SO_ERROR).unwrap();
    i32::from_ne_bytes(bytes.try_into().unwrap())
}

#[test]
fn descriptors_are_the_lowest_free_ones_from_three_on() {
    let mut host = host(support::LOCAL);
    assert_eq!([socket(&mut host), socket(&mut host), socket(&mut host)], [3, 4, 5]);
    host.close(4).unwrap();
    assert_eq!(host.close(4), failed(EBADF));
    assert_eq!(socket(&mut host), 4);
    for bad in [-1, 0, 2, 6, i32::MIN, i32::MAX] {
        assert_eq!(host.listen(bad, 1), failed(EBADF));
    }
}

#[test]
fn only_tcp_sockets_can_be_had() {
    let mut host = host(support::LOCAL);
    assert_eq!(host.socket(1, SOCK_STREAM, 0), failed(EAFNOSUPPORT));
    assert_eq!(host.socket(AF_INET, 2, 0), failed(ESOCKTNOSUPPORT));
    assert_eq!(host.socket(AF_INET, SOCK_STREAM, 17), failed(EPROTONOSUPPORT));
    assert!(host.socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 6).is_ok());
}

#[test]
fn a_nonblocking_connect_goes_through_its_answers() {
    let mut host = host(support::LOCAL);
    let fd = host.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
    let remote = at("192.0.2.2:80");
    assert_eq!(host.connect(fd, remote), failed(EINPROGRESS));
    assert_eq!(host.connect(fd, remote), failed(EALREADY));
    assert_eq!(host.peer_address(fd), failed(ENOTCONN));
    let syn = only(&mut host);
    assert_eq!(syn.header.flags, Flags::SYN);
    let mut peer = support::peer(80, syn.header.src_port);
    peer.take(&[syn]);
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    assert_eq!(host.connect(fd, remote), Ok(()), "once");
    assert_eq!(host.connect(fd, remote), failed(EISCONN));
    assert_eq!(host.peer_address(fd), Ok(remote));
    assert_eq!(host.local_address(fd).unwrap().port(), peer.to.port());
    assert_eq!(only(&mut host).header.flags, Flags::ACK);
}

#[test]
fn a_refused_connect_says_so_once_and_may_be_repeated() {
    let mut host = host(support::LOCAL);
    let fd = host.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
    for by_option in [false, true] {
        assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINPROGRESS));
        let syn = only(&mut host);
        let mut peer = support::peer(80, syn.header.src_port);
        peer.take(&[syn]);
        peer.send(&mut host, Flags::RST | Flags::ACK, b"");
        if by_option {
            assert_eq!(error_of(&mut host, fd), ECONNREFUSED);
            assert_eq!(error_of(&mut host, fd), 0, "reading it clears it");
            // As on Linux: the attempt is over, and its reason has been taken.
            assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(ECONNABORTED));
        } else {
            assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(ECONNREFUSED));
        }
    }
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINPROGRESS));
}

#[test]
fn a_blocking_connect_waits_as_long_as_patience_lasts_and_then_goes_on() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    let remote = at("192.0.2.2:80");
    assert_eq!(host.connect(fd, remote), failed(EINTR), "no patience at first");
    assert_eq!(host.now(), Instant::ZERO);
    host.set_patience(ms(2500)).unwrap();
    assert_eq!(host.connect(fd, remote), failed(EINTR));
    assert_eq!(host.now(), Instant::from_millis(2500));
    // RFC 6298: the SYN again after one second; after two more it would be three.
    let seen = drain(&mut host);
    let times: Vec<_> = seen.iter().map(|seen| seen.at.as_millis()).collect();
    assert_eq!(times, [0, 1000]);
    let mut peer = support::peer(80, seen[0].header.src_port);
    peer.take(&seen);
    let answer = peer.next(Flags::SYN | Flags::ACK, b"");
    host.inject(Instant::from_millis(2600), &answer).unwrap();
    assert_eq!(host.connect(fd, remote), Ok(()));
    assert_eq!(host.now(), Instant::from_millis(2600), "no longer than it takes");
}

/// [MUST-22]
#[test]
fn an_unanswered_connect_times_out() {
    let mut host = host_with(support::LOCAL, |config| {
        let profile = config.profile.as_ref().clone().with_syn_r2(2);
        config.profile = profile.into();
    });
    let fd = socket(&mut host);
    host.set_patience(Duration::from_secs(60)).unwrap();
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(ETIMEDOUT));
    // The SYN at 0, 1 and 3 s; given up when the next would be due.
    assert_eq!(host.now(), Instant::from_secs(7));
    assert_eq!(drain(&mut host).len(), 3);
}

/// [MUST-46]
#[test]
fn addresses_that_cannot_be_connected_to() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    assert_eq!(host.connect(fd, at("[2001:db8::1]:80")), failed(EAFNOSUPPORT));
    assert_eq!(host.connect(fd, at("224.0.0.1:80")), failed(ENETUNREACH));
    assert_eq!(host.connect(fd, at("255.255.255.255:80")), failed(ENETUNREACH));
    assert_eq!(host.connect(fd, at("192.0.2.2:0")), failed(EINVAL));
    let six = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    assert_eq!(host.connect(six, at("[2001:db8::1]:80")), failed(ENETUNREACH));
    assert!(drain(&mut host).is_empty());
}

#[test]
fn binding_has_rules() {
    let mut host = host(support::LOCAL);
    let [first, second, third] = [socket(&mut host), socket(&mut host), socket(&mut host)];
    assert_eq!(host.bind(first, at("192.0.2.9:80")), failed(EADDRNOTAVAIL));
    assert_eq!(host.bind(first, at("[::]:80")), failed(EAFNOSUPPORT));
    assert_eq!(host.bind(first, at("192.0.2.1:80")), Ok(()));
    assert_eq!(host.bind(first, at("192.0.2.1:81")), failed(EINVAL), "bound already");
    assert_eq!(host.bind(second, at("0.0.0.0:80")), failed(EADDRINUSE));
    assert_eq!(host.bind(second, at("127.0.0.1:80")), failed(EADDRNOTAVAIL));
    assert_eq!(host.bind(second, at("0.0.0.0:0")), Ok(()));
    assert_ne!(host.local_address(second).unwrap().port(), 0);
    assert_eq!(host.local_address(third).unwrap(), at("0.0.0.0:0"));
    // Listening binds what is not bound.
    host.listen(third, 1).unwrap();
    let port = host.local_address(third).unwrap().port();
    assert!(port != 0 && port != host.local_address(second).unwrap().port());
    assert_eq!(host.connect(third, at("192.0.2.2:80")), failed(EISCONN));
}

/// [MUST-43] The address and port that were bound are those of the connection.
#[test]
fn a_bound_socket_connects_from_there() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    host.bind(fd, at("192.0.2.1:4000")).unwrap();
    host.set_patience(ms(10)).unwrap();
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINTR));
    assert_eq!(host.local_address(fd), Ok(at("192.0.2.1:4000")));
    assert_eq!(only(&mut host).header.src_port, 4000);
}

#[test]
fn two_sockets_share_a_port_if_both_say_so_and_neither_listens() {
    let mut host = host(support::LOCAL);
    let [first, second] = [socket(&mut host), socket(&mut host)];
    host.set_option(first, SOL_SOCKET, SO_REUSEADDR, &1i32.to_ne_bytes()).unwrap();
    host.bind(first, at("0.0.0.0:80")).unwrap();
    assert_eq!(host.bind(second, at("0.0.0.0:80")), failed(EADDRINUSE));
    host.set_option(second, SOL_SOCKET, SO_REUSEADDR, &1i32.to_ne_bytes()).unwrap();
    host.bind(second, at("0.0.0.0:80")).unwrap();
    host.listen(first, 1).unwrap();
    assert_eq!(host.listen(second, 1), failed(EADDRINUSE));
    let third = socket(&mut host);
    host.set_option(third, SOL_SOCKET, SO_REUSEADDR, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(host.bind(third, at("0.0.0.0:80")), failed(EADDRINUSE), "one listens");
}

/// [MUST-13]
#[test]
fn time_wait_holds_the_port_unless_it_may_be_reused() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.shutdown(fd, SHUT_WR).unwrap();
    let fin = drain(&mut host);
    peer.take(&fin);
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"");
    host.close(fd).unwrap();
    assert_eq!(host.stack().time_wait_count(), 1);
    let fd = socket(&mut host);
    assert_eq!(host.bind(fd, at("0.0.0.0:80")), failed(EADDRINUSE));
    host.set_option(fd, SOL_SOCKET, SO_REUSEADDR, &1i32.to_ne_bytes()).unwrap();
    assert_eq!(host.bind(fd, at("0.0.0.0:80")), Ok(()));
    assert_eq!(host.listen(fd, 1), Ok(()));
}

#[test]
fn a_backlog_of_one_lets_two_wait() {
    let mut host = host(support::LOCAL);
    let listener = host.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
    host.bind(listener, at("192.0.2.1:80")).unwrap();
    assert_eq!(host.accept(listener, 0), failed(EINVAL), "it does not listen yet");
    host.listen(listener, 1).unwrap();
    assert_eq!(host.accept(listener, 0), failed(EAGAIN));
    let mut answered = 0;
    for port in 40_000..40_003 {
        let mut peer = support::peer(port, 80);
        peer.send(&mut host, Flags::SYN, b"");
        let seen = drain(&mut host);
        answered += seen.len();
        peer.take(&seen);
        if !seen.is_empty() {
            peer.send(&mut host, Flags::ACK, b"");
        }
    }
    assert_eq!(answered, 2, "the third SYN finds the queue full and is not answered");
    host.listen(listener, 2).unwrap();
    let mut peer = support::peer(40_003, 80);
    peer.send(&mut host, Flags::SYN, b"");
    assert_eq!(drain(&mut host).len(), 1, "listening again made room");
    assert_eq!(host.accept(listener, SOCK_NONBLOCK).unwrap(), (4, at("192.0.2.2:40000")));
    assert_eq!(host.accept(listener, 0).unwrap(), (5, at("192.0.2.2:40001")));
    assert_eq!(host.accept(listener, 1 << 30), failed(EINVAL));
    assert_eq!(host.listen(4, 1), failed(EINVAL), "connected");
    assert_eq!(host.local_address(5), Ok(at("192.0.2.1:80")));
}

#[test]
fn shutting_a_listener_makes_it_a_socket_again() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    host.bind(fd, at("192.0.2.1:80")).unwrap();
    host.listen(fd, 1).unwrap();
    host.shutdown(fd, SHUT_WR).unwrap();
    assert_eq!(host.accept(fd, 0), failed(EINTR), "it still listens");
    host.shutdown(fd, SHUT_RD).unwrap();
    assert_eq!(host.accept(fd, 0), failed(EINVAL));
    let mut peer = support::peer(40_000, 80);
    peer.send(&mut host, Flags::SYN, b"");
    assert!(only(&mut host).header.flags.contains(Flags::RST));
    host.listen(fd, 1).unwrap();
}

/// [MUST-44] [MUST-45]
#[test]
fn two_hosts_connect_over_ipv6() {
    let mut pair = Pair::new(host("2001:db8::1"), host("2001:db8::2"), ms(5));
    let listener = pair.b().socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    pair.b().bind(listener, at("[::]:80")).unwrap();
    pair.b().listen(listener, 1).unwrap();
    let client = pair.a().socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    pair.complete(|pair| pair.a().connect(client, at("[2001:db8::2]:80"))).unwrap();
    assert_eq!(pair.a().now(), Instant::from_millis(10), "a round trip");
    let (server, remote) = pair.complete(|pair| pair.b().accept(listener, 0)).unwrap();
    assert_eq!(pair.a().local_address(client), Ok(remote));
    pair.a().write(client, b"over six").unwrap();
    let mut buffer = [0; 32];
    assert_eq!(pair.complete(|pair| pair.b().read(server, &mut buffer)), Ok(8));
    assert_eq!(&buffer[..8], b"over six");
}
