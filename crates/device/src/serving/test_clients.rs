//! Crowds of clients, for tests of what stands before a server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::front::MOST_GUESTS;

/// A request that is answered.
pub(super) const GOOD: &str = "GET /it HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// The descriptors that a test and its server need beside the clients.
const OTHERS: u64 = 700;
/// A large crowd.
pub(super) const LARGE: usize = 1_300;
/// One that is more than enough.
pub(super) const SMALL: usize = 2 * MOST_GUESTS;

/// The whole answer to a request.
pub(super) fn ask(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// More clients than a front has places, all there until this is dropped.
pub(super) struct Crowd(Vec<TcpStream>);

impl Crowd {
    /// So many, if this process can be as many, come one after the other; each says this, by its number, and nothing after it.
    pub(super) fn come<'a>(at: SocketAddr, most: usize, says: impl Fn(usize) -> &'a [u8]) -> Crowd {
        let clients = (0..possible(most)).map(|n| {
            let mut stream = TcpStream::connect(at).unwrap();
            // It may have been sent away already.
            let _ = stream.write_all(says(n));
            stream
        });
        let clients: Vec<_> = clients.collect();
        assert!(clients.len() > MOST_GUESTS, "{} clients are no crowd", clients.len());
        Crowd(clients)
    }

    /// Whether the first has been sent away, without an answer.
    pub(super) fn first_has_gone(&self) -> bool {
        self.0.first().is_some_and(|mut first| first.read(&mut [0]).unwrap_or(0) == 0)
    }
}

/// How many of these clients this process can be.
fn possible(clients: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let (most, current) = (limit.maximum.unwrap_or(u64::MAX), limit.current.unwrap_or(u64::MAX));
    let wanted = (clients as u64 + OTHERS).min(most);
    let raised = rustix::process::Rlimit { current: Some(wanted.max(current)), ..limit };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    usize::try_from(wanted.saturating_sub(OTHERS)).unwrap()
}
