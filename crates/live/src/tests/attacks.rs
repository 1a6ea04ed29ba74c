//! Hostile clients of a status socket, and hostile processes behind one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use super::sockets::Scene;
use crate::client::{AskError, ask};
use crate::{Collector, Sources, place};

/// Sends bytes and reads whatever comes until the end.
fn talk(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The other end may stop reading in between.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn garbage_is_refused_and_the_next_is_answered() {
    let scene = Scene::new();
    let socket = scene.open();
    let _connection = scene.connection();
    let long = vec![b'r'; 1 << 20];
    let zeros = vec![0; 4096];
    for garbage in [
        &b""[..],
        b"\n",
        b"row\n",
        b"rows rows\n",
        b"GET / HTTP/1.1\r\n",
        b"\xff\xfe\n",
        &long,
        &zeros,
    ] {
        let answer = talk(socket.path(), garbage);
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.contains("established") && answer.len() < 200, "{text}");
    }
    assert_eq!(ask(socket.path()).unwrap().len(), 1);
    // Spaces at the end are no offence.
    assert!(String::from_utf8_lossy(&talk(socket.path(), b"rows \r\n")).contains("established"));
}

/// A listener at which one may wait.
fn listener_with_one_place(path: &Path) -> rustix::fd::OwnedFd {
    let (unix, stream) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
    let socket = rustix::net::socket(unix, stream, None).unwrap();
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 1).unwrap();
    socket
}

/// Clients that connect until the line is full, or there are two thousand.
fn fill(path: &Path) -> Vec<rustix::fd::OwnedFd> {
    let mut clients = Vec::new();
    while clients.len() < 2000 {
        // When the line is full, connecting would wait.
        let client = rustix::net::socket_with(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::NONBLOCK | rustix::net::SocketFlags::CLOEXEC,
            None,
        );
        let Ok(client) = client else { break };
        let address = rustix::net::SocketAddrUnix::new(path).unwrap();
        if rustix::net::connect(&client, &address).is_err() {
            break;
        }
        clients.push(client);
    }
    clients
}

/// Those who wait and do not read hold places for two seconds; then others get them.
#[test]
fn thousands_of_slow_clients_delay_and_do_not_stop() {
    let scene = Scene::new();
    let socket = scene.open();
    let _connection = scene.connection();
    let slow = fill(socket.path());
    for client in &slow {
        let _ = rustix::io::write(client, b"row");
    }
    assert!(slow.len() > 100, "{}", slow.len());
    // Packets go on meanwhile.
    let (mut stream, mut peer) = scene.connection();
    stream.write_all(b"still there").unwrap();
    peer.read_exact(&mut [0; 11]).unwrap();
    drop(slow);
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while ask(socket.path()).is_err() {
        assert!(std::time::Instant::now() < end, "it never answers again");
    }
}

/// A process that answers each question in the same way.
fn hostile(path: &Path, answer: impl Fn(UnixStream) + Send + 'static) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut question = String::new();
            let _ = BufReader::new(&stream).read_line(&mut question);
            answer(stream);
        }
    });
}

const HEAD: &str = "{\"transom\":1,\"connections\":1}\n";

fn fixed(path: &Path, text: String) {
    hostile(path, move |mut stream| drop(stream.write_all(text.as_bytes())));
}

/// Its name, the text, and whether that is the right error.
type Answer = (&'static str, String, fn(&AskError) -> bool);

#[test]
fn no_answer_harms_whoever_asks() {
    let scene = Scene::new();
    let _socket = scene.open();
    let _connection = scene.connection();
    let place = scene.place();
    let row = "{\"key\":\"\\u001b[2J\",\"local\":\"10.0.0.1:1\",\"remote\":\"10.0.0.2:2\",\"state\":\"\\u001b]0;x\\u0007\"}\n";
    let answers: [Answer; 8] = [
        ("empty", String::new(), |e| matches!(e, AskError::CutOff)),
        ("garbage", "hello\n".into(), |e| matches!(e, AskError::Garbage)),
        ("zeros", "\0".repeat(100_000), |e| matches!(e, AskError::TooLong)),
        ("newer", "{\"transom\":2,\"connections\":0}\n".into(), |e| {
            matches!(e, AskError::Version(2))
        }),
        ("refusal", "{\"error\":\"no\\u001b[2J\"}\n".into(), |e| {
            e.to_string() == "it answers: no?[2J"
        }),
        ("cut", format!("{HEAD}{row}"), |e| matches!(e, AskError::CutOff)),
        ("liar", format!("{HEAD}{row}{{\"end\":7}}\n"), |e| matches!(e, AskError::CutOff)),
        ("nested", format!("{HEAD}{}\n", "[".repeat(20_000)), |e| matches!(e, AskError::Garbage)),
    ];
    for (name, answer, expected) in answers {
        let path = place.join(format!("{name}.sock"));
        fixed(&path, answer);
        let error = ask(&path).unwrap_err();
        assert!(expected(&error), "{name}: {error:?}");
    }
    // Rows without an end: each is taken, until there are more than any host has, or the time is over.
    let endless = place.join("endless.sock");
    hostile(&endless, move |mut stream| {
        let many = row.repeat(1000);
        let _ = stream.write_all(HEAD.as_bytes());
        while stream.write_all(many.as_bytes()).is_ok() {}
    });
    let silent = place.join("silent.sock");
    hostile(&silent, |stream| {
        // Until whoever asks goes away.
        let _ = (&stream).read_to_end(&mut Vec::new());
    });
    let trickle = place.join("trickle.sock");
    hostile(&trickle, |mut stream| {
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    // One who never accepts, and before whom so many wait that connecting waits.
    let full = place.join("full.sock");
    let _never = listener_with_one_place(&full);
    let waiting = fill(&full);
    assert!(matches!(ask(&full).unwrap_err(), AskError::Io(_)));
    let error = ask(&endless).unwrap_err();
    assert!(matches!(error, AskError::TooLong | AskError::Io(_)), "{error:?}");
    for path in [&silent, &trickle] {
        assert!(
            matches!(ask(path).unwrap_err(), AskError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut)
        );
    }
    // What is right in an answer is taken, in a harmless form.
    fixed(&place.join("odd.sock"), format!("{HEAD}{row}{{\"end\":1}}\n"));
    let mut collector = scene.collector();
    let snapshot = collector.look();
    assert_eq!(snapshot.rows.len(), 2, "{:?}", snapshot.rows);
    let odd = snapshot.rows.iter().find(|row| row.state() == "unknown").unwrap();
    assert!(odd.key.ends_with(".?[2J"), "{}", odd.key);
    assert_eq!(snapshot.troubles.len(), 12, "{:?}", snapshot.troubles);
    // Whoever has not answered is not asked at once again.
    let again = collector.look();
    assert_eq!((again.rows.len(), again.troubles.len()), (2, 12));
    drop(waiting);
}

#[test]
fn sockets_of_the_dead_are_passed_over_and_removed() {
    let scene = Scene::new();
    let _socket = scene.open();
    let _connection = scene.connection();
    // No process has this number: it is beyond the largest that Linux gives.
    let dead = scene.place().join("4194305-0.sock");
    let other = scene.place().join("mine.sock");
    for path in [&dead, &other] {
        drop(UnixListener::bind(path).unwrap());
    }
    std::fs::write(scene.place().join("note.sock"), "no socket").unwrap();
    let snapshot = scene.collector().look();
    assert_eq!((snapshot.rows.len(), snapshot.troubles.len()), (1, 0), "{snapshot:?}");
    assert!(!dead.exists() && other.exists());
}

#[test]
fn a_directory_that_others_can_reach_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let socket = scene.open();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&scene.place()), mode(socket.path())), (0o700, 0o600));
    std::fs::set_permissions(scene.place(), PermissionsExt::from_mode(0o777)).unwrap();
    let snapshot = Collector::in_directory(Sources::Transom, &scene.place()).look();
    assert_eq!((snapshot.rows.len(), snapshot.troubles.len()), (0, 1));
    assert!(place::prepare(&scene.place()).is_err());
}
