//! TCP Fast Open through the calls of C programs (RFC 7413).

use crate::support;
use libc::{
    AF_INET, EAFNOSUPPORT, EAGAIN, EALREADY, ECONNREFUSED, EINPROGRESS, EINVAL, EISCONN, ENOTCONN,
    EOPNOTSUPP, EPIPE, IPPROTO_TCP, MSG_DONTWAIT, MSG_FASTOPEN, MSG_TRUNC, POLLIN, POLLOUT,
    SHUT_WR, SOCK_NONBLOCK, SOCK_STREAM, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT,
};

use crate::support::{
    Dialogue, LOCAL, TCP_SYN_RECV, TCPI_OPT_SYN_DATA, at, drain, failed, host, only, peer,
};
use transom_sansio::{Host, PollFd, Result, SocketCalls};
use transom_testkit::Peer;
use transom_wire::{FastOpen, Flags, Options, TcpHeader};

const REMOTE: &str = "192.0.2.2:80";

fn socket(host: &mut Host) -> i32 {
    host.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap()
}

fn set(host: &mut Host, fd: i32, name: i32, value: i32) -> Result<()> {
    host.set_option(fd, IPPROTO_TCP, name, &value.to_ne_bytes())
}

fn get(host: &mut Host, fd: i32, name: i32) -> i32 {
    i32::from_ne_bytes(host.option(fd, IPPROTO_TCP, name).unwrap().try_into().unwrap())
}

fn ready(host: &mut Host, fd: i32) -> i16 {
    let mut asked = [PollFd { fd, events: POLLIN | POLLOUT, revents: 0 }];
    host.poll(&mut asked, 0).unwrap();
    asked[0].revents
}

/// The peer answers the SYN that has left with a cookie; what has left before it knows.
fn answer(host: &mut Host, cookie: Option<FastOpen>) -> Peer {
    let syn = only(host);
    let mut peer = peer(80, syn.header.src_port);
    peer.take(&[syn]);
    let options = Options { mss: Some(1460), fast_open: cookie, ..Options::default() };
    let header = TcpHeader { options, ..peer.header(Flags::SYN | Flags::ACK) };
    let packet = peer.packet(&header, &[]);
    peer.seq += 1;
    host.inject(host.now(), &packet).unwrap();
    peer
}

/// A host that knows the server's cookie.
fn with_cookie() -> Host {
    let mut host = host(LOCAL);
    let fd = socket(&mut host);
    let remote = at(REMOTE);
    // There is none: the SYN asks for it, and the data is the program's still.
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, Some(remote)), failed(EINPROGRESS));
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, Some(remote)), failed(EALREADY));
    answer(&mut host, FastOpen::new(&[9; 8]));
    assert_eq!(only(&mut host).header.flags, Flags::ACK);
    assert_eq!(host.connect(fd, remote), Ok(()));
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_flags >> 1, 1);
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, Some(remote)), failed(EISCONN));
    assert_eq!(host.send_to(fd, b"first", 0, None), Ok(5));
    drain(&mut host);
    host
}

#[test]
fn sendto_connects_with_data() {
    let mut host = with_cookie();
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN, None), failed(EINVAL));
    assert_eq!(host.send(fd, b"data", MSG_FASTOPEN), failed(EINVAL));
    assert_eq!(
        host.send_to(fd, b"data", MSG_FASTOPEN | MSG_TRUNC, Some(at(REMOTE))),
        failed(EOPNOTSUPP)
    );
    assert_eq!(
        host.send_to(fd, b"data", MSG_FASTOPEN, Some(at("[fd00::2]:80"))),
        failed(EAFNOSUPPORT)
    );
    assert_eq!(
        host.send_to(fd, b"data", 0, Some(at(REMOTE))),
        failed(EPIPE),
        "no connect without it"
    );
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN | MSG_DONTWAIT, Some(at(REMOTE))), Ok(4));
    assert_eq!(host.send(fd, b"more", 0), failed(EAGAIN), "connecting");
    let mut peer = answer(&mut host, None);
    assert_eq!(only(&mut host).header.flags, Flags::ACK);
    assert_eq!(host.connect(fd, at(REMOTE)), Ok(()));
    let info = host.tcp_info(fd).unwrap();
    assert_eq!(info.tcpi_options & TCPI_OPT_SYN_DATA, TCPI_OPT_SYN_DATA);
    assert_eq!((info.tcpi_flags >> 1, info.tcpi_bytes_acked), (0, 4));
    peer.send(&mut host, Flags::ACK, b"answer");
    let mut read = [0; 9];
    assert_eq!(host.recv(fd, &mut read, 0), Ok(6));
    // The server takes the SYN alone.
    drain(&mut host);
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN, Some(at(REMOTE))), Ok(4));
    let syn = only(&mut host);
    assert_eq!(syn.payload, b"data");
    let mut peer = support::peer(80, syn.header.src_port);
    peer.ack = syn.header.seq + 1;
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    assert_eq!(only(&mut host).payload, b"data");
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_flags >> 1, 2);
}

/// RFC 7413 section 4.1.3.1: a server that answers the SYN alone, without a cookie, is left in peace for a while. The data of that SYN arrives all the same.
#[test]
fn a_server_that_takes_no_data_is_not_tried_again_at_once() {
    let mut host = with_cookie();
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN, Some(at(REMOTE))), Ok(4));
    let syn = only(&mut host);
    assert_eq!(syn.payload, b"data");
    let mut peer = support::peer(80, syn.header.src_port);
    peer.ack = syn.header.seq + 1;
    peer.send(&mut host, Flags::SYN | Flags::ACK, b"");
    assert_eq!(only(&mut host).payload, b"data");
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN, Some(at(REMOTE))), failed(EINPROGRESS));
    let syn = only(&mut host);
    assert_eq!((syn.payload.len(), syn.header.options.fast_open), (0, None));
    // A minute later it is tried again.
    let later = host.now() + transom_tcp::time::Duration::from_secs(61);
    host.run_to(later).unwrap();
    drain(&mut host);
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"data", MSG_FASTOPEN, Some(at(REMOTE))), Ok(4));
}

/// The call again after the handshake, without `connect` in between: it sends, and the next one finds the socket connected.
#[test]
fn sendto_again_finds_the_connection_open() {
    let mut host = host(LOCAL);
    let remote = Some(at(REMOTE));
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, remote), failed(EINPROGRESS));
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, remote), failed(EALREADY));
    answer(&mut host, None);
    drain(&mut host);
    assert_eq!(host.send_to(fd, b"first", MSG_FASTOPEN, remote), Ok(5));
    assert_eq!(only(&mut host).payload, b"first");
    assert_eq!(host.send_to(fd, b"second", MSG_FASTOPEN, remote), failed(EISCONN));
    assert_eq!(host.send(fd, b"second", 0), Ok(6));
    // A refusal is told, and the socket can connect anew.
    let fd = socket(&mut host);
    assert_eq!(host.send_to(fd, b"x", MSG_FASTOPEN, Some(at("192.0.2.9:80"))), failed(EINPROGRESS));
    let sent = drain(&mut host);
    let syn = sent.last().unwrap();
    let mut other = Peer { from: at("192.0.2.9:80"), ..support::peer(80, syn.header.src_port) };
    other.ack = syn.header.seq + 1;
    let reset = other.segment(Flags::RST | Flags::ACK, &[]);
    host.inject(host.now(), &reset).unwrap();
    assert_eq!(
        host.send_to(fd, b"x", MSG_FASTOPEN, Some(at("192.0.2.9:80"))),
        failed(ECONNREFUSED)
    );
    assert_eq!(host.send_to(fd, b"x", MSG_FASTOPEN, Some(at("192.0.2.9:80"))), failed(EINPROGRESS));
}

#[test]
fn connect_waits_for_the_first_data() {
    let mut host = with_cookie();
    let fd = socket(&mut host);
    assert_eq!(set(&mut host, fd, TCP_FASTOPEN_CONNECT, 2), failed(EINVAL));
    assert_eq!(set(&mut host, fd, TCP_FASTOPEN_CONNECT, 1), Ok(()));
    assert_eq!(get(&mut host, fd, TCP_FASTOPEN_CONNECT), 1);
    assert_eq!(host.connect(fd, at(REMOTE)), Ok(()));
    assert!(drain(&mut host).is_empty(), "nothing has left");
    assert_eq!(host.connect(fd, at(REMOTE)), failed(EISCONN));
    assert_eq!(host.peer_address(fd), failed(ENOTCONN));
    assert_eq!(set(&mut host, fd, TCP_FASTOPEN_CONNECT, 0), failed(EINVAL));
    assert_eq!(ready(&mut host, fd), POLLOUT);
    assert_eq!(host.send(fd, b"data", 0), Ok(4));
    assert_eq!(ready(&mut host, fd), 0, "the SYN is out");
    answer(&mut host, None);
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_bytes_acked, 4);
    assert_eq!(ready(&mut host, fd), POLLOUT);
    drain(&mut host);
    // Who reads first waits for the peer. To another port, for which nothing is known but that address' cookie.
    let fd = socket(&mut host);
    set(&mut host, fd, TCP_FASTOPEN_CONNECT, 1).unwrap();
    host.connect(fd, at("192.0.2.2:81")).unwrap();
    assert_eq!(host.recv(fd, &mut [0; 9], 0), failed(EAGAIN));
    let syn = only(&mut host);
    assert_eq!((syn.payload.len(), syn.header.options.fast_open), (0, FastOpen::new(&[9; 8])));
    // Without a cookie it is as ever.
    let fd = socket(&mut host);
    set(&mut host, fd, TCP_FASTOPEN_CONNECT, 1).unwrap();
    assert_eq!(host.connect(fd, at("192.0.2.3:80")), failed(EINPROGRESS));
    assert_eq!(only(&mut host).header.options.fast_open, Some(FastOpen::REQUEST));
}

#[test]
fn a_refusal_is_told_to_whoever_sends() {
    let mut host = with_cookie();
    let fd = socket(&mut host);
    set(&mut host, fd, TCP_FASTOPEN_CONNECT, 1).unwrap();
    host.connect(fd, at(REMOTE)).unwrap();
    host.send(fd, b"data", 0).unwrap();
    let syn = only(&mut host);
    let mut peer = peer(80, syn.header.src_port);
    peer.take(&[syn]);
    peer.send(&mut host, Flags::RST | Flags::ACK, b"");
    assert_eq!(host.send(fd, b"more", 0), failed(ECONNREFUSED));
}

#[test]
fn a_listener_takes_data_in_a_syn() {
    let mut host = host(LOCAL);
    let listener = socket(&mut host);
    assert_eq!(get(&mut host, listener, TCP_FASTOPEN), 0);
    assert_eq!(set(&mut host, listener, TCP_FASTOPEN, -1), failed(EINVAL));
    set(&mut host, listener, TCP_FASTOPEN, 1 << 20).unwrap();
    assert_eq!(get(&mut host, listener, TCP_FASTOPEN), 4096);
    host.bind(listener, at("0.0.0.0:80")).unwrap();
    host.listen(listener, 5).unwrap();
    set(&mut host, listener, TCP_FASTOPEN, 2).unwrap();
    assert_eq!(set(&mut host, listener, TCP_FASTOPEN_CONNECT, 1), failed(EINVAL));
    let syn = |host: &mut Host, peer: &Peer, option, data: &[u8]| {
        let options = Options { mss: Some(1460), fast_open: Some(option), ..Options::default() };
        let packet = peer.packet(&TcpHeader { options, ..peer.header(Flags::SYN) }, data);
        host.inject(host.now(), &packet).unwrap();
        only(host).header
    };
    let cookie = syn(&mut host, &peer(4000, 80), FastOpen::REQUEST, b"").options.fast_open.unwrap();
    let mut peer = peer(4001, 80);
    let answer = syn(&mut host, &peer, cookie, b"request");
    assert_eq!(answer.ack, peer.seq + 8);
    // It is accepted, read and answered at once.
    let (fd, _) = host.accept(listener, SOCK_NONBLOCK).unwrap();
    assert_eq!(ready(&mut host, fd), POLLIN | POLLOUT);
    assert_eq!(host.tcp_info(fd).unwrap().tcpi_state, TCP_SYN_RECV);
    assert_eq!(get(&mut host, fd, TCP_FASTOPEN), 0);
    assert_eq!(set(&mut host, fd, TCP_FASTOPEN, 1), failed(EINVAL));
    let mut read = [0; 9];
    assert_eq!(host.recv(fd, &mut read, 0), Ok(7));
    assert_eq!(host.send(fd, b"answer", 0), Ok(6));
    assert_eq!(host.peer_address(fd), Ok(at("192.0.2.2:4001")));
    host.shutdown(fd, SHUT_WR).unwrap();
    assert_eq!(host.send(fd, b"answer", 0), failed(EPIPE));
    let left = drain(&mut host);
    assert_eq!(left[0].payload, b"answer");
    assert!(left.iter().any(|seen| seen.header.flags.contains(Flags::FIN)));
    peer.seq += 8;
    peer.ack = answer.seq + 8;
    peer.send(&mut host, Flags::ACK | Flags::FIN, b"");
    assert_eq!(host.recv(fd, &mut read, 0), Ok(0));
    let info = host.tcp_info(fd).unwrap();
    assert_eq!(info.tcpi_options & TCPI_OPT_SYN_DATA, TCPI_OPT_SYN_DATA);
}
