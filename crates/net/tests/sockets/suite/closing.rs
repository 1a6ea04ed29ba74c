//! How connections end, and what one is told.

use super::*;
use std::io::Write;
use std::net::Shutdown;

/// A pair whose second end has reset the connection, and the first has learned of it.
fn after_reset(world: &World) -> TcpStream {
    let (client, server) = pair(world);
    world.reset_on_drop(&server);
    drop(server);
    std::thread::sleep(Duration::from_millis(50));
    client
}

/// [MUST-12] [MAY-1] An end in order.
#[test]
fn a_drop_ends_the_stream() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.write_all(b"last words").unwrap();
    drop(client);
    let mut all = Vec::new();
    server.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"last words");
    assert_eq!(server.read(&mut [0]).unwrap(), 0, "and stays at its end");
}

#[test]
fn the_last_clone_ends_the_stream() {
    let world = World::new();
    let (client, mut server) = pair(&world);
    let mut clone = client.try_clone().unwrap();
    drop(client);
    clone.write_all(b"x").unwrap();
    assert_eq!(read_exactly(&server, 1), b"x");
    drop(clone);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn half_closed_streams_go_on_in_the_other_direction() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.write_all(b"request").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut request = Vec::new();
    server.read_to_end(&mut request).unwrap();
    assert_eq!(request, b"request");
    server.write_all(b"response").unwrap();
    drop(server);
    let mut response = Vec::new();
    client.read_to_end(&mut response).unwrap();
    assert_eq!(response, b"response");
}

#[test]
fn nothing_can_be_written_after_shutdown() {
    let world = World::new();
    let (mut client, server) = pair(&world);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
    client.shutdown(Shutdown::Write).unwrap();
    drop(server);
}

#[test]
fn a_shutdown_for_reading_ends_reads() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.shutdown(Shutdown::Read).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    client.write_all(b"still writable").unwrap();
    assert_eq!(read_exactly(&server, 14), b"still writable");
    // The peer is not told (RFC 9293 has no such message), and can go on writing.
    server.write_all(b"late").unwrap();
    if World::READS_AFTER_SHUTDOWN {
        eventually("all of it has arrived", || client.peek(&mut [0; 4]).unwrap() == 4);
    } else {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_shutdown_wakes_a_blocked_reader() {
    let world = World::new();
    let (client, _server) = pair(&world);
    let mut reader = client.try_clone().unwrap();
    let blocked = std::thread::spawn(move || reader.read(&mut [0]));
    std::thread::sleep(Duration::from_millis(50));
    client.shutdown(Shutdown::Read).unwrap();
    assert_eq!(blocked.join().unwrap().unwrap(), 0);
}

#[test]
fn a_shutdown_of_both_is_both() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    client.shutdown(Shutdown::Both).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_shutdown_of_what_is_over_is_an_error() {
    let world = World::new();
    let mut client = after_reset(&world);
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
    assert_eq!(kind(client.shutdown(Shutdown::Write)), ErrorKind::NotConnected);
}

/// [MUST-12] A reset is an error.
#[test]
fn a_reset_is_read_once() {
    let world = World::new();
    let mut client = after_reset(&world);
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
}

#[test]
fn a_reset_is_written_into_once() {
    let world = World::new();
    let mut client = after_reset(&world);
    assert_eq!(kind(client.write(b"x")), ErrorKind::ConnectionReset);
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_reset_is_taken_once() {
    let world = World::new();
    let (client, server) = pair(&world);
    assert!(client.take_error().unwrap().is_none());
    drop(server);
    let mut client = after_reset(&world);
    let error = client.take_error().unwrap().expect("the reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(client.take_error().unwrap().is_none());
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
}

#[test]
fn a_reset_wakes_a_blocked_reader_and_a_blocked_writer() {
    let world = World::new();
    let (client, server) = pair(&world);
    let mut reader = client.try_clone().unwrap();
    let mut writer = client.try_clone().unwrap();
    let reading = std::thread::spawn(move || reader.read(&mut [0]));
    let writing = std::thread::spawn(move || {
        let piece = [0; 65_536];
        loop {
            if let Err(error) = writer.write_all(&piece) {
                return error.kind();
            }
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    world.reset_on_drop(&server);
    drop(server);
    // Both are woken. Which of them is told of the reset is a matter of chance; the other finds the stream over.
    let read = reading.join().unwrap().map_err(|error| error.kind());
    let written = writing.join().unwrap();
    assert!(matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset)), "{read:?}");
    assert!(matches!(written, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{written:?}");
    assert!(read.is_err() || written == ErrorKind::ConnectionReset);
}

#[test]
fn unread_data_before_a_reset() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    server.write_all(b"lost").unwrap();
    eventually("all of it has arrived", || client.peek(&mut [0; 4]).unwrap() == 4);
    world.reset_on_drop(&server);
    drop(server);
    std::thread::sleep(Duration::from_millis(50));
    if World::KEEPS_UNREAD_DATA_AFTER_RESET {
        assert_eq!(read_exactly(&client, 4), b"lost");
    }
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
}

/// [SHLD-3]
#[test]
fn dropping_unread_data_resets_the_peer() {
    // RFC 9293, section 3.6.1, and RFC 2525, section 2.17.
    let world = World::new();
    let (mut client, server) = pair(&world);
    client.write_all(b"unread").unwrap();
    assert_eq!(server.peek(&mut [0]).unwrap(), 1);
    drop(server);
    assert_eq!(kind(client.read(&mut [0])), ErrorKind::ConnectionReset);
}

#[test]
fn writing_to_who_has_gone_fails_in_the_end() {
    let world = World::new();
    let (mut client, server) = pair(&world);
    drop(server);
    std::thread::sleep(Duration::from_millis(20));
    client.write_all(b"accepted, as nothing is known yet").unwrap();
    let mut error = None;
    eventually("the reset arrives", || match client.write(b"x") {
        Ok(_) => false,
        Err(e) => error.replace(e).is_none(),
    });
    assert_eq!(error.unwrap().kind(), World::RESET_AFTER_END);
    assert_eq!(kind(client.write(b"x")), ErrorKind::BrokenPipe);
}
