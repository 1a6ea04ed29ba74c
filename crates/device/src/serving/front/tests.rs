//! The front as its clients see it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use super::*;
use crate::serving::test_clients::{Crowd, GOOD, LARGE, ask};

fn begin(attend: impl FnMut(Guest) + Send + 'static) -> (SocketAddr, Serving) {
    let serving = serve("127.0.0.1:0".parse().unwrap(), "front", attend).unwrap();
    (serving.address, serving)
}

/// A front that answers each request with the request.
fn echo() -> (SocketAddr, Serving) {
    let attend = |guest: Guest| {
        let bytes = guest::plain("200 OK", guest.request());
        guest.answer(bytes);
    };
    begin(attend)
}

#[test]
fn one_request_is_answered_and_the_connection_closed() {
    let (at, _serving) = echo();
    let text = ask(at, GOOD);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("\r\nConnection: close\r\n") && text.ends_with("\r\n\r\nGET /it"));
    // What follows the head is not taken for a second request, and is no reason for a reset.
    let text = ask(at, &format!("{GOOD}{GOOD}{}", "x".repeat(3000)));
    assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
}

#[test]
fn forbidden_requests_are_refused() {
    let (at, _serving) = echo();
    let of = |request: &str| ask(at, request).split(' ').nth(1).unwrap_or_default().to_owned();
    assert_eq!(of("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403");
    assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), "403");
    assert_eq!(of("nonsense\r\n\r\n"), "400");
    assert_eq!(of(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD))), "431");
}

#[test]
fn a_crowd_of_slow_clients_silences_nobody() {
    let (at, _serving) = echo();
    let crowd = Crowd::come(at, LARGE, |n| if n % 2 == 0 { b"" } else { b"GET / HT" });
    for _ in 0..10 {
        assert!(ask(at, GOOD).starts_with("HTTP/1.1 200 "));
    }
    assert!(crowd.first_has_gone(), "they are bounded");
}

/// A reader that takes nothing of an answer is late long before the time of a whole answer is over.
#[test]
fn an_answer_that_nobody_takes_waits_for_room() {
    let (attended, attends) = mpsc::channel();
    let attend = move |guest: Guest| {
        attended.send((Arc::clone(&guest.shared), guest.id())).unwrap();
        // More than what fits between the two.
        guest.answer(vec![b'x'; 64 << 20]);
    };
    let (at, _serving) = begin(attend);
    let mut reader = TcpStream::connect(at).unwrap();
    reader.write_all(GOOD.as_bytes()).unwrap();
    let (shared, id) = attends.recv().unwrap();
    let is_late = || {
        let at = Instant::now() + ANSWER_PATIENCE + Duration::from_millis(1);
        shared.places(|places| places.will_be_late(id, at))
    };
    let end = Instant::now() + ANSWER_LONGEST / 2;
    while !is_late() {
        assert!(Instant::now() < end, "it could stay for as long as a whole answer may take");
        thread::sleep(Duration::from_millis(10));
    }
    // One that goes on taking it is not late.
    let mut piece = vec![0; 1 << 20];
    for _ in 0..8 {
        reader.read_exact(&mut piece).unwrap();
    }
    assert!(shared.places(|places| places.has(id)));
}

#[test]
fn a_server_that_takes_its_time_holds_up_no_other_request() {
    let (hold, held) = mpsc::channel();
    let attend = move |guest: Guest| match guest.request() {
        "GET /slow" => hold.send(guest).unwrap(),
        _ => guest.answer(guest::plain("200 OK", "quick")),
    };
    let (at, _serving) = begin(attend);
    let mut slow = TcpStream::connect(at).unwrap();
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let guest = held.recv().unwrap();
    assert!(ask(at, GOOD).ends_with("quick"));
    guest.answer(guest::plain("200 OK", "slow"));
    let mut text = String::new();
    slow.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("slow"), "{text}");
}

#[test]
fn a_front_that_is_dropped_listens_no_more() {
    let (at, serving) = echo();
    let mut waiting = TcpStream::connect(at).unwrap();
    drop(serving);
    assert!(waiting.read(&mut [0]).unwrap_or(0) == 0);
    // The thread closes the listener soon after it has closed the connections.
    while TcpStream::connect(at).is_ok() {
        thread::yield_now();
    }
}

/// Slow clients of another user take no place of this one's.
#[test]
fn users_share_the_places() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be another user");
        return;
    }
    let (took, taken) = mpsc::channel();
    let attend = move |guest: Guest| {
        let streams = guest.becomes_stream();
        let kept = guest.request() == "GET /mine";
        took.send((kept, streams, guest)).unwrap();
    };
    let (at, _serving) = begin(attend);
    let mut mine = TcpStream::connect(at).unwrap();
    // A connection of this user's that is slower than all others.
    mine.write_all(b"GET /mine HTTP/1.1\r\n").unwrap();
    let other = thread::spawn(move || {
        // This thread alone becomes another user.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        let slow: Vec<_> = (0..MOST_GUESTS + 50).map(|_| TcpStream::connect(at).unwrap()).collect();
        let streams: Vec<_> = (0..MOST_STREAMS + 5)
            .map(|_| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(b"GET /theirs HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                stream
            })
            .collect();
        (slow, streams)
    });
    let _theirs = other.join().unwrap();
    let theirs: Vec<_> = taken.iter().take(MOST_STREAMS + 5).collect();
    assert_eq!(theirs.iter().filter(|(_, streams, _)| *streams).count(), MOST_STREAMS);
    mine.write_all(b"Host: localhost\r\n\r\n").unwrap();
    let (kept, streams, _guest) = taken.recv().unwrap();
    assert!(kept && streams, "the other user has taken all");
}
