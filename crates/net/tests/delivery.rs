//! Pieces and data units through sockets: waiting, timeouts, non-blocking calls, descriptors, and calls that are refused.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::thread;
use std::time::Duration;

use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Adu, Piece, Stack, TcpStream};
use transom_tcp::compose::compose_classic as compose;

const PATIENCE: Duration = Duration::from_secs(60);

/// Two ends of a connection, of hosts with this profile.
fn connection(tcp: &str) -> (TcpStream, TcpStream) {
    let profile = compose(tcp).unwrap();
    let (left, right) = pair(&MemoryConfig::default()).unwrap();
    let host = |last: u8| {
        let address = Ipv4Addr::new(10, 0, 0, last);
        Stack::builder().profile(profile.clone()).address(address.into(), 24)
    };
    let alice = host(1).start(left).unwrap();
    let bob = host(2).start(right).unwrap();
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

#[test]
fn pieces_are_waited_for() {
    let (ours, theirs) = connection("unordered");
    let mut buffer = [0; 100];
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut buffer = [0; 100];
            let piece = ours.read_unordered(&mut buffer).unwrap();
            (piece, buffer)
        });
        (&theirs).write_all(b"hello").unwrap();
        let (piece, buffer) = reader.join().unwrap();
        assert_eq!(piece, Piece::Data { offset: 0, len: 5, total: None });
        assert_eq!(buffer[..5], *b"hello");
    });
    ours.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    assert_eq!(ours.read_unordered(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    ours.set_nonblocking(true).unwrap();
    assert_eq!(ours.read_unordered(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    ours.set_nonblocking(false).unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    // A plain read is refused, whatever it offers room in, and says what to do.
    for mut room in [vec![0; 10], vec![0; 200_000]] {
        let error = (&ours).read(&mut room).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("read_unordered"), "{error}");
    }
    assert_eq!(ours.peek(&mut buffer).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(ours.recv_adu(&mut vec![]).unwrap_err().kind(), ErrorKind::Unsupported);
    theirs.shutdown(Shutdown::Write).unwrap();
    assert_eq!(ours.read_unordered(&mut buffer).unwrap(), Piece::End { total: 5 });
}

#[test]
fn units_are_waited_for_and_wait_for_room() {
    let (ours, theirs) = connection("adu(max=20kB)");
    let units: Vec<Vec<u8>> = (0..200).map(|i| vec![i as u8; i * 97]).collect();
    thread::scope(|scope| {
        // Far more than the buffers hold.
        scope.spawn(|| {
            for unit in &units {
                ours.send_adu(unit).unwrap();
            }
            ours.shutdown(Shutdown::Write).unwrap();
        });
        let mut unit = Vec::new();
        for expected in &units {
            assert!(matches!(theirs.recv_adu(&mut unit).unwrap(), Adu::Unit { .. }));
            assert_eq!(unit, *expected);
        }
        assert!(matches!(theirs.recv_adu(&mut unit).unwrap(), Adu::End { .. }));
    });
    let error = theirs.send_adu(&[0; 20_001]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!((&theirs).write(b"x").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!((&theirs).read(&mut [0]).unwrap_err().kind(), ErrorKind::Unsupported);
    theirs.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let error = loop {
        match theirs.send_adu(&[1; 20_000]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(sent > 0);
    // The units that were taken are whole.
    let mut unit = Vec::new();
    for _ in 0..sent {
        assert!(matches!(ours.recv_adu(&mut unit).unwrap(), Adu::Unit { .. }));
        assert_eq!(unit, [1; 20_000]);
    }
}

/// poll's idea of readable is that a unit is complete.
#[test]
fn a_descriptor_shows_units() {
    use std::os::fd::AsFd;
    let (ours, theirs) = connection("adu");
    let readable = |timeout: i64| {
        let mut fds = [rustix::event::PollFd::new(&ours, rustix::event::PollFlags::IN)];
        let timeout = rustix::event::Timespec { tv_sec: timeout, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&timeout)).unwrap() == 1
    };
    let _ = ours.as_fd();
    assert!(!readable(0));
    theirs.send_adu(b"").unwrap();
    assert!(readable(60), "an empty unit is one");
    let mut unit = vec![1];
    assert!(matches!(ours.recv_adu(&mut unit).unwrap(), Adu::Unit { .. }));
    assert_eq!(unit, b"");
    assert!(!readable(0));
}
