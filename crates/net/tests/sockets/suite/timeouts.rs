//! Waiting for a limited time, or not at all.

use super::*;
use std::io::Write;

const SHORT: Duration = Duration::from_millis(100);

/// Writes until the stream does not take more; returns how much it took.
fn fill(mut stream: &TcpStream) -> usize {
    let piece = vec![7; 100_000];
    let mut written = 0;
    loop {
        match stream.write(&piece) {
            Ok(length) => written += length,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return written;
            }
        }
    }
}

#[test]
fn timeouts_are_kept_as_set() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let client = world.connect(addr).unwrap();
    assert_eq!(client.read_timeout().unwrap(), None);
    assert_eq!(client.write_timeout().unwrap(), None);
    client.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    client.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(client.read_timeout().unwrap(), Some(Duration::from_secs(3)));
    assert_eq!(client.write_timeout().unwrap(), Some(Duration::from_secs(5)));
    let clone = client.try_clone().unwrap();
    assert_eq!(clone.read_timeout().unwrap(), Some(Duration::from_secs(3)), "clones share it");
    client.set_read_timeout(None).unwrap();
    assert_eq!(clone.read_timeout().unwrap(), None);
    assert_eq!(kind(client.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
    assert_eq!(kind(client.set_write_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
    drop(listener);
}

#[test]
fn a_read_gives_up_and_can_be_tried_again() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.set_read_timeout(Some(SHORT)).unwrap();
    for _ in 0..2 {
        let started = Instant::now();
        assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
        let took = started.elapsed();
        assert!(took >= SHORT && took < SHORT * 20, "{took:?}");
        assert_eq!(kind(client.peek(&mut [0])), ErrorKind::WouldBlock);
    }
    server.write_all(b"late").unwrap();
    assert_eq!(read_exactly(&client, 4), b"late");
}

#[test]
fn a_write_gives_up_and_can_be_tried_again() {
    let world = World::new();
    let (client, server) = pair(&world);
    client.set_write_timeout(Some(SHORT)).unwrap();
    let started = Instant::now();
    let written = fill(&client);
    assert!(started.elapsed() >= SHORT);
    let bytes = read_exactly(&server, written);
    assert!(bytes.iter().all(|byte| *byte == 7));
    (&client).write_all(b"more").unwrap();
    assert_eq!(read_exactly(&server, 4), b"more");
}

#[test]
fn non_blocking_streams_do_not_wait() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.set_nonblocking(true).unwrap();
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
    assert_eq!(kind(client.peek(&mut [0])), ErrorKind::WouldBlock);
    server.write_all(b"abc").unwrap();
    let mut buffer = [0; 10];
    let mut length = 0;
    eventually("the data are there", || match client.read(&mut buffer) {
        Ok(n) => {
            length = n;
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    });
    assert_eq!(&buffer[..length], b"abc");

    let written = fill(&client);
    assert!(written > 0);
    let mut drained = 0;
    let mut sink = vec![0; 1 << 20];
    eventually("all of it arrives", || {
        drained += server.read(&mut sink).unwrap();
        drained >= written
    });
    assert_eq!(drained, written);
    eventually("there is room again", || client.write(b"x").is_ok());

    client.set_nonblocking(false).unwrap();
    client.set_read_timeout(Some(SHORT)).unwrap();
    let started = Instant::now();
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
    assert!(started.elapsed() >= SHORT, "it waits again");
}

#[test]
fn non_blocking_is_for_all_clones() {
    let world = World::new();
    let (client, _server) = pair(&world);
    let mut clone = client.try_clone().unwrap();
    client.set_nonblocking(true).unwrap();
    assert_eq!(kind(clone.read(&mut [0])), ErrorKind::WouldBlock);
}
