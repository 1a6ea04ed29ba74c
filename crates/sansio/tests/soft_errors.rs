//! What ICMP says of a connection's packets, as sockets tell it: `IP_RECVERR`.

use crate::support;
use libc::{EHOSTUNREACH, EINTR, IP_RECVERR, IPPROTO_IP, POLLERR, POLLOUT, SO_ERROR, SOL_SOCKET};

use crate::support::{Dialogue, accepted, drain, failed, host};
use std::net::IpAddr;
use transom_sansio::{Host, PollFd, SocketCalls};
use transom_tcp::time::Duration;
use transom_testkit::packets::icmp;
use transom_wire::{Flags, IcmpMessage, UnreachableCode};

/// A router says of what the host sent last that the host at the other end cannot be reached.
fn report(host: &mut Host) {
    let (_, packet) = std::iter::from_fn(|| host.next_packet()).last().expect("a packet");
    let message = IcmpMessage::Unreachable { code: UnreachableCode::Host, quoted: &packet };
    let [router, local] = ["192.0.2.254", support::LOCAL].map(|ip| ip.parse::<IpAddr>().unwrap());
    host.inject(host.now(), &icmp(router, local, &message)).unwrap();
}

fn error_of(host: &mut Host, fd: i32) -> i32 {
    i32::from_ne_bytes(host.option(fd, SOL_SOCKET, SO_ERROR).unwrap().try_into().unwrap())
}

fn ready(host: &mut Host, fd: i32) -> i16 {
    let mut fds = [PollFd { fd, events: POLLOUT, revents: 0 }];
    host.poll(&mut fds, 0).unwrap();
    fds[0].revents
}

/// [SHLD-20] [MUST-56] Who does not ask is not told until the connection ends; then it is why.
#[test]
fn by_default_only_the_end_tells() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    host.write(fd, b"lost").unwrap();
    report(&mut host);
    assert_eq!((ready(&mut host, fd), error_of(&mut host, fd)), (POLLOUT, 0));
    host.write(fd, b"lost too").unwrap();
    host.set_patience(Duration::from_secs(3_600)).unwrap();
    assert_eq!(host.read(fd, &mut [0]), failed(EHOSTUNREACH));
}

/// [MUST-47] [SHLD-25] [MUST-56] Who asks is told by the next call, once for each report, and the connection goes on.
#[test]
fn calls_tell_who_asks() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.set_option(fd, IPPROTO_IP, IP_RECVERR, &1i32.to_ne_bytes()).unwrap();
    for told in 0..3 {
        host.write(fd, &[told; 10]).unwrap();
        report(&mut host);
        assert_eq!(ready(&mut host, fd), POLLOUT | POLLERR);
        match told {
            0 => assert_eq!(host.read(fd, &mut [0]), failed(EHOSTUNREACH)),
            1 => assert_eq!(host.write(fd, &[0]), failed(EHOSTUNREACH)),
            _ => assert_eq!(error_of(&mut host, fd), EHOSTUNREACH),
        }
        assert_eq!((ready(&mut host, fd), error_of(&mut host, fd)), (POLLOUT, 0));
        host.set_patience(Duration::from_secs(60)).unwrap();
        assert_eq!(host.read(fd, &mut [0]), failed(EINTR), "nothing to read, and it was told");
        let again = drain(&mut host);
        assert!(!again.is_empty(), "it goes on");
        peer.take(&again);
        peer.send(&mut host, Flags::ACK, b"");
    }
}
