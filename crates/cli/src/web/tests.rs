//! The frame, as clients see it that come while the server behind the front is busy.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use axum::routing::get;

use super::*;

fn ask(at: SocketAddr, host: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    stream
}

fn status(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).map_or_else(|| format!("no answer ({ended:?})"), str::to_owned)
}

/// More than any queue behind the front has held, and fewer than it has places.
const CROWD: usize = 100;

/// All that have places are answered, also those that come while the server does something else.
#[test]
fn everybody_with_a_place_is_answered() {
    let (begins, began) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let page = move || {
        begins.send(()).unwrap();
        // The one thread of the server waits here, until there are no more answers to be held up.
        let _ = released.lock().unwrap().recv();
        async { "the page" }
    };
    let router = Router::new().route("/", get(page));
    let server = Server::start("127.0.0.1:0".parse().unwrap(), router).unwrap();
    let at = server.address;
    let first = ask(at, "localhost");
    began.recv_timeout(Duration::from_secs(60)).unwrap();
    let others: Vec<_> = (1..CROWD).map(|_| ask(at, "localhost")).collect();
    // The front answers this one itself, and has read the requests of all who came before.
    assert_eq!(status(ask(at, "evil.example")), "403");
    drop(release);
    for stream in std::iter::once(first).chain(others) {
        assert_eq!(status(stream), "200");
    }
    drop(server);
}
