//! The tests, for whichever sockets `super::world` has.

mod closing;
mod dual_stack;
mod opening;
mod readiness;
mod streams;
mod threads;
mod timeouts;

use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::world::{TcpListener, TcpStream, World};

/// A read that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listener on a free port, and its address.
fn listen(world: &World) -> (TcpListener, SocketAddr) {
    let listener = world.listen_at(world.server()).unwrap();
    let addr = listener.local_addr().unwrap();
    assert_ne!(addr.port(), 0);
    (listener, addr)
}

/// Two ends of a connection: the one that connected and the one that accepted.
fn pair(world: &World) -> (TcpStream, TcpStream) {
    let (listener, addr) = listen(world);
    let client = world.connect(addr).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

fn kind<T: std::fmt::Debug>(outcome: io::Result<T>) -> ErrorKind {
    outcome.expect_err("an error was expected").kind()
}

fn read_exactly(mut stream: &TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Calls `done` until it holds.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
