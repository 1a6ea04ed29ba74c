//! Waiting for several things with poll(2).

use super::*;
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether the descriptor is readable and writable, after waiting for any of the `wanted`.
fn state(fd: &impl AsFd, wanted: PollFlags, patience: Duration) -> (bool, bool) {
    let mut fds = [PollFd::new(fd, wanted)];
    let timeout = Timespec::try_from(patience).unwrap();
    poll(&mut fds, Some(&timeout)).unwrap();
    let got = fds[0].revents();
    let ended = got.intersects(PollFlags::HUP | PollFlags::ERR);
    (got.contains(PollFlags::IN) || ended, got.contains(PollFlags::OUT) || ended)
}

fn becomes_readable(fd: &impl AsFd) -> bool {
    state(fd, PollFlags::IN, PATIENCE).0
}

fn is_readable(fd: &impl AsFd) -> bool {
    state(fd, PollFlags::IN, Duration::from_millis(20)).0
}

#[test]
fn a_listener_is_readable_when_somebody_connects() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    assert!(!is_readable(&listener));
    let first = world.connect(addr).unwrap();
    let second = world.connect(addr).unwrap();
    assert!(becomes_readable(&listener));
    listener.accept().unwrap();
    assert!(becomes_readable(&listener), "for the second");
    listener.accept().unwrap();
    assert!(!is_readable(&listener));
    drop((first, second));
}

#[test]
fn a_stream_is_readable_when_there_are_data() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    assert_eq!(state(&client, PollFlags::IN | PollFlags::OUT, Duration::ZERO), (false, true));
    server.write_all(b"abc").unwrap();
    assert!(becomes_readable(&client));
    assert_eq!(client.read(&mut [0; 2]).unwrap(), 2);
    assert!(becomes_readable(&client), "there is more");
    assert_eq!(client.read(&mut [0; 2]).unwrap(), 1);
    assert!(!is_readable(&client));
    server.write_all(b"again").unwrap();
    assert!(becomes_readable(&client));
}

#[test]
fn a_stream_is_readable_at_its_end() {
    let world = World::new();
    let (mut client, server) = pair(&world);
    assert!(!is_readable(&client));
    server.shutdown(Shutdown::Write).unwrap();
    assert!(becomes_readable(&client));
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert!(becomes_readable(&client), "and stays so");
    client.write_all(b"x").unwrap();
    assert_eq!(read_exactly(&server, 1), b"x");
}

#[test]
fn a_stream_is_ready_for_everything_after_a_reset() {
    let world = World::new();
    let (mut client, server) = pair(&world);
    assert!(!is_readable(&client));
    world.reset_on_drop(&server);
    drop(server);
    assert!(becomes_readable(&client));
    assert_eq!(state(&client, PollFlags::IN | PollFlags::OUT, PATIENCE), (true, true));
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
}

#[test]
fn a_stream_is_writable_when_there_is_room() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.set_nonblocking(true).unwrap();
    assert!(state(&client, PollFlags::OUT, PATIENCE).1);
    let piece = vec![1; 100_000];
    let mut written = 0;
    // It is full when it stays so: what has left for the other end makes room. (A little room is not worth a wake-up, in either
    // world: a write may take more than poll promises.)
    while state(&client, PollFlags::OUT, Duration::from_millis(50)).1 {
        match client.write(&piece) {
            Ok(length) => written += length,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    let mut sink = vec![0; 1 << 20];
    let mut drained = 0;
    while drained < written {
        drained += server.read(&mut sink).unwrap();
    }
    assert!(state(&client, PollFlags::OUT, PATIENCE).1);
    client.write_all(b"x").unwrap();
}

#[test]
fn poll_wakes_up_for_what_happens_meanwhile() {
    let world = World::new();
    let (client, mut server) = pair(&world);
    let waiting = std::thread::spawn(move || becomes_readable(&client));
    std::thread::sleep(Duration::from_millis(100));
    let sent = Instant::now();
    server.write_all(b"x").unwrap();
    assert!(waiting.join().unwrap());
    assert!(sent.elapsed() < Duration::from_secs(1));
}
