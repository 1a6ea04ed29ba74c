//! Many threads.

use super::*;
use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;

#[test]
fn one_thread_reads_while_another_writes() {
    let world = World::new();
    let (client, server) = pair(&world);
    let echo = thread::spawn(move || {
        let mut writer = server.try_clone().unwrap();
        io::copy(&mut &server, &mut writer).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut writer = client.try_clone().unwrap();
    let sent: Vec<u8> = (0..500_000u32).flat_map(|n| n.to_le_bytes()).collect();
    let expected = sent.clone();
    let writing = thread::spawn(move || {
        for piece in sent.chunks(1000) {
            writer.write_all(piece).unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&client).read_to_end(&mut received).unwrap();
    assert!(received == expected);
    writing.join().unwrap();
    echo.join().unwrap();
}

#[test]
fn thirty_two_threads_with_a_connection_each() {
    let world = Arc::new(World::new());
    let (listener, addr) = listen(&world);
    let server = thread::spawn(move || {
        let handlers: Vec<_> = listener
            .incoming()
            .take(32)
            .map(|stream| {
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut line = [0; 64];
                    while let Ok(n @ 1..) = stream.read(&mut line) {
                        stream.write_all(&line[..n]).unwrap();
                    }
                })
            })
            .collect();
        handlers.into_iter().for_each(|handler| handler.join().unwrap());
    });
    let clients: Vec<_> = (0..32u8)
        .map(|n| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let mut stream = world.connect(addr).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                for round in 0..200u32 {
                    let message = [&[n][..], &round.to_le_bytes()].concat();
                    stream.write_all(&message).unwrap();
                    assert_eq!(read_exactly(&stream, message.len()), message);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    server.join().unwrap();
}

#[test]
fn several_threads_accept() {
    let world = World::new();
    let (listener, addr) = listen(&world);
    let acceptors: Vec<_> = (0..4)
        .map(|_| {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || {
                for _ in 0..5 {
                    listener.accept().unwrap().0.write_all(b"x").unwrap();
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let client = world.connect(addr).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(read_exactly(&client, 1), b"x");
    }
    acceptors.into_iter().for_each(|acceptor| acceptor.join().unwrap());
}

#[test]
fn two_readers_share_the_stream() {
    let world = World::new();
    let (client, mut server) = pair(&world);
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let mut reader = client.try_clone().unwrap();
            thread::spawn(move || {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).unwrap();
                all
            })
        })
        .collect();
    let sent: Vec<u8> = (0..100_000u32).flat_map(|n| n.to_le_bytes()).collect();
    server.write_all(&sent).unwrap();
    drop(server);
    let mut all: Vec<u8> = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    let mut expected = sent;
    all.sort_unstable();
    expected.sort_unstable();
    assert!(all == expected, "each byte reaches one of them");
}
