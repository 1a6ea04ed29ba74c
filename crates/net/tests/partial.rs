//! Holes through sockets: reading over them, being told of them by a plain read, and descriptors that show them. In real time over a
//! path that loses every tenth packet; nothing depends on when anything happens.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use transom_device::memory::{MemoryConfig, pair};
use transom_lab::{Emulated, PathConfig};
use transom_net::{Hole, Profile, Received, Stack, TcpStream};
use transom_tcp::PartialInfo;
use transom_tcp::compose::compose_classic as compose;

const PATIENCE: Duration = Duration::from_secs(60);

/// Byte number `offset` of the stream.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Two ends of a connection, the first of a host with the first profile.
fn connection(ours: &str, theirs: &str) -> (TcpStream, TcpStream) {
    let profile = |tcp| -> Profile { compose(tcp).unwrap() };
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let link = || "delay=1ms, loss=10%".parse().unwrap();
    let path = PathConfig { egress: link(), ingress: "delay=1ms".parse().unwrap(), seed: 3 };
    let device = Emulated::new(left, &path).unwrap();
    let host = |last: u8, tcp| {
        let address = Ipv4Addr::new(10, 0, 0, last);
        Stack::builder().profile(profile(tcp)).address(address.into(), 24)
    };
    let alice = host(1, ours).start(device).unwrap();
    let bob = host(2, theirs).start(right).unwrap();
    let listener = bob.listen("10.0.0.2:7").unwrap();
    let server = thread::spawn(move || listener.accept().unwrap().0);
    let ours = alice.connect("10.0.0.2:7").unwrap();
    let theirs = server.join().unwrap();
    for stream in [&ours, &theirs] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (ours, theirs)
}

fn write(stream: &TcpStream, bytes: u64) {
    let content: Vec<u8> = (0..bytes).map(byte).collect();
    (&mut &*stream).write_all(&content).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
}

fn check(bytes: &[u8], offset: u64) {
    assert!((offset..).zip(bytes).all(|(at, &got)| got == byte(at)), "bytes at {offset}");
}

fn partial(stream: &TcpStream) -> PartialInfo {
    stream.info().unwrap().partial.unwrap()
}

#[test]
fn every_byte_is_read_or_in_a_hole() {
    let (ours, theirs) = connection("no-retransmission", "accept-holes");
    let bytes = 1 << 20;
    thread::scope(|scope| {
        scope.spawn(|| write(&ours, bytes));
        let mut buffer = vec![0; 50_000];
        let (mut offset, mut missing) = (0, 0);
        loop {
            match theirs.read_or_hole(&mut buffer).unwrap() {
                Received::Bytes(0) => break,
                Received::Bytes(count) => {
                    check(&buffer[..count], offset);
                    offset += count as u64;
                }
                Received::Hole(hole) => {
                    assert_eq!(hole.offset, offset);
                    offset += hole.len;
                    missing += hole.len;
                }
            }
        }
        assert_eq!(offset, bytes);
        assert!(missing > 0 && missing < bytes / 2, "{missing} of {bytes}");
        assert_eq!(partial(&theirs).skipped_bytes, missing);
        println!("{missing} of {bytes} bytes are missing");
    });
    let info = ours.info().unwrap();
    assert!(info.partial.unwrap().given_up_bytes > 0, "{info:?}");
    assert_eq!(info.recovery, "no-retransmission");
}

#[test]
fn a_plain_read_stops_at_a_hole_until_somebody_takes_note() {
    let (ours, theirs) = connection("no-retransmission", "accept-holes");
    let bytes = 1 << 18;
    write(&ours, bytes);
    let (mut offset, mut holes) = (0, 0);
    // With a buffer that the device may be given, and without.
    for size in [200_000, 1_000].into_iter().cycle() {
        let mut buffer = vec![0; size];
        let error = match (&theirs).read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                check(&buffer[..count], offset);
                offset += count as u64;
                continue;
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("given up"), "{error}");
        // As often as it is tried, however.
        assert_eq!((&theirs).read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(theirs.peek(&mut [0; 10]).unwrap_err().kind(), ErrorKind::InvalidData);
        let mut fds =
            [rustix::event::PollFd::from_borrowed_fd(theirs.as_fd(), rustix::event::PollFlags::IN)];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut fds, Some(&at_once)).unwrap(), 1, "there is news");
        let hole = theirs.with_connection(|connection, _| connection.hole()).unwrap().unwrap();
        assert_eq!(hole.offset, offset);
        assert_eq!(theirs.read_or_hole(&mut [0; 10]).unwrap(), Received::Hole(hole));
        let Hole { len, .. } = hole;
        offset += len;
        holes += 1;
    }
    assert_eq!(offset, bytes);
    assert!(holes > 0);
}

#[test]
fn a_peer_that_has_not_agreed_gets_everything() {
    let (ours, theirs) = connection("no-retransmission", "sack");
    let bytes = 1 << 18;
    write(&ours, bytes);
    let mut all = Vec::new();
    (&theirs).read_to_end(&mut all).unwrap();
    assert_eq!(all.len() as u64, bytes);
    check(&all, 0);
    let info = ours.info().unwrap();
    assert!(!info.partial.unwrap().agreed && info.recovery == "sack", "{info:?}");
    assert_eq!(theirs.info().unwrap().partial, None);
}
