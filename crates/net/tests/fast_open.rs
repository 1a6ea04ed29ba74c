//! TCP Fast Open between two hosts, through the calls of programs (RFC 7413).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Stack, TcpListener, TcpStream};
use transom_stack::{FastOpenConfig, ListenConfig};
use transom_tcp::FastOpenFailure;

/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn server_address() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

/// Two hosts next to each other; the second listens, for so many at a time.
fn hosts(limit: usize) -> (Stack, Stack, TcpListener) {
    let (near, far) = pair(&MemoryConfig::default()).unwrap();
    let host = |number: u8| Stack::builder().address([10, 0, 0, number].into(), 24);
    let client = host(1).start(near).unwrap();
    let server = host(2).fast_open(FastOpenConfig::default()).start(far).unwrap();
    let config = ListenConfig::default().with_fast_open(limit);
    let listener = TcpListener::bind_with(&server, server_address(), config).unwrap();
    (client, server, listener)
}

fn connect(client: &Stack, data: &[u8]) -> TcpStream {
    let (stream, taken) = TcpStream::connect_with_data(client, server_address(), data).unwrap();
    assert_eq!(taken, data.len());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Accepts, and reads a request of this length.
fn accept(listener: &TcpListener, len: usize) -> (TcpStream, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = vec![0; len];
    stream.read_exact(&mut request).unwrap();
    (stream, request)
}

#[test]
fn the_second_connection_has_its_data_in_the_syn() {
    let (client, server, listener) = hosts(10);
    for round in 0..3u64 {
        let mut near = connect(&client, b"request");
        let (mut far, request) = accept(&listener, 7);
        assert_eq!(request, b"request");
        far.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        near.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        for stream in [&near, &far] {
            assert_eq!(stream.info().unwrap().fast_open.syn_data_acked, round > 0);
        }
        assert_eq!(server.counters().fast_opens_passive, round);
        assert_eq!(client.counters().fast_opens_active, round);
    }
    // More than a segment, and more than the buffer: the rest is the program's.
    let data = vec![7; 64 << 20];
    let reader = thread::spawn(move || accept(&listener, 64 << 20).1);
    let (mut near, taken) = TcpStream::connect_with_data(&client, server_address(), &data).unwrap();
    assert!(taken > 1460 && taken < data.len(), "{taken}");
    near.set_write_timeout(Some(PATIENCE)).unwrap();
    near.write_all(&data[taken..]).unwrap();
    assert!(reader.join().unwrap() == data);
}

#[test]
fn connecting_waits_for_the_first_write() {
    let (client, server, listener) = hosts(10);
    let remote = server_address();
    drop((connect(&client, b"1"), accept(&listener, 1)));
    let seen = server.counters().packets_received;
    let mut near = TcpStream::connect_on_write(&client, remote).unwrap();
    assert_eq!(near.peer_addr().unwrap(), remote);
    near.write_all(b"2").unwrap();
    let (far, _) = accept(&listener, 1);
    assert!(far.info().unwrap().fast_open.syn_data_acked);
    assert!(server.counters().packets_received > seen);
    // Shut down, dropped, and read without a write.
    let near = TcpStream::connect_on_write(&client, remote).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let (mut far, _) = accept(&listener, 0);
    assert_eq!(far.read(&mut [0; 9]).unwrap(), 0);
    drop(TcpStream::connect_on_write(&client, remote).unwrap());
    let mut near = TcpStream::connect_on_write(&client, remote).unwrap();
    near.set_read_timeout(Some(PATIENCE)).unwrap();
    let server = thread::spawn(move || accept(&listener, 0).0.write_all(b"I speak first").unwrap());
    let mut read = [0; 13];
    near.read_exact(&mut read).unwrap();
    server.join().unwrap();
    assert_eq!(&read, b"I speak first");
}

#[test]
fn a_refusal_is_found_by_the_first_call_that_waits() {
    let (client, _server, listener) = hosts(10);
    drop((connect(&client, b"1"), accept(&listener, 1)));
    drop(listener);
    let outcome = TcpStream::connect_with_data(&client, server_address(), b"2");
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let mut near = TcpStream::connect_on_write(&client, server_address()).unwrap();
    near.set_read_timeout(Some(PATIENCE)).unwrap();
    near.write_all(b"3").unwrap();
    let error = near.read(&mut [0; 9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_listener_without_it_is_asked_once() {
    let (client, server, listener) = hosts(0);
    for failure in [FastOpenFailure::NoCookie, FastOpenFailure::None] {
        let near = connect(&client, b"data");
        assert_eq!(accept(&listener, 4).1, b"data");
        assert_eq!(near.info().unwrap().fast_open.failure, failure);
    }
    assert_eq!(server.counters().fast_opens_passive, 0);
}
