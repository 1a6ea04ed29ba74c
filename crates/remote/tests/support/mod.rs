//! Two hosts over memory, an extension socket on one of them, and a peer by hand.
#![allow(dead_code, unreachable_pub)]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Stack, TcpStream};
use transom_remote::{ExtensionSocket, Offer};
use transom_tcp::extension::{DepartureReason, Interval, Variable};

/// After this time a test fails.
pub const SOON: Duration = Duration::from_secs(20);

pub struct Scene {
    _hosts: (Stack, Stack),
    pub ours: TcpStream,
    pub theirs: TcpStream,
    pub socket: ExtensionSocket,
    pub offer: Option<Offer>,
    directory: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Self {
        let (a, b) = pair(&MemoryConfig::default()).unwrap();
        let host = |number: u8, device| {
            Stack::builder().address([10, 0, 0, number].into(), 24).start(device).unwrap()
        };
        let (a, b) = (host(1, a), host(2, b));
        let listener = b.listen("10.0.0.2:80").unwrap();
        let ours = a.connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        theirs.set_linger(Some(Duration::ZERO)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let socket = ExtensionSocket::listen(directory.path().join("ext")).unwrap();
        let offer = Some(socket.offer(&ours).unwrap());
        Scene { _hosts: (a, b), ours, theirs, socket, offer, directory }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("ext")
    }

    /// So many bytes go over, and arrive as they left.
    pub fn transfer(&mut self, bytes: usize) {
        let mut reader = self.theirs.try_clone().unwrap();
        let read = std::thread::spawn(move || {
            let mut all = vec![0; bytes];
            reader.read_exact(&mut all).map(|()| all)
        });
        let all: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
        self.ours.write_all(&all).unwrap();
        assert!(read.join().unwrap().unwrap() == all);
    }

    /// Looks until `look` finds something.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut(&TcpStream) -> Option<T>) -> T {
        let begun = std::time::Instant::now();
        loop {
            if let Some(found) = look(&self.ours) {
                return found;
            }
            assert!(begun.elapsed() < SOON, "{what} does not happen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn departure(&self) -> DepartureReason {
        self.until("the departure of a layer", |stream| {
            let departure = stream.with_connection(|connection, _| connection.poll_departure());
            departure.unwrap().map(|departure| departure.reason)
        })
    }

    pub fn layers(&self) -> Vec<String> {
        let layers = |connection: &mut transom_tcp::Connection, _| {
            connection.layers().map(|layer| layer.name.to_string()).collect()
        };
        self.ours.with_connection(layers).unwrap()
    }

    pub fn requested(&self, variable: Variable) -> Option<Interval> {
        requested(&self.ours, variable)
    }
}

pub fn requested(stream: &TcpStream, variable: Variable) -> Option<Interval> {
    stream.with_connection(|connection, _| connection.ruling(variable).requested).unwrap()
}

/// The other process.
pub struct Peer {
    pub stream: UnixStream,
    pub lines: BufReader<UnixStream>,
}

impl Peer {
    pub fn connect(scene: &Scene) -> Self {
        let stream = UnixStream::connect(scene.path()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Peer { stream, lines }
    }

    /// Connects and attaches.
    pub fn attach(scene: &Scene, fields: &str) -> Self {
        let mut peer = Peer::connect(scene);
        assert_eq!(peer.hear()["hello"], "transom");
        peer.say(&format!("{{\"attach\":{{{fields}}}}}"));
        let attached = peer.hear();
        assert!(attached.get("attached").is_some(), "{attached}");
        peer
    }

    pub fn say(&mut self, line: &str) {
        self.stream.write_all(line.as_bytes()).unwrap();
        self.stream.write_all(b"\n").unwrap();
    }

    /// The next line.
    pub fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// What is said last, whatever was said before.
    pub fn last_words(&mut self, key: &str) -> String {
        loop {
            let line = self.hear();
            if let Some(text) = line.get(key) {
                return text.as_str().unwrap().to_string();
            }
            assert!(line.get("event").is_some(), "{line}");
        }
    }

    /// The connection is closed.
    pub fn hears_no_more(&mut self) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        for line in rest.lines() {
            assert!(line.starts_with("{\"over\"") || line.contains("\"event\""), "{line}");
        }
    }
}
