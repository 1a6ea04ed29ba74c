//! The urgent byte, `SIOCATMARK`, and the other requests of `ioctl`.

use crate::support;
use libc::{
    AF_INET, EAGAIN, EINVAL, ENOTTY, FIONREAD, MSG_DONTWAIT, MSG_OOB, MSG_PEEK, POLLIN, POLLPRI,
    SIOCOUTQNSD, SO_OOBINLINE, SOCK_STREAM, SOL_SOCKET, TIOCOUTQ,
};

use crate::support::{Dialogue, SIOCATMARK, accepted, drain, failed, host};
use transom_sansio::{Host, PollFd, Result, SocketCalls};
use transom_testkit::Peer;
use transom_wire::{Flags, TcpHeader};

fn recv(host: &mut Host, fd: i32, flags: i32) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 100];
    let count = host.recv(fd, &mut buffer, flags | MSG_DONTWAIT)?;
    buffer.truncate(count);
    Ok(buffer)
}

/// The peer sends `payload`, of which the byte before `pointer` is urgent.
fn send_urgent(host: &mut Host, peer: &mut Peer, payload: &[u8], pointer: u16) {
    let header = TcpHeader { urgent: pointer, ..peer.header(Flags::ACK | Flags::URG) };
    peer.seq += payload.len() as u32;
    host.inject(host.now(), &peer.packet(&header, payload)).unwrap();
}

fn ready(host: &mut Host, fd: i32) -> i16 {
    let mut fds = [PollFd { fd, events: POLLIN | POLLPRI, revents: 0 }];
    host.poll(&mut fds, 0).unwrap();
    fds[0].revents
}

/// [MUST-32] [MUST-33] [MUST-47]
#[test]
fn the_urgent_byte_is_beside_the_stream() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    assert_eq!(recv(&mut host, fd, MSG_OOB), failed(EINVAL));
    // RFC 9293 section 3.8.5: the pointer is the offset of what follows the urgent data: "!" is urgent.
    send_urgent(&mut host, &mut peer, b"abc!def", 4);
    assert_eq!(ready(&mut host, fd), POLLIN | POLLPRI);
    assert_eq!(host.ioctl(fd, SIOCATMARK), Ok(0));
    assert_eq!(host.ioctl(fd, FIONREAD), Ok(3));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"abc".to_vec()), "reading stops in front of it");
    assert_eq!(host.ioctl(fd, SIOCATMARK), Ok(1));
    assert_eq!(recv(&mut host, fd, MSG_OOB | MSG_PEEK), Ok(b"!".to_vec()));
    assert_eq!(recv(&mut host, fd, MSG_OOB), Ok(b"!".to_vec()));
    assert_eq!(recv(&mut host, fd, MSG_OOB), failed(EINVAL), "it was read");
    assert_eq!(ready(&mut host, fd), POLLIN);
    assert_eq!(recv(&mut host, fd, MSG_PEEK), Ok(b"def".to_vec()));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"def".to_vec()), "and is not in the stream");
    assert_eq!(host.ioctl(fd, SIOCATMARK), Ok(0));
}

#[test]
fn an_urgent_byte_that_is_passed_is_lost() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    send_urgent(&mut host, &mut peer, b"a!", 2);
    assert_eq!(recv(&mut host, fd, 0), Ok(b"a".to_vec()));
    assert_eq!(ready(&mut host, fd), POLLPRI, "there is nothing else");
    assert_eq!(recv(&mut host, fd, 0), failed(EAGAIN));
    peer.send(&mut host, Flags::ACK, b"b");
    assert_eq!(recv(&mut host, fd, 0), Ok(b"b".to_vec()));
    assert_eq!(recv(&mut host, fd, MSG_OOB), failed(EINVAL));
}

#[test]
fn an_announced_byte_has_to_arrive() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    send_urgent(&mut host, &mut peer, b"ab", 3);
    assert_eq!(recv(&mut host, fd, MSG_OOB), failed(EAGAIN));
    assert_eq!(ready(&mut host, fd), POLLIN);
    assert_eq!(recv(&mut host, fd, 0), Ok(b"ab".to_vec()));
    peer.send(&mut host, Flags::ACK, b"!c");
    assert_eq!(recv(&mut host, fd, MSG_OOB), Ok(b"!".to_vec()));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"c".to_vec()));
}

#[test]
fn a_new_urgent_byte_makes_the_old_one_ordinary() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    send_urgent(&mut host, &mut peer, b"a!", 2);
    send_urgent(&mut host, &mut peer, b"b?", 2);
    assert_eq!(recv(&mut host, fd, MSG_OOB), Ok(b"?".to_vec()));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"a!b".to_vec()));
}

#[test]
fn inline_it_is_part_of_the_stream() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.set_option(fd, SOL_SOCKET, SO_OOBINLINE, &1i32.to_ne_bytes()).unwrap();
    send_urgent(&mut host, &mut peer, b"abc!def", 4);
    assert_eq!(recv(&mut host, fd, MSG_OOB), failed(EINVAL));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"abc".to_vec()));
    assert_eq!(host.ioctl(fd, SIOCATMARK), Ok(1));
    assert_eq!(recv(&mut host, fd, 0), Ok(b"!def".to_vec()));
}

/// [MUST-30] [MUST-31]
#[test]
fn urgent_data_carries_the_pointer() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    assert_eq!(host.send(fd, b"abc!", MSG_OOB), Ok(4));
    let seen = drain(&mut host);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].payload, b"abc!");
    assert!(seen[0].header.flags.contains(Flags::URG));
    assert_eq!(seen[0].header.urgent, 4);
}

#[test]
fn requests_about_queues() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    // The peer's window takes 10 bytes; it is not scaled, since the peer offered no scaling.
    peer.window = 10;
    peer.send(&mut host, Flags::ACK, b"");
    host.write(fd, &[0; 25]).unwrap();
    let sent: usize = drain(&mut host).iter().map(|seen| seen.payload.len()).sum();
    assert_eq!(host.ioctl(fd, TIOCOUTQ), Ok(25));
    assert_eq!(host.ioctl(fd, SIOCOUTQNSD), Ok(25 - sent as i32));
    assert_eq!(host.ioctl(fd, FIONREAD), Ok(0));
    assert_eq!(host.ioctl(fd, 0x1234), failed(ENOTTY));
    let fresh = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    assert_eq!(host.ioctl(fresh, FIONREAD), Ok(0));
    host.listen(fresh, 1).unwrap();
    assert_eq!(host.ioctl(fresh, FIONREAD), failed(EINVAL));
}
