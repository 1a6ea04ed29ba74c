//! `poll`.

use crate::support;
use libc::{
    AF_INET, ECONNRESET, EINPROGRESS, EINTR, EPIPE, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT,
    POLLPRI, POLLRDHUP, SHUT_WR, SO_ERROR, SO_LINGER, SO_SNDBUF, SOCK_NONBLOCK, SOCK_STREAM,
    SOL_SOCKET,
};

use crate::support::{Dialogue, accepted, at, drain, failed, host, ms, only};
use transom_sansio::{Host, PollFd, SocketCalls};
use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

const ALL: i16 = POLLIN | POLLPRI | POLLOUT | POLLRDHUP;

fn now(host: &mut Host, fd: i32) -> i16 {
    let mut fds = [PollFd { fd, events: ALL, revents: -1 }];
    let count = host.poll(&mut fds, 0).unwrap();
    assert_eq!(count, usize::from(fds[0].revents != 0));
    fds[0].revents
}

#[test]
fn the_life_of_a_connection_as_poll_sees_it() {
    let mut host = host(support::LOCAL);
    let fd = host.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
    assert_eq!(now(&mut host, fd), POLLHUP | POLLOUT, "as Linux sees a fresh socket");
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINPROGRESS));
    assert_eq!(now(&mut host, fd), 0);
    let syn = only(&mut host);
    let mut peer = support::peer(80, syn.header.src_port);
    peer.take(&[syn]);
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    assert_eq!(now(&mut host, fd), POLLOUT);
    peer.send(&mut host, Flags::ACK, b"data");
    assert_eq!(now(&mut host, fd), POLLOUT | POLLIN);
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"");
    assert_eq!(now(&mut host, fd), POLLOUT | POLLIN | POLLRDHUP);
    host.shutdown(fd, SHUT_WR).unwrap();
    assert_eq!(now(&mut host, fd), POLLOUT | POLLIN | POLLRDHUP | POLLHUP);
}

/// As on Linux: in CLOSING and LAST-ACK a reset is `ECONNRESET`, in CLOSE-WAIT `EPIPE`. What the peer sent before its FIN is read, and then the end.
#[test]
fn a_reset_after_the_peers_fin_is_an_error() {
    let fin = Flags::FIN | Flags::ACK;
    for (we_close, peer_closes_first, errno) in
        [(true, true, ECONNRESET), (true, false, ECONNRESET), (false, true, EPIPE)]
    {
        let mut host = host(support::LOCAL);
        let (fd, mut peer) = accepted(&mut host);
        if peer_closes_first {
            peer.send(&mut host, fin, b"data");
        }
        if we_close {
            host.shutdown(fd, SHUT_WR).unwrap();
        }
        if !peer_closes_first {
            peer.send(&mut host, fin, b"data");
        }
        peer.send(&mut host, Flags::RST | Flags::ACK, b"");
        assert_eq!(now(&mut host, fd), POLLERR | POLLHUP | POLLIN | POLLOUT | POLLRDHUP);
        let error = host.option(fd, SOL_SOCKET, SO_ERROR).unwrap();
        assert_eq!(error, errno.to_ne_bytes(), "{we_close} {peer_closes_first}");
        assert_eq!(now(&mut host, fd), POLLHUP | POLLIN | POLLOUT | POLLRDHUP);
        let mut data = [0; 9];
        assert_eq!((host.read(fd, &mut data), &data[..4]), (Ok(4), &b"data"[..]));
        assert_eq!(host.read(fd, &mut data), Ok(0));
        assert_eq!(host.write(fd, b"x"), failed(EPIPE));
    }
}

/// RFC 9293 section 3.10.5: after both FINs, a close that resets sends nothing.
#[test]
fn a_close_without_lingering_after_both_fins_is_silent() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"");
    host.shutdown(fd, SHUT_WR).unwrap();
    drain(&mut host);
    let at_once = [1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    host.set_option(fd, SOL_SOCKET, SO_LINGER, &at_once).unwrap();
    host.close(fd).unwrap();
    assert!(drain(&mut host).is_empty());
}

#[test]
fn errors_listeners_and_descriptors_that_are_none() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, Flags::RST | Flags::ACK, b"");
    assert_eq!(now(&mut host, fd), POLLERR | POLLHUP | POLLIN | POLLOUT | POLLRDHUP);
    assert_eq!(host.read(fd, &mut [0]), failed(ECONNRESET));
    assert_eq!(now(&mut host, fd) & POLLERR, 0);
    assert_eq!(now(&mut host, 77), POLLNVAL);
    assert_eq!(now(&mut host, -1), 0, "passed over");

    let listener = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    host.bind(listener, at("0.0.0.0:81")).unwrap();
    host.listen(listener, 1).unwrap();
    assert_eq!(now(&mut host, listener), 0);
    let mut peer = support::peer(40_000, 81);
    peer.send(&mut host, Flags::SYN, b"");
    let seen = drain(&mut host);
    peer.take(&seen);
    assert_eq!(now(&mut host, listener), 0, "half open is not enough");
    peer.send(&mut host, Flags::ACK, b"");
    assert_eq!(now(&mut host, listener), POLLIN);
}

#[test]
fn a_writer_hears_of_room_when_a_third_of_the_buffer_is_free() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.set_option(fd, SOL_SOCKET, SO_SNDBUF, &6000i32.to_ne_bytes()).unwrap();
    host.write(fd, &[0; 6000]).unwrap();
    let seen = drain(&mut host);
    assert_eq!(now(&mut host, fd), 0);
    peer.take(&seen[..1]);
    peer.send(&mut host, Flags::ACK, b"");
    assert_eq!(now(&mut host, fd), 0, "{} of 6000 bytes are free", seen[0].payload.len());
    // 4000 of 6000 bytes may be in use.
    peer.take(&seen);
    peer.send(&mut host, Flags::ACK, b"");
    assert_eq!(now(&mut host, fd), POLLOUT);
}

#[test]
fn polling_moves_time_to_what_it_waits_for() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    let mut fds = [PollFd { fd, events: POLLIN, revents: 0 }];
    assert_eq!(host.poll(&mut fds, 100), failed(EINTR), "no patience");
    host.set_patience(Duration::from_secs(1)).unwrap();
    assert_eq!(host.poll(&mut fds, 100), Ok(0));
    assert_eq!(host.now(), Instant::from_millis(100));
    assert_eq!(host.poll(&mut fds, 5000), failed(EINTR));
    assert_eq!(host.now(), Instant::from_millis(1100));
    let packet = peer.next(Flags::ACK, b"x");
    host.inject(host.now() + ms(30), &packet).unwrap();
    assert_eq!(host.poll(&mut fds, -1), Ok(1));
    assert_eq!((fds[0].revents, host.now()), (POLLIN, Instant::from_millis(1130)));
}
