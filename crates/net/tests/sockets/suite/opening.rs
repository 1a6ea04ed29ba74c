//! Listening and connecting.

use super::*;
use std::io::Write;

#[test]
fn both_ends_agree_about_the_addresses() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let client = world.connect(addr).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(client.peer_addr().unwrap(), addr);
    assert_eq!(server.local_addr().unwrap(), addr);
    assert_eq!(client.local_addr().unwrap(), peer);
    assert_eq!(server.peer_addr().unwrap(), peer);
    assert!(listener.take_error().unwrap().is_none());
}

#[test]
fn nobody_listens() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    drop(listener);
    assert_eq!(kind(world.connect(addr)), ErrorKind::ConnectionRefused);
    let outcome = world.connect_timeout(addr, PATIENCE);
    assert_eq!(kind(outcome), ErrorKind::ConnectionRefused);
}

#[test]
fn nobody_answers() {
    let world = World::new();
    let (addr, _silent) = world.silence();
    let started = Instant::now();
    let outcome = world.connect_timeout(addr, Duration::from_millis(300));
    assert_eq!(kind(outcome), ErrorKind::TimedOut);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn no_time_to_connect_is_refused() {
    let world = World::new();
    let (_listener, addr) = listen(&world);
    assert_eq!(kind(world.connect_timeout(addr, Duration::ZERO)), ErrorKind::InvalidInput);
}

#[test]
fn an_address_is_in_use_until_its_listener_is_dropped() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    assert_eq!(kind(world.listen_at(addr)), ErrorKind::AddrInUse);
    let clone = listener.try_clone().unwrap();
    drop(listener);
    assert_eq!(kind(world.listen_at(addr)), ErrorKind::AddrInUse, "a clone holds it");
    drop(clone);
    world.listen_at(addr).unwrap();
}

/// [MUST-41]
#[test]
fn an_address_can_be_listened_at_again_while_old_connections_last() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let client = world.connect(addr).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    drop(listener);
    let listener = world.listen_at(addr).unwrap();
    server.write_all(b"still here").unwrap();
    assert_eq!(read_exactly(&client, 10), b"still here");
    let _another = world.connect(addr).unwrap();
    listener.accept().unwrap();
}

#[test]
fn somebody_elses_address_cannot_be_listened_at() {
    let world = World::new();
    let elsewhere = ([192, 0, 2, 77], 0).into();
    assert_eq!(kind(world.listen_at(elsewhere)), ErrorKind::AddrNotAvailable);
}

#[test]
fn all_addresses_at_once() {
    let world = World::new();
    let listener = world.listen_at(([0, 0, 0, 0], 0).into()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let addr = SocketAddr::new(world.server().ip(), port);
    let _client = world.connect(addr).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert_eq!(server.local_addr().unwrap(), addr);
}

#[test]
fn a_host_connects_to_itself() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let mut client = world.connect_on_server(addr).unwrap();
    let (server, _) = listener.accept().unwrap();
    client.write_all(b"hello me").unwrap();
    assert_eq!(read_exactly(&server, 8), b"hello me");
}

#[test]
fn a_socket_connects_to_itself() {
    // Simultaneous open with itself: RFC 9293, section 3.5.
    let world = World::new();
    let mut stream = world.connect_to_self().unwrap();
    assert_eq!(stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    stream.write_all(b"echo").unwrap();
    assert_eq!(read_exactly(&stream, 4), b"echo");
}

#[test]
fn connections_wait_to_be_accepted() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let clients: Vec<_> = (0..10)
        .map(|n: u8| {
            let mut client = world.connect(addr).unwrap();
            client.write_all(&[n]).unwrap();
            client
        })
        .collect();
    let mut seen: Vec<u8> =
        listener.incoming().take(10).map(|server| read_exactly(&server.unwrap(), 1)[0]).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    drop(clients);
}

#[test]
fn a_non_blocking_listener_does_not_wait() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    listener.set_nonblocking(true).unwrap();
    assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock);
    let client = world.connect(addr).unwrap();
    let mut accepted = None;
    eventually("the connection is there", || match listener.accept() {
        Ok((server, _)) => accepted.replace(server).is_none(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    });
    // An accepted stream blocks all the same, as the standard library's does on Linux.
    let mut server = accepted.unwrap();
    server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let started = Instant::now();
    assert_eq!(kind(server.read(&mut [0])), ErrorKind::WouldBlock);
    assert!(started.elapsed() >= Duration::from_millis(50));
    drop(client);
}

#[test]
fn a_listener_that_is_dropped_resets_whom_nobody_accepted() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let mut client = world.connect(addr).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    drop(listener);
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
}
