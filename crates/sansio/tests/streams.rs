//! Reading, writing, waiting, shutting down and closing.

use crate::support;
use libc::{
    AF_INET, EAGAIN, EALREADY, EBADF, ECONNRESET, EINPROGRESS, EINTR, EINVAL, EMSGSIZE, ENOTCONN,
    EOPNOTSUPP, EPIPE, F_GETFL, F_SETFL, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
    O_NONBLOCK, O_RDWR, SHUT_RD, SHUT_RDWR, SHUT_WR, SO_LINGER, SO_RCVTIMEO, SO_SNDBUF,
    SO_SNDTIMEO, SOCK_STREAM, SOL_SOCKET,
};

use crate::support::{Dialogue, Pair, accepted, at, drain, failed, host, host_with, ms, only};
use transom_sansio::{Errno, Host, Result, SocketCalls};
use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

const DATA: Flags = Flags::ACK.union(Flags::PSH);

fn timeval(seconds: i64, micros: i64) -> Vec<u8> {
    [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat()
}

fn linger(seconds: i32) -> Vec<u8> {
    [1i32.to_ne_bytes(), seconds.to_ne_bytes()].concat()
}

fn read(host: &mut Host, fd: i32, room: usize, flags: i32) -> Result<Vec<u8>> {
    let mut buffer = vec![0; room];
    let count = host.recv(fd, &mut buffer, flags)?;
    buffer.truncate(count);
    Ok(buffer)
}

#[test]
fn a_reader_waits_until_data_arrive_and_no_longer() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    assert_eq!(read(&mut host, fd, 10, 0), failed(EINTR));
    assert_eq!(read(&mut host, fd, 10, MSG_DONTWAIT), failed(EAGAIN));
    let packet = peer.next(DATA, b"hello");
    host.inject(Instant::from_millis(300), &packet).unwrap();
    host.set_patience(ms(200)).unwrap();
    assert_eq!(read(&mut host, fd, 10, 0), failed(EINTR));
    assert_eq!(host.now(), Instant::from_millis(200));
    assert_eq!(read(&mut host, fd, 3, 0), Ok(b"hel".to_vec()));
    assert_eq!(host.now(), Instant::from_millis(300));
    assert_eq!(read(&mut host, fd, 10, 0), Ok(b"lo".to_vec()));
}

#[test]
fn a_sockets_own_timeouts_end_with_eagain() {
    let mut host = host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    host.set_patience(Duration::from_secs(10)).unwrap();
    host.set_option(fd, SOL_SOCKET, SO_RCVTIMEO, &timeval(1, 500_000)).unwrap();
    assert_eq!(read(&mut host, fd, 10, 0), failed(EAGAIN));
    assert_eq!(host.now(), Instant::from_millis(1500));
    host.set_patience(ms(100)).unwrap();
    assert_eq!(read(&mut host, fd, 10, 0), failed(EINTR), "patience ends first");
    assert_eq!(host.now(), Instant::from_millis(1600));
    // A connect that its own timeout ends goes on, and says so.
    let fd = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    host.set_option(fd, SOL_SOCKET, SO_SNDTIMEO, &timeval(0, 50_000)).unwrap();
    assert_eq!(host.connect(fd, at("192.0.2.9:80")), failed(EINPROGRESS));
    assert_eq!(host.connect(fd, at("192.0.2.9:80")), failed(EALREADY));
    assert_eq!(host.now(), Instant::from_millis(1700));
}

#[test]
fn patience_and_time_have_bounds() {
    let mut host = host(support::LOCAL);
    let longest = Duration::from_secs(30 * 24 * 60 * 60);
    assert_eq!(host.set_patience(longest), Ok(()));
    let longer = longest + Duration::from_nanos(1);
    assert_eq!(host.set_patience(longer), failed(EINVAL));
    host.run_to(Instant::from_secs(1)).unwrap();
    assert_eq!(host.run_to(Instant::from_millis(999)), failed(EINVAL));
    assert_eq!(host.inject(Instant::ZERO, &[0]), failed(EINVAL));
    assert_eq!(host.inject(Instant::from_secs(2), &[]), failed(EINVAL));
    assert_eq!(host.inject(Instant::from_secs(2), &[0; 65_536]), failed(EMSGSIZE));
    assert_eq!(host.inject(Instant::from_secs(2), &[0; 65_535]), Ok(()));
    assert_eq!(host.next_event(), Some(Instant::from_secs(2)));
    assert_eq!(host.next_timer(), None);
    host.run_to(Instant::from_secs(3)).unwrap();
    assert_eq!(host.stack().counters().malformed, 1);
}

#[test]
fn packets_come_before_timers_and_in_the_order_in_which_they_were_queued() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.write(fd, b"x").unwrap();
    let sent = only(&mut host);
    // The least retransmission timeout. The stack may want to look at its timers before.
    let timer = sent.at + ms(200);
    assert!(host.next_timer().unwrap() <= timer);
    // The acknowledgement arrives at the very moment at which the segment would be sent again.
    peer.take(&[sent]);
    let packets = [peer.next(DATA, b"1"), peer.next(DATA, b"2")];
    for packet in &packets {
        host.inject(timer, packet).unwrap();
    }
    host.run_to(timer).unwrap();
    assert_eq!(read(&mut host, fd, 10, 0), Ok(b"12".to_vec()));
    assert!(drain(&mut host).iter().all(|seen| seen.payload.is_empty()), "nothing is sent again");
    // Without an acknowledgement it is, at that very moment.
    let mut host = support::host(support::LOCAL);
    let (fd, _peer) = accepted(&mut host);
    host.write(fd, b"y").unwrap();
    let sent = only(&mut host);
    host.run_to(sent.at + Duration::from_nanos(199_999_999)).unwrap();
    assert!(drain(&mut host).is_empty());
    host.run_to(sent.at + ms(200)).unwrap();
    assert_eq!(only(&mut host).payload, b"y");
}

#[test]
fn peeking_waiting_for_all_and_dropping() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, DATA, b"abcdef");
    assert_eq!(read(&mut host, fd, 4, MSG_PEEK), Ok(b"abcd".to_vec()));
    assert_eq!(read(&mut host, fd, 2, 0), Ok(b"ab".to_vec()));
    let mut untouched = *b"....";
    assert_eq!(host.recv(fd, &mut untouched[..2], MSG_TRUNC), Ok(2));
    assert_eq!(&untouched, b"....");
    assert_eq!(read(&mut host, fd, 4, MSG_PEEK | MSG_WAITALL), Ok(b"ef".to_vec()), "what there is");
    host.set_patience(ms(50)).unwrap();
    let packet = peer.next(DATA, b"gh");
    host.inject(Instant::from_millis(20), &packet).unwrap();
    assert_eq!(read(&mut host, fd, 4, MSG_WAITALL), Ok(b"efgh".to_vec()));
    assert_eq!(host.now(), Instant::from_millis(20));
    peer.send(&mut host, DATA, b"ij");
    assert_eq!(read(&mut host, fd, 4, MSG_WAITALL), Ok(b"ij".to_vec()), "patience ended");
    assert_eq!(host.now(), Instant::from_millis(70));
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"k");
    assert_eq!(read(&mut host, fd, 4, MSG_WAITALL), Ok(b"k".to_vec()), "the end came");
    assert_eq!(read(&mut host, fd, 4, 0), Ok(Vec::new()));
    assert_eq!(host.now(), Instant::from_millis(70));
    assert_eq!(read(&mut host, fd, 4, 1 << 28), failed(EOPNOTSUPP));
}

#[test]
fn waiting_for_all_ends_at_the_moment_the_stream_does() {
    for before in ["", "a"] {
        let mut host = host(support::LOCAL);
        let (fd, mut peer) = accepted(&mut host);
        host.set_patience(Duration::from_secs(1)).unwrap();
        peer.send(&mut host, DATA, before.as_bytes());
        let last = peer.next(Flags::FIN | Flags::ACK, b"b");
        host.inject(Instant::from_millis(20), &last).unwrap();
        let all = format!("{before}b").into_bytes();
        assert_eq!(read(&mut host, fd, 4, MSG_WAITALL), Ok(all));
        assert_eq!(host.now(), Instant::from_millis(20), "after {before:?}");
    }
}

#[test]
fn a_writer_waits_for_room_and_a_nonblocking_one_takes_what_there_is() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.set_option(fd, SOL_SOCKET, SO_SNDBUF, &4096i32.to_ne_bytes()).unwrap();
    assert_eq!(host.fcntl(fd, F_GETFL, 0), Ok(O_RDWR));
    host.fcntl(fd, F_SETFL, O_NONBLOCK).unwrap();
    assert_eq!(host.fcntl(fd, F_GETFL, 0), Ok(O_RDWR | O_NONBLOCK));
    assert_eq!(host.write(fd, &[1; 5000]), Ok(4096));
    assert_eq!(host.write(fd, &[1; 904]), failed(EAGAIN));
    assert_eq!(host.write(fd, &[]), Ok(0));
    host.fcntl(fd, F_SETFL, 0).unwrap();
    assert_eq!(host.write(fd, &[1; 904]), failed(EINTR));
    // Acknowledged half a second from now, sent again before.
    peer.take(&drain(&mut host));
    let ack = peer.next(Flags::ACK, b"");
    host.inject(Instant::from_millis(500), &ack).unwrap();
    host.set_patience(Duration::from_secs(1)).unwrap();
    assert_eq!(host.write(fd, &[2; 904]), Ok(904));
    assert_eq!(host.now(), Instant::from_millis(500));
    // More than ever fits: what was queued counts.
    assert_eq!(host.write(fd, &[3; 10_000]), Ok(4096 - 904));
    assert_eq!(host.now(), Instant::from_millis(1500));
    assert_eq!(host.send(fd, b"x", 0x4_0000), failed(EOPNOTSUPP), "MSG_BATCH");
}

#[test]
fn sockets_without_a_connection_neither_read_nor_write() {
    let mut host = host(support::LOCAL);
    let fd = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    assert_eq!(read(&mut host, fd, 1, 0), failed(ENOTCONN));
    assert_eq!(host.write(fd, b"x"), failed(EPIPE));
    assert_eq!(host.shutdown(fd, SHUT_RDWR), failed(ENOTCONN));
    assert_eq!(host.shutdown(fd, 3), failed(EINVAL));
    // Nor do those that are connecting.
    assert_eq!(host.connect(fd, at("192.0.2.2:80")), failed(EINTR));
    assert_eq!(host.send(fd, b"x", MSG_DONTWAIT), failed(EAGAIN));
    assert_eq!(read(&mut host, fd, 1, MSG_DONTWAIT), failed(EAGAIN));
    host.shutdown(fd, SHUT_RDWR).unwrap();
    assert_eq!(host.write(fd, b"x"), failed(EPIPE), "the attempt was given up");
}

/// [MUST-12]
#[test]
fn a_reset_is_reported_once() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, Flags::RST | Flags::ACK, b"");
    assert_eq!(read(&mut host, fd, 1, 0), failed(ECONNRESET));
    assert_eq!(read(&mut host, fd, 1, 0), Ok(Vec::new()));
    assert_eq!(host.write(fd, b"x"), failed(EPIPE));
    assert_eq!(host.shutdown(fd, SHUT_WR), failed(ENOTCONN));
    assert_eq!(host.peer_address(fd), failed(ENOTCONN));

    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, Flags::RST | Flags::ACK, b"");
    assert_eq!(host.write(fd, b"x"), failed(ECONNRESET));
    assert_eq!(host.write(fd, b"x"), failed(EPIPE));
}

#[test]
fn a_reset_during_a_write_is_left_for_the_next_call() {
    for next_call_reads in [false, true] {
        let mut host = host(support::LOCAL);
        let (fd, mut peer) = accepted(&mut host);
        host.set_option(fd, SOL_SOCKET, SO_SNDBUF, &4096i32.to_ne_bytes()).unwrap();
        host.set_patience(Duration::from_secs(1)).unwrap();
        let reset = peer.next(Flags::RST | Flags::ACK, b"");
        host.inject(Instant::from_millis(100), &reset).unwrap();
        assert_eq!(host.write(fd, &[1; 5000]), Ok(4096));
        assert_eq!(host.now(), Instant::from_millis(100));
        if next_call_reads {
            assert_eq!(read(&mut host, fd, 1, 0), failed(ECONNRESET));
        } else {
            assert_eq!(host.write(fd, b"x"), failed(ECONNRESET));
        }
        assert_eq!(host.write(fd, b"x"), failed(EPIPE), "it is reported once");
    }
}

#[test]
fn a_reset_after_the_peers_fin_is_a_broken_pipe() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, Flags::FIN | Flags::ACK, b"");
    assert_eq!(host.write(fd, b"x"), Ok(1));
    peer.send(&mut host, Flags::RST | Flags::ACK, b"");
    assert_eq!(read(&mut host, fd, 1, 0), Ok(Vec::new()), "the end was there before");
    assert_eq!(host.write(fd, b"x"), failed(EPIPE));
}

#[test]
fn a_half_closed_connection_still_carries_data_the_other_way() {
    let mut host = host(support::LOCAL);
    let (fd, mut peer) = accepted(&mut host);
    host.shutdown(fd, SHUT_WR).unwrap();
    let fin = only(&mut host);
    assert!(fin.header.flags.contains(Flags::FIN));
    assert_eq!(host.write(fd, b"x"), failed(EPIPE));
    peer.take(&[fin]);
    peer.send(&mut host, DATA, b"still here");
    assert_eq!(read(&mut host, fd, 20, 0), Ok(b"still here".to_vec()));
    host.shutdown(fd, SHUT_RD).unwrap();
    assert_eq!(read(&mut host, fd, 20, 0), Ok(Vec::new()), "no waiting after that");
    peer.send(&mut host, DATA, b"more");
    assert_eq!(read(&mut host, fd, 20, 0), Ok(b"more".to_vec()), "as on Linux");
}

/// [MAY-1] [SHLD-3]
#[test]
fn closing_resets_or_waits_as_linger_says() {
    let mut host = host(support::LOCAL);
    // Zero seconds: a reset.
    let (fd, _peer) = accepted(&mut host);
    host.set_option(fd, SOL_SOCKET, SO_LINGER, &linger(0)).unwrap();
    host.close(fd).unwrap();
    assert!(only(&mut host).header.flags.contains(Flags::RST));
    // Unread data: a reset as well.
    let (fd, mut peer) = accepted(&mut host);
    peer.send(&mut host, DATA, b"unread");
    host.close(fd).unwrap();
    assert!(drain(&mut host).last().unwrap().header.flags.contains(Flags::RST));
    // Two seconds, and the acknowledgement comes after one.
    let (fd, mut peer) = accepted(&mut host);
    host.set_option(fd, SOL_SOCKET, SO_LINGER, &linger(2)).unwrap();
    host.set_patience(Duration::from_secs(10)).unwrap();
    let mut acknowledging = peer;
    acknowledging.ack += 1;
    let ack = acknowledging.next(Flags::ACK, b"");
    let start = host.now();
    host.inject(start + Duration::from_secs(1), &ack).unwrap();
    host.close(fd).unwrap();
    assert_eq!(host.now(), start + Duration::from_secs(1));
    assert_eq!(host.close(fd), failed(EBADF));
    peer.take(&drain(&mut host));
    // Two seconds, and no acknowledgement.
    let mut other = host_with(support::LOCAL, |_| {});
    let (fd, _peer) = accepted(&mut other);
    other.set_option(fd, SOL_SOCKET, SO_LINGER, &linger(2)).unwrap();
    other.set_patience(Duration::from_secs(10)).unwrap();
    other.close(fd).unwrap();
    assert_eq!(other.now(), Instant::from_secs(2));
    // Non-blocking: no waiting.
    let (fd, _peer) = accepted(&mut other);
    other.set_option(fd, SOL_SOCKET, SO_LINGER, &linger(2)).unwrap();
    other.fcntl(fd, F_SETFL, O_NONBLOCK).unwrap();
    other.close(fd).unwrap();
    assert_eq!(other.now(), Instant::from_secs(2));
}

#[test]
fn a_lossy_transfer_arrives_whole_and_runs_the_same_twice() {
    let run = || {
        let mut pair = Pair::new(host("10.0.0.1"), host("10.0.0.2"), ms(10));
        let listener = pair.b().socket(AF_INET, SOCK_STREAM, 0).unwrap();
        pair.b().bind(listener, at("0.0.0.0:80")).unwrap();
        pair.b().listen(listener, 1).unwrap();
        let client = pair.a().socket(AF_INET, SOCK_STREAM, 0).unwrap();
        pair.complete(|pair| pair.a().connect(client, at("10.0.0.2:80"))).unwrap();
        let (server, _) = pair.complete(|pair| pair.b().accept(listener, 0)).unwrap();
        let mut nth = 0;
        pair.lose(move |_, _| {
            nth += 1;
            nth % 23 == 0
        });
        let data: Vec<u8> = (0..300_000u32).map(|n| (n * 31 % 251) as u8).collect();
        let (mut written, mut got) = (0, Vec::new());
        while got.len() < data.len() {
            match pair.a().send(client, &data[written..], MSG_DONTWAIT) {
                Ok(count) => written += count,
                Err(error) => assert_eq!(error, Errno(EAGAIN)),
            }
            match read(pair.b(), server, 100_000, MSG_DONTWAIT) {
                Ok(bytes) => got.extend(bytes),
                Err(error) => assert_eq!(error, Errno(EAGAIN)),
            }
            assert!(pair.step(Instant::from_secs(3600)), "nothing happens any more");
        }
        assert!(got == data, "the bytes are not those that were written");
        pair.a().close(client).unwrap();
        assert_eq!(pair.complete(|pair| read(pair.b(), server, 1, 0)), Ok(Vec::new()));
        pair.b().close(server).unwrap();
        pair.run_for(Duration::from_secs(120));
        assert_eq!(
            (pair.a().stack().connection_count(), pair.b().stack().connection_count()),
            (0, 0)
        );
        assert_eq!((pair.a().next_event(), pair.b().next_event()), (None, None));
        pair.into_sent()
            .into_iter()
            .map(|(name, seen)| (name, seen.at, seen.header, seen.payload))
            .collect::<Vec<_>>()
    };
    assert!(run() == run(), "two runs differ");
}

#[test]
fn a_peer_that_is_the_host_itself() {
    let mut host = host(support::LOCAL);
    let listener = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    host.bind(listener, at("192.0.2.1:80")).unwrap();
    host.listen(listener, 1).unwrap();
    let client = host.socket(AF_INET, SOCK_STREAM, 0).unwrap();
    host.connect(client, at("192.0.2.1:80")).unwrap();
    let (server, _) = host.accept(listener, 0).unwrap();
    host.write(client, b"to myself").unwrap();
    assert_eq!(read(&mut host, server, 20, 0), Ok(b"to myself".to_vec()));
    assert_eq!(host.now(), Instant::ZERO);
    assert!(drain(&mut host).is_empty(), "nothing leaves the host");
}
