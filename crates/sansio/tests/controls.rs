//! The options that shape segments and wake-ups: TCP_CORK, MSG_MORE, MSG_EOR, TCP_NOTSENT_LOWAT, SO_RCVLOWAT, TCP_QUICKACK, TCP_LINGER2 and
//! IP_MTU_DISCOVER, with what Linux 6.18 shows of them.

use crate::support;
use libc::{
    AF_INET, AF_INET6, EAGAIN, EINVAL, ENOPROTOOPT, ENOTCONN, EOPNOTSUPP, IP_MTU, IP_MTU_DISCOVER,
    IP_PMTUDISC_DO, IP_PMTUDISC_DONT, IP_PMTUDISC_OMIT, IP_PMTUDISC_PROBE, IP_PMTUDISC_WANT,
    IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPV6_MTU, IPV6_MTU_DISCOVER, MSG_DONTWAIT, MSG_EOR,
    MSG_MORE, O_NONBLOCK, POLLIN, POLLOUT, SIOCOUTQNSD, SO_RCVLOWAT, SO_RCVTIMEO, SO_SNDLOWAT,
    SOCK_STREAM, SOL_SOCKET, TCP_CORK, TCP_LINGER2, TCP_NODELAY, TCP_NOTSENT_LOWAT, TCP_QUICKACK,
};

use crate::support::{Dialogue, accepted, at, drain, failed, host, host_with, ms, only};
use transom_sansio::{Host, PollFd, Result, SocketCalls};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

fn set(host: &mut Host, fd: i32, level: i32, name: i32, value: i32) -> Result<()> {
    host.set_option(fd, level, name, &value.to_ne_bytes())
}

fn get(host: &mut Host, fd: i32, level: i32, name: i32) -> i32 {
    let bytes = host.option(fd, level, name).unwrap();
    i32::from_ne_bytes(bytes.try_into().unwrap())
}

fn socket(host: &mut Host) -> i32 {
    host.socket(AF_INET, SOCK_STREAM, 0).unwrap()
}

fn payloads(host: &mut Host) -> Vec<usize> {
    drain(host).iter().map(|seen| seen.payload.len()).filter(|&len| len > 0).collect()
}

/// Whether a descriptor is readable and writable in poll's sense.
fn ready(host: &mut Host, fd: i32) -> (bool, bool) {
    let mut fds = [PollFd { fd, events: POLLIN | POLLOUT, revents: 0 }];
    host.poll(&mut fds, 0).unwrap();
    (fds[0].revents & POLLIN != 0, fds[0].revents & POLLOUT != 0)
}

#[test]
fn a_new_socket_shows_and_takes_options() {
    let mut host = host(support::LOCAL);
    let fd = socket(&mut host);
    // (option, at first, set, shown)
    let rows = [
        (IPPROTO_TCP, TCP_CORK, 0, 7, 1),
        (IPPROTO_TCP, TCP_QUICKACK, 1, 0, 0),
        (IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0, 12_345, 12_345),
        (IPPROTO_TCP, TCP_NOTSENT_LOWAT, 12_345, -1, -1),
        (SOL_SOCKET, SO_RCVLOWAT, 1, 0, 1),
        (SOL_SOCKET, SO_RCVLOWAT, 1, 5_000, 5_000),
        // Never more than half of the largest buffer, which is 6 MiB here.
        (SOL_SOCKET, SO_RCVLOWAT, 5_000, -5, 3 << 20),
        (IPPROTO_TCP, TCP_LINGER2, 60, 5, 5),
        (IPPROTO_TCP, TCP_LINGER2, 5, 121, 120),
        (IPPROTO_TCP, TCP_LINGER2, 120, -3, -1),
        (IPPROTO_TCP, TCP_LINGER2, -1, 0, 60),
        (IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT, IP_PMTUDISC_PROBE, IP_PMTUDISC_PROBE),
    ];
    for (level, name, first, value, shown) in rows {
        assert_eq!(get(&mut host, fd, level, name), first, "{level} {name}");
        set(&mut host, fd, level, name, value).unwrap();
        assert_eq!(get(&mut host, fd, level, name), shown, "{level} {name}");
    }
    assert_eq!(get(&mut host, fd, SOL_SOCKET, SO_SNDLOWAT), 1);
    assert_eq!(set(&mut host, fd, SOL_SOCKET, SO_SNDLOWAT, 2), failed(ENOPROTOOPT));
    for bad in [-1, 6] {
        assert_eq!(set(&mut host, fd, IPPROTO_IP, IP_MTU_DISCOVER, bad), failed(EINVAL));
    }
    assert_eq!(host.option(fd, IPPROTO_IP, IP_MTU), failed(ENOTCONN));
    assert_eq!(host.option(fd, IPPROTO_IPV6, IPV6_MTU), failed(ENOPROTOOPT));
}

/// [MAY-16] What is written little by little leaves together.
#[test]
fn cork() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 1).unwrap();
    // The peer's MSS is 536, as it did not say.
    host.write(fd, &[1; 300]).unwrap();
    host.write(fd, &[2; 300]).unwrap();
    let seen = only(&mut host);
    assert_eq!(seen.payload.len(), 536);
    peer.take(&[seen]);
    peer.send(&mut host, Flags::ACK, b"");
    assert!(drain(&mut host).is_empty());
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 0).unwrap();
    assert_eq!(only(&mut host).payload.len(), 64);
}

/// [MUST-60] Nothing is held for ever.
#[test]
fn cork_lets_go_after_200_ms() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 1).unwrap();
    host.write(fd, b"held").unwrap();
    host.run_to(Instant::from_millis(199)).unwrap();
    assert!(drain(&mut host).is_empty());
    host.run_to(Instant::from_millis(200)).unwrap();
    assert_eq!(only(&mut host).payload, b"held");
}

#[test]
fn more_and_the_end_of_a_record() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    set(&mut host, fd, IPPROTO_TCP, TCP_NODELAY, 1).unwrap();
    assert_eq!(host.send(fd, b"head ", MSG_MORE), Ok(5));
    assert!(drain(&mut host).is_empty());
    assert_eq!(host.send(fd, b"body", 0), Ok(4));
    assert_eq!(only(&mut host).payload, b"head body");
    // While corked, records pile up and stay apart.
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 1).unwrap();
    for record in [&b"one"[..], b"two", b"three"] {
        assert_eq!(host.send(fd, record, MSG_EOR), Ok(record.len()));
    }
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 0).unwrap();
    let seen: Vec<_> = drain(&mut host).into_iter().map(|seen| seen.payload).collect();
    assert_eq!(seen, [&b"one"[..], b"two", b"three"]);
    assert_eq!(host.send(fd, b"x", 0x100_0000), failed(EOPNOTSUPP));
}

#[test]
fn unsent_data_is_bounded() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.fcntl(fd, libc::F_SETFL, O_NONBLOCK).unwrap();
    set(&mut host, fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 4_000).unwrap();
    let written = host.write(fd, &[0; 100_000]).unwrap();
    assert_eq!(host.ioctl(fd, SIOCOUTQNSD), Ok(4_000));
    assert!((8_000..10_000).contains(&written), "the initial window, and the mark: {written}");
    assert_eq!(host.write(fd, &[0; 100_000]), failed(EAGAIN));
    assert!(!ready(&mut host, fd).1);
    peer.take(&drain(&mut host)[..4]);
    peer.send(&mut host, Flags::ACK, b"");
    // Less than half of the mark is unsent.
    assert!(ready(&mut host, fd).1);
}

#[test]
fn a_reader_waits_for_the_low_water_mark() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    set(&mut host, fd, SOL_SOCKET, SO_RCVLOWAT, 10).unwrap();
    let mut buffer = [0; 100];
    peer.send(&mut host, Flags::ACK, b"12345");
    assert!(!ready(&mut host, fd).0);
    // A blocking call waits, one that has room for less does not, nor does one that never waits.
    assert_eq!(host.recv(fd, &mut buffer, libc::MSG_PEEK), Ok(5));
    assert_eq!(host.read(fd, &mut buffer[..2]), Ok(2));
    assert_eq!(host.recv(fd, &mut buffer, MSG_DONTWAIT), Ok(3));
    peer.send(&mut host, Flags::ACK, b"12345");
    set(&mut host, fd, SOL_SOCKET, SO_RCVTIMEO, 0).unwrap_err();
    let quarter = [0i64, 250_000].map(i64::to_ne_bytes).concat();
    host.set_option(fd, SOL_SOCKET, SO_RCVTIMEO, &quarter).unwrap();
    host.set_patience(Duration::from_secs(9)).unwrap();
    let start = host.now();
    assert_eq!(host.read(fd, &mut buffer), Ok(5), "at the end of its patience");
    assert_eq!(host.now(), start + ms(250));
    let packet = peer.next(Flags::ACK, b"1234567890ab");
    host.inject(host.now() + ms(100), &packet).unwrap();
    assert_eq!(host.read(fd, &mut buffer), Ok(12));
    assert_eq!(host.now(), start + ms(350));
    // The end of the stream is news at once.
    peer.send(&mut host, Flags::ACK | Flags::FIN, b"z");
    assert!(ready(&mut host, fd).0);
    assert_eq!(host.read(fd, &mut buffer), Ok(1));
}

#[test]
fn quick_acknowledgements_and_ping_pong() {
    let mut host = host_with(support::LOCAL, |config| {
        config.profile = compose("modern").unwrap().into();
    });
    let (fd, mut peer) = accepted(&mut host);
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK), 1);
    peer.send(&mut host, Flags::ACK, b"request");
    assert_eq!(drain(&mut host).len(), 1, "at once");
    host.write(fd, b"reply").unwrap();
    peer.take(&drain(&mut host));
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK), 0, "they take turns");
    peer.send(&mut host, Flags::ACK, b"request");
    assert!(drain(&mut host).is_empty());
    set(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK, 1).unwrap();
    assert_eq!(drain(&mut host).len(), 1, "what waited");
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK), 1);
    // Off, for once on, off.
    set(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK, 0).unwrap();
    peer.send(&mut host, Flags::ACK, b"request");
    assert!(drain(&mut host).is_empty());
    set(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK, 2).unwrap();
    assert_eq!(drain(&mut host).len(), 1);
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_QUICKACK), 0);
}

#[test]
fn the_lifetime_of_fin_wait_2() {
    for (linger2, seconds) in [(0, 60), (5, 5), (-1, 0)] {
        let mut host = host(support::LOCAL);
        let (fd, mut peer) = accepted(&mut host);
        set(&mut host, fd, IPPROTO_TCP, TCP_LINGER2, linger2).unwrap();
        host.close(fd).unwrap();
        peer.take(&drain(&mut host));
        peer.send(&mut host, Flags::ACK, b"");
        let start = host.now();
        assert_eq!(host.stack().connection_count(), usize::from(seconds > 0), "{linger2}");
        if seconds > 0 {
            host.run_to(start + Duration::from_secs(seconds) - ms(1)).unwrap();
            assert_eq!(host.stack().connection_count(), 1);
            host.run_to(start + Duration::from_secs(seconds)).unwrap();
            assert_eq!(host.stack().connection_count(), 0);
        }
        // It is a stranger now.
        peer.send(&mut host, Flags::ACK | Flags::FIN, b"");
        assert!(only(&mut host).header.flags.contains(Flags::RST));
    }
}

#[test]
fn options_pass_from_listeners_and_to_connections() {
    let mut host = host(support::LOCAL);
    let listener = socket(&mut host);
    for (level, name, value) in [
        (IPPROTO_TCP, TCP_CORK, 1),
        (IPPROTO_TCP, TCP_NOTSENT_LOWAT, 999),
        (IPPROTO_TCP, TCP_LINGER2, 7),
        (SOL_SOCKET, SO_RCVLOWAT, 33),
        (IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT),
    ] {
        set(&mut host, listener, level, name, value).unwrap();
    }
    host.bind(listener, at("0.0.0.0:80")).unwrap();
    host.listen(listener, 1).unwrap();
    let mut peer = support::peer(4000, 80);
    peer.send(&mut host, Flags::SYN, b"");
    let syn_ack = only(&mut host);
    peer.take(&[syn_ack]);
    peer.send(&mut host, Flags::ACK, b"");
    let (fd, _) = host.accept(listener, 0).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 999);
    assert_eq!(get(&mut host, fd, IPPROTO_TCP, TCP_LINGER2), 7);
    assert_eq!(get(&mut host, fd, SOL_SOCKET, SO_RCVLOWAT), 33);
    host.write(fd, b"corked").unwrap();
    peer.send(&mut host, Flags::ACK, b"too little");
    assert!(!ready(&mut host, fd).0);
    assert_eq!(payloads(&mut host), [0; 0]);
    set(&mut host, fd, IPPROTO_TCP, TCP_CORK, 0).unwrap();
    assert_eq!(payloads(&mut host), [6]);

    // And what was set before connecting.
    let client = socket(&mut host);
    set(&mut host, client, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT).unwrap();
    set(&mut host, client, IPPROTO_TCP, TCP_CORK, 1).unwrap();
    drain(&mut host);
    let _ = host.connect(client, at("192.0.2.2:80"));
    let (left, packet) = host.next_packet().unwrap();
    assert_eq!(packet[6] & 0x40, 0, "the SYN may be fragmented");
    let syn = support::Seen::parse(left, &packet);
    let mut peer = support::peer(80, syn.header.src_port);
    peer.take(&[syn]);
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    drain(&mut host);
    host.write(client, b"corked").unwrap();
    assert!(drain(&mut host).is_empty());
    assert_eq!(get(&mut host, client, IPPROTO_IP, IP_MTU), 1500);
    // DF is a live connection's to change.
    set(&mut host, client, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO).unwrap();
    set(&mut host, client, IPPROTO_TCP, TCP_CORK, 0).unwrap();
    let (_, packet) = host.next_packet().unwrap();
    assert_eq!(packet[6] & 0x40, 0x40);
}

#[test]
fn ipv6_has_its_own_mtu_discovery() {
    let mut host = host("2001:db8::1");
    let fd = host.socket(AF_INET6, SOCK_STREAM, 0).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER), IP_PMTUDISC_WANT);
    set(&mut host, fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IP_PMTUDISC_OMIT).unwrap();
    assert_eq!(get(&mut host, fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER), IP_PMTUDISC_OMIT);
    assert_eq!(get(&mut host, fd, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_WANT);
    assert_eq!(host.option(fd, IPPROTO_IPV6, IPV6_MTU), failed(ENOTCONN));
}
