//! Asking, and asking badly.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Instant;

use super::*;
use std::net::TcpStream;
use std::thread;

use transom_device::serving::MOST_ASKING;

use crate::status::Counters;

struct Fake;

impl Deployment for Fake {
    fn status(&mut self, flows: usize) -> Result<Status, Refusal> {
        let (held, unreadable, failed, lost) = (11, 12, 13, 14);
        let rewritten = flows as u64;
        let counters =
            Counters { acks: 7, rewritten, held, unreadable, failed, lost, ..Counters::default() };
        Ok(Status {
            mode: "tc".into(),
            device: "a\"b".into(),
            target: Some(4096),
            counters,
            ..Status::default()
        })
    }

    fn maintain(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

fn fake() -> Shared {
    Shared(Arc::new(Mutex::new(Some(Box::new(Fake)))))
}

#[test]
fn requests_are_answered_and_a_second_router_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("below/router.sock");
    assert!(matches!(ask(&path, 1), Err(Refusal::NotRunning { .. })));
    let serving = StatusSocket::bind(&path).unwrap();
    serving.serve(Box::new(Fake)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let status = ask(&path, 3).unwrap();
    assert_eq!(
        (status.target, status.counters.acks, status.counters.rewritten),
        (Some(4096), 7, 3)
    );
    let counters = status.counters;
    assert_eq!((counters.held, counters.unreadable), (11, 12));
    assert_eq!((counters.failed, counters.lost), (13, 14));
    assert!(matches!(StatusSocket::bind(&path), Err(Refusal::Running { .. })));
    // No more flows than there may be, whatever is asked for.
    assert_eq!(ask(&path, usize::MAX).unwrap().counters.rewritten, MAX_FLOWS as u64);
    drop(serving);
    assert!(!path.exists());
    let shared = fake();
    shared.end();
    assert!(shared.status(0).is_err());
}

#[test]
fn nonsense_is_answered_and_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("router.sock");
    let serving = StatusSocket::bind(&path).unwrap();
    serving.serve(Box::new(Fake)).unwrap();
    for nonsense in ["\n", "status\n", "status -1\n", "\u{0}\n", &"x".repeat(10_000)] {
        let stream = UnixStream::connect(&path).unwrap();
        // The server may close the connection of a client that says too much.
        let _ = (&stream).write_all(nonsense.as_bytes());
        let mut text = String::new();
        let _ = (&stream).read_to_string(&mut text);
        assert!(!text.contains("\"mode\""), "{nonsense:?}: {text}");
    }
    drop(UnixStream::connect(&path).unwrap());
    assert!(ask(&path, 0).is_ok());
}

#[test]
fn only_the_socket_of_a_crashed_router_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("router.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    // A program that another test is just starting may hold the listener for a moment.
    let mut tries = (0..500).map(|_| {
        thread::sleep(std::time::Duration::from_millis(10));
        StatusSocket::bind(&path)
    });
    let found = tries.find_map(Result::ok);
    drop(found.expect("nobody listens there"));
    fs::write(&path, "somebody's file").unwrap();
    assert!(matches!(StatusSocket::bind(&path), Err(Refusal::Io { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's file");
}

fn http(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn prometheus_is_answered() {
    let at = fake().serve_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
    let text = http(at, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let line = "transom_router_acks_total{device=\"a\\\"b\",mode=\"tc\"} 7\n";
    assert!(text.contains(line), "{text}");
    for (name, count) in [("held", 11), ("unreadable", 12), ("failed", 13), ("lost", 14)] {
        let line =
            format!("\ntransom_router_{name}_total{{device=\"a\\\"b\",mode=\"tc\"}} {count}\n");
        assert!(text.contains(&line), "no {line} in {text}");
    }
    let foreign = http(at, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert!(!foreign.contains("transom_router"));
    assert!(http(at, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404"));
}

/// Says a byte now and then, and never comes to an end, until it is not listened to any more. Whether that happens.
fn trickles(mut stream: impl Read + Write) -> bool {
    let end = Instant::now() + 20 * PATIENCE;
    while Instant::now() < end {
        if stream.write_all(b"x").is_err() {
            return true;
        }
        // A third of what each read was given.
        thread::sleep(PATIENCE / 3);
    }
    false
}

#[test]
fn a_client_with_a_byte_now_and_then_holds_nobody_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("router.sock");
    let serving = StatusSocket::bind(&path).unwrap();
    serving.serve(Box::new(Fake)).unwrap();
    let at = fake().serve_metrics("127.0.0.1:0".parse().unwrap()).unwrap();
    thread::scope(|scope| {
        let slow: Vec<_> = (1..MOST_ASKING)
            .flat_map(|_| {
                let (http, unix) =
                    (TcpStream::connect(at).unwrap(), UnixStream::connect(&path).unwrap());
                [scope.spawn(move || trickles(http)), scope.spawn(move || trickles(unix))]
            })
            .collect();
        let text = http(at, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(ask(&path, 0).is_ok());
        assert!(
            slow.into_iter().all(|one| one.join().unwrap()),
            "somebody is listened to for ever"
        );
    });
}
