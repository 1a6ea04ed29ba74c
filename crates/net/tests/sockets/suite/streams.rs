//! Bytes.

use super::*;
use std::io::{IoSlice, IoSliceMut, Write};

#[test]
fn peeking_leaves_the_data() {
    let world = World::new();
    let (client, mut server) = pair(&world);
    server.write_all(b"abcdef").unwrap();
    let mut buffer = [0; 4];
    eventually("all of it has arrived", || client.peek(&mut [0; 6]).unwrap() == 6);
    for _ in 0..2 {
        assert_eq!(client.peek(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer, b"abcd");
    }
    assert_eq!(read_exactly(&client, 6), b"abcdef");
    drop(server);
    assert_eq!(client.peek(&mut buffer).unwrap(), 0, "the end can be peeked at, too");
}

#[test]
fn nothing_is_read_into_nothing_and_written_from_nothing() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    assert_eq!(client.read(&mut []).unwrap(), 0, "without waiting");
    assert_eq!(client.write(&[]).unwrap(), 0);
    client.flush().unwrap();
    server.write_all(b"x").unwrap();
    assert_eq!(client.read(&mut []).unwrap(), 0);
    assert_eq!(read_exactly(&client, 1), b"x");
}

#[test]
fn small_reads_take_the_data_bit_by_bit() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    server.write_all(b"0123456789").unwrap();
    drop(server);
    let mut all = Vec::new();
    let mut buffer = [0; 3];
    loop {
        match client.read(&mut buffer).unwrap() {
            0 => break,
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
    assert_eq!(all, b"0123456789");
}

#[test]
fn several_buffers_at_once() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    let pieces = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde"), IoSlice::new(b"f")];
    assert_eq!(server.write_vectored(&pieces).unwrap(), 6);
    eventually("all of it has arrived", || client.peek(&mut [0; 6]).unwrap() == 6);
    let (mut first, mut second, mut third) = ([0; 1], [0; 0], [0; 9]);
    let mut buffers =
        [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second), IoSliceMut::new(&mut third)];
    assert_eq!(client.read_vectored(&mut buffers).unwrap(), 6);
    assert_eq!((&first, &third[..5]), (b"a", &b"bcdef"[..]));
    assert_eq!(server.write_vectored(&[]).unwrap(), 0);
    drop(server);
    assert_eq!(client.read_vectored(&mut [IoSliceMut::new(&mut [0; 4])]).unwrap(), 0);
}

/// [MUST-17]
#[test]
fn nagle_can_be_switched_off() {
    let world = World::new();
    let (client, _server) = pair(&world);
    assert!(!client.nodelay().unwrap());
    client.set_nodelay(true).unwrap();
    assert!(client.nodelay().unwrap());
    assert!(client.try_clone().unwrap().nodelay().unwrap());
    client.set_nodelay(false).unwrap();
    assert!(!client.nodelay().unwrap());
}

#[test]
fn the_time_to_live_can_be_set() {
    let world = World::new();
    let (mut client, mut server) = pair(&world);
    assert_eq!(client.ttl().unwrap(), 64);
    client.set_ttl(3).unwrap();
    assert_eq!(client.ttl().unwrap(), 3);
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
    for wrong in [0, 256, 100_000] {
        assert_eq!(client.set_ttl(wrong).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
    assert_eq!(client.ttl().unwrap(), 3);
}

#[test]
fn shared_references_read_and_write() {
    let world = World::new();
    let (client, server) = pair(&world);
    (&client).write_all(b"x").unwrap();
    let mut byte = [0];
    (&server).read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
}

/// [MUST-60] Nobody has to push.
#[test]
fn a_megabyte_arrives_as_it_was_sent() {
    let world = World::new();
    let (mut client, server) = pair(&world);
    let sent: Vec<u8> = (0..262_144u32).flat_map(|n| (n ^ n << 7).to_le_bytes()).collect();
    let expected = sent.clone();
    let writer = std::thread::spawn(move || client.write_all(&sent));
    assert!(read_exactly(&server, expected.len()) == expected);
    writer.join().unwrap().unwrap();
}
